"""How common is above-chance decoding in the population? From tests of single participants to a prevalence.

A group mean above chance can come from a single participant, and a t-test of accuracies does not say more
(Allefeld, Goergen & Haynes 2016). Prevalence g is the share of the population whose decoding is above chance.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

_NODES = 120  # of the quadrature over what folds share; tails are exact to 1e-9
_TIE = 1e-5  # accuracies of tables have six digits and differ by a volume or more
_GRID = 20_001  # points for the highest-density interval: steps of 5e-5


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
    smallest = min(scores) - _TIE
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
