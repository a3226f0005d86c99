"""What a run is judged by, one number per column: MAP cost, Bethe free energy, cavity score."""

from typing import Any

import numpy as np

from .design import Design
from .iteration import Output, State
from .moments import Array, floored
from .training_elements import counted


def cavity_score(out: Output, row_counts: Array) -> Array:
    """Mean leave-one-out log-likelihood of the training rows, (B,).

    p and tau_p are the predictions of a row from all the others, so the log-partition of the row is
    its leave-one-out predictive log-likelihood: a cross-validation that costs nothing.
    """
    return mean_row(out.log_partition, row_counts)


def mean_row(values: Array, row_counts: Array) -> Array:
    """Mean over the training rows, each as often as it counts, (B,)."""
    return _row_sum(values, row_counts) / row_counts.sum(axis=0)


def _row_sum(values: Array, row_counts: Array) -> Array:
    """Sum over the training rows, each as often as it counts, (B,)."""
    return counted(np.where(row_counts > 0, values, 0.0), row_counts).sum(axis=0)


def map_cost(state: State, y: Array, row_counts: Array, likelihood: Any, prior: Any) -> Array:
    """Summed loss of the training rows plus the penalty of the weights (eq. reg_loss_min), (B,)."""
    loss = likelihood.loss(y, state.z + state.intercept)
    return _row_sum(loss, row_counts) + prior.penalty(state.weights.w).sum(axis=0, dtype=float)


def bethe_free_energy(state: State, y: Array, design: Design, likelihood: Any, prior: Any) -> Array:
    """Bethe free energy of a sum-product state, (B,); GAMP's fixed points are its stationary points.

    F = sum_n KL(q(w_n) || p(w_n)) - sum_m [log C(p_m, tau_p) + (z_m - p_m)^2 / (2 tau_p)], where q is the
    posterior at (r, tau_r) and p_m is chosen so that the posterior mean at p_m is z_m = x_m' w.
    """
    tau_p = floored(state.tau_z)
    z = state.z + state.intercept
    p = z - state.s * tau_p
    for _ in range(_NEWTON_STEPS):
        s, tau_s = likelihood.score(y, p, tau_p)
        slope = np.maximum(1 - tau_p * tau_s, 1e-6)  # d posterior mean / d p
        reach = 3 * np.sqrt(tau_p) + 1
        p = p + np.nan_to_num(np.clip((z - p - tau_p * s) / slope, -reach, reach))
    rows = likelihood.log_partition(y, p, tau_p) + np.square(z - p) / (2 * tau_p)
    return _divergence(state, prior) - _row_sum(rows, design.row_counts)


# The correction starts at the running p, which is right at a fixed point: a few steps suffice.
_NEWTON_STEPS = 4


def _divergence(state: State, prior: Any) -> Array:
    """sum_n KL(q(w_n) || p(w_n)) with q(w) = p(w) N(w; r, tau_r) / C."""
    r, tau_r = (part.astype(float) for part in (state.weights.r, state.weights.tau_r))
    mean, var = prior.posterior(r, tau_r)
    second = np.square(mean - r) + var
    log_density = -0.5 * (np.log(2 * np.pi * tau_r) + second / tau_r)
    return (log_density - prior.log_partition(r, tau_r)).sum(axis=0)
