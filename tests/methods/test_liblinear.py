import numpy as np
import pytest

from mvpa_gamp.decoding import leave_one_run_out
from mvpa_gamp.methods import CDN, TRON, L1LogisticCV


def study(seed=0, n_runs=4, n_features=30):
    rng = np.random.default_rng(seed)
    runs = np.repeat(np.arange(n_runs), 8)
    y = np.tile([1.0, -1.0], 4 * n_runs)
    X = rng.standard_normal((len(y), n_features))
    X[:, :4] += 0.8 * y[:, None]
    return X, y, leave_one_run_out(runs).train, runs


def objective(fits, X, y, rows, fold, penalty):
    w, b, C = fits.coef[:, fold], fits.intercept[fold], fits.parameters["C"][fold]
    return penalty(np.append(w, b)) + C * np.logaddexp(0, -y[rows] * (X[rows] @ w + b)).sum()


@pytest.mark.parametrize("method", [CDN(), TRON()])
def test_candidates_ascend_and_depend_on_training_rows_only(method):
    X, y, train, _ = study()
    labels = np.where(train[:, 0], y, 0)
    values = method.candidates(X, labels)
    assert len(values) == 10 and (np.diff(values) > 0).all()
    np.testing.assert_array_equal(method.candidates(X, -labels), values)
    np.testing.assert_array_equal(method.candidates(np.where(train[:, :1], X, 50.0), labels), values)


def test_cdn_penalties_are_those_of_l1_lr_cv():
    X, y, train, _ = study()
    labels = np.where(train[:, 0], y, 0)
    np.testing.assert_allclose(1 / CDN().candidates(X, labels), L1LogisticCV().lambdas(X, labels[None])[:, 0])


def test_cdn_minimises_the_l1_objective_and_is_sparse():
    X, y, train, runs = study()
    fits = CDN(tol=1e-8).fit_folds(X, y, train, runs)
    assert fits.support.any(axis=0).all() and not fits.support.all(axis=0).any()
    rng = np.random.default_rng(0)
    for fold in range(train.shape[1]):
        rows = train[:, fold]
        best = objective(fits, X, y, rows, fold, lambda v: np.abs(v).sum())
        for _ in range(20):
            fits.coef[:, fold] += (step := 1e-3 * rng.standard_normal(X.shape[1]))
            assert objective(fits, X, y, rows, fold, lambda v: np.abs(v).sum()) > best
            fits.coef[:, fold] -= step


def test_tron_solves_the_l2_problem_with_every_weight():
    X, y, train, runs = study()
    fits = TRON(tol=1e-8).fit_folds(X, y, train, runs)
    assert fits.support.all()
    for fold in range(train.shape[1]):
        rows = train[:, fold]
        slope = y[rows] / (1 + np.exp(y[rows] * fits.decision[rows, fold]))
        np.testing.assert_allclose(
            fits.coef[:, fold],
            fits.parameters["C"][fold] * X[rows].T @ slope,
            atol=1e-3 * np.abs(fits.coef).max(),
        )


@pytest.mark.parametrize("method", [CDN(max_iter=1, tol=1e-12), TRON(max_iter=1, tol=1e-12)])
def test_missing_convergence_is_a_status_not_a_warning(method):
    X, y, train, runs = study()
    fits = method.fit_folds(X, y, train, runs)  # warnings are errors here
    assert not fits.converged.any()
    assert fits.status[0] == "not converged: LIBLINEAR reached max_iter=1; raise max_iter or tol"


@pytest.mark.parametrize("method", [CDN(), TRON()])
def test_converged_fits_say_so_and_repeat(method):
    X, y, train, runs = study()
    first, second = (method.fit_folds(X, y, train, runs) for _ in range(2))
    assert first.converged.all() and first.status[0].startswith("converged: LIBLINEAR stopped after")
    np.testing.assert_array_equal(first.coef, second.coef)


@pytest.mark.parametrize("method", [CDN(), TRON()])
def test_x_of_zeros_is_explained(method):
    X, y, train, runs = study()
    with pytest.raises(ValueError, match="X is zero on all training rows of a fold"):
        method.fit_folds(0 * X, y, train, runs)
