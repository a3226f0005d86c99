"""Max-sum GAMP reaches the minimum of the penalised loss, compared with solvers written here or in SciPy."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_ndtr

from mvpa_gamp.gamp import Design, ElasticNet, Gaussian, Laplace, Logistic, Probit, SolverSettings, solve
from mvpa_gamp.gamp.result import FIXED_POINT
from mvpa_gamp.gamp.starts import solve_screened

pytestmark = pytest.mark.whole

SHARES = [0.5, 0.2, 0.05]
PLAIN, FREE = SolverSettings(mode="max-sum"), SolverSettings(mode="max-sum", intercept=True)


def slopes(X, y, w, b=0.0):
    """-d loss / dz of the logistic loss, (M,)."""
    return y * expit(-y * (X @ w + b))


def cost(X, y, rate, w, b=0.0):
    return np.logaddexp(0.0, -y * (X @ w + b)).sum() + np.sum(rate * np.abs(w))


def kkt(X, y, rate, w, b=0.0):
    """Largest violation of the optimality conditions, (N,) rates allowed."""
    pull = X.T @ slopes(X, y, w, b)
    return np.where(w != 0, np.abs(pull - rate * np.sign(w)), np.maximum(np.abs(pull) - rate, 0.0))


def largest_rate(X, y, intercept=False):
    """The smallest rate at which all weights are zero."""
    b = np.log((y > 0).sum() / (y < 0).sum()) if intercept else 0.0
    return np.abs(X.T @ slopes(X, y, np.zeros(X.shape[1]), b)).max()


def reference(X, y, rate, intercept=False):
    """L1 logistic regression by an active set: Newton steps with fixed signs, one feature joins at a time.

    A step ends where it is best among its whole length, its halvings and the points at which a weight would
    change its sign; weights that reach zero leave. Ends at KKT 1e-10 of the largest rate.
    """
    rates = np.full(X.shape[1], float(rate))
    if intercept:
        X, rates = np.column_stack([X, np.ones(len(y))]), np.append(rates, 0.0)
    w, signs = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    active = rates == 0
    goal = 1e-10 * max(largest_rate(X, y), 1e-3)
    for _ in range(3000):
        pull = X.T @ slopes(X, y, w)
        missed = np.where(active, 0.0, np.abs(pull) - rates)
        left = np.abs(pull - rates * signs)[active].max(initial=0.0)
        if left <= goal and missed.max() <= goal:
            return (w[:-1], w[-1]) if intercept else (w, 0.0)
        if left <= max(0.5 * goal, 0.01 * missed.max()):
            joins = int(np.argmax(missed))
            active[joins], signs[joins] = True, np.sign(pull[joins])
        w, active = _newton_step(X, y, rates, w, signs, active)
        signs = np.where(active, signs, 0.0)
    raise AssertionError("the reference solver did not end")


def _newton_step(X, y, rates, w, signs, active):
    at, g = np.flatnonzero(active), expit(X @ w)
    curvature = X[:, at].T * (g * (1 - g)) @ X[:, at]
    curvature[np.diag_indices(at.size)] += 1e-13 * np.trace(curvature)
    step = np.zeros_like(w)
    step[at] = np.linalg.solve(curvature, X[:, at].T @ slopes(X, y, w) - rates[at] * signs[at])
    with np.errstate(divide="ignore", invalid="ignore"):
        crossings = np.where((rates > 0) & (w * step < 0), -w / step, np.inf)
    lengths = np.unique([*0.5 ** np.arange(12), *crossings[crossings < 1]])
    trials = np.array([_stepped(w, t, step, crossings, signs, rates) for t in lengths])
    best = trials[np.argmin([cost(X, y, rates, trial) for trial in trials])]
    return best, active & ((best != 0) | (rates == 0))


def _stepped(w, t, step, crossings, signs, rates):
    new = np.where(crossings == t, 0.0, w + t * step)
    return np.where((rates > 0) & (new * signs < 0), 0.0, new)


def labelled(X, rng):
    w = np.zeros(X.shape[1])
    w[rng.choice(X.shape[1], 10, replace=False)] = rng.standard_normal(10)
    return np.where(X @ w + rng.standard_normal(len(X)) > 0, 1.0, -1.0)


@pytest.fixture(scope="module")
def gaussian_problem():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 500))
    return X, labelled(X, rng)


@pytest.fixture(scope="module")
def ar_problem():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((200, 500))
    for j in range(1, 500):
        X[:, j] = 0.9 * X[:, j - 1] + np.sqrt(1 - 0.9**2) * X[:, j]
    return X, labelled(X, rng)


@pytest.fixture(scope="module")
def slice_problem(haxby_slice):
    """One fold of cat versus scissors on the real slice."""
    rows = np.isin(haxby_slice.conditions, ("cat", "scissors")) & (haxby_slice.runs != haxby_slice.runs[0])
    X = haxby_slice.X[rows].astype(float)
    assert X.shape == (198, 530)
    return X, np.where(haxby_slice.conditions[rows] == "cat", 1.0, -1.0)


PROBLEMS = pytest.mark.parametrize("problem", ["gaussian_problem", "ar_problem", "slice_problem"])


@pytest.mark.parametrize("share", SHARES)
@PROBLEMS
def test_optimum_and_support_of_l1_logistic_regression(problem, share, request):
    X, y = request.getfixturevalue(problem)
    rate = share * largest_rate(X, y)
    wanted, _ = reference(X, y, rate)
    assert kkt(X, y, rate, wanted).max() <= 1e-9 * rate / share  # the reference is what it says
    found = solve(Design(X), y, Logistic(), Laplace(rate), PLAIN)
    w, optimum = found.coef[:, 0], cost(X, y, rate, wanted)
    assert found.status[0] == FIXED_POINT
    assert abs(cost(X, y, rate, w) - optimum) < 1e-6 * optimum
    np.testing.assert_array_equal(w != 0, wanted != 0)
    assert 0 < np.count_nonzero(w) < 200


@pytest.mark.parametrize("share", SHARES)
@PROBLEMS
def test_optimum_with_an_intercept(problem, share, request):
    X, y = request.getfixturevalue(problem)
    X = X + 0.3  # off centre, so that the intercept has work to do
    rate = share * largest_rate(X, y, intercept=True)
    wanted, b = reference(X, y, rate, intercept=True)
    found = solve(Design(X), y, Logistic(), Laplace(rate), FREE)
    w, optimum = found.coef[:, 0], cost(X, y, rate, wanted, b)
    assert found.status[0] == FIXED_POINT
    assert abs(cost(X, y, rate, w, found.intercept[0]) - optimum) < 1e-6 * optimum
    np.testing.assert_array_equal(w != 0, wanted != 0)
    pull = slopes(X, y, w, found.intercept[0])
    assert abs(pull.sum()) < 1e-4 * np.abs(pull).sum()  # the intercept is free
    assert kkt(X, y, rate, w, found.intercept[0]).max() < 1e-3 * rate


def test_all_rates_as_columns_of_one_batch(gaussian_problem):
    X, y = gaussian_problem
    rates = np.array(SHARES) * largest_rate(X, y)
    found = solve(Design(X, np.ones((len(y), 3), dtype=bool)), y, Logistic(), Laplace(rates), PLAIN)
    for column, rate in enumerate(rates):
        alone = solve(Design(X), y, Logistic(), Laplace(rate), PLAIN)
        np.testing.assert_allclose(found.coef[:, [column]], alone.coef, atol=1e-9)


def test_at_the_largest_rate_all_weights_are_zero(gaussian_problem):
    X, y = gaussian_problem
    found = solve(Design(X), y, Logistic(), Laplace(1.01 * largest_rate(X, y)), PLAIN)
    assert not found.coef.any() and found.status[0] == FIXED_POINT


@pytest.mark.parametrize("settings", [PLAIN, FREE])
@PROBLEMS
def test_screening_changes_nothing(problem, settings, request):
    X, y = request.getfixturevalue(problem)
    rate = 0.1 * largest_rate(X, y, settings.intercept)
    whole = solve(Design(X), y, Logistic(), Laplace(rate), settings)
    screened = solve_screened(Design(X), y, Logistic(), Laplace(rate), settings)
    np.testing.assert_array_equal(screened.coef != 0, whole.coef != 0)
    np.testing.assert_allclose(screened.coef, whole.coef, atol=1e-5)
    np.testing.assert_allclose(screened.intercept, whole.intercept, atol=1e-5)
    assert screened.status[0] == FIXED_POINT


def test_screening_finds_features_that_its_first_guess_missed():
    # 700 features share the label and one common noise: they fill the first guess, the others are missed.
    rng = np.random.default_rng(2)
    X = rng.standard_normal((150, 1000))
    y = np.where(X[:, 0] + 0.3 * X[:, 900:].sum(axis=1) > 0, 1.0, -1.0)
    X[:, :700] = 0.2 * X[:, :700] + y[:, None] + rng.standard_normal((150, 1))
    rate = 0.02 * largest_rate(X, y)
    whole = solve(Design(X), y, Logistic(), Laplace(rate), PLAIN)
    screened = solve_screened(Design(X), y, Logistic(), Laplace(rate), PLAIN)
    gap = cost(X, y, rate, screened.coef[:, 0]) - cost(X, y, rate, whole.coef[:, 0])
    assert whole.coef[700:].any()
    assert abs(gap) < 1e-6 * cost(X, y, rate, whole.coef[:, 0])
    assert kkt(X, y, rate, screened.coef[:, 0]).max() < 1e-3 * rate


def test_float32_and_uniform_variances_reach_the_same_optimum(gaussian_problem):
    X, y = gaussian_problem
    rate = 0.2 * largest_rate(X, y)
    optimum = cost(X, y, rate, reference(X, y, rate)[0])
    narrow = solve(Design(X.astype(np.float32)), y, Logistic(), Laplace(rate), PLAIN)
    uniform = SolverSettings(mode="max-sum", variance="uniform")
    even = solve(Design(X), y, Logistic(), Laplace(rate), uniform)
    for found in (narrow, even):
        assert abs(cost(X, y, rate, found.coef[:, 0].astype(float)) - optimum) < 1e-6 * optimum
        assert found.status[0] == FIXED_POINT


@pytest.fixture(scope="module")
def small_problem():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((120, 40))
    return X, labelled(X, rng)


def scipy_minimum(loss, slope, X, y, var):
    """Weights that minimise sum loss(y z) + |w|^2 / (2 var); slope is d loss / d(y z)."""

    def value(w):
        margin = y * (X @ w)
        return loss(margin).sum() + w @ w / (2 * var), X.T @ (y * slope(margin)) + w / var

    return minimize(value, np.zeros(X.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-7}).x


@pytest.mark.parametrize("var", [0.01, 1.0, 100.0])
def test_ridge_logistic_regression(small_problem, var):
    X, y = small_problem
    wanted = scipy_minimum(lambda g: np.logaddexp(0, -g), lambda g: -expit(-g), X, y, var)
    found = solve(Design(X), y, Logistic(), Gaussian(0.0, var), PLAIN)
    assert found.status[0] == FIXED_POINT
    np.testing.assert_allclose(found.coef[:, 0], wanted, atol=1e-4 * np.abs(wanted).max())


@pytest.mark.parametrize(("var", "width"), [(0.1, 1.0), (1.0, 2.9)])
def test_probit_regression(small_problem, var, width):
    X, y = small_problem

    def slope(g):
        c = g / np.sqrt(width)
        return -np.exp(-(c**2) / 2 - log_ndtr(c)) / np.sqrt(2 * np.pi * width)

    wanted = scipy_minimum(lambda g: -log_ndtr(g / np.sqrt(width)), slope, X, y, var)
    found = solve(Design(X), y, Probit(width), Gaussian(0.0, var), PLAIN)
    assert found.status[0] == FIXED_POINT
    np.testing.assert_allclose(found.coef[:, 0], wanted, atol=1e-4 * np.abs(wanted).max())


@pytest.mark.parametrize("share", SHARES)
def test_elastic_net_optimality(gaussian_problem, share):
    X, y = gaussian_problem
    l1, l2 = share * largest_rate(X, y), 0.5
    found = solve(Design(X), y, Logistic(), ElasticNet(l1, l2), PLAIN)
    w = found.coef[:, 0]
    pull = X.T @ slopes(X, y, w) - 2 * l2 * w
    left = np.where(w != 0, np.abs(pull - l1 * np.sign(w)), np.maximum(np.abs(pull) - l1, 0.0))
    assert found.status[0] == FIXED_POINT and left.max() < 1e-4 * l1
    lasso = solve(Design(X), y, Logistic(), Laplace(l1), PLAIN)
    assert np.abs(w).sum() < np.abs(lasso.coef).sum()


def test_logistic_scale_only_rescales(small_problem):
    # p(y | 2 z) with weights w is p(y | z) with weights 2 w, so the penalty is felt half as much.
    X, y = small_problem
    steep = solve(Design(X), y, Logistic(2.0), Laplace(4.0), PLAIN)
    plain = solve(Design(X), y, Logistic(), Laplace(2.0), PLAIN)
    np.testing.assert_allclose(2 * steep.coef, plain.coef, atol=1e-5)


def test_a_screened_column_does_not_see_how_steep_another_one_is():
    """Weak features stay above the floor of their own column, whatever the curvature of its neighbours."""
    rng = np.random.default_rng(6)
    X = rng.standard_normal((40, 900))
    X[:, 450:] *= 1e-4
    y, train = np.where(np.arange(40) % 2, 1.0, -1.0), np.ones((40, 2), dtype=bool)
    X[:, :3] += y[:, None]
    settings = SolverSettings(mode="max-sum", intercept=True)
    rate, scale = np.array([3.0, 3e4]), np.array([1.0, 1e4])  # the second column is the first in other units
    both = solve_screened(Design(X, train), y, Logistic(scale), Laplace(rate), settings)
    alone = solve_screened(Design(X, train[:, :1]), y, Logistic(scale[:1]), Laplace(rate[:1]), settings)
    np.testing.assert_allclose(both.tau_r[:, 0], alone.tau_r[:, 0], rtol=1e-6)
    np.testing.assert_allclose(both.r[:, 0], alone.r[:, 0], rtol=1e-4, atol=1e-6 * np.abs(alone.r).max())
