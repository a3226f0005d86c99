"""Every likelihood against 30-digit quadrature, its own derivatives, and itself column by column."""

import warnings

import numpy as np
import pytest

from mvpa_gamp.gamp.likelihoods import Hinge, Likelihood, Logistic, Probit, Robust
from mvpa_gamp.gamp.parameters import parameters

# The quadratures inside are good to 3e-11; the contract asks for 1e-8.
RELATIVE = 2e-10


def test_is_a_likelihood(likelihood):
    assert isinstance(likelihood, Likelihood)
    assert set(likelihood.default_learn) <= set(likelihood.learnable) <= set(parameters(likelihood))


def test_states_whether_its_probabilities_sum_to_one(likelihood):
    z = np.linspace(-3, 3, 13)
    total = np.exp(-likelihood.loss(1.0, z)) + np.exp(-likelihood.loss(-1.0, z))
    assert likelihood.is_normalised == np.allclose(total, 1.0)
    odds = likelihood.log_odds(z, 0.7)
    np.testing.assert_allclose(1 / (1 + np.exp(-odds)), likelihood.predict_proba(z, 0.7), rtol=1e-12)


def test_variational_moments_are_not_exact():
    for base in (Logistic(moments="variational"), Robust(Logistic(moments="variational"))):
        assert not base.is_exact
    assert Logistic().is_exact and Robust(Hinge()).is_exact


def test_agrees_with_quadrature(likelihood, exact, grid):
    if isinstance(likelihood, Robust) or likelihood != type(likelihood)():
        # All points for the defaults: a robust likelihood is made of them, a scale is a change of units.
        grid = tuple(part[1::2] for part in grid)
    want = exact(likelihood, *grid)
    (s, tau_s), log_partition = likelihood.evaluate(*grid)
    mean, var = likelihood.posterior(*grid)
    np.testing.assert_allclose(log_partition, want.log_partition, rtol=RELATIVE)
    np.testing.assert_allclose(s, want.s, rtol=RELATIVE)
    np.testing.assert_allclose(var, want.var, rtol=RELATIVE)
    # A mean near zero counts by the width of its posterior, a diluted curvature by the terms it is made of.
    assert np.all(np.abs(mean - want.mean) <= RELATIVE * (np.abs(want.mean) + np.sqrt(want.var)))
    terms = np.abs(want.tau_s) + (0.0 if likelihood.is_log_concave else np.square(want.s))
    assert np.all(np.abs(tau_s - want.tau_s) <= RELATIVE * terms + 1e-50)  # 30 digits, squared, are noise


def test_evaluate_is_score_and_log_partition(likelihood, grid):
    slopes, log_partition = likelihood.evaluate(*grid)
    np.testing.assert_array_equal(slopes, likelihood.score(*grid))
    np.testing.assert_array_equal(log_partition, likelihood.log_partition(*grid))


def test_moments_and_slopes_tell_the_same(likelihood):
    """z = p + tau_p s and tau_z = tau_p (1 - tau_p tau_s) where no digits cancel."""
    y, p, tau_p = np.meshgrid([-1.0, 1.0], np.linspace(-3, 3, 25), [0.3, 1.0, 2.0])
    (s, tau_s), (mean, var) = likelihood.score(y, p, tau_p), likelihood.posterior(y, p, tau_p)
    np.testing.assert_allclose(mean, p + tau_p * s, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(var, tau_p * (1 - tau_p * tau_s), rtol=1e-9)


def test_slopes_are_derivatives_of_the_log_partition(likelihood):
    y, p, tau_p = np.meshgrid([-1.0, 1.0], np.linspace(-6, 6, 49), [0.2, 1.5, 30.0])
    h = 1e-4
    s, tau_s = likelihood.score(y, p, tau_p)
    after, before = likelihood.log_partition(y, p + h, tau_p), likelihood.log_partition(y, p - h, tau_p)
    np.testing.assert_allclose(s, (after - before) / (2 * h), atol=1e-7)
    rise = likelihood.score(y, p + h, tau_p).s - likelihood.score(y, p - h, tau_p).s
    np.testing.assert_allclose(tau_s, -rise / (2 * h), atol=1e-7)


def test_labels_mirror(likelihood, grid):
    y, p, tau_p = grid
    (s, tau_s), log_partition = likelihood.evaluate(y, p, tau_p)
    (s_, tau_s_), log_partition_ = likelihood.evaluate(-y, -p, tau_p)
    np.testing.assert_array_equal([s, tau_s, log_partition], [-s_, tau_s_, log_partition_])


def test_wide_gaussians_leave_the_loss_and_narrow_ones_find_it(likelihood):
    """As tau_p goes to 0 the log-partition is minus the loss and the score its slope."""
    y, p = np.meshgrid([-1.0, 1.0], [-5.0, -0.3, 0.4, 6.0])
    (s, tau_s), log_partition = likelihood.evaluate(y, p, 1e-12)
    first, second = likelihood.loss_slopes(y, p)
    np.testing.assert_allclose(log_partition, -likelihood.loss(y, p), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(s, first, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(tau_s, second, rtol=1e-9, atol=1e-12)


def test_extremes_stay_finite(likelihood):
    size = np.concatenate([[0.0], np.logspace(-12, 6, 19)])
    y, p, tau_p = np.meshgrid([-1.0, 0.0, 1.0], np.concatenate([-size, size]), np.logspace(-12, 12, 25))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        slopes, log_partition = likelihood.evaluate(y, p, tau_p)
        mean, var = likelihood.posterior(y, p, tau_p)
        rest = (
            *likelihood.prox(y, p, tau_p),
            *likelihood.prox_score(y, p, tau_p),
            *likelihood.loss_slopes(y, p),
            likelihood.loss(y, p),
            likelihood.predict_proba(p, tau_p),
        )
    for values in (*slopes, log_partition, mean, var, *rest):
        assert np.all(np.isfinite(values))
    assert np.all(var > 0)
    assert np.all(log_partition < 1e-15)
    if likelihood.is_log_concave:
        assert np.all(slopes.tau_s >= 0)
        assert np.all(var <= tau_p * (1 + 1e-12))


def test_robust_posterior_can_be_wider_than_the_gaussian(robust):
    p, tau_p = np.meshgrid(np.linspace(-12, 0, 60), [4.0, 10.0])
    assert np.max(robust.posterior(1.0, p, tau_p).var / tau_p) > 1.1
    assert np.min(robust.score(1.0, p, tau_p).tau_s) < 0


@pytest.mark.parametrize("z", [-1e6, -40.0, -1.0, 0.0, 0.7, 40.0])
def test_losses_are_minus_log_likelihoods(z):
    np.testing.assert_allclose(Logistic(2.0).loss(1.0, z), np.logaddexp(0, -2.0 * z), rtol=1e-15)
    np.testing.assert_allclose(Hinge().loss(-1.0, z), max(0.0, 1.0 + z))
    assert Probit().loss(1.0, z) >= 0
    np.testing.assert_allclose(
        Robust(Hinge(), 0.1).loss(1.0, z), -np.log(0.1 + 0.8 * np.exp(-max(0.0, 1 - z)))
    )


def test_loss_slopes_are_derivatives(likelihood):
    z = np.array([-4.1, -1.3, -0.2, 0.4, 0.9, 1.7, 5.0])
    h = 1e-5
    for y in (-1.0, 1.0):
        first, second = likelihood.loss_slopes(y, z)
        np.testing.assert_allclose(
            -first, (likelihood.loss(y, z + h) - likelihood.loss(y, z - h)) / (2 * h), atol=1e-8
        )
        change = likelihood.loss_slopes(y, z + h).s - likelihood.loss_slopes(y, z - h).s
        np.testing.assert_allclose(-second, change / (2 * h), atol=1e-7)


def test_margin_at_loss_inverts_the_loss(plain):
    level = np.array([1e-3, 0.5, 3.0, 50.0, 600.0])
    np.testing.assert_allclose(plain.loss(1.0, plain.margin_at_loss(level)), level, rtol=1e-10)


def test_robust_margin_at_loss_inverts_the_loss(robust):
    level = np.array([0.05, 0.3, 1.0, 3.0])
    np.testing.assert_allclose(robust.loss(1.0, robust.margin_at_loss(level)), level, rtol=1e-10)


def test_probabilities(plain):
    z, var = np.meshgrid(np.linspace(-20, 20, 41), [1e-3, 1.0, 50.0])
    up, down = plain.predict_proba(z, var), plain.predict_proba(-z, var)
    np.testing.assert_allclose(up + down, 1.0, rtol=1e-12)
    assert np.all(np.diff(up, axis=1) >= 0)
    if not isinstance(plain, Hinge):
        np.testing.assert_array_equal(up, np.exp(plain.log_partition(1.0, z, var)))
    # A flipped training label says nothing about the true label of a new example.
    np.testing.assert_array_equal(Robust(plain, 0.3).predict_proba(z, var), up)


def columns(value):
    return np.array([0.5, 1.0, 2.0]) * value


@pytest.mark.parametrize(
    ("batched", "single"),
    [
        (Logistic(columns(1.0)), lambda k: Logistic(columns(1.0)[k])),
        (Logistic(columns(2.0), "variational"), lambda k: Logistic(columns(2.0)[k], "variational")),
        (Probit(columns(1.0)), lambda k: Probit(columns(1.0)[k])),
        (Robust(Hinge(), columns(0.1)), lambda k: Robust(Hinge(), columns(0.1)[k])),
        (Robust(Logistic(columns(3.0)), 0.1), lambda k: Robust(Logistic(columns(3.0)[k]), 0.1)),
        (
            Robust(Probit(columns(3.0)), columns(0.01)),
            lambda k: Robust(Probit(columns(3.0)[k]), columns(0.01)[k]),
        ),
    ],
    ids=["logistic", "variational", "probit", "robust hinge", "robust logistic", "robust probit"],
)
def test_one_value_per_column_equals_a_loop(batched, single):
    rng = np.random.default_rng(3)
    y, p = rng.choice([-1.0, 1.0], (20, 1)), 5 * rng.standard_normal((20, 3))
    tau_p = 10 ** rng.uniform(-3, 3, (20, 3))
    steps = ("posterior", "log_partition", "score", "prox", "prox_score")
    for step in steps:
        whole = np.array(getattr(batched, step)(y, p, tau_p))
        for k in range(3):
            part = np.array(getattr(single(k), step)(y[:, 0], p[:, k], tau_p[:, k]))
            np.testing.assert_allclose(whole[..., k], part, rtol=1e-13, atol=1e-300, err_msg=step)
        one = np.array(getattr(single(1), step)(y[4, 0], p[4, 1], tau_p[4, 1]))
        np.testing.assert_allclose(whole[..., 4, 1], one, rtol=1e-13, atol=1e-300, err_msg=step)
