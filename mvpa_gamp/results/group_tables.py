"""Tables of a group: accuracies of participants, the test of each one, and the row that they make."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.decoding.group import (
    bayesian_prevalence,
    bounded,
    holm_of_known,
    mean_test,
    minimum_statistic,
    run_test,
    smallest_run_p,
)

ACCURACY_COLUMNS = (
    "subject", "contrast", "comparison", "method", "accuracy_percent", "chance_percent",
    "runs", "runs_above_chance", "test", "p_value", "significant",
)  # fmt: skip
SUMMARY_COLUMNS = (
    "contrast", "comparison", "method", "participants",
    "accuracy_percent", "accuracy_se_percent", "lowest_percent", "highest_percent", "chance_percent",
    "balanced_percent", "balanced_low_percent", "balanced_high_percent",
    "t_value", "t_p_value", "t_p_holm", "signflip_p_value", "signflip_p_holm", "signflip_smallest_p",
    "comparisons_tested",
    "test", "tested", "significant",
    "prevalence", "prevalence_low", "prevalence_high", "majority_probability",
    "minimum_p_value", "minimum_p_holm", "minimum_bound",
)  # fmt: skip
_PREVALENCE = (
    "prevalence", "prevalence_low", "prevalence_high", "majority_probability", "minimum_p_value",
    "minimum_p_holm", "minimum_bound",
)  # fmt: skip
_TESTS = (
    "balanced_percent", "balanced_low_percent", "balanced_high_percent",
    "t_value", "t_p_value", "signflip_p_value", "signflip_smallest_p",
)  # fmt: skip
_CORRECTED = {
    "t_p_value": "t_p_holm",
    "signflip_p_value": "signflip_p_holm",
    "minimum_p_value": "minimum_p_holm",
}
DIFFERENCE_COLUMNS = (
    "between", "within", "first", "second", "participants",
    "difference_percent", "low_percent", "high_percent",
    "t_value", "t_p_value", "signflip_p_value", "signflip_smallest_p", "signflip_p_holm", "tests_in_family",
)  # fmt: skip
AVERAGE = "average"  # over comparisons
Values = dict[tuple[str, str, str], NDArray]  # balanced accuracy and area of a participant, two names


class OwnTest(NamedTuple):
    """A participant's own permutation test."""

    score: float  # 0 to 1: accuracy, or balanced accuracy where categories are unequal
    null: NDArray  # (n,) the same of permuted labels
    p_value: float
    smallest: float  # the smallest p-value that it could have given


@dataclass(frozen=True)
class Score:
    """One participant on one comparison by one method, and its own permutation test if there is one.

    ``level`` is the balanced accuracy by chance: 1/2, or 1/K of K classes. ``runs_count`` says whether runs
    above chance may be counted as a test: not where the folds are those of several classes or of a cross,
    whose dependence is another one.
    """

    subject: str
    contrast: str
    comparison: str
    method: str
    accuracy: float  # mean over held-out runs, 0 to 1
    chance: float  # of the more frequent category
    by_run: tuple[float, ...]  # balanced accuracy of each held-out run
    auc: float = math.nan  # mean area under the ROC curve, which orders equal accuracies of the group
    own: OwnTest | None = None
    level: float = 0.5
    runs_count: bool = True

    @property
    def runs(self) -> int:
        """Held-out runs with all categories."""
        return len(self.by_run)

    @property
    def balanced(self) -> float:
        """Mean over runs of the balanced accuracy, whose chance does not depend on how rare a category is."""
        return float(np.mean(self.by_run)) if self.by_run else math.nan

    @property
    def test(self) -> str:
        """The name of the participant's own test."""
        if self.own is not None:
            return "permutation"
        return "sign test over runs" if self.runs_count else "none"

    @property
    def p_value(self) -> float:
        """Of the permutation test where there is one, else of the sign test over runs; NaN without a test."""
        if self.own is not None:
            return self.own.p_value
        return run_test(self.by_run) if self.runs_count else math.nan

    @property
    def smallest_p(self) -> float:
        """What the test could reach at best."""
        if self.own is not None:
            return self.own.smallest
        return smallest_run_p(self.runs) if self.runs_count else math.inf

    def testable(self, alpha: float) -> bool:
        """Whether the test can reach alpha at all."""
        return self.smallest_p <= alpha


def accuracy_row(score: Score, alpha: float) -> dict[str, Any]:
    """A line of the table of participants."""
    return {
        "subject": score.subject,
        "contrast": score.contrast,
        "comparison": score.comparison,
        "method": score.method,
        "accuracy_percent": 100 * score.accuracy,
        "chance_percent": 100 * score.chance,
        "runs": score.runs,
        "runs_above_chance": sum(value > score.level + 1e-9 for value in score.by_run),
        "test": name_of_test([score]),
        "p_value": score.p_value,
        "significant": score.p_value <= alpha if score.testable(alpha) else None,
    }


def group_rows(scores: Sequence[Score], alpha: float) -> list[dict[str, Any]]:
    """The group's table: a line per comparison and method; Holm's correction over comparisons of a method."""
    groups: dict[tuple[str, str, str], list[Score]] = {}
    for score in scores:
        groups.setdefault((score.contrast, score.comparison, score.method), []).append(score)
    rows = [group_row(members, alpha) for members in groups.values()]
    for method in dict.fromkeys(row["method"] for row in rows):
        mine = [row for row in rows if row["method"] == method]
        for name, corrected in _CORRECTED.items():
            known = [math.nan if row[name] is None else row[name] for row in mine]
            for row, p in zip(mine, holm_of_known(known), strict=True):
                row[corrected] = None if math.isnan(p) else p
        tested = sum(row["balanced_percent"] is not None for row in mine)
        for row in mine:
            row["comparisons_tested"] = tested
    return rows


def group_row(scores: Sequence[Score], alpha: float) -> dict[str, Any]:
    """A line of the group's table: mean and standard error over participants, and the prevalence."""
    values = np.array([score.accuracy for score in scores])
    tested = [score for score in scores if score.testable(alpha)]
    significant = sum(score.p_value <= alpha for score in tested)
    row = {
        "contrast": scores[0].contrast,
        "comparison": scores[0].comparison,
        "method": scores[0].method,
        "participants": len(scores),
        "accuracy_percent": 100 * values.mean(),
        "accuracy_se_percent": _standard_error(100 * values),
        "lowest_percent": 100 * values.min(),
        "highest_percent": 100 * values.max(),
        "chance_percent": 100 * float(np.mean([score.chance for score in scores])),
        "test": name_of_test(scores),
        "tested": len(tested),
        "significant": significant,
    }
    return {**row, **_above_chance(scores), **_prevalence(tested, significant, alpha)}


def _above_chance(scores: Sequence[Score]) -> dict[str, Any]:
    """Mean balanced accuracy with its 95 % interval, and tests of it against chance."""
    level = scores[0].level
    known = [score for score in scores if not math.isnan(score.balanced)]
    if not known:
        return dict.fromkeys(_TESTS)
    found = mean_test([each.balanced - level for each in known], finer=[each.auc - 0.5 for each in known])
    return {
        "balanced_percent": 100 * (level + found.mean),
        "balanced_low_percent": 100 * bounded(level + found.low, 0, 1),
        "balanced_high_percent": 100 * bounded(level + found.high, 0, 1),
        "t_value": found.t,
        "t_p_value": found.t_p,
        "signflip_p_value": found.flip_p,
        "signflip_smallest_p": found.smallest_p,
    }


def _prevalence(tested: Sequence[Score], significant: int, alpha: float) -> dict[str, Any]:
    """The posterior, and where every participant has a permutation null the minimum statistic as well."""
    out: dict[str, Any] = dict.fromkeys(_PREVALENCE)
    if tested:
        found = bayesian_prevalence(significant, len(tested), alpha)
        out |= {
            "prevalence": found.mode,
            "prevalence_low": found.low,
            "prevalence_high": found.high,
            "majority_probability": found.majority,
        }
    own = [score.own for score in tested if score.own is not None]
    if tested and len(own) == len(tested):
        smallest = minimum_statistic([each.score for each in own], [each.null for each in own], alpha)
        out |= {"minimum_p_value": smallest.pvalue, "minimum_bound": smallest.bound}
    return out


def name_of_test(scores: Sequence[Score]) -> str:
    """The test, or the tests, by which these scores are judged."""
    return " and ".join(sorted({score.test for score in scores}))


def _standard_error(values: NDArray) -> float:
    """Over participants; NaN of a single one."""
    return float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan


def difference_rows(scores: Sequence[Score]) -> list[dict[str, Any]]:
    """All pairs of methods on every comparison and on their average, all pairs of comparisons by a method.

    Differences of balanced accuracies of the participants who have both, tested two-sided; sign patterns
    with equal means are ordered by differences of areas under the ROC curve. Families of Holm's
    correction: pairs of methods on all comparisons; pairs of methods on the average; pairs of comparisons
    by one method.
    """
    values = {
        (s.subject, s.contrast, s.method): np.array([s.balanced, s.auc])
        for s in scores
        if not math.isnan(s.balanced)
    }
    subjects, contrasts, methods = (
        list(dict.fromkeys(getattr(s, name) for s in scores)) for name in ("subject", "contrast", "method")
    )
    rows: list[dict[str, Any]] = []
    pairs = list(combinations(methods, 2))
    each = [_row(values, subjects, "methods", c, *pair) for c in contrasts for pair in pairs]
    rows += _corrected(each)
    if len(contrasts) > 1:
        means = {(s, AVERAGE, m): _mean(values, s, contrasts, m) for s in subjects for m in methods}
        whole = {key: value for key, value in means.items() if not math.isnan(value[0])}
        rows += _corrected([_row(whole, subjects, "methods", AVERAGE, *pair) for pair in pairs])
    turned = {(s, m, c): value for (s, c, m), value in values.items()}
    for method in methods:
        some = [_row(turned, subjects, "comparisons", method, *pair) for pair in combinations(contrasts, 2)]
        rows += _corrected(some)
    return rows


def _row(
    values: Values, subjects: Sequence[str], between: str, within: str, first: str,
    second: str,
) -> dict[str, Any] | None:  # fmt: skip
    """One difference; None where fewer than two participants have both."""
    both = [s for s in subjects if (s, within, first) in values and (s, within, second) in values]
    if len(both) < 2:
        return None
    balanced, areas = np.transpose([values[s, within, first] - values[s, within, second] for s in both])
    found = mean_test(balanced, two_sided=True, finer=areas)
    return {
        "between": between,
        "within": within,
        "first": first,
        "second": second,
        "participants": found.n,
        "difference_percent": 100 * found.mean,
        "low_percent": 100 * bounded(found.low, -1, 1),
        "high_percent": 100 * bounded(found.high, -1, 1),
        "t_value": found.t,
        "t_p_value": found.t_p,
        "signflip_p_value": found.flip_p,
        "signflip_smallest_p": found.smallest_p,
    }


def _mean(values: Values, subject: str, contrasts: Sequence[str], method: str) -> NDArray:
    """A participant's means over all comparisons; NaN where one is missing."""
    each = [values.get((subject, contrast, method), np.full(2, np.nan)) for contrast in contrasts]
    return np.mean(each, axis=0)


def _corrected(rows: Sequence[dict[str, Any] | None]) -> list[dict[str, Any]]:
    """The rows of a family with Holm's correction over it."""
    known = [row for row in rows if row is not None]
    for row, p in zip(known, holm_of_known([row["signflip_p_value"] for row in known]), strict=True):
        row |= {"signflip_p_holm": p, "tests_in_family": len(known)}
    return known
