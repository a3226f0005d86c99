"""Exact scalar posteriors of every prior by quadrature in 30 digits, independent of the closed forms."""

import itertools
from typing import NamedTuple

import mpmath as mp
import numpy as np
import pytest

from mvpa_gamp.gamp.priors import Bernoulli, ElasticNet, Gaussian, GaussianMixture, Laplace

DIGITS = 30
# Panel ends in units of a bump's width: 12 widths leave out 1e-31 of its mass, and 24 Gauss-Legendre
# nodes on a panel of four widths are exact to about 1e-16.
ENDS = (0, 1.5, 3, 5, 8, 12, 17)


class Exact(NamedTuple):
    mean: float
    var: float
    log_partition: float
    inclusion: float
    mean_abs: float
    mean_square: float


@pytest.fixture(scope="session")
def exact():
    """exact(prior, r, tau_r) -> Exact, for a prior with scalar parameters."""
    with mp.workdps(DIGITS):
        nodes = mp.calculus.quadrature.GaussLegendre(mp.mp).calc_nodes(4, mp.mp.prec)
    return lambda prior, r, tau: _exact(prior, r, tau, nodes)


def _exact(prior, r, tau, nodes):
    with mp.workdps(DIGITS):
        r, tau = mp.mpf(float(r)), mp.mpf(float(tau))
        rate, slab = (mp.mpf(prior.rate), prior.slab) if isinstance(prior, Bernoulli) else (mp.mpf(1), prior)
        density = _density(slab)
        sums = [mp.mpf(0)] * 4
        ends = sorted(set(_panel_ends(slab, r, tau)))
        for low, high in itertools.pairwise(ends):
            half, middle = (high - low) / 2, (high + low) / 2
            for x, weight in nodes:
                w = middle + half * x
                mass = half * weight * density(w) * mp.exp(-((w - r) ** 2) / (2 * tau))
                sums = [total + term for total, term in zip(sums, _powers(w, mass), strict=True)]
        sums = [rate * total / mp.sqrt(2 * mp.pi * tau) for total in sums]
        atom = (1 - rate) * mp.exp(-(r**2) / (2 * tau)) / mp.sqrt(2 * mp.pi * tau)
        total = sums[0] + atom
        mean, square = sums[1] / total, sums[2] / total
        values = (mean, square - mean**2, mp.log(total), sums[0] / total, sums[3] / total, square)
        return Exact(*(float(value) for value in values))


def _powers(w, mass):
    return mass, w * mass, w * w * mass, abs(w) * mass


def _density(slab):
    if isinstance(slab, (Gaussian, GaussianMixture)):
        rows = [(a / mp.sqrt(2 * mp.pi * v), m, -1 / (2 * v)) for a, m, v in _components(slab)]
        return lambda w: sum(a * mp.exp((w - m) ** 2 * v) for a, m, v in rows)
    l1, l2 = _rates(slab)
    half = mp.quad(lambda t: mp.exp(-l1 * t - l2 * t * t), [0, 1 / (l1 + mp.sqrt(l2)), mp.inf])
    return lambda w: mp.exp(-l1 * abs(w) - l2 * w * w) / (2 * half)


def _components(slab):
    if isinstance(slab, Gaussian):
        return [(mp.mpf(1), mp.mpf(slab.mean), mp.mpf(slab.var))]
    rows = zip(slab.weights, slab.means, slab.variances, strict=True)
    return [tuple(mp.mpf(float(value)) for value in row) for row in rows]


def _rates(slab):
    return (mp.mpf(slab.rate), mp.mpf(0)) if isinstance(slab, Laplace) else (mp.mpf(slab.l1), mp.mpf(slab.l2))


def _panel_ends(slab, r, tau):
    """Ends of panels around each bump of the posterior density."""
    if isinstance(slab, (ElasticNet, Laplace)):
        yield from _half_ends(*_rates(slab), r, tau)
        return
    for _, mean, var in _components(slab):
        width, centre = mp.sqrt(var * tau / (var + tau)), (var * r + tau * mean) / (var + tau)
        for end in ENDS:
            yield centre - width * end
            yield centre + width * end


def _half_ends(l1, l2, r, tau):
    width = mp.sqrt(tau / (1 + 2 * l2 * tau))
    for sign in (1, -1):
        c = sign * r * width / tau - l1 * width
        # A half cut in its tail falls off like exp(c x), which needs 70 / |c| and finer panels.
        reach = [3 * end for end in ENDS] if c < -1 else ENDS
        for end in (e / max(1, abs(c)) if c < -1 else e for e in reach):
            for x in (max(c, 0) - end, max(c, 0) + end):
                yield sign * width * max(x, 0)


@pytest.fixture
def rng():
    return np.random.default_rng(7)
