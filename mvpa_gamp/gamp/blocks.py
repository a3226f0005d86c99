"""Some features of X with their products; the squared matrix of dense X is never stored as a whole."""

import math
from functools import cached_property
from threading import local
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from .moments import Array


class RowGroup(NamedTuple):
    """Rows that about the same columns train on."""

    rows: NDArray  # (m,) ascending row numbers
    columns: NDArray  # (b,) ascending numbers of all columns that train on any of the rows


# A row joins a group when their columns agree in at least this share of the larger set.
_SHARED = 0.75
# Products row group by row group pay when they skip at least this share of all (row, column) pairs.
_WORTH = 0.3
_MOST_GROUPS = 64  # more would be too small for fast products
_LEAST_SHARE = 0.01  # of the sizes of precisions, that must be left of their sum for a mean to be known
_NO_MEAN = 1e6  # times those sizes


def row_groups(train: NDArray) -> list[RowGroup] | None:
    """The rows of ``train`` (M, B) by the columns that use them, or None when all use about all rows.

    Rows of one category are used by the comparisons it takes part in: the products of 28 comparisons of 8
    categories, group by group, cost a quarter. Every row is in one group at most.
    """
    groups: list[tuple[NDArray, list[int]]] = []
    for row, columns in enumerate(train):
        size = np.count_nonzero(columns)
        for used, members in groups:
            if np.count_nonzero(used & columns) >= _SHARED * max(size, np.count_nonzero(used)):
                used |= columns
                members.append(row)
                break
        else:
            if size:
                groups.append((columns.copy(), [row]))
        if len(groups) > _MOST_GROUPS:
            return None
    work = sum(np.count_nonzero(used) * len(members) for used, members in groups)
    if work > (1 - _WORTH) * train.size:
        return None
    return [RowGroup(np.array(members), np.flatnonzero(used)) for used, members in groups]


class Block(Protocol):
    """Some features of X, their products and those of their squares S; results are (M, B) or (n, B)."""

    features: slice

    def forward(self, w: Array) -> Array:
        """X w, float64."""

    def adjoint(self, s: Array) -> Array:
        """X' s, in the precision of X and Fortran order."""

    def forward_pair(self, w: Array, tau_w: Array) -> tuple[Array, Array]:
        """X w and S tau_w, float64, as new arrays; w and tau_w need not have the same columns."""

    def adjoint_pair(self, s: Array, tau_s: Array) -> tuple[Array, Array]:
        """X' s and S' tau_s, like ``adjoint``, as new arrays; s and tau_s need not have the same columns."""


class Scratch(local):
    """Memory that each thread uses again and again: fresh memory costs more than the work done in it."""

    def __init__(self) -> None:
        self._buffers: dict[Any, NDArray] = {}

    def array(self, shape: tuple[int, ...], dtype: Any, name: Any) -> NDArray:
        """An array with anything in it; one name, one piece of memory."""
        size = math.prod(shape)
        buffer = self._buffers.get(name)
        if buffer is None or buffer.size < size or buffer.dtype != dtype:
            buffer = self._buffers[name] = np.empty(size, dtype=dtype)
        return buffer[:size].reshape(shape)

    def like(self, values: NDArray, name: Any) -> NDArray:
        """An array of the same shape and precision."""
        return self.array(values.shape, values.dtype, name)


class DenseBlock:
    """Some features of a C-ordered X, less ``center`` if there is one.

    With row groups, rows outside a column's group get zeros.
    """

    def __init__(
        self,
        features: slice,
        X: Array,
        center: Array | None,
        groups: list[RowGroup] | None,
        scratch: "Scratch | None" = None,
    ) -> None:
        self.features, self._raw, self._groups = features, X, groups
        self._center = center
        self._memory = scratch or Scratch()
        self._n_columns = 0 if groups is None else 1 + max(int(columns.max()) for _, columns in groups)

    @cached_property
    def _parts(self) -> list[Array]:
        """The features around their center; one array per group of rows."""
        X = self._raw
        if self._center is not None:
            X = np.subtract(X, self._center, out=self._memory.like(X, "around"))
        if self._groups is None:
            return [X]
        return [
            X.take(rows, axis=0, out=self._memory.array((rows.size, X.shape[1]), X.dtype, ("rows", number)))
            for number, (rows, _) in enumerate(self._groups)
        ]

    @cached_property
    def _squares(self) -> list[Array]:
        return [
            np.square(part, out=self._memory.like(part, ("squares", number)))
            for number, part in enumerate(self._parts)
        ]

    def forward(self, w: Array) -> Array:
        """X w, float64."""
        return self._forward(self._parts, w)

    def adjoint(self, s: Array) -> Array:
        """X' s, in Fortran order."""
        return self._adjoint(self._parts, s)

    def forward_pair(self, w: Array, tau_w: Array) -> tuple[Array, Array]:
        """X w and S tau_w; w may hold several sets of columns side by side."""
        return self.forward(w), self._forward(self._squares, tau_w)

    def adjoint_pair(self, s: Array, tau_s: Array) -> tuple[Array, Array]:
        """X' s and S' tau_s; s may hold several sets of columns side by side."""
        return self.adjoint(s), self._adjoint(self._squares, tau_s)

    def _forward(self, parts: list[Array], w: Array) -> Array:
        if self._groups is None:
            return np.asarray(parts[0] @ w, dtype=float)
        out = np.zeros((self._raw.shape[0], w.shape[1]))
        for (rows, columns), part in zip(self._groups, parts, strict=True):
            columns = self._in_every_set(columns, w.shape[1])
            out[np.ix_(rows, columns)] = part @ w[:, columns]
        return out

    def _in_every_set(self, columns: NDArray, n_wanted: int) -> NDArray:
        """Column numbers repeated for every set of columns that lie side by side."""
        return (np.arange(0, n_wanted, self._n_columns)[:, None] + columns).ravel()

    def _adjoint(self, parts: list[Array], s: Array) -> Array:
        # s' X on C-ordered X is several times faster than X' s.
        if self._groups is None:
            return (np.ascontiguousarray(s.T) @ parts[0]).T
        out = np.zeros((s.shape[1], self._raw.shape[1]), dtype=self._raw.dtype)
        for (rows, columns), part in zip(self._groups, parts, strict=True):
            columns = self._in_every_set(columns, s.shape[1])
            out[columns] += np.ascontiguousarray(s[np.ix_(rows, columns)].T) @ part
        return out.T


def total_precision(tau_s: Array) -> Array:
    """1' tau_s (B,) by which means are divided.

    Robust rows can be negative. Where they leave next to nothing of the sum, there is no mean to take away:
    the total is then so large that means are zero.
    """
    total, size = tau_s.sum(axis=0), np.abs(tau_s).sum(axis=0)
    return np.maximum(
        np.where(total > _LEAST_SHARE * size, total, _NO_MEAN * size), np.finfo(tau_s.dtype).tiny
    )


class OwnMeanBlock:
    """Another block, its squares taken around means (n, B) of every column's own.

    ``adjoint_pair`` chooses the means that tau_s weighs: what is left of S' tau_s is then the information
    about a weight beside a free intercept. Squares are the same for X plus any constant. The way forward uses
    up the means, and with them the memory of X' s, so that a visit of a block makes each array once.
    """

    def __init__(self, block: Block) -> None:
        self.features, self.block = block.features, block
        self.means: Array | None = None
        self._pair: Array | None = None  # (n, 2 B) X' s and the means

    def center_on(self, weights: Array) -> None:
        """Choose the means of rows weighted by ``weights`` (M, B), each column of sum one."""
        self.means = self.block.adjoint(weights)

    def forward(self, w: Array) -> Array:
        """X w of the block."""
        return self.block.forward(w)

    def adjoint(self, s: Array) -> Array:
        """X' s of the block."""
        return self.block.adjoint(s)

    def forward_pair(self, w: Array, tau_w: Array) -> tuple[Array, Array]:
        """X w, and S tau_w = X^2 tau_w - 2 X (m tau_w) + 1 (m^2)' tau_w, never negative."""
        means, self.means = self.means, None
        assert means is not None
        constant = np.einsum("nb,nb->b", np.square(means), tau_w, dtype=float)
        side_by_side, self._pair = self._pair, None
        if side_by_side is None or side_by_side.shape[1] != w.shape[1] + tau_w.shape[1]:
            side_by_side = np.empty((len(w), w.shape[1] + tau_w.shape[1]), dtype=tau_w.dtype, order="F")
        np.multiply(means, tau_w, out=side_by_side[:, w.shape[1] :])
        side_by_side[:, : w.shape[1]] = w
        plain, squares = self.block.forward_pair(side_by_side, tau_w)
        squares -= 2 * plain[:, w.shape[1] :]
        squares += constant
        return plain[:, : w.shape[1]], np.maximum(squares, 0.0, out=squares)

    def adjoint_pair(self, s: Array, tau_s: Array) -> tuple[Array, Array]:
        """X' s, and S' tau_s = (X^2)' tau_s - m^2 1' tau_s with m = X' tau_s / 1' tau_s, never negative.

        X' s is valid until the next ``forward_pair``.
        """
        plain, squares = self.block.adjoint_pair(np.hstack([s, tau_s]), tau_s)
        first, sums = plain[:, : s.shape[1]], plain[:, s.shape[1] :]
        self._pair = plain
        total = total_precision(tau_s)
        self.means = np.divide(sums, total, out=sums)
        explained = np.square(self.means)
        explained *= total
        squares -= explained
        return first, np.maximum(squares, 0, out=squares)
