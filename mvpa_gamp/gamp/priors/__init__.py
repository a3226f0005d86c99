"""Priors of the weights, one per file.

A new one is a frozen dataclass that extends ``Prior`` (prior.py) with ``condition``, ``log_partition``,
``maximize`` and ``scaled``, and ``prox`` and ``penalty`` where they exist, and a line in ``registry.py``; the
property tests run over every entry of the registry.
"""

from mvpa_gamp.gamp.priors import registry
from mvpa_gamp.gamp.priors.prior import Prior
from mvpa_gamp.gamp.priors.registry import *  # noqa: F403 (the registry is the list of names)

__all__ = ["PRIORS", "Prior"]  # noqa: F405
__all__ += [name for name, value in vars(registry).items() if isinstance(value, type) and name[0] != "_"]
