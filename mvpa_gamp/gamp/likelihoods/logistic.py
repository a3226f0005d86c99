"""Logistic likelihood p(y|z) = 1 / (1 + exp(-scale y z)), the paper's eq. logistic_model, and Algorithm 2."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import expit, wrightomega

from mvpa_gamp.gamp.likelihoods import logistic_integral, scale_tuning
from mvpa_gamp.gamp.likelihoods.logistic_integral import WORTH_COMPILING, compiled_kernels
from mvpa_gamp.gamp.likelihoods.protocol import Likelihood
from mvpa_gamp.gamp.likelihoods.scale_tuning import Rows, increasing_root
from mvpa_gamp.gamp.moments import Array, Moments, Slopes
from mvpa_gamp.gamp.parameters import check_parameter, learnt_names

SCALE_RANGE = (1e-4, 1e4)  # learnt scales stay inside; separable data would drive them to infinity


@dataclass(frozen=True)
class Logistic(Likelihood):
    """Logistic likelihood, p(y|z) = 1 / (1 + exp(-scale y z)), y in {-1, +1}.

    ``moments="exact"`` integrates to about 1e-11. ``moments="variational"`` takes posterior and score from
    the paper's Algorithm 2, which misjudges the variance for large tau_p; its log-partition stays exact.
    """

    scale: Any = 1.0
    moments: str = "exact"

    learnable: ClassVar[tuple[str, ...]] = ("scale",)
    scale_names: ClassVar[tuple[str, ...]] = ("scale",)

    def __post_init__(self) -> None:
        check_parameter(self, "scale", lambda scale: scale > 0, "positive and finite")
        if self.moments not in ("exact", "variational"):
            raise ValueError(
                f'Logistic: moments must be "exact" or "variational", got {self.moments!r}. '
                'Use "exact" unless you want the paper\'s Algorithm 2.'
            )

    @property
    def is_exact(self) -> bool:
        """Not with variational moments, whose tau_s is not the slope of their s."""
        return self.moments == "exact"

    @property
    def useful_range(self) -> dict[str, tuple[float, float]]:
        """Where learning keeps the scale."""
        return {"scale": SCALE_RANGE}

    def posterior(self, y: Any, p: Any, tau_p: Any) -> Moments:
        """Mean and variance of p(y|z) N(z; p, tau_p) / C, or their variational approximations."""
        if self.moments == "variational":
            return variational_fit(y, p, tau_p, self.scale).moments
        sign, x, t = self._standard(y, p, tau_p)
        moments = logistic_integral.integrate(x, t)
        return Moments(sign * moments.mean / self.scale, moments.var / np.square(self.scale))

    def log_partition(self, y: Any, p: Any, tau_p: Any) -> Array:
        """log of the integral of p(y|z) N(z; p, tau_p) dz."""
        _, x, t = self._standard(y, p, tau_p)
        return logistic_integral.integrate(x, t).log_z

    def score(self, y: Any, p: Any, tau_p: Any) -> Slopes:
        """s = d log C / dp and tau_s = -d^2 log C / dp^2."""
        if self.moments == "variational":
            return variational_fit(y, p, tau_p, self.scale).slopes
        return self.evaluate(y, p, tau_p)[0]

    def evaluate(self, y: Any, p: Any, tau_p: Any) -> tuple[Slopes, Array]:
        """``score`` and ``log_partition`` from one quadrature."""
        sign, x, t = self._standard(y, p, tau_p)
        log_z, s, tau_s, _, _ = logistic_integral.integrate(x, t)
        if self.moments == "variational":
            return variational_fit(y, p, tau_p, self.scale).slopes, log_z
        return Slopes(sign * self.scale * s, np.square(self.scale) * tau_s), log_z

    def prox(self, y: Any, p: Any, tau_p: Any) -> Moments:
        """u = argmin loss(y, u) + (u - p)^2 / (2 tau_p), and tau_p / (1 + tau_p loss'')."""
        sign, x, t = self._standard(y, p, tau_p)
        g = _standard_prox(x, t)
        return Moments(sign * g / self.scale, t / (1.0 + t * expit(g) * expit(-g)) / np.square(self.scale))

    def prox_score(self, y: Any, p: Any, tau_p: Any) -> Slopes:
        """s = -loss'(u) and tau_s = loss'' / (1 + tau_p loss'') at the proximal point u."""
        sign, x, t = self._standard(y, p, tau_p)
        g = _standard_prox(x, t)
        curvature = expit(g) * expit(-g)
        tau_s = np.square(self.scale) * (curvature / (1.0 + t * curvature))
        return Slopes(sign * self.scale * expit(-g), tau_s)

    def loss(self, y: Any, z: Any) -> Array:
        """log(1 + exp(-scale y z))."""
        return np.logaddexp(0.0, -self.scale * (y * np.asarray(z, dtype=float)))

    def loss_slopes(self, y: Any, z: Any) -> Slopes:
        """-d loss / dz and d^2 loss / dz^2."""
        g = self.scale * (y * np.asarray(z, dtype=float))
        return Slopes(y * self.scale * expit(-g), np.square(self.scale) * (expit(g) * expit(-g)))

    def margin_at_loss(self, level: Any) -> Array:
        """The margin y z at which the loss equals ``level``: -log(exp(level) - 1) / scale."""
        level = np.asarray(level, dtype=float)
        return -(level + np.log(-np.expm1(-level))) / self.scale

    def em_update(
        self, y: Any, p: Any, tau_p: Any, learn: Iterable[str] | None = None, weights: Any = None
    ) -> "Logistic":
        """The scale that maximises the expected log-likelihood, per column and within SCALE_RANGE.

        Exact moments: sum_m w_m E[log p(y_m|z_m; scale)] under the posterior of the present scale.
        Variational moments: the root of the paper's eq. alpha_em_upd.
        """
        if "scale" not in learnt_names(self, learn):
            return self
        rows = scale_tuning.training_rows(y, p, tau_p, weights)
        if self.moments == "variational":
            slope = variational_scale_slope(rows, self.scale)
        else:
            slope = scale_tuning.expected_slope(self, rows, 1.0 / np.asarray(self.scale), _pull)
        return replace(self, scale=scale_tuning.best_scale(slope, rows, self.scale, SCALE_RANGE))

    def _standard(self, y: Any, p: Any, tau_p: Any) -> tuple[Array, Array, Array]:
        """Label, margin x = scale y p and t = scale^2 tau_p, with one shape."""
        scale = np.asarray(self.scale, dtype=float)
        sign, x, t = np.broadcast_arrays(
            np.asarray(y, dtype=float), scale * (y * np.asarray(p, dtype=float)), np.square(scale) * tau_p
        )
        return sign, x, t


def _pull(g: Array) -> tuple[Array, Array]:
    """First derivative of log sigma(g) and minus the second."""
    return expit(-g), expit(g) * expit(-g)


def _standard_prox(x: Array, t: Array) -> Array:
    """Root g of g = x + t sigma(-g).

    For g >= 0, exp(-g)/2 <= sigma(-g) <= exp(-g): Wright's omega function gives both ends of a bracket.
    """
    mirrored = x < -0.5 * t  # then g < 0, and -g solves the same equation with -x - t
    x = np.where(mirrored, -x - t, x)
    kernels = compiled_kernels() if x.size >= WORTH_COMPILING else None
    if kernels is not None:
        found = np.empty(x.shape)
        kernels.prox(x.ravel(), t.ravel(), found.reshape(-1))
        return np.where(mirrored, -found, found)
    log_t = np.log(t)
    low, high = x + wrightomega(log_t - np.log(2.0) - x), x + wrightomega(log_t - x)
    slack = 1e-14 * (np.abs(x) + 1.0)
    low = np.maximum(low - slack, 0.0)

    def evaluate(g: Array) -> tuple[Array, Array]:
        return g - x - t * expit(-g), 1.0 + t * expit(g) * expit(-g)

    g = increasing_root(evaluate, low, np.maximum(high + slack, low), low)
    return np.where(mirrored, -g, g)


# The paper's Algorithm 2, a variational bound, and its scale equation.

_MAX_STEPS = 500
_TOLERANCE = 1e-12  # relative change of xi
_FLAT = 1e-12  # smallest 1 - slope that a step is divided by


class VariationalFit(NamedTuple):
    """Approximate posterior, the slopes it implies, and the variational parameter xi."""

    moments: Moments
    slopes: Slopes
    xi: Array


class _Step(NamedTuple):
    """z, 1 + 2 tau_p lambda, tanh(scale xi/2), the next xi, and d(log next)/d(log xi)."""

    z: Array
    shrink: Array
    tanh: Array
    xi: Array
    slope: Array


def variational_fit(y: Any, p: Any, tau_p: Any, scale: Any) -> VariationalFit:
    """The fixed point of lines 2-6 of Algorithm 2; all arguments broadcast.

    lambda = scale/(2 xi) (sigma(scale xi) - 1/2), tau_z = tau_p / (1 + 2 tau_p lambda),
    z = tau_z (p/tau_p + scale y/2), xi = sqrt(tau_z + z^2). The slopes are (z - p)/tau_p and
    (1 - tau_z/tau_p)/tau_p with tau_p divided out. Plain repetition takes about scale sqrt(tau_p) steps, so
    log xi takes Newton's step wherever that stays between the values known to be too small and too large.
    """
    y, p, tau_p, scale = np.broadcast_arrays(*(np.asarray(a, dtype=float) for a in (y, p, tau_p, scale)))
    xi = np.hypot(np.sqrt(tau_p), p)
    low, high, done = np.zeros(xi.shape), np.full(xi.shape, np.inf), np.zeros(xi.shape, dtype=bool)
    for _ in range(_MAX_STEPS):
        step = _step(y, p, tau_p, scale, xi)
        grows = step.xi > xi  # the repetition is monotone: the fixed point is on the side it goes to
        low, high = np.where(grows, xi, low), np.where(grows, high, xi)
        newton = xi * np.exp(np.clip(np.log(step.xi / xi) / np.maximum(1.0 - step.slope, _FLAT), -1.0, 1.0))
        following = np.where((newton > low) & (newton < high), newton, step.xi)
        settled = np.abs(step.xi - xi) <= _TOLERANCE * xi
        xi = np.where(done, xi, following)  # an element that has settled does not hear of the others
        done |= settled
        if np.all(done):
            break
    z, shrink, tanh, _, _ = _step(y, p, tau_p, scale, xi)
    s = 0.5 * scale * (y - tanh * p / xi) / shrink
    return VariationalFit(Moments(z, tau_p / shrink), Slopes(s, 0.5 * scale * tanh / xi / shrink), xi)


def _step(y: Array, p: Array, tau_p: Array, scale: Array, xi: Array) -> _Step:
    """One repetition, with 2 lambda = scale/(2 xi) tanh(scale xi/2)."""
    tanh = np.tanh(0.5 * scale * xi)
    twice_lambda = 0.5 * scale * tanh / xi
    shrink = 1.0 + tau_p * twice_lambda
    z, variance = (p + 0.5 * tau_p * scale * y) / shrink, tau_p / shrink
    following = np.hypot(np.sqrt(variance), z)
    share = np.square(z / following)  # of z^2 in xi^2
    falls = twice_lambda - np.square(0.5 * scale) * (1.0 - tanh * tanh)  # -d(2 lambda)/d(log xi)
    return _Step(z, shrink, tanh, following, 0.5 * (1.0 + share) * (tau_p / shrink) * falls)


def variational_scale_slope(rows: Rows, scale: Any) -> Callable[[Array], tuple[Array, Array]]:
    """The paper's eq. alpha_em_upd as a function of the scale, and minus its derivative, summed over rows.

    (z y - xi)/2 + xi/(1 + exp(scale xi)) = (z y - xi tanh(scale xi/2))/2.
    """
    (z, _), _, xi = variational_fit(rows.y, rows.p, rows.tau_p, scale)

    def slope(candidate: Array) -> tuple[Array, Array]:
        tanh = np.tanh(0.5 * candidate * xi)
        first = np.sum(rows.counts * 0.5 * (z * rows.y - xi * tanh), axis=0)
        return first, np.sum(rows.counts * 0.25 * np.square(xi) * (1.0 - tanh * tanh), axis=0)

    return slope
