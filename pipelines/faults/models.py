"""Extreme priors, likelihoods and settings of the engine, some of them without sense."""

from collections.abc import Callable
from typing import Any

import numpy as np

from mvpa_gamp.gamp import (
    Bernoulli,
    ElasticNet,
    Gaussian,
    GaussianMixture,
    Hinge,
    Laplace,
    Logistic,
    Probit,
    Robust,
    SolverSettings,
)

_SENSELESS = (0.0, -1.0, np.nan, np.inf, "wide", None, 1j, (), (1.0, 2.0, 3.0))


def positive(rng: np.random.Generator) -> Any:
    """A scale: usual, extreme, or, one time in fifteen, none at all."""
    if rng.random() < 1 / 15:
        return _SENSELESS[rng.integers(len(_SENSELESS))]
    usual = rng.random() < 0.5
    return float(10.0 ** (rng.uniform(-2, 2) if usual else rng.uniform(-300, 300)))


def share(rng: np.random.Generator) -> Any:
    """A probability: usual, at a border, or none at all."""
    odd = (0.0, 1e-300, 1e-12, 0.5, 1 - 1e-12, 1.0, 1.5, -0.1, np.nan, "half")
    return float(rng.uniform(0.01, 0.99)) if rng.random() < 0.6 else odd[rng.integers(len(odd))]


def _mean(rng: np.random.Generator) -> float:
    return float(rng.choice([0.0, 0.0, 1.0, -1e3, 1e30, 1e200]))


def _mixture(rng: np.random.Generator) -> Any:
    weights = rng.dirichlet(np.ones(3))
    return GaussianMixture(weights, [_mean(rng) for _ in range(3)], [positive(rng) for _ in range(3)])


_SLABS: tuple[Callable[[np.random.Generator], Any], ...] = (
    lambda rng: Gaussian(_mean(rng), positive(rng)),
    lambda rng: Laplace(positive(rng)),
    lambda rng: ElasticNet(positive(rng), positive(rng)),
    _mixture,
)
_BASES: tuple[Callable[[np.random.Generator], Any], ...] = (
    lambda rng: Logistic(positive(rng), moments=str(rng.choice(["exact", "exact", "variational"]))),
    lambda rng: Probit(positive(rng)),
    lambda rng: Hinge(),
)


def prior(rng: np.random.Generator) -> Any:
    """Any prior of the engine."""
    slab = _SLABS[rng.integers(len(_SLABS))](rng)
    return Bernoulli(share(rng), slab) if rng.random() < 0.4 else slab


def likelihood(rng: np.random.Generator) -> Any:
    """Any likelihood of the engine."""
    base = _BASES[rng.integers(len(_BASES))](rng)
    return Robust(base, share(rng)) if rng.random() < 0.3 else base


def usual_settings(rng: np.random.Generator) -> dict[str, Any]:
    """Settings of the solver that make sense, of short runs too."""
    return {
        "mode": str(rng.choice(["sum-product", "sum-product", "max-sum"])),
        "variance": str(rng.choice(["full", "uniform"])),
        "max_iter": (1, 2, 5, 40, None)[rng.integers(5)],
        "intercept": bool(rng.random() < 0.5),
    }


def odd_settings(rng: np.random.Generator) -> dict[str, Any]:
    """One setting, extreme or without sense."""
    odd: dict[str, tuple[Any, ...]] = {
        "mode": ("fast", None, 1),
        "stop": ("cavity", "fixed-point", "soon", 3),
        "max_iter": (0, -1, 1.5, np.nan, np.inf, "many", np.int64(3), True),
        "tol": (0.0, -1.0, np.nan, np.inf, 1e-300, 1e300, "small"),
        "damping": (0.0, 1.0, 1e-12, 1.5, np.nan, "half"),
        "patience": (0, 1, 2.5, "long", np.inf),
        "variance": ("none", None),
        "intercept": ("yes", None),
        "adaptive": (False, "no"),
    }
    name = str(rng.choice(list(odd)))
    return {name: odd[name][rng.integers(len(odd[name]))]}


def settings(given: dict[str, Any]) -> SolverSettings:
    """The settings of a solve."""
    return SolverSettings(**given)
