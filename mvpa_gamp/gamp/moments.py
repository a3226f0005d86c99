"""The two little records that scalar steps return."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]


class Moments(NamedTuple):
    """Mean and variance of a scalar posterior, or a proximal point and tau times its slope."""

    mean: Array
    var: Array


class Slopes(NamedTuple):
    """First derivative s and minus the second derivative tau_s of a log-partition with respect to p.

    These are lines 11 and 12 of the paper's Algorithm 1, s = (z - p) / tau_p and
    tau_s = (1 - tau_z / tau_p) / tau_p, computed without their cancellation for small tau_p.
    """

    s: Array
    tau_s: Array
