"""When a column ends, and the sentence on why."""

from collections import deque

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from .moments import Array
from .result import (
    AT_CHANCE,
    CAVITY,
    DIVERGED,
    FIXED_POINT,
    FOUND_NOTHING,
    ITERATION_LIMIT,
    NOT_FINITE,
    GampResult,
)
from .settings import ResolvedSettings

_MAX_RETRIES = 12  # halvings of the step before a non-finite column is given up
# Gain of the cavity score, in nats per sample, over the last iterations of the patience that keeps a run
# going: on separable data a growing slab improves it for ever by less and less.
_CLEAR_GAIN = 5e-3
# A damped run dips below the score of its start first; it has this many times the patience to rise above.
_DIP = 3
# Below its start by so many nats per sample, the score tells of a run that went astray, and by the second
# number it does so alone. Labels without any effect end 0 to 0.29 below.
_ASTRAY, _FAR_ASTRAY = 0.05, 0.5
_TOLD_APART = 0.65  # area under the curve of the training rows; of a run that went astray it is less
_NO_GAIN = 1e-4  # nats per sample


class Stopping:
    """The stopping rule and what it remembers of every column of the whole problem, (B,) each."""

    def __init__(self, settings: ResolvedSettings, n_columns: int) -> None:
        self.settings = settings
        self.n_iter = np.zeros(n_columns, dtype=int)
        self.status = np.full(n_columns, ITERATION_LIMIT, dtype=object)
        self.start_score = np.full(n_columns, -np.inf)
        # Best score so far of every column, after each of the last iterations: as many as the patience.
        self._best_scores = deque([self.start_score.copy()], maxlen=settings.patience)

    def is_eligible(self, iteration: int) -> bool:
        """Whether the state after so many iterations may be chosen: the first, almost empty ones may not."""
        return iteration >= max(1, round(0.5 / self.settings.damping))

    def note_score(self, columns: NDArray, score: Array, iteration: int) -> None:
        """Remember the cavity scores of the running columns."""
        if iteration == 0:
            self.start_score[columns] = score
        best = self._best_scores[-1].copy()
        if self.is_eligible(iteration):
            best[columns] = np.fmax(best[columns], score)
        self._best_scores.append(best)

    def ended(self, columns: NDArray, still: NDArray, failures: NDArray, iteration: int) -> NDArray:
        """Which of the running columns end, (b,) bool; notes when and why.

        ``still`` says which ones stand still, ``failures`` how often each was non-finite in a row.
        """
        reasons = np.full(columns.size, "", dtype=object)
        if iteration >= self.settings.max_iter:
            reasons[:] = ITERATION_LIMIT
        if self.settings.stop == "cavity":
            reasons[self._out_of_patience(columns, iteration)] = CAVITY
        reasons[still] = FIXED_POINT
        reasons[failures > _MAX_RETRIES] = NOT_FINITE
        ended = reasons != ""
        self.n_iter[columns] = iteration
        self.status[columns[ended]] = reasons[ended]
        return ended

    def _out_of_patience(self, columns: NDArray, iteration: int) -> NDArray:
        """Whether the patience has brought no clear gain.

        The gain is that of a window which moves with the run: where the score creeps, a last digit can move
        its end by an iteration, not by a whole patience.
        """
        patience, best = self.settings.patience, self._best_scores[-1][columns]
        before = self._best_scores[0][columns] if len(self._best_scores) == patience else -np.inf
        taken_off = best > self.start_score[columns] + _CLEAR_GAIN
        return np.where(taken_off, best <= before + _CLEAR_GAIN, iteration >= _DIP * patience)


def judged(result: GampResult, start_score: Array, y: Array, train: NDArray) -> NDArray:
    """Statuses (B,) of a run, with those that ended as intended looked at once more.

    A run may stop where it should and be wrong all the same: its score below that of the start, its
    training rows predicted at chance.
    """
    gain = result.cavity_score - start_score
    area, spread = training_areas(result.z, y, train)
    wide = len(result.coef) > train.sum(axis=0)  # then even noise tells the training rows apart
    astray = (wide & (gain < -_ASTRAY) & (area < _TOLD_APART)) | (gain < -_FAR_ASTRAY)
    status = np.where(area <= 0.5 + spread, np.where(wide, AT_CHANCE, FOUND_NOTHING), result.status)
    status = np.where(gain <= _NO_GAIN, FOUND_NOTHING, status)
    return np.where(result.converged, np.where(astray, DIVERGED, status), result.status)


def training_areas(decision: NDArray, y: NDArray, train: NDArray) -> tuple[Array, Array]:
    """Area under the curve of the training rows of each column, and its standard error at chance, (B,)."""
    area, spread = np.empty(train.shape[1]), np.empty(train.shape[1])
    for b, rows in enumerate(train.T):
        first = y[rows, b] > 0
        n, m = np.count_nonzero(first), np.count_nonzero(~first)
        area[b] = (rankdata(decision[rows, b])[first].sum() / n - (n + 1) / 2) / m
        spread[b] = np.sqrt((n + m + 1) / (12 * n * m))
    return area, spread
