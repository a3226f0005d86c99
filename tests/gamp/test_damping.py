"""Adaptive steps: each rule on its own, and runs that used to swing, crawl or circle."""

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.special import expit
from sklearn.svm import SVC

from mvpa_gamp.gamp import (
    Design,
    ElasticNet,
    Gaussian,
    Hinge,
    Laplace,
    Logistic,
    Probit,
    Robust,
    SolverSettings,
    fit_em,
    solve,
)
from mvpa_gamp.gamp.result import FIXED_POINT
from mvpa_gamp.gamp.starts import start_prior
from mvpa_gamp.gamp.stopping import Damping

pytestmark = pytest.mark.whole

PLAIN, FREE = SolverSettings(mode="max-sum"), SolverSettings(mode="max-sum", intercept=True)
YES, NO = np.array([True]), np.array([False])


def moved(damping, objective, residual=0.5):
    """Offer one move to a single column; returns whether it was taken."""
    accepted = damping.judge(np.array([objective]), np.array([residual]), 1e-16)
    damping.adapt(accepted, YES, True)
    return bool(accepted[0])


def settled(step=0.5):
    """A column that has descended for a while: objectives 19, 18, ... 5 and shrinking residuals."""
    damping = Damping.begin(step, 1)
    for k in range(15):
        assert moved(damping, 19.0 - k, 0.9**k)
    return damping


def test_steps_grow_while_the_objective_falls():
    damping = Damping.begin(0.5, 1)
    for k in range(3):
        assert moved(damping, 10.0 - k)
    assert damping.step[0] == pytest.approx(0.5 * 1.1**3)
    assert settled().step[0] == 1.0


def test_a_rise_above_the_recent_worst_is_rejected_and_halves_the_step():
    damping = settled()
    assert moved(damping, 13.0, 0.2)  # below 14, the worst of the last ten
    assert not moved(damping, 30.0, 0.2)
    assert damping.step[0] == pytest.approx(0.5)
    assert damping.ceiling[0] == pytest.approx(0.9)  # the step that failed was 1


def test_the_first_moves_are_free():
    damping = Damping.begin(0.5, 1)
    assert moved(damping, 10.0) and moved(damping, 100.0)
    assert not moved(damping, 1000.0)


def test_the_smallest_step_is_always_taken():
    damping = settled()
    rejected = 0
    while not moved(damping, 1e6, 1.0):
        rejected += 1
    assert 5 <= rejected <= 12 and damping.step[0] <= 0.0025


def test_a_run_that_settles_is_believed():
    damping = settled()
    for k in range(15):
        moved(damping, 5.0, 0.9 ** (15 + k))
    assert moved(damping, 6.0, 1e-3)  # a higher objective, but the smallest residual so far
    assert not moved(damping, 6.5, 1e-2)


def test_a_cycle_lowers_the_ceiling():
    damping = settled()
    for k in range(12):
        assert moved(damping, 5.0 + 1e-7 * (k % 2), 0.2)
    assert damping.ceiling[0] < 0.6 and damping.step[0] < 0.6


def test_objectives_that_are_not_finite_are_rejected():
    damping = settled()
    for objective, residual in ((np.nan, 0.1), (np.inf, 0.1), (1.0, np.nan)):
        assert not moved(damping, objective, residual)
    assert np.isfinite(damping.recent).all() and np.isfinite(damping.best).all()


def test_failures_count_only_in_a_row():
    damping = Damping.begin(0.1, 1)
    for finite in (NO, NO, YES, NO):
        damping.adapt(finite, finite, False)
    assert damping.failures[0] == 1
    assert damping.step[0] == pytest.approx(0.1 / 8)  # constant damping never grows back


def test_columns_are_independent():
    both, alone = Damping.begin(0.5, 2), Damping.begin(0.5, 1)
    rng = np.random.default_rng(0)
    for _ in range(40):
        values, residuals = rng.random((2, 2))
        accepted = both.judge(values, residuals, 1e-16)
        both.adapt(accepted, np.ones(2, dtype=bool), True)
        assert accepted[0] == moved(alone, values[0], residuals[0])
    part = both.take([0])
    for name, value in vars(alone).items():
        np.testing.assert_array_equal(getattr(part, name), value, err_msg=name)


def largest_rate(X, y):
    """The smallest rate at which the weights of L1 logistic regression with an intercept are zero."""
    share = np.mean(y > 0)
    return np.abs(X.T @ (y * np.where(y > 0, 1 - share, share))).max()


def violation(X, y, rate, w, b):
    """Largest violation of the optimality conditions, relative to the rate."""
    s = y * expit(-y * (X @ w + b))
    pull = X.T @ s
    off = np.where(w != 0, np.abs(pull - rate * np.sign(w)), np.maximum(np.abs(pull) - rate, 0.0))
    return max(off.max(), abs(s.sum())) / rate


def assert_optimal(X, y, train, rates):
    found = solve(Design(X, train), y, Logistic(), Laplace(rates), FREE)
    assert (found.status == FIXED_POINT).all()
    for column, rows in enumerate(train.T):
        w, b = found.coef[:, column], found.intercept[column]
        assert violation(X[rows], y[rows], rates[column], w, b) < 1e-5
    return found


@pytest.mark.parametrize("share", [0.5, 0.1])
def test_every_fold_of_the_real_slice_settles(haxby_slice, share):
    # Measured: 150 to 350 iterations on average. A window of objectives alone circled in 2 % of the folds.
    for pair in (("face", "house"), ("chair", "shoe"), ("bottle", "shoe")):
        rows = np.isin(haxby_slice.conditions, pair)
        X, runs = haxby_slice.X[rows].astype(float), haxby_slice.runs[rows]
        y = np.where(haxby_slice.conditions[rows] == pair[0], 1.0, -1.0)
        train = runs[:, None] != np.unique(runs)
        rates = np.array([share * largest_rate(X[part], y[part]) for part in train.T])
        assert assert_optimal(X, y, train, rates).n_iter.mean() < 700


@pytest.mark.parametrize("positives", [2, 10, 30])
def test_rare_classes_do_not_make_the_run_crawl(positives):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 200))
    y = np.where(np.argsort(np.argsort(-X[:, :5].sum(axis=1))) < positives, 1.0, -1.0)
    rates = np.array([0.5, 0.2, 0.05]) * largest_rate(X, y)
    found = assert_optimal(X, y, np.ones((100, 3), dtype=bool), rates)
    assert found.n_iter.max() < 400  # measured: below 150; a crawling run took over 700


def test_tall_correlated_designs_settle():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((500, 60))
    for j in range(1, 60):
        X[:, j] = 0.5 * X[:, j - 1] + np.sqrt(0.75) * X[:, j]
    y = np.where(X[:, :4].sum(axis=1) + 2 * rng.standard_normal(500) > 0, 1.0, -1.0)
    rates = np.array([0.5, 0.2, 0.05, 0.01]) * largest_rate(X, y)
    assert assert_optimal(X, y, np.ones((500, 4), dtype=bool), rates).n_iter.max() < 1000


@pytest.mark.parametrize("adaptive", [True, False])
def test_weights_that_all_vanish_count_as_settled(adaptive):
    rng = np.random.default_rng(4)
    X, y = rng.standard_normal((60, 40)), np.where(np.arange(60) % 2, 1.0, -1.0)
    run = SolverSettings(mode="max-sum", intercept=True, adaptive=adaptive)
    full = solve(Design(X), y, Logistic(), Laplace(0.3 * largest_rate(X, y)), run)
    empty = solve(Design(X), y, Logistic(), Laplace(2 * largest_rate(X, y)), run, warm=full)
    assert full.coef.any() and not empty.coef.any()
    assert empty.status[0] == FIXED_POINT and empty.n_iter[0] < 100


@pytest.mark.parametrize(("n_rows", "n_features"), [(200, 20), (100, 100), (60, 300)])
def test_hinge_with_a_gaussian_prior_is_the_support_vector_machine(n_rows, n_features):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_features)) / np.sqrt(n_features)
    y = np.where(2 * X @ rng.standard_normal(n_features) + rng.standard_normal(n_rows) > 0, 1.0, -1.0)

    def cost(w, b):
        return np.maximum(0, 1 - y * (X @ w + b)).sum() + w @ w / 2

    wanted = SVC(kernel="linear", C=1.0, tol=1e-8).fit(X, y)
    found = solve(Design(X), y, Hinge(), Gaussian(), FREE)
    optimum = cost(wanted.coef_[0], wanted.intercept_[0])
    assert found.status[0] == FIXED_POINT
    assert abs(cost(found.coef[:, 0], found.intercept[0]) - optimum) < 1e-6 * optimum


def test_hinge_with_a_laplace_prior_is_a_linear_programme():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((80, 30))
    y = np.where(X[:, :3].sum(axis=1) + rng.standard_normal(80) > 0, 1.0, -1.0)
    rate = 4.0
    # w = u - v with u, v >= 0, and losses e >= 0 with e >= 1 - y X w
    bounds = np.column_stack([-y[:, None] * X, y[:, None] * X, -np.eye(80)])
    wanted = linprog([rate] * 60 + [1.0] * 80, A_ub=bounds, b_ub=-np.ones(80))
    found = solve(Design(X), y, Hinge(), Laplace(rate), PLAIN).coef[:, 0]
    cost = np.maximum(0, 1 - y * (X @ found)).sum() + rate * np.abs(found).sum()
    assert cost == pytest.approx(wanted.fun, rel=1e-3)  # kinks on both sides: swings within 1e-3


@pytest.mark.parametrize(
    ("likelihood", "name", "run"),
    [
        (Robust(Hinge(), 0.1), "elastic-net", SolverSettings(stop="fixed-point", variance="uniform")),
        (Probit(1e-4), "laplace", SolverSettings(mode="max-sum", variance="uniform")),
        (Logistic(100.0), "laplace", SolverSettings(mode="max-sum")),
    ],
    ids=["flat", "satisfied", "steep"],
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_slopes_that_vanish_or_explode_give_finite_fits(likelihood, name, run, dtype):
    rng = np.random.default_rng(0)
    y = np.where(np.arange(40) < 2, 1.0, -1.0)
    X = np.column_stack([3 * y, 5 + rng.standard_normal((40, 60))]).astype(dtype)
    design = Design(X)
    found = solve(design, y, likelihood, start_prior(name, design), run)
    for part in (found.coef, found.coef_var, found.p, found.tau_p, found.intercept):
        assert np.isfinite(part).all()


def test_tuning_may_reach_and_leave_a_parameter_of_zero():
    # The elastic net's l1 is learnt to be exactly zero on weights without peaks.
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 60))
    y = np.where(X @ rng.standard_normal(60) > 0, 1.0, -1.0)
    tuned = fit_em(Design(X), y, Probit(1e-2), ElasticNet(0.0, 1.0), FREE, max_em_iter=5)
    assert np.isfinite(tuned.prior.l1).all() and np.isfinite(tuned.result.coef).all()
