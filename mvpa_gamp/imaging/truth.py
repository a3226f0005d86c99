"""What was planted in a phantom: the response of every voxel to every category."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.imaging.errors import DataError


@dataclass(frozen=True)
class PlantedTruth:
    """Responses (K, N) in per cent of the baseline, exactly 0 where a voxel does not respond."""

    categories: tuple[str, ...]
    responses: NDArray

    def response(self, category: str) -> NDArray:
        """The planted map (N,) of a category."""
        if category not in self.categories:
            known = ", ".join(self.categories)
            raise DataError(f"phantom: expected one of its categories {known}, got {category!r}. Change it.")
        return self.responses[self.categories.index(category)]

    def for_pair(self, first: str, second: str) -> NDArray:
        """Voxels (N,) bool that tell two categories apart: their responses differ."""
        return self.response(first) != self.response(second)

    def at(self, voxels: NDArray) -> "PlantedTruth":
        """The truth at some of the voxels, given as a boolean or index array."""
        return PlantedTruth(self.categories, np.ascontiguousarray(self.responses[:, voxels]))
