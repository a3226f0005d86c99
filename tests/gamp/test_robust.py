"""Wrong labels: beliefs that match errors, flip rates that are found, and leave-one-out done explicitly."""

import numpy as np
import pytest

from mvpa_gamp.gamp import (
    Design,
    Gaussian,
    Hinge,
    Logistic,
    Probit,
    Robust,
    SolverSettings,
    fit_em,
    solve,
    state_evolution,
)
from mvpa_gamp.gamp.likelihoods.robust import FLIP_RANGE
from mvpa_gamp.gamp.result import KINKED
from mvpa_gamp.gamp.starts import start_prior

FLIPS = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.45])


def model_true(n_rows, n_features, flips, seed=0):
    """X, labels (M, B) with a column per flip rate, and the weights; scores have variance ``n_features``."""
    rng = np.random.default_rng(seed)
    X, w = rng.standard_normal((n_rows, n_features)), rng.standard_normal(n_features)
    y = np.where(rng.random(n_rows) < 1 / (1 + np.exp(-X @ w)), 1.0, -1.0)
    wrong = rng.random(n_rows)[:, None] < np.asarray(flips)
    return X, np.where(wrong, -y[:, None], y[:, None]), w


def fitted(X, y, likelihood, **settings):
    design = Design(X, np.ones(y.shape, dtype=bool))
    return solve(design, y, likelihood, Gaussian(), SolverSettings(stop="fixed-point", **settings))


def test_believed_variance_is_the_mean_squared_error():
    """Rows with a negative tau_s keep it; with each cut at zero, .058 was believed at flip .4, not .35."""
    n_rows, n_features = 1000, 20
    errors, believed = [], []
    for seed in range(2):
        X, y, w = model_true(n_rows, n_features, FLIPS, seed)
        found = fitted(X, y, Robust(Logistic(), np.maximum(FLIPS, 1e-6)), tol=1e-2)
        assert found.converged.all()
        errors.append(np.square(found.coef - w[:, None]).mean(axis=0))
        believed.append(found.coef_var.mean(axis=0))
    ratio = np.mean(believed, axis=0) / np.mean(errors, axis=0)
    assert (np.abs(np.log(ratio)) < 0.45).all()  # 40 weights: the mse has a standard error of 22 %; cut: -1.8
    for flip, variance in zip(FLIPS[1:4], np.mean(believed, axis=0)[1:4], strict=True):
        # X of variance 1/M and weights of variance M are the same problem
        evolved = state_evolution(
            Robust(Logistic(n_rows**0.5), float(flip)), Gaussian(), ratio=n_rows / n_features
        )
        assert evolved.mse[-1] == pytest.approx(variance, rel=0.15)


@pytest.mark.parametrize("variance", ["full", "uniform"])
@pytest.mark.parametrize("base", [Logistic(), Hinge()])
def test_sums_of_negative_precisions_are_floored(base, variance):
    """Labels that contradict almost every score: all is finite, and variances are positive."""
    X, y, _ = model_true(60, 4, [0.0])
    start = fitted(X, y, base, variance=variance)
    design = Design(X, np.ones((60, 1), dtype=bool))
    settings = SolverSettings(stop="fixed-point", variance=variance, max_iter=30)
    found = solve(design, -y, Robust(base, 0.4), Gaussian(), settings, warm=start)
    for values in (found.coef, found.coef_var, found.tau_r, found.p, found.tau_p):
        assert np.isfinite(values).all()
    assert (found.coef_var > 0).all() and (found.tau_r > 0).all()


def test_flip_rates_are_found_from_a_low_start():
    """Flip .4 ended at .03 to .08 from this start alone, with the weights shrunk to nothing."""
    flips = [0.2, 0.4]
    X, y, _ = model_true(1500, 25, flips)
    design = Design(X, np.ones(y.shape, dtype=bool))
    tuned = fit_em(
        design, y, Robust(Logistic(), 0.01), start_prior("gaussian", design),
        SolverSettings(stop="fixed-point", tol=1e-3, max_iter=80),
    )  # fmt: skip
    assert np.abs(tuned.likelihood.flip - flips).max() < 0.06
    assert np.isfinite(tuned.history["likelihood.flip"][0]).all()


@pytest.mark.parametrize("likelihood", [Hinge(), Robust(Hinge(), 0.1)])
def test_max_sum_on_a_kink_names_what_to_use_instead(likelihood):
    X, y, _ = model_true(60, 10, [0.0])
    settings = SolverSettings(mode="max-sum", max_iter=150)
    found = solve(Design(X), y, likelihood, Gaussian(), settings)
    assert found.status[0] == KINKED and not found.converged[0]
    wide = solve(Design(X[:8]), y[:8], Hinge(), Gaussian(), settings)
    assert wide.converged[0]


@pytest.mark.parametrize("base", [Logistic(), Probit()])
def test_robust_max_sum_settles_at_a_stationary_point(base):
    X, y, _ = model_true(100, 20, [0.1])
    likelihood = Robust(base, 0.1)
    found = solve(Design(X), y, likelihood, Gaussian(), SolverSettings(mode="max-sum"))
    slope = X.T @ likelihood.loss_slopes(y, X @ found.coef.astype(float)).s
    assert found.converged[0] and np.abs(slope - found.coef).max() < 1e-3  # the penalty's slope is w


def test_labels_that_say_nothing_are_not_a_good_end():
    X, _, _ = model_true(200, 5, [0.0])
    y = np.random.default_rng(1).choice([-1.0, 1.0], 200)
    design = Design(X)
    tuned = fit_em(design, y, Robust(Logistic(), 0.01), start_prior("gaussian", design))
    assert not tuned.result.converged[0]
    assert "likelihood.flip was learnt as 0.5, at the end of its range" in tuned.result.status[0]
    clean = fit_em(design, np.sign(X[:, 0]), Robust(Logistic(), 0.01), start_prior("gaussian", design))
    assert clean.result.converged[0] and clean.likelihood.flip[0] < 0.01  # that none is wrong is an answer
    assert clean.likelihood.flip[0] >= FLIP_RANGE[0]


def test_cavity_score_is_that_of_explicit_leave_one_out_at_fixed_parameters():
    X, y, _ = model_true(80, 8, [0.2], seed=3)
    train = np.column_stack([np.ones(80, dtype=bool), ~np.eye(80, dtype=bool)])
    likelihood = Robust(Logistic(), 0.2)
    settings = SolverSettings(stop="fixed-point", tol=1e-4)
    found = solve(Design(X, train), y[:, 0], likelihood, Gaussian(), settings)
    rows = np.arange(80)
    left_out = likelihood.log_partition(y[:, 0], found.p[rows, rows + 1], found.tau_p[rows, rows + 1])
    assert abs(found.cavity_score[0] - left_out.mean()) < 0.02
