"""Likelihoods ("activation functions") p(y|z) for labels y in {-1, +1}, one per file.

A new one is a frozen dataclass with the methods of ``protocol.Likelihood`` and a line in ``LIKELIHOODS``;
the tests run over that registry.
"""

from mvpa_gamp.gamp.likelihoods.hinge import Hinge
from mvpa_gamp.gamp.likelihoods.logistic import Logistic
from mvpa_gamp.gamp.likelihoods.probit import Probit
from mvpa_gamp.gamp.likelihoods.protocol import Likelihood
from mvpa_gamp.gamp.likelihoods.robust import Robust

LIKELIHOODS: dict[str, type] = {"logistic": Logistic, "probit": Probit, "hinge": Hinge}

__all__ = ["LIKELIHOODS", "Hinge", "Likelihood", "Logistic", "Probit", "Robust"]
