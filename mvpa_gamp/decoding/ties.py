"""What labels may be tied to: their order within runs, runs and sessions, or a covariate.

Exact rank tests over blocks, and a permutation test of every covariate by itself.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from .exchange import find_exchange
from .folds import Folds, leave_one_run_out
from .permutation import holm
from .tasks import Task

AGREEMENT = 0.9  # share of pairs of blocks in the same order, from which on an order is worth a word
TIED = 0.5  # share of the labels' variance between runs, likewise
_LEVEL = 0.05  # of the order of any comparison, in one study
_FIXED = 0.01  # of one order of all conditions in every run
_BETWEEN = 0.01  # of labels tied to runs or sessions, in one study
_DRAWS = 2000
_EXACT = 400  # pairs of blocks in a run up to which rank sums are counted one by one
_SHOWN = 3  # comparisons listed in a sentence
# Of a false alarm about a comparison: Holm's correction is over its covariates. Corrected for all comparisons
# too, a covariate of 82 % accuracy was named in 11 % of designs of eight runs.
_LEVEL_OF_COVARIATES = 0.05
_PERMUTATIONS = 999
# Where too few labellings exist for that level, a covariate is named from this accuracy on. Chance reaches it
# in 0.7 % of designs of four runs of two blocks and in 4 % of three runs; 0.8 in 5 and 15 % (1,500 designs).
_ACCURATE = 0.9


def order_findings(
    conditions: NDArray, runs: NDArray, pairs: Sequence[tuple[Any, Any]], word: str = "run"
) -> list[str]:
    """Comparisons whose one side comes first; ``conditions`` and ``runs`` (U,) are those of blocks, in order.

    The agreement of a comparison is the share of pairs of blocks of one run, one of each side, in which the
    same side comes first. It is told from 0.9 on, if the exact test of it has p <= 0.05 / comparisons, or if
    the order of all conditions is more alike over runs than in 99 % of random orders.
    """
    fixed = _fixed_order(conditions, runs) <= _FIXED
    told = []
    for a, b in pairs:
        share, p, n_runs = agreement(conditions, runs, a, b)
        if max(share, 1 - share) >= AGREEMENT and (fixed or p <= _LEVEL / len(pairs)):
            first, second = (a, b) if share > 0.5 else (b, a)
            said = f"all {n_runs} {word}s" if share in (0.0, 1.0) else f"{100 * max(share, 1 - share):.0f} %"
            told.append(f"{first} before {second} in {said}")
    if not told:
        return []
    return [
        f"The order of conditions hardly varies across {word}s ({_listed(told)}): anything that changes "
        f"during a {word}, such as drift, fatigue or adaptation, also distinguishes them. Detrending "
        "and filtering do not undo this: each volume then contains parts of the others, by its place. "
        "Compare conditions whose order varies; in a new study, randomise the order."
    ]


def run_findings(
    conditions: NDArray, runs: NDArray, pairs: Sequence[tuple[Any, Any]], sessions: NDArray | None, word: str
) -> list[str]:
    """Comparisons whose sides were measured in different runs, sessions, or parts of the experiment."""
    told: dict[str, list[str]] = {}
    for a, b in pairs:
        rows = np.isin(conditions, [a, b])
        y, limit = (conditions[rows] == a).astype(float), _BETWEEN / len(pairs)
        grouped = {word: runs[rows]} | ({} if sessions is None else {"session": sessions[rows]})
        tied = [name for name, groups in grouped.items() if _is_tied(y, groups, limit)]
        if not tied and _is_early(y, runs[rows], limit):
            tied = ["part of the experiment"]
        if tied:
            told.setdefault(tied[-1], []).append(f"{a} and {b}")
    return [
        f"Conditions were measured in different {what}s: {_listed(names)}. Any difference between {what}s "
        f"is decoded along with them: compare conditions measured in the same {what}s."
        for what, names in ((_plural(name), names) for name, names in told.items())
    ]


def agreement(conditions: NDArray, runs: NDArray, a: Any, b: Any) -> tuple[float, float, int]:
    """The share of pairs of blocks (one of a, one of b, same run) with a first; its two-sided p; the runs.

    P is exact: under random orders the count in a run has Mann and Whitney's distribution, and counts of runs
    add up. Large runs are taken as normal.
    """
    counts, sizes = 0.0, []
    for run in dict.fromkeys(runs.tolist()):
        mine = conditions[runs == run]
        first, second = np.flatnonzero(mine == a), np.flatnonzero(mine == b)
        if first.size and second.size:
            counts += float((first[:, None] < second).sum())
            sizes.append((first.size, second.size))
    total = sum(n * m for n, m in sizes)
    if not total:
        return 0.5, 1.0, 0
    return counts / total, _two_sided(counts, sizes), len(sizes)


def _two_sided(count: float, sizes: Sequence[tuple[int, int]]) -> float:
    """P of a count at least as far from its mean."""
    total = sum(n * m for n, m in sizes)
    far = abs(count - total / 2)
    if max(n * m for n, m in sizes) > _EXACT:
        variance = sum(n * m * (n + m + 1) / 12 for n, m in sizes)
        return float(2 * stats.norm.sf((far - 0.5) / np.sqrt(variance)))
    chances = np.ones(1)
    for n, m in sizes:
        chances = np.convolve(chances, _rank_counts(n, m))
    return float(chances[np.abs(np.arange(total + 1) - total / 2) >= far - 1e-9].sum())


@lru_cache(maxsize=256)
def _rank_counts(n: int, m: int) -> NDArray:
    """P(U = u), u = 0 .. n m, of Mann and Whitney's U: Gauss's binomial coefficients, built row by row."""
    ways = np.ones(1)
    for k in range(1, n + 1):
        raised = np.zeros(ways.size + m + k)
        raised[: ways.size] += ways
        raised[m + k : m + k + ways.size] -= ways
        for u in range(k, raised.size):  # division by 1 - q^k
            raised[u] += raised[u - k]
        ways = np.round(raised[: k * m + 1])
    return ways / ways.sum()


def _fixed_order(conditions: NDArray, runs: NDArray) -> float:
    """P that random orders within runs are as alike as these; 1 for two conditions, which have their test.

    The statistic is Friedman's: the spread of the conditions' mean places, places running from 0 to 1.
    """
    names, code = np.unique(conditions, return_inverse=True)
    if len(names) < 3:
        return 1.0
    rng = np.random.default_rng(0)
    weight = (code[:, None] == np.arange(len(names))).astype(float) / np.bincount(code)
    drawn = np.empty((_DRAWS + 1, len(code)))
    for run in np.unique(runs):
        members = np.flatnonzero(runs == run)
        place = (np.arange(len(members)) + 0.5) / len(members)
        drawn[0, members] = place
        drawn[1:, members] = rng.permuted(np.tile(place, (_DRAWS, 1)), axis=1)
    spread = (drawn @ weight).var(axis=1)
    return float(np.mean(spread >= spread[0] - 1e-12))


def _is_tied(y: NDArray, groups: NDArray, limit: float) -> bool:
    """Whether labels (U,) differ between groups rather than within, more than by chance."""
    _, of_group = np.unique(groups, return_inverse=True)
    sizes = np.bincount(of_group)

    def between(labels: NDArray) -> NDArray:
        sums = np.stack([np.bincount(of_group, row) for row in np.atleast_2d(labels)])
        return (sums**2 / sizes).sum(axis=1) - y.sum() ** 2 / y.size

    spread = y.var() * y.size
    if not spread or len(sizes) < 2 or between(y)[0] / spread < TIED:
        return False
    drawn = np.random.default_rng(0).permuted(np.tile(y, (_DRAWS * 10, 1)), axis=1)
    return (1 + int(np.sum(between(drawn) >= between(y)[0] - 1e-9))) / (1 + len(drawn)) <= limit


def _is_early(y: NDArray, runs: NDArray, limit: float) -> bool:
    """Whether one side fills the first runs and the other the last."""
    order = {run: k for k, run in enumerate(dict.fromkeys(runs.tolist()))}
    place = np.array([order[run] for run in runs.tolist()])
    one, other = place[y > 0], place[y <= 0]
    if not one.size or not other.size:
        return False
    share = float((one[:, None] < other).mean() + 0.5 * (one[:, None] == other).mean())
    if max(share, 1 - share) < AGREEMENT:
        return False
    return bool(stats.mannwhitneyu(one, other, method="asymptotic").pvalue <= limit)


def _plural(name: str) -> str:
    return name.replace("part of", "parts of").removesuffix("s") if "part" in name else name


def _listed(said: Sequence[str]) -> str:
    """A few of them."""
    more = f" and {len(said) - _SHOWN} more" if len(said) > _SHOWN else ""
    return ", ".join(said[:_SHOWN]) + more


class CovariateCheck(NamedTuple):
    """How well a covariate alone decodes a comparison."""

    covariate: str
    contrast: str
    comparison: str
    accuracy: float  # mean over folds
    p_value: float  # of block labels exchanged within runs
    p_value_holm: float  # corrected for the covariates of the comparison
    decodes: bool

    @property
    def caution(self) -> str:
        """A sentence for the reader, or nothing."""
        if not self.decodes:
            return ""
        return (
            f"The covariate {self.covariate} alone decodes {self.comparison} with an accuracy of "
            f"{self.accuracy:.0%} (p = {self.p_value:.3g}): labels and covariate seem to be confounded (an "
            "unrelated covariate is reported in one of twenty comparisons). After it is regressed out, too "
            "little signal may be left, or its non-linear effects may remain. Unless you want to decode the "
            "covariate itself, balance the design or leave such samples out."
        )


def check_covariates(
    values: Any, names: Sequence[str], tasks: Sequence[Task], runs: Any, blocks: Any = None, seed: int = 0
) -> list[CovariateCheck]:
    """Decode every comparison from each covariate alone, by the nearer class mean, leaving one run out.

    ``values`` (M, C) are of all rows of the study, as are ``runs`` and ``blocks`` (M,). The p-value comes
    from 999 permutations of block labels within runs. A covariate ``decodes`` when its p-value, corrected for
    the covariates (Holm), is at most 0.05; where a design has too few labellings for that, when its accuracy
    is at least 90 %. A difference in spread alone is not seen.

    Parameters
    ----------
    values
        The covariates (M, C).
    names
        Their names.
    tasks
        The comparisons.
    runs
        The run (M,) of every sample.
    blocks
        The block (M,) of every sample; None: stretches of equal labels.
    seed
        Of the random numbers: equal seeds give equal results.

    Returns
    -------
    list of CovariateCheck
        One per covariate: accuracy, p-value, and whether it ``decodes``.

    Examples
    --------
    >>> import numpy as np
    >>> from mvpa_gamp.decoding import check_covariates, make_tasks
    >>> shown, runs = np.tile(np.repeat(["cat", "face"], 4), 8), np.repeat(np.arange(8), 8)
    >>> seconds = np.random.default_rng(0).normal(size=(64, 2)) + np.outer(shown == "face", [3, 0])
    >>> found = check_covariates(seconds, ["rt", "age"], make_tasks(shown, [("face", "cat")]), runs)
    >>> [(each.covariate, each.decodes) for each in found]
    [('rt', True), ('age', False)]
    """
    values, runs = np.asarray(values, dtype=float), np.asarray(runs)
    if values.size:  # accuracies do not depend on the scale, and sums of values such as 1e300 overflow
        values = values / np.where(tops := np.abs(values).max(axis=0), tops, 1)
    blocks = None if blocks is None else np.asarray(blocks)
    return [check for task in tasks for check in _of_task(values, names, task, runs, blocks, seed)]


def _of_task(
    values: NDArray, names: Sequence[str], task: Task, runs: NDArray, blocks: NDArray | None, seed: int
) -> list[CovariateCheck]:
    """All covariates of one comparison."""
    rows, own = task.rows, runs[task.rows]
    exchange = find_exchange(task.y, own, "block", None if blocks is None else blocks[rows])
    labels = np.column_stack([task.y, exchange.draw(_PERMUTATIONS, seed)])
    scores = [_accuracies(covariate, labels, leave_one_run_out(own)) for covariate in values[rows].T]
    reached = [np.count_nonzero(score[1:] >= score[0] - 1e-9) for score in scores]
    pvalues = (1 + np.array(reached)) / (1 + _PERMUTATIONS)
    least = max(exchange.smallest_pvalue, 1 / (1 + _PERMUTATIONS))
    testable = least * len(names) <= _LEVEL_OF_COVARIATES
    return [
        CovariateCheck(
            name,
            task.name,
            task.label,
            accuracy=float(score[0]),
            p_value=float(p),
            p_value_holm=float(corrected),
            decodes=bool(corrected <= _LEVEL_OF_COVARIATES if testable else score[0] >= _ACCURATE),
        )
        for name, score, p, corrected in zip(names, scores, pvalues, holm(pvalues), strict=True)
    ]


def _accuracies(covariate: NDArray, labels: NDArray, folds: Folds) -> NDArray:
    """Mean over folds of the share of held-out rows nearer to the mean of their class, (k,)."""
    positive = labels > 0
    shares = []
    for train, tested in zip(folds.train.T, folds.tested.T, strict=True):
        first, second = (
            covariate[train] @ mine[train] / np.maximum(mine[train].sum(axis=0), 1)
            for mine in (positive, ~positive)
        )
        middle, up = (first + second) / 2, first > second
        said = (covariate[tested, None] > middle) == up
        shares.append((said == positive[tested]).mean(axis=0))
    return np.mean(shares, axis=0)
