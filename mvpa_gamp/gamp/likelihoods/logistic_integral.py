"""Log-partition, slopes and moments of the logistic function against a Gaussian, to about 1e-11.

With sigma(z) = 1/(1 + exp(-z)) and Z(x) = integral of sigma(z) N(z; x, t) dz this module computes log Z,
s = d log Z/dx, tau_s = -d^2 log Z/dx^2 and the posterior moments for every real x and t > 0. Two exact
identities, both from sigma(z) = exp(z) sigma(-z) = 1 - sigma(-z), avoid every cancellation:

    mirror      log Z(x) = x + t/2 + log Z(-x - t)      so that x >= -t/2 suffices,
    complement  Z(x) = 1 - Z(-x)                        so that small numbers are summed, never left over.

What remains is a trapezoid sum over z = x + sqrt(t) g for t < 1, and for t >= 1 and -t/2 <= x <= 0 the
Gaussian cut at z = 0 plus a correction that lives within a few units of the kink (Gauss-Laguerre).
"""

from typing import NamedTuple

import numpy as np

from mvpa_gamp.gamp.gaussian_tails import truncated_normal
from mvpa_gamp.gamp.moments import Array

_SQRT_2PI = float(np.sqrt(2.0 * np.pi))
_WIDE = 1.0  # t from which only the kink is summed, not the whole Gaussian: both are good to 3e-11 there
_FAR = 36.0  # beyond x = _FAR + 1.5 t the mass Z(x - t) is 1 to rounding: exp(-36) = 2e-16


class Integral(NamedTuple):
    """log Z, s = d log Z/dx, tau_s = -d^2 log Z/dx^2, and mean and variance of sigma(z) N(z; x, t)/Z."""

    log_z: Array
    s: Array
    tau_s: Array
    mean: Array
    var: Array


def integrate(x: Array, t: Array) -> Integral:
    """All five quantities for any x and t > 0, elementwise; x and t share one shape."""
    mirrored = x < -0.5 * t
    reduced = np.where(mirrored, -x - t, x)
    wide = t >= _WIDE
    result = _choose(wide, (_wide, _smooth), reduced, t)
    if not np.any(mirrored):
        return result
    return _where(mirrored, _mirror(x, t, result), result)


def _choose(first: np.ndarray, solvers: tuple, x: Array, t: Array) -> Integral:
    """Apply one of two solvers to each element."""
    if np.all(first):
        return solvers[0](x, t)
    if not np.any(first):
        return solvers[1](x, t)
    parts = Integral(*(np.empty(x.shape) for _ in Integral._fields))
    for mask, solve in zip((first, ~first), solvers, strict=True):
        _put(parts, mask, solve(x[mask], t[mask]))
    return parts


def _where(choose: np.ndarray, one: Integral, other: Integral) -> Integral:
    return Integral(*(np.where(choose, a, b) for a, b in zip(one, other, strict=True)))


def _take(whole: Integral, mask: np.ndarray) -> Integral:
    return Integral(*(value[mask] for value in whole))


def _put(whole: Integral, mask: np.ndarray, part: Integral) -> None:
    for values, new in zip(whole, part, strict=True):
        values[mask] = new


def _mirror(x: Array, t: Array, at: Integral) -> Integral:
    """Carry the values at -x - t to x."""
    return Integral(x + 0.5 * t + at.log_z, 1.0 - at.s, at.tau_s, -at.mean, at.var)


def _complement(x: Array, t: Array, at: Integral) -> Integral:
    """Carry the values at -x to x, for x > 0."""
    log_z = np.log1p(-np.exp(at.log_z))
    odds = np.exp(at.log_z - log_z)
    s = odds * at.s
    return _with_moments(x, t, log_z, s, s * s + odds * (at.s * at.s - at.tau_s))


def _with_moments(x: Array, t: Array, log_z: Array, s: Array, tau_s: Array) -> Integral:
    """Add mean x + t s and variance t (1 - t tau_s), where the variance is not much smaller than t."""
    return Integral(log_z, s, tau_s, x + t * s, t * (1.0 - t * tau_s))


# --- t < 1: trapezoid rule in g -------------------------------------------------------------------

_STEP = 0.5  # poles of sigma at +-i pi: error exp(-2 pi^2/(0.5 sqrt(t)))
_REACH = 7.5  # exp(-7.5^2/2) = 6e-13
_TILT = 2.0  # exp(-2 z), the fastest decay that counts, moves the Gaussian by 2 sqrt(t)


def _normal_nodes() -> tuple[np.ndarray, np.ndarray]:
    g = _STEP * np.arange(-np.ceil((_REACH + _TILT) / _STEP), np.ceil(_REACH / _STEP) + 1)
    return g, np.exp(-0.5 * g * g) * (_STEP / _SQRT_2PI)


_NORMAL_NODES, _NORMAL_WEIGHTS = _normal_nodes()


def _smooth(x: Array, t: Array) -> Integral:
    """Sums of powers of b = sigma(-z) under N(z; x, t), for x >= -t/2 >= -1/2: 1 - b is never small."""
    sd = np.sqrt(t)
    b1, b2, b3 = np.zeros(x.shape), np.zeros(x.shape), np.zeros(x.shape)
    for g, weight in zip(_NORMAL_NODES, _NORMAL_WEIGHTS, strict=True):
        odds = np.exp(-(x + sd * g))
        b = odds / (1.0 + odds)
        term = weight * b
        b1 += term
        term *= b
        b2 += term
        term *= b
        b3 += term
    z = 1.0 - b1
    s = (b1 - b2) / z  # E[b] under the posterior, whose weight is 1 - b
    tau_s = s - 2.0 * (b2 - b3) / z + s * s  # E[b (1 - b)] - var[b]
    return _with_moments(x, t, np.log1p(-b1), s, tau_s)


# --- t >= 1: a cut Gaussian and a correction at the kink --------------------------------------------


def _kink_nodes() -> tuple[np.ndarray, np.ndarray]:
    """Points z > 0 and weights of sigma(-z) dz: Gauss-Laguerre for the slowest decay that occurs.

    The integrands fall like exp(-z/2) at least; scaling by 1/2 resolves the poles at +-i pi too.
    """
    u, weight = np.polynomial.laguerre.laggauss(32)
    z = 0.5 * u
    return z, 0.5 * weight * np.exp(u - z) / (1.0 + np.exp(-z))


_KINK_NODES, _KINK_WEIGHTS = _kink_nodes()


def _wide(x: Array, t: Array) -> Integral:
    """``integrate`` for t >= 1 and x >= -t/2, stepping down by t until |x| <= t/2.

    Complement and mirror together give Z(x) = 1 - exp(t/2 - x) Z(x - t): the series of
    sigma(z) = 1 - exp(-z) + exp(-2 z) - ..., stopped at its smallest term and closed by the exact rest.
    """
    far = x > _FAR + 1.5 * t
    steps = np.where(far, 1.0, np.maximum(np.ceil(x / t - 0.5), 0.0))
    start = np.where(far, 0.0, np.clip(x - steps * t, -0.5 * t, 0.5 * t))
    tail = _tail(-np.abs(start), t)
    here = _where(start > 0, _complement(start, t, tail), tail)
    _put(here, far, Integral(*np.zeros((5, 1))))
    for step in range(1, int(np.max(steps, initial=0.0)) + 1):
        climbing = steps >= step
        at, width = (x - (steps - step) * t)[climbing], t[climbing]
        _put(here, climbing, _complement(at, width, _mirror(-at, width, _take(here, climbing))))
    return here


def _tail(w: Array, t: Array) -> Integral:
    """``integrate`` for t >= 1 and -t/2 <= w <= 0, from moments of z about the kink.

    The integral of f(z) sigma(z) N(z; w, t) is that of f N over z > 0 (a truncated normal) plus that of
    sigma(-z) [f(-z) N(-z) - f(z) N(z)] over z > 0. All is relative to phi(w/sqrt(t)): nothing underflows.
    """
    sd = np.sqrt(t)
    c = w / sd
    m, excess, v = truncated_normal(c)
    odd0, even1, odd2 = np.zeros(w.shape), np.zeros(w.shape), np.zeros(w.shape)
    for z, weight in zip(_KINK_NODES, _KINK_WEIGHTS, strict=True):
        fall, tilt = (-0.5 * z * z) / t, (-z * w) / t
        left, right = np.exp(fall + tilt), np.exp(fall - tilt)
        difference = left - right
        odd0 += weight * difference
        even1 += (weight * z) * (left + right)
        odd2 += (weight * z * z) * difference
    mass = 1.0 / m + odd0 / sd
    mean = (sd * (excess / m) - even1 / sd) / mass
    var = (t * ((v + excess * excess) / m) + odd2 / sd) / mass - mean * mean
    return Integral(np.log(mass / _SQRT_2PI) - 0.5 * c * c, (mean - w) / t, (1.0 - var / t) / t, mean, var)
