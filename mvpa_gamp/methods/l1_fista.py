"""Accelerated proximal gradient with backtracking for L1 logistic regression, many fits in step.

This is the scheme of TFOCS (Becker, Candes & Grant 2011) for the paper's L1-LR: Nesterov acceleration,
a step length per fit that grows and is cut back when the loss curves more than assumed, restart of the
momentum when it points uphill (O'Donoghue & Candes 2015), and a stop on the duality gap. X w is carried
along with w, so an iteration costs one product with X and one with X', for all fits together.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .l1_duality import balance, gap, residual

_CHECK_EVERY = 10  # iterations between duality gaps: each costs one more product with X'
_RELAX = 0.98  # the assumed curvature shrinks by this after a good step ...
_TIGHTEN = (1.5, 2.0)  # ... and grows by a factor in this range after a bad one
_ROUNDING = 1e-9  # slack of the curvature test, well above float64 noise of its sums


class Problem(NamedTuple):
    """U fits over the same W coefficients; the intercept, if any, is a coefficient with zero penalty."""

    X: Any  # (M, W)
    labels: NDArray  # (U, M): -1, +1, or 0 on rows not used
    penalty: NDArray  # (U, W): lambda; 0 for free coefficients, inf for those that must stay zero
    tol: NDArray  # (U,) duality gap at which a fit is done


class Solution(NamedTuple):
    """Coefficients (U, W), assumed curvature, last duality gap and iterations, (U,) each."""

    coef: NDArray
    curvature: NDArray
    gap: NDArray
    n_iter: NDArray


class _State(NamedTuple):
    coef: NDArray  # (U, W)
    decision: NDArray  # (U, M) X coef
    ahead: NDArray  # (U, W) the extrapolated point
    ahead_decision: NDArray  # (U, M)
    momentum: NDArray  # (U, 1)
    curvature: NDArray  # (U, 1)


def accelerated_proximal_gradient(
    problem: Problem, coef: NDArray, curvature: NDArray, max_iter: int, balanced: bool
) -> Solution:
    """Minimise the objective of ``l1_duality`` for every fit from ``coef`` (U, W) to its own tolerance.

    curvature (U,) is a first guess of the Lipschitz constant; any positive value works. balanced says
    that a free intercept is among the coefficients. Fits that are done leave the batch; they never
    influence one another.
    """
    state = _start(problem, coef, curvature)
    n_fits = len(coef)
    found = Solution(coef.copy(), curvature.copy(), np.full(n_fits, np.inf), np.zeros(n_fits, dtype=int))
    live = np.arange(n_fits)
    for n_iter in range(1, max_iter + 1):
        state = _step(problem, state)
        if n_iter % _CHECK_EVERY and n_iter < max_iter:
            continue
        gaps = _restricted_gap(problem, state, balanced)
        _record(found, live, state, gaps, n_iter)
        open_ = gaps > problem.tol
        if not open_.any():
            break
        if not open_.all():
            live = live[open_]
            state = _State(*(part[open_] for part in state))
            problem = Problem(problem.X, *(part[open_] for part in problem[1:]))
    return found


def _start(problem: Problem, coef: NDArray, curvature: NDArray) -> _State:
    decision = np.asarray(coef @ problem.X.T)
    return _State(coef, decision, coef, decision, np.ones((len(coef), 1)), curvature[:, None])


def _step(problem: Problem, old: _State) -> _State:
    """One proximal step from the extrapolated point; fits whose step was too long only shorten it."""
    slope = residual(problem.labels, old.ahead_decision)
    length = 1.0 / old.curvature
    moved = old.ahead + length * (slope @ problem.X)
    threshold = length * problem.penalty
    coef = moved - np.clip(moved, -threshold, threshold)
    decision = np.asarray(coef @ problem.X.T)

    jump = coef - old.ahead
    bend = _dot(decision - old.ahead_decision, slope - residual(problem.labels, decision))
    squared = _dot(jump, jump)
    good = bend <= old.curvature * squared * (1.0 + _ROUNDING)

    change = coef - old.coef
    uphill = _dot(jump, change) < 0.0
    momentum = np.where(uphill, 1.0, 0.5 + np.sqrt(0.25 + old.momentum**2))
    beta = np.where(uphill, 0.0, (old.momentum - 1.0) / momentum)
    new = _State(
        coef,
        decision,
        coef + beta * change,
        decision + beta * (decision - old.decision),
        momentum,
        _RELAX * old.curvature,
    )
    if good.all():
        return new
    needed = np.clip(bend / np.maximum(squared, 1e-300), *(factor * old.curvature for factor in _TIGHTEN))
    kept = old._replace(curvature=needed)
    return _State(*(np.where(good, a, b) for a, b in zip(new, kept, strict=True)))


def _restricted_gap(problem: Problem, state: _State, balanced: bool) -> NDArray:
    """Duality gap (U,) of the problem over these W coefficients."""
    candidate = residual(problem.labels, state.decision)
    if balanced:
        candidate = balance(problem.labels, candidate)
    correlation = np.abs(candidate @ problem.X)
    penalised = problem.penalty > 0
    room = problem.penalty / np.maximum(correlation, 1e-300)
    shrink = np.minimum(1.0, np.min(room, axis=1, where=penalised, initial=np.inf))
    used = np.where(penalised & (state.coef != 0), problem.penalty, 0.0)
    return gap(problem.labels, state.decision, _dot(used, np.abs(state.coef))[:, 0], candidate, shrink)


def _record(found: Solution, live: NDArray, state: _State, gaps: NDArray, n_iter: int) -> None:
    found.coef[live] = state.coef
    found.curvature[live] = state.curvature[:, 0]
    found.gap[live] = gaps
    found.n_iter[live] = n_iter


def _dot(a: NDArray, b: NDArray) -> NDArray:
    """Inner product of matching rows, (U, 1)."""
    return np.einsum("ui,ui->u", a, b)[:, None]
