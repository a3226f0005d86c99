"""Paired differences over participants: two methods on a comparison, or two comparisons by a method."""

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .group import Score
from .group_tests import bounded, holm_of_known, mean_test

DIFFERENCE_COLUMNS = (
    "between", "within", "first", "second", "participants",
    "difference_percent", "low_percent", "high_percent",
    "t_value", "t_p_value", "signflip_p_value", "signflip_smallest_p", "signflip_p_holm", "tests_in_family",
)  # fmt: skip
AVERAGE = "average"  # over comparisons

Values = dict[tuple[str, str, str], NDArray]  # balanced accuracy and area of a participant, two names


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
