"""The paper's Algorithm 2, a variational bound for the logistic likelihood, and its scale equation."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from mvpa_gamp.gamp.likelihoods.scale_tuning import Rows
from mvpa_gamp.gamp.moments import Array, Moments, Slopes

_MAX_STEPS = 500
_TOLERANCE = 1e-12  # relative change of xi
_FLAT = 1e-12  # smallest 1 - slope that a step is divided by


class VariationalFit(NamedTuple):
    """Approximate posterior, the slopes it implies, and the variational parameter xi."""

    moments: Moments
    slopes: Slopes
    xi: Array


class _Step(NamedTuple):
    """z, 1 + 2 tau_p lambda, tanh(scale xi/2), the next xi, and d(log next)/d(log xi)."""

    z: Array
    shrink: Array
    tanh: Array
    xi: Array
    slope: Array


def fit(y: Any, p: Any, tau_p: Any, scale: Any) -> VariationalFit:
    """The fixed point of lines 2-6 of Algorithm 2; all arguments broadcast.

    lambda = scale/(2 xi) (sigma(scale xi) - 1/2), tau_z = tau_p / (1 + 2 tau_p lambda),
    z = tau_z (p/tau_p + scale y/2), xi = sqrt(tau_z + z^2). The slopes are (z - p)/tau_p and
    (1 - tau_z/tau_p)/tau_p with tau_p divided out. Plain repetition takes about scale sqrt(tau_p) steps, so
    log xi takes Newton's step wherever that stays between the values known to be too small and too large.
    """
    y, p, tau_p, scale = np.broadcast_arrays(*(np.asarray(a, dtype=float) for a in (y, p, tau_p, scale)))
    xi = np.hypot(np.sqrt(tau_p), p)
    low, high, done = np.zeros(xi.shape), np.full(xi.shape, np.inf), np.zeros(xi.shape, dtype=bool)
    for _ in range(_MAX_STEPS):
        step = _step(y, p, tau_p, scale, xi)
        grows = step.xi > xi  # the repetition is monotone: the fixed point is on the side it goes to
        low, high = np.where(grows, xi, low), np.where(grows, high, xi)
        newton = xi * np.exp(np.clip(np.log(step.xi / xi) / np.maximum(1.0 - step.slope, _FLAT), -1.0, 1.0))
        following = np.where((newton > low) & (newton < high), newton, step.xi)
        settled = np.abs(step.xi - xi) <= _TOLERANCE * xi
        xi = np.where(done, xi, following)  # an element that has settled does not hear of the others
        done |= settled
        if np.all(done):
            break
    z, shrink, tanh, _, _ = _step(y, p, tau_p, scale, xi)
    s = 0.5 * scale * (y - tanh * p / xi) / shrink
    return VariationalFit(Moments(z, tau_p / shrink), Slopes(s, 0.5 * scale * tanh / xi / shrink), xi)


def _step(y: Array, p: Array, tau_p: Array, scale: Array, xi: Array) -> _Step:
    """One repetition, with 2 lambda = scale/(2 xi) tanh(scale xi/2)."""
    tanh = np.tanh(0.5 * scale * xi)
    twice_lambda = 0.5 * scale * tanh / xi
    shrink = 1.0 + tau_p * twice_lambda
    z, variance = (p + 0.5 * tau_p * scale * y) / shrink, tau_p / shrink
    following = np.hypot(np.sqrt(variance), z)
    share = np.square(z / following)  # of z^2 in xi^2
    falls = twice_lambda - np.square(0.5 * scale) * (1.0 - tanh * tanh)  # -d(2 lambda)/d(log xi)
    return _Step(z, shrink, tanh, following, 0.5 * (1.0 + share) * (tau_p / shrink) * falls)


def scale_slope(rows: Rows, scale: Any) -> Callable[[Array], tuple[Array, Array]]:
    """The paper's eq. alpha_em_upd as a function of the scale, and minus its derivative, summed over rows.

    (z y - xi)/2 + xi/(1 + exp(scale xi)) = (z y - xi tanh(scale xi/2))/2.
    """
    (z, _), _, xi = fit(rows.y, rows.p, rows.tau_p, scale)

    def slope(candidate: Array) -> tuple[Array, Array]:
        tanh = np.tanh(0.5 * candidate * xi)
        first = np.sum(rows.counts * 0.5 * (z * rows.y - xi * tanh), axis=0)
        return first, np.sum(rows.counts * 0.25 * np.square(xi) * (1.0 - tanh * tanh), axis=0)

    return slope
