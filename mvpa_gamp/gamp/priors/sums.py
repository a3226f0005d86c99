"""Sums over rows for expectation maximisation, and how new parameters follow from them, column by column.

Elastic-net parameters follow from mean |w| and mean w^2. |w| under exp(-l1 |w| - l2 w^2) is sigma times a
standard normal x given x > u, minus u, with sigma = 1 / sqrt(2 l2) and u = l1 sigma. Each update therefore
asks for one root u of a monotone function. The log-likelihood is concave, so an optimum outside
l1, l2 >= 0 lies on the nearest special case: l1 = 0 (Gaussian) or l2 = 0 (Laplace). All arguments and
results are arrays with one value per column.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from mvpa_gamp.gamp.moments import Array, truncated_normal

Parameter = float | Array
Statistics = dict[str, Array]

# Smallest variance that learning may reach. Weights of 1e-10 are nothing for features of any usual scale,
# and their products with probabilities stay clear of the slow denormal numbers of float32.
VARIANCE_FLOOR = 1e-20
# Below this summed weight a column (or a mixture component) holds no data: its old parameters stay.
EMPTY = 1e-8


def common_shape(one: Array, other: Array) -> tuple[int, ...]:
    """Shape that two arrays broadcast to (NumPy's own function costs as much as a small block)."""
    return one.shape if one.shape == other.shape else np.broadcast_shapes(one.shape, other.shape)


def spread(values: Array, shape: tuple[int, ...]) -> Array:
    """``values`` broadcast to ``shape``, read-only where that repeats them."""
    return values if np.shape(values) == shape else np.broadcast_to(values, shape)


def column_sum(shape: tuple[int, ...], values: Array, weights: Array | None = None) -> Array:
    """Float64 sums over rows of values, times weights if given, both broadcast to ``shape``."""
    if weights is None:
        return np.asarray(spread(values, shape).sum(axis=0, dtype=np.float64))
    return np.einsum("i...,i...->...", spread(values, shape), spread(weights, shape), dtype=np.float64)


def row_count(shape: tuple[int, ...], weights: Array | None) -> Array:
    """Sum of the weights of each column; the number of rows when there are none."""
    return np.full(shape[1:], float(shape[0])) if weights is None else column_sum(shape, weights)


def held_count(count: Array) -> Array:
    """``count`` where it holds data and NaN elsewhere, which ``finite_or`` turns back into the old value."""
    return np.where(count > EMPTY, count, np.nan)


def finite_or(new: ArrayLike, old: Parameter) -> Array:
    """``new`` where it is finite, ``old`` elsewhere: a column that failed keeps its parameters."""
    new = np.asarray(new, dtype=float)
    return np.where(np.isfinite(new), new, old)


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
