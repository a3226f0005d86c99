"""Cross-decoding: does what tells one comparison apart also tell another apart? Is it better than chance?

Every run of the tested comparison is predicted by a classifier that was trained on the other comparison in
all other runs, so that nothing of the tested run, neither its rows nor its noise, is known to it. Crosses
and folds are columns of one X.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..methods.fold_fits import FoldFits, Method, check_rows
from .designs import Cross, check_crosses
from .exchange import find_exchange
from .fit import Columns, Scheme, fit_columns, solve
from .null import NullStatistics, failures
from .permutation import PermutationPlan, PermutationTest, plan_permutations
from .scores import mean_aucs, mean_score, score_rows, share_by_fold

_WORTHWHILE = 0.05  # a test that cannot reach this p-value is hardly worth its time


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
    scheme: Scheme | None = None,
    *,
    n_jobs: int = 1,
) -> list[CrossDecoding]:
    """Train on one comparison, test on another, for each of the ``crosses``; X is (M, N), runs (M,).

    Train rows are those of the training comparison in all runs but the tested one; test rows are those of the
    other comparison in that run. All crosses and folds are columns of one solve on the union of their rows,
    or of one for every fold that prepares X: by the rows of all conditions in its training runs. Of the
    ``scheme`` its preparation and connectivity are used.

    Parameters
    ----------
    method
        One of ``METHODS``.
    X
        Samples (M, N).
    crosses
        From ``make_crosses`` or ``session_crosses``.
    runs
        The run (M,) of every sample.
    scheme
        Folds, rows, what folds do to X, and what is exchanged; None: leave one run out.
    n_jobs
        Processes.

    Returns
    -------
    list of CrossDecoding
        One per cross: decisions about the tested rows, accuracy and the classifiers.

    Examples
    --------
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
    (X, runs), scheme = check_rows(X, runs, dense=True), scheme or Scheme()
    check_crosses(crosses, runs)
    rows = np.unique(np.concatenate([cross.rows for cross in crosses]))
    sets = [training_sets(cross, runs) for cross in crosses]
    train, fold = np.unique(np.hstack([each.train for each in sets]), axis=1, return_inverse=True)
    parts = [_signs(c, c.train.y[:, None], rows, s.train) for c, s in zip(crosses, sets, strict=True)]
    group = np.zeros_like(fold) if scheme.preparation.shared else fold
    keyed = np.vstack([np.hstack(parts), group.reshape(1, -1)])  # equal columns of one X are one
    distinct, place = np.unique(keyed, axis=1, return_inverse=True)
    asked = Columns(method, rows, distinct[:-1].astype(np.int8), distinct[-1])
    (fits,) = fit_columns([asked], X, runs, train, scheme, n_jobs)
    out, at = [], 0
    for cross, own in zip(crosses, sets, strict=True):
        mine = place.reshape(-1)[at : at + own.train.shape[1]]
        at += len(mine)
        tested, column = np.searchsorted(rows, cross.test.rows), mine[own.column]
        said = [np.asarray(each[tested, column], float) for each in (fits.decision, fits.proba)]
        used = mine[np.sort(np.unique(mine, return_index=True)[1])]
        trained = replace(fits.take(used), seconds=fits.seconds * len(used) / distinct.shape[1])
        slim = replace(trained, decision=trained.decision[:0], proba=trained.proba[:0])
        given = cross, method.name, cross.test.rows, cross.test.y, runs[cross.test.rows]
        out.append(CrossDecoding(*given, said[0], said[1], slim))
    return out


class TrainingSets(NamedTuple):
    """The D sets of rows that a cross trains on: one for each tested run, unless they were chosen."""

    train: NDArray  # (M, D) bool, rows of all conditions
    column: NDArray  # (T,) which of the D sets is without the run of a test row


def training_sets(cross: Cross, runs: NDArray) -> TrainingSets:
    """Rows of all conditions, none of the tested run; where training runs were chosen, those alone."""
    tested = runs[cross.test.rows]
    if cross.train_on:
        inside = np.isin(runs, runs[cross.train.rows])
        return TrainingSets(inside[:, None], np.zeros(len(tested), dtype=int))
    held_out, column = np.unique(tested, return_inverse=True)
    return TrainingSets(runs[:, None] != held_out, column.reshape(-1))


def _signs(cross: Cross, labels: NDArray, rows: NDArray, train: NDArray) -> NDArray:
    """Label vectors (m_train, k) on the ``rows`` of the study, (m, k D): sets within label vectors."""
    signs = np.zeros((len(rows), labels.shape[1], train.shape[1]), dtype=np.int8)
    own = train[cross.train.rows]
    signs[np.searchsorted(rows, cross.train.rows)] = labels[:, :, None] * own[:, None, :]
    return signs.reshape(len(rows), -1)


def plan_cross_permutations(
    cross: Cross,
    runs: Any,
    n_features: int,
    n: int = 1000,
    scheme: Scheme | None = None,
    *,
    columns_at_once: int | None = None,
    ahead: bool = False,
) -> PermutationPlan:
    """Find the permutations of ``cross_permutation_test`` and lay them out in chunks.

    Blocks of the ``scheme`` are those of all M rows.
    """
    runs, scheme = np.asarray(runs), scheme or Scheme()
    if cross.shared:
        raise ValueError(cross.caution)
    mine = runs[cross.train.rows]
    own = None if scheme.blocks is None else np.asarray(scheme.blocks)[cross.train.rows]
    sets = np.unique(training_sets(cross, runs).train[cross.train.rows], axis=1)
    plan = plan_permutations(
        cross.train.y, mine, n_features, n, seed=scheme.seed, exchange=scheme.exchange, blocks=own,
        n_folds=sets.shape[1] if scheme.preparation.shared else 1, columns_at_once=columns_at_once,
        ahead=ahead,
    )  # fmt: skip
    said = _caution(plan, find_exchange(cross.train.y, mine, scheme.exchange, own).caution)
    return replace(plan, caution=said, floor=1 / plan.n_distinct)


def _caution(plan: PermutationPlan, said: str) -> str:
    """Labels with renamed sides give the opposite accuracy here, not the same: smaller p-values exist."""
    if not said.startswith("Only"):
        return said
    smallest = 1 / plan.n_distinct
    if smallest <= _WORTHWHILE:
        return ""
    return (
        f"Only {plan.n_distinct} label vectors can be reached by exchanging {plan.exchange}s of the training "
        f"comparison within runs, so the p-value cannot fall below {smallest:.3g}. Give more runs."
    )


def cross_null(
    method: Method,
    X: Any,
    cross: Cross,
    labels: NDArray,
    runs: Any,
    scheme: Scheme | None = None,
    *,
    n_jobs: int = 1,
) -> NullStatistics:
    """Accuracies of cross-decoding with each of the label vectors (m_train, k) of the training rows.

    Labels of the test rows stay as they are.
    """
    X, runs, scheme = np.asarray(X), np.asarray(runs), scheme or Scheme()
    (train, column), k = training_sets(cross, runs), labels.shape[1]
    signs = _signs(cross, labels, cross.rows, train)
    asked = Columns(method, cross.rows, signs, np.tile(np.arange(train.shape[1]), k))
    decision, n_failed = np.empty((cross.test.rows.size, k)), np.zeros(k, dtype=int)
    tested = np.searchsorted(cross.rows, cross.test.rows)
    for solved in solve([asked], X, runs, train, scheme, n_jobs=n_jobs):
        now = np.unique(asked.fold[solved.columns])
        said = np.asarray(solved.fits.decision).reshape(len(cross.rows), k, now.size)
        mine = np.isin(column, now)
        decision[mine] = said[tested[mine], :, np.searchsorted(now, column[mine])]
        n_failed += failures(solved.fits, k)
    positive = np.broadcast_to((cross.test.y > 0)[:, None], decision.shape)
    _, fold = np.unique(runs[cross.test.rows], return_inverse=True)
    right = (decision > 0) == positive
    scores = [share_by_fold(each, fold, int(fold.max()) + 1).mean() for each in right.T]
    answers, first = decision[:, :, None], positive[:, :, None]
    return NullStatistics(np.array(scores), mean_aucs(answers, first, ~first, fold), None, n_failed)


def cross_permutation_test(
    method: Method,
    X: Any,
    cross: Cross,
    runs: Any,
    n: int = 1000,
    scheme: Scheme | None = None,
    *,
    columns_at_once: int | None = None,
    n_jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> PermutationTest:
    """Compare the accuracy of cross-decoding with that of n permutations of the training labels within runs.

    X is (M, N), runs (M,); arguments as for :func:`permutation_test`, blocks those of all M rows. Labels of
    the tested comparison stay as they are: chance overlap of what is learnt from noise with what tells the
    tested comparison apart is then part of the null. Exchanging the test labels instead would ignore it and
    be wrong far too often where the tested comparison can be decoded. Where the two codes are there but
    unrelated, the test is conservative.

    Parameters
    ----------
    method
        One of ``METHODS``.
    X
        Samples (M, N).
    cross
        One of those of ``cross_decode``.
    runs
        The run (M,) of every sample.
    n
        Permutations.
    scheme
        Folds, rows, what folds do to X, and what is exchanged; None: leave one run out.
    columns_at_once
        Bounds memory; None: chosen by N.
    n_jobs
        Processes.
    progress
        Called with the number of permutations done and their total.

    Returns
    -------
    PermutationTest
        The observed accuracy, those of the permutations, and the p-value.
    """
    size = np.shape(X)[-1]
    plan = plan_cross_permutations(cross, runs, size, n, scheme, columns_at_once=columns_at_once)
    parts = []
    for chunk in plan.chunks:
        parts.append(cross_null(method, X, cross, plan.labels[:, chunk], runs, scheme, n_jobs=n_jobs))
        if progress is not None:
            progress(plan.done(chunk), plan.n)
    return plan.joined(method.name, parts)
