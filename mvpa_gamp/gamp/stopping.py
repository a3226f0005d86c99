"""What a run is judged by, when a column ends, the sentence on why, and how large its steps are until then.

One number per column judges: MAP cost, Bethe free energy or cavity score. A step is halved when the run
swings and grows back while it descends. Damped GAMP is not a descent method, so a move is compared with the
worst of the last few moves. What this cannot see, a cycle in which nothing improves, lowers the ceiling of
the step.
"""

from collections import deque
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .design import Design
from .iteration import Output, State
from .moments import Array, floored
from .result import (
    AT_CHANCE,
    CAVITY,
    DIVERGED,
    FIXED_POINT,
    FOUND_NOTHING,
    ITERATION_LIMIT,
    NOT_FINITE,
    GampResult,
)
from .scalar_steps import counted
from .settings import ResolvedSettings

_MAX_RETRIES = 12  # halvings of the step before a non-finite column is given up
# Gain of the cavity score, in nats per sample, over the last iterations of the patience that keeps a run
# going: on separable data a growing slab improves it for ever by less and less.
_CLEAR_GAIN = 5e-3
# A damped run dips below the score of its start first; it has this many times the patience to rise above.
_DIP = 3
# Below its start by so many nats per sample, the score tells of a run that went astray, and by the second
# number it does so alone. Labels without any effect end 0 to 0.29 below.
_ASTRAY, _FAR_ASTRAY = 0.05, 0.5
_TOLD_APART = 0.65  # area under the curve of the training rows; of a run that went astray it is less
_NO_GAIN = 1e-4  # nats per sample


class Stopping:
    """The stopping rule and what it remembers of every column of the whole problem, (B,) each."""

    def __init__(self, settings: ResolvedSettings, n_columns: int) -> None:
        self.settings = settings
        self.n_iter = np.zeros(n_columns, dtype=int)
        self.status = np.full(n_columns, ITERATION_LIMIT, dtype=object)
        self.start_score = np.full(n_columns, -np.inf)
        # Best score so far of every column, after each of the last iterations: as many as the patience.
        self._best_scores = deque([self.start_score.copy()], maxlen=settings.patience)

    def is_eligible(self, iteration: int) -> bool:
        """Whether the state after so many iterations may be chosen: the first, almost empty ones may not."""
        return iteration >= max(1, round(0.5 / self.settings.damping))

    def note_score(self, columns: NDArray, score: Array, iteration: int) -> None:
        """Remember the cavity scores of the running columns."""
        if iteration == 0:
            self.start_score[columns] = score
        best = self._best_scores[-1].copy()
        if self.is_eligible(iteration):
            best[columns] = np.fmax(best[columns], score)
        self._best_scores.append(best)

    def ended(self, columns: NDArray, still: NDArray, failures: NDArray, iteration: int) -> NDArray:
        """Which of the running columns end, (b,) bool; notes when and why.

        ``still`` says which ones stand still, ``failures`` how often each was non-finite in a row.
        """
        reasons = np.full(columns.size, "", dtype=object)
        if iteration >= self.settings.max_iter:
            reasons[:] = ITERATION_LIMIT
        if self.settings.stop == "cavity":
            reasons[self._out_of_patience(columns, iteration)] = CAVITY
        reasons[still] = FIXED_POINT
        reasons[failures > _MAX_RETRIES] = NOT_FINITE
        ended = reasons != ""
        self.n_iter[columns] = iteration
        self.status[columns[ended]] = reasons[ended]
        return ended

    def _out_of_patience(self, columns: NDArray, iteration: int) -> NDArray:
        """Whether the patience has brought no clear gain.

        The gain is that of a window which moves with the run: where the score creeps, a last digit can move
        its end by an iteration, not by a whole patience.
        """
        patience, best = self.settings.patience, self._best_scores[-1][columns]
        before = self._best_scores[0][columns] if len(self._best_scores) == patience else -np.inf
        taken_off = best > self.start_score[columns] + _CLEAR_GAIN
        return np.where(taken_off, best <= before + _CLEAR_GAIN, iteration >= _DIP * patience)


def judged(result: GampResult, start_score: Array, y: Array, train: NDArray) -> NDArray:
    """Statuses (B,) of a run, with those that ended as intended looked at once more.

    A run may stop where it should and be wrong all the same: its score below that of the start, its
    training rows predicted at chance.
    """
    gain = result.cavity_score - start_score
    area, spread = training_areas(result.z, y, train)
    wide = len(result.coef) > train.sum(axis=0)  # then even noise tells the training rows apart
    astray = (wide & (gain < -_ASTRAY) & (area < _TOLD_APART)) | (gain < -_FAR_ASTRAY)
    status = np.where(area <= 0.5 + spread, np.where(wide, AT_CHANCE, FOUND_NOTHING), result.status)
    status = np.where(gain <= _NO_GAIN, FOUND_NOTHING, status)
    return np.where(result.converged, np.where(astray, DIVERGED, status), result.status)


def training_areas(decision: NDArray, y: NDArray, train: NDArray) -> tuple[Array, Array]:
    """Area under the curve of the training rows of each column, and its standard error at chance, (B,)."""
    area, spread = np.empty(train.shape[1]), np.empty(train.shape[1])
    for b, rows in enumerate(train.T):
        first, values = y[rows, b] > 0, decision[rows, b]
        ours, others = values[first], np.sort(values[~first])
        n, m = ours.size, others.size
        below = sum(np.searchsorted(others, ours, side).sum() for side in ("left", "right"))  # ties: a half
        area[b] = below / (2 * n * m)
        spread[b] = np.sqrt((n + m + 1) / (12 * n * m))
    return area, spread


_GROWTH, _SHRINK = 1.1, 0.5
_SMALLEST = 2e-3  # a rejected step shrinks to this at most; then the move is accepted
_WINDOW = 10  # accepted moves among which the worst is the limit of the next
_FREE = 1.0  # summed steps before the objective counts: until then the slopes are leaving their start
_FLAT = 1e-9  # relative decrease of the objective below which it says nothing any more
# The objective is quadratic around its minimum, so the distance of a move, its residual, bounds what a rise
# may be without harm; an intercept that settles before the weights costs a few percent on the way.
_SLACK = 0.05
# Below this residual a run that keeps settling is believed, whatever its objective: tuned models and
# likelihoods that are not log-concave have fixed points beside the minimum.
_CLOSE = 0.1
# A step that just failed is the edge of stability: stay below it, and forget it in about a hundred moves.
_EDGE, _RECOVERY, _LOWEST_EDGE = 0.9, 1.01, 0.05
_PROGRESS = np.array([[1e-6], [1e-3]])  # relative decreases of objective and residual that count as progress
_STALLED = 10.0  # summed steps without progress after which the ceiling is halved


@dataclass
class Damping:
    """Steps of B columns and the past they depend on."""

    step: Array  # (B,)
    ceiling: Array  # (B,) largest step allowed
    recent: Array  # (2, _WINDOW, B) objectives and residuals of accepted moves
    best: Array  # (2, B) smallest objective and residual so far
    travelled: Array  # (B,) summed steps
    waited: Array  # (B,) summed steps since the last progress
    failures: NDArray  # (B,) non-finite moves in a row

    @classmethod
    def begin(cls, step: float, n_columns: int) -> "Damping":
        """The same step for every column."""
        zeros, ones = np.zeros(n_columns), np.ones(n_columns)
        nothing = np.full((2, _WINDOW, n_columns), -np.inf)
        return cls(step * ones, ones, nothing, -nothing[:, 0], zeros, zeros, zeros.astype(int))

    def take(self, columns: Any) -> "Damping":
        """Some of the columns."""
        return Damping(**{item.name: getattr(self, item.name)[..., columns] for item in fields(self)})

    def judge(self, objective: Array, residual: Array, eps: float) -> NDArray:
        """Whether each move is accepted, (B,), given its objective and residual; remembers those that are.

        Far from a fixed point only the objective tells where to go; close to it the objective is flat to
        rounding (``eps``), and only the residual tells swinging from settling.
        """
        limit, largest = self.recent.max(axis=1)
        scale = np.abs(np.where(np.isfinite(limit), limit, 0.0))
        slack = (50 * eps + _SLACK * np.square(np.minimum(residual, 1.0))) * (1 + scale)
        accepted = (objective <= limit + slack) & (
            (objective < limit - _FLAT * scale) | (residual <= largest)
        )
        accepted |= residual <= np.minimum(self.recent[1].min(axis=0), _CLOSE)
        accepted |= (self.step <= _SMALLEST) | (self.travelled < _FREE)
        accepted &= np.isfinite(objective) & np.isfinite(residual)
        self._remember(np.array([objective, residual]), accepted)
        return accepted

    def _remember(self, now: Array, accepted: NDArray) -> None:
        shifted = np.concatenate([self.recent[:, 1:], now[:, None]], axis=1)
        self.recent = np.where(accepted, shifted, self.recent)
        progress = (np.where(accepted, self.best - now, 0.0) > _PROGRESS * np.abs(now)).any(axis=0)
        self.best = np.where(accepted, np.minimum(self.best, now), self.best)
        moved = np.where(accepted, self.step, 0.0)
        self.travelled = self.travelled + moved
        self.waited = np.where(progress, 0.0, self.waited + moved)

    def adapt(self, accepted: NDArray, finite: NDArray, grow: bool) -> None:
        """Halve the step of rejected moves and, if asked, let the others grow up to their ceiling."""
        self.failures = np.where(finite, 0, self.failures + 1)
        smallest = np.minimum(_SMALLEST, self.step)
        edge = np.minimum(self.ceiling, np.maximum(_EDGE * self.step, _LOWEST_EDGE))
        ceiling = np.where(accepted, np.minimum(_RECOVERY * self.ceiling, 1.0), edge)
        stalled = self.waited > _STALLED
        self.ceiling = np.maximum(np.where(stalled, _SHRINK * ceiling, ceiling), smallest)
        self.waited = np.where(stalled, 0.0, self.waited)
        step = self.step * np.where(accepted, _GROWTH if grow else 1.0, _SHRINK)
        self.step = np.clip(step, smallest, self.ceiling)


def cavity_score(out: Output, row_counts: Array) -> Array:
    """Mean leave-one-out log-likelihood of the training rows, (B,).

    p and tau_p are the predictions of a row from all the others, so the log-partition of the row is
    its leave-one-out predictive log-likelihood: a cross-validation that costs nothing.
    """
    return mean_row(out.log_partition, row_counts)


def mean_row(values: Array, row_counts: Array) -> Array:
    """Mean over the training rows, each as often as it counts, (B,)."""
    return _row_sum(values, row_counts) / row_counts.sum(axis=0)


def _row_sum(values: Array, row_counts: Array) -> Array:
    """Sum over the training rows, each as often as it counts, (B,)."""
    return counted(np.where(row_counts > 0, values, 0.0), row_counts).sum(axis=0)


def map_cost(state: State, y: Array, row_counts: Array, likelihood: Any, prior: Any) -> Array:
    """Summed loss of the training rows plus the penalty of the weights (eq. reg_loss_min), (B,)."""
    loss = likelihood.loss(y, state.z + state.intercept)
    return _row_sum(loss, row_counts) + prior.penalty(state.weights.w).sum(axis=0, dtype=float)


def bethe_free_energy(state: State, y: Array, design: Design, likelihood: Any, prior: Any) -> Array:
    """Bethe free energy of a sum-product state, (B,); GAMP's fixed points are its stationary points.

    F = sum_n KL(q(w_n) || p(w_n)) - sum_m [log C(p_m, tau_p) + (z_m - p_m)^2 / (2 tau_p)], where q is the
    posterior at (r, tau_r) and p_m is chosen so that the posterior mean at p_m is z_m = x_m' w.
    """
    tau_p = floored(state.tau_z)
    z = state.z + state.intercept
    p = z - state.s * tau_p
    for _ in range(_NEWTON_STEPS):
        s, tau_s = likelihood.score(y, p, tau_p)
        slope = np.maximum(1 - tau_p * tau_s, 1e-6)  # d posterior mean / d p
        reach = 3 * np.sqrt(tau_p) + 1
        p = p + np.nan_to_num(np.clip((z - p - tau_p * s) / slope, -reach, reach))
    rows = likelihood.log_partition(y, p, tau_p) + np.square(z - p) / (2 * tau_p)
    return _divergence(state, prior) - _row_sum(rows, design.row_counts)


# The correction starts at the running p, which is right at a fixed point: a few steps suffice.
_NEWTON_STEPS = 4


def _divergence(state: State, prior: Any) -> Array:
    """sum_n KL(q(w_n) || p(w_n)) with q(w) = p(w) N(w; r, tau_r) / C."""
    r, tau_r = (part.astype(float) for part in (state.weights.r, state.weights.tau_r))
    mean, var = prior.posterior(r, tau_r)
    second = np.square(mean - r) + var
    log_density = -0.5 * (np.log(2 * np.pi * tau_r) + second / tau_r)
    return (log_density - prior.log_partition(r, tau_r)).sum(axis=0)
