"""X of any scale gives the same fits in other units; what float32 cannot hold is refused in a sentence."""

import numpy as np
import pytest
from scipy import sparse

from mvpa_gamp import GAMPClassifier
from mvpa_gamp.feature_scale import rescaled_prior, scale_factor
from mvpa_gamp.gamp import Bernoulli, ElasticNet, Gaussian, GaussianMixture, Laplace
from mvpa_gamp.methods import METHODS

pytestmark = pytest.mark.whole

SCALE_FREE = ("gamp-bg-lr", "gamp-bl-lr", "gamp-l1-lr", "gamp-l1-lr-cv", "l1-lr-cv")
RUNS = np.repeat(np.arange(4), 8)
Y = np.tile(np.repeat([1.0, -1.0], 4), 4)
TRAIN = RUNS[:, None] != np.unique(RUNS)


def features():
    X = np.random.default_rng(0).standard_normal((32, 24))
    X[:, 5] += 1.5 * Y
    return X


def fitted(name, X):
    return METHODS[name].fit_folds(X, Y, TRAIN, RUNS)


@pytest.mark.parametrize("name", SCALE_FREE)
@pytest.mark.parametrize("power", [-45, 45])
def test_a_method_gives_the_same_fits_in_other_units(name, power):
    scale = 2.0**power
    plain, other = fitted(name, features()), fitted(name, scale * features())
    assert plain.support.any()
    np.testing.assert_array_equal(other.support, plain.support)
    np.testing.assert_allclose(other.coef * scale, plain.coef, rtol=1e-9, atol=1e-12)  # of order one
    np.testing.assert_allclose(other.decision, plain.decision, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(other.intercept, plain.intercept, rtol=1e-9, atol=1e-12)
    for key, value in plain.parameters.items():
        powers = {"prior.slab.var": -2, "prior.slab.rate": 1, "lambda": 1}
        powers |= {"prior.rate": 1} if name.startswith("gamp-l1") else {}
        np.testing.assert_allclose(other.parameters[key], value * scale ** powers.get(key, 0), rtol=1e-9)


@pytest.mark.parametrize(("name", "power"), [("cdn", 1), ("tron", 2)])
def test_liblinear_is_given_a_usual_scale(name, power):
    """Its penalty on the intercept makes fits depend on the scale: features of 1e-12 took 50 s and more."""
    scale = 2.0**40
    small, large = fitted(name, features() / scale), fitted(name, features() * scale)
    assert small.converged.all() and np.abs(small.coef / scale).max() < 10
    np.testing.assert_array_equal(small.coef / scale, large.coef * scale)
    np.testing.assert_array_equal(small.decision, large.decision)
    np.testing.assert_array_equal(small.parameters["C"], large.parameters["C"] * scale ** (2 * power))


@pytest.mark.parametrize(
    "how", [{}, {"prior": "laplace", "mode": "max-sum"}, {"prior": Bernoulli(0.1, Gaussian(0, 2.0))}]
)
@pytest.mark.parametrize("make", [np.asarray, np.float32, sparse.csr_array])
def test_the_classifier_gives_the_same_fit_in_other_units(how, make):
    scale = 2.0**40
    given = dict(how)
    plain = GAMPClassifier(**how).fit(make(features()), Y)
    if isinstance(how.get("prior"), Bernoulli):
        given["prior"] = Bernoulli(0.1, Gaussian(0, 2.0 / scale**2))
    other = GAMPClassifier(**given).fit(make(features()) * np.float32(scale), Y)
    assert plain.get_support().any()
    np.testing.assert_array_equal(other.get_support(), plain.get_support())
    np.testing.assert_allclose(other.coef_ * scale, plain.coef_, rtol=1e-5, atol=1e-6)
    proba = other.predict_proba(make(features()) * np.float32(scale))
    np.testing.assert_allclose(proba, plain.predict_proba(make(features())), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", sorted(METHODS))
@pytest.mark.parametrize("scale", [1e-200, 1e-155, 1e40])
def test_what_float32_cannot_hold_is_refused(name, scale):
    with pytest.raises(ValueError, match=r"between 1e-15 and 1e\+15.*float32.*Multiply X by a number"):
        fitted(name, scale * features())


@pytest.mark.parametrize("name", sorted(METHODS))
def test_a_few_huge_duplicated_columns_are_refused(name):
    X = features()
    X[:, 10:13] = 1e9 * X[:, [10]]
    with pytest.raises(ValueError, match=r"of similar scale.* times as large.*Standardise"):
        fitted(name, X)


def test_the_classifier_refuses_the_same():
    for X in (1e-200 * features(), 1e-155 * features(), np.c_[features(), 1e9 * features()[:, :2]]):
        with pytest.raises(ValueError, match=r"float32 holds|of similar scale"):
            GAMPClassifier().fit(X, Y)


def test_the_classifier_warns_of_a_feature_that_outweighs_all_others():
    """As text counts beside one feature in other units: with the warning, nothing is decoded."""
    X = features()
    X[:, 10] *= 1e5
    with pytest.warns(UserWarning, match=r"[0-9]e\+04 times as large.*Standardise the features"):
        lost = GAMPClassifier().fit(X, Y)
    assert not lost.get_support()[5]
    kept = GAMPClassifier().fit(X / X.std(axis=0), Y)  # no warning, and the informative feature is found
    assert kept.get_support()[5]


def test_expression_beside_an_indicator_is_fitted():
    """Counts over five orders of magnitude and a column of 0 and 1 are not refused."""
    rng = np.random.default_rng(1)
    X = np.exp(rng.normal(4, 3, 30)) * np.exp(0.5 * rng.standard_normal((32, 30)))
    X = np.c_[X, Y > 0]
    assert 10 < X.max() / np.median(X.max(axis=0)) < 1e4
    assert np.isfinite(GAMPClassifier().fit(X, Y).coef_).all()


def test_usual_features_are_left_alone():
    assert scale_factor(features()) == 1.0
    assert scale_factor(1e5 * features()) == 1.0
    assert scale_factor(np.zeros((3, 2))) == 1.0
    assert scale_factor(sparse.csr_array(1e9 * features())) == scale_factor(1e9 * features()) < 1e-8


@pytest.mark.parametrize(
    "prior",
    [
        Gaussian(0.5, 2.0), Laplace(1.5), ElasticNet(1.5, 0.7), Bernoulli(0.3, Laplace(2.0)),
        GaussianMixture((0.4, 0.6), (0.0, 1.0), (1.0, 2.0)),
    ],
)  # fmt: skip
def test_a_rescaled_prior_is_the_prior_of_larger_weights(prior):
    """The posterior mean of f w from f r and f^2 tau is f times that of w."""
    r, tau = np.array([[0.3], [-2.0]]), np.array([[0.5], [1.5]])
    plain = prior.posterior(r, tau)
    larger = rescaled_prior(prior, 8.0).posterior(8.0 * r, 64.0 * tau)
    np.testing.assert_allclose(larger.mean, 8.0 * plain.mean, rtol=1e-12)
    np.testing.assert_allclose(larger.var, 64.0 * plain.var, rtol=1e-12)
