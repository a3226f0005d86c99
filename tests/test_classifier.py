"""GAMPClassifier: the contract of scikit-learn, what its attributes mean, pipelines, nilearn, errors."""

import doctest
import pickle
import warnings
from importlib.metadata import version

import nibabel
import numpy as np
import pandas as pd
import pytest
from packaging.version import Version
from scipy import sparse
from scipy.special import expit, logit, ndtr
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.feature_extraction.image import grid_to_graph
from sklearn.feature_selection import SelectFromModel
from sklearn.metrics import log_loss, recall_score
from sklearn.model_selection import GridSearchCV, LeaveOneGroupOut, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.class_weight import compute_class_weight, compute_sample_weight
from sklearn.utils.estimator_checks import check_estimator

import mvpa_gamp.classifier.estimator
from mvpa_gamp import GAMPClassifier
from mvpa_gamp.coupling import couple
from mvpa_gamp.decoding.fit import Scheme, fit_pairs
from mvpa_gamp.decoding.folds import Folds
from mvpa_gamp.gamp import Bernoulli, Gaussian, Laplace, Logistic, Probit, Robust
from mvpa_gamp.gamp.likelihoods import LIKELIHOODS
from mvpa_gamp.gamp.priors import PRIORS
from mvpa_gamp.methods import METHODS, GampMethod
from mvpa_gamp.methods.gamp import LOGISTIC_LIKE_VARIANCE

pytestmark = pytest.mark.whole

MAX_SUM = {"mode": "max-sum", "prior": "laplace"}


def two_features(n_samples=120, n_features=60, seed=0, noise=0.5):
    """Features 0 and 1 tell the classes "no" and "yes" apart."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features))
    y = X[:, 0] - X[:, 1] + noise * rng.standard_normal(n_samples) > 0
    return X, np.where(y, "yes", "no")


@pytest.fixture(scope="module")
def data():
    return two_features()


@pytest.fixture(scope="module")
def fitted(data):
    return GAMPClassifier().fit(*data)


# --- the contract of scikit-learn


@pytest.mark.parametrize(
    "estimator",
    [
        pytest.param(GAMPClassifier(), marks=pytest.mark.slow),
        pytest.param(GAMPClassifier(**MAX_SUM, tol=1e-4, max_iter=300), marks=pytest.mark.slow),
        GAMPClassifier(likelihood="probit", prior="gaussian"),
    ],
    ids=["default", "max-sum", "probit-gaussian"],
)
def test_the_full_check_of_scikit_learn_passes(estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # The check of class weights gives one class 10 million times the weight of the others: max-sum fits
        # then end at the iteration limit, and say so.
        warnings.simplefilter("ignore" if estimator.mode == "max-sum" else "error", ConvergenceWarning)
        warnings.filterwarnings("ignore", "No features were selected", UserWarning)  # noise, and it is said
        results = check_estimator(estimator, on_skip=None)
    skipped = {result["check_name"] for result in results if result["status"] != "passed"}
    assert skipped <= {"check_array_api_input"}  # needs SCIPY_ARRAY_API in the environment
    names = {result["check_name"] for result in results}
    assert len(results) > 40 and not estimator.__sklearn_tags__().no_validation
    assert {"check_sample_weight_equivalence_on_dense_data", "check_class_weight_classifiers"} <= names
    assert {"check_transformer_general", "check_transformer_preserve_dtypes"} <= names
    assert estimator.__sklearn_tags__().classifier_tags.multi_class


def test_the_example_of_the_class_prints_what_it_says():
    assert doctest.testmod(mvpa_gamp.classifier.estimator) == (0, 9)


# --- what the fit says


def test_shapes_and_meaning_of_the_attributes(data, fitted):
    X, y = data
    n_features = X.shape[1]
    assert fitted.classes_.tolist() == ["no", "yes"]
    assert fitted.coef_.shape == fitted.coef_std_.shape == (1, n_features)
    assert fitted.intercept_.shape == (1,)
    assert fitted.inclusion_prob_.shape == (n_features,)
    assert (fitted.inclusion_prob_ >= 0).all() and (fitted.inclusion_prob_ <= 1).all()
    assert fitted.inclusion_prob_[:2].min() > 0.99 > 0.5 > fitted.inclusion_prob_[2:].max()
    assert fitted.coef_[0, 0] > 5 * fitted.coef_std_[0, 0] > 0
    assert fitted.coef_[0, 1] < -5 * fitted.coef_std_[0, 1] < 0
    assert fitted.converged_ is True
    assert fitted.status_.startswith("Ended well: the leave-one-out score")
    assert isinstance(fitted.n_iter_, int) and fitted.n_iter_ > 1
    assert isinstance(fitted.loo_score_, float) and np.log(0.5) < fitted.loo_score_ < 0
    learnt = fitted.hyperparameters_
    assert set(learnt) == {"likelihood.scale", "prior.rate", "prior.slab.mean", "prior.slab.var"}
    assert all(np.ndim(value) == 0 for value in learnt.values())
    assert 1 < learnt["prior.rate"] * n_features < 4
    assert fitted.score(X, y) > 0.88


def test_support_as_mask_and_as_indices(fitted):
    assert fitted.get_support().dtype == bool
    assert fitted.get_support(indices=True).tolist() == [0, 1]
    assert np.flatnonzero(fitted.get_support()).tolist() == [0, 1]


def test_max_sum_says_what_it_has_and_nothing_else(data):
    model = GAMPClassifier(**MAX_SUM).fit(*data)
    assert np.isnan(model.loo_score_)
    assert model.get_support()[:2].all() and model.get_support().sum() < 30
    np.testing.assert_array_equal(model.inclusion_prob_ == 1, model.get_support())
    score = data[0] @ model.coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(data[0]), score, atol=1e-10)
    np.testing.assert_allclose(model.predict_proba(data[0])[:, 1], expit(score), atol=1e-6)


@pytest.mark.parametrize("prior", [name for name in PRIORS if not name.startswith("bernoulli-")])
def test_continuous_priors_include_every_feature(data, prior):
    model = GAMPClassifier(prior=prior).fit(*data)
    assert (model.inclusion_prob_ == 1).all() and model.get_support().all()
    assert model.score(*data) > 0.85, (
        f"{prior!r} does not fit weights of both signs, as a prior of the registry must. Use a one-sided "
        "prior as an object, GAMPClassifier(prior=...)."
    )


def test_mixtures_keep_all_components_in_the_hyperparameters(data):
    learnt = GAMPClassifier(prior="bernoulli-gaussian-mixture").fit(*data).hyperparameters_
    assert learnt["prior.slab.weights"].shape == learnt["prior.slab.variances"].shape == (3,)


def test_the_leave_one_out_score_is_close_to_actual_refits():
    X, y = two_features(50, 20, seed=2, noise=1.0)
    model = GAMPClassifier("probit", Bernoulli(0.1, Gaussian(0, 2)), em=False)
    score = clone(model).fit(X, y).loo_score_
    own = -log_loss(y, clone(model).fit(X, y).predict_proba(X))
    refits = []
    for row in range(50):
        others = np.arange(50) != row
        left_out = clone(model).fit(X[others], y[others]).predict_log_proba(X[[row]])[0]
        refits.append(left_out[int(y[row] == "yes")])
    assert abs(score - np.mean(refits)) < 0.03
    assert abs(score - np.mean(refits)) < 0.3 * abs(
        own - np.mean(refits)
    )  # rows are not judged on themselves


# --- probabilities


@pytest.mark.parametrize(("likelihood", "link"), [("logistic", expit), ("probit", ndtr)])
def test_probabilities_average_over_the_posterior_of_the_weights(likelihood, link):
    X, y = two_features(60, 15, seed=3, noise=1.0)
    X = X + 3.0  # the average is taken around the center
    model = GAMPClassifier(likelihood=likelihood, prior="gaussian").fit(X, y)
    rng = np.random.default_rng(1)
    new = 2 * rng.standard_normal((10, 15)) + 3.0
    weights = rng.normal(model.coef_, model.coef_std_, (50_000, 15))
    offset = model.intercept_ + X.mean(axis=0) @ model.coef_[0]
    sampled = link((new - X.mean(axis=0)) @ weights.T + offset).mean(axis=1)
    plain = link(new @ model.coef_[0] + model.intercept_)
    given = model.predict_proba(new)
    np.testing.assert_allclose(given.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(given[:, 1], sampled, atol=0.01)
    assert np.abs(plain - sampled).max() > 0.05
    np.testing.assert_allclose(expit(model.decision_function(new)), given[:, 1], rtol=1e-9)


@pytest.mark.parametrize(
    "model",
    [GAMPClassifier(), GAMPClassifier("probit"), GAMPClassifier("hinge"), GAMPClassifier(**MAX_SUM)],
    ids=["logistic", "probit", "hinge", "max-sum"],
)
def test_one_positive_in_ten_is_calibrated_and_beats_the_majority(model):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((6000, 30)) + 2.0
    score = (X[:, :3] - 2.0) @ [2.0, -2.0, 2.0] - 4.7
    y = rng.random(6000) < expit(score)
    train, test = slice(0, 1000), slice(1000, None)
    assert 0.08 < y[train].mean() < 0.12
    model = clone(model).fit(X[train], y[train])
    positive = model.predict_proba(X[test])[:, 1]
    assert abs(positive.mean() - y[test].mean()) < 0.025
    assert log_loss(y[test], positive) < 0.65 * log_loss(y[test], np.full(5000, y[train].mean()))
    assert model.score(X[test], y[test]) > 1 - y[test].mean() + 0.02
    assert model.intercept_[0] + model.coef_[0].sum() * 2.0 < -1


def test_without_an_intercept_the_score_passes_through_zero():
    X, y = two_features(seed=6)
    model = GAMPClassifier(fit_intercept=False).fit(X, y)
    assert model.intercept_.tolist() == [0.0]
    assert model.predict_proba(np.zeros((1, 60))).tolist() == [[0.5, 0.5]]


@pytest.mark.parametrize("mode", [{}, {**MAX_SUM, "learn_likelihood": ()}], ids=["sum-product", "max-sum"])
def test_robust_likelihood_finds_wrong_labels_and_predicts_right_ones(mode):
    X, clean = two_features(700, 30, seed=7, noise=0.2)
    wrong = np.random.default_rng(8).random(700) < 0.2
    y = np.where(wrong, np.where(clean == "yes", "no", "yes"), clean)
    model = GAMPClassifier(likelihood=Robust(Logistic(), flip=0.1), **mode).fit(X[:400], y[:400])
    assert model.score(X[400:], clean[400:]) > 0.93
    assert model.predict_proba(X).max() > 0.95  # of the right label, not of the one that may be flipped
    if not mode:
        assert abs(model.hyperparameters_["likelihood.flip"] - 0.2) < 0.08


# --- one model, two ways in


OWN = GampMethod("own", "own", "", Robust(Logistic(), 0.05), "bernoulli-gaussian", learn_likelihood=())


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csc_matrix])
@pytest.mark.parametrize(
    ("method", "settings"),
    [
        (METHODS["gamp-bg-lr"], {}),
        (METHODS["gamp-bg-pr"], {"likelihood": Probit(LOGISTIC_LIKE_VARIANCE)}),
        (METHODS["gamp-bg-hl"], {"likelihood": "hinge"}),
        (METHODS["gamp-l1-lr"], {**MAX_SUM, "tol": 1e-4}),
        (OWN, {"likelihood": OWN.likelihood, "learn_likelihood": ()}),
    ],
    ids=["bg-lr", "bg-pr", "bg-hl", "l1-lr", "robust"],
)
def test_the_classifier_is_the_method_of_the_tables(method, settings, form):
    X, y = two_features(90, 40, seed=12, noise=1.0)
    X[np.random.default_rng(3).random(X.shape) < 0.5] = 0
    X[:, 3:9] += 2.0  # means far from zero
    labels, everything = np.where(y == "yes", 1, -1), np.ones((90, 1), dtype=bool)
    wanted = method.fit_folds(X, labels, everything, np.arange(90) % 3)
    model = GAMPClassifier(center=True, **settings).fit(form(X), y)
    close = {"rtol": 0, "atol": 1e-6 * np.abs(wanted.coef).max()}
    np.testing.assert_allclose(model.coef_.T, wanted.coef, **close)
    np.testing.assert_allclose(model.intercept_, wanted.intercept, atol=1e-6)
    np.testing.assert_array_equal(model.get_support(), wanted.support[:, 0])
    if method.has_posterior:
        np.testing.assert_allclose(model.coef_std_.T, wanted.coef_std, **close)
        np.testing.assert_allclose(model.inclusion_prob_, wanted.inclusion[:, 0], atol=1e-6)
        np.testing.assert_allclose(model.predict_proba(form(X))[:, 1], wanted.proba[:, 0], atol=1e-6)
        np.testing.assert_allclose(
            model.decision_function(form(X)), logit(wanted.proba[:, 0]), rtol=1e-5, atol=1e-5
        )
    else:  # no posterior to average over: the score itself
        np.testing.assert_allclose(model.decision_function(form(X)), wanted.decision[:, 0], atol=1e-6)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_neighbours_are_those_of_the_method_of_the_tables(form):
    X, y = two_features(90, 40, seed=12, noise=1.0)
    X, graph = form(X + 2.0), grid_to_graph(5, 8)
    labels, everything = np.where(y == "yes", 1, -1), np.ones((90, 1), dtype=bool)
    method = METHODS["gamp-sbg-lr"]
    wanted = method.fit_folds(X, labels, everything, np.arange(90) % 3, connectivity=graph)
    model = GAMPClassifier(center=True, connectivity=graph).fit(X, y)
    np.testing.assert_array_equal(model.coef_.T, wanted.coef)
    np.testing.assert_array_equal(model.coef_std_.T, wanted.coef_std)
    np.testing.assert_array_equal(model.intercept_, wanted.intercept)
    np.testing.assert_array_equal(model.inclusion_prob_, wanted.inclusion[:, 0])
    assert model.n_iter_ == wanted.n_iter[0]
    alone = GAMPClassifier(center=True).fit(X, y)
    assert np.abs(model.inclusion_prob_ - alone.inclusion_prob_).max() > 1e-3


# --- kinds of input


@pytest.mark.parametrize("settings", [{}, MAX_SUM], ids=["sum-product", "max-sum"])
@pytest.mark.parametrize("center", [False, True])
def test_sparse_equals_dense(settings, center):
    X, y = two_features(80, 50, seed=9)
    X[np.random.default_rng(1).random(X.shape) < 0.6] = 0
    X[:, 2:10] += 1
    dense = GAMPClassifier(center=center, **settings).fit(X, y)
    for thin in (sparse.csr_matrix(X), sparse.csc_array(X), sparse.coo_array(X)):
        model = GAMPClassifier(center=center, **settings).fit(thin, y)
        np.testing.assert_allclose(model.coef_, dense.coef_, atol=1e-8)
        np.testing.assert_allclose(model.intercept_, dense.intercept_, atol=1e-8)
        np.testing.assert_allclose(model.predict_proba(thin), dense.predict_proba(X), atol=1e-8)


def test_auto_center_leaves_sparse_input_alone(data):
    X, y = data[0] + 1.0, data[1]
    plain, auto = GAMPClassifier(center=False), GAMPClassifier()
    np.testing.assert_allclose(
        auto.fit(sparse.csr_array(X), y).coef_, plain.fit(X, y).coef_, rtol=1e-6, atol=1e-9
    )
    np.testing.assert_allclose(auto.fit(X, y).coef_, GAMPClassifier(center=True).fit(X, y).coef_)


@pytest.mark.parametrize("settings", [{}, MAX_SUM], ids=["sum-product", "max-sum"])
@pytest.mark.parametrize("mean", [0.0, 100.0])
def test_float32_stays_float32_and_agrees(data, settings, mean):
    X, y = (data[0] + mean).astype(np.float32), data[1]
    single = GAMPClassifier(**settings).fit(X, y)
    double = GAMPClassifier(**settings).fit(X.astype(float), y)
    assert single.coef_.dtype == single.coef_std_.dtype == np.float32
    np.testing.assert_allclose(single.predict_proba(X), double.predict_proba(X.astype(float)), atol=1e-3)
    np.testing.assert_array_equal(single.get_support(), double.get_support())


@pytest.mark.parametrize("settings", [{}, MAX_SUM, {"prior": "laplace"}], ids=["bg", "max-sum", "laplace"])
@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_the_scale_of_the_features_does_not_matter(data, settings, factor):
    X, y = data
    plain, scaled = (clone(GAMPClassifier(**settings)).fit(c * X, y) for c in (1.0, factor))
    np.testing.assert_allclose(scaled.predict_proba(factor * X), plain.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(scaled.coef_ * factor, plain.coef_, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(scaled.get_support(), plain.get_support())


def test_classes_swap_with_the_labels(data):
    X, y = data
    one, other = (GAMPClassifier().fit(X, labels) for labels in (y == "yes", y == "no"))
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X)[:, ::-1], atol=1e-9)


# --- inside scikit-learn and nilearn


def test_pipeline_grid_search_clone_and_pickle(data):
    X, y = data
    pipeline = make_pipeline(StandardScaler(), GAMPClassifier("probit"))
    search = GridSearchCV(pipeline, {"gampclassifier__prior": ["gaussian", Bernoulli(0.1, Gaussian())]}, cv=3)
    search.fit(X, y)
    assert isinstance(search.best_params_["gampclassifier__prior"], Bernoulli)
    again = pickle.loads(pickle.dumps(search))
    np.testing.assert_array_equal(again.predict_proba(X), search.predict_proba(X))
    copied = clone(search.best_estimator_)
    with pytest.raises(NotFittedError):
        copied[-1].get_support()
    np.testing.assert_allclose(copied.fit(X, y).predict_proba(X), search.predict_proba(X), rtol=1e-12)


def test_leave_one_run_out_and_selection(data, fitted):
    X, y = data
    scores = cross_val_score(
        GAMPClassifier("probit"), X, y, groups=np.repeat(range(4), 30), cv=LeaveOneGroupOut()
    )
    assert scores.shape == (4,) and scores.mean() > 0.8
    likely = SelectFromModel(fitted, prefit=True, importance_getter="inclusion_prob_", threshold=0.5)
    np.testing.assert_array_equal(likely.transform(X), X[:, :2])


# --- more than two classes, weights


@pytest.fixture(scope="module")
def three():
    """Classes "cat", "house", "shoe", each with a feature of its own, among 30."""
    rng = np.random.default_rng(3)
    codes = rng.permutation(np.repeat([0, 1, 2], [40, 30, 20]))
    X = rng.standard_normal((90, 30))
    X[np.arange(90), codes] += 2.0
    return X, np.array(["cat", "house", "shoe"])[codes]


@pytest.fixture(scope="module")
def three_fitted(three):
    return GAMPClassifier().fit(*three)


def test_every_pair_is_the_fit_of_its_two_classes(three, three_fitted):
    X, y = three
    assert three_fitted.pairs_ == [("cat", "house"), ("cat", "shoe"), ("house", "shoe")]
    assert three_fitted.coef_.shape == three_fitted.inclusion_prob_.shape == (3, 30)
    assert (
        three_fitted.intercept_.shape == three_fitted.loo_score_.shape == three_fitted.n_iter_.shape == (3,)
    )
    assert len(three_fitted.status_) == 3 and three_fitted.converged_ is True
    assert three_fitted.hyperparameters_["prior.rate"].shape == (3,)
    for p, pair in enumerate(three_fitted.pairs_):
        mine = np.isin(y, pair)
        alone = GAMPClassifier().fit(X[mine], y[mine])
        np.testing.assert_allclose(three_fitted.coef_[p], alone.coef_[0], atol=1e-8)
        np.testing.assert_allclose(three_fitted.inclusion_prob_[p], alone.inclusion_prob_, atol=1e-8)
        np.testing.assert_allclose(three_fitted._log_odds(X)[:, p], alone.decision_function(X), atol=1e-7)


def test_pairs_are_coupled_as_in_the_decoder(three, three_fitted):
    X, y = three
    proba = three_fitted.predict_proba(X)
    np.testing.assert_allclose(proba, couple(expit(-three_fitted._log_odds(X)), 3), atol=1e-9)
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(three_fitted.decision_function(X), np.log(proba), atol=1e-9)
    assert (three_fitted.predict(X) == three_fitted.classes_[proba.argmax(axis=1)]).all()
    assert three_fitted.score(X, y) > 0.85
    codes = np.searchsorted(three_fitted.classes_, y)
    folds = Folds(np.ones((90, 1), dtype=bool), np.zeros((90, 1), dtype=bool), np.zeros(1))
    fits = fit_pairs(METHODS["gamp-bg-lr"], X, codes, np.zeros(90), scheme=Scheme(folds)).fits
    np.testing.assert_allclose(three_fitted.coef_, [-each.coef[:, -1] for each in fits], atol=1e-7)
    answers = np.stack([each.proba[:, -1] for each in fits], axis=1)
    np.testing.assert_allclose(proba, couple(answers, 3), atol=1e-6)


def test_support_of_many_classes_is_that_of_any_pair(three, three_fitted):
    assert three_fitted.get_support(indices=True).tolist()[:3] == [0, 1, 2]
    np.testing.assert_array_equal(
        three_fitted.get_support(), (three_fitted.inclusion_prob_ > 0.5).any(axis=0)
    )
    max_sum = GAMPClassifier(**MAX_SUM, tol=1e-3).fit(*three)
    np.testing.assert_array_equal(max_sum.get_support(), (max_sum.coef_ != 0).any(axis=0))
    assert max_sum.score(*three) > 0.8 and np.allclose(max_sum.predict_proba(three[0]).sum(axis=1), 1)


def test_sparse_samples_of_many_classes(three):
    X, y = three
    thin = np.where(np.abs(X) > 1, X, 0.0)
    dense, sparse_ = (GAMPClassifier(center=False).fit(each, y) for each in (thin, sparse.csr_array(thin)))
    np.testing.assert_allclose(sparse_.coef_, dense.coef_, atol=1e-8)
    np.testing.assert_allclose(
        sparse_.predict_proba(sparse.csr_array(thin)), dense.predict_proba(thin), atol=1e-8
    )


@pytest.mark.parametrize("settings", [{}, {"likelihood": "probit"}, {**MAX_SUM, "tol": 1e-8}], ids=str)
@pytest.mark.parametrize("classes", [2, 3])
def test_a_weight_of_two_is_a_copy_and_a_weight_of_zero_no_sample(three, settings, classes):
    X, y = three
    X, y = (X, y) if classes == 3 else (X[y != "shoe"], y[y != "shoe"])
    times = np.random.default_rng(0).integers(0, 3, len(y))
    weighted = GAMPClassifier(**settings).fit(X, y, sample_weight=times)
    copied = GAMPClassifier(**settings).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(weighted.coef_, copied.coef_, atol=1e-6)
    np.testing.assert_allclose(weighted.intercept_, copied.intercept_, atol=1e-6)
    np.testing.assert_allclose(weighted.predict_proba(X), copied.predict_proba(X), atol=1e-6)


def test_class_weights_are_those_of_scikit_learn(three):
    X, y = three
    by_class = dict(
        zip(*[np.unique(y), compute_class_weight("balanced", classes=np.unique(y), y=y)], strict=True)
    )
    balanced, named = (GAMPClassifier(class_weight=each).fit(X, y) for each in ("balanced", by_class))
    by_sample = GAMPClassifier().fit(X, y, sample_weight=compute_sample_weight("balanced", y))
    for other in (named, by_sample):
        np.testing.assert_allclose(balanced.coef_, other.coef_, atol=1e-9)
    assert np.abs(balanced.intercept_ - GAMPClassifier().fit(X, y).intercept_).max() > 0.05


def test_balanced_weights_recognise_the_rare_class():
    rng = np.random.default_rng(1)
    y = np.arange(300) % 10 == 0
    X = rng.standard_normal((300, 40)) + 0.6 * y[:, None] * (np.arange(40) < 4)
    found = {}
    for weight in (None, "balanced"):
        model = GAMPClassifier(class_weight=weight).fit(X[:200], y[:200])
        found[weight] = recall_score(y[200:], model.predict(X[200:]), average=None)
    assert (
        found["balanced"][1] > found[None][1] + 0.3 and found["balanced"].mean() > found[None].mean() + 0.05
    )


@pytest.mark.parametrize(
    ("settings", "weights", "message"),
    [
        ({}, -np.ones(120), r"Negative values in data passed to `sample_weight`"),
        ({}, np.ones(7), r"sample_weight.shape == \(7,\), expected \(120,\)"),
        ({}, np.full(120, np.nan), r"sample_weight contains NaN"),
        ({}, "none of yes", r"all weights are zero for \['yes'\]"),
        ({"class_weight": "heavy"}, None, r"class_weight"),
        ({"class_weight": {"no": 1.0, "oui": 2.0}}, None, r"\['yes'\], are not in class_weight"),
        ({"class_weight": {"no": -1.0, "yes": 1.0}}, None, r"class_weight .* 0 or more .* got -1 for 'no'"),
        ({"class_weight": {"no": 1.0, "yes": np.nan}}, None, r"class_weight .* got nan for 'yes'"),
    ],
)
def test_bad_weights_are_refused(data, settings, weights, message):
    weights = (data[1] == "no").astype(float) if isinstance(weights, str) else weights
    with pytest.raises(ValueError, match=message):
        GAMPClassifier(**settings).fit(*data, sample_weight=weights)


@pytest.mark.filterwarnings("ignore:Use a custom estimator", "ignore:Nilearn cannot define a default")
@pytest.mark.parametrize("grid", [None, {}, {"prior": ["laplace", "bernoulli-gaussian"]}])
def test_nilearn_decoder(grid):
    if grid is None and Version(version("nilearn")) < Version("0.14.1"):
        pytest.skip("nilearn before 0.14.1 accepts its own estimators only, unless param_grid is given")
    from nilearn.decoding import Decoder

    rng = np.random.default_rng(11)
    mask = np.zeros((6, 6, 6), dtype=np.uint8)
    mask[1:, 1:, 1:] = 1
    runs, y = np.repeat(range(4), 12), np.tile(["face", "house"], 24)
    volumes = 100 + rng.standard_normal((6, 6, 6, 48))
    volumes[2:4, 2, 2, y == "house"] += 3.0
    images, mask_image = (nibabel.Nifti1Image(a, np.diag([3, 3, 3, 1])) for a in (volumes, mask))
    decoder = Decoder(
        estimator=GAMPClassifier("probit"),
        mask=mask_image,
        cv=LeaveOneGroupOut(),
        screening_percentile=100,
        scoring="accuracy",
        standardize="zscore_sample",
        param_grid=grid,
    )
    decoder.fit(images, y, groups=runs)
    assert decoder.coef_.shape == (1, 125)
    assert len(decoder.cv_scores_["house"]) == 4 and np.mean(decoder.cv_scores_["house"]) > 0.9
    assert (decoder.predict(images) == y).mean() > 0.9
    weights = np.abs(decoder.coef_img_["house"].get_fdata())
    assert weights.shape == mask.shape and not weights[mask == 0].any()
    informative = np.zeros(mask.shape, dtype=bool)
    informative[2:4, 2, 2] = True
    assert weights[informative].min() > 3 * weights[~informative].max()


# --- when something is wrong


@pytest.mark.parametrize("settings", [{}, MAX_SUM, {"prior": "gaussian", "stop": "fixed-point"}])
def test_one_warning_with_a_count_and_never_more(data, settings):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = GAMPClassifier(max_iter=1, **settings).fit(*data)
        model.predict_proba(data[0])
    assert [str(w.category.__name__) for w in caught] == ["ConvergenceWarning"]
    message = str(caught[0].message)
    assert message.startswith("1 of 1 fits did not converge.") and "Raise max_iter" in message
    assert caught[0].filename == __file__
    assert not model.converged_ and np.isfinite(model.coef_).all()
    assert issubclass(caught[0].category, ConvergenceWarning)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"likelihood": "logit"}, r"Unknown likelihood 'logit'. Known likelihoods: logistic, probit, hinge"),
        (
            {"likelihood": Laplace()},
            r"likelihood must be a name or a likelihood of mvpa_gamp.gamp, got Laplace",
        ),
        ({"prior": "l1"}, r"Unknown prior 'l1'. Known priors: gaussian, laplace, .*bernoulli-gaussian"),
        ({"prior": 0.1}, r"prior must be a name or a prior object of mvpa_gamp.gamp, got float"),
        ({"mode": "map"}, r"mode must be one of 'sum-product', 'max-sum', got 'map'"),
        ({"mode": "max-sum"}, r"max-sum.*(laplace|Laplace)"),
        ({"mode": "max-sum", "em": False}, r"max-sum.*(laplace|Laplace)"),
        ({"center": "mean"}, r"center must be True, False or 'auto', got 'mean'"),
        ({"center": 0}, r"center must be True, False or 'auto', got 0"),
        ({"stop": "never"}, r"stop must be one of 'cavity', 'fixed-point', got 'never'"),
        ({**MAX_SUM, "stop": "cavity"}, r"stop='cavity' needs mode='sum-product'.*Use stop='fixed-point'"),
        ({"damping": 2.0}, r"damping must be a step in \(0, 1\], got 2.0"),
        (
            {"likelihood": "gamp-sbg-lr"},
            r"Unknown .*write .*GAMPClassifier\(connectivity=graph\) for 'gamp-s",
        ),
        ({"max_iter": 1.5}, r"max_iter must be a whole number, at least 1, got 1.5"),
        ({"max_iter": 0}, r"max_iter must be a whole number, at least 1, got 0"),
        ({"connectivity": sparse.eye_array(9)}, r"connectivity must be \(60, 60\), .*got shape \(9, 9\)"),
        ({**MAX_SUM, "connectivity": sparse.eye_array(60)}, r"connectivity needs mode='sum-product'"),
        ({"stop": "fixed-point", "connectivity": sparse.eye_array(60)}, r"connectivity needs stop='cavity'"),
        ({"prior": "gaussian", "connectivity": sparse.eye_array(60)}, r"zero with some .*got Gaussian"),
        ({"tol": -1.0}, r"tol must be a positive number, got -1.0"),
        ({"variance": "none"}, r"variance must be one of 'full', 'uniform', got 'none'"),
        ({"learn_prior": ("slope",)}, r"Bernoulli cannot learn 'slope'; it can learn 'rate'"),
        ({**MAX_SUM, "learn_likelihood": "scale"}, r"learns prior parameters only.*Use mode='sum-product'"),
    ],
)
def test_wrong_settings_are_refused_in_fit(data, settings, message):
    with pytest.raises(ValueError, match=message):
        GAMPClassifier(**settings).fit(*data)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda X, y: (X, np.full_like(y, "no")), r"two classes or more, got one class: \['no'\]"),
        (lambda X, y: (X, np.linspace(0, 1, y.size)), r"Unknown label type: continuous"),
        (lambda X, y: (np.where(X > 2, np.nan, X), y), r"Input X contains NaN"),
        (lambda X, y: (np.where(X > 2, np.inf, X), y), r"Input X contains infinity"),
        (lambda X, y: (X[:-1], y), r"inconsistent numbers of samples"),
        (lambda X, y: (X[:, 0], y), r"Expected 2D array, got 1D array"),
    ],
    ids=["one class", "continuous", "nan", "inf", "lengths", "1d"],
)
def test_bad_data_are_refused_in_fit(data, spoil, message):
    with pytest.raises(ValueError, match=message):
        GAMPClassifier().fit(*spoil(*data))


def test_prediction_refuses_other_features_and_an_unfitted_model(data, fitted):
    with pytest.raises(ValueError, match="X has 59 features, but GAMPClassifier is expecting 60"):
        fitted.predict(data[0][:, 1:])
    for method in ("predict", "predict_proba", "decision_function"):
        with pytest.raises(NotFittedError):
            getattr(GAMPClassifier(), method)(data[0])


def test_every_likelihood_works_with_constant_features(data):
    X, y = data[0].copy(), data[1]
    X[:, 5] = 7.0
    X[:, 6] = 0.0
    for likelihood in LIKELIHOODS:
        model = GAMPClassifier(likelihood).fit(X, y)
        assert np.isfinite(model.predict_proba(X)).all()
        assert model.get_support(indices=True).tolist() == [0, 1]


def test_an_x_that_does_not_vary_is_refused():
    with pytest.raises(ValueError, match=r"No feature of X varies.*Check how X was built"):
        GAMPClassifier().fit(np.ones((20, 5)), np.arange(20) % 2)


@pytest.mark.parametrize(
    ("X", "y", "weights", "message"),
    [
        ("features.csv", [0, 1], None, r"numeric matrix.*\(could not convert string"),
        ([[1.0, "a"], [2.0, 3.0]], [0, 1], None, r"numeric matrix.*got 'a' in column 1, row 0. Convert"),
        (pd.DataFrame({"g1": [1.0, 2.0], "g2": ["1", "x"]}), [0, 1], None, "got 'x' in column 'g2', row 1"),
        ([[1.0], [3.0], [2.0]], np.array(["a", None, "b"]), None, r"y has missing labels \(None\) in 1 of 3"),
        ([[1.0], [3.0]], pd.Series(["a", np.nan]), None, r"y has missing labels \(nan\) in 1 of 2"),
        ([[1.0], [3.0]], pd.Series(["a", None], dtype="string"), None, r"y has missing labels \(<NA>\) in 1"),
        ([[1.0, 2.0], [3.0]], [0, 1], None, r"numeric matrix.*\(setting an array element"),
        ([[1.0], [3.0]], np.array(["a", 3], dtype=object), None, "a mixture of int, str, which has no order"),
        (
            pd.DataFrame(np.eye(2), columns=["g", "g"]),
            [0, 1],
            None,
            "X must have a name of its own .*: 'g'. Re",
        ),
        ([[1.0], [3.0]], [0, 1], ["heavy", "light"], "sample_weight must hold numbers"),
    ],
)
def test_what_cannot_be_made_an_array_is_told_in_our_words(X, y, weights, message):
    with pytest.raises(ValueError, match=message):
        GAMPClassifier().fit(X, y, weights)


@pytest.mark.parametrize("given", [{"likelihood": Logistic}, {"prior": Bernoulli}])
def test_a_class_in_place_of_a_model(data, given):
    (name,) = next(iter(given.values())).__name__.split()
    with pytest.raises(ValueError, match=rf"got the class {name}: write {name}\(\)"):
        GAMPClassifier(**given).fit(*data)


@pytest.mark.parametrize("name", ["em", "fit_intercept"])
def test_switches_are_true_or_false(data, name):
    with pytest.raises(ValueError, match=f"{name} must be True or False, got 'no'"):
        GAMPClassifier(**{name: "no"}).fit(*data)
