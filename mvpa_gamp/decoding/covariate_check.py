"""Does a covariate alone tell the classes apart? Asked before the first fit, of every covariate by itself."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .exchange import find_exchange
from .folds import Folds, leave_one_run_out
from .permutation import holm
from .tasks import Task

# Of a false alarm about a comparison: Holm's correction is over its covariates. Corrected for all comparisons
# too, a covariate of 82 % accuracy was named in 11 % of designs of eight runs.
_LEVEL = 0.05
_PERMUTATIONS = 999
# Where too few labellings exist for that level, a covariate is named from this accuracy on. Chance reaches it
# in 0.7 % of designs of four runs of two blocks and in 4 % of three runs; 0.8 in 5 and 15 % (1,500 designs).
_ACCURATE = 0.9


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

    >>> import numpy as np
    >>> from mvpa_gamp.decoding import check_covariates, make_tasks
    >>> shown, runs = np.tile(np.repeat(["cat", "face"], 4), 8), np.repeat(np.arange(8), 8)
    >>> seconds = np.random.default_rng(0).normal(size=(64, 2)) + np.outer(shown == "face", [3, 0])
    >>> found = check_covariates(seconds, ["rt", "age"], make_tasks(shown, [("face", "cat")]), runs)
    >>> [(each.covariate, each.decodes) for each in found]
    [('rt', True), ('age', False)]
    """
    values, runs = np.asarray(values, dtype=float), np.asarray(runs)
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
    testable = least * len(names) <= _LEVEL
    return [
        CovariateCheck(
            name,
            task.name,
            task.label,
            accuracy=float(score[0]),
            p_value=float(p),
            p_value_holm=float(corrected),
            decodes=bool(corrected <= _LEVEL if testable else score[0] >= _ACCURATE),
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
