"""Cross-decoding: does what tells one comparison apart also tell another apart?

Every run of the tested comparison is predicted by a classifier that was trained on the other comparison in
all other runs, so that nothing of the tested run, neither its rows nor its noise, is known to it. Crosses
and folds are columns of one X.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..methods.fold_fits import FoldFits, Method
from .cross_tasks import Cross, check_crosses
from .crossval import share_by_fold
from .exchange import find_exchange
from .folds import Folds
from .null import NullStatistics, failures
from .pairwise import solve_columns
from .pattern import haufe_pattern
from .permutation import PermutationPlan, PermutationTest, plan_permutations
from .preparation import NoiseWhitening
from .prepared import fit_prepared
from .scoring import mean_score, score_rows

_WORTHWHILE = 0.05  # a test that cannot reach this p-value is hardly worth its time


@dataclass(frozen=True)
class CrossDecoding:
    """What a method that was trained on one comparison says about T rows of another, of runs held out.

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
        """Share of rows predicted rightly in each tested run."""
        return share_by_fold((self.decision > 0) == (self.y > 0), self._number, len(self.runs))

    @property
    def accuracy(self) -> float:
        """Mean over tested runs of the share of rows predicted rightly."""
        return float(self.accuracies.mean())

    @property
    def balanced_accuracy(self) -> float:
        """Mean over tested runs of the mean over the two sides of the share predicted rightly."""
        return self._score("balanced_accuracy")

    @property
    def auc(self) -> float:
        """Mean over tested runs with both sides of the area under the receiver operating curve."""
        return self._score("roc_auc")

    @property
    def chance(self) -> float:
        """The accuracy of always saying the more frequent side of the tested rows."""
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
    blocks: Any = None,
    n_jobs: int = 1,
) -> list[CrossDecoding]:
    """Train on one comparison, test on another, for each of the ``crosses``; X is (M, N), runs (M,).

    Train rows are those of the training comparison in all runs but the tested one; test rows are those of the
    other comparison in that run. All crosses and folds are columns of one solve on the union of their rows.
    ``blocks`` (M,), where given, whitens the noise that voxels share, estimated within blocks of each fold's
    training runs (all rows of the study there); then there are no probabilities.

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
    X, runs = np.asarray(X), np.asarray(runs)
    check_crosses(crosses, runs)
    if blocks is not None:
        return [_whitened(method, X, cross, runs, np.asarray(blocks), connectivity) for cross in crosses]
    rows = np.unique(np.concatenate([cross.rows for cross in crosses]))
    plans = [_columns(cross.within(rows), cross.train.y[:, None], runs[rows]) for cross in crosses]
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


class _Columns(NamedTuple):
    """Training sets of a cross: labels in -1/+1, 0 on rows that are not trained on."""

    signs: NDArray  # (m, k D) int8, the D sets of the first label vector, then those of the next
    column: NDArray  # (T,) which of the D sets is trained without the run of a test row


def _columns(cross: Cross, labels: NDArray, runs: NDArray) -> _Columns:
    """Training sets for label vectors (m_train, k) of the rows trained on, m rows in all."""
    tested = runs[cross.test.rows]
    held_out = np.unique(tested)
    without = runs[cross.train.rows, None] != held_out  # (m_train, F)
    sets, place = np.unique(without, axis=1, return_inverse=True)
    signs = np.zeros((len(runs), labels.shape[1], sets.shape[1]), dtype=np.int8)
    signs[cross.train.rows] = labels[:, :, None] * sets[:, None, :]
    return _Columns(signs.reshape(len(runs), -1), place.reshape(-1)[np.searchsorted(held_out, tested)])


def _slim(fits: FoldFits) -> FoldFits:
    """The classifiers without their answers to rows of others."""
    return replace(fits, decision=fits.decision[:0], proba=fits.proba[:0])


def _whitened(
    method: Method, X: NDArray, cross: Cross, runs: NDArray, blocks: NDArray, connectivity: Any
) -> CrossDecoding:
    """The same on whitened volumes: weights are mapped back, so that decisions are X w + b."""
    tested = runs[cross.test.rows]
    held_out = np.unique(tested)
    if cross.train_on:  # the noise, too, is that of the runs trained on
        inside = np.isin(runs, np.unique(runs[cross.train.rows]))[:, None]
        folds, column = (
            Folds(inside, np.isin(runs, held_out)[:, None], np.array([1])),
            np.zeros(len(tested), int),
        )
    else:
        out = runs[:, None] == held_out
        folds, column = Folds(~out, out, held_out), np.searchsorted(held_out, tested)
    whitening = NoiseWhitening(blocks)
    fits = fit_prepared([method], X, whitening, [cross.train], runs, folds, connectivity, every_fold=True)
    trained = fits[method.name, cross.train.name].folds
    rows = cross.test.rows
    decision = np.einsum("tn,nt->t", X[rows], trained.coef[:, column]) + trained.intercept[column]
    nothing = np.full(len(rows), np.nan)
    return CrossDecoding(
        cross, method.name, rows, cross.test.y, tested, np.asarray(decision, float), nothing, _slim(trained)
    )


def plan_cross_permutations(
    cross: Cross,
    runs: Any,
    n_features: int,
    n: int = 1000,
    *,
    seed: int = 0,
    exchange: str = "block",
    blocks: Any = None,
    columns_at_once: int | None = None,
    ahead: bool = False,
) -> PermutationPlan:
    """Draw the permutations of ``cross_permutation_test`` and lay them out in chunks."""
    runs = np.asarray(runs)
    if cross.shared:
        raise ValueError(cross.caution)
    mine, own = runs[cross.train.rows], None if blocks is None else np.asarray(blocks)[cross.train.rows]
    n_sets = _columns(cross, cross.train.y[:, None], runs).signs.shape[1]
    plan = plan_permutations(
        cross.train.y, mine, n_features, n, seed=seed, exchange=exchange, blocks=own, n_folds=n_sets,
        columns_at_once=columns_at_once, ahead=ahead,
    )  # fmt: skip
    said = _caution(plan, find_exchange(cross.train.y, mine, exchange, own).caution)
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
    *,
    connectivity: Any = None,
    n_jobs: int = 1,
) -> NullStatistics:
    """Accuracies of cross-decoding with each of the label vectors (m_train, k) of the training rows.

    Labels of the test rows stay as they are.
    """
    X, runs = np.asarray(X), np.asarray(runs)
    rows = cross.rows
    inner = cross.within(rows)
    plan = _columns(inner, labels, runs[rows])
    fits = solve_columns(
        method, X[rows], plan.signs.astype(float), plan.signs != 0, runs[rows], n_jobs, connectivity
    )
    by_vector = fits.decision.reshape(len(rows), labels.shape[1], -1)
    said = by_vector[inner.test.rows, :, plan.column] > 0  # (T, k)
    right = said == (cross.test.y > 0)[:, None]
    _, fold = np.unique(runs[cross.test.rows], return_inverse=True)
    scores = [share_by_fold(each, fold, int(fold.max()) + 1).mean() for each in right.T]
    return NullStatistics(np.array(scores), None, failures(fits, labels.shape[1]))


def cross_permutation_test(
    method: Method,
    X: Any,
    cross: Cross,
    runs: Any,
    n: int = 1000,
    *,
    seed: int = 0,
    exchange: str = "block",
    blocks: Any = None,
    connectivity: Any = None,
    columns_at_once: int | None = None,
    n_jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> PermutationTest:
    """Compare the accuracy of cross-decoding with that of n permutations of the training labels within runs.

    X is (M, N), runs (M,); arguments as for :func:`permutation_test`. Labels of the tested comparison stay as
    they are: chance overlap of what is learnt from noise with what tells the tested comparison apart is then
    part of the null. Exchanging the test labels instead would ignore it and be wrong far too often where the
    tested comparison can be decoded. Where the two codes are there but unrelated, the test is conservative.
    """
    plan = plan_cross_permutations(
        cross, runs, np.shape(X)[-1], n, seed=seed, exchange=exchange, blocks=blocks,
        columns_at_once=columns_at_once,
    )  # fmt: skip
    parts = []
    for chunk in plan.chunks:
        part = cross_null(
            method, X, cross, plan.labels[:, chunk], runs, connectivity=connectivity, n_jobs=n_jobs
        )
        parts.append(part)
        if progress is not None:
            progress(plan.done(chunk), n)
    return plan.joined(method.name, parts)
