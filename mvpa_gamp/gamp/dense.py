"""Products of some features of dense X and of their squares around own means, compiled.

What the matrix products of a BLAS do in three passes over a block is one here: X is read from the cache once
for two columns, squares stay in registers, and rows that a column does not train on are skipped. Rows come
in fours (``ColumnSets``), so that sums over them stay in registers too. Sums over features have the precision
of X within a piece and float64 over pieces. A column's numbers do not depend on its partner. Where a loop
stores, its sums have one order and one way to be contracted: whether the compiler's vector loop or its plain
one runs depends on where arrays lie in memory, and must not change a bit.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.gamp.compiled import compiler

from .blocks import DenseBlock, OwnMeanBlock, Scratch, total_precision
from .moments import Array

ROWS_AT_ONCE = 4
_PIECE = 512  # features: so much of 216 rows fits a second-level cache, and of one row a first-level one


class Kernels(NamedTuple):
    """The products of one block, there and back."""

    adjoint: Callable[..., None]
    forward: Callable[..., None]


@cache
def compiled_kernels() -> Kernels:
    """The kernels, each compiled at its first call and then kept on disk."""
    return Kernels(compiler("contract", "nsz")(_adjoint), compiler("reassoc", "contract", "nsz")(_forward))


def _adjoint(
    X: Any,
    first: int,
    rows: Any,
    row_at: Any,
    columns: Any,
    column_at: Any,
    s: Any,
    tau_s: Any,
    total: Any,
    slopes: Any,
    means: Any,
    curvature: Any,
) -> None:
    """X' s, m = X' tau_s / total and (X^2)' tau_s - m^2 total, never negative, each (B, n).

    Features are those of X (M, N) from number ``first`` on.
    ``rows``, ``row_at``, ``columns``, ``column_at`` are those of ``ColumnSets``; s and tau_s (B, R) hold the
    values of each column on the rows of its set; ``total`` (B,) is 1' tau_s.
    """
    n_features = slopes.shape[1]
    zero = X.dtype.type(0)
    # Of its own, so that the compiler sees that nothing else overlaps: three sums of two columns.
    sums = np.empty(6 * _PIECE, X.dtype)
    for at in range(0, n_features, _PIECE):
        n = min(_PIECE, n_features - at)
        low, high = first + at, first + at + n
        for g in range(row_at.size - 1):
            begin, last = row_at[g], column_at[g + 1] - 1
            for k in range(column_at[g], column_at[g + 1], 2):
                b, d = columns[k], columns[min(k + 1, last)]  # the last one may have no partner
                sums[:] = zero
                if k == last:
                    for i in range(begin, row_at[g + 1], 4):
                        x0, x1 = X[rows[i], low:high], X[rows[i + 1], low:high]
                        x2, x3 = X[rows[i + 2], low:high], X[rows[i + 3], low:high]
                        o = i - begin
                        s0, s1, s2, s3 = s[b, o], s[b, o + 1], s[b, o + 2], s[b, o + 3]
                        t0, t1, t2, t3 = tau_s[b, o], tau_s[b, o + 1], tau_s[b, o + 2], tau_s[b, o + 3]
                        for j in range(n):
                            u0, u1, u2, u3 = x0[j], x1[j], x2[j], x3[j]
                            sums[j] = (((sums[j] + s0 * u0) + s1 * u1) + s2 * u2) + s3 * u3
                            sums[2 * _PIECE + j] = (
                                ((sums[2 * _PIECE + j] + t0 * u0) + t1 * u1) + t2 * u2
                            ) + t3 * u3
                            u0, u1, u2, u3 = u0 * u0, u1 * u1, u2 * u2, u3 * u3
                            sums[4 * _PIECE + j] = (
                                ((sums[4 * _PIECE + j] + t0 * u0) + t1 * u1) + t2 * u2
                            ) + t3 * u3
                else:
                    for i in range(begin, row_at[g + 1], 4):
                        x0, x1 = X[rows[i], low:high], X[rows[i + 1], low:high]
                        x2, x3 = X[rows[i + 2], low:high], X[rows[i + 3], low:high]
                        o = i - begin
                        s0, s1, s2, s3 = s[b, o], s[b, o + 1], s[b, o + 2], s[b, o + 3]
                        t0, t1, t2, t3 = tau_s[b, o], tau_s[b, o + 1], tau_s[b, o + 2], tau_s[b, o + 3]
                        c0, c1, c2, c3 = s[d, o], s[d, o + 1], s[d, o + 2], s[d, o + 3]
                        e0, e1, e2, e3 = tau_s[d, o], tau_s[d, o + 1], tau_s[d, o + 2], tau_s[d, o + 3]
                        for j in range(n):
                            u0, u1, u2, u3 = x0[j], x1[j], x2[j], x3[j]
                            sums[j] = (((sums[j] + s0 * u0) + s1 * u1) + s2 * u2) + s3 * u3
                            sums[_PIECE + j] = (((sums[_PIECE + j] + c0 * u0) + c1 * u1) + c2 * u2) + c3 * u3
                            sums[2 * _PIECE + j] = (
                                ((sums[2 * _PIECE + j] + t0 * u0) + t1 * u1) + t2 * u2
                            ) + t3 * u3
                            sums[3 * _PIECE + j] = (
                                ((sums[3 * _PIECE + j] + e0 * u0) + e1 * u1) + e2 * u2
                            ) + e3 * u3
                            u0, u1, u2, u3 = u0 * u0, u1 * u1, u2 * u2, u3 * u3
                            sums[4 * _PIECE + j] = (
                                ((sums[4 * _PIECE + j] + t0 * u0) + t1 * u1) + t2 * u2
                            ) + t3 * u3
                            sums[5 * _PIECE + j] = (
                                ((sums[5 * _PIECE + j] + e0 * u0) + e1 * u1) + e2 * u2
                            ) + e3 * u3
                for j in range(n):
                    m, q = sums[2 * _PIECE + j] / total[b], sums[4 * _PIECE + j]
                    slopes[b, at + j] = sums[j]
                    means[b, at + j] = m
                    curvature[b, at + j] = max(q - m * (m * total[b]), zero)
                if k == last:
                    continue
                for j in range(n):
                    m, q = sums[3 * _PIECE + j] / total[d], sums[5 * _PIECE + j]
                    slopes[d, at + j] = sums[_PIECE + j]
                    means[d, at + j] = m
                    curvature[d, at + j] = max(q - m * (m * total[d]), zero)


def _forward(
    X: Any,
    first: int,
    rows: Any,
    row_at: Any,
    columns: Any,
    column_at: Any,
    w: Any,
    tau_w: Any,
    means: Any,
    z: Any,
    tau_z: Any,
) -> None:
    """X w and X^2 tau_w - 2 X (m tau_w) + 1 (m^2)' tau_w, written to (B, M) float64 arrays of zeros.

    w, tau_w and the means m are (B, n), from feature ``first`` on.
    """
    n_features = w.shape[1]
    zero, minus_two = X.dtype.type(0), X.dtype.type(-2)
    cross, other = np.empty(_PIECE, X.dtype), np.empty(_PIECE, X.dtype)
    sums = np.empty((4, 4), X.dtype)
    for at in range(0, n_features, _PIECE):
        n = min(_PIECE, n_features - at)
        low, high = first + at, first + at + n
        for g in range(row_at.size - 1):
            last = column_at[g + 1] - 1
            for k in range(column_at[g], column_at[g + 1], 2):
                b, d = columns[k], columns[min(k + 1, last)]  # the last one may have no partner
                wb, vb, mb = w[b, at : at + n], tau_w[b, at : at + n], means[b, at : at + n]
                wd, vd, md = w[d, at : at + n], tau_w[d, at : at + n], means[d, at : at + n]
                fixed_b, fixed_d = zero, zero
                for j in range(n):
                    cross[j] = minus_two * (mb[j] * vb[j])
                    other[j] = minus_two * (md[j] * vd[j])
                for j in range(n):
                    fixed_b += mb[j] * (mb[j] * vb[j])
                    fixed_d += md[j] * (md[j] * vd[j])
                for i in range(row_at[g], row_at[g + 1], 4):
                    r0, r1, r2, r3 = rows[i], rows[i + 1], rows[i + 2], rows[i + 3]
                    x0, x1, x2, x3 = X[r0, low:high], X[r1, low:high], X[r2, low:high], X[r3, low:high]
                    z0, z1, z2, z3 = zero, zero, zero, zero
                    y0, y1, y2, y3 = zero, zero, zero, zero
                    q0, q1, q2, q3 = fixed_b, fixed_b, fixed_b, fixed_b
                    p0, p1, p2, p3 = fixed_d, fixed_d, fixed_d, fixed_d
                    if k == last:
                        for j in range(n):
                            u0, u1, u2, u3 = x0[j], x1[j], x2[j], x3[j]
                            z0 += wb[j] * u0
                            z1 += wb[j] * u1
                            z2 += wb[j] * u2
                            z3 += wb[j] * u3
                            q0 += u0 * (vb[j] * u0 + cross[j])
                            q1 += u1 * (vb[j] * u1 + cross[j])
                            q2 += u2 * (vb[j] * u2 + cross[j])
                            q3 += u3 * (vb[j] * u3 + cross[j])
                    else:
                        for j in range(n):
                            u0, u1, u2, u3 = x0[j], x1[j], x2[j], x3[j]
                            z0 += wb[j] * u0
                            z1 += wb[j] * u1
                            z2 += wb[j] * u2
                            z3 += wb[j] * u3
                            y0 += wd[j] * u0
                            y1 += wd[j] * u1
                            y2 += wd[j] * u2
                            y3 += wd[j] * u3
                            q0 += u0 * (vb[j] * u0 + cross[j])
                            q1 += u1 * (vb[j] * u1 + cross[j])
                            q2 += u2 * (vb[j] * u2 + cross[j])
                            q3 += u3 * (vb[j] * u3 + cross[j])
                            p0 += u0 * (vd[j] * u0 + other[j])
                            p1 += u1 * (vd[j] * u1 + other[j])
                            p2 += u2 * (vd[j] * u2 + other[j])
                            p3 += u3 * (vd[j] * u3 + other[j])
                    sums[0, 0], sums[0, 1], sums[0, 2], sums[0, 3] = z0, z1, z2, z3
                    sums[1, 0], sums[1, 1], sums[1, 2], sums[1, 3] = q0, q1, q2, q3
                    sums[2, 0], sums[2, 1], sums[2, 2], sums[2, 3] = y0, y1, y2, y3
                    sums[3, 0], sums[3, 1], sums[3, 2], sums[3, 3] = p0, p1, p2, p3
                    for o in range(4):
                        r = rows[i + o]
                        if o > 0 and r == rows[i + o - 1]:
                            break  # rows that fill up the last four repeat the one before
                        z[b, r] += sums[0, o]
                        tau_z[b, r] += sums[1, o]
                        if k < last:
                            z[d, r] += sums[2, o]
                            tau_z[d, r] += sums[3, o]


# A column joins a set when its rows and those of the set agree in at least this share of the larger number.
_SHARED = 0.75


@dataclass(frozen=True)
class ColumnSets:
    """B columns in G sets, and the rows that each set uses: all that its columns train on.

    Folds of one comparison are a set. The rows of a set are a multiple of ``ROWS_AT_ONCE``, its last one
    repeated where needed. Every column is in one set.
    """

    rows: NDArray  # row numbers, set by set
    row_at: NDArray  # (G + 1,) where the rows of each set begin
    columns: NDArray  # (B,) column numbers, set by set
    column_at: NDArray  # (G + 1,) where the columns of each set begin
    n_rows: NDArray  # (G,) rows of each set without the repeated ones

    def take(self, columns: NDArray) -> "ColumnSets":
        """Some of the columns, in ascending order and numbered anew, on the same rows."""
        of_set = np.empty(self.columns.size, dtype=int)
        of_set[self.columns] = np.repeat(np.arange(self.n_rows.size), np.diff(self.column_at))
        return _joined(of_set[columns], self._row_lists())

    def _row_lists(self) -> list[NDArray]:
        starts = zip(self.row_at, self.n_rows, strict=False)
        return [self.rows[at : at + n] for at, n in starts]

    def packed(self, values: Array) -> NDArray:
        """Values (M, B) of each column on the rows of its set, (B, R), zero where rows are repeated."""
        out = np.zeros((values.shape[1], int(np.diff(self.row_at).max())), dtype=values.dtype)
        for g, rows in enumerate(self._row_lists()):
            columns = self.columns[self.column_at[g] : self.column_at[g + 1]]
            out[columns, : rows.size] = values[rows][:, columns].T
        return out

    def arrays(self) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        """What the kernels read."""
        return self.rows, self.row_at, self.columns, self.column_at


def column_sets(train: NDArray) -> ColumnSets:
    """The columns of ``train`` (M, B) by the rows they train on."""
    used: list[NDArray] = []
    of_set = np.empty(train.shape[1], dtype=int)
    for column, rows in enumerate(train.T):
        size = np.count_nonzero(rows)
        for g, members in enumerate(used):
            if np.count_nonzero(members & rows) >= _SHARED * max(size, np.count_nonzero(members)):
                members |= rows
                of_set[column] = g
                break
        else:
            of_set[column] = len(used)
            used.append(rows.copy())
    return _joined(of_set, [np.flatnonzero(members) for members in used])


def one_set(n_rows: int, n_columns: int) -> ColumnSets:
    """Every column uses every row."""
    return _joined(np.zeros(n_columns, dtype=int), [np.arange(n_rows)])


def _joined(of_set: NDArray, rows: list[NDArray]) -> ColumnSets:
    """Sets from the set of every column and the rows of every set."""
    padded = [np.append(each, np.repeat(each[-1:], -each.size % ROWS_AT_ONCE)) for each in rows]
    counts = np.bincount(of_set, minlength=len(rows))
    return ColumnSets(
        rows=np.concatenate(padded).astype(np.uint64),  # without a sign: no test for negative ones
        row_at=_starts([each.size for each in padded]),
        columns=np.argsort(of_set, kind="stable").astype(np.uint64),
        column_at=_starts(counts.tolist()),
        n_rows=np.array([each.size for each in rows]),
    )


def _starts(sizes: list[int]) -> NDArray:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


class Packed:
    """Slopes on the rows of their column's set, made once for all blocks of a pass over X."""

    def __init__(self, sets: ColumnSets) -> None:
        self.sets = sets
        self._known: dict[int, tuple[Array, NDArray]] = {}

    def __call__(self, values: Array) -> NDArray:
        """``ColumnSets.packed`` of values (M, B)."""
        given, found = self._known.get(id(values), (None, None))
        if found is None or given is not values:
            found = self.sets.packed(values)
            self._known[id(values)] = values, found
        return found


class CompiledMeanBlock(OwnMeanBlock):
    """The products of ``OwnMeanBlock`` that come in pairs, each in one pass over a block of X (M, N).

    Single products are left to the BLAS. Rows that no column of a set trains on get zeros.
    """

    def __init__(self, plain: DenseBlock, X: Array, packed: Packed, scratch: Scratch | None) -> None:
        super().__init__(plain)
        self._X, self._packed, self._memory = X, packed, scratch or Scratch()

    def forward_pair(self, w: Array, tau_w: Array) -> tuple[Array, Array]:
        """X w and S tau_w; w may have no columns."""
        means, self.means = self.means, None
        assert means is not None
        given = w if w.shape[1] else np.broadcast_to(w.dtype.type(0), tau_w.shape)
        lines = [np.ascontiguousarray(part.T) for part in (given, tau_w, means)]
        z, tau_z = (np.zeros((tau_w.shape[1], self._X.shape[0])) for _ in range(2))
        sets = self._packed.sets.arrays()
        compiled_kernels().forward(self._X, self.features.start, *sets, *lines, z, tau_z)
        return z.T[:, : w.shape[1]], np.maximum(tau_z.T, 0.0)

    def adjoint_pair(self, s: Array, tau_s: Array) -> tuple[Array, Array]:
        """X' s and S' tau_s, valid until the same thread visits the next block."""
        shape = (s.shape[1], self.features.stop - self.features.start)
        slopes, means, curvature = (
            self._memory.array(shape, self._X.dtype, ("products", name)) for name in range(3)
        )
        total = total_precision(tau_s)
        sets, given = self._packed.sets.arrays(), (self._packed(s), self._packed(tau_s))
        products = (slopes, means, curvature)
        compiled_kernels().adjoint(self._X, self.features.start, *sets, *given, total, *products)
        self.means = means.T
        return slopes.T, curvature.T
