"""What a user does with a likelihood and a prior that were registered a minute ago."""

import numpy as np
import pytest

import mvpa_gamp.gamp
from mvpa_gamp import GAMPClassifier
from mvpa_gamp.gamp import Cauchit, TwoScales
from mvpa_gamp.gamp.likelihoods import LIKELIHOODS
from mvpa_gamp.gamp.priors import PRIORS


@pytest.fixture
def data():
    X = np.random.default_rng(0).standard_normal((150, 60))
    return X, X[:, 3] - X[:, 7] > 0


def test_new_names_are_public():
    assert {"Cauchit", "TwoScales"} <= set(mvpa_gamp.gamp.__all__)
    assert LIKELIHOODS["cauchit"] is Cauchit and PRIORS["two-scales"] is TwoScales


@pytest.mark.parametrize("prior", ["two-scales", "bernoulli-two-scales"])
def test_a_classifier_takes_them_by_name(prior, data):
    model = GAMPClassifier("cauchit", prior).fit(*data)
    assert model.score(*data) > 0.9
    assert sorted(np.argsort(-np.abs(model.coef_[0]))[:2]) == [3, 7]
    assert any(name.endswith("scale") for name in model.hyperparameters_ if name.startswith("prior"))


def test_its_scale_is_learnt_on_request_beside_a_fixed_prior(data):
    with pytest.warns(UserWarning, match=r"scale and the prior's slab.scale both set .* keeps its start"):
        model = GAMPClassifier("cauchit", "bernoulli-two-scales", learn_likelihood="scale").fit(*data)
    assert np.flatnonzero(model.get_support()).tolist() == [3, 7]


def test_it_has_no_max_sum_step(data):
    with pytest.raises(ValueError, match="A Cauchit likelihood has no max-sum step"):
        GAMPClassifier("cauchit", "laplace", mode="max-sum").fit(*data)
