"""Max-sum steps: proximal points against a fine grid, slopes, and clear errors where there are none."""

import numpy as np
import pytest

from mvpa_gamp.gamp.parameters import parameters, with_parameters
from mvpa_gamp.gamp.priors import PRIORS, Bernoulli, ElasticNet, Gaussian, GaussianMixture, Laplace, Prior

WITH_PROX = [
    Gaussian(0.4, 0.7),
    Laplace(1.5),
    ElasticNet(1.0, 0.6),
    ElasticNet(0.0, 2.0),
    ElasticNet(2.0, 0.0),
]


@pytest.mark.parametrize("prior", WITH_PROX, ids=repr)
@pytest.mark.parametrize("tau", [1e-2, 1.0, 30.0])
def test_prox_is_the_minimum_on_a_fine_grid(prior, tau):
    r = np.linspace(-4, 4, 33)
    found = prior.prox(r, tau)
    grid = np.linspace(-5, 5, 20_001)
    cost = prior.penalty(grid)[:, None] + (grid[:, None] - r) ** 2 / (2 * tau)
    np.testing.assert_allclose(found.mean, grid[cost.argmin(axis=0)], atol=5.01e-4 / 2)
    at_prox = prior.penalty(found.mean) + (found.mean - r) ** 2 / (2 * tau)
    assert (at_prox <= cost.min(axis=0) + 1e-12).all()


@pytest.mark.parametrize("prior", WITH_PROX, ids=repr)
def test_prox_variance_is_tau_times_its_slope(prior):
    r, tau, h = np.linspace(-4, 4, 64), 0.8, 1e-6
    slope = (prior.prox(r + h, tau).mean - prior.prox(r - h, tau).mean) / (2 * h)
    np.testing.assert_allclose(prior.prox(r, tau).var, tau * slope, rtol=1e-8, atol=1e-12)


def test_soft_threshold_in_known_numbers():
    found = Laplace(2.0).prox(np.array([-1.5, -0.5, 0.0, 0.9, 3.0]), 0.5)
    np.testing.assert_array_equal(found.mean, [-0.5, 0, 0, 0, 2])
    np.testing.assert_array_equal(found.var, [0.5, 0, 0, 0, 0.5])
    shrunk = ElasticNet(2.0, 1.0).prox(np.array([0.9, 3.0]), 0.5)
    np.testing.assert_array_equal(shrunk.mean, [0, 1])
    np.testing.assert_array_equal(shrunk.var, [0, 0.25])


@pytest.mark.parametrize("prior", WITH_PROX, ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_prox_keeps_dtype_and_stays_finite(prior, dtype):
    r, tau = np.meshgrid([-1e4, -1e-9, 0.0, 1.0, 1e4], 10.0 ** np.arange(-8, 9))
    found = prior.prox(r.astype(dtype), tau.astype(dtype))
    for part in (*found, prior.penalty(found.mean)):
        assert part.dtype == dtype and np.isfinite(part).all()
    assert (found.var >= 0).all()


@pytest.mark.parametrize("prior", WITH_PROX, ids=repr)
def test_penalty_is_minus_the_log_density(prior):
    """Up to a constant: log Z tends to log p(r) as tau_r vanishes."""
    w = np.array([-2.0, -0.3, 0.8, 3.0])
    log_density = prior.log_partition(w, 1e-12)
    np.testing.assert_allclose(np.diff(prior.penalty(w)), -np.diff(log_density), rtol=1e-9)


def test_penalty_of_a_mixture_is_minus_its_log_density():
    prior = GaussianMixture((0.2, 0.8), (-1.0, 1.0), (0.5, 2.0))
    density = 0.2 * np.exp(-((3 + 1) ** 2)) / np.sqrt(np.pi) + 0.8 * np.exp(-1.0) / np.sqrt(4 * np.pi)
    assert prior.penalty(3.0) == pytest.approx(-np.log(density), rel=1e-13)


@pytest.mark.parametrize("name", [name for name in PRIORS if "mixture" in name or "bernoulli" in name])
def test_priors_without_a_max_sum_step_say_what_to_use(name):
    prior = PRIORS[name]()
    with pytest.raises(ValueError, match=r"has no max-sum step. Use mode='sum-product', or max-sum with"):
        prior.prox(np.zeros(2), 1.0)
    if isinstance(prior, Bernoulli):
        with pytest.raises(ValueError, match="no penalty: its density is infinite at w = 0"):
            prior.penalty(np.zeros(2))


def test_a_prior_without_a_penalty_says_no_more_than_that():
    class Bare(Prior):
        pass

    with pytest.raises(ValueError, match=r"A Bare prior has no penalty. Use a Gaussian, Laplace"):
        Bare().penalty(0.0)


@pytest.mark.parametrize("name", PRIORS)
def test_priors_state_what_they_can_do(name):
    prior = PRIORS[name]()
    assert "sum-product" in prior.modes
    if "max-sum" in prior.modes:
        assert np.isfinite(prior.prox(np.ones(2), 1.0)).all() and np.isfinite(prior.penalty(np.ones(2))).all()
    else:
        with pytest.raises(ValueError, match=f"A {type(prior).__name__} prior has no max-sum step"):
            prior.require_mode("max-sum")
    assert prior.has_atom == (prior.inclusion(0.0, 1.0) < 1)
    if prior.l1_name:  # its weight in the penalty is |w|
        more = with_parameters(prior, {prior.l1_name: parameters(prior)[prior.l1_name] + 1})
        assert more.penalty(-2.0) - prior.penalty(-2.0) == pytest.approx(2.0)
