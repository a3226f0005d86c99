"""A row of weight k is k copies of the row, in every mode and for every form of X."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from mvpa_gamp.gamp import Design, Laplace, Logistic, Probit, Robust, SolverSettings, fit_em, solve
from mvpa_gamp.gamp.starts import solve_screened, start
from mvpa_gamp.methods import METHODS
from mvpa_gamp.methods.liblinear import _penalty

pytestmark = pytest.mark.whole

SUM_PRODUCT, MAX_SUM = SolverSettings(intercept=True), SolverSettings(mode="max-sum", intercept=True)
# Sums of k equal numbers instead of k times one, over some ten iterations; the issue asks for 1e-6.
TOLERANCE = 1e-9


def problem(n_rows=48, n_features=90, seed=0):
    """X (M, N), labels (M,), training rows of four folds (M, 4) and whole weights 1 to 3 (M,)."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features)) + 0.3
    y = np.where(X[:, :4].sum(axis=1) - 1.2 + rng.standard_normal(n_rows) > 0.6, 1.0, -1.0)
    train = (np.arange(n_rows) % 4)[:, None] != np.arange(4)
    return X, y, train, rng.integers(1, 4, n_rows)


def chain(n_features):
    """Every feature has the one before and the one after as neighbours."""
    return sparse.diags_array([np.ones(n_features - 1)], offsets=[1])


def assert_same_fit(found, wanted, tolerance=TOLERANCE):
    for name in ("coef", "coef_var", "intercept", "plain_intercept", "cavity_score", "tau_r"):
        one, other = getattr(found.result, name), getattr(wanted.result, name)
        size = np.abs(other).max(initial=0, where=~np.isnan(other))
        np.testing.assert_allclose(one, other, atol=tolerance * size, err_msg=name)
    np.testing.assert_array_equal(found.result.n_iter, wanted.result.n_iter)
    for name, value in wanted.history.items():
        np.testing.assert_allclose(found.history[name], value, rtol=tolerance, err_msg=name)


def tuned(X, y, train, settings, likelihood, prior, learn=None, weights=None, **design):
    design = Design(X, train, weights=weights, **design)
    begin = start(prior, design, y, likelihood, settings.mode)
    names = {"learn_likelihood": learn, "learn_prior": () if learn else None}  # one scale at a time
    return fit_em(design, y, likelihood, begin, settings, **names, max_em_iter=4)


BG, LAPLACE = "bernoulli-gaussian", "laplace"
UNIFORM = SolverSettings(intercept=True, variance="uniform")
FIXED_POINT = SolverSettings(intercept=True, stop="fixed-point", max_iter=60)


@pytest.mark.parametrize(
    ("settings", "likelihood", "prior", "learn"),
    [
        (SUM_PRODUCT, Logistic(), BG, None),
        (SUM_PRODUCT, Logistic(), BG, ("scale",)),
        (SUM_PRODUCT, Robust(Probit(2.9), flip=0.05), BG, None),
        (UNIFORM, Logistic(), BG, None),
        (FIXED_POINT, Logistic(), BG, None),
        (MAX_SUM, Logistic(), LAPLACE, None),
    ],
)
@pytest.mark.parametrize("center", ["train", None])
def test_a_weight_is_a_number_of_copies(settings, likelihood, prior, learn, center):
    X, y, train, weights = problem()
    weighted = tuned(X, y, train, settings, likelihood, prior, learn, weights, center=center)
    X, y, train = (np.repeat(each, weights, axis=0) for each in (X, y, train))
    copied = tuned(X, y, train, settings, likelihood, prior, learn, center=center)
    assert_same_fit(weighted, copied)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csc_array])
def test_weights_with_neighbours_and_sparse_x(form):
    X, y, train, weights = problem()
    X = X * (np.abs(X) > 0.7)
    graph = chain(X.shape[1])
    weighted = tuned(
        form(X), y, train, SUM_PRODUCT, Logistic(), BG, None, weights, center="train", connectivity=graph
    )
    X, y, train = (np.repeat(each, weights, axis=0) for each in (X, y, train))
    copied = tuned(form(X), y, train, SUM_PRODUCT, Logistic(), BG, center="train", connectivity=graph)
    assert_same_fit(weighted, copied)


def test_every_column_may_have_its_own_weights_and_a_row_of_weight_zero_is_held_out():
    X, y, train, _ = problem()
    weights = np.random.default_rng(1).uniform(0.2, 3, train.shape)
    weights[5, train[5]] = 0
    held_out = train.copy()
    held_out[5] = False
    together = tuned(X, y, train, SUM_PRODUCT, Logistic(), BG, None, weights, center="train")
    for column in range(train.shape[1]):
        alone = tuned(
            X, y, held_out[:, column], SUM_PRODUCT, Logistic(), BG, None, weights[:, column], center="train"
        )
        for name in ("coef", "p"):
            np.testing.assert_allclose(
                getattr(alone.result, name)[:, 0], getattr(together.result, name)[:, column], atol=1e-9
            )


def test_weights_of_one_change_no_bit_and_held_out_weights_are_never_read():
    X, y, train, _ = problem()
    plain = tuned(X, y, train, SUM_PRODUCT, Logistic(), BG, center="train").result
    ones = np.where(train, 1.0, np.nan)
    weighted = tuned(X, y, train, SUM_PRODUCT, Logistic(), BG, None, ones, center="train").result
    np.testing.assert_array_equal(weighted.coef, plain.coef)
    np.testing.assert_array_equal(weighted.z, plain.z)


@pytest.mark.parametrize("solver", [solve, solve_screened])
def test_the_minimum_of_the_weighted_loss_is_that_of_another_solver(solver):
    X, y, _, _ = problem(n_rows=80, n_features=500)
    weights = np.random.default_rng(2).uniform(0.1, 4, y.size)
    rate = 4.0
    found = solver(Design(X, weights=weights, center="train"), y, Logistic(), Laplace(rate), MAX_SUM)
    other = LogisticRegression(solver="saga", C=1 / rate, tol=1e-9, max_iter=20_000)
    other.set_params(**_penalty(other, l1=True)).fit(X, y, sample_weight=weights)
    assert np.count_nonzero(found.coef) > 5
    np.testing.assert_allclose(found.coef[:, 0], other.coef_[0], atol=1e-5)
    np.testing.assert_allclose(found.plain_intercept, other.intercept_, atol=1e-5)


@pytest.mark.parametrize("name", ["gamp-bg-lr", "gamp-sbg-lr", "gamp-l1-lr"])
def test_methods_take_weights(name):
    X, y, train, weights = problem()
    runs, graph = np.arange(y.size) % 4, chain(X.shape[1])
    weighted = METHODS[name].fit_folds(X, y, train, runs, graph, weights)
    rows = np.repeat(np.arange(y.size), weights)
    copied = METHODS[name].fit_folds(X[rows], y[rows], train[rows], runs[rows], graph)
    for one, other in ((weighted.coef, copied.coef), (weighted.decision[rows], copied.decision)):
        np.testing.assert_allclose(one, other, atol=1e-6 * np.abs(other).max())


def test_a_search_that_knows_no_weights_says_so():
    X, y, train, weights = problem()
    with pytest.raises(ValueError, match=r"gamp-l1-lr-cv chooses its penalty by a search .* Use gamp-l1-lr"):
        METHODS["gamp-l1-lr-cv"].fit_folds(X, y, train, np.arange(y.size) % 4, weights=weights)


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        (np.ones(7), r"weights must have shape \(48,\) or \(48, 4\), got \(7,\)"),
        (np.full(48, -2.0), "weights must be finite and not negative, got -2 .* counts twice"),
        (np.full(48, np.nan), "weights must be finite and not negative, got nan"),
        (np.ones(48) * 1j, "weights must hold real numbers"),
        (np.zeros(48), "Every column of train needs training rows"),
    ],
)
def test_weights_that_make_no_sense(weights, sentence):
    X, _, train, _ = problem()
    with pytest.raises(ValueError, match=sentence):
        Design(X, train, weights=weights)
