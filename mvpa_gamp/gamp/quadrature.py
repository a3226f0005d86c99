"""Adaptive quadrature of several functions of one variable at once, on panels that shrink where needed."""

from collections.abc import Callable, Iterable

import numpy as np
from numpy.polynomial import legendre

from .moments import Array

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
