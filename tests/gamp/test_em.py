"""Tuning: what is learnt, how it is reported, and the experiment with wrong labels."""

import numpy as np
import pytest
from scipy.stats import norm

from mvpa_gamp import GAMPClassifier
from mvpa_gamp.gamp import (
    Bernoulli,
    Design,
    ElasticNet,
    Gaussian,
    Hinge,
    Laplace,
    Logistic,
    Probit,
    Robust,
    SolverSettings,
    fit_em,
)
from mvpa_gamp.gamp.parameters import parameters
from mvpa_gamp.gamp.starts import start_prior

pytestmark = pytest.mark.whole

FIXED_POINT = SolverSettings(stop="fixed-point", max_iter=200)


def sparse_problem(seed=0, n_rows=400, n_features=200, n_telling=10):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features))
    w = np.zeros(n_features)
    w[:n_telling] = 2 * rng.standard_normal(n_telling)
    return X, np.where(X @ w + rng.logistic(size=n_rows) > 0, 1.0, -1.0), w


def wrong_labels(flip, seed=0, n_rows=8192, n_features=512, bayes=0.05):
    """The paper's class-conditional Gaussian data with a share of the training labels flipped."""
    rng = np.random.default_rng(seed)
    mu = norm.isf(bayes) / np.sqrt(n_rows * n_features)
    y = np.where(rng.random(n_rows) < 0.5, 1.0, -1.0)
    X = y[:, None] * mu + rng.standard_normal((n_rows, n_features)) / np.sqrt(n_rows)
    given = np.where(rng.random(n_rows) < flip, -y, y)

    def error(coef):
        w = coef[:, 0].astype(float)
        return norm.cdf(-mu * w.sum() * np.sqrt(n_rows) / np.linalg.norm(w))

    return Design(X.astype(np.float32)), given, error


def test_learnt_prior_finds_rate_and_variance():
    X, y, w = sparse_problem()
    tuned = fit_em(Design(X), y, Logistic(), start_prior("bernoulli-gaussian", Design(X)), FIXED_POINT)
    # 10 of 200 weights; a factor of two covers the few small ones that cannot be told from zero.
    assert 0.025 < tuned.prior.rate[0] < 0.1
    # the slab's variance is that of the telling weights, within the spread of ten squared normals
    assert 0.3 < tuned.prior.slab.var[0] / np.mean(w[:10] ** 2) < 3


@pytest.mark.parametrize(("likelihood", "name"), [(Logistic(0.3), "scale"), (Probit(20.0), "var")])
def test_likelihood_parameter_moves_towards_the_truth(likelihood, name):
    X, y, w = sparse_problem(n_rows=800)
    prior = Bernoulli(
        0.05, Gaussian(var=np.mean(w[:10] ** 2))
    )  # with the prior fixed the scale is identifiable
    tuned = fit_em(Design(X), y, likelihood, prior, FIXED_POINT, learn_prior=(), learn_likelihood=(name,))
    truth = {"scale": 1.0, "var": 2.9}[name]
    assert abs(np.log(getattr(tuned.likelihood, name)[0] / truth)) < np.log(2)
    assert np.array_equal(tuned.history["prior.rate"][-1], [0.05])


def test_only_the_named_parameters_are_learnt():
    X, y, _ = sparse_problem()
    prior = Bernoulli(0.07, Gaussian(var=1.0))
    tuned = fit_em(Design(X), y, Logistic(), prior, learn_prior=("slab.var",))
    assert tuned.prior.rate[0] == 0.07 and tuned.prior.slab.var[0] != 1.0
    nothing = fit_em(Design(X), y, Logistic(), prior, learn_prior=())
    assert nothing.prior.slab.var[0] == 1.0


def test_history_has_a_row_per_iteration_and_ends_with_a_column():
    X, y, _ = sparse_problem()
    train = np.ones((len(y), 3), dtype=bool)
    train[:150, 1], train[200:, 2] = False, False
    tuned = fit_em(Design(X, train), y, Logistic(), Bernoulli(0.05, Gaussian()))
    rate = tuned.history["prior.rate"]
    assert rate.shape == (tuned.result.n_iter.max(), 3)
    for column, n_iter in enumerate(tuned.result.n_iter):
        assert np.isfinite(rate[:n_iter, column]).all() and np.isnan(rate[n_iter:, column]).all()


def test_max_sum_rate_is_the_fixed_point_of_its_update():
    X, y, _ = sparse_problem()
    tuned = fit_em(Design(X), y, Logistic(), Laplace(20.0), SolverSettings(mode="max-sum"))
    again = tuned.prior.em_update(tuned.result.r, tuned.result.tau_r)
    # tuning rests at a change of half a percent; the last exact solve may move it a little more
    assert np.abs(again.rate / tuned.prior.rate - 1).max() < 0.02
    assert tuned.result.converged.all()


def test_max_sum_learns_no_likelihood_and_no_piecewise_linear_loss():
    X, y, _ = sparse_problem()
    run = SolverSettings(mode="max-sum")
    with pytest.raises(ValueError, match=r"learns prior parameters only.*Use mode='sum-product'"):
        fit_em(Design(X), y, Logistic(), Laplace(), run, learn_likelihood=("scale",))
    with pytest.raises(ValueError, match=r"loss with curvature, got Hinge.*em=False"):
        fit_em(Design(X), y, Hinge(), Laplace(), run)


def test_robust_logistic_stands_wrong_labels():
    """A fifth of 8,192 labels is wrong; Bayes error 0.05 (the paper's robust experiment).

    Measured: 0.050 and a flip rate of 0.193 when the prior's mean is learnt too. With a zero-mean prior
    the exact posterior mean at the true parameters errs in 0.075, tuned robust logistic in 0.069 and
    standard logistic in 0.083: robustness helps, but the labels do not hold more.
    """
    design, y, error = wrong_labels(0.2)
    prior = start_prior("gaussian", design)
    robust = Robust(Logistic(), flip=0.01)
    everything = fit_em(design, y, robust, prior, learn_prior=("mean", "var"))
    assert error(everything.result.coef) < 0.06
    assert abs(everything.likelihood.flip[0] - 0.2) < 0.03
    zero_mean = fit_em(design, y, robust, prior)
    standard = fit_em(design, y, Logistic(), prior)
    assert abs(zero_mean.likelihood.flip[0] - 0.2) < 0.03
    assert error(zero_mean.result.coef) < error(standard.result.coef) - 0.01


SCALES = [(Logistic(), "scale"), (Probit(), "var"), (Robust(Logistic(), 0.05), "base.scale")]


@pytest.mark.parametrize(("likelihood", "name"), SCALES, ids=["logistic", "probit", "robust"])
def test_the_scale_of_a_likelihood_is_learnt_beside_a_prior_that_keeps_its_own(likelihood, name):
    """Of both only the product is known; a run that moved both ended without any weight."""
    X, y, _ = sparse_problem()
    prior = Bernoulli(0.07, Gaussian(var=1.0))
    both = rf"The likelihood's {name} and the prior's slab.var both set the size of the scores"
    with pytest.raises(
        ValueError, match=both + r".*cannot be learnt. Use learn_prior=\('rate',\) to keep slab"
    ):
        fit_em(Design(X), y, likelihood, prior, learn_prior=("rate", "slab.var"), learn_likelihood=(name,))
    with pytest.warns(
        UserWarning,
        match=both + r".*: slab.var keeps its starting value. To choose, set learn_prior=\('rate',\)",
    ):
        tuned = fit_em(Design(X), y, likelihood, prior, learn_likelihood=(name,))
    assert tuned.prior.slab.var[0] == 1.0 and tuned.prior.rate[0] != 0.07
    assert (np.abs(tuned.result.coef) > 0.1).any() and parameters(tuned.likelihood)[name][0] > 1e-2


def test_a_prior_with_one_scale_fixed_learns_the_others():
    """The l2 of an elastic net gives the weights a size, and so does a mean that is not zero."""
    X, y, _ = sparse_problem()
    for prior, learn in ((ElasticNet(1.0, 1.0), ("l1",)), (Gaussian(0.1, 1.0), ("var",))):
        run = SolverSettings(max_iter=3)
        fit_em(Design(X), y, Logistic(), prior, run, learn_prior=learn, learn_likelihood=("scale",))


def test_a_classifier_keeps_its_features_when_the_scale_is_learnt():
    """The README's data: with both scales learnt nothing was selected, and "Ended well" was said."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 1000))
    y = X[:, 3] - X[:, 7] + 0.3 * rng.standard_normal(200) > 0
    with pytest.warns(UserWarning, match="slab.var keeps its start"):
        warned = GAMPClassifier(learn_likelihood=("scale",)).fit(X, y)
    asked = GAMPClassifier(learn_likelihood=("scale",), learn_prior=("rate",)).fit(X, y)
    for model in (warned, asked):
        assert np.flatnonzero(model.get_support()).tolist() == [3, 7] and model.score(X, y) > 0.9
        assert model.hyperparameters_["likelihood.scale"] > 1
    np.testing.assert_array_equal(warned.coef_, asked.coef_)


def test_a_scale_with_variational_moments_waits_until_weights_have_moved():
    """Learnt from the first iteration on, it fell to 1e-4 with an empty model, called a good end."""
    X, y, w = sparse_problem(n_rows=300, n_features=120)
    likelihood, prior = Logistic(moments="variational"), Bernoulli(0.07, Gaussian(var=1.0))
    tuned = fit_em(Design(X), y, likelihood, prior, learn_prior=("rate",), learn_likelihood=("scale",))
    assert tuned.likelihood.scale[0] > 0.5 and tuned.result.converged[0]
    assert np.corrcoef(tuned.result.coef[:, 0], w)[0, 1] > 0.9
