"""The two scalar channels of state evolution, as integrals over one variable each.

For i.i.d. X of variance 1/M, scores z and cavity predictions p are jointly Gaussian, and the pseudo-data of
a weight are r = gain w + N(0, noise). Given p, the true score is N(c p, v); given r, the true weight has the
scalar posterior of its own prior. So nothing has to be sampled, and nothing integrated over two variables.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from .models import Models
from .moments import LEAST_VARIANCE, Array, Moments
from .parameters import parameters, parameters_stated
from .quadrature import gaussian_mean_and_slope, graded_edges, integrate
from .training_elements import kinked_curvature

_REACH = 9.0  # standard deviations of p; beyond lie 1e-19 of the mass
_FLAT = 1e20  # pseudo-variance at which a posterior is the prior
_LEAST = 1e-14  # residual variance relative to the mse, where the estimate is a multiple of the weights
# Where a loss is linear (hinge) tau_s vanishes and only r / tau_r matters: this share of E s^2 stands for 0.
_LINEAR = 1e-8
_TAIL = 45.0  # log-density, times r^2, below its peak at which the tails of r end


class Estimate(NamedTuple):
    """Second moments of a weight w and its estimate w_hat."""

    power: float  # E w_hat^2
    overlap: float  # E w w_hat, the power again for a posterior mean of the true model
    mse: float  # E (w - w_hat)^2
    tau_w: float  # mean variance that the algorithm believes in

    @property
    def regression(self) -> float:
        """c of the linear regression E[w | w_hat] = c w_hat."""
        return self.overlap / self.power if self.power > 0 else 0.0

    @property
    def residual(self) -> float:
        """E (w - c w_hat)^2 = mse - (overlap - power)^2 / power, which keeps its digits when mse is small."""
        return self.mse - (self.overlap - self.power) ** 2 / self.power if self.power > 0 else self.mse


class Channel(NamedTuple):
    """Pseudo-data r = gain w + N(0, noise), and the variance tau_r that the algorithm gives them."""

    gain: float
    noise: float
    tau_r: float

    @property
    def usable(self) -> bool:
        """Whether r is finite and says something about w."""
        return bool(np.isfinite(self).all()) and self.noise > 0 and self.tau_r > 0 and self.gain != 0

    def damped(self, old: "Channel | None", step: float) -> "Channel":
        """A step from ``old`` to this channel, in logarithms where values are positive."""
        if old is None or not self.usable:
            return self
        noise, tau_r = np.exp(step * np.log(self[1:]) + (1 - step) * np.log(old[1:]))
        return Channel(step * self.gain + (1 - step) * old.gain, float(noise), float(tau_r))


def prior_moments(prior: Any) -> tuple[float, float]:
    """Mean and variance of a prior."""
    mean, var = prior.posterior(np.zeros(1), np.full(1, _FLAT))
    return float(mean[0]), float(var[0])


def first_estimate(prior: Any, true_prior: Any) -> Estimate:
    """Every weight at the mean and variance of the prior, as the solver starts."""
    (mean, var), (true_mean, true_var) = prior_moments(prior), prior_moments(true_prior)
    return Estimate(mean**2, true_mean * mean, true_var + (true_mean - mean) ** 2, var)


def output_channel(
    given: Models, truth: Models, estimate: Estimate, ratio: float, mode: str
) -> tuple[Channel, float]:
    """The channel that follows an estimate (lines 2 to 14 of Algorithm 1), and its test-error rate.

    p ~ N(0, power / delta) and z | p ~ N(c p, v), the paper's Sigma of eq. sigma_cross_cov. With the label
    probability C = P(y | p), tau_r = 1 / E tau_s, gain = tau_r E sum_y s dC/d(c p), noise = tau_r^2 E s^2;
    a new score x' w_hat is distributed as p, so eq. err_rate_expression is E sum_y C [y != sgn p].
    """
    tau_p = max(estimate.tau_w / ratio, LEAST_VARIANCE)
    spread = estimate.power / ratio
    v = max(estimate.residual, _LEAST * estimate.mse) / ratio
    step = given.likelihood.score if mode == "sum-product" else given.likelihood.prox_score

    def expectations(p: Array) -> Array:
        s, tau_s = step(1.0, p, tau_p)
        label, slope = _label(truth.likelihood, estimate.regression * p, v)
        return 2 * np.stack([label * tau_s, slope * s, label * s**2, label * (p < 0)])  # both labels alike

    if spread < np.finfo(float).tiny:  # no score yet: p = 0, and a coin decides
        tau_s, slope, square, error = (*expectations(np.zeros(1))[:3, 0], 0.5)
        if mode == "max-sum" and given.likelihood.kinks:  # w_hat = 0: any tau_s is a step on the same way
            tau_s = max(tau_s, kinked_curvature(tau_p))
    else:
        edges = _score_edges(given.likelihood, np.sqrt(spread), tau_p)
        tau_s, slope, square, error = integrate(lambda p: _normal(p, spread) * expectations(p), edges)
    with np.errstate(divide="ignore", invalid="ignore"):
        tau_r = np.divide(1.0, tau_s if tau_s < 0 else max(tau_s, _LINEAR * square))
        return Channel(float(tau_r * slope), float(tau_r**2 * square), float(tau_r)), float(error)


def input_channel(given: Models, truth: Models, channel: Channel, mode: str) -> Estimate:
    """Moments of the estimates (lines 16 to 20) over x = r / gain = w + N(0, noise / gain^2)."""
    var = channel.noise / channel.gain**2
    step = given.prior.posterior if mode == "sum-product" else given.prior.prox

    def expectations(x: Array) -> Array:
        density = np.exp(truth.prior.log_partition(x, var))
        w: Moments = truth.prior.posterior(x, var)
        w_hat, tau_w = step(channel.gain * x, channel.tau_r)
        return density * np.stack([w_hat**2, w.mean * w_hat, (w.mean - w_hat) ** 2 + w.var, tau_w])

    reach = _reach(truth.prior, var)
    landmarks = [0.0, *_locations(truth.prior), *(at / channel.gain for at in _locations(given.prior))]
    return Estimate(*map(float, integrate(expectations, graded_edges(-reach, reach, landmarks))))


def _score_edges(likelihood: Any, sd: float, tau_p: float) -> Array:
    """Panels of p around 0 and around the corners of the loss, where a proximal step holds on to a corner."""
    corners = [corner for kink in likelihood.kinks for corner in (kink, kink - tau_p)]
    return graded_edges(-_REACH * sd, _REACH * sd, [0.0, *corners])


def _label(likelihood: Any, mean: Array, var: float) -> tuple[Array, Array]:
    """P(y = +1) for z ~ N(mean, var), and its slope in the mean; the two labels are made to sum to one."""
    if likelihood.is_normalised:
        slopes, log_c = likelihood.evaluate(1.0, mean, var)
        return np.exp(log_c), np.exp(log_c) * slopes.s
    kinks = {sign * kink for kink in likelihood.kinks for sign in (-1.0, 1.0)}
    return gaussian_mean_and_slope(
        lambda z: np.asarray(expit(likelihood.loss(-1.0, z) - likelihood.loss(1.0, z))), mean, var, kinks
    )


def _reach(prior: Any, var: float) -> float:
    """Where the density of x = w + N(0, var), times x^2, has fallen to nothing, whatever the tails of w."""
    mean, spread = prior_moments(prior)
    x = np.sqrt(mean**2 + spread + var) * 1.5 ** np.arange(60)
    left, right = (prior.log_partition(sign * x, var) for sign in (-1, 1))
    height = np.maximum(left, right) + 2 * np.log(x)
    return float(x[np.flatnonzero(height > height.max() - _TAIL)[-1] + 1])


def _locations(prior: Any) -> list[float]:
    """Where the density of a prior may be narrow: the parameters that it states as ``locations``."""
    values = parameters(prior)
    return [float(at) for name in parameters_stated(prior, "locations") for at in np.atleast_1d(values[name])]


def _normal(x: Array, var: float) -> Array:
    return np.exp(-0.5 * x * x / var) / np.sqrt(2 * np.pi * var)
