"""Products of a sparse X and of its squares: fused and compiled where Numba is there, else by SciPy.

Four products (X w, S tau_w, X' s, S' tau_s) read the same index array; two at a time read it half as often,
and the squares need not be stored. A matrix is compressed along rows (CSR) or columns (CSC), here "lines":
``gather`` sums over the entries of each line, ``scatter`` adds each line to the other axis. Columns of the
right-hand side before ``n_plain`` meet X, the others S; sums have the precision of ``out``. Index arrays must
be unsigned: signed ones cost a test for negative numbers per entry.
"""

import itertools
from collections.abc import Callable
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.gamp.compiled import compiler, is_available

from ..parallel import block_threads
from .moments import Array


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


# Entries from which compiled products pay for the wait when they are built for the first time (about 2 s).
_WORTH_COMPILING = 1_000_000
_ENTRIES_PER_PART = 1 << 20  # a part keeps a core busy for about a millisecond
_MOST_PARTS = 32
_SHORT_LINE = 4096  # entries that may be summed in float32: the error stays below that of X
_ENTRIES_PER_SUM = 16  # of a part over the length of its sums, which must not cost more than the entries


class SparseBlock:
    """X in CSR or CSC form; big ones are multiplied by compiled kernels on all cores, others by scipy.

    X is split into parts that depend on X alone, so results do not depend on the number of cores. Sums within
    a part have the precision of X unless they are long, sums over parts are float64.
    """

    def __init__(self, X: Any) -> None:
        self.X = X
        self.features = slice(0, X.shape[1])

    @cached_property
    def squares(self) -> Any:
        """S in the form of X, sharing its index arrays; only scipy's products need it."""
        return type(self.X)((np.square(self.X.data), self.X.indices, self.X.indptr), shape=self.X.shape)

    def forward(self, w: Array) -> Array:
        """X w, float64."""
        return self.forward_pair(w, w[:, :0])[0]

    def adjoint(self, s: Array) -> Array:
        """X' s, in the precision of X."""
        return self.adjoint_pair(s, s[:, :0])[0]

    def forward_pair(self, w: Array, tau_w: Array) -> tuple[Array, Array]:
        """X w and S tau_w in one pass over X, float64."""
        if not self._is_compiled:
            return _by_scipy(self, w, tau_w, False)
        product = self._gather if self.X.format == "csr" else self._scatter
        first, second = _split(product(w, tau_w), w.shape[1])
        return np.ascontiguousarray(first, dtype=float), np.ascontiguousarray(second, dtype=float)

    def adjoint_pair(self, s: Array, tau_s: Array) -> tuple[Array, Array]:
        """X' s and S' tau_s in one pass over X, in the precision of X and Fortran order."""
        if not self._is_compiled:
            return _by_scipy(self, s, tau_s, True)
        product = self._scatter if self.X.format == "csr" else self._gather
        first, second = _split(product(s, tau_s), s.shape[1])
        dtype = self.X.dtype
        return np.asfortranarray(first, dtype=dtype), np.asfortranarray(second, dtype=dtype)

    @cached_property
    def _is_compiled(self) -> bool:
        return self.X.nnz >= _WORTH_COMPILING and compiled_kernels() is not None

    @cached_property
    def _arrays(self) -> tuple[NDArray, NDArray, NDArray]:
        return self.X.data, unsigned(self.X.indices), unsigned(self.X.indptr)

    @cached_property
    def _line_dtype(self) -> Any:
        longest = int(np.diff(self.X.indptr).max(initial=0))
        return self.X.dtype if longest <= _SHORT_LINE else np.dtype(float)

    def _parts(self, n_parts: int) -> list[tuple[int, int]]:
        """Ranges of lines with about the same number of entries."""
        indptr = self.X.indptr
        edges = np.searchsorted(indptr, np.linspace(0, self.X.nnz, n_parts + 1)[1:-1])
        edges = np.concatenate([[0], edges, [indptr.size - 1]])
        return [(int(first), int(last)) for first, last in itertools.pairwise(edges)]

    def _gather(self, plain: Array, squared: Array) -> NDArray:
        """Sums along the lines of X: every part writes its own rows of the result."""
        kernels = compiled_kernels()
        assert kernels is not None
        v, n_plain = _joined(plain, squared, self.X.dtype), plain.shape[1]
        out = np.empty((self.X.indptr.size - 1, v.shape[1]), dtype=self._line_dtype)

        def work(part: tuple[int, int]) -> None:
            if _is_pair(plain, squared):
                kernels.gather_pair(*self._arrays, v, out, *part)
            else:
                kernels.gather(*self._arrays, v, n_plain, out, *part)

        parts = self._parts(min(_MOST_PARTS, -(-self.X.nnz // _ENTRIES_PER_PART)))
        with block_threads(len(parts)) as over_parts:
            list(over_parts(work, parts))
        return out

    def _scatter(self, plain: Array, squared: Array) -> NDArray:
        """Sums across the lines of X: every part has its own copy of the result, added up at the end."""
        kernels = compiled_kernels()
        assert kernels is not None
        v, n_plain = _joined(plain, squared, self.X.dtype), plain.shape[1]
        size = self.X.shape[1] if self.X.format == "csr" else self.X.shape[0]

        def work(part: tuple[int, int]) -> NDArray:
            out = np.zeros((size, v.shape[1]), dtype=self.X.dtype)
            if _is_pair(plain, squared):
                kernels.scatter_pair(*self._arrays, v, out, *part)
            else:
                kernels.scatter(*self._arrays, v, n_plain, out, *part)
            return out

        parts = self._parts(max(1, min(_MOST_PARTS, self.X.nnz // (_ENTRIES_PER_SUM * size))))
        total = np.zeros((size, v.shape[1]))
        with block_threads(len(parts)) as over_parts:
            for part in over_parts(work, parts):
                total += part
        return total


class CenteredSparseBlock:
    """X - 1 c' without making it dense: every product of X plus a correction of rank one."""

    def __init__(self, plain: SparseBlock, center: Array) -> None:
        self.features, self.plain, self.center = plain.features, plain, center

    def forward(self, w: Array) -> Array:
        """X w - 1 c' w."""
        return self.plain.forward(w) - (self.center * w).sum(axis=0, dtype=float)

    def forward_pair(self, w: Array, tau_w: Array) -> tuple[Array, Array]:
        """X w - 1 c' w, and S tau_w - 2 X (c tau_w) + 1 (c^2)' tau_w, never negative, in one pass over X."""
        shifted = self.center * tau_w
        constant = (self.center * shifted).sum(axis=0, dtype=float)
        plain, squares = self.plain.forward_pair(np.hstack([w, shifted]), tau_w)
        z, cross = _split(plain, w.shape[1])
        return z - (self.center * w).sum(axis=0, dtype=float), np.maximum(squares - 2 * cross + constant, 0.0)

    def adjoint(self, s: Array) -> Array:
        """X' s - c 1' s."""
        return self.plain.adjoint(s) - self.center * s.sum(axis=0)

    def adjoint_pair(self, s: Array, tau_s: Array) -> tuple[Array, Array]:
        """X' s - c 1' s, and S' tau_s - 2 c (X' tau_s) + c^2 1' tau_s, never negative, in one pass over X."""
        plain, squares = self.plain.adjoint_pair(np.hstack([s, tau_s]), tau_s)
        first, cross = _split(plain, s.shape[1])
        constant = np.square(self.center) * tau_s.sum(axis=0)
        return (
            first - self.center * s.sum(axis=0),
            np.maximum(squares - 2 * self.center * cross + constant, 0),
        )


def _by_scipy(block: SparseBlock, plain: Array, squared: Array, adjoint: bool) -> tuple[Array, Array]:
    """The two products, skipping one without columns (S is then not made)."""
    size = block.X.shape[1] if adjoint else block.X.shape[0]

    def product(matrix: Any, columns: Array) -> Array:
        if adjoint:
            return np.asfortranarray(matrix.T @ columns, dtype=block.X.dtype)
        return np.asarray(matrix @ columns, dtype=float)

    empty = np.empty((size, 0), dtype=block.X.dtype if adjoint else float)
    return (
        product(block.X, plain) if plain.shape[1] else empty,
        product(block.squares, squared) if squared.shape[1] else empty,
    )


def _joined(plain: Array, squared: Array, dtype: Any) -> NDArray:
    """Both as one row-major array: what one entry needs lies together."""
    v = np.empty((plain.shape[0], plain.shape[1] + squared.shape[1]), dtype=dtype)
    v[:, : plain.shape[1]], v[:, plain.shape[1] :] = plain, squared
    return v


def _split(product: NDArray, n_plain: int) -> tuple[Array, Array]:
    return product[:, :n_plain], product[:, n_plain:]


def _is_pair(plain: Array, squared: Array) -> bool:
    return plain.shape[1] == squared.shape[1] == 1
