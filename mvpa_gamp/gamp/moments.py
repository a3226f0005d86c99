"""Arrays, moments and what integrates a scalar: ratios of Gaussian tails, and adaptive quadrature.

With phi the density and Phi the distribution function, ``inverse_mills(c) = phi(c) / Phi(c)`` is the
mean of a standard normal x given x > -c. Far in the tail (c << 0) its distance to the cut, m + c, and
its variance 1 - m (m + c) vanish by cancellation; there Laplace's continued fraction
m = u + 1/(u + 2/(u + 3/(u + ...))), u = -c, gives both as sums and products of positive numbers.
Functions of tails work elementwise and return the floating dtype they were given (float64 inside).
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import ArrayLike, NDArray
from scipy.special import erfcx

Array = NDArray[np.floating]

# Of a score. An all-zero iterate has none at all; scores are of order one, so this is nothing.
LEAST_VARIANCE = 1e-12


def floored(tau: Array) -> Array:
    """Variances of scores, none below ``LEAST_VARIANCE``."""
    return np.maximum(tau, LEAST_VARIANCE)


class Moments(NamedTuple):
    """Mean and variance of a scalar posterior, or a proximal point and tau times its slope."""

    mean: Array
    var: Array


class Slopes(NamedTuple):
    """First derivative s and minus the second derivative tau_s of a log-partition with respect to p.

    These are lines 11 and 12 of the paper's Algorithm 1, tau_s = (1 - tau_z / tau_p) / tau_p and
    s = (z - p) / tau_p, computed without their cancellation for small tau_p.
    """

    s: Array
    tau_s: Array


_SQRT_2 = float(np.sqrt(2.0))
_SQRT_2_OVER_PI = float(np.sqrt(2.0 / np.pi))
# The plain form loses about u**3 roundings in the variance, the fraction converges like
# exp(-4 u sqrt(n / 2)): at u = 4 both are good to 4e-13.
_TAIL_START = 4.0
_TAIL_TERMS = 20


class TruncatedNormal(NamedTuple):
    """Moments of a standard normal x given x > -c: mean, mean + c and variance, all positive."""

    mean: Array
    excess: Array
    var: Array


def inverse_mills(c: ArrayLike) -> Array:
    """phi(c) / Phi(c), about -c for c << 0 and 0 for c >> 0."""
    c = _floating(c)
    return _inverse_mills(c.astype(float, copy=False)).astype(c.dtype, copy=False)


def truncated_normal(c: ArrayLike) -> TruncatedNormal:
    """Mean, mean + c (the mean distance to the cut) and variance of a standard normal x given x > -c.

    Relative accuracy about 1e-12 for c from -1e150 up; beyond, the variance underflows to 0.
    """
    c = _floating(c)
    x = c.astype(float, copy=False)
    mean = _inverse_mills(x)
    excess = np.asarray(mean + x)
    with np.errstate(over="ignore"):  # |c| beyond 1e150; the tail below replaces it
        var = np.asarray(1.0 - mean * excess)
    tail = x < -_TAIL_START
    if np.any(tail):
        excess[tail], var[tail] = _tail(-x[tail])
    return TruncatedNormal(*(value.astype(c.dtype, copy=False) for value in (mean, excess, var)))


def _inverse_mills(c: np.ndarray) -> np.ndarray:
    # sqrt(2/pi) / erfcx(-c/sqrt(2)); erfcx overflows to inf without a warning, where the ratio is 0.
    return np.asarray(_SQRT_2_OVER_PI / erfcx(c / -_SQRT_2))


def _tail(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Excess d = 1/(u + 2 e) and variance d (2 e - d), with e = 1/(u + 3/(u + 4/(u + ...)))."""
    fraction = 0.5 * (u + np.hypot(u, 2.0 * np.sqrt(_TAIL_TERMS + 3.0)))
    for k in range(_TAIL_TERMS + 2, 2, -1):
        fraction = u + k / fraction
    e = 1.0 / fraction
    d = 1.0 / (u + 2.0 * e)
    return d, d * (2.0 * e - d)


def _floating(c: ArrayLike) -> np.ndarray:
    c = np.asarray(c)
    return c if np.issubdtype(c.dtype, np.floating) else c.astype(float)


_NODES, _WEIGHTS = legendre.leggauss(12)
# Coefficients of the three highest Legendre polynomials that 12 nodes resolve: on a panel where a function is
# smooth they vanish; where it bends or jumps they do not.
_TAIL = (_WEIGHTS[:, None] * legendre.legvander(_NODES, 11) * (np.arange(12) + 0.5))[:, 9:]
_ROUGH = 1e-9  # tail times width, relative to the whole integral; the integral's own error is far smaller
_ROUNDS = 40  # halvings: a jump is then located to 1e-12 of its panel
_MOST = 5000  # panels of one round; more would chase rounding noise
_RATIO = 4.0  # width of a panel over that of its neighbour nearer to the landmark
_SMALLEST = 1e-5  # innermost panel beside a landmark, relative to the whole interval


def graded_edges(low: float, high: float, landmarks: Iterable[float]) -> Array:
    """Panel edges over [low, high] that crowd geometrically around every landmark inside.

    A peak, step or kink at a landmark is seen whatever its width down to 1e-5 of the interval;
    ``integrate`` refines further.
    """
    steps = _SMALLEST * (high - low) * _RATIO ** np.arange(np.ceil(-np.log(_SMALLEST) / np.log(_RATIO)) + 1)
    around = np.concatenate([-steps[::-1], [0.0], steps])
    edges = np.concatenate([[low, high], *(landmark + around for landmark in landmarks)])
    return np.unique(edges[(edges >= low) & (edges <= high)])


def integrate(functions: Callable[[Array], Array], edges: Array) -> Array:
    """Integrals (K,) of functions x (n,) -> (K, n) over [edges[0], edges[-1]], to about ten digits.

    Gauss-Legendre on every panel; a panel on which any function is not resolved is halved.
    """
    left, right = edges[:-1], edges[1:]
    total: Array | float = 0.0
    size: Array | None = None
    for _ in range(_ROUNDS):
        half = 0.5 * (right - left)
        x = 0.5 * (left + right)[:, None] + half[:, None] * _NODES
        values = functions(x.ravel())
        values = values.reshape(len(values), *x.shape)
        if size is None:
            size = (half * (np.abs(values) @ _WEIGHTS)).sum(axis=1)
        parts = half * (values @ _WEIGHTS)
        rough = np.any(half * np.abs(values @ _TAIL).max(axis=2) > _ROUGH * size[:, None], axis=0)
        total = total + parts[:, ~rough].sum(axis=1)
        if not rough.any() or np.count_nonzero(rough) > _MOST:
            break
        left, right, middle = left[rough], right[rough], 0.5 * (left + right)[rough]
        left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
    return np.asarray(total + parts[:, rough].sum(axis=1))


def gaussian_mean_and_slope(
    function: Callable[[Array], Array], mean: Array, var: float, kinks: Iterable[float]
) -> tuple[Array, Array]:
    """E[f(z)] for z ~ N(mean, var) and its derivative E[f(z) (z - mean)] / var in the mean, each (n,).

    Gauss-Legendre between the kinks of f, which must be smooth elsewhere on the scale sqrt(var) or wider.
    """
    sd = np.sqrt(var)
    inner = [np.clip((kink - mean) / sd, -_REACH, _REACH) for kink in sorted(kinks)]
    edges = np.stack([np.full(mean.shape, -_REACH), *inner, np.full(mean.shape, _REACH)], axis=1)
    half = 0.5 * np.diff(edges, axis=1)[..., None]
    t = 0.5 * (edges[:, 1:] + edges[:, :-1])[..., None] + half * _FINE_NODES
    weights = half * _FINE_WEIGHTS * np.exp(-0.5 * t * t) / np.sqrt(2 * np.pi)
    centre = function(mean)
    change = weights * (function(mean[:, None, None] + sd * t) - centre[:, None, None])
    return centre + change.sum(axis=(1, 2)), (change * t).sum(axis=(1, 2)) / sd


_REACH = 9.0  # standard deviations; beyond lie 1e-19 of the mass
_FINE_NODES, _FINE_WEIGHTS = legendre.leggauss(48)
