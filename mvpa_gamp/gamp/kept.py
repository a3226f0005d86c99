"""What a solve returns: the best or the last state of every column, and why the column ended."""

import numpy as np
from numpy.typing import NDArray

from . import objective
from .batch import Batch
from .iteration import output_step
from .moments import Array
from .parameters import take
from .result import CAVITY, FIXED_POINT, ITERATION_LIMIT, NOT_FINITE, GampResult, some_features
from .settings import SolverSettings

_MAX_RETRIES = 12  # halvings of the step before a non-finite column is given up
# Gain of the cavity score, in nats per sample, that renews the patience: on separable data a growing slab
# improves it for ever by less and less.
_CLEAR_GAIN = 5e-3
# A damped run dips below the score of its start first; it has this many times the patience to rise above.
_DIP = 3


class Kept:
    """The states to be returned, filled in as columns improve or end."""

    def __init__(self, batch: Batch, settings: SolverSettings) -> None:
        n_rows, _, n_columns = batch.design.shape
        self.settings, self.models = settings, batch.models
        self.r, self.tau_r = (np.empty_like(part) for part in batch.state.weights[2:])
        self.p, self.tau_p = np.zeros((n_rows, n_columns)), np.zeros((n_rows, n_columns))
        self.intercept = np.zeros(n_columns)
        self.kept_iter, self.n_iter = np.zeros(n_columns, dtype=int), np.zeros(n_columns, dtype=int)
        self.score = np.full(n_columns, -np.inf)
        self.start_score, self.clear_score = self.score.copy(), self.score.copy()
        self.clear_iter = self.kept_iter.copy()
        self.status = np.full(n_columns, ITERATION_LIMIT, dtype=object)
        self.store(batch, np.arange(n_columns), self.score, 0)  # for columns that never get further

    def store(self, batch: Batch, local: NDArray, score: Array, iteration: int) -> None:
        """Keep the present state of some columns (``local`` numbers within the batch)."""
        state, at = batch.state, batch.columns[local]
        for to, column in zip(at, local, strict=True):
            self.r[:, to], self.tau_r[:, to] = state.weights.r[:, column], state.weights.tau_r[:, column]
        self.intercept[at] = state.intercept[local]
        self.tau_p[:, at] = state.tau_z[:, local]
        self.p[:, at] = (state.z + state.intercept - state.s * state.tau_z)[:, local]
        self.kept_iter[at], self.score[at] = iteration, score
        self.models = self.models.replaced(at, batch.made_with, local)

    def store_better(self, batch: Batch, score: Array, iteration: int) -> None:
        """Keep columns whose score is their best so far; the almost empty first iterates do not count."""
        if iteration == 0:
            self.start_score[batch.columns] = score
        if iteration < max(1, round(0.5 / (self.settings.damping or 1.0))):
            return
        clear = np.flatnonzero(score > self.clear_score[batch.columns] + _CLEAR_GAIN)
        self.clear_score[batch.columns[clear]] = score[clear]
        self.clear_iter[batch.columns[clear]] = iteration
        is_new = batch.damping.failures == 0  # a move that failed has been taken back
        better = np.flatnonzero(is_new & (score > self.score[batch.columns]))
        self.store(batch, better, score[better], iteration)

    def retire(self, batch: Batch, still: NDArray, iteration: int) -> Batch | None:
        """Note why columns end, and return the batch of those that go on, if any."""
        patience, max_iter = self.settings.patience or 1, self.settings.max_iter or 1
        self.n_iter[batch.columns] = iteration
        reasons = np.full(still.size, "", dtype=object)
        if iteration >= max_iter:
            reasons[:] = ITERATION_LIMIT
        if self.settings.stop == "cavity":
            taken_off = self.clear_score[batch.columns] > self.start_score[batch.columns] + _CLEAR_GAIN
            waited = iteration - np.where(taken_off, self.clear_iter[batch.columns], 0)
            reasons[waited >= np.where(taken_off, patience, _DIP * patience)] = CAVITY
        reasons[still] = FIXED_POINT
        reasons[batch.damping.failures > _MAX_RETRIES] = NOT_FINITE
        ended = np.flatnonzero(reasons != "")
        if not ended.size:
            return batch
        self.status[batch.columns[ended]] = reasons[ended]
        unseen = (self.kept_iter[batch.columns[ended]] == 0) & (batch.damping.failures[ended] == 0)
        fresh = ended[unseen | (self.settings.stop == "fixed-point")]
        self.store(batch, fresh, self._final_score(batch, fresh), iteration)
        going_on = np.flatnonzero(reasons == "")
        return batch.take(going_on) if going_on.size else None

    def _final_score(self, batch: Batch, local: NDArray) -> Array:
        if self.settings.mode == "max-sum" or not local.size:
            return np.full(local.size, np.nan)
        train, likelihood = batch.design.train[:, local], take(batch.made_with.likelihood, local)
        rows = batch.state.rows(local)
        out = output_step(rows, batch.y[:, local], train, likelihood, np.ones(local.size), "sum-product")
        return objective.cavity_score(out, train)

    def result(self) -> GampResult:
        """All columns together, their weights computed from r and tau_r by the prior they were kept with."""
        coef, coef_var = np.empty_like(self.r), np.empty_like(self.r)
        of = self.models.prior.posterior if self.settings.mode == "sum-product" else self.models.prior.prox
        for at in some_features(len(coef)):
            coef[at], coef_var[at] = of(self.r[at], self.tau_r[at])
        return GampResult(
            coef,
            coef_var,
            self.intercept,
            self.intercept,
            self.p,
            self.tau_p,
            self.p,
            self.tau_p,
            self.r,
            self.tau_r,
            self.n_iter,
            self.kept_iter,
            self.status.astype(str),
            np.where(np.isneginf(self.score), np.nan, self.score),
        )
