"""Class weights: every method has them, computed on its own training rows."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit
from sklearn.utils import compute_class_weight

from mvpa_gamp.decoding import cross_validate, fold_errors, leave_one_run_out, permutation_test
from mvpa_gamp.methods import METHODS, L1LogisticCV
from mvpa_gamp.methods.fold_fits import row_weights, weights_classes, with_class_weight


@pytest.fixture(scope="module")
def unequal():
    """Six runs of 2 against 8 rows and 12 features, one of which matters a little."""
    y = np.tile([1.0] * 2 + [-1.0] * 8, 6)
    X = np.random.default_rng(0).standard_normal((60, 12)) + 0.5 * y[:, None] * (np.arange(12) == 5)
    return X, y, np.repeat(np.arange(6), 10)


def fit(method, X, y, train, runs):
    graph = sparse.eye_array(X.shape[1], k=1) if method.uses_connectivity else None
    return method.fit_folds(X, y, train, runs, connectivity=graph)


def test_weights_are_those_of_scikit_learn_on_training_rows():
    y = np.array([1, 1, -1, -1, -1, -1, -1.0])
    Y = np.column_stack([y, np.where(np.arange(7) < 4, y, 0)])
    for column, weights in zip(Y.T, row_weights(Y, "balanced").T, strict=True):
        rows = column != 0
        low, high = compute_class_weight("balanced", classes=np.array([-1.0, 1.0]), y=column[rows])
        np.testing.assert_allclose(weights, np.select([column > 0, column < 0], [high, low]))
    np.testing.assert_array_equal(row_weights(Y, None), Y != 0)
    np.testing.assert_array_equal(row_weights(Y, {1: 2.0, -1: 0.5})[:, 0], np.where(y > 0, 2.0, 0.5))


@pytest.mark.parametrize("name", METHODS)
def test_balanced_means_that_copies_of_the_rare_class_change_nothing(name, unequal):
    """Four copies of every rare row make classes equal: weighted 4 : 1 it is the same problem."""
    X, y, runs = unequal
    times = np.where(y > 0, 4, 1)
    copies = [np.repeat(each, times, axis=0) for each in (X, y, runs)]
    method = METHODS[name]
    if name == "lda":  # its covariances are those of the rows; only the priors are weighted
        pytest.skip("copies change the shrinkage of a covariance")
    if name.startswith("vamp-"):
        pytest.skip("copies change how many rows there are, and rate, slab and noise follow from that")
    scale = len(copies[1]) / len(y)  # balanced weights add up to the number of rows
    method = replace(method, class_weight={1: 2.5 * scale, -1: 0.625 * scale})
    plain = METHODS[name]
    train = leave_one_run_out(runs).train[:, :2]
    weighted = fit(method, X, y, train, runs)
    copied = fit(plain, copies[0], copies[1], np.repeat(train, times, axis=0), copies[2])
    # LIBLINEAR stops early, and takes rows in another order; the others are at their optimum.
    tolerance = 0.05 if name in ("cdn", "tron") else 1e-3
    np.testing.assert_allclose(weighted.coef, copied.coef, atol=tolerance * np.abs(copied.coef).max())
    balanced = fit(with_class_weight(plain, "balanced"), X, y, train, runs)
    unweighted = fit(plain, X, y, train, runs)
    right = [((each.decision > 0) & (y > 0)[:, None]).sum() for each in (balanced, unweighted)]
    assert right[0] >= right[1]


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_weighted_l1_is_at_its_optimum(unequal, fit_intercept):
    """The optimality conditions of sum_m c_m log(1 + exp(-y_m z_m)) + lambda |w|_1."""
    X, y, runs = unequal
    method = L1LogisticCV(fit_intercept=fit_intercept, class_weight="balanced", tol=1e-10)
    fits = method.fit_folds(X, y, np.ones((60, 1), dtype=bool), runs)
    lam, coef = fits.parameters["lambda"][0], fits.coef[:, 0]
    slope = row_weights(y[:, None], "balanced")[:, 0] * y * expit(-y * fits.decision[:, 0])
    used = coef != 0
    assert fits.converged[0] and used.any()
    np.testing.assert_allclose(X[:, used].T @ slope, lam * np.sign(coef[used]), atol=1e-3 * lam)
    assert np.abs(X.T @ slope).max() <= lam * (1 + 1e-3)
    assert not fit_intercept or abs(slope.sum()) < 1e-3


def test_the_whole_of_decoding_uses_the_weights(unequal):
    X, y, runs = unequal
    method = with_class_weight(METHODS["svm"], "balanced")
    fits = cross_validate(method, X, y, runs)
    alone = method.fit_folds(X, y, (runs != 3)[:, None], runs)
    np.testing.assert_allclose(fits.coef[:, 3], alone.coef[:, 0], atol=1e-9)
    tested, plain = (permutation_test(each, X, y, runs, 3) for each in (method, METHODS["svm"]))
    assert tested.score == pytest.approx(1 - fold_errors(fits, y).mean())
    assert tested.score != plain.score


@dataclass(frozen=True)
class _NoWeights:
    name: str = "stranger"


def test_who_cannot_weigh_says_so():
    assert all(weights_classes(method) for method in METHODS.values())
    with pytest.raises(ValueError, match=r"'stranger' does not support class weights\. Leave out"):
        with_class_weight(_NoWeights(), "balanced")
    assert with_class_weight(_NoWeights(), None) == _NoWeights()
    for wrong in ("heavy", {1: 1.0}, {1: 1.0, -1: 0.0}, {1: 1.0, -1: np.inf}, 3):
        with pytest.raises(ValueError, match="class_weight must be None, 'balanced' or"):
            with_class_weight(METHODS["gamp-bg-lr"], wrong)
