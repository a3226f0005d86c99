"""GAMPDecoder with other methods: baselines by name, and any classifier of scikit-learn."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, LeaveOneGroupOut, LeavePGroupsOut
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC

from mvpa_gamp import GAMPDecoder
from mvpa_gamp.methods import METHODS, find_method

STEPS = (MinMaxScaler(), StandardScaler(), SelectKBest(k=40), PCA(8, whiten=True))
PIPELINE = make_pipeline(*STEPS, SVC(kernel="linear"))


def fitted(planted, method, **settings):
    return GAMPDecoder(method, mask=planted.mask, **settings).fit(*planted.rows(planted.shown))


def by_hand(decoder, estimator, y, groups):
    """Accuracy of every fold, fitted by scikit-learn itself to the decoder's rows."""
    X = decoder._data.X
    folds = LeaveOneGroupOut().split(X, y, groups)
    return [clone(estimator).fit(X[train], y[train]).score(X[test], y[test]) for train, test in folds]


@pytest.mark.parametrize("name", [name for name in METHODS if not METHODS[name].has_posterior])
def test_every_method_without_a_posterior_decodes(planted, name):
    decoder = fitted(planted, name)
    assert decoder.fold_scores_.mean() > 0.75 and decoder.inclusion_img_ is None
    X = decoder._data.X
    decision = decoder.decision_function(X)
    np.testing.assert_allclose(decision, X @ decoder.coef_[0] + decoder.intercept_[0], atol=1e-5)
    assert (decoder.predict(X) == np.where(decision > 0, "house", "face")).all()


@pytest.mark.parametrize(
    "estimator", [LinearSVC(C=0.01), LogisticRegression(C=0.1), PIPELINE], ids=["svc", "logistic", "pipeline"]
)
def test_a_linear_classifier_agrees_with_scikit_learn_and_has_its_weights(planted, estimator):
    decoder = fitted(planted, estimator)
    _, y, groups = planted.rows(planted.shown)
    seeded = clone(estimator).set_params(random_state=0) if estimator is not PIPELINE else estimator
    np.testing.assert_allclose(decoder.fold_scores_, by_hand(decoder, seeded, y, groups), rtol=1e-12)
    X = decoder._data.X
    decision = clone(seeded).fit(X, y).decision_function(X)
    np.testing.assert_allclose(X @ decoder.coef_[0] + decoder.intercept_[0], decision, atol=5e-3)  # of LIBSVM
    assert decoder.status_["status"].unique().tolist() == ["fitted"]


def test_a_forest_answers_itself_and_its_map_follows_it(planted):
    decoder = fitted(planted, RandomForestClassifier(30, random_state=0))
    X = decoder._data.X
    assert decoder.fold_scores_.mean() > 0.75
    assert "not linear" in decoder.status_["status"].iloc[0]
    own = RandomForestClassifier(30, random_state=0).fit(X, (decoder._data.codes == 0) * 2 - 1)
    np.testing.assert_allclose(decoder.predict_proba(X)[:, 0], own.predict_proba(X)[:, 1], atol=1e-9)
    score = X @ decoder.coef_[0] + decoder.intercept_[0]
    assert np.corrcoef(score, decoder.decision_function(X))[0, 1] > 0.99  # more voxels than images


def test_without_probabilities_there_is_a_sentence(planted):
    decoder = fitted(planted, "svm")
    with pytest.raises(ValueError, match="predict_proba needs probabilities, which 'svm' does not give"):
        decoder.predict_proba(planted.bold)


def test_a_search_sees_training_rows_and_their_runs_only(planted):
    search = GridSearchCV(LinearSVC(), {"C": [1e-4, 1e-2]}, cv=GroupKFold(3))
    decoder = fitted(planted, search)
    assert decoder.fold_scores_.mean() > 0.75 and decoder._data.method.name == "LinearSVC"
    hidden = np.where(decoder._data.codes == 0, 1.0, np.nan)
    train = np.ones((len(hidden), 1), dtype=bool)
    train[decoder._data.groups == 1] = False
    labels = np.where(decoder._data.codes == 0, 1.0, -1.0)
    args = train, decoder._data.groups
    one = find_method(search).fit_folds(decoder._data.X, np.where(train[:, 0], labels, hidden), *args)
    two = find_method(search).fit_folds(decoder._data.X, np.where(train[:, 0], labels, -labels), *args)
    np.testing.assert_array_equal(one.coef, two.coef)


def test_a_classifier_that_does_not_converge_says_so(planted):
    with pytest.warns(UserWarning, match="7 of 7 fits did not converge"):
        fitted(planted, LogisticRegression(C=1e6, max_iter=1))


@pytest.mark.parametrize("cv", [3, GroupKFold(2), LeavePGroupsOut(5)])
def test_any_splitter_and_a_number(planted, cv):
    decoder = fitted(planted, "lda", cv=cv)
    assert len(decoder.cv_) == (3 if cv == 3 else cv.get_n_splits(groups=[1, 2, 3, 4, 5, 6]))


def test_permutations_and_page_of_a_classifier(planted):
    decoder = fitted(planted, LinearSVC(C=0.01))
    test = decoder.permutation_test(19)
    assert test.pvalue <= 0.1 and test.score == pytest.approx(decoder.fold_scores_.mean())
    page = decoder.generate_report(permutation=test).html
    assert "LinearSVC" in page and "scikit-learn" in page
