"""Inner products of all rows of X, shared by the folds of methods that need nothing else of it."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

FEATURES_AT_ONCE = 4096  # turned into float64 together: a copy of 216 rows is 7 MB
_LARGEST_OFFSET = 1e6  # values over their range: beyond, inner products have four digits left for the range


def check_offset(X: Any) -> None:
    """Refuse a dense X that hardly varies around a large value: its inner products would be rounding."""
    if sparse.issparse(X):
        return
    largest, extent = float(np.abs(X).max()), float(np.ptp(X, axis=0).max())
    if 0 < extent < largest / _LARGEST_OFFSET:
        raise ValueError(
            f"Values of X are as large as {largest:.3g}, but no feature varies by more than {extent:.3g}. "
            "Inner products cannot resolve that. Subtract the mean of every feature, or standardise."
        )


def gram_matrix(X: Any) -> NDArray:
    """X X' (M, M) in float64 of a dense or sparse X; an entry depends on its two rows alone."""
    if sparse.issparse(X):
        wide = X.astype(np.float64)
        return (wide @ wide.T).toarray()
    gram = np.zeros((len(X), len(X)))
    for features in feature_blocks(X):
        part = X[:, features].astype(np.float64, copy=False)
        gram += part @ part.T
    return gram


def weights_of_rows(X: Any, dual: NDArray) -> NDArray:
    """X' dual (N, B) in float64: the weights that are mixtures of rows with coefficients dual (M, B)."""
    if sparse.issparse(X):
        return np.asarray(X.T @ dual)
    weights = np.empty((X.shape[1], dual.shape[1]))
    for features in feature_blocks(X):
        weights[features] = X[:, features].astype(np.float64, copy=False).T @ dual
    return weights


def feature_blocks(X: NDArray) -> Iterator[slice]:
    """Some features of X at a time, so that copies of them stay small."""
    for start in range(0, X.shape[1], FEATURES_AT_ONCE):
        yield slice(start, min(start + FEATURES_AT_ONCE, X.shape[1]))
