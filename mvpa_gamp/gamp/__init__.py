"""The engine: generalized approximate message passing for binary linear classification.

The way through it: ``Design`` holds X and the training rows of every column; a likelihood and a prior
give the scalar steps; ``solve`` runs them at fixed parameters and ``fit_em`` tunes them on the way.
"""

from .design import Design
from .em import fit_em
from .likelihoods import Hinge, Logistic, Probit, Robust
from .moments import Moments
from .priors import Bernoulli, ElasticNet, Gaussian, GaussianMixture, Laplace
from .result import EmResult, GampResult
from .settings import SolverSettings
from .solve import Progress, solve
from .state_evolution import StateEvolution, state_evolution

__all__ = [
    "Bernoulli",
    "Design",
    "ElasticNet",
    "EmResult",
    "GampResult",
    "Gaussian",
    "GaussianMixture",
    "Hinge",
    "Laplace",
    "Logistic",
    "Moments",
    "Probit",
    "Progress",
    "Robust",
    "SolverSettings",
    "StateEvolution",
    "fit_em",
    "solve",
    "state_evolution",
]
