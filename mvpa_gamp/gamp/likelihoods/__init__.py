"""Likelihoods ("activation functions") p(y|z) for labels y in {-1, +1}, one per file.

A new one is a frozen dataclass with the methods of ``protocol.Likelihood`` and a line in ``registry.py``; the
tests run over that registry.
"""

from mvpa_gamp.gamp.likelihoods import registry
from mvpa_gamp.gamp.likelihoods.protocol import Likelihood
from mvpa_gamp.gamp.likelihoods.registry import *  # noqa: F403 (the registry is the list of names)
from mvpa_gamp.gamp.likelihoods.robust import Robust

__all__ = ["LIKELIHOODS", "Likelihood", "Robust"]  # noqa: F405
__all__ += [name for name, value in vars(registry).items() if isinstance(value, type) and name[0] != "_"]
