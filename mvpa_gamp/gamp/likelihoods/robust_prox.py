"""Global minimum of loss(u) + (u - x)^2/(2 tau) for a bounded decreasing loss, which can have two minima.

Such a loss falls in one soft step. Where the step is steeper than the parabola, a point far on the wrong
side can stay there (its label is taken for wrong) or be pulled over (as the base likelihood would do), and
bisection alone may return either. Here a scan brackets the leftmost and the rightmost local minimum.
"""

import numpy as np

from mvpa_gamp.gamp.likelihoods.protocol import Likelihood
from mvpa_gamp.gamp.likelihoods.scale_tuning import Evaluate, increasing_root
from mvpa_gamp.gamp.moments import Array

_SCAN = 48  # points between flat and high: about one width of the logistic step for flip = 1e-6
_TIE = 1e-13  # a kink wins against a candidate that differs from it by rounding only


def global_minimum(
    loss: Likelihood, x: Array, tau: Array, flat: Array, high: Array
) -> tuple[Array, np.ndarray]:
    """Margin of the global minimum and whether it is a kink; x, tau, flat and high share one shape.

    The minimum lies in [x, high], high the proximal point of the base loss, which pulls harder; the loss
    has no slope to speak of on [x, flat]. The slope of a bounded loss has one hump, which the parabola's
    straight slope crosses at most three times: two minima and a maximum between them.
    """

    def derivative(u: Array) -> tuple[Array, Array]:
        pull, curvature = loss.loss_slopes(1.0, u)
        return u - x - tau * pull, 1.0 + tau * curvature

    left, right = _outer_minima(derivative, x, flat, high)
    u = np.where(_cost(loss, left, x, tau) < _cost(loss, right, x, tau), left, right)
    at_kink = np.zeros(x.shape, dtype=bool)
    for kink in loss.kinks:
        chosen = _kink_wins(loss, kink, u, x, tau)
        u, at_kink = np.where(chosen, kink, u), at_kink | chosen
    return u, at_kink


def _outer_minima(derivative: Evaluate, x: Array, flat: Array, high: Array) -> tuple[Array, Array]:
    """First and last point of [x, high] where the derivative turns positive; often the same."""
    fraction = np.linspace(0.0, 1.0, _SCAN + 1)[1:].reshape((-1,) + (1,) * x.ndim)
    scan = np.concatenate([x[None], flat + (high - flat) * fraction])
    rising = derivative(scan)[0] > 0
    rising[0], rising[-1] = False, True  # true but for rounding
    turns = ~rising[:-1] & rising[1:]
    first = np.argmax(turns, axis=0)
    last = len(turns) - 1 - np.argmax(turns[::-1], axis=0)

    def at(index: np.ndarray) -> Array:
        return np.take_along_axis(scan, index[None], axis=0)[0]

    return (
        increasing_root(derivative, at(first), at(first + 1), at(first)),
        increasing_root(derivative, at(last), at(last + 1), at(last + 1)),
    )


def _cost(loss: Likelihood, u: Array, x: Array, tau: Array) -> Array:
    return loss.loss(1.0, u) + np.square(u - x) / (2.0 * tau)


def _kink_wins(loss: Likelihood, kink: float, u: Array, x: Array, tau: Array) -> np.ndarray:
    """Whether the kink is a local minimum (the cost falls before it and rises after) as good as u."""
    corner = np.full(x.shape, kink)
    falls_before = corner - x <= tau * loss.loss_slopes(1.0, corner).s
    cost, other = _cost(loss, corner, x, tau), _cost(loss, u, x, tau)
    return (x <= kink) & falls_before & (cost <= other + _TIE * np.maximum(1.0, np.abs(other)))
