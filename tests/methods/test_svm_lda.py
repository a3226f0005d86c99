"""The linear SVM and shrinkage LDA: what scikit-learn finds, also where its matrices would not fit."""

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.svm import SVC

from mvpa_gamp.decoding import cross_validate, fold_errors, leave_one_run_out, make_tasks
from mvpa_gamp.methods import METHODS, LinearSVM, ShrinkageLDA
from mvpa_gamp.methods.gram import _dual_solution, _primal_solution


def problem(n_features, mean=0.0, seed=0):
    """80 rows of unequal classes and features of unequal size, some of which matter."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(80) < 0.35, 1.0, -1.0)
    X = rng.standard_normal((80, n_features)) * rng.uniform(0.5, 3, n_features) + mean
    X[:, :5] += 0.5 * y[:, None]
    runs = np.repeat(np.arange(8), 10)
    return X, y, leave_one_run_out(runs).train, runs


@pytest.mark.parametrize("class_weight", [None, "balanced", {1: 3.0, -1: 0.5}], ids=str)
def test_the_svm_is_the_one_of_scikit_learn(class_weight):
    X, y, train, runs = problem(300)
    fits = LinearSVM(tol=1e-9, class_weight=class_weight).fit_folds(X, y, train, runs)
    for fold in (0, 5):
        rows = train[:, fold]
        plain = SVC(kernel="linear", C=1.0, tol=1e-9, class_weight=class_weight).fit(X[rows], y[rows])
        np.testing.assert_allclose(fits.coef[:, fold], plain.coef_[0], atol=1e-6 * np.abs(plain.coef_).max())
        np.testing.assert_allclose(fits.decision[:, fold], plain.decision_function(X), atol=1e-6)
        assert fits.parameters["support_vectors"][fold] == len(plain.support_)
    assert fits.status[0].startswith("converged: optimal to 1e-09") and fits.converged.all()
    assert np.isnan(fits.proba).all() and fits.support.all()


@pytest.mark.parametrize("mean", [0.0, 100.0])
def test_the_svm_is_optimal_where_libsvm_itself_loses_digits(mean):
    """LIBSVM keeps its kernel in single precision, which a large mean eats: no gradient is left."""
    X, y, train, runs = problem(20, mean)
    fits = METHODS["svm"].fit_folds(X, y, train[:, :1], runs)
    rows = train[:, 0]

    def objective(coef, intercept):
        hinge = np.maximum(0, 1 - y[rows] * (X[rows] @ coef + intercept))
        return coef @ coef / 2 + hinge.sum()

    ours = objective(fits.coef[:, 0], fits.intercept[0])
    plain = SVC(kernel="linear", tol=1e-5).fit(X[rows] - X[rows].mean(axis=0), y[rows])
    moved = plain.intercept_[0] - plain.coef_[0] @ X[rows].mean(axis=0)
    assert ours == pytest.approx(objective(plain.coef_[0], moved), rel=1e-6)
    rng = np.random.default_rng(1)
    for _ in range(20):
        step = 1e-3 * rng.standard_normal(20)
        assert (
            objective(fits.coef[:, 0] + step, fits.intercept[0] - step @ X[rows].mean(axis=0)) > ours - 1e-9
        )


def test_an_svm_that_runs_out_of_iterations_says_so():
    X, y, train, runs = problem(20)
    fits = LinearSVM(max_iter=5).fit_folds(X, y, train[:, :2], runs)
    assert not fits.converged.any() and fits.status[1].startswith("not converged: LIBSVM reached max_iter=5")


@pytest.mark.parametrize("n_features", [20, 300])
@pytest.mark.parametrize("priors", [None, (0.5, 0.5)], ids=str)
def test_lda_is_the_one_of_scikit_learn(n_features, priors):
    X, y, train, runs = problem(n_features)
    X[:, 7] = 3.0  # a constant voxel
    fits = ShrinkageLDA(class_weight=priors and "balanced").fit_folds(X, y, train, runs)
    for fold in (0, 5):
        rows = train[:, fold]
        plain = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto", priors=priors)
        plain.fit(X[rows], y[rows])
        np.testing.assert_allclose(fits.coef[:, fold], plain.coef_[0], atol=1e-10 * np.abs(plain.coef_).max())
        np.testing.assert_allclose(fits.intercept[fold], plain.intercept_[0], atol=1e-9)
        np.testing.assert_allclose(fits.proba[:, fold], plain.predict_proba(X)[:, 1], atol=1e-9)
    assert fits.converged.all() and fits.status[0].startswith("closed form, covariances shrunk by 0.")


def test_both_forms_of_lda_agree_and_the_dual_one_needs_no_matrix_of_voxels(monkeypatch):
    X, y, train, runs = problem(90)
    dual = METHODS["lda"].fit_folds(X, y, train[:, :1], runs).coef
    monkeypatch.setattr("mvpa_gamp.methods.gram._dual_solution", _primal_solution)
    np.testing.assert_allclose(METHODS["lda"].fit_folds(X, y, train[:, :1], runs).coef, dual, atol=1e-9)
    monkeypatch.setattr("mvpa_gamp.methods.gram._dual_solution", _dual_solution)
    many = np.random.default_rng(0).standard_normal((80, 60_000)).astype(np.float32)  # 29 GB of covariance
    fits = METHODS["lda"].fit_folds(many, y, train[:, :1], runs)
    assert np.isfinite(fits.coef).all() and 0.9 < fits.parameters["shrinkage.positive"][0] <= 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_features", [2, 3, 9, 50])
def test_lda_of_two_rows_per_class_shrinks_nothing(n_features, dtype):
    """Ledoit and Wolf's weight is then zero but for rounding, by which weights of 1e11 came about."""
    X = np.random.default_rng(n_features).standard_normal((4, n_features)).astype(dtype)
    y = np.repeat([1.0, -1.0], 2)
    fits = METHODS["lda"].fit_folds(X, y, np.ones((4, 1), dtype=bool), np.arange(4))
    peer = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto").fit(X.astype(float), y)
    assert fits.converged[0] and fits.parameters["shrinkage.positive"][0] == 0
    np.testing.assert_allclose(fits.coef[:, 0], peer.coef_[0], atol=1e-8 * np.abs(peer.coef_).max())
    np.testing.assert_allclose(fits.intercept, peer.intercept_, rtol=1e-8)


def test_lda_without_spread_within_classes_says_so():
    y = np.tile([1.0, -1.0], 4)
    fits = METHODS["lda"].fit_folds(
        y[:, None] * [[1.0, 2.0, 0.0]], y, np.ones((8, 1), dtype=bool), np.arange(8)
    )
    assert not fits.converged[0] and fits.status[0].startswith("failed: rows of a class do not differ")
    np.testing.assert_allclose(fits.coef[:, 0], [2.0, 4.0, 0.0])


def test_wrong_settings_are_refused():
    with pytest.raises(ValueError, match="LinearSVM needs C, tol and max_iter above 0"):
        LinearSVM(C=0)
    with pytest.raises(ValueError, match=r"class_weight must be None, 'balanced' or .*got 'heavy'"):
        ShrinkageLDA(class_weight="heavy")


@pytest.mark.parametrize(("name", "error"), [("svm", 13.0), ("lda", 10.9)])
def test_errors_on_the_real_slice(name, error, haxby_slice):
    """All 28 pairs are in figures/all_pairs; four of them, of which two are hard, take a second."""
    pairs = [("face", "house"), ("cat", "chair"), ("bottle", "shoe"), ("scissors", "shoe")]
    rates = []
    for task in make_tasks(haxby_slice.conditions, pairs):
        X, runs = haxby_slice.X[task.rows], haxby_slice.runs[task.rows]
        rates.append(100 * fold_errors(cross_validate(METHODS[name], X, task.y, runs), task.y).mean())
    assert abs(np.mean(rates) - error) < 8 and rates[0] < 5


def test_an_offset_that_inner_products_cannot_resolve():
    """With 1e9 added, weights and decisions were rounding; with 1e4 they are those of X."""
    rng = np.random.default_rng(0)
    X, y, runs = rng.standard_normal((24, 5)), np.tile([1, -1], 12), np.repeat(np.arange(4), 6)
    train = runs[:, None] != np.arange(4)
    plain, moved = (METHODS["svm"].fit_folds(X + offset, y, train, runs) for offset in (0, 1e4))
    np.testing.assert_allclose(moved.decision, plain.decision, atol=1e-3)
    with pytest.raises(ValueError, match=r"no feature varies by more than.*Subtract the mean"):
        METHODS["svm"].fit_folds(X + 1e9, y, train, runs)
