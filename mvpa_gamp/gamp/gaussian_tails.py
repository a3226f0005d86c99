"""Ratios of the standard normal density and its tails, accurate and finite for every argument.

With phi the density and Phi the distribution function, ``inverse_mills(c) = phi(c) / Phi(c)`` is the
mean of a standard normal x given x > -c. Far in the tail (c << 0) its distance to the cut, m + c, and
its variance 1 - m (m + c) vanish by cancellation; there Laplace's continued fraction
m = u + 1/(u + 2/(u + 3/(u + ...))), u = -c, gives both as sums and products of positive numbers.
All functions work elementwise and return the floating dtype they were given (float64 inside).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erfcx

from mvpa_gamp.gamp.moments import Array

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
