"""Cross-decoding: does what tells one comparison apart also tell another apart?

Every run of the tested comparison is predicted by a classifier that was trained on the other comparison in
all other runs, so that nothing of the tested run, neither its rows nor its noise, is known to it. Crosses
and folds are columns of one X.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..methods.fold_fits import FoldFits, Method
from ..methods.fold_input import check_rows
from .cross_folds import prepared_answers, training_sets
from .cross_tasks import Cross, check_crosses
from .crossval import share_by_fold
from .pairwise import solve_columns
from .pattern import haufe_pattern
from .preparation import Preparation
from .scoring import mean_score, score_rows


@dataclass(frozen=True)
class CrossDecoding:
    """Predictions for T held-out rows of a comparison, by a method trained on another comparison.

    ``trained`` are the classifiers, one per distinct training set: a column for every tested run that was
    also trained on without it, or a single one where no tested run belongs to the training part.
    """

    cross: Cross
    method: str
    rows: NDArray  # (T,) rows of X
    y: NDArray  # (T,) in -1/+1
    run: NDArray  # (T,) the tested run of each row
    decision: NDArray  # (T,) positive for the first side
    proba: NDArray  # (T,) probability of the first side, NaN where there is none
    trained: FoldFits

    @property
    def runs(self) -> NDArray:
        """The tested runs, sorted."""
        return np.unique(self.run)

    @property
    def accuracies(self) -> NDArray:
        """Share of rows predicted correctly in each tested run."""
        return share_by_fold((self.decision > 0) == (self.y > 0), self._number, len(self.runs))

    @property
    def accuracy(self) -> float:
        """Mean over tested runs of the share of rows predicted correctly."""
        return float(self.accuracies.mean())

    @property
    def balanced_accuracy(self) -> float:
        """Mean over tested runs of the mean over the two sides of the share predicted correctly."""
        return self._score("balanced_accuracy")

    @property
    def auc(self) -> float:
        """Area under the ROC curve, averaged over the tested runs that have both sides."""
        return self._score("roc_auc")

    @property
    def chance(self) -> float:
        """The accuracy of always predicting the more frequent side of the tested rows."""
        share = float((self.y > 0).mean())
        return max(share, 1 - share)

    @property
    def _number(self) -> NDArray:
        return np.searchsorted(self.runs, self.run)

    def _score(self, scoring: str) -> float:
        said = self.decision > 0
        proba = np.stack([1 - self.proba, self.proba], axis=1)
        answers = (self.decision, proba, said.astype(int))
        scores = score_rows(scoring, np.arange(2), (self.y > 0).astype(int), *answers, self._number)
        return mean_score(scores)


def cross_decode(
    method: Method,
    X: Any,
    crosses: Sequence[Cross],
    runs: Any,
    *,
    connectivity: Any = None,
    preparation: Preparation | None = None,
    n_jobs: int = 1,
) -> list[CrossDecoding]:
    """Train on one comparison, test on another, for each of the ``crosses``; X is (M, N), runs (M,).

    Train rows are those of the training comparison in all runs but the tested one; test rows are those of the
    other comparison in that run. All crosses and folds are columns of one solve on the union of their rows.
    ``preparation`` (``NoiseWhitening``, ``FoldConfounds``) is fitted in every fold to the rows of all
    conditions in its training runs; X and ``runs`` are then those of the whole study.

    >>> import numpy as np
    >>> from mvpa_gamp.decoding import cross_decode, make_crosses
    >>> from mvpa_gamp.methods import METHODS
    >>> shown, runs = np.tile(np.repeat(["cat", "dog", "car", "bus"], 3), 4), np.repeat(np.arange(4), 12)
    >>> large = np.isin(shown, ["dog", "bus"])
    >>> X = np.random.default_rng(0).standard_normal((48, 20)) + 2 * large[:, None] * (np.arange(20) < 4)
    >>> (found,) = cross_decode(METHODS["gamp-bg-lr"], X, make_crosses(shown, ["dog:cat>>bus:car"]), runs)
    >>> found.accuracy > 0.9, found.runs.tolist()
    (True, [0, 1, 2, 3])
    """
    X, runs = check_rows(X, runs, dense=True)
    check_crosses(crosses, runs)
    if preparation is not None:
        how: dict[str, Any] = {"connectivity": connectivity, "n_jobs": n_jobs}
        return _prepared(method, X, crosses, runs, preparation, how)
    rows = np.unique(np.concatenate([cross.rows for cross in crosses]))
    plans = [training_sets(cross.within(rows), cross.train.y[:, None], runs[rows]) for cross in crosses]
    signs = np.concatenate([plan.signs for plan in plans], axis=1)
    distinct, place = np.unique(signs, axis=1, return_inverse=True)
    own = X[rows]
    fits = solve_columns(method, own, distinct.astype(float), distinct != 0, runs[rows], n_jobs, connectivity)
    fits = replace(fits, pattern=haufe_pattern(own, fits.coef, distinct != 0))
    out, at = [], 0
    for cross, plan in zip(crosses, plans, strict=True):
        mine = place.reshape(-1)[at : at + plan.signs.shape[1]]
        at += len(mine)
        tested, column = np.searchsorted(rows, cross.test.rows), mine[plan.column]
        decision, proba = (np.asarray(each[tested, column], float) for each in (fits.decision, fits.proba))
        trained = replace(fits.take(mine), seconds=fits.seconds * len(mine) / distinct.shape[1])
        run = runs[cross.test.rows]
        out.append(
            CrossDecoding(
                cross, method.name, cross.test.rows, cross.test.y, run, decision, proba, _slim(trained)
            )
        )
    return out


def _slim(fits: FoldFits) -> FoldFits:
    """The classifiers without their answers to rows of others."""
    return replace(fits, decision=fits.decision[:0], proba=fits.proba[:0])


def _prepared(
    method: Method,
    X: NDArray,
    crosses: Sequence[Cross],
    runs: NDArray,
    preparation: Preparation,
    how: dict[str, Any],
) -> list[CrossDecoding]:
    """The same with an X of its own in every fold; weights and patterns are those of voxels."""
    decision, proba = ([np.empty(cross.test.rows.size) for cross in crosses] for _ in range(2))
    parts: list[dict[int, FoldFits]] = [{} for _ in crosses]
    asked = [(cross, cross.train.y[:, None]) for cross in crosses]
    for each in prepared_answers(method, X, asked, runs, preparation, maps=True, **how):
        decision[each.cross][each.tested] = each.decision[:, 0]
        proba[each.cross][each.tested] = each.proba[:, 0]
        parts[each.cross][each.fold] = each.fits
    out = []
    for number, cross in enumerate(crosses):
        rows, fits = cross.test.rows, parts[number]
        trained = _slim(FoldFits.join([fits[fold] for fold in sorted(fits)]))
        said = decision[number], proba[number]
        out.append(CrossDecoding(cross, method.name, rows, cross.test.y, runs[rows], *said, trained))
    return out
