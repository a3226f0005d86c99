"""Scalar posteriors of every likelihood by quadrature in 30 digits, independent of the closed forms."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import mpmath as mp
import numpy as np
import pytest

from mvpa_gamp.gamp.likelihoods import LIKELIHOODS, Hinge, Logistic, Probit, Robust
from mvpa_gamp.gamp.parameters import parameters, with_parameters

DIGITS = 30
# Panels of two Gaussian widths, cut further around the modes and at these distances from the bend (in
# widths of the likelihood): 12 Gauss-Legendre nodes on each are exact to about 1e-16.
DISTANCES = (0, 1, 2, 4, 8, 16, 32, 64)
REACH = 10  # Gaussian widths beyond the outermost mode: exp(-50) = 2e-22
VISIBLE = 39  # Gaussian widths to the bend beyond which its mass is no float: exp(-39^2/2) = 5e-331


class Exact(NamedTuple):
    """What the scalar steps of a likelihood should give."""

    log_partition: Any
    s: Any
    tau_s: Any
    mean: Any
    var: Any


class Shape(NamedTuple):
    """A likelihood as mpmath sees it, a function of the margin g = y z.

    ``at(g)`` is p, 1 - p (for the robust mixture too), d log p/dg and -d^2 log p/dg^2; ``centre`` and
    ``width`` say where and how wide it bends, ``corner`` the fall of d log p/dg at a kink there.
    """

    at: Callable
    centre: Any
    width: Any
    corner: Any = 0


def shape_of(likelihood: Any) -> Shape:
    found = [shape for kind, shape in SHAPES.items() if isinstance(likelihood, kind)]
    assert found, (
        f"{type(likelihood).__name__} has no shape to be compared with: write p, 1 - p and the derivatives "
        "of log p in mpmath and add them to SHAPES in tests/gamp/likelihoods/conftest.py."
    )
    return found[0](likelihood)


def _logistic(scale: Any) -> Shape:
    def at(g: Any) -> tuple:
        odds = mp.exp(-scale * g)
        p, q = 1 / (1 + odds), odds / (1 + odds)
        return p, q, scale * q, scale**2 * p * q

    return Shape(at, 0, 1 / scale)


def _probit(root: Any) -> Shape:
    def at(g: Any) -> tuple:
        c = g / root
        tail = mp.erfc(abs(c) / mp.sqrt(2)) / 2
        p, q = (tail, 1 - tail) if c < 0 else (1 - tail, tail)
        m = mp.npdf(c) / p
        return p, q, m / root, m * (m + c) / root**2

    return Shape(at, 0, root)


def _hinge(g: Any) -> tuple:
    loss = max(mp.mpf(0), 1 - g)
    return mp.exp(-loss), -mp.expm1(-loss), mp.mpf(g < 1), mp.mpf(0)


def _robust(base: Shape, flip: Any) -> Shape:
    def at(g: Any) -> tuple:
        p, q, first, second = base.at(g)
        mixed = flip + (1 - 2 * flip) * p
        share = (1 - 2 * flip) * p / mixed
        return mixed, flip + (1 - 2 * flip) * q, share * first, share * (second - (1 - share) * first**2)

    full = base.at(base.centre)[0]
    return base._replace(at=at, corner=base.corner * (1 - 2 * flip) * full / (flip + (1 - 2 * flip) * full))


# What every likelihood is compared with, independent of its formulas.
SHAPES: dict[type, Callable[[Any], Shape]] = {
    Robust: lambda likelihood: _robust(shape_of(likelihood.base), mp.mpf(likelihood.flip)),
    Logistic: lambda likelihood: _logistic(mp.mpf(likelihood.scale)),
    Probit: lambda likelihood: _probit(mp.sqrt(mp.mpf(likelihood.var))),
    Hinge: lambda likelihood: Shape(_hinge, 1, mp.mpf(1), 1),
}


def exact_scalar(likelihood: Any, y: float, p: float, tau_p: float) -> Exact:
    with mp.workdps(DIGITS):
        shape, x, t = shape_of(likelihood), mp.mpf(y) * mp.mpf(p), mp.mpf(tau_p)
        nodes, weights = _nodes(likelihood, shape, x, t)
        values = [shape.at(g) for g in nodes]
        normal = [w * mp.npdf(g, x, mp.sqrt(t)) for g, w in zip(nodes, weights, strict=True)]
        total, missing = (mp.fdot(normal, [v[k] for v in values]) for k in (0, 1))
        posterior = [n * v[0] / total for n, v in zip(normal, values, strict=True)]
        s = mp.fdot(posterior, [v[2] for v in values])
        corner = shape.corner * shape.at(shape.centre)[0] * mp.npdf(shape.centre, x, mp.sqrt(t)) / total
        bend = mp.fdot(posterior, [v[3] for v in values]) + corner
        tau_s = bend - mp.fdot(posterior, [(v[2] - s) ** 2 for v in values])
        mean = mp.fdot(posterior, nodes)
        var = mp.fdot(posterior, [(g - mean) ** 2 for g in nodes])
        log_partition = mp.log1p(-missing) if missing < 0.5 else mp.log(total)
        return Exact(*(float(v) for v in (log_partition, y * s, tau_s, y * mean, var)))


def _nodes(likelihood: Any, shape: Shape, x: Any, t: Any) -> tuple[list, list]:
    """Gauss-Legendre points and weights from left of all modes of p N and (1 - p) N to right of them."""
    sd = mp.sqrt(t)
    clean = shape_of(getattr(likelihood, "base", likelihood))
    modes = [x, _mode(clean, x, t), 2 * clean.centre - _mode(clean, 2 * clean.centre - x, t)]
    if abs(x - clean.centre) < VISIBLE * sd:
        modes.append(clean.centre)
    low, high = min(modes) - REACH * sd, max(modes) + REACH * sd
    narrow = sd * shape.width / mp.hypot(sd, shape.width)
    near = [shape.centre + sign * shape.width * d for d in DISTANCES for sign in (-1, 1)]
    if narrow < sd / 2:
        near += [mode + k * narrow for mode in modes for k in range(-9, 10, 3)]
    panels = int(mp.ceil((high - low) / (2 * sd)))
    ends = sorted({*mp.linspace(low, high, panels + 1), *(e for e in near if low < e < high)})
    points, weights = [], []
    for a, b in pairwise(ends):
        points += [(a + b) / 2 + node * (b - a) / 2 for node, _ in LEGENDRE]
        weights += [weight * (b - a) / 2 for _, weight in LEGENDRE]
    return points, weights


def _mode(shape: Shape, x: Any, t: Any) -> Any:
    """Where log p - (g - x)^2/(2 t) peaks, by bisection."""
    low, high = x, x + t * shape.at(x)[2]
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (middle, high) if middle < x + t * shape.at(middle)[2] else (low, middle)
    return low


with mp.workdps(DIGITS):
    LEGENDRE = mp.calculus.quadrature.GaussLegendre(mp.mp).calc_nodes(3, mp.mp.prec)


def rescaled(likelihood: Any, factor: float) -> Any:
    """The likelihood with all that it can learn multiplied by a factor, probabilities by one half."""
    values = parameters(likelihood)
    factors = {name: 0.5 if name in likelihood.shares else factor for name in likelihood.learnable}
    return with_parameters(likelihood, {name: factors[name] * values[name] for name in factors})


# Every registered likelihood with its default and with other parameters, and robust versions of each.
PLAIN = {name: make() for name, make in LIKELIHOODS.items()}
LEARNING = {name: likelihood for name, likelihood in PLAIN.items() if likelihood.learnable}
RESCALED = {f"{name} x {x}": rescaled(each, x) for name, each in LEARNING.items() for x in (0.1, 4.0)}
ROBUST = {f"robust {name}": Robust(make(), flip=0.02) for name, make in LIKELIHOODS.items()}
PLAIN |= RESCALED
ALL = {**PLAIN, **ROBUST}
PROXIMAL = {name: likelihood for name, likelihood in ALL.items() if "max-sum" in likelihood.modes}


@pytest.fixture(params=ALL.values(), ids=ALL.keys())
def likelihood(request) -> Any:
    return request.param


@pytest.fixture(params=PLAIN.values(), ids=PLAIN.keys())
def plain(request) -> Any:
    return request.param


@pytest.fixture(params=PROXIMAL.values(), ids=PROXIMAL.keys())
def proximal(request) -> Any:
    """A likelihood with max-sum steps."""
    return request.param


@pytest.fixture(params=LEARNING.values(), ids=LEARNING.keys())
def learning(request) -> Any:
    """A registered likelihood that can learn."""
    return request.param


@pytest.fixture(params=ROBUST.values(), ids=ROBUST.keys())
def robust(request) -> Any:
    return request.param


@pytest.fixture(scope="session")
def exact() -> Callable:
    """exact(likelihood, y, p, tau_p) -> Exact of arrays, one quadrature per element."""

    def evaluate(likelihood: Any, y: Any, p: Any, tau_p: Any) -> Exact:
        rows = [exact_scalar(likelihood, *(float(v) for v in args)) for args in np.broadcast(y, p, tau_p)]
        return Exact(*np.array(rows).T)

    return evaluate


@pytest.fixture
def grid() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels in turn, margins y p and tau_p over the range the engine meets, flat arrays of 28."""
    margin = np.array([-30.0, -7.0, -2.0, -0.4, 0.0, 0.9, 2.5, 8.0, 30.0])
    tau_p = np.array([1e-4, 0.03, 0.9, 1.0, 4.0, 40.0, 1e3])
    i = np.arange(28)
    y = np.where(i % 2 == 0, 1.0, -1.0)
    return y, margin[i % 9] * y, tau_p[i % 7]
