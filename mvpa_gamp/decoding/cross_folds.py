"""The training sets of a cross, and its fits on X as every fold prepares it."""

from collections.abc import Iterator
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
    """What one fold, with an X of its own, says about the rows that it tests."""

    tested: NDArray  # (T,) bool, of the tested rows of the cross
    decision: NDArray  # (t, k) of each label vector
    proba: NDArray  # (t, k)
    fits: FoldFits  # k columns; with ``maps`` weights and patterns are those of voxels


def prepared_answers(
    method: Method,
    X: Any,
    cross: Cross,
    labels: NDArray,
    runs: NDArray,
    preparation: Preparation,
    *,
    maps: bool = False,
    connectivity: Any = None,
    n_jobs: int = 1,
) -> Iterator[PreparedAnswers]:
    """Fold by fold, fits to label vectors (m_train, k) of the training comparison on X (M, N) as prepared.

    A fold's X is prepared by rows of all conditions in the runs that it trains on, so by none of the tested
    run; where training runs were chosen, by those alone. Labels change nothing in it.
    """
    rows = cross.rows
    inner, (train, place) = cross.within(rows), _study_folds(cross, runs)
    for column, fold, seconds in timed(preparation.folds(X, train, rows)):
        signs = np.zeros((len(rows), labels.shape[1]))
        signs[inner.train.rows] = labels * train[cross.train.rows, column, None]
        used = signs != 0
        fits = solve_columns(method, fold.X, signs, used, runs[rows], n_jobs, connectivity)
        mine = place == column
        asked = inner.test.rows[mine]
        decision, proba = (np.asarray(each, float)[asked] for each in (fits.decision, fits.proba))
        kept = of_voxels(fits, fold, np.arange(len(rows)), used, seconds) if maps else fits
        yield PreparedAnswers(mine, decision, proba, kept)


def _study_folds(cross: Cross, runs: NDArray) -> tuple[NDArray, NDArray]:
    """Rows (M, F) of the study that train every fold, and the fold (T,) of each tested row."""
    tested = runs[cross.test.rows]
    if cross.train_on:
        inside = np.isin(runs, runs[cross.train.rows])
        return inside[:, None], np.zeros(len(tested), dtype=int)
    held_out = np.unique(tested)
    return runs[:, None] != held_out, np.searchsorted(held_out, tested)
