"""What a solve returns: one column per fit, with a sentence about how it ended."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .moments import Array

CAVITY = "Ended well: the leave-one-out score no longer improved."
# Measured on weights and slopes; scores follow from the weights.
FIXED_POINT = "Converged: weights and scores no longer changed."
ITERATION_LIMIT = (
    "Not converged: the iteration limit was reached. Raise max_iter, or take smaller steps (a lower "
    "damping) if the weights oscillate."
)
# A loss without curvature lets r swing around its kink: with a Laplace prior, or any prior where rows
# outnumber features, the hinge did not settle in 2,000 iterations; with a Gaussian prior and N > M it does.
KINKED = (
    "Not converged: max-sum steps do not settle on a loss with a kink where rows outnumber features or where "
    "the penalty is l1. Use mode='sum-product', the method svm, or a logistic or probit likelihood."
)
NOT_FINITE = (
    "Not converged: the iteration turned non-finite even with small steps; the last finite state was kept. "
    "Standardise the features or take smaller steps (a lower damping)."
)
SMALLER_STEPS = "Ended well in a second try with smaller steps: the leave-one-out score no longer improved."
DIVERGED = (
    "Not converged: the iteration diverged: the leave-one-out score fell below that of its start, and the "
    "training rows are not told apart. Features may share a strong signal: use VAMP, or remove that signal."
)
FOUND_NOTHING = (
    "Found nothing: by the leave-one-out score or on the training rows, a fit without any weight predicts as "
    "well. Labels may have nothing to do with the features, or a signal that these share hides it: see VAMP."
)
AT_BOUND = (
    "Not converged: {name} was learnt as {value:.3g}, at the end of its range, where the data say nothing "
    "about it. Keep it fixed, or give more samples."
)
AT_CHANCE = (
    "Not converged: the training rows themselves are predicted no better than by chance. Check labels and "
    "features, or use VAMP."
)
SUCCESS = (CAVITY, FIXED_POINT, SMALLER_STEPS)
_FEATURES_AT_ONCE = 4096


@dataclass(frozen=True)
class GampResult:
    """The fits of B columns on M rows and N features.

    ``coef`` and ``coef_var`` are posterior means and variances (sum-product) or the minimiser and its
    local variances (max-sum). ``z``, ``tau_z`` are the scores of all rows and their variances; ``p`` and
    ``tau_p`` are cavity predictions on training rows, and the same as ``z`` and ``tau_z`` on held-out rows.
    Scores include the intercept, which goes with features around their center; ``plain_intercept`` goes with
    X as it is.
    """

    coef: Array  # (N, B)
    coef_var: Array  # (N, B)
    intercept: Array  # (B,)
    plain_intercept: Array  # (B,)
    z: Array  # (M, B)
    tau_z: Array  # (M, B)
    p: Array  # (M, B)
    tau_p: Array  # (M, B)
    r: Array  # (N, B)
    tau_r: Array  # (N, B)
    pi: Array  # (N, B) P(w != 0) where rates come from neighbours; (0, B) where it follows from r and tau_r
    n_iter: NDArray  # (B,) iterations done
    kept_iter: NDArray  # (B,) iteration of the state returned
    status: NDArray  # (B,) sentences
    cavity_score: Array  # (B,) mean leave-one-out log-likelihood of the state returned; NaN in max-sum mode

    @property
    def converged(self) -> NDArray:
        """Whether each column met its stopping rule, (B,) bool."""
        return np.isin(self.status, SUCCESS)

    @property
    def failed(self) -> NDArray:
        """Columns (B,) that missed their end; one that found nothing, as noise lets it, did not."""
        return ~self.converged & (self.status != FOUND_NOTHING)


@dataclass(frozen=True)
class EmResult:
    """A tuned fit: the result, the models it was computed with, and how each parameter moved.

    ``history`` maps a parameter such as ``prior.slab.var`` to (n_iter, B), or (n_iter, L, B) for mixtures,
    NaN after a column stopped. It has what every update proposed, also where a column did not take its step
    and kept the parameters that it had.
    """

    result: GampResult
    likelihood: Any
    prior: Any
    history: dict[str, Array]

    def inclusion(self) -> Array:
        """P(w != 0) of every weight, (N, B); 1 for priors without an atom at zero."""
        if len(self.result.pi):
            return self.result.pi
        r, tau_r = self.result.r, self.result.tau_r
        inclusion = np.empty_like(r)
        for at in some_features(len(r)):
            inclusion[at] = self.prior.inclusion(r[at], tau_r[at])
        return inclusion


def some_features(n_features: int) -> Iterator[slice]:
    """All features, some at a time: work space for a step on all weights would outgrow the weights."""
    for first in range(0, n_features, _FEATURES_AT_ONCE):
        yield slice(first, first + _FEATURES_AT_ONCE)
