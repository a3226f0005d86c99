"""What a worker does for regions in one go: some regions of a cell, or some of their permutations."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.decoding.fit import Scheme
from mvpa_gamp.decoding.preparation import Preparation
from mvpa_gamp.decoding.regions import RegionNull, RegionScores, region_null, region_scores
from mvpa_gamp.methods.fold_fits import Method
from mvpa_gamp.study.inference_jobs import Arrays

_PRODUCTS = 2e9  # rows x voxels x fits of a job: about half a minute, which an interruption may lose


class RegionWork(NamedTuple):
    """The folds of some regions of one cell."""

    method: Method
    own: NDArray  # (m,) rows of the comparison
    y: NDArray
    regions: tuple[NDArray, ...]  # numbers of the voxels of each
    preparation: Preparation

    def answer(self, X: NDArray, runs: NDArray, connectivity: Any) -> Arrays:
        """Accuracies of the regions."""
        scheme = Scheme(None, self.own, self.preparation, connectivity)
        return region_scores(self.method, X, self.y, runs, self.regions, scheme)._asdict()

    def read(self, arrays: Arrays) -> RegionScores:
        """The way back."""
        return RegionScores(arrays["accuracy"], arrays["n_failed"])


class RegionPermutations(NamedTuple):
    """Some permutations of some regions of one cell."""

    method: Method
    own: NDArray  # (m,) rows of the comparison
    labels: NDArray  # (m, k)
    regions: tuple[NDArray, ...]
    preparation: Preparation

    def answer(self, X: NDArray, runs: NDArray, connectivity: Any) -> Arrays:
        """Accuracies of the regions, a row each."""
        scheme = Scheme(None, self.own, self.preparation, connectivity)
        return region_null(self.method, X, self.labels, runs, self.regions, scheme)._asdict()

    def read(self, arrays: Arrays) -> RegionNull:
        """The way back."""
        return RegionNull(*(arrays[name] for name in RegionNull._fields))


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
