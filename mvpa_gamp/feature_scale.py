"""The scale of X: unusual ones are changed once, before a fit, and what no fit can hold is refused.

Multiplying X by a number divides the weights by it and changes nothing else, as long as the squares of both
can be held. A factor that is a power of two changes no digit.
"""

import math
import warnings
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

# Squares of X and of the weights, which grow as 1 / X, must fit into float32, with room for sums of them.
SMALLEST, LARGEST = 1e-15, 1e15
# Where the largest feature is this many times a usual one, a square of the usual one has two digits left
# beside a square of the largest.
UNEQUAL = 1e7
# All weights have one prior, in the units of X. Of 300 features, one without information that is 100 times as
# large as the others did no harm to GAMPClassifier (96 % correct); 10,000 times as large it left 48 %.
_LOST = 1e4
# The same weights to 8 digits, measured from 2^-20 to 2^20: within, X is left as it is.
_USUAL = 20

# What a parameter of a prior is multiplied by when weights are multiplied by f: f to this power.
_POWERS = {
    "Gaussian": {"mean": 1, "var": 2},
    "Laplace": {"rate": -1},
    "ElasticNet": {"l1": -1, "l2": -2},
    "GaussianMixture": {"means": 1, "variances": 2},
}


def warn_of_unequal(X: Any) -> None:
    """Warn of features so much smaller than the largest one that a common prior cannot serve both."""
    largest = _largest_by_feature(X)
    largest = largest[largest > 0]
    times = float(largest.max() / np.median(largest)) if largest.size else 1.0
    if times >= _LOST:
        warnings.warn(
            f"One feature of X is {times:.1g} times as large as a typical one. All weights share one "
            "prior, so the other features hardly count. Standardise the features (StandardScaler, "
            "MaxAbsScaler).",
            stacklevel=3,
        )


def scale_factor(X: Any) -> float:
    """The power of two that gives X a usual scale, 1 for nearly all X; a ValueError for a hopeless one.

    >>> import numpy as np
    >>> from mvpa_gamp.feature_scale import scale_factor
    >>> scale_factor(np.array([[1.0, -300.0]])), scale_factor(np.array([[3e-9, -1e-9]])) == 2.0**28
    (1.0, True)
    """
    largest = _largest_by_feature(X)
    largest = largest[largest > 0]
    if not largest.size:
        return 1.0
    top, usual = float(largest.max()), float(np.median(largest))
    if not SMALLEST <= top <= LARGEST:
        raise ValueError(
            f"The largest value of X should be between {SMALLEST:g} and {LARGEST:g}, so that float32 holds "
            f"its square and the weights, got {top:.3g}. Multiply X by a number, or standardise the features."
        )
    if top > UNEQUAL * usual:
        raise ValueError(
            f"The features of X should be of similar scale, got one that is {top / usual:.1g} times as "
            "large as a typical one, so the others are lost to rounding. Standardise the features."
        )
    power = -math.frexp(top)[1]
    return 1.0 if abs(power) <= _USUAL else 2.0**power


def rescaled_prior(prior: Any, factor: float) -> Any:
    """The prior of weights that are ``factor`` times as large."""
    if factor == 1:
        return prior
    powers = _POWERS.get(type(prior).__name__, {})
    changes = {name: getattr(prior, name) * factor**power for name, power in powers.items()}
    inner = {f.name: getattr(prior, f.name) for f in fields(prior) if is_dataclass(getattr(prior, f.name))}
    return replace(prior, **changes, **{name: rescaled_prior(each, factor) for name, each in inner.items()})


def rescaled(X: Any, factor: float) -> Any:
    """X, or weights, times a factor, in their own precision."""
    return X if factor == 1 else X * X.dtype.type(factor)


def _largest_by_feature(X: Any) -> NDArray:
    """max |x| of every feature, (N,), without a copy of X."""
    if not math.prod(X.shape):
        return np.zeros(0)
    high, low = X.max(axis=0), X.min(axis=0)
    if sparse.issparse(X):
        high, low = high.toarray().ravel(), low.toarray().ravel()
    return np.maximum(high, -low)
