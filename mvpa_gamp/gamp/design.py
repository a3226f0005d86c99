"""X and its training rows: the only place that multiplies by X or by its squares.

Features are visited in blocks, so that one block of X serves the adjoint products, the prior step
and the forward products while it is in cache, and the squared matrix is never stored for dense X.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Protocol

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
    center : (N,) subtracted from every row without touching X (mean removal: GAMP expects features
        around zero); None subtracts nothing. Sparse X stays sparse, at the price of two more products.
    """

    def __init__(self, X: Any, train: Any = None, center: Any = None) -> None:
        self.X = _checked_matrix(X)
        self.train = _checked_train(train, self.X.shape[0])
        self.center = None if center is None else _checked_center(center, self.X)
        self._squares = self.X.power(2) if self.is_sparse else None
        self._energy = self._row_energy()

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
        part.X, part._squares, part.center = self.X, self._squares, self.center
        part.train, part._energy = self.train[:, columns], self._energy
        return part

    def restrict(self, features: NDArray, dtype: Any) -> "Design":
        """A smaller X of some features in the given precision, with the same training rows."""
        part = object.__new__(Design)
        part.X, part.train = self.X[:, features].astype(dtype), self.train
        part.center = None if self.center is None else self.center[features].astype(dtype)
        part._squares = None if self._squares is None else part.X.power(2)
        part._energy = part._row_energy()
        return part

    def score_variance(self, tau_w: Array) -> Array:
        """S tau_w of one weight vector, (M,): the variance of every row's score."""
        total = np.zeros((self.shape[0], 1))
        for block in self.blocks():
            total += block.forward_squares(tau_w[block.features, None].astype(self.dtype))
        return total[:, 0]

    def row_energy(self) -> Array:
        """Squared norm of every row of X, (M, 1)."""
        return self._energy

    def _row_energy(self) -> Array:
        if self._squares is not None:
            energy = np.asarray(self._squares.sum(axis=1), dtype=float).reshape(-1, 1)
        else:
            energy = np.einsum("mn,mn->m", self.X, self.X, dtype=float)[:, None]
        if self.center is None:
            return energy
        cross = np.asarray(self.X @ self.center, dtype=float)[:, None]
        return np.maximum(energy - 2 * cross + np.square(self.center, dtype=float).sum(), 0.0)

    @property
    def _block_width(self) -> int:
        return max(64, _BLOCK_BYTES // (self.X.shape[0] * self.dtype.itemsize))

    @property
    def n_blocks(self) -> int:
        """How many blocks ``blocks`` yields."""
        return 1 if self.is_sparse else -(-self.X.shape[1] // self._block_width)

    def blocks(self) -> Iterator["Block"]:
        """X in blocks of features: one block when sparse."""
        n_features = self.X.shape[1]
        if self.is_sparse:
            everything = slice(0, n_features)
            plain = SparseBlock(everything, self.X, self._squares)
            yield plain if self.center is None else CenteredSparseBlock(plain, self.center[:, None])
            return
        for start in range(0, n_features, self._block_width):
            features = slice(start, min(start + self._block_width, n_features))
            center = None if self.center is None else self.center[features]
            yield DenseBlock(features, self.X[:, features], center)


class Block(Protocol):
    """Some features of X, their products and the products of their squares S; results are (M, B) or (n, B)."""

    features: slice

    def forward(self, w: Array) -> Array:
        """X w, float64."""
        ...

    def forward_squares(self, tau_w: Array) -> Array:
        """S tau_w, float64."""
        ...

    def adjoint(self, s: Array) -> Array:
        """X' s, in the precision of X."""
        ...

    def adjoint_squares(self, tau_s: Array) -> Array:
        """S' tau_s, in the precision of X."""
        ...


class SparseBlock:
    """All features of a scipy.sparse X."""

    def __init__(self, features: slice, X: Any, squares: Any) -> None:
        self.features, self.X, self.squares = features, X, squares

    def forward(self, w: Array) -> Array:
        """X w, float64."""
        return np.asarray(self.X @ w, dtype=float)

    def forward_squares(self, tau_w: Array) -> Array:
        """S tau_w, float64."""
        return np.asarray(self.squares @ tau_w, dtype=float)

    def adjoint(self, s: Array) -> Array:
        """X' s, in the precision of X."""
        return np.asfortranarray(self.X.T @ s)

    def adjoint_squares(self, tau_s: Array) -> Array:
        """S' tau_s, in the precision of X."""
        return np.asfortranarray(self.squares.T @ tau_s)


class CenteredSparseBlock:
    """X - 1 c' without making it dense: every product of X plus a correction of rank one."""

    def __init__(self, plain: SparseBlock, center: Array) -> None:
        self.features, self.plain, self.center = plain.features, plain, center

    def forward(self, w: Array) -> Array:
        """X w - 1 c' w."""
        return self.plain.forward(w) - (self.center * w).sum(axis=0, dtype=float)

    def forward_squares(self, tau_w: Array) -> Array:
        """S tau_w - 2 X (c tau_w) + 1 (c^2)' tau_w, never negative."""
        shifted = self.center * tau_w
        constant = (self.center * shifted).sum(axis=0, dtype=float)
        return np.maximum(self.plain.forward_squares(tau_w) - 2 * self.plain.forward(shifted) + constant, 0.0)

    def adjoint(self, s: Array) -> Array:
        """X' s - c 1' s."""
        return self.plain.adjoint(s) - self.center * s.sum(axis=0)

    def adjoint_squares(self, tau_s: Array) -> Array:
        """S' tau_s - 2 c (X' tau_s) + c^2 1' tau_s, never negative."""
        cross = 2 * self.center * self.plain.adjoint(tau_s)
        constant = np.square(self.center) * tau_s.sum(axis=0)
        return np.maximum(self.plain.adjoint_squares(tau_s) - cross + constant, 0)


class DenseBlock:
    """Some features of a C-ordered X; their squares are computed once per visit and never stored for all."""

    def __init__(self, features: slice, X: Array, center: Array | None) -> None:
        self.features, self._raw, self._center = features, X, center

    @cached_property
    def X(self) -> Array:
        """The features around their center."""
        return self._raw if self._center is None else self._raw - self._center

    @cached_property
    def squares(self) -> Array:
        """X squared element by element."""
        return np.square(self.X)

    def forward(self, w: Array) -> Array:
        """X w, float64."""
        return np.asarray(self.X @ w, dtype=float)

    def forward_squares(self, tau_w: Array) -> Array:
        """S tau_w, float64."""
        return np.asarray(self.squares @ tau_w, dtype=float)

    def adjoint(self, s: Array) -> Array:
        """X' s in Fortran order: s' X on C-ordered X is several times faster than X' s."""
        return (np.ascontiguousarray(s.T) @ self.X).T

    def adjoint_squares(self, tau_s: Array) -> Array:
        """S' tau_s in Fortran order."""
        return (np.ascontiguousarray(tau_s.T) @ self.squares).T


def _checked_center(center: Any, X: Any) -> Array:
    center = np.asarray(center, dtype=X.dtype)
    if center.shape != (X.shape[1],) or not np.isfinite(center).all():
        raise ValueError(
            f"center must hold {X.shape[1]} finite numbers, one per feature, got shape {center.shape}."
        )
    return center


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
