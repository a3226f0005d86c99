"""X and its training rows: the only place that multiplies by X or by its squares.

Features are visited in blocks, so that one block of X serves the adjoint products, the prior step
and the forward products while it is in cache, and the squared matrix is never stored for dense X.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .blocks import Block, CenteredSparseBlock, DenseBlock, OffsetBlock, SparseBlock, row_groups
from .moments import Array

# Bytes of X per block: about one second-level cache, so that the block is read from memory once.
_BLOCK_BYTES = 1 << 20


class Design:
    """X (M, N), dense or scipy.sparse, and the rows each of B columns is trained on.

    Parameters
    ----------
    X : (M, N) array or scipy.sparse matrix, float32 or float64 (anything else becomes float64).
    train : (M, B) or (M,) bool, True where a row's label may be used; None means all rows, one column.
    center : mean removal without touching X, because GAMP expects features around zero. (N,) is subtracted
        from every row; "train" subtracts from each column the mean of its own training rows; None nothing.
        Sparse X stays sparse; an (N,) center then costs two more products, "train" none.
    """

    def __init__(self, X: Any, train: Any = None, center: Any = None) -> None:
        self.X = _checked_matrix(X)
        self.train = _checked_train(train, self.X.shape[0])
        self.means: Array | None = None
        if isinstance(center, str):
            self.center = _common_center(center, self.X)
        else:
            self.center = None if center is None else _checked_center(center, self.X)
        self._squares = self.X.power(2) if self.is_sparse else None
        self._groups = None if self.is_sparse else row_groups(self.train)
        self._energy = self._row_energy()
        if isinstance(center, str):
            self.means = self._training_means()

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
        part.means = None if self.means is None else self.means[:, columns]
        part._groups = None if self._groups is None else row_groups(part.train)
        return part

    def restrict(self, features: NDArray, dtype: Any) -> "Design":
        """A smaller X of some features in the given precision, with the same training rows."""
        part = object.__new__(Design)
        part.X, part.train = self.X[:, features].astype(dtype), self.train
        part.center = None if self.center is None else self.center[features].astype(dtype)
        part.means = None if self.means is None else np.asfortranarray(self.means[features], dtype=dtype)
        part._squares = None if self._squares is None else part.X.power(2)
        part._groups = self._groups
        part._energy = part._row_energy()
        return part

    def scores(self, w: Array, tau_w: Array) -> tuple[Array, Array]:
        """X w and S tau_w of all rows, (M, B): scores and their variances, held-out rows included."""
        z, tau_z = (np.zeros((self.shape[0], w.shape[1])) for _ in range(2))
        for block in self.blocks(all_rows=True):
            z += block.forward(w[block.features])
            tau_z += block.forward_squares(tau_w[block.features])
        return z, tau_z

    def plain_intercept(self, w: Array, intercept: Array) -> Array:
        """The intercept that goes with X itself when ``intercept`` goes with the centred X, (B,)."""
        for center in (self.center, self.means):
            if center is not None:
                around = center if center.ndim == 2 else center[:, None]
                intercept = intercept - (around * w).sum(axis=0, dtype=float)
        return intercept

    def _training_means(self) -> Array:
        """What remains of each column's training mean after the common center, (N, B)."""
        weights = (self.train / self.train.sum(axis=0)).astype(self.dtype)
        means = np.empty((self.shape[1], self.shape[2]), dtype=self.dtype, order="F")
        for block in self.blocks():
            means[block.features] = block.adjoint(weights)
        return means

    def row_energy(self) -> Array:
        """Squared norm of every row of X, (M, 1)."""
        return self._energy

    def _row_energy(self) -> Array:
        ones = np.ones((self.shape[1], 1), dtype=self.dtype)
        energy = np.zeros((self.shape[0], 1))
        for block in self.blocks(all_rows=True):
            energy += block.forward_squares(ones[block.features])
        return energy

    @property
    def _block_width(self) -> int:
        n_rows = self.X.shape[0] if self._groups is None else max(rows.size for rows, _ in self._groups)
        return max(64, _BLOCK_BYTES // (n_rows * self.dtype.itemsize))

    @property
    def n_blocks(self) -> int:
        """How many blocks ``blocks`` yields."""
        return 1 if self.is_sparse else -(-self.X.shape[1] // self._block_width)

    def blocks(self, all_rows: bool = False) -> Iterator[Block]:
        """X in blocks of features, one block when sparse.

        Products may skip the rows that a column does not train on, unless ``all_rows``.
        """
        for block in self._plain_blocks(all_rows):
            yield block if self.means is None else OffsetBlock(block, self.means[block.features])

    def _plain_blocks(self, all_rows: bool) -> Iterator[Block]:
        n_features = self.X.shape[1]
        if self.is_sparse:
            everything = slice(0, n_features)
            plain = SparseBlock(everything, self.X, self._squares)
            yield plain if self.center is None else CenteredSparseBlock(plain, self.center[:, None])
            return
        for start in range(0, n_features, self._block_width):
            features = slice(start, min(start + self._block_width, n_features))
            center = None if self.center is None else self.center[features]
            yield DenseBlock(features, self.X[:, features], center, None if all_rows else self._groups)


def _common_center(center: str, X: Any) -> Array | None:
    if center != "train":
        raise ValueError(f"center must be 'train', None or one number per feature, got {center!r}.")
    return None if sparse.issparse(X) else X.mean(axis=0, dtype=float).astype(X.dtype)


def _checked_center(center: Any, X: Any) -> Array:
    if np.iscomplexobj(center):
        raise ValueError("center must hold real numbers, got complex ones. Give the feature means.")
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
        if (not np.issubdtype(X.dtype, np.number) and X.dtype != bool) or np.iscomplexobj(values):
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
