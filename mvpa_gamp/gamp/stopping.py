"""When a column ends, and the sentence on why."""

import numpy as np
from numpy.typing import NDArray

from .moments import Array
from .result import CAVITY, FIXED_POINT, ITERATION_LIMIT, NOT_FINITE
from .settings import ResolvedSettings

_MAX_RETRIES = 12  # halvings of the step before a non-finite column is given up
# Gain of the cavity score, in nats per sample, that renews the patience: on separable data a growing slab
# improves it for ever by less and less.
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
        self._clear_score = self._start_score.copy()  # the last one that was a clear gain ...
        self._clear_iter = self.n_iter.copy()  # ... and its iteration

    def counts(self, iteration: int) -> bool:
        """Whether the state after so many iterations may be chosen: the first, almost empty ones may not."""
        return iteration >= max(1, round(0.5 / self.settings.damping))

    def note_score(self, columns: NDArray, score: Array, iteration: int) -> None:
        """Remember the cavity scores of the running columns."""
        if iteration == 0:
            self._start_score[columns] = score
        if self.counts(iteration):
            clear = score > self._clear_score[columns] + _CLEAR_GAIN
            self._clear_score[columns[clear]] = score[clear]
            self._clear_iter[columns[clear]] = iteration

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
        patience = self.settings.patience
        taken_off = self._clear_score[columns] > self._start_score[columns] + _CLEAR_GAIN
        waited = iteration - np.where(taken_off, self._clear_iter[columns], 0)
        return waited >= np.where(taken_off, patience, _DIP * patience)
