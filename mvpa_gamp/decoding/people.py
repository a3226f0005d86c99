"""How maps of people are told apart: forced choice within people, sensitivity, specificity, area under ROC.

A decision without a threshold: of the two maps (or the means of the maps) of a held-out participant, the one
with the larger value is called the first condition. What all maps of a person share, such as a strong
response everywhere, cancels.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .permutation import PermutationTest
from .scores import roc_areas

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
