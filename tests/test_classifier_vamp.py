"""GAMPClassifier(solver="vamp"): the methods' fits, groups, probabilities, and scikit-learn's checks."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import LeaveOneGroupOut, cross_val_score
from sklearn.utils.estimator_checks import check_estimator

from mvpa_gamp import GAMPClassifier
from mvpa_gamp.gamp import Bernoulli
from mvpa_gamp.methods import METHODS

VAMP = GAMPClassifier(solver="vamp")


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(0)
    codes, groups = np.tile(np.repeat(np.arange(3), 4), 6), np.repeat(np.arange(6), 12)
    X = rng.standard_normal((72, 80))
    X[np.arange(72), 2 * codes] += 2
    X[np.arange(72), 2 * codes + 1] += 2
    return X, codes, groups


def test_it_is_the_method_of_the_tables(samples):
    X, codes, groups = samples
    two = codes < 2
    model = clone(VAMP).fit(X[two], codes[two], groups=groups[two])
    y = np.where(codes[two] == 0, 1.0, -1.0)
    fits = METHODS["vamp-bg"].fit_folds(X[two], y, np.ones((y.size, 1), dtype=bool), groups[two])
    slope = fits.parameters["slope"][0]
    np.testing.assert_allclose(model.coef_[0], -slope * fits.coef[:, 0])
    np.testing.assert_allclose(model.predict_proba(X[two])[:, 0], fits.proba[:, 0])
    np.testing.assert_array_equal(model.get_support(), fits.support[:, 0])
    assert model.converged_ and model.loo_score_ < 0 and model.status_.startswith("Converged")


def test_classes_share_inclusions_and_are_recognised(samples):
    X, codes, groups = samples
    names = np.array(["a", "b", "c"])[codes]
    model = clone(VAMP).fit(X, names, groups=groups)
    assert model.coef_.shape == (3, 80) and model.pairs_ == [("a", "b"), ("a", "c"), ("b", "c")]
    assert (model.inclusion_prob_ == model.inclusion_prob_[0]).all()
    assert (
        set(np.flatnonzero(model.inclusion_prob_[0] > 0.5))
        == set(range(6))
        <= set(np.flatnonzero(model.get_support()))
    )
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    accuracy = cross_val_score(VAMP, X, names, groups=groups, cv=LeaveOneGroupOut())
    assert accuracy.mean() > 0.85


def test_a_sample_of_weight_zero_is_no_sample(samples):
    X, codes, groups = samples
    weights = np.where(groups == 0, 0.0, 1.0)
    weighted = clone(VAMP).fit(X, codes, weights, groups)
    left = groups > 0
    without = clone(VAMP).fit(X[left], codes[left], groups=groups[left])
    np.testing.assert_allclose(weighted.coef_, without.coef_, rtol=1e-6, atol=1e-10)


@pytest.mark.parametrize(
    ("settings", "groups", "message"),
    [
        ({"solver": "sgd"}, None, "solver must be 'gamp' or 'vamp', got 'sgd'"),
        ({"solver": "gamp"}, "given", "Use GAMPClassifier\\(solver='vamp'\\), or leave groups out"),
        ({"likelihood": "probit"}, None, "likelihood='probit' is for solver='gamp'"),
        ({"prior": "laplace"}, None, "needs a Bernoulli prior, got 'laplace'"),
        ({}, "short", "groups must name the group of each of the 72 samples"),
    ],
)
def test_what_does_not_go_together_is_explained(settings, groups, message, samples):
    X, codes, names = samples
    given = {None: None, "given": names, "short": names[:5]}[groups]
    with pytest.raises(ValueError, match=message):
        GAMPClassifier(**({"solver": "vamp"} | settings)).fit(X, codes, groups=given)


def test_a_prior_may_fix_the_rate(samples):
    X, codes, groups = samples
    model = GAMPClassifier(prior=Bernoulli(0.3), solver="vamp").fit(X, codes, groups=groups)
    assert model.hyperparameters_["prior.rate"] == pytest.approx(0.3)


def test_scikit_learn_accepts_it():
    copies = "copies of a sample are left out one by one, where a sample of weight 2 is left out as a whole"
    names = (
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    )
    check_estimator(VAMP, expected_failed_checks=dict.fromkeys(names, copies), on_skip=None)
