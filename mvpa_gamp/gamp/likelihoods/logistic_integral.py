"""Log-partition, slopes and moments of the logistic function against a Gaussian, to about 1e-11.

With sigma(z) = 1/(1 + exp(-z)) and Z(x) = integral of sigma(z) N(z; x, t) dz this module computes log Z,
s = d log Z/dx, tau_s = -d^2 log Z/dx^2 and the posterior moments for every real x and t > 0. Two exact
identities, both from sigma(z) = exp(z) sigma(-z) = 1 - sigma(-z), avoid every cancellation:

    mirror      log Z(x) = x + t/2 + log Z(-x - t)      so that x >= -t/2 suffices,
    complement  Z(x) = 1 - Z(-x)                        so that small numbers are summed, never left over.

What remains is a trapezoid sum over z = x + sqrt(t) g for t < 4, and for t >= 4 and -t/2 <= x <= 0 one over
a fixed grid of z, or, where that would need too many points, the Gaussian cut at z = 0 plus a correction that
lives within a few units of the kink (Gauss-Laguerre). On even grids exponentials are running products.
Which sum is taken depends on t alone, so an element's result does not depend on its neighbours.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from mvpa_gamp.gamp.compiled import compiler, is_available
from mvpa_gamp.gamp.moments import Array, truncated_normal

WORTH_COMPILING = 2048  # elements in one call from which compiled loops pay for loading them


class Kernels(NamedTuple):
    """Compiled sums over flat float64 arrays."""

    smooth: Callable[..., None]
    gridded: Callable[..., None]
    prox: Callable[..., None]


@cache
def compiled_kernels() -> Kernels | None:
    """The kernels, compiled at their first call and then kept on disk; None without Numba."""
    if not is_available():
        return None
    build = compiler()
    return Kernels(build(_smooth_loop), build(_gridded_loop), build(_prox_loop))


def _smooth_loop(odds: Any, ratio: Any, weights: Any, sums: Any) -> None:
    """Write to sums (3, n) the weighted powers of b = o/(1 + o), o = odds, odds ratio, odds ratio^2, ..."""
    for i in range(odds.size):
        o, step = odds[i], ratio[i]
        first, second, third = 0.0, 0.0, 0.0
        for k in range(weights.size):
            b = o / (1.0 + o)
            term = weights[k] * b
            first += term
            term *= b
            second += term
            third += term * b
            o *= step
        sums[0, i] = first
        sums[1, i] = second
        sums[2, i] = third


def _gridded_loop(left_ratio: Any, right_ratio: Any, bend: Any, counts: Any, below: Any, sums: Any) -> None:
    """Add to sums (3, n) sigma(-k) left + sigma(k) right and its first two moments in k = 1, 2, ...

    ``left`` and ``right`` are running products of their ratios, which themselves shrink by ``bend``;
    ``below`` holds sigma at minus the grid point, of which an element needs the first ``counts``.
    """
    for i in range(bend.size):
        to_left, to_right, shrink = left_ratio[i], right_ratio[i], bend[i]
        left, right, number = 1.0, 1.0, 0.0
        mass, first, second = 0.0, 0.0, 0.0
        for k in range(min(counts[i], below.size)):
            left *= to_left
            right *= to_right
            to_left *= shrink
            to_right *= shrink
            number += 1.0
            lower, upper = below[k] * left, (1.0 - below[k]) * right
            mass += lower + upper
            first += number * (upper - lower)
            second += (number * number) * (upper + lower)
        sums[0, i] += mass
        sums[1, i] += first
        sums[2, i] += second


def _prox_loop(x: Any, t: Any, out: Any) -> None:
    """Write the root g of g = x + t sigma(-g), for x >= -t/2, where it is not negative.

    There g - x - t sigma(-g) is concave: Newton from max(x, 0) climbs to the root and never beyond.
    """
    for i in range(x.size):
        g = max(x[i], 0.0)
        for _ in range(200):
            fall = np.exp(-g)
            share = fall / (1.0 + fall)
            step = (x[i] + t[i] * share - g) / (1.0 + t[i] * share * (1.0 - share))
            g += step
            if not step > 4e-16 * g:
                break
        out[i] = g


_SQRT_2PI = float(np.sqrt(2.0 * np.pi))
_WIDE = 4.0  # t from which a sum over the whole Gaussian needs more points than one around the kink
_FAR = 36.0  # beyond x = _FAR + 1.5 t the mass Z(x - t) is 1 to rounding: exp(-36) = 2e-16


class Integral(NamedTuple):
    """log Z, s = d log Z/dx, tau_s = -d^2 log Z/dx^2, and mean and variance of sigma(z) N(z; x, t)/Z."""

    log_z: Array
    s: Array
    tau_s: Array
    mean: Array
    var: Array


_Solver = Callable[[Array, Array, Kernels | None], Integral]


def integrate(x: Array, t: Array) -> Integral:
    """All five quantities for any x and t > 0, elementwise; x and t share one shape."""
    mirrored = x < -0.5 * t
    reduced = np.where(mirrored, -x - t, x)
    kernels = compiled_kernels() if x.size >= WORTH_COMPILING else None
    result = _by_width(_SOLVERS, reduced, t, kernels)
    if not np.any(mirrored):
        return result
    return _where(mirrored, _mirror(x, t, result), result)


def _by_width(
    solvers: tuple[tuple[float, _Solver], ...], x: Array, t: Array, kernels: Kernels | None
) -> Integral:
    """Apply to each element the first solver whose bound exceeds its t; the last bound is infinite."""
    band = np.zeros(t.shape, dtype=np.int64)
    for bound, _ in solvers[:-1]:
        band += t >= bound
    used = np.flatnonzero(np.bincount(band.ravel(), minlength=1))
    if used.size == 1:
        return solvers[used[0]][1](x, t, kernels)
    parts = Integral(*(np.empty(x.shape) for _ in Integral._fields))
    for number in used:
        mask = band == number
        _put(parts, mask, solvers[number][1](x[mask], t[mask], kernels))
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


# --- t < 4: trapezoid rule in g -------------------------------------------------------------------

# Poles of sigma at z = +-i pi: a step of h in z costs exp(pi^2/(2 t) - 2 pi^2/h), 1e-15 for t = 1;
# the third power of sigma multiplies that by about a thousand.
_STEP = 0.5
_NARROW_STEP = 0.75  # of g: the Gaussian itself is summed to exp(-2 pi^2/0.75^2) = 6e-16
_REACH = 7.5  # exp(-7.5^2/2) = 6e-13
_TILT = 2.0  # exp(-2 z), the fastest decay that counts, moves the Gaussian by 2 sqrt(t)


def _smooth(largest_t: float) -> _Solver:
    """A solver for x >= -t/2 and t <= ``largest_t`` <= 4: sums of powers of b = sigma(-z) under N(z; x, t).

    1 - b is never small on average, because x >= -2.
    """
    largest_sd = float(np.sqrt(largest_t))
    step = min(_NARROW_STEP, _STEP / largest_sd)
    nodes = step * np.arange(-np.ceil((_REACH + _TILT * largest_sd) / step), np.ceil(_REACH / step) + 1)
    weights = np.exp(-0.5 * nodes * nodes) * (step / _SQRT_2PI)

    def solve(x: Array, t: Array, kernels: Kernels | None) -> Integral:
        sd = np.sqrt(t)
        b1, b2, b3 = _power_sums(np.exp(-(x + sd * nodes[0])), np.exp(-step * sd), weights, kernels)
        z = 1.0 - b1
        s = (b1 - b2) / z  # E[b] under the posterior, whose weight is 1 - b
        tau_s = s - 2.0 * (b2 - b3) / z + s * s  # E[b (1 - b)] - var[b]
        return _with_moments(x, t, np.log1p(-b1), s, tau_s)

    return solve


def _power_sums(odds: Array, ratio: Array, weights: np.ndarray, kernels: Kernels | None) -> np.ndarray:
    """Weighted sums (3, ...) of b, b^2, b^3 with b = o/(1 + o) for o = odds, odds ratio, odds ratio^2, ..."""
    sums = np.zeros((3, *odds.shape))
    if kernels is not None:
        kernels.smooth(odds.ravel(), ratio.ravel(), weights, sums.reshape(3, -1))
        return sums
    b, term = np.empty(odds.shape), np.empty(odds.shape)
    for weight in weights:
        np.add(odds, 1.0, out=b)
        np.divide(odds, b, out=b)
        sums[0] += np.multiply(b, weight, out=term)
        sums[1] += np.multiply(term, b, out=term)
        sums[2] += np.multiply(term, b, out=term)
        odds = odds * ratio
    return sums


# --- t >= 4: around the kink ------------------------------------------------------------------------


def _kink_nodes() -> tuple[np.ndarray, np.ndarray]:
    """Points z > 0 and weights of sigma(-z) dz: Gauss-Laguerre for the slowest decay that occurs.

    The integrands fall like exp(-z/2) at least; scaling by 1/2 resolves the poles at +-i pi too.
    """
    u, weight = np.polynomial.laguerre.laggauss(32)
    z = 0.5 * u
    return z, 0.5 * weight * np.exp(u - z) / (1.0 + np.exp(-z))


_KINK_NODES, _KINK_WEIGHTS = _kink_nodes()


def _wide(x: Array, t: Array, kernels: Kernels | None) -> Integral:
    """``integrate`` for t >= 4 and x >= -t/2, stepping down by t until |x| <= t/2.

    Complement and mirror together give Z(x) = 1 - exp(t/2 - x) Z(x - t): the series of
    sigma(z) = 1 - exp(-z) + exp(-2 z) - ..., stopped at its smallest term and closed by the exact rest.
    """
    far = x > _FAR + 1.5 * t
    steps = np.where(far, 1.0, np.maximum(np.ceil(x / t - 0.5), 0.0))
    start = np.where(far, 0.0, np.clip(x - steps * t, -0.5 * t, 0.5 * t))
    tail = _by_width(_TAILS, -np.abs(start), t, kernels)
    here = _where(start > 0, _complement(start, t, tail), tail)
    if np.any(far):
        _put(here, far, Integral(*np.zeros((5, 1))))
    for step in range(1, int(np.max(steps, initial=0.0)) + 1):
        climbing = steps >= step
        at, width = (x - (steps - step) * t)[climbing], t[climbing]
        _put(here, climbing, _complement(at, width, _mirror(-at, width, _take(here, climbing))))
    return here


_GRID_STEP = 0.65  # sigma itself has simple poles: 2e-13 for t >= 4


def _gridded(largest_t: float) -> _Solver:
    """A solver for -t/2 <= w <= 0 and 4 <= t <= ``largest_t``: trapezoid rule over z = 0, +-h, +-2 h, ...

    N(z; w, t)/phi(w/sqrt(t)) = exp(-z^2/(2 t) + z w/t)/sqrt(t) at z = +-k h is a running product, ``right``
    and ``left`` in the sums. For w >= -t/2 nothing beyond ``_REACH`` standard deviations of the kink counts.
    """
    z = _GRID_STEP * np.arange(1, np.ceil((_REACH + 0.5) * np.sqrt(largest_t) / _GRID_STEP) + 1)
    below = 1.0 / (1.0 + np.exp(z))

    def solve(w: Array, t: Array, kernels: Kernels | None) -> Integral:
        mass, first, second = _grid_sums(w, t, below, kernels)
        mean = first / mass
        var = second / mass - mean * mean
        log_z = np.log(mass * (_GRID_STEP / _SQRT_2PI) / np.sqrt(t)) - 0.5 * w * w / t
        return Integral(log_z, (mean - w) / t, (1.0 - var / t) / t, mean, var)

    return solve


def _grid_sums(w: Array, t: Array, below: np.ndarray, kernels: Kernels | None) -> np.ndarray:
    """Sums of sigma(z) exp(-z^2/(2 t) + z w/t) times 1, z and z^2, (3, ...); ``below`` is sigma(-z)."""
    fall, tilt = np.exp((-0.5 * _GRID_STEP * _GRID_STEP) / t), np.exp((_GRID_STEP * w) / t)
    left_ratio, right_ratio, bend = fall / tilt, fall * tilt, fall * fall
    sums = np.zeros((3, *w.shape))
    sums[0] = 0.5
    if kernels is not None:
        ratios = (part.ravel() for part in (left_ratio, right_ratio, bend))
        counts = np.ceil((_REACH + 0.5) / _GRID_STEP * np.sqrt(t)).astype(np.int64)
        kernels.gridded(*ratios, counts.ravel(), below, sums.reshape(3, -1))
    else:
        left, right = np.ones(w.shape), np.ones(w.shape)
        for k, share in enumerate(below, start=1):
            left = left * left_ratio
            right = right * right_ratio
            left_ratio = left_ratio * bend
            right_ratio = right_ratio * bend
            lower, upper = share * left, (1.0 - share) * right
            both = lower + upper
            sums[0] += both
            sums[1] += k * (upper - lower)
            sums[2] += (k * k) * both
    sums[1] *= _GRID_STEP
    sums[2] *= _GRID_STEP * _GRID_STEP
    return sums


def _tail(w: Array, t: Array, kernels: Kernels | None) -> Integral:
    """``integrate`` for t >= 4 and -t/2 <= w <= 0, from moments of z about the kink.

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


_SOLVERS: tuple[tuple[float, _Solver], ...] = (
    *((bound, _smooth(bound)) for bound in (0.25, 1.0, 2.0, _WIDE)),
    (np.inf, _wide),
)
_TAILS: tuple[tuple[float, _Solver], ...] = (
    *((bound, _gridded(bound)) for bound in (12.0, 40.0)),
    (np.inf, _tail),
)
