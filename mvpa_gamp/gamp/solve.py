"""The one loop: many columns, each with its own damping, stopping and status.

Columns never see each other. A column that ends leaves the batch; the others go on with less work.
"""

import reprlib
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..parallel import BlockMap, block_threads
from .batch import Batch, Best
from .blocks import Scratch
from .design import Design
from .iteration import Output, State, input_step, output_step
from .moments import Array, floored
from .neighbours import check_neighbours
from .parameters import Models, held_models, parameters
from .result import ITERATION_LIMIT, KINKED, GampResult
from .scalar_steps import Weights, counted, step_function
from .settings import ResolvedSettings, SolverSettings
from .stopping import Stopping, bethe_free_energy, cavity_score, judged, map_cost, mean_row

_NOTHING = 1e-3  # share of its pseudo-noise that is nothing for a weight
_NO_SLOPE = 1e-100  # of a likelihood that is satisfied to underflow


class Progress(NamedTuple):
    """What a callback sees after each iteration."""

    iteration: int
    n_active: int
    n_columns: int
    max_iter: int


# (running columns, their output, the prior's statistics) -> models for the next iteration
Tuner = Callable[[Batch, Output, dict[str, Array]], Models]


class Tools(NamedTuple):
    """What every iteration of a solve uses and none changes."""

    settings: ResolvedSettings
    tuner: Tuner | None
    over_blocks: BlockMap
    scratch: Scratch


class Move(NamedTuple):
    """A step of the running columns, and what is known of it."""

    state: State
    statistics: dict[str, Array]  # of the prior
    residual: Array  # (B,) how far it went
    finite: NDArray  # (B,)
    accepted: NDArray  # (B,) of the finite ones, those that the damping agrees with


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
    ``warm`` starts at an earlier result of the same shape. A parameter beyond what float32 can compute with
    is replaced by the nearest one within, and the status of its columns says so.

    Parameters
    ----------
    design
        X (M, N) and the training rows (M, B) of every column.
    y
        Labels (M,) or (M, B) in -1/+1.
    likelihood
        One of the likelihoods of this package, or one like them.
    prior
        One of the priors of this package, or one like them.
    settings
        None: the defaults of the prior's mode.
    warm
        Where to start; None: at zero.
    callback
        Called after every iteration.

    Returns
    -------
    GampResult
        Weights (N, B) with variances, statuses and leave-one-out scores (B,).

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((100, 200))
    >>> y = np.where(X[:, 3] > X[:, 7], 1, -1)
    >>> from mvpa_gamp.gamp import Bernoulli, Design, Gaussian, Logistic, solve
    >>> result = solve(Design(X), y, Logistic(), Bernoulli(0.05, Gaussian()))
    >>> np.flatnonzero(np.abs(result.coef[:, 0]) > 0.5)
    array([3, 7])
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
    labels = checked_labels(y, design)
    n_columns = design.shape[2]
    models, beyond = held_models(likelihood, prior, n_columns)
    resolved = (settings or SolverSettings()).resolved(design.neighbours is not None)
    for model in (likelihood, prior):
        model.require_mode(resolved.mode)
    if design.neighbours is not None:
        check_neighbours(prior, resolved)
    resolved = replace(resolved, tol=max(resolved.tol, 50 * float(np.finfo(design.dtype).eps)))
    with block_threads(design.n_blocks) as over_blocks:
        tools = Tools(resolved, tuner, over_blocks, Scratch())
        batch: Batch | None = Batch.begin(design, labels, models, resolved, warm)
        assert batch is not None
        best, stopping, iteration = Best.begin(batch), Stopping(resolved, n_columns), 0
        while batch is not None:
            iteration += 1
            batch = _iterate(batch, best, stopping, tools, iteration)
            if callback is not None:
                running = 0 if batch is None else batch.columns.size
                callback(Progress(iteration, running, n_columns, resolved.max_iter))
    _score_starts(best, labels, design, resolved.mode)
    result = _result(best, stopping, design)
    if resolved.mode == "max-sum" and likelihood.kinks:
        result = replace(result, status=np.where(result.status == ITERATION_LIMIT, KINKED, result.status))
    if resolved.mode == "sum-product" and (tuner is not None or resolved.stop == "cavity"):
        result = replace(result, status=judged(result, stopping.start_score, labels, design.row_counts > 0))
    return replace(result, status=np.where(beyond == "", result.status, beyond).astype(str)), best.models


def _score_starts(best: Best, labels: Array, design: Design, mode: str) -> None:
    """The cavity score of columns that never got beyond their start, of which none was noted."""
    at = np.flatnonzero(np.isneginf(best.score))
    if mode == "sum-product" and at.size:
        given = labels[:, at], best.p[:, at], floored(best.tau_p[:, at])
        rows = best.models.take(at).likelihood.log_partition(*given)
        best.score[at] = np.maximum(mean_row(rows, design.row_counts[:, at]), np.finfo(float).min)


def _result(best: Best, stopping: Stopping, design: Design) -> GampResult:
    """All columns, with the scores of all rows: held-out ones, which the loop need not visit, included."""
    coef, coef_var = best.weights(stopping.settings.mode)
    z, tau_z, offset = design.scores(coef, coef_var)
    z = z + best.intercept
    return GampResult(
        coef=coef,
        coef_var=coef_var,
        intercept=best.intercept,
        plain_intercept=best.intercept + offset,
        z=z,
        tau_z=tau_z,
        p=np.where(design.train, best.p, z),
        tau_p=np.where(design.train, best.tau_p, tau_z),
        r=best.r,
        tau_r=best.tau_r,
        pi=best.pi,
        n_iter=stopping.n_iter,
        kept_iter=best.iteration,
        status=stopping.status.astype(str),
        cavity_score=np.where(np.isneginf(best.score), np.nan, best.score),
    )


def checked_labels(y: Any, design: Design) -> Array:
    """Labels as (M, B) floats, 1 on rows that a column does not train on."""
    n_rows, _, n_columns = design.shape
    y = _numbers(y)
    if y.shape not in ((n_rows,), (n_rows, n_columns)):
        raise ValueError(
            f"y must have shape ({n_rows},) or ({n_rows}, {n_columns}), got {y.shape}. Give one label "
            "per row of X, or one per row and column of train."
        )
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
            f"Every column needs training rows of both classes, but columns {alone.tolist()} have only "
            "one. Drop these columns or give them more rows."
        )
    return y


def _numbers(y: Any) -> Array:
    """Labels as floats, or the sentence on what they must be."""
    given = np.asarray(y)
    try:
        if given.dtype.kind not in "biufO":  # words that look like numbers are words all the same
            raise ValueError
        return given.astype(float)
    except (TypeError, ValueError):
        shown = reprlib.repr(given.ravel()[:3].tolist())
        raise ValueError(
            f"Labels must be the numbers -1 or +1, got {shown} (type {given.dtype}). "
            "Map your two classes to -1 and +1."
        ) from None


def _iterate(batch: Batch, best: Best, stopping: Stopping, tools: Tools, iteration: int) -> Batch | None:
    """One iteration of all running columns; returns those that go on, None when all have ended.

    Updates the batch, the best states and the memory of the stopping rule.
    """
    row_counts, models = batch.design.row_counts, batch.models
    mode, tol = tools.settings.mode, tools.settings.tol
    out = output_step(batch.state, batch.y, row_counts, models.likelihood, batch.damping.step, mode)
    if mode == "sum-product" and iteration == 1:
        stopping.start_score[batch.columns] = cavity_score(out, row_counts)
    if tools.settings.stop == "cavity":
        state_iteration = iteration - 1  # the output side judges the state that the last iteration left
        score = cavity_score(out, row_counts)
        stopping.note_score(batch.columns, score, state_iteration)
        if stopping.is_eligible(state_iteration):
            best.store_better(batch, score, state_iteration)
    move = _move(batch, out, tools)
    still = move.accepted & (move.residual <= tol)
    tuned = models
    if tools.tuner is not None:
        tuned = tools.tuner(batch, out, move.statistics)
        still &= _same_parameters(models, tuned, tol)
    _adopt(batch, move, tuned, tools.settings.adaptive)
    return _retire(batch, best, stopping, still, iteration)


def _move(batch: Batch, out: Output, tools: Tools) -> Move:
    """The input side of an iteration, written to ``batch.spare``, and whether each column may keep it."""
    old, settings, damping = batch.state, tools.settings, batch.damping
    log_odds, over_blocks = _local_log_odds(batch, tools), tools.over_blocks
    update_block = step_function(batch.models.prior, settings.mode, batch.compiled, log_odds)
    new, statistics, moved_by = input_step(
        old, out, batch.design, update_block, damping.step, settings, batch.spare, over_blocks, tools.scratch
    )
    p = new.z - new.s * new.tau_z  # what the next iteration, or the result, makes of it
    finite = np.asarray(np.isfinite(p).all(axis=0) & np.isfinite(new.tau_z).all(axis=0))
    residual = _residual(old, out, moved_by, batch.design)
    accepted = finite
    if settings.adaptive:
        new = _taken_back(new, batch, np.flatnonzero(~finite))  # a broken column has no objective
        eps = float(np.finfo(batch.design.dtype).eps)
        accepted = finite & damping.judge(_objective(batch, new, settings.mode), residual, eps)
    return Move(new, statistics, residual, finite, accepted)


def _local_log_odds(batch: Batch, tools: Tools) -> Array | None:
    """Log-odds of every weight's own rate, (N, B) in memory used again and again; None: one per column."""
    neighbours, pi = batch.design.neighbours, batch.state.weights.pi
    if neighbours is None:
        return None
    out = tools.scratch.like(pi.T, "log-odds").T
    return neighbours.log_odds(pi, batch.models.prior.rate, out, tools.over_blocks)


def _adopt(batch: Batch, move: Move, tuned: Models, adaptive: bool) -> None:
    """Let the batch go where its move leads, with tuned models, in the columns that may."""
    old, models, moved = batch.state, batch.models, np.flatnonzero(move.accepted)
    stuck = np.flatnonzero(~move.accepted)
    batch.state, batch.spare = _taken_back(move.state, batch, stuck), old.weights
    if batch.design.neighbours is not None:  # inclusions of stuck columns are gone; the column's rate is left
        batch.state.weights.pi[:, stuck] = models.prior.rate[stuck]
    batch.models = models.replaced(moved, tuned, moved)
    batch.made_with = batch.made_with.replaced(moved, models, moved)
    batch.damping.adapt(move.accepted, move.finite, adaptive)


def _retire(batch: Batch, best: Best, stopping: Stopping, still: NDArray, iteration: int) -> Batch | None:
    """The columns that go on; of those that end, the last state is stored where it is the one to return."""
    failures, settings = batch.damping.failures, stopping.settings
    ended = stopping.ended(batch.columns, still, failures, iteration)
    if not ended.any():
        return batch
    unseen = ~best.has_state(batch.columns) & (failures == 0)
    last = np.flatnonzero(ended & (unseen | (settings.stop == "fixed-point")))
    best.store(batch, last, _final_score(batch, last, settings.mode), iteration)
    return None if ended.all() else batch.take(np.flatnonzero(~ended))


def _final_score(batch: Batch, local: NDArray, mode: str) -> Array:
    """Cavity score of the present state of some columns; NaN in max-sum mode."""
    if mode == "max-sum" or not local.size:
        return np.full(local.size, np.nan)
    row_counts, likelihood = batch.design.row_counts[:, local], batch.made_with.take(local).likelihood
    rows, y = batch.state.rows(local), batch.y[:, local]
    out = output_step(rows, y, row_counts, likelihood, np.ones(local.size), mode)
    return cavity_score(out, row_counts)


def _objective(batch: Batch, state: State, mode: str) -> Array:
    likelihood, prior = batch.models
    if mode == "max-sum":
        return map_cost(state, batch.y, batch.design.row_counts, likelihood, prior)
    return bethe_free_energy(state, batch.y, batch.design, likelihood, prior)


def _residual(old: State, out: Output, moved_by: Array, design: Design) -> Array:
    """Relative change of weights or of slopes, whichever is larger, before damping shrinks it.

    Weights that vanish are measured by a small share of their pseudo-noise, N over the root of the summed
    1 / tau_r: features without data, whose tau_r is huge, count for nothing in it.
    """
    change, size, information = np.sqrt(np.maximum(moved_by, np.finfo(float).tiny))
    weights = change / (size + _NOTHING * design.shape[1] / information)
    slopes, all_slopes = (_norm(part, design.row_counts) for part in (out.s - old.s, out.s))
    return np.maximum(weights, slopes / np.maximum(all_slopes, _NO_SLOPE))


def _same_parameters(old: Models, new: Models, tol: float) -> NDArray:
    still = np.array(True)
    for before, after in zip(old, new, strict=True):
        values = parameters(after)
        for name, value in parameters(before).items():
            close = np.abs(values[name] - value) <= tol * np.abs(value)
            still = still & (close.all(axis=0) if close.ndim > 1 else close)
    return still


def _taken_back(new: State, batch: Batch, stuck: NDArray) -> State:
    """``new`` with the columns ``stuck`` written over by the batch's present state."""
    if not stuck.size:
        return new
    for name in (item.name for item in fields(State) if item.name != "weights"):
        getattr(new, name)[..., stuck] = getattr(batch.state, name)[..., stuck]
    if batch.in_place:
        _keep_damped_mean(new.weights, stuck)
    else:
        _copy_columns(new.weights, batch.state.weights, stuck)
    return new


def _keep_damped_mean(weights: Weights, stuck: NDArray) -> None:
    """The old weights have been written over; of them the damped mean is left."""
    weights.w[:, stuck] = weights.w_damped[:, stuck]


def _copy_columns(to: Weights, old: Weights, stuck: NDArray) -> None:
    for part, was in zip(to, old, strict=True):
        part[:, stuck] = was[:, stuck]


def _norm(values: Array, row_counts: Array) -> Array:
    return np.sqrt(counted(np.square(values), row_counts).sum(axis=0, dtype=float))
