"""X and its training rows: the only place that multiplies by X or by its squares.

Features are visited in blocks, so that one block of X serves the adjoint products, the prior step
and the forward products while it is in cache, and the squared matrix is never stored for dense X.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .moments import Array

# Bytes of X per block: about one second-level cache, so that the block is read from memory once.
_BLOCK_BYTES = 1 << 20


class Design:
    """X (M, N), dense or scipy.sparse, and the rows each of B columns is trained on.

    Parameters
    ----------
    X : (M, N) array or scipy.sparse matrix, float32 or float64 (anything else becomes float64).
    train : (M, B) or (M,) bool, True where a row's label may be used; None means all rows, one column.
    """

    def __init__(self, X: Any, train: Any = None) -> None:
        self.X = _checked_matrix(X)
        self.train = _checked_train(train, self.X.shape[0])
        self._squares = self.X.power(2) if self.is_sparse else None

    @property
    def is_sparse(self) -> bool:
        """Whether X is a scipy.sparse matrix."""
        return sparse.issparse(self.X)

    @property
    def shape(self) -> tuple[int, int, int]:
        """M rows, N features, B columns."""
        return (*self.X.shape, self.train.shape[1])

    @property
    def dtype(self) -> np.dtype:
        """Precision of X and of everything that has N rows."""
        return self.X.dtype

    def take(self, columns: NDArray) -> "Design":
        """The same X with some of the columns of ``train``."""
        part = object.__new__(Design)
        part.X, part._squares, part.train = self.X, self._squares, self.train[:, columns]
        return part

    def row_energy(self) -> Array:
        """Squared norm of every row of X, (M, 1)."""
        if self._squares is not None:
            return np.asarray(self._squares.sum(axis=1), dtype=float).reshape(-1, 1)
        return np.einsum("mn,mn->m", self.X, self.X, dtype=float)[:, None]

    def blocks(self) -> Iterator["Block"]:
        """X in blocks of features: one block when sparse."""
        n_rows, n_features = self.X.shape
        if self._squares is not None:
            yield Block(slice(0, n_features), self.X, self._squares)
            return
        width = max(64, _BLOCK_BYTES // max(1, n_rows * self.dtype.itemsize))
        for start in range(0, n_features, width):
            features = slice(start, min(start + width, n_features))
            yield Block(features, self.X[:, features], None)


class Block:
    """Some features of X, their products and the products of their squares."""

    def __init__(self, features: slice, X: Any, squares: Any) -> None:
        self.features, self._X, self._stored_squares = features, X, squares

    @property
    def _squares(self) -> Any:
        if self._stored_squares is None:
            self._stored_squares = np.square(self._X)
        return self._stored_squares

    def forward(self, w: Array) -> Array:
        """X w, (M, B) float64."""
        return np.asarray(self._X @ w, dtype=float)

    def forward_squares(self, tau_w: Array) -> Array:
        """S tau_w with S = X squared element by element, (M, B) float64."""
        return np.asarray(self._squares @ tau_w, dtype=float)

    def adjoint(self, s: Array) -> Array:
        """X' s, (n, B) in Fortran order: s' X on C-ordered X is several times faster than X' s."""
        return _adjoint(self._X, s)

    def adjoint_squares(self, tau_s: Array) -> Array:
        """S' tau_s, (n, B)."""
        return _adjoint(self._squares, tau_s)


def _adjoint(X: Any, s: Array) -> Array:
    if sparse.issparse(X):
        return np.asfortranarray(X.T @ s)
    return (np.ascontiguousarray(s.T) @ X).T


def _checked_matrix(X: Any) -> Any:
    if sparse.issparse(X):
        X = X.tocsr() if X.format not in ("csr", "csc") else X
        values = X.data
    else:
        X = values = np.ascontiguousarray(X)
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"X must be a non-empty matrix of samples x features, got shape {X.shape}.")
    if X.dtype not in (np.float32, np.float64):
        if not np.issubdtype(X.dtype, np.number) and X.dtype != bool or np.iscomplexobj(values):
            raise ValueError(f"X must hold real numbers, got dtype {X.dtype}. Convert it to float first.")
        X = X.astype(np.float64)
    if not np.isfinite(values).all():
        bad = int(np.size(values) - np.count_nonzero(np.isfinite(values)))
        raise ValueError(f"X must be finite, got {bad} NaN or infinite entries. Impute or drop them first.")
    return X


def _checked_train(train: Any, n_rows: int) -> NDArray:
    if train is None:
        return np.ones((n_rows, 1), dtype=bool)
    train = np.asarray(train)
    if train.dtype != bool:
        raise ValueError(f"train must be boolean (True = training row), got dtype {train.dtype}.")
    if train.ndim == 1:
        train = train[:, None]
    if train.ndim != 2 or train.shape[0] != n_rows or train.shape[1] == 0:
        raise ValueError(
            f"train must have one row per row of X and at least one column: expected ({n_rows}, B), "
            f"got {train.shape}."
        )
    empty = np.flatnonzero(~train.any(axis=0))
    if empty.size:
        raise ValueError(
            f"Every column of train needs training rows, but columns {empty.tolist()} have none. Drop them."
        )
    return train
