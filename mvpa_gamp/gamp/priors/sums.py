"""Sums over rows for expectation maximisation, and how new parameters follow from them, column by column."""

import numpy as np
from numpy.typing import ArrayLike

from mvpa_gamp.gamp.moments import Array

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
