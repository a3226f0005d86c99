"""Laplace prior rate/2 exp(-rate |w|): l1 regularisation in max-sum mode."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from mvpa_gamp.gamp.moments import Array, Moments
from mvpa_gamp.gamp.parameters import check_parameter, learnt_names
from mvpa_gamp.gamp.priors.elastic_net import ElasticNetPosterior, shrunken_soft_threshold
from mvpa_gamp.gamp.priors.prior import Prior, channel
from mvpa_gamp.gamp.priors.sums import VARIANCE_FLOOR, Parameter, Statistics, finite_or, held_count


@dataclass(frozen=True)
class Laplace(Prior):
    """Laplace prior, p(w) = rate/2 exp(-rate |w|), with rate > 0 and variance 2 / rate^2.

    The posterior is the elastic net's with l2 = 0; the max-sum step is the soft threshold at rate tau_r.
    """

    rate: Parameter = 1.0

    learnable: ClassVar[tuple[str, ...]] = ("rate",)
    default_learn: ClassVar[tuple[str, ...]] = ("rate",)
    modes: ClassVar[tuple[str, ...]] = ("sum-product", "max-sum")
    l1_name: ClassVar[str] = "rate"

    def __post_init__(self) -> None:
        check_parameter(self, "rate", lambda rate: rate > 0, "positive and finite")

    def condition(self, r: ArrayLike, tau_r: ArrayLike) -> ElasticNetPosterior:
        """Posterior of w given r = w + N(0, tau_r)."""
        return ElasticNetPosterior(*channel(r, tau_r), self.rate, 0.0)

    def scaled(self, factor: Parameter) -> "Laplace":
        """The prior of factor times w."""
        return Laplace(np.divide(self.rate, factor))

    def log_partition(self, r: ArrayLike, tau_r: ArrayLike) -> Array:
        """Log of the integral of p(w) N(w; r, tau_r) over w."""
        return self.condition(r, tau_r).log_partition()

    def prox(self, r: ArrayLike, tau_r: ArrayLike) -> Moments:
        """Soft threshold at rate tau_r; its slope is 1 where the result is not 0."""
        return shrunken_soft_threshold(r, tau_r, self.rate, 0.0)

    def penalty(self, w: ArrayLike) -> Array:
        """rate |w|."""
        w, rate = channel(w, self.rate)
        return np.asarray(np.abs(w) * rate)

    def maximize(self, statistics: Statistics, learn: Iterable[str] | None = None) -> "Laplace":
        """rate = count / sum of E|w| (eq. generic_em).

        At the (r, tau_r) of max-sum GAMP this tunes its l1 penalty too.
        """
        if not learnt_names(self, learn):
            return self
        size = statistics["abs"] / held_count(statistics["count"])
        return replace(self, rate=finite_or(1.0 / np.maximum(size, VARIANCE_FLOOR**0.5), self.rate))
