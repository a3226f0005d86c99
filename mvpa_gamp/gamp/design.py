"""X and its training rows; whoever multiplies by X or by its squares asks for the blocks of a ``Design``.

Features are visited in blocks (blocks.py, dense.py, sparse.py), so that one block of X
serves the adjoint products, the prior step and the forward products while it is in cache, and the squared
matrix is never stored for dense X.
"""

import math
from collections.abc import Callable, Iterator
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..parallel import block_threads
from . import compiled
from .blocks import Block, DenseBlock, OwnMeanBlock, Scratch, row_groups
from .dense import ColumnSets, CompiledMeanBlock, Packed, column_sets, one_set
from .moments import Array
from .neighbours import Neighbours
from .scalar_steps import checked_counts, counted
from .sparse import CenteredSparseBlock, SparseBlock

# Bytes of X per block: about a second-level cache, so that a block is read from memory once.
_BLOCK_BYTES = 1 << 20
# Features per block of compiled products, which find their own way through the caches: large enough for
# Python's part in a block not to count, and enough blocks for some cores.
_COMPILED_WIDTHS = (512, 4096)
_COMPILED_BLOCKS = 16
# A mean so many times larger than the spread around it would eat the last digits of products with plain X.
_LARGE_MEAN = 100.0


class Scores(NamedTuple):
    """X w with its variances S tau_w, around the center, and what to add to an intercept for X as it is."""

    z: Array  # (M, B)
    tau_z: Array  # (M, B)
    plain_intercept_offset: Array  # (B,)


class Design:
    """X (M, N), dense or scipy.sparse, and the rows each of B columns is trained on.

    Parameters
    ----------
    X : (M, N) array or scipy.sparse matrix, float32 or float64 (anything else becomes float64).
    train : (M, B) or (M,) bool, True where a row's label may be used; None means all rows, one column.
    center : mean removal without touching X, because GAMP expects features around zero. (N,) is subtracted
        from every row; "train" subtracts from each column the mean of its own training rows; None nothing.
        Sparse X stays sparse; a center then costs two more products.
    connectivity : (N, N) adjacency of the features, scipy.sparse, such as scikit-learn's ``grid_to_graph``
        makes: the inclusion rate of a Bernoulli prior then follows the neighbours of each weight
        (``Neighbours``). Edges count in both directions, their weights do not. None: one rate per column.
    weights : (M,) or (M, B), how often each training row counts: a row of weight 2 is two copies of the row,
        one of weight 0 is held out. Weights off the training rows are never read. None: every row once.

    Training means need not be known: slopes that sum to zero over the training rows are not affected by
    them, the training mean is subtracted from the scores instead (the solver calls
    ``counted_and_centered`` and ``around_training_mean``), and squares are taken around means of the
    column's own training rows (``OwnMeanBlock``). So a column depends on its training rows alone.

    >>> import numpy as np
    >>> from mvpa_gamp.gamp import Design
    >>> folds = np.arange(12)[:, None] % 3 != np.arange(3)  # three columns, each without a third of the rows
    >>> Design(np.ones((12, 5)), folds).shape
    (12, 5, 3)
    """

    def __init__(
        self,
        X: Any,
        train: Any = None,
        center: Any = None,
        connectivity: Any = None,
        weights: Any = None,
    ) -> None:
        X = checked_matrix(X)
        self.X = X if sparse.issparse(X) else np.ascontiguousarray(X)
        train = _checked_train(train, self.X.shape[0])
        self.row_counts = checked_counts(weights, train)  # (M, B) how often each row counts
        self.train = train if weights is None else _with_rows(self.row_counts > 0)
        self.neighbours = (
            None if connectivity is None else Neighbours(connectivity, self.X.shape[1], self.X.dtype)
        )
        self._centers_on_training = isinstance(center, str)
        self.center = None
        if center is not None and not isinstance(center, str):
            self.center = _checked_center(center, self.X)
        self._sparse = _sparse_block(self.X, self.center)
        self._sets = self._column_sets()
        self._groups = None if self.is_sparse or self._sets else row_groups(self.train)
        self._energy = self._row_energy()
        if isinstance(center, str):
            self._remove_large_means(_common_center(center, self.X))
        if not np.isfinite(self._energy).all():
            raise ValueError(
                f"The squares of X must be finite, but some overflow {self.dtype}. Standardise the features."
            )

    def _remove_large_means(self, means: Array | None) -> None:
        """Subtract means that would eat digits; a spread that they have eaten already looks even smaller."""
        if means is None:
            return
        spread = np.sqrt(self._energy.mean() / self.X.shape[1])
        keeps_digits = np.abs(means).max() <= _LARGE_MEAN * spread < np.inf
        if not keeps_digits:
            self.center, self._sets, self._groups = means, None, row_groups(self.train)
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
        part = copy(self)
        part.train, part.row_counts = self.train[:, columns], self.row_counts[:, columns]
        part._energy = self._energy if self._energy.shape[1] == 1 else self._energy[:, columns]
        part._sets = None if self._sets is None else self._sets.take(columns)
        part._groups = None if self._groups is None else row_groups(part.train)
        return part

    def _column_sets(self) -> ColumnSets | None:
        """The columns for compiled products, where those are worth it."""
        dense = self._centers_on_training and not self.is_sparse
        worth = dense and compiled.is_worth_it(math.prod(self.shape))
        return column_sets(self.train) if worth else None

    def restrict(self, features: NDArray, dtype: Any) -> "Design":
        """A smaller X of some features in the given precision, with the same training rows; no neighbours."""
        if self.neighbours is not None:
            raise ValueError(
                "Some features of a design with connectivity lose their neighbours. Use mode='sum-product', "
                "which fits all features, or leave connectivity out."
            )
        part = copy(self)
        part.X = self.X[:, features].astype(dtype)
        part.center = None if self.center is None else self.center[features].astype(dtype)
        part._sparse = _sparse_block(part.X, part.center)
        if self._sets is not None:
            part._sets = part._column_sets()
            part._groups = None if part._sets else row_groups(part.train)
        part._energy = part._row_energy()
        return part

    def counted_and_centered(self, s: Array) -> Array:
        """Slopes (M, B), zero off the training rows, as they act on features around their training means.

        Each is that of one copy of its row, and acts as often as the row counts.
        """
        s = counted(s, self.row_counts)
        if not self._centers_on_training:
            return s
        return s - self.row_counts * (s.sum(axis=0) / self.row_counts.sum(axis=0))

    def around_training_mean(self, z: Array) -> Array:
        """Scores (M, B) of plain X as those of X around its training means."""
        return z - self._training_mean(z) if self._centers_on_training else z

    def _training_mean(self, z: Array) -> Array:
        total = counted(np.where(self.train, z, 0.0), self.row_counts).sum(axis=0)
        return total / self.row_counts.sum(axis=0)

    def mean_row_energy(self) -> Array:
        """Mean squared norm of the training rows, (B,)."""
        return (self.row_energy() * self.row_counts).sum(axis=0) / self.row_counts.sum(axis=0)

    def scores(self, w: Array, tau_w: Array) -> Scores:
        """Scores of all rows, held-out ones included."""

        def visit(block: Block) -> tuple[Array, Array]:
            self.center_squares(block)
            return block.forward_pair(w[block.features], tau_w[block.features])

        z, tau_z = self._summed(visit, w.shape[1])
        offset = -self._training_mean(z) if self._centers_on_training else np.zeros(w.shape[1])
        z += offset
        if self.center is not None:
            offset = offset - (self.center[:, None] * w).sum(axis=0, dtype=float)
        return Scores(z, tau_z, offset)

    def _summed(self, visit: Callable[[Block], tuple[Array, Any]], n_columns: int) -> tuple[Array, Array]:
        first, second = (np.zeros((self.shape[0], n_columns)) for _ in range(2))
        with block_threads(self.n_blocks) as over_blocks:
            for part, other in over_blocks(visit, self.blocks(all_rows=True)):
                first += part
                second += other
        return first, second

    def center_squares(self, block: Block) -> None:
        """Let a block's squares be around the training means, where every column has its own."""
        if isinstance(block, OwnMeanBlock):
            block.center_on((self.row_counts / self.row_counts.sum(axis=0)).astype(self.dtype))

    def row_energy(self) -> Array:
        """Squared norm of every row of X, (M, 1), or (M, B) where every column has its own means."""
        return self._energy

    def _row_energy(self) -> Array:
        n_columns = self.shape[2] if self._centers_on_training else 1
        ones = np.ones((self.shape[1], n_columns), dtype=self.dtype)

        def visit(block: Block) -> tuple[Array, float]:
            self.center_squares(block)
            with np.errstate(over="ignore", invalid="ignore"):
                part = ones[block.features]
                return block.forward_pair(part[:, :0], part)[1], 0.0

        with np.errstate(invalid="ignore"):
            return self._summed(visit, n_columns)[0]

    @property
    def _is_compiled(self) -> bool:
        return self._sets is not None

    @property
    def _block_width(self) -> int:
        if self._is_compiled:
            least, most = _COMPILED_WIDTHS
            return min(max(-(-self.X.shape[1] // _COMPILED_BLOCKS), least), most)
        n_bytes = _BLOCK_BYTES if self._groups is None else 3 * _BLOCK_BYTES  # products of parts are smaller
        return max(64, n_bytes // (self.X.shape[0] * self.dtype.itemsize))

    @property
    def n_blocks(self) -> int:
        """How many blocks ``blocks`` yields."""
        return 1 if self.is_sparse else -(-self.X.shape[1] // self._block_width)

    def blocks(self, all_rows: bool = False, scratch: Scratch | None = None) -> Iterator[Block]:
        """X in blocks of features, one block when sparse; training means are not removed here.

        Products may skip the rows that a column does not train on, unless ``all_rows``. With ``scratch`` a
        block is valid until the same thread multiplies by the next one.
        """
        if self._is_compiled:
            yield from self._compiled_blocks(all_rows, scratch)
            return
        plain = self._dense_blocks(all_rows, scratch) if self._sparse is None else [self._sparse]
        for block in plain:
            yield OwnMeanBlock(block) if self._centers_on_training else block

    def _compiled_blocks(self, all_rows: bool, scratch: Scratch | None) -> Iterator[Block]:
        assert self._sets is not None
        packed = Packed(one_set(self.shape[0], self.shape[2]) if all_rows else self._sets)
        for block in self._dense_blocks(all_rows, scratch):
            yield CompiledMeanBlock(block, self.X, packed, scratch)

    def _dense_blocks(self, all_rows: bool, scratch: Scratch | None) -> Iterator[DenseBlock]:
        n_features = self.X.shape[1]
        groups = None if all_rows else self._groups
        width = self._block_width
        for start in range(0, n_features, width):
            features = slice(start, min(start + width, n_features))
            center = None if self.center is None else self.center[features]
            yield DenseBlock(features, self.X[:, features], center, groups, scratch)


def _sparse_block(X: Any, center: Array | None) -> Block | None:
    """All of a sparse X, None if it is dense."""
    if not sparse.issparse(X):
        return None
    return SparseBlock(X) if center is None else CenteredSparseBlock(SparseBlock(X), center[:, None])


def _common_center(center: str, X: Any) -> Array | None:
    if center != "train":
        raise ValueError(
            f"center must be 'train', None or one number per feature, got {center!r}. 'train' subtracts the "
            "means of the training rows."
        )
    return None if sparse.issparse(X) else X.mean(axis=0, dtype=float).astype(X.dtype)


def _checked_center(center: Any, X: Any) -> Array:
    if np.iscomplexobj(center):
        raise ValueError("center must hold real numbers, got complex ones. Give the feature means.")
    center = np.asarray(center, dtype=X.dtype)
    if center.shape != (X.shape[1],) or not np.isfinite(center).all():
        raise ValueError(
            f"center must hold {X.shape[1]} finite numbers, one per feature, got shape {center.shape}. Give "
            "the feature means."
        )
    return center


def checked_matrix(X: Any) -> Any:
    """X (M, N) in float32 or float64 and finite, or a ValueError that says what to change.

    Sparse X is CSR or CSC with every entry given once.
    """
    try:
        X = X if sparse.issparse(X) else np.asarray(X)
    except ValueError as error:
        raise ValueError(
            "X must be a matrix, got rows of different length. Pass samples x features."
        ) from error
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(
            "X must be a matrix with one row per sample and one column per feature, "
            f"got shape {X.shape}. Pass samples x features."
        )
    if X.dtype.kind not in "fiub":
        raise ValueError(f"X must hold real numbers, got type {X.dtype}. Convert it to float first.")
    X = _canonical(X) if sparse.issparse(X) else X
    X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    finite = np.isfinite(X.data if sparse.issparse(X) else X)
    if not finite.all():
        raise ValueError(
            f"X must be finite, got {finite.size - np.count_nonzero(finite)} NaN or infinite values. "
            "Drop or repair those features (constant voxels turn into NaN when they are z-scored)."
        )
    return X


def _canonical(X: Any) -> Any:
    """X as CSR or CSC with every entry given once: one given in two parts is squared as their sum."""
    X = X if X.format in ("csr", "csc") else X.tocsr()
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _checked_train(train: Any, n_rows: int) -> NDArray:
    if train is None:
        return np.ones((n_rows, 1), dtype=bool)
    train = np.asarray(train)
    if train.dtype != bool:
        raise ValueError(
            f"train must be boolean (True = training row), got dtype {train.dtype}. Turn row numbers "
            "into a mask first."
        )
    if train.ndim == 1:
        train = train[:, None]
    if train.ndim != 2 or train.shape[0] != n_rows or train.shape[1] == 0:
        raise ValueError(
            f"train must have one row per row of X and at least one column: expected ({n_rows}, B), "
            f"got {train.shape}. Give one column per fit."
        )
    return _with_rows(train)


def _with_rows(train: NDArray) -> NDArray:
    """``train``, or a ValueError that names the columns without a training row."""
    empty = np.flatnonzero(~train.any(axis=0))
    if empty.size:
        raise ValueError(
            f"Every column of train needs training rows, but columns {empty.tolist()} have none. Drop them."
        )
    return train
