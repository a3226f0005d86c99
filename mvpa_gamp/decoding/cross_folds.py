"""The training sets of a cross, and its fits on X as every fold prepares it."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..methods.fold_fits import FoldFits, Method
from .cross_tasks import Cross
from .pairwise import solve_columns
from .preparation import Preparation
from .prepared import of_voxels, timed


class TrainingSets(NamedTuple):
    """Training sets of a cross: labels in -1/+1, 0 on rows that are not trained on."""

    signs: NDArray  # (m, k D) int8, the D sets of the first label vector, then those of the next
    column: NDArray  # (T,) which of the D sets is trained without the run of a test row


def training_sets(cross: Cross, labels: NDArray, runs: NDArray) -> TrainingSets:
    """Training sets for label vectors (m_train, k) of the rows trained on, m rows in all."""
    tested = runs[cross.test.rows]
    held_out = np.unique(tested)
    without = runs[cross.train.rows, None] != held_out  # (m_train, F)
    sets, place = np.unique(without, axis=1, return_inverse=True)
    signs = np.zeros((len(runs), labels.shape[1], sets.shape[1]), dtype=np.int8)
    signs[cross.train.rows] = labels[:, :, None] * sets[:, None, :]
    return TrainingSets(signs.reshape(len(runs), -1), place.reshape(-1)[np.searchsorted(held_out, tested)])


class PreparedAnswers(NamedTuple):
    """What one fold of a cross, with an X of its own, says about the rows that it tests."""

    cross: int  # place among the crosses asked for
    fold: int
    tested: NDArray  # (T,) bool, of the tested rows of the cross
    decision: NDArray  # (t, k) of each label vector
    proba: NDArray  # (t, k)
    fits: FoldFits  # k columns; with ``maps`` weights and patterns are those of voxels


def prepared_answers(
    method: Method,
    X: Any,
    asked: Sequence[tuple[Cross, NDArray]],
    runs: NDArray,
    preparation: Preparation,
    *,
    maps: bool = False,
    connectivity: Any = None,
    n_jobs: int = 1,
) -> Iterator[PreparedAnswers]:
    """Fits on X (M, N) as every fold prepares it, of crosses with label vectors (m_train, k) to train on.

    A fold's X is prepared by rows of all conditions in the runs that it trains on, so by none of the tested
    run; where training runs were chosen, by those alone. Labels change nothing in it, so it is prepared once
    for all crosses that share it.
    """
    rows = np.unique(np.concatenate([cross.rows for cross, _ in asked]))
    folds = [_study_folds(cross, runs) for cross, _ in asked]
    train, column = np.unique(np.hstack([train for train, _ in folds]), axis=1, return_inverse=True)
    each = [(number, fold) for number, (own, _) in enumerate(folds) for fold in range(own.shape[1])]
    for place, prepared, seconds in timed(preparation.folds(X, train, rows)):
        sharing = [each[k] for k in np.flatnonzero(column.reshape(-1) == place)]
        for number, fold in sharing:
            cross, labels = asked[number]
            inner = cross.within(rows)
            signs = np.zeros((len(rows), labels.shape[1]))
            signs[inner.train.rows] = labels * train[cross.train.rows, place, None]
            used = signs != 0
            fits = solve_columns(method, prepared.X, signs, used, runs[rows], n_jobs, connectivity)
            tested = folds[number][1] == fold
            decision, proba = (
                np.asarray(said, float)[inner.test.rows[tested]] for said in (fits.decision, fits.proba)
            )
            if maps:
                share = seconds / len(sharing)
                fits = of_voxels(fits, prepared, np.arange(len(rows)), used, share)
            yield PreparedAnswers(number, fold, tested, decision, proba, fits)


def _study_folds(cross: Cross, runs: NDArray) -> tuple[NDArray, NDArray]:
    """Rows (M, F) of the study that train every fold, and the fold (T,) of each tested row."""
    tested = runs[cross.test.rows]
    if cross.train_on:
        inside = np.isin(runs, runs[cross.train.rows])
        return inside[:, None], np.zeros(len(tested), dtype=int)
    held_out = np.unique(tested)
    return runs[:, None] != held_out, np.searchsorted(held_out, tested)
