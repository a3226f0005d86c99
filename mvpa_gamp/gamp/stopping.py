"""When a column ends, and the sentence on why."""

from collections import deque

import numpy as np
from numpy.typing import NDArray

from .moments import Array
from .result import CAVITY, FIXED_POINT, ITERATION_LIMIT, NOT_FINITE
from .settings import ResolvedSettings

_MAX_RETRIES = 12  # halvings of the step before a non-finite column is given up
# Gain of the cavity score, in nats per sample, over the last iterations of the patience that keeps a run
# going: on separable data a growing slab improves it for ever by less and less.
_CLEAR_GAIN = 5e-3
# A damped run dips below the score of its start first; it has this many times the patience to rise above.
_DIP = 3


class Stopping:
    """The stopping rule and what it remembers of every column of the whole problem, (B,) each."""

    def __init__(self, settings: ResolvedSettings, n_columns: int) -> None:
        self.settings = settings
        self.n_iter = np.zeros(n_columns, dtype=int)
        self.status = np.full(n_columns, ITERATION_LIMIT, dtype=object)
        self._start_score = np.full(n_columns, -np.inf)
        # Best score so far of every column, after each of the last iterations: as many as the patience.
        self._best_scores = deque([self._start_score.copy()], maxlen=settings.patience)

    def is_eligible(self, iteration: int) -> bool:
        """Whether the state after so many iterations may be chosen: the first, almost empty ones may not."""
        return iteration >= max(1, round(0.5 / self.settings.damping))

    def note_score(self, columns: NDArray, score: Array, iteration: int) -> None:
        """Remember the cavity scores of the running columns."""
        if iteration == 0:
            self._start_score[columns] = score
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
        taken_off = best > self._start_score[columns] + _CLEAR_GAIN
        return np.where(taken_off, best <= before + _CLEAR_GAIN, iteration >= _DIP * patience)
