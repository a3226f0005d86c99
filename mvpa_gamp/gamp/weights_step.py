"""The input side of one block of features: pseudo-data, damping, posterior (lines 13 to 20 of Algorithm 1).

``Weights`` are (N, B) arrays in Fortran order, so that a column lies together in memory; a step reads the
weights of the last iteration and writes those of the next, both at the features of one block. A prior may
offer a step of its own (``fused_step``); the one here works for all.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .moments import Array, Moments


class Weights(NamedTuple):
    """What an iteration knows of the weights, each (N, B)."""

    w: Array
    w_damped: Array
    r: Array
    tau_r: Array
    pi: Array  # P(w != 0), kept where neighbours read it; (0, B) elsewhere


class BlockStep(NamedTuple):
    """What one block contributes to the rest of the iteration."""

    tau_w: Array  # (n, B) variances of the new weights
    sums: dict[str, Array]  # EM statistics of the prior
    moved: Array  # (3, B) sums of (w - w_damped)^2, w^2 and 1 / tau_r


# (last weights, next weights, features, X' s, 1 / tau_r, step) -> contribution
StepFunction = Callable[[Weights, Weights, slice, Array, Array, Array], BlockStep]


def step_function(prior: Any, mode: str, fused: bool = False, log_odds: Array | None = None) -> StepFunction:
    """The step for this prior, which writes to the next weights; ``fused`` asks for a compiled one first.

    ``log_odds`` (N, B), in Fortran order, are those of every weight's own rate, instead of the prior's.
    """
    offered = prior.fused_step(log_odds) if fused and mode == "sum-product" else None
    return offered or _plain_step(prior, mode, log_odds)


def _plain_step(prior: Any, mode: str, log_odds: Array | None) -> StepFunction:
    @np.errstate(over="ignore", invalid="ignore")  # columns that are not finite are taken back
    def step(
        last: Weights, new: Weights, at: slice, adjoint: Array, precision: Array, step_size: Array
    ) -> BlockStep:
        tau_r = np.reciprocal(precision)
        w_damped = step_size * last.w[at]
        w_damped += (1 - step_size) * last.w_damped[at]
        r = tau_r * adjoint
        r += w_damped  # line 14
        if log_odds is None:
            (w, tau_w), sums = _weights(prior, r, tau_r, mode)
        else:
            (w, tau_w), sums, new.pi[at] = prior.expect_local(r, tau_r, log_odds[at])
        new.w[at], new.w_damped[at], new.r[at], new.tau_r[at] = w, w_damped, r, tau_r
        w_damped -= w
        return BlockStep(tau_w, sums, np.array([_squared(w_damped), _squared(w), _total(precision)]))

    return step


def _weights(prior: Any, r: Array, tau_r: Array, mode: str) -> tuple[Moments, dict[str, Array]]:
    if mode == "sum-product":
        return prior.expect(r, tau_r)
    return prior.prox(r, tau_r), {}


def _squared(values: Array) -> Array:
    return np.einsum("nb,nb->b", values, values, dtype=float)


def _total(values: Array) -> Array:
    return values.sum(axis=0, dtype=float)
