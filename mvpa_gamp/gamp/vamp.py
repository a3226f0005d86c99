"""Vector approximate message passing (VAMP) with a Gaussian likelihood, its linear step in row space.

Two estimates of the weights take turns until they agree (Rangan, Schniter & Fletcher 2019): a linear one,
which knows the rows and takes the weights for independent Gaussians of mean r2 and precision g2, and one that
knows the prior and takes the linear estimate for the weights plus white noise of precision g1. Nothing is
learnt: the variance of the noise, the rate of the prior and its slab stay as they are. docs/mathematics.md
derives it; the two steps are in vamp_steps.py.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .moments import Array
from .neighbours import Neighbours
from .parameters import expand, put
from .priors.gaussian import Gaussian
from .row_space import RowSpace, SetColumns
from .starts import FEATURES_PER_ROW, LARGEST_RATE
from .vamp_steps import Linear, State, denoise, linear_step, to_next, weight_variances

AGREES = "Converged: the two estimates of the weights agree."
DISAGREES = (
    "Not converged: the two estimates of the weights still differ. Take smaller steps (a lower damping), or "
    "a higher rate."
)
NOT_FINITE = (
    "Not converged: the iteration turned non-finite; the weights are those of its first step. Take smaller "
    "steps (a lower damping), or more noise."
)


@dataclass(frozen=True)
class VampSettings:
    """Settings of one fit.

    rate : prior probability that a weight is not zero; None: log2(1 + J) min(0.1, c n / 2N) for n training
        rows and J responses, as labels of J + 1 classes carry so many bits; where neighbours are known, c
        features are one resolution element (``RowSpace.smoothness``), else 1. Not learnt.
    rho, white : the noise of a group of rows, in units of the signal: its own deviating weights, and white
        noise. The noise is (rho + white) / (1 + rho + white) of the targets' variance. Not learnt.
    damping : size of a step, in (0, 1].
    least_iter, max_iter : iterations of every fit; more where its two estimates differ, up to ``max_iter``.
    tol : relative difference of the two estimates' scores that ends a fit, after ``least_iter``.
    """

    rate: float | None = None
    rho: float = 1.0
    white: float = 1.0
    damping: float = 0.5
    least_iter: int = 15
    max_iter: int = 60
    tol: float = 0.1

    def __post_init__(self) -> None:
        positive = min(self.white, self.tol, self.damping) > 0
        whole = 1 <= self.least_iter <= self.max_iter
        in_range = self.rho >= 0 and self.damping <= 1 and (self.rate is None or 0 < self.rate <= 1)
        if not (positive and whole and in_range):
            raise ValueError(
                "VampSettings needs 0 < rate <= 1 or None, rho of 0 or more, white and tol above 0, "
                f"damping in (0, 1] and 1 <= least_iter <= max_iter, got {self}. Correct them."
            )

    def rate_for(self, n_rows: float, n_features: float, n_responses: int = 1) -> float:
        """The rate of a training set."""
        if self.rate is not None:
            return self.rate
        bits = math.log2(1 + n_responses)
        return min(1.0, bits * min(LARGEST_RATE, FEATURES_PER_ROW * n_rows / n_features))


_BY_COLUMN_LAST = ("coef", "coef_var", "inclusion", "z", "left_out")  # (N or M, B, ...)


@dataclass(frozen=True)
class VampResult:
    """The fits of B columns, of J responses each, to M rows and N features; weights go with X as it is.

    ``left_out`` are predictions of every training row by the other groups, given the prior of every weight
    that the whole fit ended with; NaN off the training rows. ``gap`` is |X (w - w2)| / |X w| of the two
    estimates, over training rows.
    """

    coef: Array  # (N, B, J)
    coef_var: Array  # (N, B, J)
    inclusion: Array  # (N, B)
    intercept: Array  # (B, J)
    z: Array  # (M, B, J) X coef + intercept of all rows
    left_out: Array  # (M, B, J)
    gap: Array  # (B,)
    n_iter: NDArray  # (B,)
    status: NDArray  # (B,) sentences
    rate: Array  # (B,)
    slab: Any  # prior of the weights of scaled features and targets, parameters (B,)
    noise: Array  # (B,) share of the targets' variance

    @property
    def converged(self) -> NDArray:
        """Whether each column's two estimates agree, (B,) bool."""
        return self.status == AGREES

    def with_columns(self, columns: NDArray, other: "VampResult") -> "VampResult":
        """A copy in which some columns are those of ``other``."""
        changes: dict[str, Any] = {"slab": put(self.slab, columns, other.slab)}
        for each in fields(self):
            if each.name == "slab":
                continue
            value = getattr(self, each.name).copy()
            value[(slice(None), columns) if each.name in _BY_COLUMN_LAST else columns] = getattr(
                other, each.name
            )
            changes[each.name] = value
        return replace(self, **changes)


def solve_vamp(
    space: RowSpace,
    sets: Sequence[SetColumns],
    Y: NDArray,
    settings: VampSettings | None = None,
    slab: Any = None,
    neighbours: Neighbours | None = None,
) -> VampResult:
    """Fit B columns of J responses with shared inclusions.

    ``sets`` are training sets with the numbers of the columns that train on them, together 0..B-1. Y is
    (M, B) or (M, B, J); rows off a column's training rows are never read. ``slab`` is the prior of weights
    that are not zero, of variance about one (None: Gaussian); its scale is set here, by the part of
    the targets that is not noise.

    Parameters
    ----------
    space
        X and its Gram matrix.
    sets
        Training sets with the numbers of their columns.
    Y
        Responses (M, B) or (M, B, J).
    settings
        None: the defaults.
    slab
        Prior of weights that are not zero; None: Gaussian.
    neighbours
        Which features are neighbours; None: none are.

    Returns
    -------
    VampResult
        Weights, inclusion probabilities (N, B), statuses (B,).

    Examples
    --------
    >>> import numpy as np
    >>> from mvpa_gamp.gamp.row_space import RowSpace, SetColumns, training_set
    >>> from mvpa_gamp.gamp.vamp import solve_vamp
    >>> X = np.random.default_rng(0).standard_normal((60, 200))
    >>> space, y = RowSpace(X), X[:, 3] - X[:, 7]
    >>> everything = training_set(space.gram, np.ones(60), np.arange(60) % 6)
    >>> fit = solve_vamp(space, [SetColumns(everything, np.array([0]))], y[:, None])
    >>> np.sort(np.argsort(-fit.inclusion[:, 0])[:2]).tolist(), bool(fit.converged[0])
    ([3, 7], True)
    """
    settings = settings or VampSettings()
    found = _solve(space, sets, Y, settings, slab or Gaussian(), neighbours)
    failed = np.flatnonzero(found.status == NOT_FINITE)
    if not failed.size or settings.max_iter == 1:
        return found
    first = replace(settings, least_iter=1, max_iter=1)
    again = _solve(space, _some_columns(sets, failed), Y[:, failed], first, slab or Gaussian(), neighbours)
    return found.with_columns(failed, replace(again, status=found.status[failed]))


def _solve(
    space: RowSpace,
    sets: Sequence[SetColumns],
    Y: NDArray,
    settings: VampSettings,
    slab: Any,
    neighbours: Neighbours | None,
) -> VampResult:
    """``solve_vamp`` without a second try."""
    targets = np.moveaxis(Y[:, :, None] if Y.ndim == 2 else Y, 0, -1)  # (B, J, M)
    targets, scale = _standardised(targets, sets)
    state = _start(space, sets, targets, settings, slab, neighbours)
    kept = _Kept(space, state, settings)
    active, now = np.arange(len(targets)), list(sets)
    for iteration in range(1, settings.max_iter + 1):
        linear = linear_step(space, now, targets[active], state)
        damping = settings.damping if iteration <= settings.least_iter else settings.damping / 2
        denoise(space, linear, state, damping if iteration > 1 else 1.0, neighbours)
        gap = _gaps(now, linear, state)
        ended = ~np.isfinite(gap) | (iteration == settings.max_iter)
        ended |= (gap <= settings.tol) & (iteration >= settings.least_iter)
        if ended.any():
            left_out = _left_out(now, targets[active], linear, state)
            kept.put(active, ended, state, left_out, gap, iteration)
        if ended.all():
            break
        to_next(state, damping)
        if ended.any():
            state, active = state.take(np.flatnonzero(~ended)), active[~ended]
            now = _some_columns(sets, active)
    return kept.result(sets, Y, scale)


def _standardised(targets: NDArray, sets: Sequence[SetColumns]) -> tuple[NDArray, NDArray]:
    """Targets (B, J, M) around training means, of variance one over all J, zero elsewhere; and the scale."""
    out, scale = np.zeros(targets.shape), np.empty(len(targets))
    for of, columns in sets:
        y = of.centred(targets[columns][:, :, of.rows])
        scale[columns] = np.sqrt((np.square(y) @ of.share).mean(axis=1))
        if not (scale[columns] > 0).all() or not np.isfinite(scale[columns]).all():
            raise ValueError(
                "The targets of every fit must be finite and differ between its training rows, got some that "
                "do not. Check the targets, or leave that fit out."
            )
        out[np.ix_(columns, np.arange(targets.shape[1]), of.rows)] = y / scale[columns, None, None]
    return out, scale


def _start(
    space: RowSpace,
    sets: Sequence[SetColumns],
    targets: NDArray,
    settings: VampSettings,
    slab: Any,
    neighbours: Neighbours | None,
) -> State:
    """All weights zero, with the slab variance that gives the scores the variance that is not noise."""
    n_columns, n_responses, n_rows = targets.shape
    n_elements = space.shape[1] / space.smoothness(neighbours)
    rate, noise, variance = (np.empty(n_columns) for _ in range(3))
    for of, columns in sets:
        rate[columns] = settings.rate_for(of.total, n_elements, n_responses)
        noise[columns], variance[columns] = of.noise_share, of.signal_share / (rate[columns] * of.d)
    w = np.zeros((n_columns, n_responses, space.shape[1]), dtype=space.dtype)
    x_w = np.zeros((n_columns, n_responses, n_rows))
    return State(
        w=w,
        r1=np.zeros_like(w),
        r2=np.zeros_like(w),
        pi=np.zeros((n_columns, space.shape[1]), dtype=space.dtype),
        next_r2=np.zeros((3, n_columns)),
        x_w=x_w,
        x_r1=np.zeros_like(x_w),
        x_r2=np.zeros_like(x_w),
        g1=np.ones(n_columns),
        g2=1 / (rate * variance),
        mean_variance=np.zeros(n_columns),
        slab=expand(slab, n_columns).scaled(np.sqrt(variance)),
        log_odds=None,
        rate=rate,
        noise=noise,
    )


def _gaps(sets: Sequence[SetColumns], linear: Linear, state: State) -> Array:
    gap = np.empty(len(state.rate))
    for of, columns in sets:
        w, w2 = (of.centred(x[columns][:, :, of.rows]) for x in (state.x_w, linear.x_w2))
        size = np.sqrt(np.square(w).sum(axis=(1, 2)))
        gap[columns] = np.sqrt(np.square(w - w2).sum(axis=(1, 2))) / np.maximum(size, np.finfo(float).tiny)
    return gap


def _left_out(sets: Sequence[SetColumns], targets: NDArray, linear: Linear, state: State) -> NDArray:
    out = np.full(targets.shape, np.nan)
    for of, columns in sets:
        for b in columns:
            precision = (1 - of.shrinkage) * of.s + state.g2[b] * state.noise[b] / linear.kept[b]
            dual = linear.dual[b][:, of.rows] + linear.total[b][:, None] * of.share
            out[b][:, of.rows] = of.leave_group_out(targets[b][:, of.rows].T, dual.T, precision).T
    return out


def _some_columns(sets: Sequence[SetColumns], active: NDArray) -> list[SetColumns]:
    """The sets with their columns as places among ``active``, without those that have none."""
    kept = (SetColumns(of, np.flatnonzero(np.isin(active, columns))) for of, columns in sets)
    return [each for each in kept if each.columns.size]


class _Kept:
    """Columns as they ended, in units of scaled features and standardised targets."""

    def __init__(self, space: RowSpace, state: State, settings: VampSettings) -> None:
        self.space, self.settings = space, settings
        self.w = self.variance = self.pi = np.zeros(0, dtype=space.dtype)  # made when columns end
        n_columns = len(state.rate)
        self.x_w = np.zeros(state.x_w.shape)
        self.left_out = np.full(state.x_w.shape, np.nan)
        self.gap, self.n_iter = np.empty(n_columns), np.empty(n_columns, dtype=int)
        self.rate, self.noise, self.slab = state.rate, state.noise, state.slab
        self.shape = state.w.shape

    def put(
        self, active: NDArray, ended: NDArray, state: State, left_out: NDArray, gap: Array, iteration: int
    ) -> None:
        """Take over the columns of ``state`` that ended; ``active`` are their numbers."""
        at = active[ended]
        self.gap[at], self.n_iter[at], self.left_out[at] = gap[ended], iteration, left_out[ended]
        finite = np.flatnonzero(ended & np.isfinite(gap))
        good, variance = active[finite], weight_variances(state)
        self.x_w[good] = state.x_w[finite]
        if finite.size == self.shape[0]:  # all at once, the usual case
            self.w, self.pi, self.variance = state.w, state.pi, variance
            return
        if not self.w.size:
            self.w, self.variance = (np.zeros(self.shape, dtype=self.w.dtype) for _ in range(2))
            self.pi = np.zeros(self.shape[::2], dtype=self.w.dtype)
        self.w[good], self.pi[good], self.variance[good] = state.w[finite], state.pi[finite], variance[finite]

    def result(self, sets: Sequence[SetColumns], Y: NDArray, scale: NDArray) -> VampResult:
        """The fits in the units of X and Y."""
        by_feature, of_targets = self.space.inverse_scale, scale[:, None, None]
        coef = self.w * by_feature * of_targets.astype(self.w.dtype)
        variance = self.variance * np.square(by_feature) * np.square(of_targets).astype(self.w.dtype)
        z, intercept = self.x_w * of_targets, np.empty(self.x_w.shape[:2])
        means = np.moveaxis(Y[:, :, None] if Y.ndim == 2 else Y, 0, -1)
        left_out = self.left_out * of_targets
        for of, columns in sets:
            mean = means[columns][:, :, of.rows] @ of.share
            left_out[columns] += mean[:, :, None]
            intercept[columns] = mean - z[columns][:, :, of.rows] @ of.share
        z += intercept[:, :, None]
        status = np.where(np.isfinite(self.gap), DISAGREES, NOT_FINITE).astype(object)
        status[self.gap <= self.settings.tol] = AGREES
        return VampResult(
            coef=np.moveaxis(coef, -1, 0),
            coef_var=np.moveaxis(variance, -1, 0),
            inclusion=self.pi.T,
            intercept=intercept - self.space.mean_scores(coef),
            z=np.moveaxis(z, -1, 0),
            left_out=np.moveaxis(left_out, -1, 0),
            gap=self.gap,
            n_iter=self.n_iter,
            status=status,
            rate=self.rate,
            slab=self.slab,
            noise=self.noise,
        )
