"""Fused products of a compressed sparse matrix and of its squares, compiled when Numba is there.

Four products (X w, S tau_w, X' s, S' tau_s) read the same index array; two at a time read it half as often,
and the squares need not be stored. A matrix is compressed along rows (CSR) or columns (CSC), here "lines":
``gather`` sums over the entries of each line, ``scatter`` adds each line to the other axis. Columns of the
right-hand side before ``n_plain`` meet X, the others S; sums have the precision of ``out``. Index arrays must
be unsigned: signed ones cost a test for negative numbers per entry.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from mvpa_gamp.gamp.compiled import compiler, is_available


class Kernels(NamedTuple):
    """Compiled products; the ``pair`` ones are for one column against X and one against S."""

    gather: Callable[..., None]
    gather_pair: Callable[..., None]
    scatter: Callable[..., None]
    scatter_pair: Callable[..., None]


@cache
def compiled_kernels() -> Kernels | None:
    """The kernels, each compiled at its first call and then kept on disk; None without Numba."""
    if not is_available():
        return None
    build = compiler()
    return Kernels(build(_gather), build(_gather_pair), build(_scatter), build(_scatter_pair))


def _gather(
    data: Any, indices: Any, indptr: Any, v: Any, n_plain: int, out: Any, first: int, last: int
) -> None:
    """out[i] = sum over the entries of line i of value * v[index], for the lines first to last."""
    n_columns = v.shape[1]
    one = out.dtype.type(1)
    for i in range(first, last):
        for c in range(n_columns):
            out[i, c] = 0
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            value = one * data[k]
            square = value * value
            for c in range(n_plain):
                out[i, c] += value * v[j, c]
            for c in range(n_plain, n_columns):
                out[i, c] += square * v[j, c]


def _gather_pair(data: Any, indices: Any, indptr: Any, v: Any, out: Any, first: int, last: int) -> None:
    """``_gather`` of two columns, the first plain: sums stay in registers."""
    zero, one = out.dtype.type(0), out.dtype.type(1)
    for i in range(first, last):
        plain = zero
        squared = zero
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            value = one * data[k]
            plain += value * v[j, 0]
            squared += (value * value) * v[j, 1]
        out[i, 0] = plain
        out[i, 1] = squared


def _scatter(
    data: Any, indices: Any, indptr: Any, v: Any, n_plain: int, out: Any, first: int, last: int
) -> None:
    """Add value * v[i] to out[index] for every entry of the lines first to last."""
    n_columns = v.shape[1]
    one = out.dtype.type(1)
    for i in range(first, last):
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            value = one * data[k]
            square = value * value
            for c in range(n_plain):
                out[j, c] += value * v[i, c]
            for c in range(n_plain, n_columns):
                out[j, c] += square * v[i, c]


def _scatter_pair(data: Any, indices: Any, indptr: Any, v: Any, out: Any, first: int, last: int) -> None:
    """``_scatter`` of two columns, the first plain."""
    one = out.dtype.type(1)
    for i in range(first, last):
        plain = v[i, 0]
        squared = v[i, 1]
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            value = one * data[k]
            out[j, 0] += value * plain
            out[j, 1] += (value * value) * squared


def unsigned(indices: np.ndarray) -> np.ndarray:
    """The same bytes as unsigned numbers; indices are never negative."""
    return indices.view(f"u{indices.dtype.itemsize}")
