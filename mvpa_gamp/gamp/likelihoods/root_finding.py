"""Roots of increasing scalar functions, all elements at once: Newton's method with a bisection guard."""

from collections.abc import Callable

import numpy as np

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
