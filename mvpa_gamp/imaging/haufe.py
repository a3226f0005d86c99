"""Activation patterns of linear classifiers (Haufe et al., 2014)."""

import numpy as np
from numpy.typing import NDArray


def haufe_pattern(X: NDArray, coef: NDArray) -> NDArray:
    """Covariance of each voxel with the decision d = Xw, divided by its variance: cov(X) w / var(Xw).

    X is (M, N), coef (N,) or (N, B); the result has coef's shape. No N x N matrix is formed: with the
    centred decision c, cov(X) w = X'c / (M - 1). A decision that never changes has no pattern: zeros.
    """
    single = coef.ndim == 1
    decision = np.asarray(X @ (coef[:, None] if single else coef), dtype=np.float64)
    centred = decision - decision.mean(axis=0)
    power = np.einsum("mb,mb->b", centred, centred)
    flat = power <= np.finfo(np.float32).eps ** 2 * np.einsum("mb,mb->b", decision, decision)
    scaled = np.where(flat, 0.0, centred / np.where(flat, 1.0, power))
    pattern = np.asarray(scaled.T.astype(X.dtype) @ X).T
    return pattern[:, 0] if single else pattern
