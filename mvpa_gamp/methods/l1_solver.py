"""L1 logistic regression over all features by working sets, a block of fits at a time.

Each fit works on the few features that matter to it: those it uses, plus those whose correlation with
the residual exceeds its penalty (the KKT conditions allow no such feature outside). The accelerated
solver runs on the union of these sets, each fit on its own; then one product with all of X gives the
duality gap over all features and names the features to add, until that gap is small enough.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import entr, expit

_FIRST = 20  # features in the smallest working set
_GROWTH = 1.5  # factor by which a working set may grow per round
_INNER_SHARE = 0.6  # share of the tolerance spent inside a working set, the rest is for features outside
_FLOAT32_GAP = 1e-5  # float32 products with X carry about 1e-6 of error: gaps below this need float64
_BLOCK_FEATURES = 4096  # features turned into float64 at a time


class Settings(NamedTuple):
    """How exactly to solve: gap relative to the null objective, iterations per working set, intercept."""

    tol: float
    max_iter: int
    fit_intercept: bool


class Fits(NamedTuple):
    """U fits of M rows and N features. ``curvature`` only speeds up a warm start."""

    coef: sparse.csr_array  # (U, N)
    intercept: NDArray  # (U,)
    decision: NDArray  # (U, M) X coef + intercept
    curvature: NDArray  # (U,) NaN before the first iteration
    gap: NDArray  # (U,) duality gap over all features, relative to the null objective
    n_iter: NDArray  # (U,)

    def take(self, fits: Any) -> "Fits":
        """Select fits by slice or index."""
        return Fits(*(part[fits] for part in self))


def null_fits(labels: NDArray, n_features: int, fit_intercept: bool) -> Fits:
    """Return fits without features for labels (U, M); an intercept is the log odds of the classes."""
    n_fits = len(labels)
    intercept = np.zeros(n_fits)
    if fit_intercept:
        sides = (np.where(labels * sign > 0, np.abs(labels), 0.0).sum(axis=1) for sign in (1, -1))
        intercept = np.log(next(sides) / next(sides))
    decision = np.repeat(intercept[:, None], labels.shape[1], axis=1)
    unknown = np.full(n_fits, np.nan)
    coef = sparse.csr_array((n_fits, n_features))
    return Fits(coef, intercept, decision, unknown, unknown, np.zeros(n_fits, dtype=int))


def solve_block(X: Any, labels: NDArray, lam: NDArray, start: Fits, settings: Settings) -> Fits:
    """Minimise the objective of ``l1_duality`` for every fit and its penalty lam (U,), from ``start``.

    X is (M, N), dense or csr; labels (U, M) are -1/+1 on training rows, times their weights, and 0 elsewhere.
    A fit ends when its gap over all N features is within ``settings.tol`` of its null objective, or when its
    solver ran out of iterations or of float precision; the returned ``gap`` tells. Fits do not influence one
    another.
    """
    block = _Block(X, labels, lam, start, settings)
    todo = np.arange(len(labels))
    while True:
        correlation = block.certify(todo)
        still = (block.gap[todo] > block.limit[todo]) & ~block.exhausted[todo]
        todo, correlation = todo[still], correlation[still]
        grown = block.grow(todo, correlation)
        # A set that has nothing to add and was solved already, or is empty, is as good as arithmetic allows.
        todo = todo[grown | ((block.n_iter[todo] == 0) & block.sets[todo].any(axis=1))]
        if not len(todo):
            return block.fits()
        block.descend(todo)


class _Block:
    """The fits of one block while they are being solved, with dense coefficients (U, N)."""

    def __init__(self, X: Any, labels: NDArray, lam: NDArray, start: Fits, settings: Settings) -> None:
        self.X, self.labels, self.lam, self.settings = X, labels, lam, settings
        self.scale = null_objective(labels, settings.fit_intercept)
        self.limit = settings.tol * self.scale
        self.coef = start.coef.toarray()
        self.sets = self.coef != 0
        self.intercept, self.decision = start.intercept.copy(), start.decision.copy()
        self.curvature, self.gap = start.curvature.copy(), np.full(len(labels), np.inf)
        self.n_iter = np.zeros(len(labels), dtype=int)
        self.exhausted = np.zeros(len(labels), dtype=bool)

    def fits(self) -> Fits:
        relative = self.gap / self.scale
        return Fits(
            sparse.csr_array(self.coef), self.intercept, self.decision, self.curvature, relative, self.n_iter
        )

    def certify(self, todo: NDArray) -> NDArray:
        """Update the gaps over all features; return |x_n' residual| of the dual point, (len(todo), N)."""
        labels, decision, lam = self.labels[todo], self.decision[todo], self.lam[todo]
        candidate = residual(labels, decision)
        if self.settings.fit_intercept:
            candidate = balance(labels, candidate)
        correlation = np.abs(_correlate(candidate, self.X, precise=self.settings.tol < _FLOAT32_GAP))
        shrink = np.minimum(1.0, lam / np.maximum(correlation.max(axis=1), 1e-300))
        penalty = lam * np.abs(self.coef[todo]).sum(axis=1)
        self.gap[todo] = gap(labels, decision, penalty, candidate, shrink)
        return correlation

    def grow(self, todo: NDArray, correlation: NDArray) -> NDArray:
        """Add to each working set the features that violate the KKT conditions most; say which sets grew."""
        grown = np.zeros(len(todo), dtype=bool)
        for i, fit in enumerate(todo):
            outside = np.flatnonzero((correlation[i] > self.lam[fit]) & ~self.sets[fit])
            size = np.count_nonzero(self.sets[fit])
            room = max(_FIRST, int(_GROWTH * size)) - size
            if len(outside) > room:
                outside = outside[np.argpartition(-correlation[i, outside], room)[:room]]
            self.sets[fit, outside] = True
            grown[i] = len(outside) > 0
        return grown

    def descend(self, todo: NDArray) -> None:
        """Solve each fit on its working set."""
        features = np.flatnonzero(self.sets[todo].any(axis=0))
        where = np.ix_(todo, features)
        part, bias = _working_matrix(self.X, features, self.settings.fit_intercept)
        penalty = np.where(self.sets[where], self.lam[todo, None], np.inf)
        coef = self.coef[where]
        if bias:
            penalty = np.column_stack([penalty, np.zeros(len(todo))])
            coef = np.column_stack([coef, self.intercept[todo] / bias])
        curvature = np.where(np.isnan(self.curvature[todo]), _least_curvature(part), self.curvature[todo])
        tol = _INNER_SHARE * self.limit[todo]
        found = accelerated_proximal_gradient(
            Problem(part, self.labels[todo], penalty, tol), coef, curvature, self.settings.max_iter, bias > 0
        )
        self.coef[where] = found.coef[:, : len(features)]
        self.intercept[todo] = found.coef[:, -1] * bias if bias else 0.0
        self.decision[todo] = np.asarray(found.coef @ part.T)
        self.curvature[todo] = found.curvature
        self.n_iter[todo] += found.n_iter
        self.exhausted[todo] = found.gap > tol


def _working_matrix(X: Any, features: NDArray, fit_intercept: bool) -> tuple[Any, float]:
    """X over some features in float64, plus a constant column of typical size when there is an intercept.

    Returns the matrix and the value of the constant (0 without one): a constant as large as the features
    keeps the problem well conditioned whatever the units of X.
    """
    part = X[:, features].astype(np.float64)
    if not fit_intercept:
        return part, 0.0
    values = part.data if sparse.issparse(part) else part
    bias = float(np.sqrt(np.sum(values**2) / max(1, part.shape[0] * part.shape[1]))) or 1.0
    constant = np.full((part.shape[0], 1), bias)
    if sparse.issparse(part):
        return sparse.hstack([part, constant], format="csr"), bias
    return np.hstack([part, constant]), bias


def _least_curvature(part: Any) -> float:
    """A quarter of the largest squared column norm: no valid bound of the loss's curvature is smaller."""
    squares = part.multiply(part) if sparse.issparse(part) else part * part
    return max(0.25 * float(np.max(squares.sum(axis=0))), 1e-300)


def _correlate(rows: NDArray, X: Any, precise: bool) -> NDArray:
    """rows (U, M) times X (M, N): in float64 when precise, else in the precision of X."""
    if sparse.issparse(X) or X.dtype == np.float64:
        return np.asarray(rows @ X)
    if not precise:
        return rows.astype(X.dtype) @ X
    starts = range(0, X.shape[1], _BLOCK_FEATURES)
    return np.hstack([rows @ X[:, start : start + _BLOCK_FEATURES].astype(np.float64) for start in starts])


_TINY = 1e-300


def residual(labels: NDArray, decision: NDArray) -> NDArray:
    """Return c y / (1 + exp(y z)), minus the derivative of the loss with respect to z; 0 on other rows."""
    return labels * expit(-np.sign(labels) * decision)


def primal(labels: NDArray, decision: NDArray, penalty: NDArray) -> NDArray:
    """Return the objective per fit; penalty (U,) is lambda |w|_1."""
    losses = np.abs(labels) * np.logaddexp(0.0, -np.sign(labels) * decision)
    return losses.sum(axis=1) + penalty


def dual(labels: NDArray, dual_residual: NDArray) -> NDArray:
    """Return the dual value per fit at the feasible c a y = ``dual_residual`` (U, M)."""
    weights = np.abs(labels)
    a = np.abs(dual_residual) / np.maximum(weights, _TINY)
    return (weights * (entr(a) + entr(1.0 - a))).sum(axis=1)


def balance(labels: NDArray, dual_residual: NDArray) -> NDArray:
    """Shrink the heavier class of ``dual_residual`` so that every fit sums to zero, as a free b demands."""
    a = np.abs(dual_residual)
    positive = np.where(labels > 0, a, 0.0).sum(axis=1, keepdims=True)
    negative = a.sum(axis=1, keepdims=True) - positive
    total = np.minimum(positive, negative)
    return dual_residual * np.where(labels > 0, total / (positive + _TINY), total / (negative + _TINY))


def gap(
    labels: NDArray, decision: NDArray, penalty: NDArray, dual_residual: NDArray, shrink: NDArray
) -> NDArray:
    """Return primal minus dual per fit, where shrink (U,) <= 1 makes ``dual_residual`` feasible."""
    return primal(labels, decision, penalty) - dual(labels, dual_residual * shrink[:, None])


def null_objective(labels: NDArray, fit_intercept: bool) -> NDArray:
    """Return the objective per fit at w = 0 with its best b: the scale on which gaps are stated."""
    total = np.abs(labels).sum(axis=1)
    if not fit_intercept:
        return total * np.log(2.0)
    share = np.where(labels > 0, labels, 0.0).sum(axis=1) / total
    return total * (entr(share) + entr(1.0 - share))


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
