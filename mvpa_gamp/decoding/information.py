"""Which voxels carry information about the classes, one by one? A test of each, corrected for all.

A voxel's inclusion probability answers another question: is it needed given all others? Of two voxels that
say the same, one is enough; so a voxel with a strong effect may have a low inclusion probability, and none
may be found when effects are strong everywhere. Here each voxel is asked alone, and finding one never hides
another.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..feature_scale import LARGEST
from ..methods.fold_input import check_rows
from .exchange import find_exchange
from .tasks import check_signs

_NUMBERS_AT_ONCE = 1 << 20  # correlations of a chunk of permutations: 4 MB in float32
# A tie counts against the voxel, also where the rounding of float32 sums hides it.
_TIE = 1e-6


@dataclass(frozen=True, eq=False)
class InformationMap:
    """Correlation of every voxel with the labels, and its p-value, corrected for all voxels.

    ``n`` counts the label vectors beside the observed one. Where few of them exist, all are used
    (``n_distinct`` = n + 1) and the p-values are exact. ``caution`` is empty or says what limits them.
    """

    correlation: NDArray  # (N,) within runs; positive where the voxel is higher for label +1
    pvalue: NDArray  # (N,) family-wise
    n: int
    n_distinct: int
    exchange: str  # what was exchanged: "block" or "sample"
    seed: int
    caution: str = ""

    def selected(self, level: float = 0.05) -> NDArray:
        """Voxels (N,) of which, with probability 1 - level, every one carries information."""
        return self.pvalue <= level


def carries_information(
    X: Any, y: Any, runs: Any, n: int = 999, seed: int = 0, exchange: str = "block", blocks: Any = None
) -> InformationMap:
    """Test every voxel's correlation with the labels, |corr(x, y)| within runs, against permuted labels.

    X is (M, N), y (M,) in -1/+1, runs (M,). Means of runs are taken away from voxels and labels. Labels are
    exchanged within runs as in ``permutation_test``: in blocks, unless rows are independent
    (``exchange="sample"``). Where at most n + 1 label vectors exist, all are used instead of random ones.

    P-values are those of the step-down maximum test (Westfall & Young 1993): a voxel is compared with the
    largest statistic among itself and all weaker voxels, p = (1 + count) / (1 + n), and no p-value is below a
    stronger voxel's. The chance of any false voxel is at most the level, whatever the other voxels carry. No
    decoder is fitted: 31,398 voxels and 999 permutations take about 2 s.

    The statistic is that of Haufe's pattern (``haufe_pattern``) with the decoder's decision replaced by the
    labels themselves. Weighting it by how well the decoder does looks more sensitive and is not valid: a
    factor that all voxels share is large for the real labels and small for permuted ones, so that voxels
    without an effect pass beside those with one. With the correlation times the decoder's accuracy, 30 to
    100 % of simulated data sets had such a voxel; with the correlation alone, 3 to 6 %.

    >>> import numpy as np
    >>> from mvpa_gamp.decoding import carries_information
    >>> runs, y = np.repeat(np.arange(8), 10), np.tile(np.repeat([1, -1], 5), 8)
    >>> X = np.random.default_rng(0).standard_normal((80, 30))
    >>> X[:, 4] -= y
    >>> found = carries_information(X, y, runs, n=255)
    >>> np.flatnonzero(found.selected()).tolist(), found.n_distinct, bool(found.correlation[4] < 0)
    ([4], 256, True)
    """
    X, labels, runs = _checked(X, y, runs)
    moved = find_exchange(labels, runs, exchange, blocks)
    moved.check()
    voxels = within_runs(X, runs)
    observed = within_runs(labels[:, None].astype(X.dtype), runs)[:, 0] @ voxels
    others = moved.others(n)
    drawn = moved.draw(n, seed) if others is None else others
    order = np.argsort(-np.abs(observed), kind="stable")
    count = _beaten(voxels[:, order], np.abs(observed)[order], drawn, runs)
    pvalue = np.empty(order.size)
    pvalue[order] = np.maximum.accumulate((1 + count) / (1 + drawn.shape[1]))
    return InformationMap(observed, pvalue, drawn.shape[1], moved.n_distinct, moved.kind, seed, moved.caution)


def _beaten(voxels: NDArray, observed: NDArray, drawn: NDArray, runs: NDArray) -> NDArray:
    """How often the largest statistic of a voxel and all weaker ones reaches the voxel's own, (N,).

    ``voxels`` (M, N) are in the order of ``observed`` (N,), the strongest first.
    """
    count = np.zeros(observed.size, dtype=np.int64)
    step = max(1, _NUMBERS_AT_ONCE // max(1, observed.size))
    for at in range(0, drawn.shape[1], step):
        labels = within_runs(drawn[:, at : at + step].astype(voxels.dtype), runs)
        null = np.abs(labels.T @ voxels)[:, ::-1]
        largest = np.maximum.accumulate(null, axis=1)[:, ::-1]
        count += np.count_nonzero(largest >= observed - _TIE, axis=0)
    return count


def within_runs(values: NDArray, runs: NDArray) -> NDArray:
    """Columns (M, K) with the mean of each run taken away and norm 1; 0 where nothing is left.

    Products of two of them are correlations within runs.
    """
    centred = values.copy()
    for run in np.unique(runs):
        centred[runs == run] -= values[runs == run].mean(axis=0)
    norm = np.linalg.norm(centred, axis=0)
    rounding = 8 * np.finfo(values.dtype).eps * np.linalg.norm(values, axis=0)
    centred /= np.where(norm > rounding, norm, np.inf)
    return centred


def _checked(X: Any, y: Any, runs: Any) -> tuple[NDArray, NDArray, NDArray]:
    X, runs = check_rows(X, runs, dense=True)
    labels = np.asarray(y)
    if labels.shape != runs.shape:
        raise ValueError(
            f"y must have a label for each of the {len(X)} rows of X, got shape {labels.shape}. Pass the "
            "rows of one comparison."
        )
    check_signs(labels)
    if (top := np.abs(X).max()) > LARGEST:
        raise ValueError(
            f"X must be at most {LARGEST:g} in size, got {top:g}. Leave out those voxels, or rescale X."
        )
    return X, labels, runs
