"""Starts know the scale of X and the number of rows, and nothing else."""

import numpy as np
import pytest

from mvpa_gamp.gamp import Design, Laplace, Logistic, SolverSettings, fit_em, solve
from mvpa_gamp.gamp.parameters import expand, parameters, take
from mvpa_gamp.gamp.priors import PRIORS
from mvpa_gamp.gamp.starts import (
    LARGEST_RATE,
    SCORE_VARIANCE,
    SHARE_OF_LARGEST_RATE,
    start_laplace,
    start_prior,
)


def problem(n_rows=60, n_features=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features)) * rng.uniform(0.5, 2.0, n_features)
    train = (np.arange(n_rows) % 3)[:, None] != np.arange(3)
    return X, np.where(X[:, 0] > 0, 1.0, -1.0), train


@pytest.mark.parametrize("factor", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("name", PRIORS)
def test_scores_start_with_the_same_variance_whatever_the_scale(name, factor):
    X, _, train = problem()
    prior = start_prior(name, Design(X * factor, train))
    start = prior.posterior(np.zeros((200, 3)), np.full((200, 3), 1e30))  # nothing is known yet
    assert np.abs(start.mean).max() <= 1e-6 * np.sqrt(start.var).max(), (
        f"{name!r} must have mean zero and suit weights of both signs to be in the registry. Use a one-sided "
        "prior as an object, GAMPClassifier(prior=...)."
    )
    for column, rows in enumerate(train.T):
        variance = (np.square(X[rows] * factor) @ start.var[:, column]).mean()
        # A Laplace prior of rate 1 has variance 2, an elastic net of l1 = l2 = 1 about 1/4.
        assert 0.2 * SCORE_VARIANCE < variance < 2.01 * SCORE_VARIANCE
        if name not in ("laplace", "elastic-net", "bernoulli-elastic-net"):
            assert variance == pytest.approx(SCORE_VARIANCE, rel=1e-6)


@pytest.mark.parametrize("n_columns", [1, 2, 3, 5])
@pytest.mark.parametrize("name", PRIORS)
def test_each_column_gets_its_own_start(name, n_columns):
    # Three columns and three mixture components must not be taken for each other.
    X, y, _ = problem()
    train = np.random.default_rng(1).random((60, n_columns)) < 0.7
    together = expand(start_prior(name, Design(X, train)), n_columns)
    for column in range(n_columns):
        alone = parameters(expand(start_prior(name, Design(X, train[:, [column]])), 1))
        for parameter, value in parameters(take(together, [column])).items():
            np.testing.assert_allclose(value, alone[parameter], rtol=1e-12, err_msg=parameter)
    fit = fit_em(Design(X, train), y, Logistic(), together, SolverSettings(max_iter=3))
    assert np.isfinite(fit.result.coef).all()


@pytest.mark.parametrize(("n_features", "rate"), [(20, LARGEST_RATE), (20_000, 0.001)])
def test_a_bernoulli_rate_starts_at_a_tenth_or_half_a_feature_per_row(n_features, rate):
    X = np.random.default_rng(0).standard_normal((40, n_features))
    assert start_prior("bernoulli-gaussian", Design(X)).rate[0] == pytest.approx(rate)


def test_the_laplace_start_is_a_share_of_the_rate_that_empties_the_model():
    X, y, train = problem()
    design, run = Design(X, train), SolverSettings(mode="max-sum", intercept=True)
    largest = start_laplace(design, y, Logistic()).rate / SHARE_OF_LARGEST_RATE
    # Taken at an intercept of zero: exact for balanced classes, close otherwise.
    assert not solve(design, y, Logistic(), Laplace(1.2 * largest), run).coef.any()
    assert solve(design, y, Logistic(), Laplace(0.8 * largest), run).coef.any(axis=0).all()


@pytest.mark.parametrize("factor", [1e-4, 1e4])
def test_the_laplace_start_scales_with_x(factor):
    X, y, train = problem()
    plain, scaled = (start_laplace(Design(X * f, train), y, Logistic()).rate for f in (1.0, factor))
    np.testing.assert_allclose(scaled, factor * plain, rtol=1e-10)


def test_starts_read_training_rows_only():
    X, y, train = problem()
    other = X.copy()
    other[~train[:, 0]] *= 50.0
    labels = np.where(train, y[:, None], np.nan)
    one, two = (start_prior("gaussian", Design(part, train)).var[0] for part in (X, other))
    assert one == pytest.approx(two, rel=1e-12)
    one, two = (start_laplace(Design(part, train), labels, Logistic()).rate[0] for part in (X, other))
    assert one == pytest.approx(two, rel=1e-12)
