"""Which label vectors, or sign patterns, are at least as good as the observed one.

They are ordered by a score and, where scores are equal, by a finer one. A permutation test is exact with any
function of data and labels, this order among them. What is still equal counts against the data.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Scores closer than this are equal: means of the same shares in another order.
_TIE = 1e-9


def places(score: Any, finer: Any) -> NDArray:
    """Places (..., 1 + n), the larger the better, of scores (..., 1 + n) with the observed ones first.

    Equal scores have the order of ``finer``, of the same shape. Where it is not known (NaN) the observed one
    is the last of its equals, and any other the first.

    >>> places([0.5, 0.5, 0.5, 0.6], [0.7, 0.6, 0.7, 0.1]).tolist()
    [1, 0, 1, 2]
    """
    score, finer = (np.array(values, dtype=float) for values in np.broadcast_arrays(score, finer))
    finer[np.isnan(finer)] = np.inf
    finer[..., 0][np.isinf(finer[..., 0])] = -np.inf
    steps = _steps(score.ravel(), np.zeros(score.size))
    return _steps(steps, finer.ravel()).reshape(score.shape)


def share_as_good(place: NDArray) -> Any:
    """The share (...) of places (..., 1 + n) that are at least the first one, which is among them."""
    return np.mean(place >= place[..., :1], axis=-1)


def _steps(first: NDArray, second: NDArray) -> NDArray:
    """Numbers (n,) in the order of ``first``, and of ``second`` where that is equal; equals share one."""
    order = np.lexsort((second, first))
    a, b = first[order], second[order]
    rises = (a[1:] > a[:-1] + _TIE) | (b[1:] > b[:-1] + _TIE)
    out = np.empty(order.size, dtype=int)
    out[order] = np.concatenate([[0], np.cumsum(rises)])
    return out
