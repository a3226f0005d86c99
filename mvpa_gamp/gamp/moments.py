"""The two records that scalar steps return, and the smallest variance that they are given."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]

# Of a score. An all-zero iterate has none at all; scores are of order one, so this is nothing.
LEAST_VARIANCE = 1e-12


def floored(tau: Array) -> Array:
    """Variances of scores, none below ``LEAST_VARIANCE``."""
    return np.maximum(tau, LEAST_VARIANCE)


class Moments(NamedTuple):
    """Mean and variance of a scalar posterior, or a proximal point and tau times its slope."""

    mean: Array
    var: Array


class Slopes(NamedTuple):
    """First derivative s and minus the second derivative tau_s of a log-partition with respect to p.

    These are lines 11 and 12 of the paper's Algorithm 1, tau_s = (1 - tau_z / tau_p) / tau_p and
    s = (z - p) / tau_p, computed without their cancellation for small tau_p.
    """

    s: Array
    tau_s: Array
