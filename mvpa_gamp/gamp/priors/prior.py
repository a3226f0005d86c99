"""What every prior shares: the steps that follow from its scalar posterior, and the facts that it states.

A prior p(w) meets GAMP through the scalar channel r = w + N(0, tau_r). ``condition(r, tau_r)`` returns the
posterior p(w | r) as a short-lived record with three readings: its moments, its evidence against w = 0, and
the sums that expectation maximisation needs. A record lets a Bernoulli prior ask its slab for all three
while the special functions are evaluated once.
"""

from collections.abc import Iterable
from typing import ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from mvpa_gamp.gamp.moments import Array, Moments
from mvpa_gamp.gamp.parameters import column_shapes
from mvpa_gamp.gamp.scalar_steps import StepFunction

Parameter = float | Array
Statistics = dict[str, Array]

# Smallest variance that learning may reach. Weights of 1e-10 are nothing for features of any usual scale,
# and their products with probabilities stay clear of the slow denormal numbers of float32.
VARIANCE_FLOOR = 1e-20
# Below this summed weight a column (or a mixture component) holds no data: its old parameters stay.
EMPTY = 1e-8


def common_shape(one: Array, other: Array) -> tuple[int, ...]:
    """Shape that two arrays broadcast to (NumPy's own function costs as much as a small block)."""
    return one.shape if one.shape == other.shape else np.broadcast_shapes(one.shape, other.shape)


def spread(values: Array, shape: tuple[int, ...]) -> Array:
    """``values`` broadcast to ``shape``, read-only where that repeats them."""
    return values if np.shape(values) == shape else np.broadcast_to(values, shape)


def column_sum(shape: tuple[int, ...], values: Array, weights: Array | None = None) -> Array:
    """Float64 sums over rows of values, times weights if given, both broadcast to ``shape``."""
    if weights is None:
        return np.asarray(spread(values, shape).sum(axis=0, dtype=np.float64))
    return np.einsum("i...,i...->...", spread(values, shape), spread(weights, shape), dtype=np.float64)


def row_count(shape: tuple[int, ...], weights: Array | None) -> Array:
    """Sum of the weights of each column; the number of rows when there are none."""
    return np.full(shape[1:], float(shape[0])) if weights is None else column_sum(shape, weights)


def held_count(count: Array) -> Array:
    """``count`` where it holds data and NaN elsewhere, which ``finite_or`` turns back into the old value."""
    return np.where(count > EMPTY, count, np.nan)


def finite_or(new: ArrayLike, old: Parameter) -> Array:
    """``new`` where it is finite, ``old`` elsewhere: a column that failed keeps its parameters."""
    new = np.asarray(new, dtype=float)
    return np.where(np.isfinite(new), new, old)


P = TypeVar("P", bound="Prior")


class ScalarPosterior(Protocol):
    """p(w | r, tau_r) of all elements at once; arrays broadcast to the shape of r and tau_r."""

    def moments(self) -> Moments:
        """Posterior mean and variance."""

    def log_bayes_factor(self) -> Array:
        """Log of the density of r under this prior over its density N(r; 0, tau_r) when w = 0."""

    def statistics(self, weights: Array | None) -> Statistics:
        """Sums over rows, in float64, each row weighted by ``weights``; "count" is the sum of weights."""


class Prior:
    """Steps that every prior derives from its ``condition``; r and tau_r broadcast, usually (N, B).

    Results have the dtype of r. A subclass is a frozen dataclass of parameters, each a number or one
    value per column (B,), with ``condition``, ``log_partition``, ``maximize`` and ``scaled``. It states its
    ``modes``; where max-sum GAMP is one of them there are also ``prox`` and ``penalty``.
    """

    modes: ClassVar[tuple[str, ...]] = ("sum-product",)
    # What parameters measure: squares of w or of 1 / w (float32 holds larger ones), probabilities (which may
    # be as small as they like), and places where the density may be narrow, for quadrature.
    squares: ClassVar[tuple[str, ...]] = ()
    shares: ClassVar[tuple[str, ...]] = ()
    locations: ClassVar[tuple[str, ...]] = ()
    l1_name: ClassVar[str] = ""  # of the parameter that is an l1 penalty, if there is one
    # Whether w is zero with a probability, 1 - its parameter ``rate``, which the start sets by that name.
    # Every weight may then have a rate of its own: ``expect_local`` and ``posterior_included`` (see
    # ``Bernoulli``) do the steps.
    has_atom: ClassVar[bool] = False

    @property
    def learnable(self) -> tuple[str, ...]:
        """Names of the parameters that ``maximize`` can update."""
        raise NotImplementedError

    @property
    def default_learn(self) -> tuple[str, ...]:
        """Names of the parameters updated when the caller does not choose."""
        raise NotImplementedError

    @property
    def useful_range(self) -> dict[str, tuple[float, float]]:
        """Between which values a learnt parameter says something, by name; at an end the data say nothing."""
        return {}

    def condition(self, r: ArrayLike, tau_r: ArrayLike) -> ScalarPosterior:
        """Posterior of w given r = w + N(0, tau_r)."""
        raise NotImplementedError

    def log_partition(self, r: ArrayLike, tau_r: ArrayLike) -> Array:
        """Log of the integral of p(w) N(w; r, tau_r) over w."""
        raise NotImplementedError

    def maximize(self: P, statistics: Statistics, learn: Iterable[str] | None = None) -> P:
        """M-step (eq. generic_em): the prior of largest expected log-density, given the sums of ``expect``.

        Where a weight has hidden choices, as in a mixture, the density is that of weight and choice.
        """
        raise NotImplementedError

    def posterior(self, r: ArrayLike, tau_r: ArrayLike) -> Moments:
        """Mean and variance of p(w | r): the sum-product step, lines 16 and 17 of Algorithm 1."""
        return finished(self.condition(r, tau_r).moments(), r)

    def expect(
        self, r: ArrayLike, tau_r: ArrayLike, weights: Array | None = None
    ) -> tuple[Moments, Statistics]:
        """Posterior moments and, from the same pass, the sums over rows that ``maximize`` takes.

        The sums, (B,) or (L, B), are float64 and additive: blocks of rows may be summed by the caller.
        """
        given = self.condition(r, tau_r)
        return finished(given.moments(), r), given.statistics(weights)

    def em_update(
        self: P,
        r: ArrayLike,
        tau_r: ArrayLike,
        learn: Iterable[str] | None = None,
        weights: Array | None = None,
    ) -> P:
        """One expectation-maximisation step, the second sum of the paper's eq. generic_em."""
        return self.maximize(self.condition(r, tau_r).statistics(weights), learn)

    def inclusion(self, r: ArrayLike, tau_r: ArrayLike) -> Array:
        """P(w != 0 | r), which is 1 for a prior without an atom at zero."""
        r, tau_r = channel(r, tau_r)
        return np.ones(
            np.broadcast_shapes(r.shape, tau_r.shape, *column_shapes(self).values()), dtype=r.dtype
        )

    def scaled(self: P, factor: Parameter) -> P:
        """The prior of factor times w, for a positive factor."""
        raise NotImplementedError

    def fused_step(self, log_odds: Array | None = None) -> StepFunction | None:
        """The sum-product step of one block in a single compiled pass over float32, where there is one.

        ``log_odds`` as in ``step_function``.
        """
        return None

    def require_mode(self, mode: str) -> None:
        """Refuse a mode that is not among ``modes``."""
        if mode not in self.modes:
            raise ValueError(
                f"A {type(self).__name__} prior has no {mode} step. Use mode='sum-product', or max-sum with "
                "a Gaussian, Laplace or ElasticNet prior."
            )

    def prox(self, r: ArrayLike, tau_r: ArrayLike) -> Moments:
        """Proximal point and tau_r times its slope: the max-sum step, lines 19 and 20 of Algorithm 1."""
        self.require_mode("max-sum")
        raise NotImplementedError

    def penalty(self, w: ArrayLike) -> Array:
        """-log p(w) up to a constant: the regulariser that max-sum GAMP minimises."""
        raise ValueError(
            f"A {type(self).__name__} prior has no penalty. Use a Gaussian, Laplace or ElasticNet prior."
        )


def channel(r: ArrayLike, tau_r: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """R and tau_r as arrays of one floating dtype, that of r."""
    r = np.asarray(r)
    if r.dtype not in (np.float32, np.float64):
        r = r.astype(np.float64)
    return r, np.asarray(tau_r, dtype=r.dtype)


def finished(moments: Moments, r: ArrayLike) -> Moments:
    """Moments as full writable arrays in the dtype of r."""
    dtype = np.float32 if getattr(r, "dtype", None) == np.float32 else np.float64
    shape = common_shape(*moments)
    return Moments(*(_full(part, shape, np.dtype(dtype)) for part in moments))


def _full(part: Array, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    return spread(part, shape).astype(dtype, copy=part.shape != shape)
