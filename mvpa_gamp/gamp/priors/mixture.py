"""Gaussian-mixture prior: sum of weights[l] N(w; means[l], variances[l])."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from mvpa_gamp.gamp.moments import Array, Moments
from mvpa_gamp.gamp.parameters import check_parameter, learnt_names, vector
from mvpa_gamp.gamp.priors.gaussian import GaussianPosterior, gaussian_m_step
from mvpa_gamp.gamp.priors.prior import (
    Parameter,
    Prior,
    Statistics,
    channel,
    finite_or,
    held_count,
    row_count,
)

_LOG_2PI = float(np.log(2 * np.pi))
_FARTHEST = 1e30  # squared distance from a component, in its variances, that float32 holds
_SHARE_FLOOR = 1e-10  # a component that lost its last member could never win one back
# A component narrower than this part of the whole mixture has collapsed on a single weight.
_COLLAPSED = 1e-8


@dataclass(frozen=True)
class GaussianMixture(Prior):
    """Mixture of Gaussians, p(w) = sum over l of weights[l] N(w; means[l], variances[l]).

    Each field is (L,), or (L, B) with one value per column; weights are at least 0 and sum to 1.
    The posterior is a mixture of the components' posteriors. It can have several modes, and the paper
    has no max-sum step for it.

    >>> from mvpa_gamp.gamp import GaussianMixture
    >>> prior = GaussianMixture(weights=(0.5, 0.5), means=(-1, 1), variances=(0.1, 0.1))
    >>> round(float(prior.posterior(0.2, 1.0).mean), 3)
    0.182
    """

    weights: Any = vector()  # noqa: RUF009 (a dataclass field)
    means: Any = vector()  # noqa: RUF009
    variances: Any = vector()  # noqa: RUF009

    learnable: ClassVar[tuple[str, ...]] = ("weights", "means", "variances")
    default_learn: ClassVar[tuple[str, ...]] = ("weights", "means", "variances")
    squares: ClassVar[tuple[str, ...]] = ("variances",)
    shares: ClassVar[tuple[str, ...]] = ("weights",)
    locations: ClassVar[tuple[str, ...]] = ("means",)

    def __post_init__(self) -> None:
        check_parameter(self, "weights", lambda weights: weights >= 0, "at least 0", ndim=1)
        check_parameter(self, "means", lambda means: True, "finite", ndim=1)
        check_parameter(self, "variances", lambda variances: variances > 0, "positive and finite", ndim=1)
        total = self.weights.sum(axis=0)
        if not np.allclose(total, 1.0, rtol=0, atol=1e-6):
            raise ValueError(
                f"GaussianMixture: weights must sum to 1, got a sum of {total}. Divide them by their sum."
            )
        lengths = {name: len(getattr(self, name)) for name in self.learnable}
        if len(set(lengths.values())) > 1:
            raise ValueError(
                f"GaussianMixture: every component needs a weight, a mean and a variance, got {lengths}. "
                "Give three lists of one length."
            )

    def condition(self, r: ArrayLike, tau_r: ArrayLike) -> "MixturePosterior":
        """Posterior of w given r = w + N(0, tau_r)."""
        return MixturePosterior(*channel(r, tau_r), self.weights, self.means, self.variances)

    def scaled(self, factor: Parameter) -> "GaussianMixture":
        """The prior of factor times w."""
        means, variances = (_with_columns(value, factor) for value in (self.means, self.variances))
        return replace(self, means=factor * means, variances=np.square(factor) * variances)

    def log_partition(self, r: ArrayLike, tau_r: ArrayLike) -> Array:
        """Log of the sum of weights[l] N(r; means[l], variances[l] + tau_r)."""
        return np.asarray(self.condition(r, tau_r).log_density - 0.5 * _LOG_2PI)

    def penalty(self, w: ArrayLike) -> Array:
        """-log p(w), constants included."""
        w, zero = channel(w, 0.0)
        return np.asarray(-self.log_partition(w, zero))

    def maximize(self, statistics: Statistics, learn: Iterable[str] | None = None) -> "GaussianMixture":
        """Share, mean and variance of every component, its weights counted by their responsibility."""
        names = learnt_names(self, learn)
        members = statistics["members"]
        shares, means, variances = (
            _components(value, members.shape) for value in (self.weights, self.means, self.variances)
        )
        share = np.maximum(members / held_count(statistics["count"]), _SHARE_FLOOR)
        share = finite_or(share / share.sum(axis=0), shares)
        sums = {"count": members, "first": statistics["first"], "second": statistics["second"]}
        centre, spread = gaussian_m_step(means, variances, sums, "means" in names)
        middle = (share * centre).sum(axis=0)
        whole = (share * (spread + (centre - middle) ** 2)).sum(axis=0)
        new = {"weights": share, "means": centre, "variances": np.maximum(spread, _COLLAPSED * whole)}
        return replace(self, **{name: new[name] for name in names})


class MixturePosterior:
    """The components' posteriors and their responsibilities P(component l | r)."""

    def __init__(
        self, r: np.ndarray, tau_r: np.ndarray, shares: Array, means: Array, variances: Array
    ) -> None:
        self.r, self.tau_r = r, tau_r
        self.parts = [GaussianPosterior(r, tau_r, *pair) for pair in zip(means, variances, strict=True)]
        # Densities of r (without 2 pi) and not Bayes factors decide between components: for small tau_r
        # the latter are huge and their differences lost.
        logs = [_log_density(r, tau_r, *row) for row in zip(shares, means, variances, strict=True)]
        top = np.maximum.reduce(logs)
        heights = [np.exp(value - top) for value in logs]
        total = np.add.reduce(heights)
        self.responsibilities = [height / total for height in heights]
        self.log_density = np.asarray(top + np.log(total))

    def moments(self) -> Moments:
        """Posterior mean, and variance within plus between the components.

        Where components on both sides cancel, the error of the mean is relative to their size.
        """
        pairs = list(zip(self.responsibilities, self.parts, strict=True))
        mean = np.asarray(sum(share * part.mean for share, part in pairs))
        var = np.asarray(sum(share * (part.var + (part.mean - mean) ** 2) for share, part in pairs))
        return Moments(mean, var)

    def log_bayes_factor(self) -> Array:
        """Log density of r under the mixture minus that under w = 0."""
        return np.asarray(self.log_density + (self.r * self.r / self.tau_r + np.log(self.tau_r)) * 0.5)

    def statistics(self, weights: Array | None) -> Statistics:
        """For every component, sums of responsibility and of the first two moments about its mean."""
        shares = self.responsibilities if weights is None else [weights * p for p in self.responsibilities]
        sums = [part.statistics(share) for share, part in zip(shares, self.parts, strict=True)]
        names = {"members": "count", "first": "first", "second": "second"}
        stacked = {new: np.stack([part[old] for part in sums]) for new, old in names.items()}
        return {"count": row_count(self.log_density.shape, weights), **stacked}


def _log_density(r: np.ndarray, tau_r: np.ndarray, share: Any, mean: Any, var: Any) -> np.ndarray:
    total = np.asarray(var, r.dtype) + tau_r
    gap = r - np.asarray(mean, r.dtype)
    with np.errstate(divide="ignore"):  # a component of share 0 has log-share -inf
        log_share = np.log(share).astype(r.dtype)
    with np.errstate(over="ignore"):
        distance = np.minimum(gap * gap / total, _FARTHEST)
    return np.asarray(log_share - 0.5 * (distance + np.log(total)))


def _with_columns(value: np.ndarray, factor: Parameter) -> np.ndarray:
    """A field (L,) as (L, 1) against a factor per column (B,): columns are no components."""
    return value[:, None] if np.ndim(factor) > 0 and value.ndim == 1 else value


def _components(value: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """A field (L,) or (L, B) broadcast to the (L, B) of the sums."""
    return np.broadcast_to(value.reshape(value.shape + (1,) * (len(shape) - value.ndim)), shape)
