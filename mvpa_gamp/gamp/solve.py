"""The one loop: many columns, each with its own damping, stopping and status.

Columns never see each other. A column that ends leaves the batch; the others go on with less work.
"""

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..threads import BlockMap, block_threads
from . import objective
from .batch import Batch, Models
from .blocks import Scratch
from .design import Design
from .iteration import Output, State, input_step, output_step
from .kept import Kept
from .moments import Array
from .parameters import expand, parameters
from .result import GampResult
from .settings import SolverSettings
from .weights_step import step_function

_NOTHING = 1e-3  # share of its pseudo-noise that is nothing for a weight
_NO_SLOPE = 1e-100  # of a likelihood that is satisfied to underflow


class Progress(NamedTuple):
    """What a callback sees after each iteration."""

    iteration: int
    n_active: int
    n_columns: int
    max_iter: int


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
    settings = (settings or SolverSettings()).resolved()
    tol = max(settings.tol or 0.0, 50 * float(np.finfo(design.dtype).eps))
    settings = replace(settings, tol=tol)
    labels = checked_labels(y, design)
    n_columns = design.shape[2]
    models = Models(expand(likelihood, n_columns), expand(prior, n_columns))
    if settings.mode == "max-sum":
        prior.prox(np.zeros(1), np.ones(1))  # a prior without a max-sum step says so here
    with block_threads(design.n_blocks) as over_blocks:
        batch: Batch | None = Batch.begin(design, labels, models, settings, warm)
        assert batch is not None
        kept, scratch = Kept(batch, settings), Scratch()
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


def _iterate(
    batch: Batch,
    kept: Kept,
    settings: SolverSettings,
    iteration: int,
    tuner: Tuner | None,
    over_blocks: BlockMap,
    scratch: Scratch,
) -> Batch | None:
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


def _objective(batch: Batch, state: State, settings: SolverSettings) -> Array:
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
