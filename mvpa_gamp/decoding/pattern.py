"""Activation patterns of linear classifiers (Haufe et al., 2014)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

_SMALLEST_POWER = 1e-60  # of a decision: the pattern of a smaller one is beyond float32


def haufe_pattern(X: Any, coef: NDArray, train: NDArray | None = None) -> NDArray:
    """Covariance of each voxel with the decision d = Xw, divided by its variance: cov(X) w / var(Xw).

    X is (M, N), coef (N,) or (N, B); the result has coef's shape. ``train`` (M, B) bool are the rows over
    which each column's covariance is taken, None all of them. No N x N matrix is formed: with the centred
    decision c, cov(X) w = X'c / (M - 1). A decision that never changes, or
    by less than 1e-30, has no pattern: zeros.

    >>> import numpy as np
    >>> from mvpa_gamp.decoding import haufe_pattern
    >>> X = np.array([[1.0, 2.0], [-1.0, -2.0], [1.0, 2.0], [-1.0, -2.0]])
    >>> haufe_pattern(X, np.array([1.0, 0.0]))  # the second voxel follows the first one, twice as large
    array([1., 2.])
    """
    single = coef.ndim == 1
    decision = np.asarray(X @ (coef[:, None] if single else coef), dtype=np.float64)
    rows = np.ones(decision.shape, dtype=bool) if train is None else train
    decision = np.where(rows, decision, 0.0)
    centred = np.where(rows, decision - decision.sum(axis=0) / rows.sum(axis=0), 0.0)
    power = np.einsum("mb,mb->b", centred, centred)
    flat = power <= np.finfo(np.float32).eps ** 2 * np.einsum("mb,mb->b", decision, decision)
    flat |= power < _SMALLEST_POWER
    scaled = np.where(flat, 0.0, centred / np.where(flat, 1.0, power))
    pattern = np.asarray(scaled.T.astype(np.result_type(X.dtype, np.float32)) @ X).T
    return pattern[:, 0] if single else pattern
