"""The engine: generalized approximate message passing for binary linear classification.

The way through it: ``Design`` holds X and the training rows of every column; a likelihood and a prior
give the scalar steps; ``solve`` runs them at fixed parameters and ``fit_em`` tunes them on the way.
"""

from . import likelihoods, priors
from .design import Design
from .em import fit_em
from .likelihoods.registry import *  # noqa: F403 (classes that are registered are public)
from .likelihoods.robust import Robust as Robust
from .moments import Moments
from .priors.registry import *  # noqa: F403
from .result import EmResult, GampResult
from .row_space import RowSpace, SetColumns, TrainingSet, training_sets
from .settings import SolverSettings
from .solve import Progress, solve
from .state_evolution import StateEvolution, state_evolution
from .vamp import VampResult, VampSettings, solve_vamp
from .vamp_evolution import VampEvolution, vamp_evolution

__all__ = [
    "Design",
    "EmResult",
    "GampResult",
    "Moments",
    "Progress",
    "RowSpace",
    "SetColumns",
    "SolverSettings",
    "StateEvolution",
    "TrainingSet",
    "VampEvolution",
    "VampResult",
    "VampSettings",
    "fit_em",
    "solve",
    "solve_vamp",
    "state_evolution",
    "training_sets",
    "vamp_evolution",
]
__all__ += sorted({*likelihoods.__all__, *priors.__all__} - {"LIKELIHOODS", "PRIORS", "Likelihood", "Prior"})
