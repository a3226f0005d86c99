"""Elastic-net parameters whose mean |w| and mean w^2 take given values: the M-step of that prior.

|w| under exp(-l1 |w| - l2 w^2) is sigma times a standard normal x given x > u, minus u, with
sigma = 1 / sqrt(2 l2) and u = l1 sigma. Each update therefore asks for one root u of a monotone function.
The log-likelihood is concave, so an optimum outside l1, l2 >= 0 lies on the nearest special case:
l1 = 0 (Gaussian) or l2 = 0 (Laplace). All arguments and results are arrays with one value per column.
"""

from collections.abc import Callable

import numpy as np

from mvpa_gamp.gamp.gaussian_tails import truncated_normal
from mvpa_gamp.gamp.moments import Array

_LOG_U_RANGE = (-20.0, 20.0)  # beyond, a special case is indistinguishable in double precision
_HALVINGS = 56  # 40 / 2^56 is below the spacing of doubles near 10
_GAUSSIAN_RATIO = np.pi / 2 - 1  # variance of |w| over its squared mean for a Gaussian; 1 for Laplace
_GAUSSIAN_SIZE = np.sqrt(2 / np.pi)  # mean |w| of a standard normal


def match_both(size: Array, square: Array) -> tuple[Array, Array]:
    """(l1, l2) with mean |w| = size and mean w^2 = square, or the nearest special case."""
    ratio = square / (size * size) - 1.0
    gaussian, laplace = ratio <= _GAUSSIAN_RATIO, ratio >= 1.0
    u = _root(_variance_ratio, np.clip(ratio, _GAUSSIAN_RATIO, 1.0))
    inverse_sigma = truncated_normal(-u).excess / size
    l1 = np.where(gaussian, 0.0, np.where(laplace, 1.0 / size, u * inverse_sigma))
    l2 = np.where(laplace, 0.0, np.where(gaussian, 0.5 / square, 0.5 * inverse_sigma**2))
    return l1, l2


def match_l1(size: Array, l2: Array) -> Array:
    """The l1 with mean |w| = size at fixed l2; 0 when even the Gaussian has a smaller mean."""
    inverse_sigma = np.sqrt(2.0 * l2)
    target = size * inverse_sigma
    u = _root(lambda u: -truncated_normal(-u).excess, -np.minimum(target, _GAUSSIAN_SIZE))
    l1 = np.where(target >= _GAUSSIAN_SIZE, 0.0, u * inverse_sigma)
    return np.where(l2 > 0, l1, 1.0 / size)


def match_l2(square: Array, l1: Array) -> Array:
    """The l2 with mean w^2 = square at fixed l1; 0 when even the Laplace has a smaller one."""
    target = square * l1 * l1
    u = _root(_scaled_square, np.minimum(target, 2.0))
    l2 = np.where(target >= 2.0, 0.0, 0.5 * (l1 / u) ** 2)
    return np.where(l1 > 0, l2, 0.5 / square)


def _variance_ratio(u: Array) -> Array:
    x = truncated_normal(-u)
    return x.var / x.excess**2


def _scaled_square(u: Array) -> Array:
    x = truncated_normal(-u)
    return u * u * (x.var + x.excess**2)


def _root(increasing: Callable[[Array], Array], target: Array) -> Array:
    """The u > 0 with increasing(u) = target, by bisection on log u to its last digits; NaN stays NaN."""
    low, high = (np.full(np.shape(target), end) for end in _LOG_U_RANGE)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        below = increasing(np.exp(middle)) < target
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.where(np.isnan(target), np.nan, np.exp(0.5 * (low + high)))
