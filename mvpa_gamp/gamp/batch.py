"""The columns of a solve that are still running, and the best (or last) state that it returns of each."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .compiled import is_worth_it
from .design import Design
from .iteration import State, resume, start
from .moments import Array, Moments
from .parameters import Models
from .result import GampResult, some_features
from .scalar_steps import Weights
from .settings import ResolvedSettings
from .stopping import Damping


@dataclass
class Batch:
    """The columns still running, and everything about them.

    With the cavity stop a step writes the next weights over the present ones (``in_place``): what is to be
    kept was copied, and only a broken move is taken back. With a fixed point any move may be taken back, so
    present and next weights have memory of their own, and change places after every iteration.
    """

    columns: NDArray  # their numbers in the whole problem
    design: Design
    y: Array
    models: Models  # for the next iteration
    made_with: Models  # with which ``state`` was computed
    state: State
    spare: Weights  # memory for the next weights: the present ones where ``in_place``
    in_place: bool
    damping: Damping
    compiled: bool

    @classmethod
    def begin(
        cls, design: Design, y: Array, models: Models, settings: ResolvedSettings, warm: GampResult | None
    ) -> "Batch":
        """Every column at its start, or where an earlier result left it."""
        n_columns = design.shape[2]
        if warm is None:
            state = start(design, y, models.likelihood, models.prior, settings)
        else:
            state = resume(design, y, models.likelihood, models.prior, warm, settings)
        damping = Damping.begin(settings.damping, n_columns)
        in_place = settings.stop == "cavity"
        spare = state.weights if in_place else Weights(*(np.empty_like(part) for part in state.weights))
        compiled = is_worth_it(math.prod(design.shape))
        columns = np.arange(n_columns)
        return cls(columns, design, y, models, models, state, spare, in_place, damping, compiled)

    def take(self, keep: NDArray) -> "Batch":
        """Some of the columns; this batch's own arrays are used up."""
        state = self.state.take(keep)
        spare = state.weights if self.in_place else Weights(*(part[:, : keep.size] for part in self.spare))
        return Batch(
            self.columns[keep],
            self.design.take(keep),
            self.y[:, keep],
            self.models.take(keep),
            self.made_with.take(keep),
            state,
            spare,
            self.in_place,
            self.damping.take(keep),
            self.compiled,
        )


@dataclass
class Best:
    """One state per column of the whole problem; weights follow from r, tau_r and the models.

    Where rates come from neighbours they came from the state before, so the inclusions pi are kept too.
    """

    models: Models  # with which each state was computed
    r: Array  # (N, B)
    tau_r: Array  # (N, B)
    pi: Array  # (N, B), or (0, B) without neighbours
    p: Array  # (M, B)
    tau_p: Array  # (M, B)
    intercept: Array  # (B,)
    iteration: NDArray  # (B,) that reached it
    score: Array  # (B,) -inf before there is one

    @classmethod
    def begin(cls, batch: Batch) -> "Best":
        """The start, for columns that never get further."""
        n_rows, _, n_columns = batch.design.shape
        r, tau_r, pi = (np.empty_like(part) for part in batch.state.weights[2:])
        p, tau_p = np.zeros((n_rows, n_columns)), np.zeros((n_rows, n_columns))
        nothing = np.full(n_columns, -np.inf)
        zeros, never = np.zeros(n_columns), np.zeros(n_columns, int)
        best = cls(batch.models, r, tau_r, pi, p, tau_p, zeros, never, nothing)
        best.store(batch, np.arange(n_columns), nothing, 0)
        return best

    def store(self, batch: Batch, local: NDArray, score: Array, iteration: int) -> None:
        """Overwrite some columns (``local`` numbers within the batch) with their present state."""
        state, at = batch.state, batch.columns[local]
        for stored, now in zip((self.r, self.tau_r, self.pi), state.weights[2:], strict=True):
            for to, column in zip(at, local, strict=True):
                stored[:, to] = now[:, column]
        self.intercept[at] = state.intercept[local]
        self.tau_p[:, at] = state.tau_z[:, local]
        self.p[:, at] = (state.z + state.intercept - state.s * state.tau_z)[:, local]
        self.iteration[at], self.score[at] = iteration, score
        self.models = self.models.replaced(at, batch.made_with, local)

    def store_better(self, batch: Batch, score: Array, iteration: int) -> None:
        """Overwrite the columns whose score is their best so far."""
        is_new = batch.damping.failures == 0  # a move that failed has been taken back
        better = np.flatnonzero(is_new & (score > self.score[batch.columns]))
        self.store(batch, better, score[better], iteration)

    def has_state(self, columns: NDArray) -> NDArray:
        """Whether a state of these columns was stored since the start, (b,) bool."""
        return self.iteration[columns] > 0

    def weights(self, mode: str) -> Moments:
        """Means and variances of the weights, (N, B)."""
        coef, coef_var = np.empty_like(self.r), np.empty_like(self.r)
        prior = self.models.prior
        step, given = prior.posterior if mode == "sum-product" else prior.prox, [self.r, self.tau_r]
        if len(self.pi):
            step, given = prior.posterior_included, [*given, self.pi]
        for at in some_features(len(coef)):
            coef[at], coef_var[at] = step(*(part[at] for part in given))
        return Moments(coef, coef_var)
