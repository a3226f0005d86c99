"""State evolution: what GAMP does on average for large i.i.d. X, from scalar integrals alone.

The paper's section "Misclassification Rate via State Evolution", which builds on Rangan's Algorithm 3. For
i.i.d. X of variance 1/M, scores z and cavity predictions p are jointly Gaussian, and the pseudo-data of
a weight are r = gain w + N(0, noise). Given p, the true score is N(c p, v); given r, the true weight has the
scalar posterior of its own prior. So nothing has to be sampled, and nothing integrated over two variables.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from .moments import LEAST_VARIANCE, Array, Moments, gaussian_mean_and_slope, graded_edges, integrate
from .parameters import Models, column_shapes, parameters, parameters_stated
from .scalar_steps import kinked_curvature
from .settings import MODES

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


CONVERGED = "Converged: the predicted errors no longer change."
ITERATION_LIMIT = (
    "Not converged: the iteration limit was reached. Raise max_iter, or take smaller steps (a lower damping)."
)
NOT_FINITE = (
    "Not converged: the prediction turned non-finite, or the labels' mean precision is not positive, which "
    "robust likelihoods can cause; the iterations before are kept. Take smaller steps (a lower damping), or "
    "make the prior stronger."
)

_NOTHING = 1e-14  # moments below this share of E w^2 count as 0 when the iteration is asked to stand still
_COLUMNS = 9  # of a record


@dataclass(frozen=True)
class StateEvolution:
    """Predicted averages after each iteration, (n_iter,), for one weight w and its estimate w_hat.

    The last entry is the fixed point when ``converged``. ``error_rate`` is the paper's
    Pr{y != sgn(x' w_hat)} for a new pair (x, y) of the true model, flipped labels of a robust one included.
    """

    status: str
    mse: Array  # E (w - w_hat)^2
    overlap: Array  # E w w_hat
    error_rate: Array
    correlation: Array  # of x' w and x' w_hat
    power: Array  # E w_hat^2
    tau_w: Array  # mean variance that the algorithm believes in: the mse when models match
    tau_r: Array  # variance of the pseudo-data r that it believes in
    gain: Array  # r = gain w + N(0, noise); 1 when models match
    noise: Array  # tau_r when models match

    @property
    def n_iter(self) -> int:
        """Iterations made."""
        return self.mse.size

    @property
    def converged(self) -> bool:
        """Whether the fixed point was reached."""
        return self.status == CONVERGED


def state_evolution(
    likelihood: Any,
    prior: Any,
    ratio: float,
    *,
    true_likelihood: Any = None,
    true_prior: Any = None,
    mode: str = "sum-product",
    max_iter: int = 1000,
    tol: float = 1e-7,
    damping: float = 1.0,
) -> StateEvolution:
    """Predict GAMP with ``likelihood`` and ``prior`` on M = ratio N samples of i.i.d. features, N large.

    X has entries of variance 1/M. The data come from the same models unless ``true_likelihood`` or
    ``true_prior`` say otherwise; a true likelihood is made to sum to one over the two labels, which matters
    for the hinge. ``damping`` is the step in (0, 1] with which the scalar channel moves: fixed points do
    not depend on it. ``tol`` is the relative change of mse, overlap and power that counts as standing still.

    Limits: one number per parameter; labels are exchangeable, p(y|z) = p(-y|-z); exact moments, because
    the paper's variational tau_s is not the slope of its s. Where tau_s is negative (robust likelihoods) the
    solver cuts it at 0 and this prediction does not.

    Parameters
    ----------
    likelihood, prior
        Those of the solver, one number per parameter.
    ratio
        M / N.
    true_likelihood, true_prior
        Those of the data; None: the same.
    mode
        "sum-product" or "max-sum".
    max_iter
        Iterations at most.
    tol
        Relative change that counts as none.
    damping
        The step, in (0, 1].

    Returns
    -------
    StateEvolution
        By iteration: mean squared error, overlap and error rate.

    Examples
    --------
    >>> from mvpa_gamp.gamp import Bernoulli, Gaussian, Logistic, state_evolution
    >>> found = state_evolution(Logistic(), Bernoulli(0.1, Gaussian(0.0, 100.0)), ratio=2.0)
    >>> round(float(found.error_rate[-1]), 2) < round(float(found.error_rate[0]), 2)
    True
    """
    given = Models(likelihood, prior)
    truth = Models(true_likelihood or likelihood, true_prior or prior)
    _check_settings(ratio, mode, max_iter, tol, damping)
    for model in (*given, *truth):
        _check_parameters(model)
    for used in (given.likelihood, truth.likelihood):
        _check_exact(used)
    for model in given:
        model.require_mode(mode)
    mean, var = prior_moments(truth.prior)
    energy = mean**2 + var
    estimate, channel = first_estimate(given.prior, truth.prior), None
    output, _ = output_channel(given, truth, estimate, ratio, mode)
    rows: list[tuple[float, ...]] = []
    status = ITERATION_LIMIT
    for _ in range(max_iter):
        channel = output.damped(channel, damping)
        if not channel.usable:
            status = NOT_FINITE
            break
        old, estimate = estimate, input_channel(given, truth, channel, mode)
        output, error_rate = output_channel(given, truth, estimate, ratio, mode)
        rows.append(_row(estimate, channel, error_rate, energy))
        if not np.isfinite(rows[-1]).all():
            rows.pop()
            status = NOT_FINITE
            break
        if _still(old, estimate, tol * damping, energy):
            status = CONVERGED
            break
    columns = np.array(rows, dtype=float).reshape(-1, _COLUMNS).T
    return StateEvolution(status, *columns)


def _row(estimate: Estimate, channel: Channel, error_rate: float, energy: float) -> tuple[float, ...]:
    """One iteration, in the order of the arrays of ``StateEvolution``."""
    power, overlap, mse, tau_w = estimate
    correlation = overlap / np.sqrt(power * energy) if power > 0 else 0.0
    return mse, overlap, error_rate, correlation, power, tau_w, channel.tau_r, channel.gain, channel.noise


def _still(old: Estimate, new: Estimate, tol: float, energy: float) -> bool:
    """Whether mse, overlap and power moved by no more than ``tol`` of themselves, or are all but 0."""
    pairs = ((old.mse, new.mse), (old.overlap, new.overlap), (old.power, new.power))
    return all(abs(b - a) <= tol * max(abs(b), _NOTHING * energy) for a, b in pairs)


def _check_settings(ratio: float, mode: str, max_iter: int, tol: float, damping: float) -> None:
    if mode not in MODES:
        raise ValueError(f"mode must be one of {', '.join(map(repr, MODES))}, got {mode!r}. Choose one.")
    if not (np.ndim(ratio) == 0 and np.isfinite(ratio) and ratio > 0):
        raise ValueError(f"ratio must be M/N, a positive number, got {ratio!r}. Give samples over features.")
    if not 0 < damping <= 1:
        raise ValueError(f"damping must be a step in (0, 1], got {damping}. Give 1 for no damping.")
    if max_iter < 1 or not tol > 0:
        raise ValueError(
            f"max_iter must be at least 1 and tol positive, got {max_iter} and {tol}. Leave them "
            "out for the defaults."
        )


def _check_parameters(model: Any) -> None:
    for name, shape in column_shapes(model).items():
        if shape:
            raise ValueError(
                f"{type(model).__name__}: {name} must be one number here, got shape {shape}. "
                "Call state_evolution once per column."
            )


def _check_exact(likelihood: Any) -> None:
    if not likelihood.is_exact:
        raise ValueError(
            "State evolution needs exact moments, got moments='variational', whose tau_s is not the slope of "
            "its s. Use Logistic(moments='exact')."
        )
