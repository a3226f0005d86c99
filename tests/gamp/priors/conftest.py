"""Exact scalar posteriors of every prior by quadrature in 30 digits, independent of the closed forms."""

import itertools
from collections.abc import Callable
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
        reference = _reference(slab)
        density = reference.density(slab)
        sums = [mp.mpf(0)] * 4
        ends = sorted(set(reference.panel_ends(slab, r, tau)))
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


class Reference(NamedTuple):
    """The density of a prior in mpmath, and the ends of panels around each bump of its posterior."""

    density: Callable  # slab -> (w -> p(w))
    panel_ends: Callable  # slab, r, tau -> numbers
    components: Callable | None = None  # slab -> (share, mean, variance) of hidden choices, if there are any


def _reference(slab):
    found = [reference for kind, reference in REFERENCES.items() if isinstance(slab, kind)]
    assert found, (
        f"{type(slab).__name__} has no density to be compared with: write it in mpmath, with the ends of "
        "panels around its posterior, and add both to REFERENCES in tests/gamp/priors/conftest.py."
    )
    return found[0]


def gaussians(components):
    """The reference of a sum of Gaussians, each (share, mean, variance)."""

    def density(slab):
        rows = [(a / mp.sqrt(2 * mp.pi * v), m, -1 / (2 * v)) for a, m, v in _exact_rows(components(slab))]
        return lambda w: sum(a * mp.exp((w - m) ** 2 * v) for a, m, v in rows)

    def ends(slab, r, tau):
        for _, mean, var in _exact_rows(components(slab)):
            width, centre = mp.sqrt(var * tau / (var + tau)), (var * r + tau * mean) / (var + tau)
            for end in ENDS:
                yield centre - width * end
                yield centre + width * end

    return Reference(density, ends, components)


def _exact_rows(components):
    return [tuple(mp.mpf(float(value)) for value in row) for row in components]


def exponentials(rates):
    """The reference of exp(-l1 |w| - l2 w^2) up to a constant."""

    def density(slab):
        l1, l2 = (mp.mpf(rate) for rate in rates(slab))
        half = mp.quad(lambda t: mp.exp(-l1 * t - l2 * t * t), [0, 1 / (l1 + mp.sqrt(l2)), mp.inf])
        return lambda w: mp.exp(-l1 * abs(w) - l2 * w * w) / (2 * half)

    def ends(slab, r, tau):
        return _half_ends(*(mp.mpf(rate) for rate in rates(slab)), r, tau)

    return Reference(density, ends)


def _half_ends(l1, l2, r, tau):
    width = mp.sqrt(tau / (1 + 2 * l2 * tau))
    for sign in (1, -1):
        c = sign * r * width / tau - l1 * width
        # A half cut in its tail falls off like exp(c x), which needs 70 / |c| and finer panels.
        reach = [3 * end for end in ENDS] if c < -1 else ENDS
        for end in (e / max(1, abs(c)) if c < -1 else e for e in reach):
            for x in (max(c, 0) - end, max(c, 0) + end):
                yield sign * width * max(x, 0)


# What every prior is compared with, independent of its formulas; a Bernoulli prior by its slab.
REFERENCES: dict[type, Reference] = {
    Gaussian: gaussians(lambda slab: [(1.0, slab.mean, slab.var)]),
    GaussianMixture: gaussians(lambda slab: zip(slab.weights, slab.means, slab.variances, strict=True)),
    Laplace: exponentials(lambda slab: (slab.rate, 0)),
    ElasticNet: exponentials(lambda slab: (slab.l1, slab.l2)),
}


@pytest.fixture(scope="session")
def branches():
    """branches(prior) -> (mass, log density, or None for the atom) of every hidden choice of a prior."""

    def found(prior):
        if isinstance(prior, Bernoulli):
            inner = [(prior.rate * mass, density) for mass, density in found(prior.slab)]
            return [(1 - prior.rate, None), *inner]
        components = _reference(prior).components
        if components is None:
            return [(1.0, prior.log_partition)]
        return [(float(a), Gaussian(float(m), float(v)).log_partition) for a, m, v in components(prior)]

    return found


@pytest.fixture
def rng():
    return np.random.default_rng(7)
