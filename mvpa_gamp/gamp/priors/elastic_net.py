"""Elastic-net prior, with Laplace (l2 = 0) and Gaussian (l1 = 0) as exact special cases; Laplace alone.

Its parameters follow from mean |w| and mean w^2. |w| under exp(-l1 |w| - l2 w^2) is sigma times a
standard normal x given x > u, minus u, with sigma = 1 / sqrt(2 l2) and u = l1 sigma. Each update therefore
asks for one root u of a monotone function. The log-likelihood is concave, so an optimum outside
l1, l2 >= 0 lies on the nearest special case: l1 = 0 (Gaussian) or l2 = 0 (Laplace).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erfcx

from mvpa_gamp.gamp.moments import Array, Moments, truncated_normal
from mvpa_gamp.gamp.parameters import check_parameter, learnt_names
from mvpa_gamp.gamp.priors.prior import (
    VARIANCE_FLOOR,
    Parameter,
    Prior,
    Statistics,
    channel,
    column_sum,
    finite_or,
    held_count,
    row_count,
)

_LOG_2PI = float(np.log(2 * np.pi))
_FAR = 9.0  # Phi(9) is 1 in double precision
# Near r = 0 the mean is a difference of two almost equal halves; r var / tau_r replaces it where its error,
# the square of the relative distance, equals the rounding error of the difference: eps^(1/3).
_NEAR_ZERO = float(np.finfo(float).eps ** (1 / 3))


@dataclass(frozen=True)
class ElasticNet(Prior):
    """Elastic-net prior, p(w) proportional to exp(-l1 |w| - l2 w^2), l1 >= 0 and l2 >= 0, not both 0.

    The posterior is a positive and a negative truncated normal (the paper's elastic-net tables, with the
    lower variance and the constants corrected); the max-sum step is a shrunken soft threshold.

    >>> from mvpa_gamp.gamp import ElasticNet
    >>> float(ElasticNet(l1=2.0, l2=1.0).prox(3.0, 0.5).mean)  # (3 - 2 * 0.5) / (1 + 2 * 1 * 0.5)
    1.0
    """

    l1: Parameter = 1.0
    l2: Parameter = 1.0

    learnable: ClassVar[tuple[str, ...]] = ("l1", "l2")
    default_learn: ClassVar[tuple[str, ...]] = ("l1", "l2")
    modes: ClassVar[tuple[str, ...]] = ("sum-product", "max-sum")
    squares: ClassVar[tuple[str, ...]] = ("l2",)
    l1_name: ClassVar[str] = "l1"

    def __post_init__(self) -> None:
        for name in ("l1", "l2"):
            check_parameter(self, name, lambda value: value >= 0, "finite and at least 0")
        if not np.all(np.add(self.l1, self.l2) > 0):
            raise ValueError(
                f"ElasticNet: l1 and l2 must not both be 0, got l1={self.l1!r}, l2={self.l2!r}. "
                "A flat prior has no density; give at least one a positive value."
            )

    def condition(self, r: ArrayLike, tau_r: ArrayLike) -> "ElasticNetPosterior":
        """Posterior of w given r = w + N(0, tau_r)."""
        return ElasticNetPosterior(*channel(r, tau_r), self.l1, self.l2)

    def scaled(self, factor: Parameter) -> "ElasticNet":
        """The prior of factor times w."""
        return ElasticNet(np.divide(self.l1, factor), np.divide(self.l2, np.square(factor)))

    def log_partition(self, r: ArrayLike, tau_r: ArrayLike) -> Array:
        """Log of the integral of p(w) N(w; r, tau_r) over w."""
        return self.condition(r, tau_r).log_partition()

    def prox(self, r: ArrayLike, tau_r: ArrayLike) -> Moments:
        """Soft threshold at l1 tau_r, then division by 1 + 2 l2 tau_r."""
        return shrunken_soft_threshold(r, tau_r, self.l1, self.l2)

    def penalty(self, w: ArrayLike) -> Array:
        """l1 |w| + l2 w^2."""
        w, l1 = channel(w, self.l1)
        return np.asarray(np.abs(w) * l1 + w * w * np.asarray(self.l2, w.dtype))

    def maximize(self, statistics: Statistics, learn: Iterable[str] | None = None) -> "ElasticNet":
        """Match the means of |w| and of w^2, the sufficient statistics, within l1, l2 >= 0."""
        names = learnt_names(self, learn)
        count = held_count(statistics["count"])
        size = np.maximum(statistics["abs"] / count, VARIANCE_FLOOR**0.5)
        square = np.maximum(statistics["square"] / count, size * size)
        if "l1" in names and "l2" in names:
            l1, l2 = match_both(size, square)
            return replace(self, l1=finite_or(l1, self.l1), l2=finite_or(l2, self.l2))
        if "l1" in names:
            return replace(self, l1=finite_or(match_l1(size, np.asarray(self.l2)), self.l1))
        if "l2" in names:
            return replace(self, l2=finite_or(match_l2(square, np.asarray(self.l1)), self.l2))
        return self


class ElasticNetPosterior:
    """Two truncated normals, evaluated in float64 for |r|: ``up`` towards r, ``down`` away from it.

    With sigma^2 = tau_r / (1 + 2 l2 tau_r) both halves are sigma times a standard normal x given x > -c,
    moved to start at 0, with c = +-|r| sigma / tau_r - l1 sigma. Their masses are as 1/h(c), h = phi/Phi.
    """

    def __init__(self, r: np.ndarray, tau_r: np.ndarray, l1: Parameter, l2: Parameter) -> None:
        self.dtype = r.dtype
        self.r, self.tau_r = r.astype(float), tau_r.astype(float)
        self.l1, self.l2 = np.asarray(l1, float), np.asarray(l2, float)
        shrink = 1.0 + 2.0 * self.l2 * self.tau_r
        self.sigma2 = self.tau_r / shrink
        self.sigma = np.sqrt(self.sigma2)
        self.centre = np.abs(self.r) / shrink
        self.pull = self.l1 * self.sigma
        distance = self.centre / self.sigma
        self.c = np.asarray(distance - self.pull)
        self.up, self.down = truncated_normal(self.c), truncated_normal(-distance - self.pull)
        masses = self.up.mean + self.down.mean
        self.p_up, self.p_down = self.down.mean / masses, self.up.mean / masses

    def moments(self) -> Moments:
        """Posterior mean and variance, the latter as within plus between the halves: no cancellation."""
        up, down, p_up, p_down = self.up, self.down, self.p_up, self.p_down
        between = p_up * p_down * (up.excess + down.excess) ** 2
        var = self.sigma2 * (p_up * up.var + p_down * down.var + between)
        # E[w] = sigma^2 (r / tau_r - l1 E[sgn w]), exact for l1 = 0; for a strong pull this cancels and
        # the difference of the halves does not.
        gentle = self.centre - self.sigma * self.pull * (p_up - p_down)
        strong = self.sigma * (p_up * up.excess - p_down * down.excess)
        mean = np.where(self.pull <= 1.0, gentle, strong)
        near = self.centre < _NEAR_ZERO * self.sigma * (1.0 + self.pull)
        mean = np.where(near, np.abs(self.r) * (var / self.tau_r), mean)  # the ratio is at most 1
        return Moments(np.copysign(mean, self.r), np.asarray(var))

    def log_bayes_factor(self) -> Array:
        """log(sigma (1/h_up + 1/h_down) / Z), with Z the integral of exp(-l1 |w| - l2 w^2)."""
        masses = -np.log(np.maximum(self.up.mean, np.finfo(float).tiny) * self.p_up)
        far = 0.5 * (self.c * self.c + _LOG_2PI)
        return np.asarray(
            np.where(self.c > _FAR, far, masses) + np.log(self.sigma) - log_normaliser(self.l1, self.l2)
        )

    def log_partition(self) -> Array:
        """Log of the integral; far from 0 the Gaussian factors are cancelled on paper."""
        near = self.log_bayes_factor() - 0.5 * (self.r**2 / self.tau_r + np.log(self.tau_r) + _LOG_2PI)
        penalty = self.centre * (self.l1 + self.l2 * np.abs(self.r)) - 0.5 * self.pull**2
        shrink = 0.5 * np.log1p(2.0 * self.l2 * self.tau_r)
        far = -penalty - shrink - log_normaliser(self.l1, self.l2)
        return np.asarray(np.where(self.c > _FAR, far, near)).astype(self.dtype, copy=False)

    def statistics(self, weights: Array | None) -> Statistics:
        """Sums of E|w| and E[w^2]."""
        up, down = self.up, self.down
        size = self.sigma * (self.p_up * up.excess + self.p_down * down.excess)
        square = self.sigma2 * (
            self.p_up * (up.var + up.excess**2) + self.p_down * (down.var + down.excess**2)
        )
        shape = np.shape(size)
        return {
            "count": row_count(shape, weights),
            "abs": column_sum(shape, size, weights),
            "square": column_sum(shape, square, weights),
        }


def shrunken_soft_threshold(r: ArrayLike, tau_r: ArrayLike, l1: Parameter, l2: Parameter) -> Moments:
    """Argmin of l1 |w| + l2 w^2 + (w - r)^2 / (2 tau_r), and tau_r times its slope in r."""
    r, tau_r = channel(r, tau_r)
    with np.errstate(over="ignore"):  # an infinite penalty leaves nothing of a weight
        shrink = 1 + 2 * np.asarray(l2, r.dtype) * tau_r
        threshold = np.asarray(l1, r.dtype) * tau_r
    mean = np.asarray((r - np.clip(r, -threshold, threshold)) / shrink)
    return Moments(mean, np.asarray(np.where(mean != 0, tau_r / shrink, np.zeros((), r.dtype))))


def log_normaliser(l1: np.ndarray, l2: np.ndarray) -> Array:
    """Log of the integral of exp(-l1 |w| - l2 w^2), sqrt(pi/l2) erfcx(l1 / (2 sqrt(l2))); 2/l1 at l2 = 0."""
    has_square = l2 > 0
    root = np.sqrt(np.where(has_square, l2, 1.0))
    squared = np.log(np.sqrt(np.pi) / root * erfcx(0.5 * l1 / root))
    return np.asarray(np.where(has_square, squared, np.log(2.0 / np.where(has_square, 1.0, l1))))


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


_LOG_U_RANGE = (-20.0, 20.0)  # beyond, a special case is indistinguishable in double precision
_HALVINGS = 56  # 40 / 2^56 is below the spacing of doubles near 10
_GAUSSIAN_RATIO = np.pi / 2 - 1  # variance of |w| over its squared mean for a Gaussian; 1 for Laplace
_GAUSSIAN_SIZE = np.sqrt(2 / np.pi)  # mean |w| of a standard normal


def match_both(size: Array, square: Array) -> tuple[Array, Array]:
    """(l1, l2) with mean |w| = size and mean w^2 = square, or the nearest special case."""
    ratio = square / (size * size) - 1.0
    gaussian, laplace = ratio <= _GAUSSIAN_RATIO, ratio >= 1.0
    u = _root(_variance_ratio, np.clip(ratio, _GAUSSIAN_RATIO, 1.0))
    inverse_sigma = truncated_normal(-u).excess / size
    l1 = np.where(gaussian, 0.0, np.where(laplace, 1.0 / size, u * inverse_sigma))
    l2 = np.where(laplace, 0.0, np.where(gaussian, 0.5 / square, 0.5 * inverse_sigma**2))
    return l1, l2


def match_l1(size: Array, l2: Array) -> Array:
    """The l1 with mean |w| = size at fixed l2; 0 when even the Gaussian has a smaller mean."""
    inverse_sigma = np.sqrt(2.0 * l2)
    target = size * inverse_sigma
    u = _root(lambda u: -truncated_normal(-u).excess, -np.minimum(target, _GAUSSIAN_SIZE))
    l1 = np.where(target >= _GAUSSIAN_SIZE, 0.0, u * inverse_sigma)
    return np.where(l2 > 0, l1, 1.0 / size)


def match_l2(square: Array, l1: Array) -> Array:
    """The l2 with mean w^2 = square at fixed l1; 0 when even the Laplace has a smaller one."""
    target = square * l1 * l1
    u = _root(_scaled_square, np.minimum(target, 2.0))
    l2 = np.where(target >= 2.0, 0.0, 0.5 * (l1 / u) ** 2)
    return np.where(l1 > 0, l2, 0.5 / square)


def _variance_ratio(u: Array) -> Array:
    x = truncated_normal(-u)
    return x.var / x.excess**2


def _scaled_square(u: Array) -> Array:
    x = truncated_normal(-u)
    return u * u * (x.var + x.excess**2)


def _root(increasing: Callable[[Array], Array], target: Array) -> Array:
    """The u > 0 with increasing(u) = target, by bisection on log u to its last digits; NaN stays NaN."""
    low, high = (np.full(np.shape(target), end) for end in _LOG_U_RANGE)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        below = increasing(np.exp(middle)) < target
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.where(np.isnan(target), np.nan, np.exp(0.5 * (low + high)))
