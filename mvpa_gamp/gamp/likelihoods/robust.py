"""Robust likelihood flip + (1 - 2 flip) p*(y|z) for wrong training labels, the paper's eq. robust_model.

Its max-sum step is the global minimum of loss(u) + (u - x)^2/(2 tau), which can have two local ones: the loss
is bounded and falls in one soft step. Where the step is steeper than the parabola, a point far on the wrong
side can stay there (its label is taken for wrong) or be pulled over (as the base likelihood would do), and
bisection alone may return either. Here a scan brackets the leftmost and the rightmost local minimum.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit

from mvpa_gamp.gamp.likelihoods.protocol import Likelihood
from mvpa_gamp.gamp.likelihoods.scale_tuning import Evaluate, Rows, increasing_root, training_rows
from mvpa_gamp.gamp.moments import Array, Moments, Slopes
from mvpa_gamp.gamp.parameters import check_parameter, learnt_names

FLIP_RANGE = (1e-6, 0.5 - 1e-6)  # learnt flip rates stay inside
_HIGH_FLIP = 0.4  # a start from which tuning finds high rates; from a low one the weights may vanish
_NO_LABEL = 0.495  # above this flip rate labels say next to nothing: no scores tell them from a coin
_SADDLE = 1e-10  # the proximal slope 1/(1 + tau_p loss'') is capped at 1e10, where two minima merge


@dataclass(frozen=True)
class Robust(Likelihood):
    """Labels may be wrong: p(y|z) = flip + (1 - 2 flip) p*(y|z), p* the likelihood ``base``, flip < 1/2.

    For normalised p* this is a label flipped with probability ``flip``. Over the un-normalised hinge the
    same formula is the definition, and p(+1|z) + p(-1|z) is not 1. The loss is bounded and not convex:
    tau_s may be negative and the posterior wider than N(p, tau_p).
    """

    base: Likelihood
    flip: Any = 0.01

    shares: ClassVar[tuple[str, ...]] = ("flip",)

    def __post_init__(self) -> None:
        if isinstance(self.base, Robust | type) or not isinstance(self.base, Likelihood):
            raise ValueError(
                f"Robust: base must be a plain likelihood such as Logistic(), got {self.base!r}. "
                "Give the likelihood of the clean labels."
            )
        expected = "the fraction of wrong labels, in [0, 0.5)"
        check_parameter(self, "flip", lambda flip: (flip >= 0) & (flip < 0.5), expected)

    @property
    def learnable(self) -> tuple[str, ...]:
        """The flip rate, and what the base can learn as ``base.<name>``."""
        return ("flip", *(f"base.{name}" for name in self.base.learnable))

    @property
    def default_learn(self) -> tuple[str, ...]:
        """The flip rate."""
        return ("flip",)

    @property
    def scale_names(self) -> tuple[str, ...]:
        """Those of the base."""
        return tuple(f"base.{name}" for name in self.base.scale_names)

    @property
    def useful_range(self) -> dict[str, tuple[float, float]]:
        """Those of the base, and up to which flip rate labels say something; none may be wrong."""
        of_base = {f"base.{name}": ends for name, ends in self.base.useful_range.items()}
        return {"flip": (-np.inf, _NO_LABEL), **of_base}

    def other_starts(self, learn: tuple[str, ...]) -> tuple["Robust", ...]:
        """A high flip rate: with a low one at first, labels that contradict shrink the weights to nothing."""
        return (replace(self, flip=_HIGH_FLIP),) if "flip" in learn else ()

    @property
    def modes(self) -> tuple[str, ...]:
        """Those of the base."""
        return self.base.modes

    @property
    def is_log_concave(self) -> bool:
        """Not for any share of wrong labels."""
        return False

    @property
    def kinks(self) -> tuple[float, ...]:
        """Those of the base."""
        return self.base.kinks

    @property
    def is_normalised(self) -> bool:
        """As the base."""
        return self.base.is_normalised

    @property
    def is_exact(self) -> bool:
        """As the base."""
        return self.base.is_exact

    def posterior(self, y: Any, p: Any, tau_p: Any) -> Moments:
        """The paper's robust table: with probability C_y the prior N(p, tau_p), else the base posterior."""
        (s, _), log_c = self.base.evaluate(y, p, tau_p)
        mean, var = self.base.posterior(y, p, tau_p)
        prior, base = self._shares(log_c)
        return Moments(
            prior * np.asarray(p, dtype=float) + base * mean,
            prior * tau_p + base * var + (prior * (tau_p * s)) * (base * (tau_p * s)),
        )

    def log_partition(self, y: Any, p: Any, tau_p: Any) -> Array:
        """log(flip + (1 - 2 flip) C*)."""
        return self._log_mix(self.base.log_partition(y, p, tau_p))

    def evaluate(self, y: Any, p: Any, tau_p: Any) -> tuple[Slopes, Array]:
        """s = (1 - C_y) s*, tau_s = (1 - C_y) (tau_s* - C_y s*^2), which may be negative, and log C."""
        slopes, log_c = self.base.evaluate(y, p, tau_p)
        return self._dilute(slopes, log_c), self._log_mix(log_c)

    def prox(self, y: Any, p: Any, tau_p: Any) -> Moments:
        """Global minimum u of loss(y, u) + (u - p)^2/(2 tau_p), and tau_p/(1 + tau_p loss''), 0 at a kink."""
        sign, u, at_kink, tau_p = self._minimum(y, p, tau_p)
        curvature = self.loss_slopes(1.0, u).tau_s
        return Moments(sign * u, np.where(at_kink, 0.0, tau_p / np.maximum(1.0 + tau_p * curvature, _SADDLE)))

    def prox_score(self, y: Any, p: Any, tau_p: Any) -> Slopes:
        """s = (u - p)/tau_p and tau_s = loss''/(1 + tau_p loss''), 1/tau_p at a kink."""
        sign, u, at_kink, tau_p = self._minimum(y, p, tau_p)
        s, curvature = self.loss_slopes(1.0, u)
        s = np.where(at_kink, (u - sign * p) / tau_p, s)
        smooth = curvature / np.maximum(1.0 + tau_p * curvature, _SADDLE)
        return Slopes(sign * s, np.where(at_kink, 1.0 / tau_p, smooth))

    def loss(self, y: Any, z: Any) -> Array:
        """-log(flip + (1 - 2 flip) p*(y|z))."""
        return -self._log_mix(-self.base.loss(y, z))

    def loss_slopes(self, y: Any, z: Any) -> Slopes:
        """-d loss / dz and d^2 loss / dz^2, the base's diluted by the share of p* in p."""
        return self._dilute(self.base.loss_slopes(y, z), -self.base.loss(y, z))

    def margin_at_loss(self, level: Any) -> Array:
        """The margin y z at which the loss equals ``level``, between -log(1 - flip) and -log(flip)."""
        flip = np.asarray(self.flip, dtype=float)
        return self.base.margin_at_loss(
            -np.log((np.exp(-np.asarray(level, dtype=float)) - flip) / (1.0 - 2.0 * flip))
        )

    def log_odds(self, z_mean: Any, z_var: Any) -> Array:
        """The base's: a new clean example is not flipped."""
        return self.base.log_odds(z_mean, z_var)

    def predict_proba(self, z_mean: Any, z_var: Any) -> Array:
        """P(true label = +1), the base's: a new clean example is not flipped."""
        return self.base.predict_proba(z_mean, z_var)

    def em_update(
        self, y: Any, p: Any, tau_p: Any, learn: Iterable[str] | None = None, weights: Any = None
    ) -> "Robust":
        """New flip rate (the paper's eq. gamma_em_update2) and base parameters, per column.

        flip becomes the mean over training rows of
        p(label wrong | y) = flip (1 - C*)/(flip + (1 - 2 flip) C*), kept within FLIP_RANGE. The base sees
        every row twice, as (y, right) and (-y, wrong), with these probabilities as weights.
        """
        names = learnt_names(self, learn)
        if not names:
            return self
        rows = training_rows(y, p, tau_p, weights)
        wrong = self._wrong(rows)
        changes: dict[str, Any] = {}
        if "flip" in names:
            changes["flip"] = self._mean_wrong(rows, wrong)
        base_names = [name.removeprefix("base.") for name in names if name.startswith("base.")]
        if base_names:
            changes["base"] = self._update_base(rows, wrong, base_names)
        return replace(self, **changes)

    def _mean_wrong(self, rows: Rows, wrong: Array) -> Any:
        count = rows.counts.sum(axis=0)
        mean = np.sum(rows.counts * wrong, axis=0) / np.maximum(count, 1e-300)
        flip = np.where(count > 0, np.clip(mean, *FLIP_RANGE), self.flip)
        return flip if flip.ndim else float(flip)

    def _update_base(self, rows: Rows, wrong: Array, names: list[str]) -> Likelihood:
        y, p, tau_p = (
            np.concatenate([rows.y, -rows.y]),
            np.concatenate([rows.p] * 2),
            np.concatenate([rows.tau_p] * 2),
        )
        weights = np.concatenate([rows.counts * (1.0 - wrong), rows.counts * wrong])
        return self.base.em_update(y, p, tau_p, names, weights)

    def _wrong(self, rows: Rows) -> Array:
        """p(label wrong | y) = (flip / C) (1 - C*); C_y = flip/C alone is only the weight of the prior."""
        log_c = self.base.log_partition(rows.y, rows.p, rows.tau_p)
        return self._shares(log_c)[0] * -np.expm1(np.minimum(log_c, 0.0))

    def _log_odds(self) -> Array:
        """log((1 - 2 flip)/flip), infinite for flip = 0."""
        flip = np.asarray(self.flip, dtype=float)
        with np.errstate(divide="ignore"):
            return np.log1p(-2.0 * flip) - np.log(flip)

    def _shares(self, log_base: Array) -> tuple[Array, Array]:
        """Shares of flip (the paper's C_y) and of (1 - 2 flip) exp(log_base) in their sum."""
        odds = self._log_odds() + log_base
        return np.asarray(expit(-odds)), np.asarray(expit(odds))

    def _log_mix(self, log_base: Array) -> Array:
        """log(flip + (1 - 2 flip) exp(log_base)), accurate near 0 and far below."""
        flip = np.asarray(self.flip, dtype=float)
        near = np.log1p((1.0 - 2.0 * flip) * np.expm1(np.maximum(log_base, -0.7)) - flip)
        with np.errstate(divide="ignore"):
            return np.where(
                log_base > -0.7, near, np.logaddexp(np.log(flip), np.log1p(-2.0 * flip) + log_base)
            )

    def _dilute(self, slopes: Slopes, log_base: Array) -> Slopes:
        """Slopes of log(flip + (1 - 2 flip) exp(log_base)) from those of log_base."""
        prior, base = self._shares(log_base)
        s = base * slopes.s
        return Slopes(s, base * slopes.tau_s - (prior * slopes.s) * s)

    def _minimum(self, y: Any, p: Any, tau_p: Any) -> tuple[Array, Array, Array, Array]:
        """Label, margin of the global proximal minimum, whether it is a kink, and tau_p, with one shape."""
        x = y * np.asarray(p, dtype=float)
        shape = np.broadcast_shapes(np.shape(x), np.shape(tau_p), np.shape(self.flip))
        high = self.base.prox(1.0, x, tau_p).mean
        shape = np.broadcast_shapes(shape, high.shape)
        sign, x, tau_p, high = (
            np.broadcast_to(np.asarray(a, dtype=float), shape) for a in (y, x, tau_p, high)
        )
        # Below this margin the share of p* in p is under exp(-40): the loss is flat.
        flat = self.base.margin_at_loss(40.0 + np.minimum(self._log_odds(), 600.0))
        u, at_kink = global_minimum(self, x, tau_p, np.clip(flat, x, high), high)
        return sign, u, at_kink, tau_p


_SCAN = 48  # points between flat and high: about one width of the logistic step for flip = 1e-6
_TIE = 1e-13  # a kink wins against a candidate that differs from it by rounding only


def global_minimum(
    loss: Likelihood, x: Array, tau: Array, flat: Array, high: Array
) -> tuple[Array, np.ndarray]:
    """Margin of the global minimum and whether it is a kink; x, tau, flat and high share one shape.

    The minimum lies in [x, high], high the proximal point of the base loss, which pulls harder; the loss
    has no slope to speak of on [x, flat]. The slope of a bounded loss has one hump, which the parabola's
    straight slope crosses at most three times: two minima and a maximum between them.
    """

    def derivative(u: Array) -> tuple[Array, Array]:
        pull, curvature = loss.loss_slopes(1.0, u)
        return u - x - tau * pull, 1.0 + tau * curvature

    left, right = _outer_minima(derivative, x, flat, high)
    u = np.where(_cost(loss, left, x, tau) < _cost(loss, right, x, tau), left, right)
    at_kink = np.zeros(x.shape, dtype=bool)
    for kink in loss.kinks:
        chosen = _kink_wins(loss, kink, u, x, tau)
        u, at_kink = np.where(chosen, kink, u), at_kink | chosen
    return u, at_kink


def _outer_minima(derivative: Evaluate, x: Array, flat: Array, high: Array) -> tuple[Array, Array]:
    """First and last point of [x, high] where the derivative turns positive; often the same."""
    fraction = np.linspace(0.0, 1.0, _SCAN + 1)[1:].reshape((-1,) + (1,) * x.ndim)
    scan = np.concatenate([x[None], flat + (high - flat) * fraction])
    rising = derivative(scan)[0] > 0
    rising[0], rising[-1] = False, True  # true but for rounding
    turns = ~rising[:-1] & rising[1:]
    first = np.argmax(turns, axis=0)
    last = len(turns) - 1 - np.argmax(turns[::-1], axis=0)

    def at(index: np.ndarray) -> Array:
        return np.take_along_axis(scan, index[None], axis=0)[0]

    return (
        increasing_root(derivative, at(first), at(first + 1), at(first)),
        increasing_root(derivative, at(last), at(last + 1), at(last + 1)),
    )


def _cost(loss: Likelihood, u: Array, x: Array, tau: Array) -> Array:
    return loss.loss(1.0, u) + np.square(u - x) / (2.0 * tau)


def _kink_wins(loss: Likelihood, kink: float, u: Array, x: Array, tau: Array) -> np.ndarray:
    """Whether the kink is a local minimum (the cost falls before it and rises after) as good as u."""
    corner = np.full(x.shape, kink)
    falls_before = corner - x <= tau * loss.loss_slopes(1.0, corner).s
    cost, other = _cost(loss, corner, x, tau), _cost(loss, u, x, tau)
    return (x <= kink) & falls_before & (cost <= other + _TIE * np.maximum(1.0, np.abs(other)))
