"""Models with a fault each, which the checks of a registered model must find."""

from dataclasses import dataclass, replace

import numpy as np
from mvpa_gamp.gamp.likelihoods.cauchit import Cauchit

from mvpa_gamp.gamp.moments import Slopes


@dataclass(frozen=True)
class NeverLearns(Cauchit):
    """Its M-step changes nothing."""

    def em_update(self, y, p, tau_p, learn=None, weights=None):
        return self


@dataclass(frozen=True)
class FirstColumn(Cauchit):
    """All columns use the scale of the first."""

    def _standard(self, y, p, tau_p):
        return Cauchit(np.ravel(self.scale)[0])._standard(y, p, tau_p)


@dataclass(frozen=True)
class FirstColumnLearns(Cauchit):
    """All columns learn from the scale of the first."""

    def em_update(self, y, p, tau_p, learn=None, weights=None):
        first = Cauchit(np.ravel(self.scale)[0])
        return replace(self, scale=first.em_update(y, p, tau_p, learn, weights).scale)


@dataclass(frozen=True)
class UnitSlopes(Cauchit):
    """Slopes that are right for a scale of 1 only."""

    def evaluate(self, y, p, tau_p):
        (s, tau_s), log_c = super().evaluate(y, p, tau_p)
        return Slopes(s * self.scale, tau_s * np.square(self.scale)), log_c


LIKELIHOOD_MUTANTS = (NeverLearns, FirstColumn, FirstColumnLearns, UnitSlopes)
