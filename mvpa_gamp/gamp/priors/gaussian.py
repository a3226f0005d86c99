"""Gaussian prior N(w; mean, var): ridge regression in max-sum mode."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from mvpa_gamp.gamp.moments import Array, Moments
from mvpa_gamp.gamp.parameters import check_parameter, learnt_names
from mvpa_gamp.gamp.priors.prior import (
    VARIANCE_FLOOR,
    Parameter,
    Prior,
    Statistics,
    channel,
    column_sum,
    common_shape,
    finite_or,
    held_count,
    row_count,
)

_LOG_2PI = float(np.log(2 * np.pi))
# A variance about a learnt mean is a difference; below this fraction of its terms it is rounding noise.
_RELATIVE_FLOOR = 1e-12


@dataclass(frozen=True)
class Gaussian(Prior):
    """Gaussian prior, p(w) = N(w; mean, var), with var > 0.

    The posterior has variance tau_w = var tau_r / (var + tau_r) and mean tau_w (r / tau_r + mean / var);
    it is its own mode, so the max-sum step is the same.
    """

    mean: Parameter = 0.0
    var: Parameter = 1.0

    learnable: ClassVar[tuple[str, ...]] = ("mean", "var")
    default_learn: ClassVar[tuple[str, ...]] = ("var",)
    modes: ClassVar[tuple[str, ...]] = ("sum-product", "max-sum")
    squares: ClassVar[tuple[str, ...]] = ("var",)
    locations: ClassVar[tuple[str, ...]] = ("mean",)

    def __post_init__(self) -> None:
        check_parameter(self, "mean", lambda mean: True, "finite")
        check_parameter(self, "var", lambda var: var > 0, "positive and finite")

    def condition(self, r: ArrayLike, tau_r: ArrayLike) -> "GaussianPosterior":
        """Posterior of w given r = w + N(0, tau_r)."""
        return GaussianPosterior(*channel(r, tau_r), self.mean, self.var)

    def scaled(self, factor: Parameter) -> "Gaussian":
        """The prior of factor times w."""
        return Gaussian(np.multiply(factor, self.mean), np.square(factor) * self.var)

    def log_partition(self, r: ArrayLike, tau_r: ArrayLike) -> Array:
        """Log N(r; mean, var + tau_r)."""
        r, tau_r = channel(r, tau_r)
        total = np.asarray(self.var, r.dtype) + tau_r
        gap = r - np.asarray(self.mean, r.dtype)
        return np.asarray(-0.5 * (gap * gap / total + np.log(total) + _LOG_2PI))

    def prox(self, r: ArrayLike, tau_r: ArrayLike) -> Moments:
        """Max-sum step: the mode of a Gaussian posterior is its mean."""
        return self.posterior(r, tau_r)

    def penalty(self, w: ArrayLike) -> Array:
        """(w - mean)^2 / (2 var)."""
        w, mean = channel(w, self.mean)
        return np.asarray((w - mean) ** 2 * np.asarray(0.5 / np.asarray(self.var), w.dtype))

    def maximize(self, statistics: Statistics, learn: Iterable[str] | None = None) -> "Gaussian":
        """Mean and variance of the weights, averaged over their posteriors (eq. generic_em)."""
        names = learnt_names(self, learn)
        mean, var = gaussian_m_step(self.mean, self.var, statistics, "mean" in names)
        new = {"mean": mean, "var": var}
        return replace(self, **{name: new[name] for name in names})


class GaussianPosterior:
    """Posterior of a Gaussian prior: mean, var, and what its evidence and sums need."""

    def __init__(self, r: np.ndarray, tau_r: np.ndarray, mean: Parameter, var: Parameter) -> None:
        self.r, self.tau_r = r, tau_r
        self._mean, self._var = np.asarray(mean, r.dtype), np.asarray(var, r.dtype)
        self._centred = not np.any(self._mean)  # the usual case, which saves passes over the data
        gain = np.asarray(self._var + tau_r)
        np.divide(self._var, gain, out=gain)
        self.var = np.asarray(gain * tau_r)
        self.mean = np.asarray(gain * r)
        if not self._centred:
            share = tau_r / (self._var + tau_r)  # of the prior's mean; the gain may underflow beside it
            self.var, self.mean = np.asarray(share * self._var), np.asarray(self.mean + share * self._mean)

    def moments(self) -> Moments:
        """Posterior mean and variance."""
        return Moments(self.mean, self.var)

    def log_bayes_factor(self) -> Array:
        """Half of r^2 / tau_r - (r - mean)^2 / (var + tau_r) + log(tau_r / (var + tau_r)).

        The two squares are subtracted on paper: r^2 var / (tau_r (var + tau_r)) when the mean is 0.
        """
        value = np.asarray(self.r * self.mean)
        value /= self.tau_r
        if not self._centred:
            total = self._var + self.tau_r
            value = np.asarray(value + self._mean * ((self.r - self._mean) / total))
        value += np.log(np.maximum(self.var, np.finfo(value.dtype).tiny))  # of float32, which may underflow
        value *= np.asarray(0.5, value.dtype)
        return np.asarray(value - 0.5 * np.log(self._var))

    def statistics(self, weights: Array | None) -> Statistics:
        """Sums of the first two moments of w about the prior's mean."""
        shape = common_shape(self.mean, self.var)
        shift = self.mean if self._centred else self.mean - self._mean
        weighted = shift if weights is None else np.asarray(weights * shift)
        second = column_sum(shape, self.var, weights) + column_sum(shape, weighted, shift)
        return {"count": row_count(shape, weights), "first": column_sum(shape, weighted), "second": second}


def gaussian_m_step(mean: Any, var: Any, statistics: Statistics, move: bool) -> tuple[Array, Array]:
    """New mean and variance from sums about the old mean; the old mean stays unless ``move``."""
    count = held_count(statistics["count"])
    step = statistics["first"] / count if move else np.zeros_like(count)
    square = statistics["second"] / count
    new_var = np.maximum(square - step * step, np.maximum(VARIANCE_FLOOR, _RELATIVE_FLOOR * square))
    return finite_or(mean + step, mean), finite_or(new_var, var)
