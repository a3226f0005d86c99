"""Probit likelihood p(y|z) = Phi(y z / sqrt(var)), the paper's eq. probit_model and Table probit_updates."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import log_ndtr, ndtri_exp

from mvpa_gamp.gamp.likelihoods import scale_tuning
from mvpa_gamp.gamp.likelihoods.protocol import Likelihood
from mvpa_gamp.gamp.likelihoods.scale_tuning import increasing_root
from mvpa_gamp.gamp.moments import Array, Moments, Slopes, inverse_mills, truncated_normal
from mvpa_gamp.gamp.parameters import check_parameter, learnt_names

_LOG_2_PI = float(np.log(2.0 * np.pi))
VAR_RANGE = (1e-8, 1e8)  # learnt variances stay inside


@dataclass(frozen=True)
class Probit(Likelihood):
    """Probit likelihood, p(y|z) = Phi(y z / sqrt(var)): the sign of z plus noise of variance ``var``.

    The paper writes Phi(y z / v) in places; its closed forms belong to the square root.
    """

    var: Any = 1.0

    learnable: ClassVar[tuple[str, ...]] = ("var",)
    scale_names: ClassVar[tuple[str, ...]] = ("var",)
    squares: ClassVar[tuple[str, ...]] = ("var",)

    def __post_init__(self) -> None:
        check_parameter(self, "var", lambda var: var > 0, "positive and finite")

    @property
    def useful_range(self) -> dict[str, tuple[float, float]]:
        """Where learning keeps the variance."""
        return {"var": VAR_RANGE}

    def posterior(self, y: Any, p: Any, tau_p: Any) -> Moments:
        """Mean and variance of Phi(y z/sqrt(var)) N(z; p, tau_p) / C.

        With c = y p/sqrt(var + tau_p), m = phi(c)/Phi(c) and v = 1 - m (m + c) the paper's table reads
        y z = y p + tau_p m/sqrt(var + tau_p) and tau_z = tau_p (var + tau_p v)/(var + tau_p); the mean is
        written with m + c where c < 0, which cancels nothing.
        """
        sign, margin, tau_p, total = self._standard(y, p, tau_p)
        root = np.sqrt(total)
        c = margin / root
        m, excess, v = truncated_normal(c)
        share = tau_p / total
        mean = np.where(c < 0, margin * (self.var / total) + share * root * excess, margin + share * root * m)
        return Moments(sign * mean, share * (self.var + tau_p * v))

    def log_partition(self, y: Any, p: Any, tau_p: Any) -> Array:
        """log Phi(c), c = y p / sqrt(var + tau_p)."""
        _, margin, _, total = self._standard(y, p, tau_p)
        return np.asarray(log_ndtr(margin / np.sqrt(total)))

    def evaluate(self, y: Any, p: Any, tau_p: Any) -> tuple[Slopes, Array]:
        """s = y m / sqrt(var + tau_p), tau_s = m (m + c) / (var + tau_p), and ``log_partition``."""
        sign, margin, _, total = self._standard(y, p, tau_p)
        root = np.sqrt(total)
        c = margin / root
        m, excess, _ = truncated_normal(c)
        return Slopes(sign * m / root, m * excess / total), np.asarray(log_ndtr(c))

    def prox(self, y: Any, p: Any, tau_p: Any) -> Moments:
        """u = argmin loss(y, u) + (u - p)^2 / (2 tau_p), and tau_p / (1 + tau_p loss'')."""
        sign, margin, tau_p, _ = self._standard(y, p, tau_p)
        root = np.sqrt(self.var)
        g = _standard_prox(margin / root, tau_p / self.var)
        m, excess, _ = truncated_normal(g)
        return Moments(sign * root * g, tau_p / (1.0 + (tau_p / self.var) * (m * excess)))

    def prox_score(self, y: Any, p: Any, tau_p: Any) -> Slopes:
        """s = -loss'(u) and tau_s = loss'' / (1 + tau_p loss'') at the proximal point u."""
        sign, margin, tau_p, _ = self._standard(y, p, tau_p)
        root = np.sqrt(self.var)
        m, excess, _ = truncated_normal(_standard_prox(margin / root, tau_p / self.var))
        curvature = m * excess / self.var
        return Slopes(sign * m / root, curvature / (1.0 + tau_p * curvature))

    def loss(self, y: Any, z: Any) -> Array:
        """-log Phi(y z / sqrt(var))."""
        return -np.asarray(log_ndtr(self._margin(y, z) / np.sqrt(self.var)))

    def loss_slopes(self, y: Any, z: Any) -> Slopes:
        """-d loss / dz and d^2 loss / dz^2."""
        root = np.sqrt(self.var)
        m, excess, _ = truncated_normal(self._margin(y, z) / root)
        return Slopes(y * m / root, m * excess / self.var)

    def margin_at_loss(self, level: Any) -> Array:
        """The margin y z at which the loss equals ``level``: sqrt(var) Phi^-1(exp(-level))."""
        return np.sqrt(self.var) * np.asarray(ndtri_exp(-np.asarray(level, dtype=float)))

    def em_update(
        self, y: Any, p: Any, tau_p: Any, learn: Iterable[str] | None = None, weights: Any = None
    ) -> "Probit":
        """The variance that maximises sum_m w_m E[log Phi(y_m z_m/sqrt(var))], per column, within VAR_RANGE.

        The paper's eq. probit_em_upd with c = y z/sqrt(v), whose derivative is -c/(2 v) phi(c)/Phi(c);
        the sum is concave in 1/sqrt(v), which is what the search varies.
        """
        if "var" not in learnt_names(self, learn):
            return self
        rows = scale_tuning.training_rows(y, p, tau_p, weights)
        slope = scale_tuning.expected_slope(self, rows, np.sqrt(self.var), _pull)
        bounds = (VAR_RANGE[1] ** -0.5, VAR_RANGE[0] ** -0.5)
        scale = scale_tuning.best_scale(slope, rows, 1.0 / np.sqrt(self.var), bounds)
        return replace(self, var=scale**-2)

    @staticmethod
    def _margin(y: Any, z: Any) -> Array:
        return np.asarray(y * np.asarray(z, dtype=float))

    def _standard(self, y: Any, p: Any, tau_p: Any) -> tuple[Array, Array, Array, Array]:
        """Label, margin y p, tau_p and var + tau_p, with one shape."""
        tau_p = np.asarray(tau_p, dtype=float)
        total = np.asarray(self.var + tau_p)
        sign, margin, tau_p, total = np.broadcast_arrays(
            np.asarray(y, dtype=float), self._margin(y, p), tau_p, total
        )
        return sign, margin, tau_p, total


def _pull(g: Array) -> tuple[Array, Array]:
    """First derivative of log Phi(g) and minus the second."""
    m = inverse_mills(g)
    return m, m * (m + g)


def _standard_prox(x: Array, t: Array) -> Array:
    """Root g of g = x + t m(g), m = phi/Phi: Newton from the left is monotone because m is convex.

    It starts at the largest of three points at which t m(g) is still larger than g - x. The third, for t > 1,
    is the L >= 0 where t phi(L) = B, with B = max(U - x, 1) and U = sqrt(2 log t): L < U, so that L - x < B,
    and phi < m.
    """
    low = np.where(x < 0, x / (1.0 + t), x)  # m(g) >= max(0, -g)
    upper = np.sqrt(2.0 * np.log(np.maximum(t, 1.0)))  # not above 0 for t <= 1, where no L exists
    squared = upper * upper - _LOG_2_PI - 2.0 * np.log(np.maximum(upper - x, 1.0))
    low = np.where(squared > 0, np.maximum(low, np.sqrt(np.maximum(squared, 0.0))), low)
    high = np.maximum(x + t * inverse_mills(low), low)

    def evaluate(g: Array) -> tuple[Array, Array]:
        m, excess, _ = truncated_normal(g)
        return g - x - t * m, 1.0 + t * (m * excess)

    return increasing_root(evaluate, low, high, low)
