"""Pairwise coupling under the name it has here; the mathematics is in ``mvpa_gamp.coupling``."""

from ..coupling import Answers, Pairs, class_pairs, classify, couple, couple_quadratic, vote

__all__ = ["Answers", "Pairs", "class_pairs", "classify", "couple", "couple_quadratic", "vote"]
