"""Columns never see each other: batches, orders, failures and limits."""

from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mvpa_gamp.gamp import Bernoulli, Design, Gaussian, Laplace, Logistic, SolverSettings, fit_em, solve
from mvpa_gamp.gamp.likelihoods import Likelihood
from mvpa_gamp.gamp.moments import Slopes
from mvpa_gamp.gamp.result import CAVITY, FIXED_POINT, ITERATION_LIMIT, NOT_FINITE
from mvpa_gamp.gamp.starts import start_laplace, start_prior
from mvpa_gamp.methods import METHODS

pytestmark = pytest.mark.whole

MAX_SUM = SolverSettings(mode="max-sum", intercept=True)
CAVITY_RUN = SolverSettings(intercept=True)
# Sums in another order, amplified over some hundred iterations.
TOLERANCE = {np.float64: 1e-10, np.float32: 1e-4}


def problem(dtype=np.float64, n_rows=60, n_features=120, n_columns=5, seed=0, noise=1.0):
    """X (M, N), labels (M,) that six features explain, and training rows of interleaved folds (M, B)."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features))
    y = np.where(X[:, :6].sum(axis=1) + noise * rng.standard_normal(n_rows) > 0, 1.0, -1.0)
    train = (np.arange(n_rows) % n_columns)[:, None] != np.arange(n_columns)
    return X.astype(dtype), y, train


def fit_cavity(X, y, train, **more):
    design = Design(X, train)
    return fit_em(design, y, Logistic(), start_prior("bernoulli-gaussian", design), CAVITY_RUN, **more)


def fit_max_sum(X, y, train, **more):
    design = Design(X, train)
    prior = start_laplace(design, y, Logistic())
    return fit_em(design, y, Logistic(), prior, MAX_SUM, max_em_iter=4, **more)


FITS = pytest.mark.parametrize("fit", [fit_cavity, fit_max_sum])


def assert_same(found, wanted, columns=slice(None), tolerance=1e-10, features=None):
    """Weights, intercept, predictions and status of ``found`` are the given columns of ``wanted``."""
    for name in ("coef", "coef_var", "intercept", "p"):
        one, other = getattr(found.result, name), getattr(wanted.result, name)[..., columns]
        if features is not None and name.startswith("coef"):
            other = other[features]
        np.testing.assert_allclose(one, other, atol=tolerance * np.abs(other).max(), rtol=0, err_msg=name)
    np.testing.assert_array_equal(found.result.status, wanted.result.status[columns])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@FITS
def test_a_batch_equals_its_columns_one_by_one(fit, dtype):
    X, y, train = problem(dtype)
    together = fit(X, y, train)
    for column in range(train.shape[1]):
        alone = fit(X, y, train[:, [column]])
        assert_same(alone, together, [column], TOLERANCE[dtype])


@FITS
def test_order_of_columns(fit):
    X, y, train = problem()
    order = np.array([3, 0, 4, 1, 2])
    assert_same(fit(X, y, train[:, order]), fit(X, y, train), order)


@FITS
def test_dropped_and_split_columns(fit):
    X, y, train = problem()
    whole = fit(X, y, train)
    for columns in ([0, 2, 4], [0, 1], [2, 3, 4]):
        assert_same(fit(X, y, train[:, columns]), whole, columns)


@FITS
def test_equal_columns_give_equal_fits(fit):
    X, y, train = problem()
    twice = fit(X, y, np.repeat(train[:, :1], 3, axis=1)).result
    for column in (1, 2):
        np.testing.assert_allclose(twice.coef[:, column], twice.coef[:, 0], atol=1e-10)


# Max-sum ends within its tolerance of the optimum; another order of the sums may add an iteration.
ORDERS = pytest.mark.parametrize(("fit", "tolerance"), [(fit_cavity, 1e-9), (fit_max_sum, 1e-5)])


@ORDERS
def test_order_of_rows(fit, tolerance):
    X, y, train = problem()
    order = np.random.default_rng(1).permutation(len(X))
    found, wanted = fit(X[order], y[order], train[order]).result, fit(X, y, train).result
    np.testing.assert_allclose(found.coef, wanted.coef, atol=tolerance * np.abs(wanted.coef).max())
    np.testing.assert_allclose(found.p, wanted.p[order], atol=tolerance * np.abs(wanted.p).max())


@ORDERS
def test_order_of_features(fit, tolerance):
    X, y, train = problem()
    order = np.random.default_rng(2).permutation(X.shape[1])
    found, wanted = fit(X[:, order], y, train).result, fit(X, y, train).result
    np.testing.assert_allclose(found.coef, wanted.coef[order], atol=tolerance * np.abs(wanted.coef).max())
    np.testing.assert_allclose(found.p, wanted.p, atol=tolerance * np.abs(wanted.p).max())


@FITS
def test_swapped_classes_flip_the_signs(fit):
    X, y, train = problem()
    found, wanted = fit(X, -y, train).result, fit(X, y, train).result
    np.testing.assert_allclose(found.coef, -wanted.coef, atol=1e-8 * np.abs(wanted.coef).max())
    np.testing.assert_allclose(found.intercept, -wanted.intercept, atol=1e-8)


@FITS
def test_several_comparisons_in_one_batch_equal_separate_fits(fit):
    rng = np.random.default_rng(3)
    category = np.arange(120) % 4
    X = rng.standard_normal((120, 80))
    X[np.arange(120), category] += 2.0  # one telling feature per category
    pairs = [(0, 1), (2, 3), (0, 3), (1, 2)]
    train = np.array([np.isin(category, pair) for pair in pairs]).T
    y = np.array([np.where(category == a, 1.0, -1.0) for a, _ in pairs]).T
    together = fit(X, y, train)
    assert Design(X, train)._groups is not None
    for column in range(len(pairs)):
        rows = train[:, column]
        alone = fit(X[rows], y[rows, column], np.ones((rows.sum(), 1), dtype=bool)).result
        np.testing.assert_allclose(together.result.coef[:, [column]], alone.coef, atol=1e-9)
        np.testing.assert_allclose(together.result.p[rows, column], alone.p[:, 0], atol=1e-8)
        assert together.result.status[column] == alone.status[0]


@FITS
def test_labels_on_held_out_rows_never_matter(fit):
    X, y, train = problem()
    wanted = fit(X, y, train)
    for other in (np.nan, 7.0, np.inf):
        labels = np.where(train, y[:, None], other)
        found = fit(X, labels, train)
        np.testing.assert_array_equal(found.result.coef, wanted.result.coef)
        np.testing.assert_array_equal(found.result.p, wanted.result.p)
    flipped = fit(X, np.where(train, y[:, None], -y[:, None]), train)
    np.testing.assert_array_equal(flipped.result.coef, wanted.result.coef)


def test_held_out_predictions_are_plain_scores():
    X, y, train = problem()
    result = fit_cavity(X, y, train).result
    z = X @ result.coef + result.intercept
    np.testing.assert_allclose(result.p[~train], z[~train], atol=1e-10)
    assert np.abs(result.p[train] - z[train]).max() > 1e-3  # training rows carry their cavity


@dataclass(frozen=True)
class Failing(Likelihood):
    """A logistic likelihood whose slopes are NaN in marked columns once scores have left zero."""

    marked: Any = 0.0
    base: Logistic = field(default_factory=Logistic)

    def evaluate(self, y, p, tau_p):
        (s, tau_s), log_partition = self.base.evaluate(y, p, tau_p)
        return Slopes(self._spoilt(s, p), tau_s), log_partition

    def log_partition(self, y, p, tau_p):
        return self.base.log_partition(y, p, tau_p)

    def prox_score(self, y, p, tau_p):
        s, tau_s = self.base.prox_score(y, p, tau_p)
        return Slopes(self._spoilt(s, p), tau_s)

    def loss(self, y, z):
        return self.base.loss(y, z)

    def loss_slopes(self, y, z):
        return self.base.loss_slopes(y, z)

    def _spoilt(self, s, p):
        return np.where((np.asarray(self.marked) > 0) & (np.abs(p) > 1e-6), np.nan, s)


@pytest.mark.parametrize("mode", ["cavity", "fixed-point", "max-sum"])
def test_a_column_that_turns_non_finite_says_so_and_disturbs_no_other(mode):
    X, y, train = problem()
    design = Design(X, train)
    if mode == "max-sum":
        run, prior = MAX_SUM, start_laplace(design, y, Logistic())
    else:
        run, prior = SolverSettings(stop=mode, intercept=True), start_prior("bernoulli-gaussian", design)
    marked = np.array([0.0, 1.0, 0.0, 0.0, 1.0])
    found = solve(design, y, Failing(marked), prior, run)
    wanted = solve(design, y, Logistic(), prior, run)
    bad, good = marked > 0, marked == 0
    assert (found.status[bad] == NOT_FINITE).all() and not found.converged[bad].any()
    for item in fields(found):
        values = getattr(found, item.name)
        if item.name not in ("status", "cavity_score"):
            assert np.isfinite(values).all(), item.name
            np.testing.assert_allclose(
                values[..., good], getattr(wanted, item.name)[..., good], rtol=1e-9, atol=1e-9
            )
    np.testing.assert_array_equal(found.status[good], wanted.status[good])
    assert wanted.converged.all()


def test_tuning_survives_a_column_that_turns_non_finite():
    X, y, train = problem()
    design = Design(X, train)
    marked = np.array([0.0, 0.0, 1.0, 0.0, 0.0])
    found = fit_em(design, y, Failing(marked), start_prior("bernoulli-gaussian", design), CAVITY_RUN)
    wanted = fit_cavity(X, y, train)
    good = marked == 0
    assert found.result.status[2] == NOT_FINITE
    assert np.isfinite(found.result.coef).all() and np.isfinite(found.prior.rate).all()
    np.testing.assert_allclose(found.result.coef[:, good], wanted.result.coef[:, good], atol=1e-10)
    np.testing.assert_array_equal(found.result.status[good], wanted.result.status[good])


@pytest.mark.parametrize("run", [CAVITY_RUN, replace(CAVITY_RUN, stop="fixed-point"), MAX_SUM])
def test_iteration_limit(run):
    X, y, train = problem()
    result = solve(Design(X, train), y, Logistic(), Laplace(3.0), replace(run, max_iter=2))
    assert (result.status == ITERATION_LIMIT).all() and not result.converged.any()
    assert (result.n_iter == 2).all() and np.isfinite(result.coef).all()


def test_status_says_which_rule_stopped_a_column():
    X, y, train = problem()
    assert (fit_cavity(X, y, train).result.status == CAVITY).all()
    assert (fit_max_sum(X, y, train).result.status == FIXED_POINT).all()


def test_history_is_nan_after_a_column_stopped():
    X, y, train = problem()
    found = fit_cavity(X, y, train)
    for name in ("prior.rate", "prior.slab.var"):
        values = found.history[name]
        assert values.shape == (found.result.n_iter.max(), train.shape[1])
        for column, n_iter in enumerate(found.result.n_iter):
            assert np.isfinite(values[:n_iter, column]).all()
            assert np.isnan(values[n_iter:, column]).all()
    assert found.result.n_iter.min() < found.result.n_iter.max()  # or the test says nothing


def test_the_models_returned_are_those_of_the_kept_state():
    X, y, train = problem()
    found = fit_cavity(X, y, train)
    for column, kept in enumerate(found.result.kept_iter):
        # The state of iteration k was made with the parameters learnt after iteration k - 1.
        assert found.prior.rate[column] == found.history["prior.rate"][kept - 2, column]
    w, tau_w = found.prior.posterior(found.result.r, found.result.tau_r)
    np.testing.assert_allclose(found.result.coef, w, atol=1e-12)
    np.testing.assert_allclose(found.result.coef_var, tau_w, atol=1e-12)


@FITS
def test_callback_sees_every_iteration(fit):
    X, y, train = problem()
    seen = []
    found = fit(X, y, train, callback=seen.append).result
    assert all(progress.n_columns <= train.shape[1] for progress in seen)
    assert all(0 <= progress.n_active <= progress.n_columns for progress in seen)
    assert all(1 <= progress.iteration <= progress.max_iter for progress in seen)
    assert seen[-1].n_active == 0
    if fit is fit_cavity:
        assert [progress.iteration for progress in seen] == list(range(1, found.n_iter.max() + 1))


def test_a_callback_may_stop_the_run():
    X, y, train = problem()

    def stop(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_cavity(X, y, train, callback=stop)


def test_warm_start_shortens_and_does_not_move_the_optimum():
    X, y, train = problem()
    design, prior = Design(X, train), Laplace(3.0)
    cold = solve(design, y, Logistic(), prior, MAX_SUM)
    warm = solve(design, y, Logistic(), prior, MAX_SUM, warm=cold)
    assert (warm.n_iter < cold.n_iter / 2).all() and warm.converged.all()
    np.testing.assert_allclose(warm.coef, cold.coef, atol=1e-5)
    near = solve(design, y, Logistic(), Laplace(2.9), MAX_SUM, warm=cold)
    fresh = solve(design, y, Logistic(), Laplace(2.9), MAX_SUM)
    assert near.n_iter.sum() < fresh.n_iter.sum()
    np.testing.assert_allclose(near.coef, fresh.coef, atol=1e-5)


@pytest.mark.parametrize("factor", [1e-3, 1e3])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", ["gamp-bg-lr", "gamp-l1-lr"])
def test_scale_of_x(name, dtype, factor):
    X, y, train = problem(dtype)
    runs = np.arange(len(y)) % 5
    plain = METHODS[name].fit_folds(X, y, train, runs)
    scaled = METHODS[name].fit_folds((X * factor).astype(dtype), y, train, runs)
    # float64: rounding of the products. float32: rounding over some hundred iterations; max-sum moreover
    # stops within 1e-4 of its fixed point, in weights measured against their own size.
    tolerance = {np.float64: 1e-6, np.float32: 2e-3}[dtype] * np.abs(plain.decision).max()
    np.testing.assert_allclose(scaled.decision, plain.decision, atol=tolerance)
    np.testing.assert_allclose(scaled.proba, plain.proba, atol=2e-3)
    np.testing.assert_array_equal(scaled.support, plain.support)
    assert scaled.status == plain.status


FEW = settings(max_examples=5, deadline=None)
SEEDS = st.integers(0, 2**32 - 1)


@FEW
@given(seed=SEEDS, n_columns=st.integers(2, 5))
def test_any_order_and_choice_of_columns(seed, n_columns):
    X, y, train = problem(n_rows=30, n_features=40, n_columns=n_columns, seed=seed, noise=0.5)
    y[:n_columns], y[-n_columns:] = 1, -1  # both classes in every fold
    rng = np.random.default_rng(seed)
    chosen = rng.choice(n_columns, size=rng.integers(1, n_columns + 1), replace=False)
    assert_same(fit_cavity(X, y, train[:, chosen]), fit_cavity(X, y, train), chosen, 1e-9)


@FEW
@given(seed=SEEDS)
def test_any_order_of_rows_and_features(seed):
    X, y, train = problem(n_rows=30, n_features=40, n_columns=3, seed=seed)
    y[:3], y[-3:] = 1, -1
    rng = np.random.default_rng(seed)
    rows, features = rng.permutation(30), rng.permutation(40)
    found = fit_cavity(X[np.ix_(rows, features)], y[rows], train[rows]).result
    wanted = fit_cavity(X, y, train).result
    np.testing.assert_allclose(found.coef, wanted.coef[features], atol=1e-8 * np.abs(wanted.coef).max())


@FEW
@given(seed=SEEDS, share=st.floats(0.1, 0.9))
def test_any_order_for_max_sum(seed, share):
    X, y, train = problem(n_rows=30, n_features=40, n_columns=3, seed=seed)
    y[:3], y[-3:] = 1, -1
    rng = np.random.default_rng(seed)
    rows, features, columns = rng.permutation(30), rng.permutation(40), rng.permutation(3)
    prior = Laplace(share * np.abs(X.T @ y).max() / 2)
    found = solve(
        Design(X[np.ix_(rows, features)], train[np.ix_(rows, columns)]), y[rows], Logistic(), prior, MAX_SUM
    )
    wanted = solve(Design(X, train), y, Logistic(), prior, MAX_SUM)
    scale = np.abs(wanted.coef).max() + 1e-3
    np.testing.assert_allclose(found.coef, wanted.coef[np.ix_(features, columns)], atol=1e-5 * scale)


@pytest.mark.parametrize("mode", ["sum-product", "max-sum"])
def test_a_column_depends_on_its_training_rows_alone(mode):
    """Neither the features of a held-out run nor those of other comparisons reach a fit."""
    rng = np.random.default_rng(5)
    X, y = rng.standard_normal((90, 70)) + 0.5, np.where(np.arange(90) % 2, 1.0, -1.0)
    X[:, :5] += 0.8 * y[:, None]
    train = np.zeros((90, 2), dtype=bool)
    train[:50, 0], train[10:60, 1] = True, True
    other = X.copy()
    other[60:] = 3 * other[60:] - 2.0
    settings = SolverSettings(mode=mode, intercept=True)
    prior = Laplace(3.0) if mode == "max-sum" else Bernoulli(0.1, Gaussian(var=0.5))
    first, second = (
        fit_em(Design(each, train, center="train"), y, Logistic(), prior, settings) for each in (X, other)
    )
    np.testing.assert_allclose(second.result.coef, first.result.coef, atol=1e-8)
    np.testing.assert_allclose(second.result.plain_intercept, first.result.plain_intercept, atol=1e-8)
    alone = fit_em(Design(X[:50], train[:50, :1], center="train"), y[:50], Logistic(), prior, settings)
    np.testing.assert_allclose(alone.result.coef[:, 0], first.result.coef[:, 0], atol=1e-8)
    np.testing.assert_allclose(alone.result.z[:, 0], first.result.z[:50, 0], atol=1e-7)
