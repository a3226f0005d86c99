"""Bernoulli prior: w is exactly zero, or drawn from a slab."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logit, xlog1py

from mvpa_gamp.gamp.moments import Array, Moments
from mvpa_gamp.gamp.parameters import check_parameter, learnt_names
from mvpa_gamp.gamp.priors.bernoulli_gaussian_kernel import bernoulli_gaussian_step
from mvpa_gamp.gamp.priors.gaussian import Gaussian
from mvpa_gamp.gamp.priors.prior import (
    Parameter,
    Prior,
    ScalarPosterior,
    Statistics,
    channel,
    finished,
    finite_or,
    held_count,
    row_count,
)
from mvpa_gamp.gamp.scalar_steps import StepFunction

_LOG_2PI = float(np.log(2 * np.pi))
# Learning keeps the rate this far from 0 and 1, from where no data could bring it back.
_RATE_MARGIN = 1e-10
_SLAB = "slab."


@dataclass(frozen=True)
class Bernoulli(Prior):
    """Spike and slab, p(w) = (1 - rate) delta(w) + rate slab(w); w is not zero with probability ``rate``.

    Given r, w is not zero with probability 1 / (1 + exp(-log-odds)), where the log-odds are those of the
    rate plus the slab's log Bayes factor; the slab's posterior holds then. ``slab`` is any other prior.
    The atom makes max-sum meaningless: its mode is always 0.
    """

    rate: Parameter = 0.1
    slab: Prior = field(default_factory=Gaussian)

    has_atom: ClassVar[bool] = True
    shares: ClassVar[tuple[str, ...]] = ("rate",)

    def __post_init__(self) -> None:
        check_parameter(self, "rate", lambda rate: (rate > 0) & (rate <= 1), "in (0, 1]")
        if not isinstance(self.slab, Prior):
            raise ValueError(
                f"Bernoulli: slab must be a prior, got {self.slab!r}. Give one, such as Gaussian()."
            )
        if isinstance(self.slab, Bernoulli):
            raise ValueError(
                "Bernoulli: slab must be a prior without an atom at zero, got another Bernoulli. "
                "Multiply the two rates and use the inner slab."
            )

    @property
    def learnable(self) -> tuple[str, ...]:
        """The rate and the slab's parameters."""
        return ("rate", *(_SLAB + name for name in self.slab.learnable))

    @property
    def default_learn(self) -> tuple[str, ...]:
        """The rate and what the slab learns by default."""
        return ("rate", *(_SLAB + name for name in self.slab.default_learn))

    @property
    def useful_range(self) -> dict[str, tuple[float, float]]:
        """Those of the slab, and down to which rate there are features; that all count is an answer."""
        of_slab = {_SLAB + name: ends for name, ends in self.slab.useful_range.items()}
        return {"rate": (_RATE_MARGIN, np.inf), **of_slab}

    def condition(
        self, r: ArrayLike, tau_r: ArrayLike, log_odds: Array | None = None
    ) -> "BernoulliPosterior":
        """Posterior of w given r = w + N(0, tau_r); ``log_odds`` replace those of the rate."""
        given = self.slab.condition(r, tau_r)
        odds = logit(self.rate) if log_odds is None else log_odds
        return BernoulliPosterior(given, probability(given.log_bayes_factor(), odds))

    def expect_local(
        self, r: ArrayLike, tau_r: ArrayLike, log_odds: Array
    ) -> tuple[Moments, Statistics, Array]:
        """As ``expect``, every weight with a rate of its own, given as log-odds; also the inclusions."""
        given = self.condition(r, tau_r, log_odds)
        return finished(given.moments(), r), given.statistics(None), given.inclusion

    def posterior_included(self, r: ArrayLike, tau_r: ArrayLike, inclusion: Array) -> Moments:
        """Mean and variance of p(w | r) where P(w != 0 | r) is known, and its rate may not be."""
        return finished(BernoulliPosterior(self.slab.condition(r, tau_r), inclusion).moments(), r)

    def inclusion(self, r: ArrayLike, tau_r: ArrayLike) -> Array:
        """P(w != 0 | r), from log-odds: tiny probabilities keep their relative accuracy."""
        return self.condition(r, tau_r).inclusion.astype(channel(r, tau_r)[0].dtype, copy=False)

    def fused_step(self, log_odds: Array | None = None) -> StepFunction | None:
        """The compiled step of a Bernoulli-Gaussian prior; other slabs have none."""
        if not isinstance(self.slab, Gaussian):
            return None
        odds = np.atleast_2d(logit(self.rate)) if log_odds is None else log_odds
        return bernoulli_gaussian_step(odds, self.slab)

    def scaled(self, factor: Parameter) -> "Bernoulli":
        """The prior of factor times w: the slab scales, the rate stays."""
        return replace(self, slab=self.slab.scaled(factor))

    def log_partition(self, r: ArrayLike, tau_r: ArrayLike) -> Array:
        """log[(1 - rate) N(0; r, tau_r) + rate times the slab's integral]."""
        r, tau_r = channel(r, tau_r)
        atom = np.asarray(xlog1py(1.0, np.negative(self.rate)), r.dtype)  # -inf at rate 1, without a warning
        zero = atom - 0.5 * (r * r / tau_r + np.log(tau_r) + _LOG_2PI)
        slab = np.asarray(np.log(self.rate), r.dtype) + self.slab.log_partition(r, tau_r)
        return np.asarray(np.logaddexp(zero, slab))

    def penalty(self, w: ArrayLike) -> Array:
        """None: refused in a sentence."""
        raise ValueError(
            "A Bernoulli prior has no penalty: its density is infinite at w = 0. "
            "Use a Gaussian, Laplace or ElasticNet prior."
        )

    def maximize(self, statistics: Statistics, learn: Iterable[str] | None = None) -> "Bernoulli":
        """rate = mean inclusion; the slab learns from rows weighted by theirs (eq. generic_em)."""
        names = learnt_names(self, learn)
        of_slab = {key.removeprefix(_SLAB): statistics[key] for key in statistics if key.startswith(_SLAB)}
        inner = [name.removeprefix(_SLAB) for name in names if name.startswith(_SLAB)]
        slab = self.slab.maximize(of_slab, inner) if inner else self.slab
        if "rate" not in names:
            return replace(self, slab=slab)
        rate = np.clip(of_slab["count"] / held_count(statistics["count"]), _RATE_MARGIN, 1 - _RATE_MARGIN)
        return replace(self, rate=finite_or(rate, self.rate), slab=slab)


class BernoulliPosterior:
    """The slab's posterior and the probability ``inclusion`` that it applies."""

    def __init__(self, slab: ScalarPosterior, inclusion: np.ndarray) -> None:
        self.slab, self.inclusion = slab, inclusion

    def moments(self) -> Moments:
        """pi m and pi (v + (1 - pi) m^2), with m and v the slab's moments and pi the inclusion."""
        slab = self.slab.moments()
        mean = np.asarray(self.inclusion * slab.mean)
        var = np.asarray(slab.mean - mean)
        var *= slab.mean
        var += slab.var
        var *= self.inclusion
        return Moments(mean, var)

    def log_bayes_factor(self) -> Array:
        """Only a slab is asked for it, and a Bernoulli prior is never one."""
        raise NotImplementedError("A Bernoulli posterior has no Bayes factor: it holds w = 0 itself.")

    def statistics(self, weights: Array | None) -> Statistics:
        """The slab's sums, each row weighted by its inclusion probability, under ``slab.`` names."""
        inclusion = self.inclusion if weights is None else np.asarray(self.inclusion * weights)
        sums = {_SLAB + name: value for name, value in self.slab.statistics(inclusion).items()}
        return {"count": row_count(self.inclusion.shape, weights), **sums}


def probability(log_bayes_factor: np.ndarray, log_odds: Parameter) -> np.ndarray:
    """1 / (1 + exp(-x)) with x the summed log-odds, in place; x is cut well above underflow.

    In float32 probabilities below exp(-50) = 2e-22 are nothing: weights and variances times them stay clear
    of denormal numbers, which slow products down by an order of magnitude.
    """
    dtype = log_bayes_factor.dtype
    x = np.asarray(log_bayes_factor + np.asarray(log_odds, dtype))
    least = -50.0 if dtype == np.float32 else np.log(np.finfo(dtype).tiny) + 8
    np.maximum(x, np.asarray(least, dtype), out=x)
    np.negative(x, out=x)
    np.exp(x, out=x)
    x += np.asarray(1, dtype)
    return np.reciprocal(x, out=x)
