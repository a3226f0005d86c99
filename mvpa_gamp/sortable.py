"""Names of classes and runs: whatever can be sorted."""

from typing import Any

import numpy as np


def check_sortable(what: str, names: Any) -> None:
    """Refuse names of different kinds, such as words and numbers or None, which have no order.

    >>> import numpy as np
    >>> from mvpa_gamp.sortable import check_sortable
    >>> check_sortable("y", np.array(["face", "house"], dtype=object))
    """
    if np.asarray(names).dtype.kind != "O":
        return
    kinds = sorted({type(name).__name__ for name in np.ravel(names)})
    try:
        np.unique(names)
    except TypeError as error:
        raise ValueError(
            f"{what} must hold numbers or words, got a mixture of {', '.join(kinds)}, which has no order. "
            "Name every sample in the same way."
        ) from error
