"""Every likelihood against 30-digit quadrature, its own derivatives, and itself column by column."""

import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from mvpa_gamp.gamp import Design, Laplace, SolverSettings, solve, state_evolution
from mvpa_gamp.gamp.likelihoods import Hinge, Likelihood, Logistic, Probit, Robust
from mvpa_gamp.gamp.parameters import parameters, with_parameters
from mvpa_gamp.gamp.starts import start

STEPS = ("posterior", "log_partition", "evaluate", "loss")
PROXIMAL_STEPS = ("prox", "prox_score", "loss_slopes", "margin_at_loss")

# The quadratures inside are good to 3e-11; the contract asks for 1e-8.
RELATIVE = 2e-10


def test_is_a_likelihood(likelihood):
    assert isinstance(likelihood, Likelihood)
    assert set(likelihood.default_learn) <= set(likelihood.learnable) <= set(parameters(likelihood))
    steps = STEPS + (PROXIMAL_STEPS if "max-sum" in likelihood.modes else ())
    missing = [step for step in steps if getattr(type(likelihood), step) is getattr(Likelihood, step)]
    assert not missing, f"{type(likelihood).__name__} lacks {', '.join(missing)}"


def test_steps_that_are_not_written_are_not_there():
    class Empty(Likelihood):
        learnable = ("scale",)

    for step in (*STEPS, *PROXIMAL_STEPS):
        given = (1.0, 0.0, 1.0)[: 2 if step.startswith("loss") else 1 if step == "margin_at_loss" else 3]
        with pytest.raises(NotImplementedError):
            getattr(Empty(), step)(*given)
    with pytest.raises(NotImplementedError):
        Empty().em_update(1.0, 0.0, 1.0, learn="scale")


@dataclass(frozen=True)
class SumProductOnly(Logistic):
    modes: ClassVar[tuple[str, ...]] = ("sum-product",)


def test_a_likelihood_without_a_max_sum_step_refuses_the_mode():
    X, y = np.random.default_rng(0).standard_normal((12, 4)), np.tile([1.0, -1.0], 6)
    for likelihood in (SumProductOnly(), Robust(SumProductOnly())):
        calls = (
            lambda of=likelihood: solve(Design(X), y, of, Laplace(), SolverSettings(mode="max-sum")),
            lambda of=likelihood: start("laplace", Design(X), y, of, "max-sum"),
            lambda of=likelihood: state_evolution(of, Laplace(), 1.0, mode="max-sum"),
        )
        for call in calls:
            with pytest.raises(
                ValueError, match=r"likelihood has no max-sum step. Use mode='sum-product', or"
            ):
                call()


def test_states_which_parameters_only_rescale_the_score(learning):
    """Such a parameter and the size of the weights cannot both be learnt; ``scale_names`` says so."""
    margin = np.linspace(-3, 3, 13)
    for name in learning.learnable:
        other = with_parameters(learning, {name: 4.0 * parameters(learning)[name]})
        scales = (1 / 4, 1 / 2, 2, 4)
        same = [np.allclose(other.loss(1.0, x * margin), learning.loss(1.0, margin)) for x in scales]
        assert (name in learning.scale_names) == any(same), name
        assert (f"base.{name}" in Robust(learning).scale_names) == any(same)


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
    np.testing.assert_allclose(log_partition, -likelihood.loss(y, p), rtol=1e-9, atol=1e-12)
    if "max-sum" not in likelihood.modes:
        return
    first, second = likelihood.loss_slopes(y, p)
    np.testing.assert_allclose(s, first, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(tau_s, second, rtol=1e-9, atol=1e-12)


def test_extremes_stay_finite(likelihood):
    size = np.concatenate([[0.0], np.logspace(-12, 6, 19)])
    y, p, tau_p = np.meshgrid([-1.0, 0.0, 1.0], np.concatenate([-size, size]), np.logspace(-12, 12, 25))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        slopes, log_partition = likelihood.evaluate(y, p, tau_p)
        mean, var = likelihood.posterior(y, p, tau_p)
        rest = [likelihood.loss(y, p), likelihood.predict_proba(p, tau_p)]
        if "max-sum" in likelihood.modes:
            rest += [*likelihood.prox(y, p, tau_p), *likelihood.prox_score(y, p, tau_p)]
            rest += likelihood.loss_slopes(y, p)
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


def test_loss_slopes_are_derivatives(proximal):
    likelihood = proximal
    z = np.array([-4.1, -1.3, -0.2, 0.4, 0.9, 1.7, 5.0])
    h = 1e-5
    for y in (-1.0, 1.0):
        first, second = likelihood.loss_slopes(y, z)
        np.testing.assert_allclose(
            -first, (likelihood.loss(y, z + h) - likelihood.loss(y, z - h)) / (2 * h), atol=1e-8
        )
        change = likelihood.loss_slopes(y, z + h).s - likelihood.loss_slopes(y, z - h).s
        np.testing.assert_allclose(-second, change / (2 * h), atol=1e-7)


def test_margin_at_loss_inverts_the_loss(proximal):
    bounded = isinstance(proximal, Robust)  # between -log(1 - flip) and -log(flip)
    level = np.array([0.05, 0.3, 1.0, 3.0] if bounded else [1e-3, 0.5, 3.0, 50.0, 600.0])
    np.testing.assert_allclose(proximal.loss(1.0, proximal.margin_at_loss(level)), level, rtol=1e-10)


def test_probabilities(plain):
    z, var = np.meshgrid(np.linspace(-20, 20, 41), [1e-3, 1.0, 50.0])
    up, down = plain.predict_proba(z, var), plain.predict_proba(-z, var)
    np.testing.assert_allclose(up + down, 1.0, rtol=1e-12)
    assert np.all(np.diff(up, axis=1) >= 0)
    if plain.is_normalised:
        np.testing.assert_array_equal(up, np.exp(plain.log_partition(1.0, z, var)))
    # A flipped training label says nothing about the true label of a new example.
    np.testing.assert_array_equal(Robust(plain, 0.3).predict_proba(z, var), up)


def test_one_value_per_column_equals_a_loop(likelihood):
    """All that can be learnt may differ between columns; every step then uses the column's own value."""
    values = parameters(likelihood)
    columns = {name: np.array([0.25, 0.5, 1.0]) * values[name] for name in likelihood.learnable}
    batched = with_parameters(likelihood, columns)
    rng = np.random.default_rng(3)
    y, p = rng.choice([-1.0, 1.0], (20, 1)), 5 * rng.standard_normal((20, 3))
    tau_p = 10 ** rng.uniform(-3, 3, (20, 3))
    steps = ["posterior", "log_partition", "score"]
    steps += ["prox", "prox_score"] if "max-sum" in likelihood.modes else []
    for step in steps:
        whole = np.array(getattr(batched, step)(y, p, tau_p))
        for k in range(3):
            single = with_parameters(likelihood, {name: float(value[k]) for name, value in columns.items()})
            part = np.array(getattr(single, step)(y[:, 0], p[:, k], tau_p[:, k]))
            np.testing.assert_allclose(whole[..., k], part, rtol=1e-13, atol=1e-300, err_msg=step)
            one = np.array(getattr(single, step)(y[4, 0], p[4, k], tau_p[4, k]))
            np.testing.assert_allclose(whole[..., 4, k], one, rtol=1e-13, atol=1e-300, err_msg=step)


def test_variational_columns_equal_a_loop():
    test_one_value_per_column_equals_a_loop(Logistic(2.0, "variational"))
