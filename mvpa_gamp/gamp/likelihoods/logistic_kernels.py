"""The even-grid sums of ``logistic_integral`` and the proximal point, compiled when Numba is there.

Element by element, running products and sums stay in registers: NumPy passes over the elements about ten
times per grid point.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from mvpa_gamp.gamp.compiled import compiler, is_available

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
    return Kernels(build(_smooth), build(_gridded), build(_prox))


def _smooth(odds: Any, ratio: Any, weights: Any, sums: Any) -> None:
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


def _gridded(left_ratio: Any, right_ratio: Any, bend: Any, counts: Any, below: Any, sums: Any) -> None:
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


def _prox(x: Any, t: Any, out: Any) -> None:
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
