"""How cleaning scaled the voxels of whole runs: for new volumes that are too few to be cleaned alone."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_NO_VARIANCE = 1e-12  # cleaned values are of order one


class RunSums(NamedTuple):
    """Of the n volumes of a run, each (N,): sums of raw and cleaned values, and products around the means."""

    n: int
    raw: NDArray
    cleaned: NDArray
    products: NDArray  # raw times cleaned
    squares: NDArray  # of cleaned


class Scaling(NamedTuple):
    """What the runs did to voxels on average, each (N,): cleaned = level + (raw - center) / spread.

    For z-scores ``center`` is the mean of all volumes, ``spread`` the deviation within runs that is left
    after detrending, filtering and confounds, and ``level`` 0. Images that are not cleaned stay as they are.
    """

    center: NDArray
    spread: NDArray
    level: NDArray

    def apply(self, raw: NDArray) -> NDArray:
        """Rows (m, N) of raw values in the units of cleaned ones; voxels that never varied stay at level."""
        return np.asarray(self.level + (raw - self.center) / self.spread)


def run_sums(raw: NDArray, cleaned: NDArray) -> RunSums:
    """The sums of a run (T, N); volumes that cleaning left out are NaN there and not counted."""
    used = ~np.isnan(cleaned[:, 0])
    if not used.all():
        raw, cleaned = raw[used], cleaned[used]
    n, of_raw, of_cleaned = len(raw), raw.sum(axis=0, dtype=float), cleaned.sum(axis=0, dtype=float)
    return RunSums(
        n,
        of_raw,
        of_cleaned,
        np.einsum("tn,tn->n", raw, cleaned, dtype=float) - of_raw * of_cleaned / n,
        np.einsum("tn,tn->n", cleaned, cleaned, dtype=float) - np.square(of_cleaned) / n,
    )


def pooled_scaling(runs: Sequence[RunSums]) -> Scaling:
    """The scaling of several runs together: raw units per unit of cleaned values, by regression within runs.

    Cleaned values are what trends, filters and confounds left, which they are orthogonal to, so that for
    z-scores the slope is the deviation that they were divided by.
    """
    n, raw, cleaned, products, squares = (sum(part[1:], part[0]) for part in zip(*runs, strict=True))
    varies = squares > _NO_VARIANCE * n
    varies &= products != 0
    spread = np.divide(products, squares, out=np.full(squares.shape, np.inf), where=varies)
    return Scaling(raw / n, spread, cleaned / n)
