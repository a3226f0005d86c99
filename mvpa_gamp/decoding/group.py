"""Tests over participants: mean with its interval, sign flips, t, paired differences, Holm's correction.

Participants are independent, so their values may be tested as they are; what they say is about the mean of
the population. A mean above chance can come from a few participants: prevalence says more.
Maps of people are told apart by forced choice, a decision without a threshold: of the two maps (or the means
of the maps) of a held-out participant, the one with the larger value is called the first condition. What all
maps of a person share, such as a strong response everywhere, cancels.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from .permutation import PermutationTest, holm, places, share_as_good
from .scores import roc_areas

EXACT = 16  # participants up to which every sign pattern of a single value is tried: 65,536
EXACT_MAPS = 13  # and of a map: 4,096 pairs of patterns
DRAWS = 9_999  # random sign patterns beyond, the observed one comes on top
_TIE = 1e-9
_CHUNK = 64  # sign patterns of a map at a time
_NODES = 120  # of the quadrature over what folds share; tails are exact to 1e-9
_SAME = 1e-5  # accuracies of tables have six digits and differ by a volume or more
_GRID = 20_001  # points for the highest-density interval: steps of 5e-5


@dataclass(frozen=True)
class MeanTest:
    """A mean over n participants: interval and two tests; NaN where there are too few participants."""

    n: int
    mean: float
    low: float
    high: float
    t: float
    t_p: float
    flip_p: float
    smallest_p: float  # what sign flips can reach at best


@dataclass(frozen=True)
class FlipMap:
    """T values (N,) of a mean map, family-wise p-values (N,) by sign flips, and how many patterns."""

    t: NDArray
    p: NDArray
    n_patterns: int
    smallest_p: float


def bounded(value: float, least: float, most: float) -> float:
    """The end of an interval where values cannot lie beyond some others; NaN stays NaN.

    >>> bounded(1.2, 0, 1), bounded(0.3, 0, 1)
    (1.0, 0.3)
    """
    return float(np.clip(value, least, most))


def smallest_flip_p(n: int, two_sided: bool) -> float:
    """The smallest p-value that sign flips of n values can give, if every pattern is tried."""
    return min(1.0, (2 if two_sided else 1) * 0.5**n)


def mean_test(values: Any, two_sided: bool = False, level: float = 0.95, finer: Any = None) -> MeanTest:
    """Test whether the mean of values (n,), such as accuracy minus chance, is above 0 (or differs from it).

    Under the null the sign of each participant's value is a coin: the sign-flip p-value is the share of sign
    patterns whose mean is at least as large. All 2^n of them up to 16 participants, else 9,999 random ones
    and the observed one. Patterns with equal means are ordered by the mean of ``finer`` values (n,), such as
    areas under the ROC curve minus 1/2, whose signs flip with the others; without them, or with NaN, ties
    count against the data. The t-test takes values as normal, the interval too.

    Parameters
    ----------
    values
        One per participant, (n,).
    two_sided
        Whether means below 0 count, too.
    level
        Of the interval.
    finer
        Values (n,) that order equal means.

    Returns
    -------
    MeanTest
        Mean, interval, and p-values of sign flips and of the t-test.

    Examples
    --------
    >>> found = mean_test([0.1, 0.2, 0.05, 0.15, 0.1, 0.3])
    >>> round(found.flip_p, 4), found.flip_p == found.smallest_p
    (0.0156, True)
    """
    values = np.asarray(values, dtype=float)
    n = values.size
    if n == 0 or not np.isfinite(values).all():
        raise ValueError(f"Expected finite values of at least one participant, got {values}. Check them.")
    mean = float(values.mean())
    if n < 2:
        return MeanTest(
            n, mean, math.nan, math.nan, math.nan, math.nan, math.nan, smallest_flip_p(n, two_sided)
        )
    error = float(values.std(ddof=1)) / math.sqrt(n)
    half = float(stats.t.ppf((1 + level) / 2, n - 1)) * error
    t = mean / error if error > 0 else math.copysign(math.inf, mean) if mean else 0.0
    tail = float(stats.t.sf(abs(t) if two_sided else t, n - 1)) * (2 if two_sided else 1)
    known = np.full(n, np.nan) if finer is None else np.asarray(finer, dtype=float)
    flip, smallest = _flip_p(values, known, two_sided)
    return MeanTest(n, mean, mean - half, mean + half, t, min(1.0, tail), flip, smallest)


def _flip_p(values: NDArray, finer: NDArray, two_sided: bool) -> tuple[float, float]:
    """P-value by sign flips, and the smallest one there could be."""
    sums, ties = (sign_patterns(values.size, EXACT) @ np.column_stack([values, finer])).T
    if two_sided:  # a pattern and its opposite are one: the finer mean counts in the direction of the other
        ties = np.where(np.abs(sums) > _TIE, np.sign(sums) * ties, np.abs(ties))
        sums = np.abs(sums)
    smallest = smallest_flip_p(values.size, two_sided) if values.size <= EXACT else 1 / len(sums)
    return float(share_as_good(places(sums, ties))), smallest


def sign_patterns(n: int, exact: int, half: bool = False) -> NDArray:
    """Sign patterns (S, n) of -1/+1, the observed one (all +1) first; all of them up to ``exact`` values.

    ``half`` leaves out patterns that are another one turned over, which a two-sided statistic cannot tell.
    """
    if n > exact:
        drawn = np.random.default_rng(0).choice(np.array([-1.0, 1.0]), size=(DRAWS, n))
        return np.vstack([np.ones(n), drawn])
    count = 2 ** (n - 1) if half else 2**n
    bits = (np.arange(count)[:, None] >> np.arange(n)) & 1
    return 1.0 - 2.0 * bits


def holm_of_known(pvalues: Sequence[float]) -> list[float]:
    """Holm's correction over a family of tests; NaN (no test) stays NaN and is not counted.

    >>> holm_of_known([0.01, float("nan"), 0.03])
    [0.02, nan, 0.03]
    """
    p = np.asarray(pvalues, dtype=float)
    known = ~np.isnan(p)
    p[known] = holm(p[known])
    return [float(each) for each in p]


def flip_map(maps: NDArray) -> FlipMap:
    """T values of the mean over participants of maps (n, N), with family-wise p-values by sign flips.

    The p-value of a voxel is the share of sign patterns whose largest |t| of all voxels is at least its own:
    the chance of any false voxel is at most the level (Nichols & Holmes, 2002). Two-sided. Since squares do
    not change with signs, |t| grows with |sum| / sqrt(sum of squares), which is what patterns are compared
    by. All 2^(n-1) pairs of patterns up to 13 participants.

    Parameters
    ----------
    maps
        One per participant, (n, N).

    Returns
    -------
    FlipMap
        T values and p-values, (N,) each.

    Examples
    --------
    >>> maps = np.random.default_rng(0).normal(size=(8, 50)) + 4 * (np.arange(50) < 2)
    >>> flip_map(maps).p[:3].round(4)
    array([0.0078, 0.0078, 1.    ])
    """
    maps = np.asarray(maps, dtype=float)
    squares = np.sqrt((maps**2).sum(axis=0))
    scaled = np.divide(maps, squares, out=np.zeros_like(maps), where=squares > 0)
    observed = np.abs(scaled.sum(axis=0))
    largest = np.concatenate(list(_largest(scaled)))
    p = np.array(1.0 - np.searchsorted(np.sort(largest), observed - _TIE, side="left") / largest.size)
    return FlipMap(_t_values(maps), p, largest.size, 1 / largest.size)


def _largest(scaled: NDArray) -> Iterator[NDArray]:
    """The largest statistic of all voxels, pattern by pattern."""
    patterns = sign_patterns(len(scaled), EXACT_MAPS, half=True)
    for start in range(0, len(patterns), _CHUNK):
        yield np.abs(patterns[start : start + _CHUNK] @ scaled).max(axis=1)


def _t_values(maps: NDArray) -> NDArray:
    """T (N,); 0 where participants do not differ from zero or from each other."""
    error = maps.std(axis=0, ddof=1) / math.sqrt(len(maps))
    return np.divide(maps.mean(axis=0), error, out=np.zeros(maps.shape[1]), where=error > 0)


@dataclass(frozen=True)
class BayesianPrevalence:
    """Posterior of the prevalence: its mode, 95 % highest-density interval and P(g > 1/2)."""

    significant: int
    participants: int
    mode: float
    low: float
    high: float
    majority: float


@dataclass(frozen=True)
class MinimumStatistic:
    """Allefeld's test: p of the global null, and the largest prevalence that the data reject at alpha."""

    participants: int
    pvalue: float  # of g = 0, no participant above chance
    bound: float  # g is larger than this at level alpha; NaN where not even g = 0 is rejected


def run_test(accuracies: Sequence[float], chance: float = 0.5) -> float:
    """P-value P(K >= k) of a sign test whose units are runs, for folds that share training runs.

    k of the R held-out runs have a (balanced) accuracy above chance; ties count against the data. Volumes of
    a run are correlated and are not counted one by one. K is the number above chance without any signal, see
    :func:`runs_above_by_chance`.
    """
    above = sum(value > chance + 1e-9 for value in accuracies)
    return float(runs_above_by_chance(len(accuracies))[above])


def smallest_run_p(runs: int) -> float:
    """What :func:`run_test` gives when all runs are above chance."""
    return float(runs_above_by_chance(runs)[runs])


def runs_above_by_chance(runs: int) -> NDArray:
    """P(K >= k), k = 0 .. R, for the number K of held-out runs above chance when there is no signal.

    A linear classifier that leaves run r out asks whether sum_q d_q . d_r > 0, with d the difference of the
    two categories in a run. Without signal the products d_q . d_r of two runs are independent of each other
    if voxels are many, and each serves two folds. So the R sums are normal and correlated by 1 / (R - 1), and
    K given their common part u ~ N(0, 1) is binomial with probability Phi(u / sqrt(R - 2)). With few
    independent voxels the tail is lighter (measured for 1 to 200), so this is the careful choice. A binomial
    test that takes folds for independent gives p-values two to twelve times too small.

    >>> runs_above_by_chance(8).round(3)[-2:]
    array([0.088, 0.02 ])
    """
    if runs < 3:
        return np.array([1.0, *[0.5] * runs])
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    chance = stats.norm.cdf(nodes / math.sqrt(runs - 2))
    tails = stats.binom.sf(np.arange(runs + 1)[:, None] - 1, runs, chance)
    return np.asarray(tails @ (weights / weights.sum()))


def bayesian_prevalence(significant: int, participants: int, alpha: float = 0.05) -> BayesianPrevalence:
    """Posterior of the prevalence when k of n participants are significant at alpha (Ince et al. 2021).

    A participant is significant with probability t = alpha + (1 - alpha) g; a uniform prior on g makes
    t ~ Beta(k + 1, n - k + 1) on [alpha, 1]. The test is taken to miss nobody (sensitivity 1), so g is the
    prevalence of effects that this experiment can detect, a lower bound of the prevalence of effects.
    """
    if not 0 <= significant <= participants or participants < 1 or not 0 < alpha < 1:
        raise ValueError(
            f"Expected 0 <= k <= n, n >= 1 and 0 < alpha < 1, got k = {significant}, n = {participants}, "
            f"alpha = {alpha}. Correct them."
        )
    beta = stats.beta(significant + 1, participants - significant + 1)
    share = np.linspace(0, 1, _GRID)
    mass = np.diff(beta.cdf(alpha + (1 - alpha) * share)) / beta.sf(alpha)
    low, high = _densest(mass, share)
    mode = max(0.0, (significant / participants - alpha) / (1 - alpha))
    majority = float(beta.sf(alpha + (1 - alpha) / 2) / beta.sf(alpha))
    return BayesianPrevalence(significant, participants, mode, low, high, majority)


def minimum_statistic(
    scores: Sequence[float], nulls: Sequence[NDArray], alpha: float = 0.05
) -> MinimumStatistic:
    """Prevalence from the smallest accuracy of n participants and their permutation nulls.

    With m = min score, the global null gives p = prod_i P_i(null_i >= m), each null with the observed score
    as one of its members: the share over all combinations of first-level permutations. Prevalence g is
    rejected when ((1 - g) p^(1/n) + g)^n <= alpha, so the bound is (alpha^(1/n) - p^(1/n)) / (1 - p^(1/n)).
    """
    smallest = min(scores) - _SAME
    shares = [(1 + np.count_nonzero(np.asarray(null) >= smallest)) / (1 + np.size(null)) for null in nulls]
    count = len(shares)
    root = math.exp(sum(math.log(share) for share in shares) / count)
    reachable = alpha ** (1 / count)
    bound = (reachable - root) / (1 - root) if root <= reachable and root < 1 else math.nan
    return MinimumStatistic(count, root**count, bound)


def _densest(mass: NDArray, share: NDArray) -> tuple[float, float]:
    """Ends of the smallest set of cells with 95 % of the mass; the posterior has one peak."""
    order = np.argsort(-mass, kind="stable")
    needed = int(np.searchsorted(np.cumsum(mass[order]), 0.95)) + 1
    cells = order[:needed]
    return float(share[cells.min()]), float(share[cells.max() + 1])


_NORMAL = 1.959964  # of a 95 % interval


@dataclass(frozen=True)
class PeopleScores:
    """Of held-out maps: shares from 0 to 1, NaN where there are none of a kind.

    ``choice`` is the share of participants whose maps of the first side have the larger mean decision (a tie
    counts one half), ``low`` and ``high`` its 95 % interval, ``pvalue`` that of its permutation test.
    """

    n: int  # participants with maps of both sides
    choice: float
    low: float
    high: float
    pvalue: float
    sensitivity: float  # maps of the first side that are called so
    specificity: float  # maps of the second side that are called so
    auc: float


def people_scores(
    decision: Any, y: Any, people: Any, test: PermutationTest | None = None, by_person: bool = True
) -> PeopleScores:
    """Scores of the held-out decisions (T,) of maps with labels y (T,) in -1/+1, of people (T,).

    The interval is Wilson's, wider where the permutation ``test`` shows that chance varies more: classifiers
    of different folds share most of their training maps, so that choices are not independent and a binomial
    test has 9 to 12 % false positives at 5 %. The p-value therefore comes from the test: its area under the
    ROC curve within a fold, which is the forced choice where a fold holds out one person (``by_person``) with
    a map of each side.

    >>> people_scores([2.0, 1.0, 0.5, -1.0], [1, -1, 1, -1], [1, 1, 2, 2]).choice
    1.0
    """
    decision, y, people = np.asarray(decision, dtype=float), np.asarray(y), np.asarray(people)
    both = [one for one in np.unique(people) if np.ptp(y[people == one]) > 0]
    means = [[decision[(people == one) & (y == sign)].mean() for sign in (1, -1)] for one in both]
    right = np.array([0.5 + 0.5 * np.sign(first - second) for first, second in means])
    choice = float(right.mean()) if both else math.nan
    pairs = by_person and all(np.sum(people == one) == 2 for one in both) and len(both) > 0
    null = test.null_auc if test is not None and pairs else None
    low, high = _interval(choice, len(both), null)
    return PeopleScores(
        n=len(both),
        choice=choice,
        low=low,
        high=high,
        pvalue=math.nan if null is None or test is None else _pvalue(choice, null, test.floor),
        sensitivity=_share(decision[y > 0] > 0),
        specificity=_share(decision[y < 0] < 0),
        auc=float(roc_areas(decision, y > 0, y <= 0)),
    )


def _share(values: NDArray) -> float:
    return float(values.mean()) if values.size else math.nan


def _pvalue(choice: float, null: NDArray, floor: float) -> float:
    """Ties count against the data."""
    return max((1 + int(np.sum(null >= choice - 1e-9))) / (1 + null.size), floor)


def _interval(share: float, n: int, null: NDArray | None) -> tuple[float, float]:
    """Wilson's interval for as many independent choices as vary like those of permuted labels."""
    if not n:
        return math.nan, math.nan
    if null is not None and (variance := float(np.var(null))) > 0:
        n = min(n, 0.25 / variance)  # type: ignore[assignment]
    z2 = _NORMAL**2
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = _NORMAL / (1 + z2 / n) * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    return max(0.0, middle - half), min(1.0, middle + half)
