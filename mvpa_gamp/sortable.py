"""Names of classes and runs: whatever can be sorted."""

from typing import Any

import numpy as np


def check_sortable(what: str, names: Any) -> None:
    """Refuse missing names, and names of different kinds, such as words and numbers, which have no order.

    >>> import numpy as np
    >>> from mvpa_gamp.sortable import check_sortable
    >>> check_sortable("y", np.array(["face", "house"], dtype=object))
    """
    if np.asarray(names).dtype.kind != "O":
        return
    check_none_missing(what, names)
    kinds = sorted({type(name).__name__ for name in np.ravel(names)})
    try:
        np.unique(names)
    except TypeError as error:
        raise ValueError(
            f"{what} must hold numbers or words, got a mixture of {', '.join(kinds)}, which has no order. "
            "Name every sample in the same way."
        ) from error


def check_none_missing(what: str, names: Any) -> None:
    """Refuse None, and what pandas puts in place of missing words."""
    names = np.ravel(np.asarray(names, dtype=object))
    missing = [str(name) for name in names if name is None or _is_nan(name)]
    if missing:
        raise ValueError(
            f"{what} has missing labels ({missing[0]}) in {len(missing)} of {len(names)} samples. Drop these "
            "samples, or name them."
        )


def _is_nan(name: Any) -> bool:
    return type(name).__name__ in ("NAType", "NaTType") or (isinstance(name, float) and name != name)
