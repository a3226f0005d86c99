"""One GAMP iteration (the paper's Algorithm 1): state in, state out.

Symbols are the paper's: w, tau_w weights; z = X w scores; p, tau_p their leave-one-out (cavity)
predictions; s, tau_s slopes of the output side; r, tau_r pseudo-data of the weights. Arrays with N
rows have the precision of X, everything with M rows is float64. Arrays with N rows are large, so two
functions write to memory that they are given: ``input_step`` puts the next weights into ``spare``, and
``State.take`` moves columns within the arrays of its weights.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..parallel import BlockMap
from .blocks import Block, Scratch
from .design import Design
from .moments import Array, floored
from .result import GampResult
from .scalar_steps import (
    StepFunction,
    TrainingElements,
    Weights,
    counted,
    loss_slope,
    max_sum_step,
    sum_product_step,
)
from .settings import ResolvedSettings

# (last weights, next weights, features, X' s, 1 / tau_r, step) -> contribution


_FLAT = 1e20  # pseudo-variance of a weight about which the data say nothing yet
# Least sum of tau_s as a share of the summed squared slopes: of the intercept, and of the weights where rows
# of a likelihood that is not log-concave have a negative tau_s.
_LEAST_CURVATURE = 0.1
_CURVATURE_FLOOR = 1e-12  # relative to the mean of S' tau_s
_LEAST_PRECISION = 1e-34  # 1 / tau_r where no row has a curvature; float32 holds it, and products with it


@dataclass(frozen=True)
class State:
    """Everything that one iteration hands to the next, for B columns.

    ``w_damped``, ``s``, ``tau_s``, ``tau_p`` carry the damping; ``w``, ``z``, ``tau_z`` do not. Variances of
    the weights follow from r and tau_r and are not kept.
    """

    weights: Weights  # (N, B) each
    z: Array  # (M, B) X w, without the intercept
    tau_z: Array  # (M, B) S tau_w, or (1, B) with uniform variances
    tau_p: Array  # (M, B) or (1, B)
    s: Array  # (M, B)
    tau_s: Array  # (M, B)
    intercept: Array  # (B,)

    def take(self, columns: Any) -> "State":
        """Some of the columns, in ascending order; writes them to the front of the arrays of the weights."""
        return replace(
            self.rows(columns), weights=Weights(*(_packed(part, columns) for part in self.weights))
        )

    def rows(self, columns: Any) -> "State":
        """Some of the columns of everything with M rows; the weights stay whole."""
        return replace(
            self, **{name: value[..., columns] for name, value in vars(self).items() if name != "weights"}
        )


def _packed(values: Array, columns: Any) -> Array:
    """Some columns of a Fortran-ordered array, in ascending order, moved to its front; no new memory."""
    for to, column in enumerate(columns):
        if to != column:
            values[:, to] = values[:, column]
    return values[:, : len(columns)]


class Output(NamedTuple):
    """The output side of an iteration: cavity predictions, slopes and log-partition of each row, (M, B).

    All are those of one copy of a row, however often it counts.
    """

    p: Array
    tau_p: Array
    s: Array
    tau_s: Array
    log_partition: Array
    intercept_step: Array  # (B,)


def start(design: Design, y: Array, likelihood: Any, prior: Any, settings: ResolvedSettings) -> State:
    """Begin at the prior: its mean and variance for every weight.

    The slopes s begin at 0 and grow by damped steps, while their precisions tau_s begin at their
    values there: the first steps are then small and almost linear in the labels.
    """
    _, n_features, n_columns = design.shape
    mean, var = prior.posterior(np.zeros((1, n_columns)), np.full((1, n_columns), _FLAT))
    nothing, flat = np.zeros_like(mean), np.full_like(mean, _FLAT)
    parts = [_filled(row, n_features, design.dtype) for row in (mean, mean, nothing, flat)]
    weights = Weights(*[*parts, _start_pi(design, prior)])
    z, tau_z = _zeros(design, settings)
    if mean.any():
        zeros = weights.r  # as variances: those of the scores are known below
        z, _ = forward(design, weights.w, zeros, settings)
    uniform = settings.variance == "uniform"
    tau_z += _uniform_tau_z(design, n_features * var[0]) if uniform else design.row_energy() * var
    no_slope = np.zeros_like(z)
    state = State(weights, z, tau_z, tau_z, no_slope, no_slope, np.zeros(n_columns))
    tau_s = output_step(state, y, design.row_counts, likelihood, np.ones(n_columns), settings.mode).tau_s
    return replace(state, tau_s=tau_s)


def _start_pi(design: Design, prior: Any) -> Array:
    """The prior's rate for every weight, where there are neighbours that read it."""
    _, n_features, n_columns = design.shape
    if design.neighbours is None:
        return np.empty((0, n_columns), dtype=design.dtype)
    return _filled(prior.rate[None], n_features, design.dtype)


def resume(
    design: Design, y: Array, likelihood: Any, prior: Any, warm: GampResult, settings: ResolvedSettings
) -> State:
    """Begin where an earlier result ended: its weights, and the slopes at its cavity predictions p."""
    pi = _start_pi(design, prior)
    if pi.shape == warm.pi.shape:
        pi = warm.pi
    parts = (warm.coef, warm.coef, warm.r, warm.tau_r, pi)
    weights = Weights(*(np.array(part, dtype=design.dtype, order="F") for part in parts))
    z, tau_z = forward(design, weights.w, warm.coef_var.astype(design.dtype), settings)
    given = State(weights, warm.p, tau_z, tau_z, 0 * z, 0 * z, np.zeros_like(warm.intercept))
    out = output_step(given, y, design.row_counts, likelihood, np.ones(z.shape[1]), settings.mode)
    return replace(given, z=z, s=out.s, tau_s=out.tau_s, intercept=warm.intercept.copy())


def _filled(row: Array, n_features: int, dtype: Any) -> Array:
    """The same row for every feature, in Fortran order."""
    out = np.empty((n_features, row.shape[1]), dtype=dtype, order="F")
    out[:] = row
    return out


def forward(design: Design, w: Array, tau_w: Array, settings: ResolvedSettings) -> tuple[Array, Array]:
    """Scores X w and their variances S tau_w (lines 2 and 3 of Algorithm 1)."""
    z, tau_z = _zeros(design, settings)
    for block in design.blocks():
        if settings.variance == "full":
            design.center_squares(block)
        part, tau_part = _forward(block, w[block.features], tau_w[block.features], settings)
        z += part
        tau_z += tau_part
    if settings.variance == "uniform":
        tau_z = _uniform_tau_z(design, tau_z[0])
    return design.around_training_mean(z), tau_z


def output_step(state: State, y: Array, row_counts: Array, likelihood: Any, step: Array, mode: str) -> Output:
    """Lines 2 to 12: cavity predictions and slopes, evaluated on the rows that count (``Design.row_counts``).

    A held-out row has a flat likelihood: its slopes and its log-partition are 0.
    """
    tau_p = floored(step * state.tau_z + (1 - step) * state.tau_p)
    p = state.z + state.intercept - state.s * tau_p
    elements = TrainingElements(row_counts > 0, likelihood)
    given = [elements.pick(values) for values in (y, p, tau_p)]
    log_partition: Array = np.zeros_like(p)
    if mode == "sum-product":
        s, tau_s, log_partition = map(elements.put, elements.step(sum_product_step, *given))
    else:
        s, tau_s = map(elements.put, elements.step(max_sum_step, *given))
    if mode == "max-sum" or likelihood.is_log_concave:  # else rows may be negative, and only sums are floored
        tau_s = np.maximum(tau_s, 0.0)
    newton_step = _intercept_step(s, tau_s, row_counts)
    if mode == "max-sum" and not likelihood.kinks:
        # While the weights are on their way cavity and loss may disagree; uphill the intercept waits.
        (slopes,) = elements.step(loss_slope, given[0], elements.pick(state.z + state.intercept))
        slopes = counted(slopes, elements.pick(row_counts))
        newton_step = np.where(newton_step * elements.column_sums(slopes) > 0, newton_step, 0.0)
    return Output(p, tau_p, s, tau_s, log_partition, newton_step)


def input_step(
    state: State,
    out: Output,
    design: Design,
    update_block: StepFunction,
    step: Array,
    settings: ResolvedSettings,
    spare: Weights,
    over_blocks: BlockMap = map,
    scratch: Scratch | None = None,
) -> tuple[State, dict[str, Array], Array]:
    """Lines 13 to 20 and, on the same pass over X, the next iteration's products (lines 2 and 3).

    Writes the next weights to ``spare``, which may be the present ones and is part of the state returned.
    Returns the next state, the summed EM statistics of the prior (none in max-sum mode) and how far the
    weights moved (``BlockStep``).
    """
    s = step * out.s + (1 - step) * state.s
    tau_s = step * out.tau_s + (1 - step) * state.tau_s
    step_size = step.astype(design.dtype)
    adjoint_step = _adjoint_step(design, s, tau_s, settings)

    def visit(block: Block) -> tuple[Array, Array, dict[str, Array], Array]:
        at = block.features
        done = update_block(state.weights, spare, at, *adjoint_step(block), step_size)
        z_part, tau_part = _forward(block, spare.w[at], done.tau_w, settings)
        return z_part, tau_part, done.sums, done.moved

    z, tau_z = _zeros(design, settings)
    statistics: dict[str, Array] = {}
    moved = np.zeros((3, step.size))
    for z_part, tau_part, sums, moved_part in over_blocks(visit, design.blocks(scratch=scratch)):
        z += z_part
        tau_z += tau_part
        moved += moved_part
        for name, value in sums.items():
            statistics[name] = statistics[name] + value if name in statistics else value
    if settings.variance == "uniform":
        tau_z = _uniform_tau_z(design, tau_z[0])
    z = design.around_training_mean(z)
    intercept = state.intercept + step * out.intercept_step if settings.intercept else state.intercept
    return State(spare, z, tau_z, out.tau_p, s, tau_s, intercept), statistics, moved


def _adjoint_step(
    design: Design, s: Array, tau_s: Array, settings: ResolvedSettings
) -> Callable[[Block], tuple[Array, Array]]:
    """X' s and the precisions 1 / tau_r (line 13) of a block, both (n, B)."""
    tau_s = counted(tau_s, design.row_counts)
    narrow_s, narrow_tau_s = design.counted_and_centered(s).astype(design.dtype), tau_s.astype(design.dtype)
    square = counted(np.square(s), design.row_counts)
    floor = curvature_floor(design, tau_s, square)
    precision = _uniform_precision(design, tau_s, square) if settings.variance == "uniform" else None

    def products(block: Block) -> tuple[Array, Array]:
        if precision is not None:
            adjoint = block.adjoint(narrow_s)
            return adjoint, np.asfortranarray(np.broadcast_to(precision, adjoint.shape))
        adjoint, curvature = block.adjoint_pair(narrow_s, narrow_tau_s)
        return adjoint, np.maximum(curvature, floor, out=curvature)

    return products


def _forward(block: Block, w: Array, tau_w: Array, settings: ResolvedSettings) -> tuple[Array, Array]:
    """What a block adds to X w and to S tau_w, or to the sum of tau_w where variances are uniform."""
    if settings.variance == "uniform":
        return block.forward(w), tau_w.sum(axis=0, dtype=float)[None]
    return block.forward_pair(w, tau_w)


def _intercept_step(s: Array, tau_s: Array, row_counts: Array) -> Array:
    """A Newton step of the intercept on the sum of the rows, (B,).

    A row that is far off pulls with all its slope and has no curvature left (hinge: none at all); a share
    of the squared slope, which is the curvature of an undecided row, keeps the step within reason.
    """
    slope, precision, square = (counted(part, row_counts).sum(axis=0) for part in (s, tau_s, np.square(s)))
    curvature = np.maximum(precision, _LEAST_CURVATURE * square)
    return slope / np.maximum(curvature, np.finfo(float).tiny)


def _zeros(design: Design, settings: ResolvedSettings) -> tuple[Array, Array]:
    n_rows, _, n_columns = design.shape
    z = np.zeros((n_rows, n_columns))
    return z, (np.zeros_like(z) if settings.variance == "full" else np.zeros((1, n_columns)))


def curvature_floor(design: Design, tau_s: Array, square: Array) -> Array:
    """Smallest S' tau_s that counts, one per column (B,); it caps tau_r of features that do not vary.

    ``tau_s`` and ``square``, the squared slopes, are those of a row times how often it counts. Rows of a
    likelihood that is not log-concave may have a negative tau_s; sums of them may not.
    """
    energy = design.row_energy()
    floor = np.maximum(_CURVATURE_FLOOR * (energy * tau_s).sum(axis=0), _floor_of_sum(tau_s, energy * square))
    return np.maximum(floor / design.shape[1], _LEAST_PRECISION).astype(design.dtype)


def _floor_of_sum(tau_s: Array, square: Array) -> Array:
    """What a sum of tau_s is at least where some are negative, (B,): a share of the summed squared slopes.

    Both have the same mean where the model is right. Without negative ones there is no such floor.
    """
    return np.where((tau_s < 0).any(axis=0), _LEAST_CURVATURE * square.sum(axis=0), 0.0)


def _uniform_tau_z(design: Design, total_tau_w: Array) -> Array:
    """Line 2 with one variance per column (Rangan's GAMP with scalar variances), (1, B).

    Mean training-row energy times the mean weight variance.
    """
    return (design.mean_row_energy() * total_tau_w / design.shape[1])[None]


def _uniform_precision(design: Design, tau_s: Array, square: Array) -> Array:
    """Line 13 with one variance per column: one 1 / tau_r, (1, B).

    Mean of the row energies times their summed slope variance over N.
    """
    n_train = design.row_counts.sum(axis=0)
    energy = (design.row_energy() * design.row_counts).sum(axis=0)
    curvature = np.maximum(tau_s.sum(axis=0), _floor_of_sum(tau_s, square))
    mean = energy * curvature / n_train / design.shape[1]
    return np.maximum(mean, _LEAST_PRECISION)[None].astype(design.dtype)
