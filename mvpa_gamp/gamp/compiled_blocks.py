"""Some features of a dense X with squares around own means, multiplied by compiled kernels."""

import numpy as np
from numpy.typing import NDArray

from .blocks import DenseBlock, OwnMeanBlock, Scratch
from .column_sets import ColumnSets
from .dense_kernels import compiled_kernels
from .moments import Array


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
        total = np.maximum(tau_s.sum(axis=0), np.finfo(tau_s.dtype).tiny)
        sets, given = self._packed.sets.arrays(), (self._packed(s), self._packed(tau_s))
        products = (slopes, means, curvature)
        compiled_kernels().adjoint(self._X, self.features.start, *sets, *given, total, *products)
        self.means = means.T
        return slopes.T, curvature.T
