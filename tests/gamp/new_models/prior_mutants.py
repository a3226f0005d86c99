"""Priors with a fault each, which the checks of a registered prior must find."""

from dataclasses import dataclass, replace

import numpy as np
from mvpa_gamp.gamp.priors.two_scales import TwoScales


@dataclass(frozen=True)
class HalfWay(TwoScales):
    """Its M-step goes half the way."""

    def maximize(self, statistics, learn=None):
        found = super().maximize(statistics, learn)
        return replace(self, scale=0.5 * (np.asarray(self.scale) + found.scale))


@dataclass(frozen=True)
class FirstScale(TwoScales):
    """All columns use the scale of the first."""

    def condition(self, r, tau_r):
        return TwoScales(np.ravel(self.scale)[0]).condition(r, tau_r)


PRIOR_MUTANTS = (HalfWay, FirstScale)
