"""Some features of X with their products; the squared matrix of dense X is never stored as a whole."""

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

    def forward_pair(self, w: Array, tau_w: Array) -> tuple[Array, Array]:
        """X w and S tau_w."""
        ...

    def adjoint_pair(self, s: Array, tau_s: Array) -> tuple[Array, Array]:
        """X' s and S' tau_s."""
        ...


class Scratch(local):
    """Memory that each thread uses again and again: fresh memory costs more than the work done in it."""

    def __init__(self) -> None:
        self._buffers: dict[Any, NDArray] = {}

    def array(self, shape: tuple[int, ...], dtype: Any, name: Any) -> NDArray:
        """An array with anything in it; one name, one piece of memory."""
        size = int(np.prod(shape))
        buffer = self._buffers.get(name)
        if buffer is None or buffer.size < size or buffer.dtype != dtype:
            buffer = self._buffers[name] = np.empty(size, dtype=dtype)
        return buffer[:size].reshape(shape)

    def like(self, values: NDArray, name: Any) -> NDArray:
        """An array of the same shape and precision."""
        return self.array(values.shape, values.dtype, name)


class DenseBlock:
    """Some features of a C-ordered X. With row groups, rows outside a column's group get zeros.

    ``center`` is subtracted before squaring, and ``subtracted`` from X itself: a center that slopes and
    scores take care of (see ``Design``) costs no copy of the features.
    """

    def __init__(
        self,
        features: slice,
        X: Array,
        center: Array | None,
        subtracted: bool,
        groups: list[RowGroup] | None,
        scratch: "Scratch | None" = None,
    ) -> None:
        self.features, self._raw, self._groups = features, X, groups
        self._subtracted = center if subtracted else None
        self._squared_around = None if subtracted else center
        self._memory = scratch or Scratch()

    @cached_property
    def _parts(self) -> list[Array]:
        """The features, around their center if it is subtracted; one array per group of rows."""
        X = self._raw
        if self._subtracted is not None:
            X = np.subtract(X, self._subtracted, out=self._memory.like(X, "around"))
        if self._groups is None:
            return [X]
        return [
            X.take(rows, axis=0, out=self._memory.array((rows.size, X.shape[1]), X.dtype, ("rows", number)))
            for number, (rows, _) in enumerate(self._groups)
        ]

    @cached_property
    def _squares(self) -> list[Array]:
        squares = []
        for number, part in enumerate(self._parts):
            out = self._memory.like(part, ("squares", number))
            around = self._squared_around
            squares.append(np.square(part if around is None else np.subtract(part, around, out=out), out=out))
        return squares

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

    def forward_pair(self, w: Array, tau_w: Array) -> tuple[Array, Array]:
        """X w and S tau_w."""
        return self.forward(w), self.forward_squares(tau_w)

    def adjoint_pair(self, s: Array, tau_s: Array) -> tuple[Array, Array]:
        """X' s and S' tau_s."""
        return self.adjoint(s), self.adjoint_squares(tau_s)

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
        out = np.zeros((s.shape[1], self._raw.shape[1]), dtype=self._raw.dtype)
        for (rows, columns), part in zip(self._groups, parts, strict=True):
            out[columns] += np.ascontiguousarray(s[np.ix_(rows, columns)].T) @ part
        return out.T
