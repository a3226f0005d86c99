"""Products of some features of dense X and of their squares around own means, compiled.

What the matrix products of a BLAS do in three passes over a block is one here: X is read from the cache once
for every column, squares stay in registers, and rows that a column does not train on are skipped. Rows come
in fours (``ColumnSets``), so that sums over them stay in registers too. Sums over features have the precision
of X within a piece and float64 over pieces.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from mvpa_gamp.gamp.compiled import compiler

ROWS_AT_ONCE = 4
_PIECE = 512  # features: so much of 216 rows fits a second-level cache, and of one row a first-level one


class Kernels(NamedTuple):
    """The products of one block, there and back."""

    adjoint: Callable[..., None]
    forward: Callable[..., None]


@cache
def compiled_kernels() -> Kernels:
    """The kernels, each compiled at its first call and then kept on disk."""
    build = compiler("reassoc", "contract", "nsz", "arcp")
    return Kernels(build(_adjoint), build(_forward))


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
    # Arrays of its own let the compiler see that nothing else overlaps.
    plain, mean = np.empty(_PIECE, X.dtype), np.empty(_PIECE, X.dtype)
    squared = np.empty(_PIECE, X.dtype)
    for at in range(0, n_features, _PIECE):
        n = min(_PIECE, n_features - at)
        low, high = first + at, first + at + n
        for g in range(row_at.size - 1):
            begin = row_at[g]
            for k in range(column_at[g], column_at[g + 1]):
                b = columns[k]
                plain[:], mean[:], squared[:] = zero, zero, zero
                for i in range(begin, row_at[g + 1], 4):
                    x0, x1 = X[rows[i], low:high], X[rows[i + 1], low:high]
                    x2, x3 = X[rows[i + 2], low:high], X[rows[i + 3], low:high]
                    o = i - begin
                    s0, s1, s2, s3 = s[b, o], s[b, o + 1], s[b, o + 2], s[b, o + 3]
                    t0, t1, t2, t3 = tau_s[b, o], tau_s[b, o + 1], tau_s[b, o + 2], tau_s[b, o + 3]
                    for j in range(n):
                        u0, u1, u2, u3 = x0[j], x1[j], x2[j], x3[j]
                        plain[j] += s0 * u0 + s1 * u1 + s2 * u2 + s3 * u3
                        mean[j] += t0 * u0 + t1 * u1 + t2 * u2 + t3 * u3
                        squared[j] += t0 * (u0 * u0) + t1 * (u1 * u1) + t2 * (u2 * u2) + t3 * (u3 * u3)
                for j in range(n):
                    m = mean[j] / total[b]
                    slopes[b, at + j] = plain[j]
                    means[b, at + j] = m
                    curvature[b, at + j] = max(squared[j] - m * m * total[b], zero)


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
    weight, var, cross = np.empty(_PIECE, X.dtype), np.empty(_PIECE, X.dtype), np.empty(_PIECE, X.dtype)
    for at in range(0, n_features, _PIECE):
        n = min(_PIECE, n_features - at)
        low, high = first + at, first + at + n
        for g in range(row_at.size - 1):
            for k in range(column_at[g], column_at[g + 1]):
                b = columns[k]
                constant = zero
                for j in range(n):
                    weight[j], var[j] = w[b, at + j], tau_w[b, at + j]
                    shifted = means[b, at + j] * var[j]
                    cross[j] = minus_two * shifted
                    constant += means[b, at + j] * shifted
                for i in range(row_at[g], row_at[g + 1], 4):
                    x0, x1 = X[rows[i], low:high], X[rows[i + 1], low:high]
                    x2, x3 = X[rows[i + 2], low:high], X[rows[i + 3], low:high]
                    z0, z1, z2, z3 = zero, zero, zero, zero
                    q0, q1, q2, q3 = constant, constant, constant, constant
                    for j in range(n):
                        u0, u1, u2, u3 = x0[j], x1[j], x2[j], x3[j]
                        z0 += weight[j] * u0
                        z1 += weight[j] * u1
                        z2 += weight[j] * u2
                        z3 += weight[j] * u3
                        q0 += u0 * (var[j] * u0 + cross[j])
                        q1 += u1 * (var[j] * u1 + cross[j])
                        q2 += u2 * (var[j] * u2 + cross[j])
                        q3 += u3 * (var[j] * u3 + cross[j])
                    # Rows that fill up the last four repeat the one before, and do not count again.
                    r0, r1, r2, r3 = rows[i], rows[i + 1], rows[i + 2], rows[i + 3]
                    z[b, r0] += z0
                    tau_z[b, r0] += q0
                    if r1 != r0:
                        z[b, r1] += z1
                        tau_z[b, r1] += q1
                    if r2 != r1:
                        z[b, r2] += z2
                        tau_z[b, r2] += q2
                    if r3 != r2:
                        z[b, r3] += z3
                        tau_z[b, r3] += q3
