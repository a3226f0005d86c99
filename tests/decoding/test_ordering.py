"""Equal scores are ordered by the area under the ROC curve: by hand, against scikit-learn, and exact."""

from itertools import combinations, product

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from mvpa_gamp.decoding import PermutationTest, RegionTest, cross_decode, make_crosses, permutation_test
from mvpa_gamp.decoding.cross import cross_null
from mvpa_gamp.decoding.null import null_statistics
from mvpa_gamp.decoding.permutation import places, share_as_good
from mvpa_gamp.decoding.scores import fold_aucs, pairwise_aucs
from mvpa_gamp.methods import METHODS

GAMP = METHODS["gamp-bg-lr"]


def record(score, null, auc=np.nan, null_auc=None):
    areas = None if null_auc is None else np.array(null_auc)
    return PermutationTest("any", score, np.array(null), 10**6, 0, "block", auc=auc, null_auc=areas)


def test_a_p_value_by_hand():
    null = [0.5, 0.7, 0.7, 0.7, 0.8]
    assert record(0.7, null).pvalue == 5 / 6  # without areas every tie counts against the data
    assert record(0.7, null, 0.75, [0.9, 0.6, 0.75, 0.8, 0.1]).pvalue == 4 / 6
    assert record(0.7, null, 0.85, [0.9, 0.6, 0.75, 0.8, 0.1]).pvalue == 2 / 6
    assert record(0.7 + 1e-12, null, 0.7, [0.9, 0.6, 0.7 + 1e-12, 0.7 - 1e-12, 0.1]).pvalue == 4 / 6


def test_an_area_that_is_not_known_counts_against_the_data():
    null = [0.5, 0.7, 0.7, 0.8]
    assert record(0.7, null, 0.9, [0.9, 0.1, np.nan, 0.1]).pvalue == 3 / 5
    assert record(0.7, null, np.nan, [0.9, 0.1, np.nan, 0.1]).pvalue == 4 / 5


def test_the_order_is_an_exact_test_and_finer_than_scores():
    """Each of 200 label vectors in turn as the observed one: p is at most a in a share a of them."""
    rng = np.random.default_rng(0)
    score, area = rng.integers(0, 8, 200) / 8, rng.integers(0, 60, 200) / 60

    def p_values(finer):
        orders = (np.r_[k, np.delete(np.arange(200), k)] for k in range(200))
        return np.array([share_as_good(places(score[order], finer[order])) for order in orders])

    fine, coarse = p_values(area), p_values(np.zeros(200))
    for p in (fine, coarse):
        assert all(np.mean(p <= level) <= level for level in np.unique(p))
    assert (fine <= coarse).all() and np.unique(fine).size > 10 * np.unique(coarse).size


def test_areas_are_those_of_scikit_learn():
    rng = np.random.default_rng(1)
    fold, codes = np.repeat(np.arange(4), 12), rng.integers(0, 3, (48, 3))
    codes[fold == 0] = 0  # a fold without a pair
    decision = rng.standard_normal((48, 3, 3)).round(1)  # with ties
    for k, found in enumerate(pairwise_aucs(codes, decision, fold, 3)):
        by_hand = []
        for number, (p, pair) in product(range(4), enumerate(combinations(range(3), 2))):
            mine = (fold == number) & np.isin(codes[:, k], pair)
            if np.unique(codes[mine, k]).size == 2:
                by_hand.append(roc_auc_score(codes[mine, k] == pair[0], decision[mine, k, p]))
        assert found == pytest.approx(np.mean(by_hand))
    positive = codes[:, 0] > 0
    each = [roc_auc_score(positive[fold == f], decision[fold == f, 0, 0]) for f in (1, 2, 3)]
    np.testing.assert_allclose(fold_aucs(decision[:, 0, 0], positive, fold), each)
    decision[fold == 2, 1] = np.nan
    assert np.isnan(pairwise_aucs(codes, decision, fold, 3)).tolist() == [False, True, False]


def test_tests_have_the_areas_of_their_decisions(toy_study):
    codes = np.unique(toy_study.conditions, return_inverse=True)[1]
    test = permutation_test(GAMP, toy_study.X, codes, toy_study.runs, 7)
    assert test.auc > 0.8 and test.null_auc.shape == (7,) and abs(test.null_auc.mean() - 0.5) < 0.2
    assert test.pvalue == record(test.score, test.null, test.auc, test.null_auc).pvalue
    alone = null_statistics(GAMP, toy_study.X, codes[:, None], toy_study.runs)
    assert (test.score, test.auc) == pytest.approx((alone.score[0], alone.auc[0]))


def test_a_cross_is_ordered_by_its_own_area():
    rng = np.random.default_rng(2)
    shown, runs = np.tile(np.repeat(["a", "b", "c", "d"], 2), 4), np.repeat(np.arange(4), 8)
    X = rng.standard_normal((32, 10))
    (cross,) = make_crosses(shown, ["a:b>>c:d"])
    (found,) = cross_decode(GAMP, X, [cross], runs)
    null = cross_null(GAMP, X, cross, cross.train.y[:, None], runs)
    assert (null.score[0], null.auc[0]) == pytest.approx((found.accuracy, found.auc))


def test_regions_have_one_order():
    """Two regions as accurate as each other, one with the larger area: also the corrected p-values differ."""
    null = np.array([[0.7, 0.5, 0.4, 0.6], [0.5, 0.7, 0.4, 0.6]])
    areas = np.array([[0.9, 0.8, 0.5, 0.5, 0.5], [0.6, 0.5, 0.85, 0.5, 0.5]])
    test = RegionTest(np.full(2, 0.7), np.zeros(2), np.zeros(2), null, auc=areas)
    assert test.pvalue.tolist() == [1 / 5, 2 / 5] and test.family_wise.tolist() == [1 / 5, 2 / 5]
    coarse = RegionTest(np.full(2, 0.7), np.zeros(2), np.zeros(2), null)
    assert coarse.pvalue.tolist() == [2 / 5, 2 / 5] and coarse.family_wise.tolist() == [3 / 5, 3 / 5]
