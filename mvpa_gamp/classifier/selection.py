"""Which features a fit of GAMPClassifier selects, and a sentence where these are none or all."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

_ALL = " Every feature is selected: no weight of this prior is exactly zero."
_NONE = (
    " No feature is selected: no inclusion probability is above 0.5. Predictions use the weights of all "
    "features."
)
_NO_WEIGHT = " No feature is selected: all weights are zero."


def selected_features(prior: Any, inclusion: NDArray, coef: NDArray) -> NDArray:
    """Inclusion probability above 1/2; non-zero weights where the prior has no probability of zero."""
    return inclusion > 0.5 if prior.has_atom else coef != 0


def selection_notes(selected: NDArray, prior: Any, mode: str) -> list[str]:
    """What to say of what every pair selects, (n_pairs, n_features); nothing of an ordinary selection."""
    if not prior.has_atom and mode == "sum-product":
        return [_ALL] * len(selected)
    nothing = _NONE if prior.has_atom else _NO_WEIGHT
    return ["" if some else nothing for some in np.any(selected, axis=1)]
