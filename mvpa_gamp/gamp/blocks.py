"""Some features of X with their products; the squared matrix of dense X is never stored as a whole."""

from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from .moments import Array


class RowGroup(NamedTuple):
    """Columns that train on about the same rows."""

    rows: NDArray  # (m,) ascending row numbers that any of the columns trains on
    columns: NDArray  # (b,) ascending column numbers


# A column joins a group when at least this share of its rows is in the group already.
_SHARED = 0.75
# Products row group by row group pay when they skip at least this share of all (row, column) pairs.
_WORTH = 0.3


def row_groups(train: NDArray) -> list[RowGroup] | None:
    """Groups of the columns of ``train`` (M, B) by the rows they use, or None when all use about all rows.

    The folds of one comparison share most rows; comparisons of different categories do not. Group by
    group, the products of 28 comparisons of 8 categories cost a quarter.
    """
    groups: list[tuple[NDArray, list[int]]] = []
    for column, rows in enumerate(train.T):
        for used, members in groups:
            if np.count_nonzero(used & rows) >= _SHARED * np.count_nonzero(rows):
                used |= rows
                members.append(column)
                break
        else:
            groups.append((rows.copy(), [column]))
    work = sum(np.count_nonzero(used) * len(members) for used, members in groups)
    if work > (1 - _WORTH) * train.size:
        return None
    return [RowGroup(np.flatnonzero(used), np.array(members)) for used, members in groups]


class Block(Protocol):
    """Some features of X, their products and those of their squares S; results are (M, B) or (n, B)."""

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


class OffsetBlock:
    """Another block minus each column's own feature means (n, B); squares stay those of the block.

    A column's means differ little from the common center, and variances do not need to be that exact.
    """

    def __init__(self, block: Block, means: Array) -> None:
        self.features, self.block, self.means = block.features, block, means

    def forward(self, w: Array) -> Array:
        """X w minus the product of means and weights."""
        return self.block.forward(w) - (self.means * w).sum(axis=0, dtype=float)

    def forward_squares(self, tau_w: Array) -> Array:
        """S tau_w of the block."""
        return self.block.forward_squares(tau_w)

    def adjoint(self, s: Array) -> Array:
        """X' s minus the means times the sum of s."""
        return self.block.adjoint(s) - self.means * s.sum(axis=0)

    def adjoint_squares(self, tau_s: Array) -> Array:
        """S' tau_s of the block."""
        return self.block.adjoint_squares(tau_s)


class DenseBlock:
    """Some features of a C-ordered X. With row groups, rows outside a column's group get zeros."""

    def __init__(
        self, features: slice, X: Array, center: Array | None, groups: list[RowGroup] | None
    ) -> None:
        self.features, self._raw, self._center, self._groups = features, X, center, groups

    @cached_property
    def _parts(self) -> list[Array]:
        """The features around their center, one array per group of rows."""
        X = self._raw if self._center is None else self._raw - self._center
        return [X] if self._groups is None else [X[rows] for rows, _ in self._groups]

    @cached_property
    def _squares(self) -> list[Array]:
        return [np.square(part) for part in self._parts]

    def forward(self, w: Array) -> Array:
        """X w, float64."""
        return self._forward(self._parts, w)

    def forward_squares(self, tau_w: Array) -> Array:
        """S tau_w, float64."""
        return self._forward(self._squares, tau_w)

    def adjoint(self, s: Array) -> Array:
        """X' s, in Fortran order."""
        return self._adjoint(self._parts, s)

    def adjoint_squares(self, tau_s: Array) -> Array:
        """S' tau_s, in Fortran order."""
        return self._adjoint(self._squares, tau_s)

    def _forward(self, parts: list[Array], w: Array) -> Array:
        if self._groups is None:
            return np.asarray(parts[0] @ w, dtype=float)
        out = np.zeros((self._raw.shape[0], w.shape[1]))
        for (rows, columns), part in zip(self._groups, parts, strict=True):
            out[np.ix_(rows, columns)] = part @ w[:, columns]
        return out

    def _adjoint(self, parts: list[Array], s: Array) -> Array:
        # s' X on C-ordered X is several times faster than X' s.
        if self._groups is None:
            return (np.ascontiguousarray(s.T) @ parts[0]).T
        out = np.empty((s.shape[1], self._raw.shape[1]), dtype=self._raw.dtype)
        for (rows, columns), part in zip(self._groups, parts, strict=True):
            out[columns] = np.ascontiguousarray(s[np.ix_(rows, columns)].T) @ part
        return out.T
