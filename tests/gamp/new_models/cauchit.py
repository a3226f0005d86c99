"""Cauchit likelihood p(y|z) = 1/2 + arctan(y z / scale) / pi: the sign of z plus Cauchy noise.

Integrals are sums over nodes: even steps of g in z = p + sqrt(tau_p) g where the Gaussian is narrow or far
from the bend, else even steps of u in z = sinh(u), which keeps the branch points at a distance.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from mvpa_gamp.gamp.likelihoods.protocol import Likelihood
from mvpa_gamp.gamp.likelihoods.scale_tuning import increasing_root, posterior_nodes, training_rows
from mvpa_gamp.gamp.moments import Array, Moments, Slopes
from mvpa_gamp.gamp.parameters import check_parameter, learnt_names

SCALE_RANGE = (1e-4, 1e4)  # learnt scales stay inside
_REACH = 9.0  # Gaussian widths: exp(-40) is left out
_NARROW = 0.5  # widths of the bend up to which 64 steps of g resolve it
_STEPS, _WIDE_STEPS, _SCAN = 64, 192, 33


@dataclass(frozen=True)
class Cauchit(Likelihood):
    """p(y|z) = 1/2 + arctan(y z / scale) / pi, y in {-1, +1}; for sum-product GAMP only.

    >>> from mvpa_gamp.gamp import Cauchit
    >>> round(float(Cauchit(scale=2.0).predict_proba(2.0, 1e-12)), 9)  # 1/2 + arctan(1)/pi
    0.75
    """

    scale: Any = 1.0

    modes: ClassVar[tuple[str, ...]] = ("sum-product",)
    learnable: ClassVar[tuple[str, ...]] = ("scale",)
    scale_names: ClassVar[tuple[str, ...]] = ("scale",)
    is_log_concave: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_parameter(self, "scale", lambda scale: scale > 0, "positive and finite")

    def posterior(self, y: Any, p: Any, tau_p: Any) -> Moments:
        """y z = y p + tau_p s and tau_z = tau_p (1 - tau_p tau_s): heavy tails never make it narrow."""
        sign, x, t = self._standard(y, p, tau_p)
        _, s, tau_s = _evaluate(x, t)
        return Moments(sign * self.scale * (x + t * s), np.square(self.scale) * (t * (1.0 - t * tau_s)))

    def log_partition(self, y: Any, p: Any, tau_p: Any) -> Array:
        """Log of the integral of p(y|z) N(z; p, tau_p) dz."""
        return self.evaluate(y, p, tau_p)[1]

    def evaluate(self, y: Any, p: Any, tau_p: Any) -> tuple[Slopes, Array]:
        """s = C'/C, tau_s = s^2 - C''/C, which may be negative, and log C."""
        sign, x, t = self._standard(y, p, tau_p)
        log_c, s, tau_s = _evaluate(x, t)
        return Slopes(sign * s / self.scale, tau_s / np.square(self.scale)), log_c

    def loss(self, y: Any, z: Any) -> Array:
        """-log(1/2 + arctan(y z / scale) / pi)."""
        return -_log_f(y * np.asarray(z, dtype=float) / self.scale)

    def em_update(
        self, y: Any, p: Any, tau_p: Any, learn: Iterable[str] | None = None, weights: Any = None
    ) -> "Cauchit":
        """The scale where sum_m w_m E[log F(y_m z_m / scale)] is highest, per column: a scan, then a root."""
        if "scale" not in learnt_names(self, learn):
            return self
        rows = training_rows(y, p, tau_p, weights)
        z, probability = posterior_nodes(self, rows, self.scale)
        margin, mass = rows.y * z, rows.counts * probability

        def expected(log_scale: Array) -> Array:
            return np.sum(mass * _log_f(margin / np.exp(log_scale)), axis=(0, 1))

        def falling(log_scale: Array) -> tuple[Array, Array]:
            g = margin / np.exp(log_scale)
            pull = _pull(g)
            return np.sum(mass * g * pull, axis=(0, 1)), np.zeros(np.shape(log_scale))

        shape = rows.counts.shape[1:]
        tries = np.linspace(*np.log(SCALE_RANGE), _SCAN)
        best = np.argmax([expected(np.full(shape, each)) for each in tries], axis=0)
        low, high = (tries[np.clip(best + k, 0, _SCAN - 1)] for k in (-1, 1))
        scale = np.exp(increasing_root(falling, low, high, tries[best], 1e-10))
        current = np.broadcast_to(np.asarray(self.scale, dtype=float), shape)
        found = np.where(rows.counts.sum(axis=0) > 0, scale, current)
        return replace(self, scale=found if found.ndim else float(found))

    def _standard(self, y: Any, p: Any, tau_p: Any) -> tuple[Array, Array, Array]:
        """Label, margin x = y p / scale and t = tau_p / scale^2, with one shape."""
        scale = np.asarray(self.scale, dtype=float)
        sign, x, t = np.broadcast_arrays(
            np.asarray(y, dtype=float), y * np.asarray(p, dtype=float) / scale, tau_p / np.square(scale)
        )
        return sign, x, t


def _tail(g: Array) -> Array:
    """1 - F(|g|), without cancellation."""
    return np.arctan2(1.0, np.abs(g)) / np.pi


def _log_f(g: Array) -> Array:
    tail = _tail(g)
    return np.where(g < 0, np.log(tail), np.log1p(-tail))


def _pull(g: Array) -> Array:
    """First derivative f/F of log F(g)."""
    tail, h = _tail(g), np.hypot(1.0, g)
    return 1.0 / (np.pi * np.where(g < 0, tail, 1.0 - tail)) / h / h


def _evaluate(x: Array, t: Array) -> tuple[Array, Array, Array]:
    """log C, s and tau_s; integrated on the side of the smaller probability."""
    lower, first, second = _integrate(-np.abs(x), t)
    mass = np.where(x < 0, lower, 1.0 - lower)
    s = first / mass
    log_c = np.where(x < 0, np.log(lower), np.log1p(-lower))
    return log_c, s, s * s - np.where(x < 0, second, -second) / mass


def _integrate(x: Array, t: Array) -> Array:
    """F, f and f' averaged over N(x, t), for x <= 0."""
    sd = np.sqrt(t)
    wide = (sd > _NARROW) & (np.abs(x) < _REACH * sd)
    result = np.empty((3, *x.shape))
    for mask, nodes in ((~wide, _narrow), (wide, _wide)):
        if np.any(mask):
            result[:, mask] = _sums(*nodes(x[mask], sd[mask]))
    return result


def _sums(z: Array, weight: Array) -> Array:
    tail, h = _tail(z), np.hypot(1.0, z)
    density = weight / h / h / np.pi
    masses = (weight * np.where(z < 0, tail, 1.0 - tail), density, -2.0 * density * (z / h) / h)
    return np.array([mass.sum(axis=0) for mass in masses])


def _narrow(x: Array, sd: Array) -> tuple[Array, Array]:
    g = np.linspace(-_REACH, _REACH, _STEPS + 1)[:, None]
    weight = np.exp(-0.5 * g * g)
    return x + sd * g, weight / weight.sum()


def _wide(x: Array, sd: Array) -> tuple[Array, Array]:
    low, high = np.arcsinh(x - _REACH * sd), np.arcsinh(x + _REACH * sd)
    u = low + (high - low) * np.linspace(0.0, 1.0, _WIDE_STEPS + 1)[:, None]
    z = np.sinh(u)
    weight = np.exp(-0.5 * np.square((z - x) / sd)) * np.cosh(u)
    return z, weight / weight.sum(axis=0)
