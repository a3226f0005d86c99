"""Balanced accuracy and areas under the curve, fold by fold, against scikit-learn; votes of pairs."""

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.utils.multiclass import _ovr_decision_function

from mvpa_gamp.coupling import classify, vote
from mvpa_gamp.decoding import cross_validate, held_out_answers, permutation_test
from mvpa_gamp.decoding.fit import Scheme
from mvpa_gamp.decoding.scores import balanced_scores, fold_aucs, is_unequal, mean_balanced_accuracy
from mvpa_gamp.methods import METHODS


@pytest.fixture(scope="module")
def answered():
    rng = np.random.default_rng(0)
    fold, codes = np.repeat(np.arange(5), 12), rng.choice(3, 60, p=[0.6, 0.3, 0.1])
    return fold, codes, np.where(rng.random(60) < 0.6, codes, rng.integers(0, 3, 60))


def test_folds_that_test_every_class_are_as_scikit_learn_has_them(answered):
    fold, codes, said = answered
    codes = np.where(fold == 2, np.minimum(codes, 1), codes)  # a fold without the third class
    found = balanced_scores(said == codes, codes, fold, 3, 5)
    complete = [k for k in range(5) if len(np.unique(codes[fold == k])) == 3]
    expected = [balanced_accuracy_score(codes[fold == k], said[fold == k]) for k in complete]
    assert 2 not in complete and len(complete) >= 2
    np.testing.assert_allclose(found, expected)


def test_where_no_fold_has_every_class_all_rows_count_together(answered):
    _, codes, said = answered
    each = np.arange(60)
    found = balanced_scores(said == codes, codes, each, 3, 60)
    assert found.shape == (1,) and found[0] == pytest.approx(balanced_accuracy_score(codes, said))
    assert fold_aucs(said.astype(float), codes > 0, each).size == 0


def test_areas_are_those_of_scikit_learn_ties_included():
    rng = np.random.default_rng(1)
    fold, positive = np.repeat(np.arange(4), 15), rng.random(60) < 0.3
    positive[fold == 1] = False
    decision = np.round(rng.standard_normal(60) + positive, 1)
    expected = [roc_auc_score(positive[fold == k], decision[fold == k]) for k in (0, 2, 3)]
    np.testing.assert_allclose(fold_aucs(decision, positive, fold), expected)


def test_a_constant_answer_is_at_chance_whatever_the_frequencies():
    codes, fold = np.tile([0, 0, 0, 0, 1], 8), np.repeat(np.arange(4), 10)
    assert balanced_scores(codes == 0, codes, fold, 2, 4).tolist() == [0.5] * 4
    assert fold_aucs(np.zeros(40), codes == 0, fold).tolist() == [0.5] * 4


@pytest.mark.parametrize(("counts", "unequal"), [((6, 6), False), ((9, 6), False), ((10, 6), True)])
def test_the_rule_for_unequal_classes(counts, unequal):
    assert is_unequal(np.repeat([1, -1], counts)) == is_unequal(np.repeat([-1, 1], counts)) == unequal


def test_permutations_under_imbalance_are_not_fooled_by_the_majority():
    """Without an effect, saying the frequent class has 80 % accuracy and a balanced one of a half."""
    rng = np.random.default_rng(2)
    y, runs = np.tile(np.repeat([1.0, -1.0], [2, 8]), 6), np.repeat(np.arange(6), 10)
    X = rng.standard_normal((60, 30))
    blocks = np.repeat(np.arange(30), 2)
    plain, balanced = (
        permutation_test(METHODS["gamp-bg-lr"], X, y, runs, 9, score=score, scheme=Scheme(blocks=blocks))
        for score in (None, mean_balanced_accuracy)
    )
    said = held_out_answers([cross_validate(METHODS["gamp-bg-lr"], X, y, runs)])
    assert plain.score > 0.7 > 0.6 > balanced.score
    codes = (y < 0).astype(int)
    assert balanced.score == pytest.approx(mean_balanced_accuracy(codes, said))
    assert abs(balanced.null.mean() - 0.5) < 0.1 < 0.1 + plain.null.mean() - 0.6


def test_pairs_without_probabilities_vote_as_in_scikit_learn():
    rng = np.random.default_rng(3)
    decision = rng.standard_normal((50, 6))
    second = decision <= 0
    expected = _ovr_decision_function(second, -decision, 4)
    np.testing.assert_allclose(vote(decision, 4), expected, atol=1e-12)
    found = classify(decision, np.full((50, 6), np.nan), 4)
    np.testing.assert_array_equal(found.predicted, expected.argmax(axis=1))
    assert np.isnan(found.proba).all()
