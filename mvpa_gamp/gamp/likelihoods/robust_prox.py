"""Global minimum of loss(u) + (u - x)^2/(2 tau) for a bounded decreasing loss, which can have two local minima.

Such a loss falls in one soft step. Where the step is steeper than the parabola, a point far on the wrong side
can stay there (the label is taken for wrong) or be pulled over (as the base likelihood would); bisection alone
may return either. Here a coarse scan finds the candidates and each is polished.
"""

import numpy as np

from mvpa_gamp.gamp.likelihoods.protocol import Likelihood
from mvpa_gamp.gamp.likelihoods.root_finding import increasing_root
from mvpa_gamp.gamp.moments import Array

_SCAN = 48  # points between flat and high: about one width of the logistic step for flip = 1e-6
_TIE = 1e-13  # a kink wins against a candidate that differs from it by rounding only


def global_minimum(loss: Likelihood, x: Array, tau: Array, flat: Array, high: Array) -> tuple[Array, Array]:
    """Margin of the global minimum and whether it is a kink; x, tau, flat and high share one shape.

    The minimum lies in [x, high], high the proximal point of the base loss, which pulls harder; the loss has
    no slope to speak of on [x, flat].
    """
    fraction = np.linspace(0.0, 1.0, _SCAN + 1)[1:].reshape((-1,) + (1,) * x.ndim)
    scan = np.concatenate([x[None], flat + (high - flat) * fraction])
    cost = _cost(loss, scan, x, tau)
    local = _local_minima(cost)
    best = _polish(loss, x, tau, scan, _lowest(cost, local))
    second = _polish(loss, x, tau, scan, _lowest(cost, _without(local, _lowest(cost, local))))
    u = np.where(_cost(loss, second, x, tau) < _cost(loss, best, x, tau), second, best)
    at_kink = np.zeros(x.shape, dtype=bool)
    for kink in loss.kinks:
        chosen = _kink_wins(loss, kink, u, x, tau)
        u, at_kink = np.where(chosen, kink, u), at_kink | chosen
    return u, at_kink


def _cost(loss: Likelihood, u: Array, x: Array, tau: Array) -> Array:
    return loss.loss(1.0, u) + np.square(u - x) / (2.0 * tau)


def _local_minima(cost: Array) -> Array:
    wall = np.full((1, *cost.shape[1:]), np.inf)
    padded = np.concatenate([wall, cost, wall])
    return (cost <= padded[:-2]) & (cost <= padded[2:])


def _lowest(cost: Array, allowed: Array) -> Array:
    """Index of the cheapest allowed point along axis 0, shape (1, ...)."""
    return np.argmin(np.where(allowed, cost, np.inf), axis=0)[None]


def _without(local: Array, index: Array) -> Array:
    """Drop the chosen local minimum, unless it is the only one."""
    rest = local.copy()
    np.put_along_axis(rest, index, False, axis=0)
    return np.where(rest.any(axis=0), rest, local)


def _polish(loss: Likelihood, x: Array, tau: Array, scan: Array, index: Array) -> Array:
    """Root of the cost's derivative between the neighbours of a scan point."""

    def derivative(u: Array) -> tuple[Array, Array]:
        pull, curvature = loss.loss_slopes(1.0, u)
        return u - x - tau * pull, 1.0 + tau * curvature

    def at(i: Array) -> Array:
        return np.take_along_axis(scan, np.clip(i, 0, len(scan) - 1), axis=0)[0]

    centre = at(index)
    rising = derivative(centre)[0] > 0
    low, high = np.where(rising, at(index - 1), centre), np.where(rising, centre, at(index + 1))
    return increasing_root(derivative, low, high, centre)


def _kink_wins(loss: Likelihood, kink: float, u: Array, x: Array, tau: Array) -> Array:
    """Whether the kink is a local minimum (slopes of both signs beside it) as good as u."""
    corner = np.full(x.shape, kink)
    falls_before = corner - x <= tau * loss.loss_slopes(1.0, corner).s
    cost, other = _cost(loss, corner, x, tau), _cost(loss, u, x, tau)
    return (x <= kink) & falls_before & (cost <= other + _TIE * np.maximum(1.0, np.abs(other)))
