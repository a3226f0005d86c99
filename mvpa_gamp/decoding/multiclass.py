"""Pairwise coupling under the name it has here; the mathematics is in ``mvpa_gamp.coupling``."""

from ..coupling import Answers as Answers
from ..coupling import Pairs as Pairs
from ..coupling import class_pairs as class_pairs
from ..coupling import classify as classify
from ..coupling import couple as couple
from ..coupling import couple_quadratic as couple_quadratic
from ..coupling import vote as vote
