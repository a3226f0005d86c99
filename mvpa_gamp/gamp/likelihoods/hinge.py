"""Hinge likelihood exp(-max(0, 1 - y z)), un-normalised, the paper's eq. hinge_prior and its appendix."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import expit, log_ndtr

from mvpa_gamp.gamp.likelihoods.protocol import Likelihood
from mvpa_gamp.gamp.moments import Array, Moments, Slopes, inverse_mills, truncated_normal

_GAUSS_NODES, _GAUSS_WEIGHTS = np.polynomial.legendre.leggauss(5)  # over half a unit: 1e-15 times R^(11)


class _Sides(NamedTuple):
    """The two truncated Gaussians left (loss active) and right of the kink, in units of sd = sqrt(tau_p).

    alpha and beta are the paper's; m, excess and var belong to a standard normal x given x > -alpha
    (x > -beta); ``active`` is the posterior probability of the left side, 1/(1 + gamma_y).
    """

    sd: Array
    alpha: Array
    beta: Array
    left: tuple[Array, Array, Array]
    right: tuple[Array, Array, Array]
    active: Array
    inactive: Array


@dataclass(frozen=True)
class Hinge(Likelihood):
    """Hinge likelihood, p(y|z) = exp(-max(0, 1 - y z)); p(+1|z) + p(-1|z) is not 1: C is no probability."""

    kinks: ClassVar[tuple[float, ...]] = (1.0,)
    is_normalised: ClassVar[bool] = False

    def posterior(self, y: Any, p: Any, tau_p: Any) -> Moments:
        """Mean and variance of p(y|z) N(z; p, tau_p) / C: the paper's hinge table, measured from the kink.

        With q the probability of the active side and e, v the mean distance to the kink and variance of each
        truncated Gaussian in units of sd = sqrt(tau_p): y z = 1 + sd ((1 - q) e_right - q e_left) and
        tau_z = tau_p (q v_left + (1 - q) v_right + q (1 - q) (e_left + e_right)^2).
        """
        sign, x, tau_p = _standard(y, p, tau_p)
        side = _sides(x, tau_p)
        (_, e_left, v_left), (_, e_right, v_right) = side.left, side.right
        q, r = side.active, side.inactive
        mean = np.where(np.abs(x) < 1.0, x + tau_p * q, 1.0 + side.sd * (r * e_right - q * e_left))
        var = tau_p * (q * v_left + r * v_right + (q * (e_left + e_right)) * (r * (e_left + e_right)))
        return Moments(sign * mean, var)

    def log_partition(self, y: Any, p: Any, tau_p: Any) -> Array:
        """log(exp(delta) Phi(alpha) + Phi(beta)), the paper's eq. const1_integral."""
        _, x, tau_p = _standard(y, p, tau_p)
        return _log_partition(x, tau_p, _sides(x, tau_p))

    def evaluate(self, y: Any, p: Any, tau_p: Any) -> tuple[Slopes, Array]:
        """s = y q, q the probability of the active side; tau_s = q (1 - q) (e_left + e_right)/sd; log C."""
        sign, x, tau_p = _standard(y, p, tau_p)
        side = _sides(x, tau_p)
        gap = (side.left[1] + side.right[1]) / side.sd
        tau_s = np.maximum(side.active, side.inactive) * (np.minimum(side.active, side.inactive) * gap)
        return Slopes(sign * side.active, tau_s), _log_partition(x, tau_p, side)

    def prox(self, y: Any, p: Any, tau_p: Any) -> Moments:
        """u = y min(y p + tau_p, max(y p, 1)); tau_p times its slope, which is 1, or 0 at the kink."""
        sign, x, tau_p = _standard(y, p, tau_p)
        mean = np.minimum(x + tau_p, np.maximum(x, 1.0))
        return Moments(sign * mean, np.where(_at_kink(x, tau_p), 0.0, tau_p))

    def prox_score(self, y: Any, p: Any, tau_p: Any) -> Slopes:
        """s = y clip((1 - y p)/tau_p, 0, 1) and tau_s = 1/tau_p at the kink, else 0."""
        sign, x, tau_p = _standard(y, p, tau_p)
        s = np.clip((1.0 - x) / tau_p, 0.0, 1.0)
        return Slopes(sign * s, np.where(_at_kink(x, tau_p), 1.0 / tau_p, 0.0))

    def loss(self, y: Any, z: Any) -> Array:
        """max(0, 1 - y z)."""
        return np.maximum(0.0, 1.0 - y * np.asarray(z, dtype=float))

    def loss_slopes(self, y: Any, z: Any) -> Slopes:
        """y while y z <= 1, else 0; the second derivative away from the kink is 0."""
        margin = y * np.asarray(z, dtype=float)
        return Slopes(np.where(margin <= 1.0, y, 0.0), np.zeros(np.shape(margin)))

    def margin_at_loss(self, level: Any) -> Array:
        """The margin y z at which the loss equals ``level``: 1 - level."""
        return 1.0 - np.asarray(level, dtype=float)

    def predict_proba(self, z_mean: Any, z_var: Any) -> Array:
        """C(+1) / (C(+1) + C(-1)): the two scores made to sum to one."""
        return np.asarray(expit(self.log_odds(z_mean, z_var)))


def _standard(y: Any, p: Any, tau_p: Any) -> tuple[Array, Array, Array]:
    """Label, margin y p and tau_p, with one shape."""
    sign, margin, tau_p = np.broadcast_arrays(
        np.asarray(y, dtype=float), y * np.asarray(p, dtype=float), np.asarray(tau_p, dtype=float)
    )
    return sign, margin, tau_p


def _at_kink(x: Array, tau_p: Array) -> np.ndarray:
    return (x <= 1.0) & (x + tau_p >= 1.0)


def _sides(x: Array, tau_p: Array) -> _Sides:
    """Both sides of the kink; their masses are in the ratio 1/m_left : 1/m_right.

    exp(delta) Phi(alpha) and Phi(beta) share the factor phi(beta), because
    exp(delta) phi(alpha) = phi(beta): no exponent is ever formed.
    """
    sd = np.sqrt(tau_p)
    beta = (x - 1.0) / sd
    alpha = -(beta + sd)
    left, right = truncated_normal(alpha), truncated_normal(beta)
    total = left.mean + right.mean
    return _Sides(sd, alpha, beta, left, right, right.mean / total, left.mean / total)


def _log_partition(x: Array, tau_p: Array, side: _Sides) -> Array:
    """log C from the larger side, or from 1 - C where C is close to one (beta > 0)."""
    m_left, m_right = side.left[0], side.right[0]
    outside = side.alpha > 0
    base = np.where(outside, x - 1.0 + 0.5 * tau_p + log_ndtr(side.alpha), log_ndtr(side.beta))
    odds = np.where(outside, m_left, m_right) / np.where(outside, m_right, m_left)
    log_c = np.asarray(base + np.log1p(odds))
    near_one = side.beta > 0
    if np.any(near_one):
        log_c[near_one] = np.log1p(-_lost_mass(side.beta[near_one], side.sd[near_one]))
    return log_c


def _lost_mass(beta: Array, sd: Array) -> Array:
    """1 - C = phi(beta) (R(beta) - R(beta + sd)) for beta >= 0, R(x) = (1 - Phi(x))/phi(x).

    Where sd < 1/2 the difference is integrated: -R'(x) = 1 - x R(x) = R(x) (1/R(x) - x).
    """
    density = np.exp(-0.5 * np.square(np.minimum(beta, 40.0))) / np.sqrt(2.0 * np.pi)
    plain = 1.0 / inverse_mills(-beta) - 1.0 / inverse_mills(-(beta + sd))
    close = sd < 0.5
    if np.any(close):
        plain = np.array(plain)
        plain[close] = _mills_drop(beta[close], sd[close])
    return density * plain


def _mills_drop(beta: Array, step: Array) -> Array:
    """R(beta) - R(beta + step) by Gauss-Legendre quadrature of -R' over a short step."""
    total = np.zeros(beta.shape)
    for node, weight in zip(_GAUSS_NODES, _GAUSS_WEIGHTS, strict=True):
        m, excess, _ = truncated_normal(-(beta + 0.5 * (node + 1.0) * step))
        total += weight * (excess / m)
    return 0.5 * step * total
