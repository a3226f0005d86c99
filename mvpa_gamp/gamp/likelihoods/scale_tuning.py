"""M-steps of a likelihood's scale: quadrature nodes of the scalar posteriors and a root per column.

For log-concave likelihoods alone: their posteriors have the tails that the nodes cover, and the expected
log-likelihood is concave in the scale, so that its slope has one root. Others need a search of their own.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from mvpa_gamp.gamp.likelihoods.protocol import Likelihood
from mvpa_gamp.gamp.moments import Array

# Bisection alone shrinks a bracket of 1e12 to one rounding unit in about 100 steps.
_MAX_STEPS = 200
# Newton's error after a step is of the order of its square.
_SMALL_STEP = 1e-8
_ROUNDING = 4.0 * float(np.finfo(float).eps)

Evaluate = Callable[[Array], tuple[Array, Array]]


def increasing_root(evaluate: Evaluate, low: Array, high: Array, start: Array, floor: float = 1e-15) -> Array:
    """Point of [low, high] where a function goes from negative to positive, elementwise.

    ``evaluate(x) -> (value, slope)``; low, high and start share one shape. A Newton step that would leave
    the bracket, or is longer than half the previous step, is replaced by bisection. A function of one
    sign leads to the end of the bracket nearest to a root. An element is done after a Newton step below
    1e-8 |x|, or any step below rounding or ``floor``, the smallest length that matters.
    """
    low, high = np.array(low, dtype=float), np.array(high, dtype=float)
    x = np.clip(start, low, high)
    done, previous = np.zeros(x.shape, dtype=bool), 2.0 * (high - low)
    for _ in range(_MAX_STEPS):
        value, slope = evaluate(x)
        low, high = np.where(value <= 0, x, low), np.where(value >= 0, x, high)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            newton = x - value / slope
        step = np.abs(newton - x)
        safe = (newton >= low) & (newton <= high) & (step <= 0.5 * previous)
        following = np.where(safe, newton, low + 0.5 * (high - low))
        previous = np.abs(following - x)
        x = np.where(done, x, following)
        done |= previous <= np.maximum(np.where(safe, _SMALL_STEP, _ROUNDING) * np.abs(x), floor)
        if np.all(done):
            break
    return np.asarray(x)


_NODES = 64
_FLOOR = 1e-10  # of log(scale); far below what EM needs

Slope = Callable[[Array], tuple[Array, Array]]


class Rows(NamedTuple):
    """Labels, Gaussians and weights with one shape (M, B); rows of weight 0 hold harmless numbers."""

    y: Array
    p: Array
    tau_p: Array
    counts: Array


def training_rows(y: Any, p: Any, tau_p: Any, weights: Any = None) -> Rows:
    """Broadcast to one shape and blank the rows of weight zero, whatever they hold (even NaN)."""
    weights = 1.0 if weights is None else weights
    y, p, tau_p, weights = np.broadcast_arrays(*(np.asarray(a, dtype=float) for a in (y, p, tau_p, weights)))
    used = weights > 0
    blank = (np.where(used, y, 1.0), np.where(used, p, 0.0), np.where(used, tau_p, 1.0))
    return Rows(*blank, np.where(used, weights, 0.0))


def posterior_nodes(likelihood: Likelihood, rows: Rows, width: Any) -> tuple[Array, Array]:
    """Points z and probabilities, both (64, M, B), to integrate smooth functions over each scalar posterior.

    Equidistant in u with z = 2 width sinh(u), so that the bend of the likelihood at z = 0, of size
    ``width``, is resolved together with a posterior of any size. A log-concave posterior against
    N(p, tau_p) has tails below exp(-|z - mean|/sd) and below exp(-(z - mean)^2/(2 tau_p)).
    """
    mean, var = likelihood.posterior(rows.y, rows.p, rows.tau_p)
    sd, stretch = np.sqrt(var), 2.0 * np.asarray(width, dtype=float)
    half = np.minimum(25.0 * sd, 8.0 * np.sqrt(rows.tau_p) + 2.0 * sd)
    low, high = np.arcsinh((mean - half) / stretch), np.arcsinh((mean + half) / stretch)
    fraction = np.linspace(0.0, 1.0, _NODES).reshape((-1,) + (1,) * mean.ndim)
    u = low + (high - low) * fraction
    z = stretch * np.sinh(u)
    log_density = -likelihood.loss(rows.y, z) - np.square(z - rows.p) / (2.0 * rows.tau_p)
    log_density += np.logaddexp(u, -u)  # dz/du, up to a constant
    probability = np.exp(log_density - log_density.max(axis=0))
    return z, probability / probability.sum(axis=0)


def expected_slope(
    likelihood: Likelihood, rows: Rows, width: Any, pull: Callable[[Array], tuple[Array, Array]]
) -> Slope:
    """d/dk of sum_m w_m E[log F(k y_m z_m)] as a function of k, and minus the second derivative.

    ``pull(g)`` gives the first derivative of log F and minus its second; the expectation is over the
    posterior of ``likelihood``, which must be log-concave: the sum has one peak then.
    """
    if not likelihood.is_log_concave:
        raise ValueError(
            f"scale_tuning needs a log-concave likelihood, got {type(likelihood).__name__}, whose expected "
            "log-likelihood may have several peaks. Write an M-step that looks for the highest."
        )
    z, probability = posterior_nodes(likelihood, rows, width)
    margin = rows.y * z
    first_mass = rows.counts * probability * margin
    second_mass = first_mass * margin

    def slope(k: Array) -> tuple[Array, Array]:
        first, second = pull(k * margin)
        return np.sum(first_mass * first, axis=(0, 1)), np.sum(second_mass * second, axis=(0, 1))

    return slope


def best_scale(slope: Slope, rows: Rows, current: Any, bounds: tuple[float, float]) -> Any:
    """Root of a decreasing slope in each column, searched in log(scale) and clipped to ``bounds``.

    A column without training rows keeps its present scale. Returns (B,), or a float for rows of shape (M,).
    """
    shape = rows.counts.shape[1:]
    current = np.broadcast_to(np.asarray(current, dtype=float), shape)
    low, high = (np.full(shape, bound) for bound in np.log(bounds))
    low = np.where(slope(np.exp(high))[0] >= 0, high, low)
    high = np.where(slope(np.exp(low))[0] <= 0, low, high)

    def evaluate(log_scale: Array) -> tuple[Array, Array]:
        scale = np.exp(log_scale)
        first, minus_second = slope(scale)
        return -first, scale * minus_second

    root = np.exp(increasing_root(evaluate, low, high, np.clip(np.log(current), low, high), _FLOOR))
    found = np.where(rows.counts.sum(axis=0) > 0, np.clip(root, *bounds), current)
    return found if found.ndim else float(found)
