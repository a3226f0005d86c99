"""What GAMPClassifier selects: as a step of a pipeline, with SelectFromModel, and if it is nothing or all."""

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mvpa_gamp import GAMPClassifier
from mvpa_gamp.gamp import Laplace

NAMES = np.array([f"gene{k}" for k in range(40)])


@pytest.fixture(scope="module")
def genes():
    """Genes 3 and 7 of 40 tell two classes apart, and with gene 11 three."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 40))
    two = np.where(X[:, 3] - X[:, 7] + 0.5 * rng.standard_normal(120) > 0, "yes", "no")
    return pd.DataFrame(X, columns=NAMES), two, np.where(X[:, 11] > 1, "maybe", two)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_classifier_is_a_selector_too(genes, classes):
    X, y = genes[0], genes[classes - 1]
    model = GAMPClassifier().fit(X, y)
    kept = model.get_support()
    np.testing.assert_array_equal(model.transform(X), X.to_numpy()[:, kept])
    assert model.get_feature_names_out().tolist() == NAMES[kept].tolist()
    assert set(NAMES[[3, 7]]) <= set(model.get_feature_names_out())
    assert (kept.sum() < 12) and (model.inverse_transform(model.transform(X)) != 0).sum() == 120 * kept.sum()
    assert GAMPClassifier().set_output(transform="pandas").fit_transform(X, y).columns.tolist() == list(
        NAMES[kept]
    )


def test_as_a_step_before_another_classifier(genes):
    X, y, _ = genes
    pipeline = make_pipeline(StandardScaler(), GAMPClassifier(), LogisticRegression())
    assert pipeline.fit(X, y).score(X, y) > 0.85
    assert pipeline[-1].coef_.shape == (1, pipeline[1].get_support().sum())
    assert pipeline[:-1].get_feature_names_out().tolist() == ["gene3", "gene7"]


@pytest.mark.parametrize("classes", [2, 3])
def test_select_from_model_by_inclusion_keeps_the_same(genes, classes):
    X, y = genes[0], genes[classes - 1]
    by_weight = SelectFromModel(GAMPClassifier()).fit(X, y)
    likely = SelectFromModel(
        GAMPClassifier(), importance_getter="inclusion_prob_", threshold=0.5, norm_order=np.inf
    ).fit(X, y)
    np.testing.assert_array_equal(likely.get_support(), likely.estimator_.get_support())
    assert by_weight.get_support().sum() > 0  # by its own rule, the mean weight


def test_an_empty_selection_is_said(genes):
    X = genes[0]
    y = np.random.default_rng(1).permutation(genes[1])
    model = GAMPClassifier().fit(X, y)
    assert not model.get_support().any()
    assert model.status_.startswith("Found nothing") and model.converged_ is False
    assert model.status_.endswith("above 0.5. Predictions use the weights of all features.")
    with pytest.warns(UserWarning, match="No features were selected"):
        assert model.transform(X).shape == (120, 0)
    assert "selected" not in GAMPClassifier().fit(X, genes[1]).status_
    status = GAMPClassifier(prior=Laplace(1e4), mode="max-sum", em=False).fit(X, genes[1]).status_
    assert status.endswith("No feature is selected: all weights are zero.")


def test_each_pair_says_what_it_selects(genes):
    X, y = genes[0], np.where(genes[1] == "yes", np.where(np.arange(120) % 2, "a", "b"), "no")
    model = GAMPClassifier().fit(X, y)
    said = ["No feature is selected" in status for status in model.status_]
    assert said == [True, False, False] and model.pairs_[0] == ("a", "b")


@pytest.mark.parametrize("prior", ["laplace", "gaussian"])
def test_a_prior_that_selects_everything_says_so(genes, prior):
    model = GAMPClassifier(prior=prior).fit(*genes[:2])
    assert model.get_support().all()
    assert model.status_.endswith("Every feature is selected: no weight of this prior is exactly zero.")
