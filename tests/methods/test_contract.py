"""What every member of METHODS promises."""

import re

import numpy as np
import pytest
from scipy import sparse

from mvpa_gamp.decoding import leave_one_run_out, make_tasks
from mvpa_gamp.methods import CDN, METHODS, TRON, L1LogisticCV, OneBitCS

NAMES = sorted(METHODS)
# Columns never see each other; what remains is rounding, which iterations may amplify.
CLOSE = 1e-4


def fit_folds(name, X, *given):
    """The fit of a method; one that wants neighbours is told that features stand in a row."""
    row = sparse.eye_array(X.shape[1], k=1)
    return METHODS[name].fit_folds(X, *given, connectivity=row if METHODS[name].uses_connectivity else None)


@pytest.fixture(scope="module")
def problem(toy_study):
    (task,) = make_tasks(toy_study.conditions, [("cat", "scissors")])
    X, runs = np.ascontiguousarray(toy_study.X[task.rows], dtype=np.float32), toy_study.runs[task.rows]
    return X, task.y, leave_one_run_out(runs).train, runs


@pytest.fixture(scope="module")
def fits(problem):
    kept = {}

    def fit(name):
        if name not in kept:
            kept[name] = fit_folds(name, *problem)
        return kept[name]

    return fit


def assert_same(fits, expected, columns=slice(None)):
    scale = max(1e-12, np.abs(expected.coef).max())
    np.testing.assert_allclose(fits.coef, expected.coef[:, columns], atol=CLOSE * scale)
    np.testing.assert_allclose(fits.intercept, expected.intercept[columns], atol=CLOSE)
    np.testing.assert_array_equal(fits.support, expected.support[:, columns])
    np.testing.assert_allclose(
        fits.decision, expected.decision[:, columns], atol=CLOSE * np.abs(expected.decision).max()
    )
    assert fits.parameters.keys() == expected.parameters.keys()


def test_names_are_keys_and_texts_are_there():
    for name, method in METHODS.items():
        assert method.name == name
        assert method.label and method.description.endswith(".")
        authors, year = method.short_reference.rsplit(", ", 1)
        assert method.reference.startswith(authors.split()[0]) and f"({year})." in method.reference


@pytest.mark.parametrize("name", NAMES)
def test_facts_are_true(name, problem, fits):
    X, y, train, runs = problem
    method, found = METHODS[name], fits(name)
    assert method.has_posterior == (found.inclusion is not None) == (found.coef_std is not None)
    assert method.intercept in ("free", "penalised", "none")
    assert method.intercept != "none" or not found.intercept.any()  # a penalised one may be zero as well
    tuned_by_search = ("gamp-l1-lr-cv", "l1-lr-cv", "onebit-cs", "cdn", "tron")
    assert method.is_batched == (name not in tuned_by_search)
    assert method.uses_connectivity == (name in ("gamp-sbg-lr", "vamp-sbg"))
    ring = sparse.eye_array(X.shape[1], k=1) + sparse.eye_array(X.shape[1], k=X.shape[1] - 1)
    again = method.fit_folds(X, y, train[:, :1], runs, connectivity=ring).coef
    same = np.array_equal(again, fit_folds(name, X, y, train[:, :1], runs).coef)
    assert same == (not method.uses_connectivity)


def test_only_an_intercept_that_is_free_follows_the_mean_of_the_features(problem):
    X, y, train, runs = problem
    for name in ("gamp-bg-lr", "gamp-l1-lr", "tron", "l1-lr-cv", "svm", "lda"):
        plain, moved = (fit_folds(name, X + c, y, train[:, :1], runs).coef for c in (0.0, 0.5))
        close = np.abs(moved - plain).max() < 1e-2 * np.abs(plain).max()
        assert close == (METHODS[name].intercept == "free"), name


@pytest.mark.parametrize(
    ("method", "text"),
    [
        (L1LogisticCV(n_lambdas=7), "from 7 log-spaced values"),
        (CDN(n_values=6), "CDN is LIBLINEAR's coordinate descent .* from 6 log-spaced values"),
        (TRON(n_values=4), "TRON is LIBLINEAR's trust-region .* from 4 log-spaced values"),
        (OneBitCS(8, 0.005, 0.25), "from 8 log-spaced fractions between 0.5 % and 25 % of the voxels"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_descriptions_tell_their_own_numbers(method, text):
    assert re.search(text, method.description)


@pytest.mark.parametrize("name", NAMES)
def test_shapes_and_finite_values(name, problem, fits):
    X, _, train, _ = problem
    (n_rows, n_features), n_folds = X.shape, train.shape[1]
    found = fits(name)
    assert found.coef.shape == found.support.shape == (n_features, n_folds)
    assert found.support.dtype == bool and found.converged.dtype == bool
    assert found.intercept.shape == found.converged.shape == found.n_iter.shape == (n_folds,)
    assert found.decision.shape == found.proba.shape == (n_rows, n_folds)
    assert len(found.status) == n_folds and all(isinstance(s, str) and s for s in found.status)
    assert found.seconds > 0
    assert all(np.isfinite(part).all() for part in (found.coef, found.intercept, found.decision))
    assert all(value.shape == (n_folds,) for value in found.parameters.values())
    assert np.isnan(found.proba).all() or ((found.proba >= 0) & (found.proba <= 1)).all()
    for optional in (found.coef_std, found.inclusion):
        assert optional is None or optional.shape == (n_features, n_folds)


@pytest.mark.parametrize("name", NAMES)
def test_decision_is_linear_and_the_toy_is_learnt(name, problem, fits):
    X, y, train, _ = problem
    found = fits(name)
    np.testing.assert_allclose(
        found.decision, X.astype(float) @ found.coef + found.intercept, rtol=1e-4, atol=1e-4
    )
    held_out = ~train
    assert np.mean((found.decision > 0) != (y > 0)[:, None], where=held_out) < 0.25
    assert found.support.any(axis=0).all()


@pytest.mark.parametrize("name", NAMES)
def test_folds_differ_and_equal_a_fit_of_their_own(name, problem, fits):
    X, y, train, runs = problem
    together = fits(name)
    assert all(
        np.abs(together.coef[:, i] - together.coef[:, j]).max() > 1e-6
        for i in range(train.shape[1])
        for j in range(i)
    )
    for fold in (0, 3):
        assert_same(fit_folds(name, X, y, train[:, [fold]], runs), together, [fold])


@pytest.mark.parametrize("name", NAMES)
def test_order_of_folds_does_not_matter(name, problem, fits):
    X, y, train, runs = problem
    order = [4, 1, 0, 5, 3, 2]
    assert_same(fit_folds(name, X, y, train[:, order], runs), fits(name), order)


@pytest.mark.parametrize("name", NAMES)
def test_labels_on_held_out_rows_are_never_read(name, problem, fits):
    X, y, train, runs = problem
    hidden = np.where(train, y[:, None], np.nan)
    noise = np.where(train, y[:, None], np.random.default_rng(1).standard_normal(train.shape))
    for labels in (hidden, noise):
        assert_same(fit_folds(name, X, labels, train, runs), fits(name))


@pytest.mark.parametrize("name", NAMES)
def test_each_fold_may_have_its_own_labels(name, problem, fits):
    X, y, train, runs = problem
    flipped = np.column_stack([y, -y])
    found = fit_folds(name, X, flipped, train[:, [0, 0]], runs)
    assert_same(fit_folds(name, X, y, train[:, [0]], runs), found, [0])
    # Swapping the classes mirrors the classifier; coordinate descent has its own order and stops early.
    tolerance = 0.02 if name in ("cdn", "tron") else 1e-3
    np.testing.assert_allclose(found.coef[:, 1], -found.coef[:, 0], atol=tolerance * np.abs(found.coef).max())


@pytest.mark.parametrize("name", NAMES)
def test_sparse_x_gives_the_same_as_dense(name, problem, fits):
    X, y, train, runs = problem
    found = fit_folds(name, sparse.csr_array(X), y, train, runs)
    np.testing.assert_allclose(found.coef, fits(name).coef, atol=1e-3 * np.abs(fits(name).coef).max())


@pytest.mark.parametrize("name", NAMES)
def test_x_is_not_changed(name, problem):
    X, y, train, runs = problem
    before = X.copy()
    fit_folds(name, X, y, train, runs)
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("name", NAMES)
def test_bad_input_is_explained(name, problem):
    X, y, train, runs = problem
    one_class = train.copy()
    one_class[:, 2] = y > 0
    for bad, message in [
        ((np.where(np.arange(60) == 3, np.nan, X), y, train, runs), "X must be finite, got 48 NaN"),
        ((X, y[:-1], train, runs), "y must have shape"),
        ((X, (y + 1) / 2, train, runs), "y must be -1 or .1 on training rows, got 0"),
        ((X, y, one_class, runs), "fold 2 has no row labelled -1"),
        ((X, y, train[:-1], runs), "train must have one row per row of X"),
        ((X, y, train, runs[:-1]), "runs must name the run of each"),
    ]:
        with pytest.raises(ValueError, match=message):
            fit_folds(name, *bad)
