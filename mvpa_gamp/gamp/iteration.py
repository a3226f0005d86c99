"""One GAMP iteration (the paper's Algorithm 1) as pure functions: state in, state out.

Symbols are the paper's: w, tau_w weights; z = X w scores; p, tau_p their leave-one-out (cavity)
predictions; s, tau_s slopes of the output side; r, tau_r pseudo-data of the weights. Arrays with N
rows have the precision of X, everything with M rows is float64.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from .blocks import Block
from .design import Design
from .moments import Array, Moments
from .parameters import take
from .result import GampResult
from .settings import SolverSettings
from .threads import BlockMap

_TAU_P_FLOOR = 1e-12  # an all-zero iterate has tau_p = 0; scores are of order one, so this is "nothing"
_FLAT = 1e20  # pseudo-variance of a weight about which the data say nothing yet
_KINKED_CURVATURE = 0.1  # of a loss without curvature, such as hinge: about that of a logistic nearby
_LEAST_CURVATURE = 0.1  # of the intercept, as a share of the summed squared slopes
_CURVATURE_FLOOR = 1e-12  # smallest S' tau_s relative to its mean: caps tau_r of constant features


@dataclass(frozen=True)
class State:
    """Everything that one iteration hands to the next, for B columns.

    ``w_damped``, ``s``, ``tau_s``, ``tau_p`` carry the damping; ``w``, ``tau_w``, ``z``, ``tau_z`` do not.
    """

    w: Array  # (N, B)
    tau_w: Array  # (N, B)
    w_damped: Array  # (N, B)
    r: Array  # (N, B)
    tau_r: Array  # (N, B)
    z: Array  # (M, B) X w, without the intercept
    tau_z: Array  # (M, B) S tau_w, or (1, B) with uniform variances
    tau_p: Array  # (M, B) or (1, B)
    s: Array  # (M, B)
    tau_s: Array  # (M, B)
    intercept: Array  # (B,)

    def take(self, columns: Any) -> "State":
        """Some of the columns."""
        return State(**{name: value[..., columns] for name, value in vars(self).items()})


class Output(NamedTuple):
    """The output side of an iteration: cavity predictions, slopes and log-partition of each row, (M, B)."""

    p: Array
    tau_p: Array
    s: Array
    tau_s: Array
    log_partition: Array
    shift: Array  # (B,) step of the intercept


def start(design: Design, y: Array, likelihood: Any, prior: Any, settings: SolverSettings) -> State:
    """Begin at the prior: its mean and variance for every weight.

    The slopes s begin at 0 and grow by damped steps, while their precisions tau_s begin at their
    values there: the first steps are then small and almost linear in the labels.
    """
    _, n_features, n_columns = design.shape
    flat = np.full((n_features, n_columns), _FLAT, dtype=design.dtype, order="F")
    r = np.zeros_like(flat)
    w, tau_w = (np.array(part, dtype=design.dtype, order="F") for part in prior.posterior(r, flat))
    z, tau_z = forward(design, w, tau_w, settings)
    zeros = np.zeros_like(z)
    state = State(w, tau_w, w, r, flat, z, tau_z, tau_z, zeros, zeros, np.zeros(n_columns))
    tau_s = output_step(state, y, design.train, likelihood, np.ones(n_columns), settings.mode).tau_s
    return replace(state, tau_s=tau_s)


def resume(design: Design, y: Array, likelihood: Any, warm: GampResult, settings: SolverSettings) -> State:
    """Begin where an earlier result ended: its weights, and the slopes at its cavity predictions p."""
    w, tau_w, r, tau_r = (
        np.array(part, dtype=design.dtype, order="F")
        for part in (warm.coef, warm.coef_var, warm.r, warm.tau_r)
    )
    z, tau_z = forward(design, w, tau_w, settings)
    given = State(w, tau_w, w, r, tau_r, warm.p, tau_z, tau_z, 0 * z, 0 * z, np.zeros_like(warm.intercept))
    out = output_step(given, y, design.train, likelihood, np.ones(z.shape[1]), settings.mode)
    return replace(given, z=z, s=out.s, tau_s=out.tau_s, intercept=warm.intercept.copy())


def forward(design: Design, w: Array, tau_w: Array, settings: SolverSettings) -> tuple[Array, Array]:
    """Scores X w and their variances S tau_w (lines 2 and 3 of Algorithm 1)."""
    z, tau_z = _zeros(design, settings)
    for block in design.blocks():
        z += block.forward(w[block.features])
        if settings.variance == "full":
            tau_z += block.forward_squares(tau_w[block.features])
    if settings.variance == "uniform":
        tau_z += _uniform_tau_z(design, tau_w)
    return z, tau_z


def output_step(state: State, y: Array, train: Array, likelihood: Any, step: Array, mode: str) -> Output:
    """Lines 2 to 12: cavity predictions and slopes, evaluated on training rows only.

    A held-out row has a flat likelihood: its slopes and its log-partition are 0.
    """
    tau_p = np.maximum(step * state.tau_z + (1 - step) * state.tau_p, _TAU_P_FLOOR)
    p = state.z + state.intercept - state.s * tau_p
    columns = np.nonzero(train)[1]
    of_element = take(likelihood, columns)
    given = (y[train], p[train], np.broadcast_to(tau_p, p.shape)[train])
    s, tau_s, log_partition = (np.zeros_like(p) for _ in range(3))
    if mode == "sum-product":
        (s[train], tau_s[train]), log_partition[train] = of_element.evaluate(*given)
    else:
        s[train], tau_s[train] = of_element.prox_score(*given)
        if likelihood.kinks:  # tau_s only sets the length of max-sum steps, it moves no fixed point
            tau_s[train] = np.maximum(tau_s[train], _KINKED_CURVATURE / (1 + _KINKED_CURVATURE * given[2]))
    tau_s = np.maximum(tau_s, 0.0)  # robust likelihoods are not log-concave: such a row has no precision
    shift = _shift(s, tau_s)
    if mode == "max-sum" and not likelihood.kinks:
        # While the weights are on their way cavity and loss may disagree; uphill the intercept waits.
        slopes = of_element.loss_slopes(given[0], (state.z + state.intercept)[train]).s
        shift = np.where(shift * np.bincount(columns, slopes, shift.size) > 0, shift, 0.0)
    return Output(p, tau_p, s, tau_s, log_partition, shift)


def input_step(
    state: State,
    out: Output,
    design: Design,
    prior: Any,
    step: Array,
    settings: SolverSettings,
    over_blocks: BlockMap = map,
) -> tuple[State, dict[str, Array]]:
    """Lines 13 to 19 and, on the same pass over X, the next iteration's products (lines 2 and 3).

    Returns the next state and the summed EM statistics of the prior (none in max-sum mode).
    """
    s = step * out.s + (1 - step) * state.s
    tau_s = step * out.tau_s + (1 - step) * state.tau_s
    narrow_s, narrow_tau_s, mix = (part.astype(design.dtype) for part in (s, tau_s, step))
    floor = _curvature_floor(design, tau_s)
    uniform_tau_r = _uniform_tau_r(design, tau_s) if settings.variance == "uniform" else None
    w, tau_w, w_damped, r, tau_r = (np.empty_like(state.w, order="F") for _ in range(5))

    def visit(block: Block) -> tuple[Array, Array | float, dict[str, Array]]:
        at = block.features
        if uniform_tau_r is None:
            tau_r[at] = 1 / np.maximum(block.adjoint_squares(narrow_tau_s), floor)  # line 13
        else:
            tau_r[at] = uniform_tau_r
        w_damped[at] = mix * state.w[at] + (1 - mix) * state.w_damped[at]
        r[at] = w_damped[at] + tau_r[at] * block.adjoint(narrow_s)  # line 14
        (w[at], tau_w[at]), sums = _weights(prior, r[at], tau_r[at], settings.mode)
        tau_z = 0.0 if uniform_tau_r is not None else block.forward_squares(tau_w[at])
        return block.forward(w[at]), tau_z, sums

    z, tau_z = _zeros(design, settings)
    statistics: dict[str, Array] = {}
    for part, tau_part, sums in over_blocks(visit, design.blocks()):
        z += part
        tau_z += tau_part
        for name, value in sums.items():
            statistics[name] = statistics[name] + value if name in statistics else value
    if uniform_tau_r is not None:
        tau_z += _uniform_tau_z(design, tau_w)
    intercept = state.intercept + step * out.shift if settings.intercept else state.intercept
    return State(w, tau_w, w_damped, r, tau_r, z, tau_z, out.tau_p, s, tau_s, intercept), statistics


def _shift(s: Array, tau_s: Array) -> Array:
    """A Newton step of the intercept on the sum of the rows, (B,).

    A row that is far off pulls with all its slope and has no curvature left (hinge: none at all); a share
    of the squared slope, which is the curvature of an undecided row, keeps the step within reason.
    """
    curvature = np.maximum(tau_s.sum(axis=0), _LEAST_CURVATURE * np.square(s).sum(axis=0))
    return s.sum(axis=0) / np.maximum(curvature, np.finfo(float).tiny)


def _weights(prior: Any, r: Array, tau_r: Array, mode: str) -> tuple[Moments, dict[str, Array]]:
    if mode == "sum-product":
        return prior.expect(r, tau_r)
    return prior.prox(r, tau_r), {}


def _zeros(design: Design, settings: SolverSettings) -> tuple[Array, Array]:
    n_rows, _, n_columns = design.shape
    z = np.zeros((n_rows, n_columns))
    return z, (np.zeros_like(z) if settings.variance == "full" else np.zeros((1, n_columns)))


def _curvature_floor(design: Design, tau_s: Array) -> Array:
    mean = (design.row_energy() * tau_s).sum(axis=0) / design.shape[1]
    tiny = np.finfo(design.dtype).tiny * 1e4
    return np.maximum(_CURVATURE_FLOOR * mean, tiny).astype(design.dtype)


def _uniform_tau_z(design: Design, tau_w: Array) -> Array:
    """Mean training-row energy times the mean weight variance, (1, B)."""
    energy = (design.row_energy() * design.train).sum(axis=0) / design.train.sum(axis=0)
    return (energy * tau_w.mean(axis=0, dtype=float))[None]


def _uniform_tau_r(design: Design, tau_s: Array) -> Array:
    """One pseudo-variance per column: N / sum of row energies times their mean slope variance."""
    n_train = design.train.sum(axis=0)
    energy = (design.row_energy() * design.train).sum(axis=0)
    mean = energy * tau_s.sum(axis=0) / n_train / design.shape[1]
    mean = np.maximum(mean, np.finfo(design.dtype).tiny * 1e4)
    return (1 / mean)[None].astype(design.dtype)
