"""The one loop: many columns, each with its own damping, stopping and status.

Columns never see each other. A column that ends leaves the batch; the others go on with less work.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import objective
from .blocks import Scratch
from .damping import Damping
from .design import Design
from .iteration import Output, State, input_step, output_step, resume, start
from .moments import Array
from .parameters import expand, parameters, put, take
from .result import CAVITY, FIXED_POINT, ITERATION_LIMIT, NOT_FINITE, GampResult, some_features
from .settings import SolverSettings
from .threads import BlockMap, block_threads
from .weights_step import Weights, is_worth_compiling, step_function

_NOTHING = 1e-3  # share of its pseudo-noise that is nothing for a weight
_NO_SLOPE = 1e-100  # of a likelihood that is satisfied to underflow
_MAX_RETRIES = 12  # halvings of the step before a non-finite column is given up
# Gain of the cavity score, in nats per sample, that renews the patience: on separable data a growing slab
# improves it for ever by less and less.
_CLEAR_GAIN = 5e-3
# A damped run dips below the score of its start first; it has this many times the patience to rise above.
_DIP = 3


class Progress(NamedTuple):
    """What a callback sees after each iteration."""

    iteration: int
    n_active: int
    n_columns: int
    max_iter: int


class Models(NamedTuple):
    """Likelihood and prior of the columns at hand, every parameter one value per column."""

    likelihood: Any
    prior: Any

    def take(self, columns: NDArray) -> "Models":
        """Some of the columns."""
        return Models(take(self.likelihood, columns), take(self.prior, columns))

    def replaced(self, columns: NDArray, other: "Models", others: NDArray) -> "Models":
        """A copy in which ``columns`` come from the columns ``others`` of ``other``."""
        if not columns.size:
            return self
        part = other.take(others)
        return Models(put(self.likelihood, columns, part.likelihood), put(self.prior, columns, part.prior))


# (iteration, active column numbers, models in use, output, prior statistics, training rows, labels) -> models
Tuner = Callable[[int, NDArray, Models, Output, dict[str, Array], NDArray, Array], Models]


def solve(
    design: Design,
    y: Any,
    likelihood: Any,
    prior: Any,
    settings: SolverSettings | None = None,
    *,
    warm: GampResult | None = None,
    callback: Callable[[Progress], None] | None = None,
) -> GampResult:
    """Fit every column of ``design.train`` with GAMP at fixed parameters.

    y is (M,) or (M, B) in -1/+1; labels of rows that a column does not train on are never read.
    ``warm`` starts at an earlier result of the same shape.
    """
    return run(design, y, likelihood, prior, settings, warm=warm, callback=callback)[0]


def run(
    design: Design,
    y: Any,
    likelihood: Any,
    prior: Any,
    settings: SolverSettings | None = None,
    *,
    tuner: Tuner | None = None,
    warm: GampResult | None = None,
    callback: Callable[[Progress], None] | None = None,
) -> tuple[GampResult, Models]:
    """Solve, letting ``tuner`` change the models after each iteration; also returns the models kept."""
    settings = (settings or SolverSettings()).resolved()
    tol = max(settings.tol or 0.0, 50 * float(np.finfo(design.dtype).eps))
    settings = replace(settings, tol=tol)
    labels = checked_labels(y, design)
    n_columns = design.shape[2]
    models = Models(expand(likelihood, n_columns), expand(prior, n_columns))
    if settings.mode == "max-sum":
        prior.prox(np.zeros(1), np.ones(1))  # a prior without a max-sum step says so here
    with block_threads(design.n_blocks) as over_blocks:
        batch: _Batch | None = _Batch.begin(design, labels, models, settings, warm)
        assert batch is not None
        kept, scratch = _Kept(batch, settings), Scratch()
        iteration = 0
        while batch is not None:
            iteration += 1
            batch = _iterate(batch, kept, settings, iteration, tuner, over_blocks, scratch)
            if callback is not None:
                running = 0 if batch is None else batch.columns.size
                callback(Progress(iteration, running, n_columns, settings.max_iter or 0))
    return _predicted(kept.result(), design), kept.models


def _predicted(result: GampResult, design: Design) -> GampResult:
    """The result with the scores of all rows, held-out ones included, which the loop need not visit."""
    z, tau_z, shift = design.scores(result.coef, result.coef_var)
    z = z + result.intercept
    p, tau_p = np.where(design.train, result.p, z), np.where(design.train, result.tau_p, tau_z)
    return replace(result, plain_intercept=result.intercept + shift, z=z, tau_z=tau_z, p=p, tau_p=tau_p)


def checked_labels(y: Any, design: Design) -> Array:
    """Labels as (M, B) floats, 1 on rows that a column does not train on."""
    n_rows, _, n_columns = design.shape
    if np.iscomplexobj(y):
        raise ValueError("Labels must be -1 or +1, got complex numbers. Map your two classes to -1 and +1.")
    y = np.asarray(y, dtype=float)
    if y.shape not in ((n_rows,), (n_rows, n_columns)):
        raise ValueError(f"y must have shape ({n_rows},) or ({n_rows}, {n_columns}), got {y.shape}.")
    y = np.broadcast_to(y if y.ndim == 2 else y[:, None], (n_rows, n_columns))
    y = np.where(design.train, y, 1.0)
    wrong = ~np.isin(y, (-1.0, 1.0))
    if wrong.any():
        raise ValueError(
            f"Labels must be -1 or +1 on training rows, got {np.unique(y[wrong])[:5].tolist()}. "
            "Map your two classes to -1 and +1."
        )
    seen = [np.where(design.train, y == label, False).any(axis=0) for label in (-1, 1)]
    alone = np.flatnonzero(~(seen[0] & seen[1]))
    if alone.size:
        raise ValueError(
            f"Every column needs training rows of both classes, but columns {alone.tolist()} have one. "
            "Drop these columns or give them more rows."
        )
    return y


@dataclass
class _Batch:
    """The columns still running, and everything about them."""

    columns: NDArray  # their numbers in the whole problem
    design: Design
    y: Array
    models: Models  # for the next iteration
    made_with: Models  # with which ``state`` was computed
    state: State
    spare: Weights  # memory for the next weights
    damping: Damping
    compiled: bool

    @classmethod
    def begin(
        cls, design: Design, y: Array, models: Models, settings: SolverSettings, warm: GampResult | None
    ) -> "_Batch":
        n_columns = design.shape[2]
        if warm is None:
            state = start(design, y, models.likelihood, models.prior, settings)
        else:
            state = resume(design, y, models.likelihood, warm, settings)
        damping = Damping.begin(settings.damping or 1.0, n_columns)
        spare = state.weights  # in place: only a broken move is taken back, and what is to be kept was copied
        if settings.stop == "fixed-point":
            spare = Weights(*(np.empty_like(part) for part in state.weights))
        compiled = is_worth_compiling(design.dtype, state.weights.w.size)
        columns = np.arange(n_columns)
        return cls(columns, design, y, models, models, state, spare, damping, compiled)

    def take(self, keep: NDArray) -> "_Batch":
        """Some of the columns; this batch's own arrays are used up."""
        state = self.state.take(keep)
        in_place = self.spare is self.state.weights
        return _Batch(
            self.columns[keep],
            self.design.take(keep),
            self.y[:, keep],
            self.models.take(keep),
            self.made_with.take(keep),
            state,
            state.weights if in_place else Weights(*(part[:, : keep.size] for part in self.spare)),
            self.damping.take(keep),
            self.compiled,
        )


def _iterate(
    batch: _Batch,
    kept: "_Kept",
    settings: SolverSettings,
    iteration: int,
    tuner: Tuner | None,
    over_blocks: BlockMap,
    scratch: Scratch,
) -> _Batch | None:
    """One iteration of all running columns; returns those that go on, None when all have ended."""
    old, models, train, damping = batch.state, batch.models, batch.design.train, batch.damping
    adaptive = settings.stop == "fixed-point" and settings.adaptive
    out = output_step(old, batch.y, train, models.likelihood, damping.step, settings.mode)
    if settings.stop == "cavity":
        kept.store_better(batch, objective.cavity_score(out, train), iteration - 1)
    step = step_function(models.prior, settings.mode, batch.compiled)
    new, statistics, moved_by = input_step(
        old, out, batch.design, step, damping.step, settings, batch.spare, over_blocks, scratch
    )
    finite = np.asarray(np.isfinite(new.z).all(axis=0) & np.isfinite(new.tau_z).all(axis=0))
    accepted = finite.copy()
    residual = _residual(old, out, moved_by, batch.design.shape[1])
    if adaptive:
        new = _merged(old, new, np.flatnonzero(finite))  # a broken column has no objective
        eps = float(np.finfo(batch.design.dtype).eps)
        accepted &= damping.judge(_objective(batch, new, settings), residual, eps)
    still = accepted & (residual <= (settings.tol or 0.0))
    tuned = models
    if tuner is not None:
        tuned = tuner(iteration, batch.columns, models, out, statistics, train, batch.y)
        still &= _same_parameters(models, tuned, settings.tol or 0.0)
    moved = np.flatnonzero(accepted)
    batch.state, batch.spare = _merged(old, new, moved), old.weights
    batch.models = models.replaced(moved, tuned, moved)
    batch.made_with = batch.made_with.replaced(moved, models, moved)
    damping.adapt(accepted, finite, adaptive)
    return kept.retire(batch, still, iteration)


def _objective(batch: _Batch, state: State, settings: SolverSettings) -> Array:
    likelihood, prior = batch.models
    if settings.mode == "max-sum":
        return objective.map_cost(state, batch.y, batch.design.train, likelihood, prior)
    return objective.bethe_free_energy(state, batch.y, batch.design, likelihood, prior)


def _residual(old: State, out: Output, moved_by: Array, n_features: int) -> Array:
    """Relative change of weights or of slopes, whichever is larger, before damping shrinks it.

    Weights that vanish are measured by a small share of their pseudo-noise, N over the root of the summed
    1 / tau_r: features without data, whose tau_r is huge, count for nothing in it.
    """
    change, size, information = np.sqrt(np.maximum(moved_by, np.finfo(float).tiny))
    weights = change / (size + _NOTHING * n_features / information)
    return np.maximum(weights, _norm(out.s - old.s) / np.maximum(_norm(out.s), _NO_SLOPE))


def _same_parameters(old: Models, new: Models, tol: float) -> NDArray:
    still = np.array(True)
    for before, after in zip(old, new, strict=True):
        values = parameters(after)
        for name, value in parameters(before).items():
            close = np.abs(values[name] - value) <= tol * np.abs(value)
            still = still & (close.all(axis=0) if close.ndim > 1 else close)
    return still


def _merged(old: State, new: State, moved: NDArray) -> State:
    """``new`` with the columns that did not move taken from ``old``."""
    n_columns = new.intercept.size
    if moved.size == n_columns:
        return new
    stuck = np.setdiff1d(np.arange(n_columns), moved)
    for name in (item.name for item in fields(State) if item.name != "weights"):
        getattr(new, name)[..., stuck] = getattr(old, name)[..., stuck]
    if (
        new.weights is old.weights
    ):  # written over: the damped weights, a mean of earlier ones, are what is left
        new.weights.w[:, stuck] = new.weights.w_damped[:, stuck]
        return new
    for to, was in zip(new.weights, old.weights, strict=True):
        to[:, stuck] = was[:, stuck]
    return new


def _norm(values: Array) -> Array:
    return np.sqrt(np.square(values).sum(axis=0, dtype=float))


class _Kept:
    """The states to be returned, filled in as columns improve or end."""

    def __init__(self, batch: _Batch, settings: SolverSettings) -> None:
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

    def store(self, batch: _Batch, local: NDArray, score: Array, iteration: int) -> None:
        """Keep the present state of some columns (``local`` numbers within the batch)."""
        state, at = batch.state, batch.columns[local]
        for to, column in zip(at, local, strict=True):
            self.r[:, to], self.tau_r[:, to] = state.weights.r[:, column], state.weights.tau_r[:, column]
        self.intercept[at] = state.intercept[local]
        self.tau_p[:, at] = state.tau_z[:, local]
        self.p[:, at] = (state.z + state.intercept - state.s * state.tau_z)[:, local]
        self.kept_iter[at], self.score[at] = iteration, score
        self.models = self.models.replaced(at, batch.made_with, local)

    def store_better(self, batch: _Batch, score: Array, iteration: int) -> None:
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

    def retire(self, batch: _Batch, still: NDArray, iteration: int) -> _Batch | None:
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

    def _final_score(self, batch: _Batch, local: NDArray) -> Array:
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
