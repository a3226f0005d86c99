"""The registry, and the sentences that refuse impossible parameters."""

import numpy as np
import pytest

from mvpa_gamp.gamp.parameters import expand, parameters, put, take
from mvpa_gamp.gamp.priors import PRIORS, Bernoulli, ElasticNet, Gaussian, GaussianMixture, Laplace

NAMES = {
    "gaussian",
    "laplace",
    "elastic-net",
    "gaussian-mixture",
    "bernoulli-gaussian",
    "bernoulli-laplace",
    "bernoulli-elastic-net",
    "bernoulli-gaussian-mixture",
}


def test_names_of_the_paper_stay():
    assert set(PRIORS) >= NAMES


@pytest.mark.parametrize("name", PRIORS)
def test_scaled_is_the_prior_of_a_multiple(name):
    """p(3 w) against N(3 r, 9 tau): the same integral, in other units."""
    prior, r, tau = PRIORS[name](), np.array([-2.0, 0.1, 1.5]), np.array([0.3, 1.0, 20.0])
    found = prior.scaled(3.0).log_partition(3 * r, 9 * tau)
    np.testing.assert_allclose(found, prior.log_partition(r, tau) - np.log(3), rtol=1e-12)


@pytest.mark.parametrize("name", PRIORS)
def test_learnable_names_are_the_parameters(name):
    prior = PRIORS[name]()
    assert set(prior.learnable) == set(parameters(prior))
    assert set(prior.default_learn) <= set(prior.learnable)


def test_starts():
    prior = PRIORS["bernoulli-gaussian"]()
    assert (prior.rate, prior.slab.mean, prior.slab.var) == (0.1, 0.0, 1.0)
    assert prior.default_learn == ("rate", "slab.var")
    for name in ("gaussian", "gaussian-mixture"):
        assert PRIORS[name]().posterior(0.0, 1e12).var == pytest.approx(1.0)


@pytest.mark.parametrize("name", PRIORS)
def test_columns_can_be_spread_selected_and_written_back(name):
    prior = expand(PRIORS[name](), 3)
    learnt = prior.em_update(np.linspace(-1, 2, 12).reshape(4, 3), np.full((4, 3), 0.1))
    changed = put(prior, [1], take(learnt, [1]))
    for key, value in parameters(changed).items():
        np.testing.assert_array_equal(value[..., 1], parameters(learnt)[key][..., 1])
        np.testing.assert_array_equal(value[..., [0, 2]], parameters(prior)[key][..., [0, 2]])


@pytest.mark.parametrize(
    "make, sentence",
    [
        (lambda: Gaussian(var=0.0), r"Gaussian: var must be positive and finite, got 0.0. Give one number"),
        (lambda: Gaussian(var=[1.0, -2.0]), r"var must be positive and finite, got \[1.0, -2.0\]"),
        (lambda: Gaussian(mean=np.nan), "Gaussian: mean must be finite, got nan"),
        (lambda: Gaussian(mean="zero"), "Gaussian: mean must be finite, got 'zero'"),
        (lambda: Gaussian(var=np.ones((2, 2))), "Give one number, or one value per fit."),
        (lambda: Laplace(rate=-1), "Laplace: rate must be positive and finite, got -1"),
        (lambda: ElasticNet(l1=-0.1), "ElasticNet: l1 must be finite and at least 0, got -0.1"),
        (lambda: ElasticNet(0.0, 0.0), "l1 and l2 must not both be 0.*at least one a positive value"),
        (lambda: GaussianMixture((0.5, 0.6), (0, 0), (1, 1)), "weights must sum to 1, got a sum of 1.1"),
        (lambda: GaussianMixture((1.5, -0.5), (0, 0), (1, 1)), "weights must be at least 0"),
        (lambda: GaussianMixture((0.5, 0.5), (0, 0), (1, 0)), "variances must be positive"),
        (lambda: GaussianMixture((0.5, 0.5), (0, 0, 0), (1, 1)), "needs a weight, a mean and a variance"),
        (lambda: GaussianMixture(1.0, (0,), (1,)), "Give one value per component"),
        (lambda: Bernoulli(rate=0.0), r"Bernoulli: rate must be in \(0, 1\], got 0.0"),
        (lambda: Bernoulli(rate=1.2), r"rate must be in \(0, 1\], got 1.2"),
        (lambda: Bernoulli(0.1, slab="gaussian"), "slab must be a prior, got 'gaussian'"),
        (lambda: Bernoulli(0.1, slab=Bernoulli()), "Multiply the two rates and use the inner slab"),
    ],
)
def test_impossible_parameters_are_refused_in_a_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


def test_parameters_are_copied_and_plain():
    given = np.array([1.0, 2.0])
    prior = Gaussian(var=given)
    given[0] = -1
    assert prior.var.tolist() == [1.0, 2.0]
    assert type(Laplace(np.float32(2)).rate) is float
