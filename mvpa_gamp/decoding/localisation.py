"""Where information is: a test of every voxel, and of every region of an atlas, by itself.

A voxel's inclusion probability answers another question: is it needed given all others? Of two voxels that
say the same, one is enough; so a voxel with a strong effect may have a low inclusion probability, and none
may be found when effects are strong everywhere. Here each voxel is asked alone, and finding one never hides
another.

A region is a set of voxels; numbers in, numbers out. Sums over regions are exact: values are counted in units
of a power of two, so that regions and what lies outside them add up to the whole to the last bit.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..feature_scale import LARGEST
from ..methods.fold_fits import Method, check_rows
from .exchange import find_exchange
from .fit import Scheme, cross_validate, graph_for
from .null import null_statistics
from .permutation import PermutationPlan, places, plan_permutations, share_as_good
from .scores import fold_errors
from .tasks import check_signs

_NUMBERS_AT_ONCE = 1 << 20  # correlations of a chunk of permutations: 4 MB in float32
# A tie counts against the voxel, also where the rounding of float32 sums hides it.
_TIE = 1e-6
# Fewer voxels than this say more about single voxels, and about where the border runs, than about a region.
FEWEST_VOXELS = 5
_DIGITS = 30  # binary ones below the largest value: 8 million voxels still add up exactly in float64


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

    Parameters
    ----------
    X
        Samples (M, N).
    y
        Labels (M,) in -1/+1.
    runs
        The run (M,) of every sample.
    n
        Permutations.
    seed
        Of the random numbers: equal seeds give equal results.
    exchange
        "block" exchanges blocks of samples as wholes, "sample" single ones, for independent samples.
    blocks
        The block (M,) of every sample; None: stretches of equal labels.

    Returns
    -------
    InformationMap
        Correlation and family-wise p-value (N,) of every voxel.

    Examples
    --------
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


def exact_sums(values: Any, regions: NDArray, n_regions: int) -> NDArray:
    """Sums (R + 2,) of values (N,) over regions, over what is in none, and over everything.

    ``regions`` (N,) are places 0 .. R - 1, -1 for none. Values are rounded to 2 ** -30 of the power of two
    above the largest one; the sums of these are exact, so the last sum is that of the others to the last bit.

    Parameters
    ----------
    values
        What is summed, (N,).
    regions
        The region (N,) of every voxel.
    n_regions
        R.

    Returns
    -------
    ndarray
        Sums (R + 2,).

    Examples
    --------
    >>> import numpy as np
    >>> from mvpa_gamp.decoding import exact_sums
    >>> exact_sums([0.1, 0.2, 0.7], np.array([0, 1, -1]), 2).round(3).tolist()
    [0.1, 0.2, 0.7, 1.0]
    """
    values = np.asarray(values, dtype=np.float64)
    largest = float(np.abs(values).max(initial=0.0))
    unit = 2.0 ** (np.frexp(largest)[1] - _DIGITS) if largest else 1.0
    counts = np.rint(values / unit)
    place = np.where(regions < 0, n_regions, regions)
    sums = np.bincount(place, counts, minlength=n_regions + 1)
    return np.append(sums, counts.sum()) * unit


class RegionScores(NamedTuple):
    """How well each of R regions decodes by itself."""

    accuracy: NDArray  # (R, F) of every fold
    n_failed: NDArray  # (R,) fits that did not meet their stopping rule


class RegionNull(NamedTuple):
    """What R regions give for each of k label vectors of a plan."""

    score: NDArray  # (R, k) mean accuracy over folds
    auc: NDArray  # (R, k) mean area under the ROC curve, which orders equal accuracies
    n_failed: NDArray  # (R, k) fits that did not meet their stopping rule


@dataclass(frozen=True, eq=False)
class RegionTest:
    """Mean accuracy of R regions and those of n permutations of the labels, which all regions share."""

    accuracy: NDArray  # (R,)
    standard_error: NDArray  # (R,) across folds
    n_failed: NDArray  # (R,) those of permutations included
    null: NDArray | None = None  # (R, n)
    n_distinct: int = 0
    caution: str = ""
    floor: float = 0.0  # the p-value that no number of permutations gets below
    auc: NDArray | None = None  # (R, 1 + n) mean areas of observed and permuted labels; None: ties stay ties

    @property
    def is_exact(self) -> bool:
        """Whether the null has every other label vector once."""
        return self.null is not None and self.null.shape[1] == self.n_distinct - 1

    @property
    def pvalue(self) -> NDArray:
        """P-value (R,) of each region by itself, as of ``PermutationTest``, at least ``floor``."""
        return np.maximum(share_as_good(self._places()), self.floor)

    @property
    def family_wise(self) -> NDArray:
        """P-value (R,) corrected for all regions by step-down maxima (Westfall & Young 1993).

        A region is compared with the most accurate one among itself and all less accurate regions in each
        permutation, and no p-value is below a more accurate region's. Regions share the permuted labels, so
        their dependence needs no model; the chance of any false claim is at most the level.
        """
        place = self._places()
        order = np.argsort(-place[:, 0], kind="stable")
        largest = np.maximum.accumulate(place[order][::-1], axis=0)[::-1]
        out = np.empty(order.size)
        out[order] = np.maximum.accumulate(share_as_good(largest))
        return np.maximum(out, self.floor)

    def _places(self) -> NDArray:
        """The order (R, 1 + n) of observed and permuted labels over all regions, or a sentence."""
        if self.null is None:
            raise ValueError("P-values of regions need permutations. Call decode_regions with n=1000.")
        return places(np.column_stack([self.accuracy, self.null]), np.nan if self.auc is None else self.auc)


def others(regions: Any, place: int) -> NDArray:
    """Numbers of all voxels but those of a region of ``Regions``, for accuracies without it."""
    return np.flatnonzero(np.asarray(regions.of_voxel) != place)


def decode_regions(
    method: Method,
    X: Any,
    y: Any,
    runs: Any,
    regions: Sequence[Any],
    n: int = 0,
    scheme: Scheme | None = None,
) -> RegionTest:
    """Decode from each region alone, and compare with n permutations of the labels.

    X is (M, N), y (M,) in -1/+1, runs (M,); ``regions`` are R lists of voxel numbers. Labels are exchanged
    within runs as in ``permutation_test``, the same for all regions. Without permutations there are no
    p-values. A preparation (``FoldConfounds``) is fitted in every fold, to each region by itself.

    Parameters
    ----------
    method
        One of ``METHODS``.
    X
        Samples (M, N).
    y
        Labels (M,) in -1/+1.
    runs
        The run (M,) of every sample.
    regions
        R lists of voxel numbers.
    n
        Permutations; 0: no test.
    scheme
        Folds, rows, what folds do to X, and what is exchanged; None: leave one run out.

    Returns
    -------
    RegionTest
        Accuracies (R,) with standard errors, their null (R, n) and p-values.

    Examples
    --------
    >>> import numpy as np
    >>> from mvpa_gamp.decoding import decode_regions
    >>> from mvpa_gamp.methods import METHODS
    >>> runs, y = np.repeat(np.arange(8), 10), np.tile(np.repeat([1, -1], 5), 8)
    >>> X = np.random.default_rng(0).standard_normal((80, 30))
    >>> X[:, 4] += y
    >>> found = decode_regions(METHODS["gamp-bg-lr"], X, y, runs, np.split(np.arange(30), 3), n=99)
    >>> (found.family_wise <= 0.05).tolist()
    [True, False, False]
    """
    X, runs = check_rows(X, runs, dense=True)
    regions = [_voxels(each, X.shape[1]) for each in regions]
    if not regions:
        raise ValueError("Expected at least one region, got none. Give a list of voxel numbers for each.")
    scheme = scheme or Scheme()
    scores = region_scores(method, X, y, runs, regions, scheme)
    if not n:
        return join_scores([scores])
    largest, own = max(len(voxels) for voxels in regions), runs[scheme.rows_of(runs)]
    plan = plan_permutations(y, own, largest, n, seed=scheme.seed, **scheme.exchanged)
    nulls = [region_null(method, X, plan.labels[:, chunk], runs, regions, scheme) for chunk in plan.chunks]
    return join_scores([scores], plan, [nulls])


def _voxels(region: Any, n_voxels: int) -> NDArray:
    """The voxel numbers of a region, each once."""
    voxels = np.asarray(region)
    if voxels.dtype == bool and voxels.shape == (n_voxels,):
        voxels = np.flatnonzero(voxels)
    if voxels.ndim != 1 or voxels.dtype.kind not in "iu" or not voxels.size:
        raise ValueError(
            f"A region must be a list of voxel numbers, got shape {voxels.shape} of type {voxels.dtype}. "
            "Give the columns of X that belong to it, at least one."
        )
    if voxels.min() < 0 or voxels.max() >= n_voxels:
        raise ValueError(
            f"Voxel numbers of a region must be from 0 to {n_voxels - 1}, got {voxels.min()} to "
            f"{voxels.max()}. Number the columns of X."
        )
    return voxels


def region_scores(
    method: Method, X: NDArray, y: Any, runs: Any, regions: Sequence[Any], scheme: Scheme
) -> RegionScores:
    """Accuracies of some regions in every fold."""
    found = []
    for own, each in _each_region(method, X, regions, scheme):
        fits = cross_validate(method, own, y, runs, each)
        found.append((1 - fold_errors(fits, y), int(np.count_nonzero(fits.folds.failed))))
    accuracy, failed = zip(*found, strict=True)
    return RegionScores(np.stack(accuracy), np.array(failed))


def region_null(
    method: Method, X: NDArray, labels: NDArray, runs: Any, regions: Sequence[Any], scheme: Scheme
) -> RegionNull:
    """Accuracies of some regions for label vectors (m, k), a chunk of a plan."""
    found = [
        null_statistics(method, own, labels, runs, each)
        for own, each in _each_region(method, X, regions, scheme)
    ]
    return RegionNull(*(np.stack([getattr(each, name) for each in found]) for name in RegionNull._fields))


def _each_region(
    method: Method, X: NDArray, regions: Sequence[Any], scheme: Scheme
) -> Iterator[tuple[NDArray, Scheme]]:
    """X of every region, and the scheme with its own neighbours where the method asks for them."""
    for voxels in regions:
        graph = graph_for(method, scheme.connectivity).get("connectivity")
        graph = None if graph is None else graph[voxels][:, voxels]
        yield np.ascontiguousarray(X[:, voxels]), replace(scheme, connectivity=graph)


def join_scores(
    parts: Sequence[RegionScores],
    plan: PermutationPlan | None = None,
    nulls: Sequence[Sequence[RegionNull]] = (),
) -> RegionTest:
    """The test of all regions from the scores of some at a time, in their order.

    ``nulls`` are, for some regions at a time, the answers to all chunks of the plan.
    """
    by_fold = np.concatenate([part.accuracy for part in parts])
    failed = np.concatenate([part.n_failed for part in parts])
    mean = by_fold.mean(axis=1)
    n_folds = by_fold.shape[1]
    spread = by_fold.std(axis=1, ddof=1) / np.sqrt(n_folds) if n_folds > 1 else np.full(len(mean), np.nan)
    if plan is None:
        return RegionTest(mean, spread, failed)
    score, auc, failures = (
        np.concatenate([np.concatenate([getattr(each, name) for each in some], axis=1) for some in nulls])
        for name in RegionNull._fields
    )
    null, failed = score[:, plan.place], failures[:, np.unique(plan.place)].sum(axis=1)
    said = plan.n_distinct, plan.caution, plan.floor
    return RegionTest(null[:, 0], spread, failed, null[:, 1:], *said, auc[:, plan.place])
