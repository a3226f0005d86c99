"""Heavy tails, as Student's t has them: a Gaussian whose variance is one of two, in fixed shares."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from mvpa_gamp.gamp.moments import Array
from mvpa_gamp.gamp.parameters import check_parameter, learnt_names
from mvpa_gamp.gamp.priors.mixture import MixturePosterior
from mvpa_gamp.gamp.priors.prior import (
    VARIANCE_FLOOR,
    Parameter,
    Prior,
    Statistics,
    channel,
    finite_or,
    held_count,
)

_LOG_2PI = float(np.log(2 * np.pi))
SHARES, VARIANCES = (0.8, 0.2), (0.5, 3.0)  # 0.8 * 0.5 + 0.2 * 3 = 1


@dataclass(frozen=True)
class TwoScales(Prior):
    """p(w) = sum over k of SHARES[k] N(w; 0, scale^2 VARIANCES[k]), which has variance scale^2.

    >>> from mvpa_gamp.gamp import TwoScales
    >>> round(float(TwoScales(scale=2.0).posterior(0.0, 1e12).var), 6)
    4.0
    """

    scale: Parameter = 1.0

    learnable: ClassVar[tuple[str, ...]] = ("scale",)
    default_learn: ClassVar[tuple[str, ...]] = ("scale",)

    def __post_init__(self) -> None:
        check_parameter(self, "scale", lambda scale: scale > 0, "positive and finite")

    def condition(self, r: ArrayLike, tau_r: ArrayLike) -> "TwoScalesPosterior":
        """Posterior of w given r = w + N(0, tau_r)."""
        variances = [np.square(self.scale) * variance for variance in VARIANCES]
        return TwoScalesPosterior(*channel(r, tau_r), SHARES, (0.0, 0.0), variances)

    def scaled(self, factor: Parameter) -> "TwoScales":
        """The prior of factor times w."""
        return TwoScales(np.multiply(factor, self.scale))

    def log_partition(self, r: ArrayLike, tau_r: ArrayLike) -> Array:
        """Log of the integral of p(w) N(w; r, tau_r) over w."""
        return np.asarray(self.condition(r, tau_r).log_density - 0.5 * _LOG_2PI)

    def maximize(self, statistics: Statistics, learn: Iterable[str] | None = None) -> "TwoScales":
        """scale^2 = mean of w^2 over the variance of its component, which is hidden too."""
        if not learnt_names(self, learn):
            return self
        square = statistics["square"] / held_count(statistics["count"])
        return replace(self, scale=finite_or(np.sqrt(np.maximum(square, VARIANCE_FLOOR)), self.scale))


class TwoScalesPosterior(MixturePosterior):
    """The posterior of a mixture, whose sums are those of one scale."""

    def statistics(self, weights: Array | None) -> Statistics:
        """Sums of E[w^2 / variance of the component]."""
        sums = super().statistics(weights)
        squares = (second / variance for second, variance in zip(sums["second"], VARIANCES, strict=True))
        return {"count": sums["count"], "square": np.asarray(sum(squares))}
