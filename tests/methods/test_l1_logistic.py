import numpy as np
import pytest

from mvpa_gamp.decoding import leave_one_run_out
from mvpa_gamp.methods import L1LogisticCV
from mvpa_gamp.methods.l1_logistic import solve_path
from mvpa_gamp.methods.l1_solver import Settings


def study(seed=0, n_runs=5, n_features=80):
    rng = np.random.default_rng(seed)
    runs = np.repeat(np.arange(n_runs), 8)
    y = np.tile([1.0, -1.0], 4 * n_runs)
    X = rng.standard_normal((len(y), n_features))
    X[:, :6] += 0.6 * y[:, None]
    return X, y, runs


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_it_equals_a_plain_nested_search(fit_intercept):
    X, y, runs = study()
    method = L1LogisticCV(fit_intercept=fit_intercept, tuning_tol=1e-8, tol=1e-8)
    settings = Settings(1e-8, 10_000, fit_intercept)
    train = leave_one_run_out(runs).train
    fits = method.fit_folds(X, y, train, runs)

    def path(rows):
        """Fits to some rows alone, for the penalties of those rows."""
        lambdas = np.geomspace(method.top, method.bottom, 10) * 0.5 * np.abs(X[rows]).sum(axis=0).max()
        return lambdas, solve_path(X[rows], y[rows][None], lambdas[:, None], settings)

    for fold in range(train.shape[1]):
        rows, errors = train[:, fold], []
        for run in np.unique(runs[rows]):
            test = rows & (runs == run)
            scores = [X[test] @ f.coef.toarray()[0] + f.intercept[0] for f in path(rows & (runs != run))[1]]
            errors.append([np.mean((score > 0) != (y[test] > 0)) for score in scores])
        mean = np.mean(errors, axis=0)
        best = int(np.flatnonzero(mean <= mean.min() + 1e-9)[0])
        lambdas, expected = path(rows)
        assert fits.parameters["lambda"][fold] == pytest.approx(lambdas[best])
        assert fits.parameters["inner_error"][fold] == pytest.approx(mean.min())
        np.testing.assert_allclose(fits.coef[:, fold], expected[best].coef.toarray()[0], atol=1e-4)


def test_any_training_masks_and_labels_are_right_not_only_leave_one_run_out():
    X, y, runs = study(1)
    rng = np.random.default_rng(1)
    train = np.column_stack([runs > 1, rng.random(len(y)) < 0.6, runs != 3, runs != 3])
    labels = np.column_stack([y, y, y, rng.permutation(y)])
    together = L1LogisticCV().fit_folds(X, labels, train, runs)
    for column in range(4):
        alone = L1LogisticCV().fit_folds(X, labels[:, [column]], train[:, [column]], runs)
        assert alone.parameters["lambda"][0] == pytest.approx(together.parameters["lambda"][column])
        np.testing.assert_allclose(alone.coef[:, 0], together.coef[:, column], atol=1e-5)


def test_penalties_depend_on_training_rows_only_not_on_labels():
    X, y, runs = study(2)
    method = L1LogisticCV()
    labels = np.where(runs == 0, 0.0, y)[None]
    lambdas = method.lambdas(X, labels)
    np.testing.assert_array_equal(method.lambdas(X, -labels), lambdas)
    changed = X.copy()
    changed[runs == 0] *= 100
    np.testing.assert_allclose(method.lambdas(changed, labels), lambdas, rtol=1e-12)
    np.testing.assert_allclose(lambdas[:-1] / lambdas[1:], (method.top / method.bottom) ** (1 / 9))
    # At 1.0 of the reference no labels whatever can select a feature.
    assert np.abs(labels @ X).max() / 2 <= lambdas[0, 0] / method.top


def test_reported_fits_are_certified_and_say_so():
    X, y, runs = study(3)
    fits = L1LogisticCV().fit_folds(X, y, leave_one_run_out(runs).train, runs)
    assert fits.converged.all()
    assert (fits.parameters["duality_gap"] <= 1e-6).all()
    assert all(s.startswith("converged: duality gap") and "null objective" in s for s in fits.status)
    np.testing.assert_allclose(fits.proba, 1 / (1 + np.exp(-fits.decision)))
    np.testing.assert_array_equal(fits.intercept, 0)


def test_too_few_iterations_are_reported_not_hidden():
    X, y, runs = study(4)
    fits = L1LogisticCV(max_iter=3, tol=1e-9).fit_folds(X, y, leave_one_run_out(runs).train, runs)
    assert not fits.converged.any()
    assert all(s.startswith("not converged") and "raise max_iter" in s for s in fits.status)


def test_the_intercept_follows_unequal_classes():
    rng = np.random.default_rng(5)
    runs = np.repeat(np.arange(4), 15)
    y = np.where(np.arange(60) % 5 == 0, 1.0, -1.0)
    X = rng.standard_normal((60, 10)) + 0.5 * y[:, None] + 2.0
    everything = np.ones((60, 1), dtype=bool)
    fits = L1LogisticCV(fit_intercept=True).fit_folds(X, y, everything, runs)
    # A free intercept makes the mean predicted probability equal the share of the class.
    assert fits.proba.mean() == pytest.approx(0.2, abs=1e-3)
    assert fits.intercept[0] < 0


def test_predictions_do_not_depend_on_the_units_of_x():
    X, y, runs = study(6)
    train = leave_one_run_out(runs).train
    plain = L1LogisticCV().fit_folds(X, y, train, runs)
    for scale in (1e-3, 1e3):
        scaled = L1LogisticCV().fit_folds(scale * X, y, train, runs)
        np.testing.assert_allclose(scaled.decision, plain.decision, atol=1e-3)
        np.testing.assert_array_equal(scaled.support, plain.support)


def test_x_of_zeros_is_explained():
    X, y, runs = study(7)
    with pytest.raises(ValueError, match="X is zero on all training rows of a fold"):
        L1LogisticCV().fit_folds(0 * X, y, leave_one_run_out(runs).train, runs)


@pytest.mark.parametrize("bad", [{"bottom": 0.0}, {"bottom": 0.6}, {"n_lambdas": 0}, {"tol": 0.0}])
def test_impossible_settings_are_explained(bad):
    with pytest.raises(ValueError, match=r"needs 0 < bottom <= top.*got L1LogisticCV\(.*Correct them"):
        L1LogisticCV(**bad)


def test_blas_threads_are_left_as_they_were():
    threadpoolctl = pytest.importorskip("threadpoolctl")
    X, y, runs = study(8)
    before = [info["num_threads"] for info in threadpoolctl.threadpool_info()]
    L1LogisticCV().fit_folds(X, y, leave_one_run_out(runs).train, runs)
    assert [info["num_threads"] for info in threadpoolctl.threadpool_info()] == before
