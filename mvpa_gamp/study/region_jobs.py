"""What a worker does for regions in one go: some regions of one cell, with arrays as its answer."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.decoding.preparation import Preparation
from mvpa_gamp.decoding.regions import PreparedRows, RegionScores, region_scores
from mvpa_gamp.methods.fold_fits import Method
from mvpa_gamp.study.inference_jobs import Arrays

_PRODUCTS = 2e9  # rows x voxels x fits of a job: about half a minute, which an interruption may lose


class RegionWork(NamedTuple):
    """Folds, and permutations if there are any, of some regions of one cell."""

    method: Method
    own: NDArray  # (m,) rows of the comparison
    y: NDArray
    regions: tuple[NDArray, ...]  # numbers of the voxels of each
    labels: NDArray | None  # (m, U)
    preparation: Preparation | None = None  # of all samples of the study

    @property
    def rows(self) -> NDArray | slice:
        """Those of the comparison, or all where X is prepared."""
        return self.own if self.preparation is None else slice(None)

    def answer(self, X: NDArray, runs: NDArray, connectivity: Any) -> Arrays:
        """Accuracies of the regions."""
        prepared = None if self.preparation is None else PreparedRows(self.preparation, self.own)
        given = self.method, X, self.y, runs, self.regions, self.labels, connectivity
        found = region_scores(*given, prepared=prepared)
        return {name: value for name, value in found._asdict().items() if value is not None}

    def read(self, arrays: Arrays) -> RegionScores:
        """The way back."""
        return RegionScores(arrays["accuracy"], arrays["n_failed"], arrays.get("null"))


def portions(sizes: Sequence[int], n_rows: int, n_fits: int) -> list[list[int]]:
    """Regions, by their places, that make up one job each; by sizes alone, whatever the workers."""
    out: list[list[int]] = []
    work = np.inf
    for place, size in enumerate(sizes):
        each = float(n_rows) * (size + n_rows) * n_fits
        if work + each > _PRODUCTS:
            out.append([])
            work = 0.0
        out[-1].append(place)
        work += each
    return out
