"""The accelerated solver against optimality conditions and an independent solver."""

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from mvpa_gamp.methods.l1_logistic import solve, solve_path
from mvpa_gamp.methods.l1_solver import Settings, balance, null_fits, null_objective, primal, residual
from mvpa_gamp.methods.liblinear import _penalty

EXACT = Settings(tol=1e-10, max_iter=50_000, fit_intercept=False)
EXACT_WITH_INTERCEPT = EXACT._replace(fit_intercept=True)


def design(kind, n_rows=60, n_features=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features))
    if kind == "correlated":  # AR(0.9) along the features
        for n in range(1, n_features):
            X[:, n] = 0.9 * X[:, n - 1] + np.sqrt(1 - 0.81) * X[:, n]
    y = np.where(X[:, ::30].sum(axis=1) + rng.standard_normal(n_rows) > 0.4, 1.0, -1.0)
    return X, y


def largest_penalty(X, y, fit_intercept=False):
    slope = (y > 0) - np.mean(y > 0) if fit_intercept else y / 2
    return np.abs(X.T @ slope).max()


def objective(X, y, w, b, lam):
    return np.logaddexp(0, -y * (X @ w + b)).sum() + lam * np.abs(w).sum()


def liblinear(X, y, lam):
    model = LogisticRegression(
        C=1 / lam, solver="liblinear", fit_intercept=False, tol=1e-12, max_iter=100_000, random_state=0
    )
    return model.set_params(**_penalty(model, l1=True)).fit(X, y).coef_[0]


@pytest.mark.parametrize("kind", ["gaussian", "correlated"])
def test_objective_and_support_match_liblinear_run_to_its_end(kind):
    X, y = design(kind)
    lambdas = largest_penalty(X, y) * np.array([[0.5], [0.2], [0.05]])
    for lam, fits in zip(lambdas[:, 0], solve_path(X, y[None], lambdas, EXACT), strict=True):
        w, expected = fits.coef.toarray()[0], liblinear(X, y, lam)
        best = objective(X, y, expected, 0, lam)
        # Both ends are certified: ours by its gap, so it can be above the optimum by that much only.
        assert objective(X, y, w, 0, lam) - best < 1e-9 * null_objective(y[None], False)[0]
        np.testing.assert_allclose(w, expected, atol=1e-4 * np.abs(expected).max())
        np.testing.assert_array_equal(np.abs(w) > 1e-5, np.abs(expected) > 1e-5)


@pytest.mark.parametrize("kind", ["gaussian", "correlated"])
@pytest.mark.parametrize("settings", [EXACT, EXACT_WITH_INTERCEPT])
def test_kkt_conditions_hold(kind, settings):
    X, y = design(kind, seed=1)
    lambdas = largest_penalty(X, y) * np.array([[0.5], [0.2], [0.05]])
    for lam, fits in zip(lambdas[:, 0], solve_path(X, y[None], lambdas, settings), strict=True):
        w, b = fits.coef.toarray()[0], fits.intercept[0]
        slope = y * expit(-y * (X @ w + b))
        correlation = X.T @ slope
        tolerance = 1e-3 * lam  # a gap of 1e-10 leaves about its square root in the gradient
        assert np.abs(correlation).max() < lam + tolerance
        np.testing.assert_allclose(correlation[w != 0], lam * np.sign(w[w != 0]), atol=tolerance)
        if settings.fit_intercept:
            assert abs(slope.sum()) < tolerance
        else:
            assert b == 0
        np.testing.assert_allclose(fits.decision[0], X @ w + b, atol=1e-10)


@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_the_gap_is_reached_and_bounds_the_distance_to_the_optimum(tol, fit_intercept):
    X, y = design("correlated", seed=2)
    lam = np.array([0.1 * largest_penalty(X, y)])
    null = null_fits(y[None], X.shape[1], fit_intercept)
    scale = null_objective(y[None], fit_intercept)[0]
    values = []
    for settings in (Settings(tol, 50_000, fit_intercept), EXACT._replace(fit_intercept=fit_intercept)):
        fits = solve(X, y[None], lam, null, settings)
        values.append(objective(X, y, fits.coef.toarray()[0], fits.intercept[0], lam[0]))
        assert fits.gap[0] >= -1e-12 and fits.gap[0] <= settings.tol
        if settings.tol == tol:
            gap = fits.gap[0] * scale
    assert values[0] - values[1] <= gap + 1e-9 * scale


def test_above_the_largest_penalty_nothing_is_selected():
    X, y = design("gaussian", seed=3)
    for fit_intercept in (False, True):
        edge = largest_penalty(X, y, fit_intercept)
        null = null_fits(y[None], X.shape[1], fit_intercept)
        settings = Settings(1e-8, 1000, fit_intercept)
        above = solve(X, y[None], np.array([1.001 * edge]), null, settings)
        below = solve(X, y[None], np.array([0.95 * edge]), null, settings)
        assert above.coef.nnz == 0 and below.coef.nnz > 0
        assert above.gap[0] < 1e-8


def test_many_fits_at_once_equal_one_by_one_and_more_than_one_block_works():
    X, y = design("correlated", seed=4)
    rng = np.random.default_rng(4)
    labels = np.where(rng.random((50, len(y))) < 0.8, y, 0.0)
    lambdas = np.abs(labels @ X).max(axis=1) * np.array([[0.3], [0.1]])
    together = solve_path(X, labels, lambdas, Settings(1e-8, 10_000, False))[-1]
    for fit in (0, 17, 49):
        one = slice(fit, fit + 1)
        alone = solve_path(X, labels[one], lambdas[:, one], Settings(1e-8, 10_000, False))[-1]
        np.testing.assert_allclose(
            alone.coef.toarray()[0], together.coef.toarray()[fit], atol=1e-5 * np.abs(alone.coef).max()
        )


def test_rows_without_labels_do_not_matter():
    X, y = design("gaussian", seed=5)
    rows = np.arange(len(y)) % 3 > 0
    lam = np.array([[0.1 * largest_penalty(X, y)]])
    masked = solve_path(X, np.where(rows, y, 0)[None], lam, EXACT)[0]
    subset = solve_path(X[rows], y[rows][None], lam, EXACT)[0]
    np.testing.assert_allclose(masked.coef.toarray(), subset.coef.toarray(), atol=1e-5)


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_units_of_x_do_not_matter(scale):
    X, y = design("correlated", seed=6)
    lam = np.array([[0.1 * largest_penalty(X, y)]])
    settings = Settings(1e-8, 50_000, True)
    plain, scaled = (solve_path(s * X, y[None], s * lam, settings)[0] for s in (1.0, scale))
    np.testing.assert_allclose(scaled.decision, plain.decision, atol=1e-2 * np.abs(plain.decision).max())
    assert scaled.gap[0] <= 1e-8 and plain.gap[0] <= 1e-8


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_sparse_and_float32_matrices_give_the_same(fit_intercept):
    X, y = design("gaussian", seed=7)
    X = (X * (np.abs(X) > 0.8)).astype(np.float32)
    lam = np.array([[0.1 * largest_penalty(X, y)]])
    settings = Settings(1e-8, 50_000, fit_intercept)
    expected = solve_path(X.astype(float), y[None], lam, settings)[0]
    for matrix in (X, sparse.csr_array(X), sparse.csr_array(X.astype(float))):
        found = solve_path(matrix, y[None], lam, settings)[0]
        assert found.gap[0] <= 1e-8
        np.testing.assert_allclose(found.coef.toarray(), expected.coef.toarray(), atol=1e-3)


def test_running_out_of_iterations_is_told_by_the_gap():
    X, y = design("correlated", seed=8)
    lam = np.array([[0.01 * largest_penalty(X, y)]])
    fits = solve_path(X, y[None], lam, Settings(1e-9, 20, False))[0]
    assert fits.gap[0] > 1e-9 and np.isfinite(fits.coef.toarray()).all()


def test_separable_data_with_a_tiny_penalty_stay_finite():
    X = np.repeat([[1.0], [-1.0]], 5, axis=0)
    y = X[:, 0].copy()
    fits = solve_path(X, y[None], np.array([[1e-4]]), Settings(1e-6, 50_000, True))[0]
    # One feature equal to the label: 10 / (1 + exp(w)) = lambda.
    assert fits.coef.toarray()[0, 0] == pytest.approx(np.log(10 / 1e-4 - 1), abs=0.2)
    assert fits.gap[0] <= 1e-6


def test_balanced_dual_points_are_feasible_for_a_free_intercept():
    rng = np.random.default_rng(9)
    labels = rng.choice([-1.0, 0.0, 1.0], size=(4, 30))
    found = balance(labels, residual(labels, rng.standard_normal((4, 30))))
    np.testing.assert_allclose(found.sum(axis=1), 0, atol=1e-12)
    assert (found * labels >= 0).all() and (np.abs(found) <= 1).all()
    assert (found[labels == 0] == 0).all()


def test_null_objective_is_the_objective_without_features():
    labels = np.array([[1, 1, 1, -1, 0.0]])
    null = null_fits(labels, 3, True)
    np.testing.assert_allclose(primal(labels, null.decision, np.zeros(1)), null_objective(labels, True))
    np.testing.assert_allclose(primal(labels, np.zeros((1, 5)), np.zeros(1)), null_objective(labels, False))
