from dataclasses import replace

import numpy as np
import pytest
from block_noise import MeanDifference, blocks_of_noise
from scipy.stats import binomtest, kstest

from mvpa_gamp.decoding import cross_validate, fold_errors
from mvpa_gamp.decoding.exchange import blocks_of_volumes, find_exchange, permuted_labels
from mvpa_gamp.decoding.fit import Scheme
from mvpa_gamp.decoding.null import NullStatistics, null_statistics
from mvpa_gamp.decoding.permutation import (
    PermutationTest,
    holm,
    permutation_test,
    plan_permutations,
)
from mvpa_gamp.methods import METHODS
from mvpa_gamp.stability import jaccard

pytestmark = pytest.mark.whole

GAMP = METHODS["gamp-bg-lr"]


def spread(test, rng):
    """The reported p-value anywhere in its step of 1 / (1 + n): uniform when labels may be exchanged."""
    return test.pvalue - rng.random() / (1 + test.null.size)


def many_tests(method, exchange, n_sets, n=19, rows=2, shared=1.0):
    """P-values of as many noise data sets, as they are and spread over their steps."""
    pvalues, uniform = np.empty(n_sets), np.empty(n_sets)
    for k in range(n_sets):
        rng = np.random.default_rng([3, k])
        X, y, runs, blocks = blocks_of_noise(rng, rows=rows, shared=shared)
        given = blocks if exchange == "block" else None
        test = permutation_test(method, X, y, runs, n, scheme=Scheme(seed=k, exchange=exchange, blocks=given))
        pvalues[k], uniform[k] = test.pvalue, spread(test, rng)
    return pvalues, uniform


# --- labels ---------------------------------------------------------------------------------------------


def test_labels_stay_in_their_run_and_blocks_stay_whole():
    _, y, runs, blocks = blocks_of_noise(np.random.default_rng(0), blocks_per_class=3)
    labels = permuted_labels(y, runs, 50, seed=1, blocks=blocks)
    assert labels.shape == (y.size, 50)
    for run in np.unique(runs):
        assert (labels[runs == run].sum(axis=0) == y[runs == run].sum()).all()
    for block in np.unique(blocks):
        assert (labels[blocks == block] == labels[blocks == block][:1]).all()
    assert len(np.unique(labels, axis=1).T) > 45


def test_blocks_are_found_from_labels_and_runs():
    y = np.array([1, 1, -1, -1, -1, 1, 1, 1, -1, 1])
    runs = np.array([0, 0, 0, 0, 0, 1, 1, 1, 1, 1])
    found = find_exchange(y, runs)
    np.testing.assert_array_equal(found.of_row, [0, 0, 1, 1, 1, 2, 2, 2, 3, 4])
    assert found.n_distinct == 2 * 3
    assert find_exchange(y, runs, "sample").n_distinct == 10 * 5


def test_one_block_of_each_class_is_swapped_or_not():
    y, runs = np.tile([1, 1, -1, -1], 5), np.repeat(np.arange(5), 4)
    labels = permuted_labels(y, runs, 400)
    swapped = (labels * y[:, None])[::4]  # one row per run
    assert (np.repeat(swapped, 4, axis=0) == labels * y[:, None]).all()
    assert len(np.unique(swapped, axis=1).T) == 2**5  # all of them come up
    assert (np.abs(swapped.mean(axis=1)) < 0.2).all()  # each about half of the time


def test_the_same_block_name_in_two_runs_means_two_blocks():
    y, runs = np.tile([1, 1, -1, -1], 2), np.repeat([0, 1], 4)
    found = find_exchange(y, runs, "block", np.tile([0, 0, 1, 1], 2))
    assert found.labels.size == 4 and [at.size for at in found.of_run] == [2, 2]


def test_a_permutation_depends_on_seed_and_number_only():
    _, y, runs, _ = blocks_of_noise(np.random.default_rng(0))
    many = permuted_labels(y, runs, 30, seed=5)
    np.testing.assert_array_equal(many[:, :7], permuted_labels(y, runs, 7, seed=5))
    assert (many != permuted_labels(y, runs, 30, seed=6)).any()


# --- null -----------------------------------------------------------------------------------------------


def test_chunks_and_splits_give_the_same_null():
    X, y, runs, _ = blocks_of_noise(np.random.default_rng(2))
    whole = permutation_test(GAMP, X, y, runs, 8, max_inclusion=True)
    seen = []
    small = permutation_test(
        GAMP, X, y, runs, 8, max_inclusion=True, columns_at_once=13, progress=lambda *at: seen.append(at)
    )
    assert len(seen) > 3 and seen[-1][0] == seen[-1][1]
    np.testing.assert_allclose(small.null, whole.null, atol=1e-12)
    np.testing.assert_allclose(small.max_inclusion, whole.max_inclusion, atol=1e-6)
    labels = permuted_labels(y, runs, 8)
    halves = [null_statistics(GAMP, X, part, runs).score for part in (labels[:, :3], labels[:, 3:])]
    np.testing.assert_allclose(np.concatenate(halves), whole.null, atol=1e-12)


def test_chunks_can_be_planned_computed_elsewhere_and_joined():
    X, y, runs, _ = blocks_of_noise(np.random.default_rng(2))
    plan = plan_permutations(y, runs, X.shape[1], 9, columns_at_once=24)
    backwards = [null_statistics(GAMP, X, plan.labels[:, at], runs) for at in reversed(plan.chunks)]
    joined = plan.joined("gamp-bg-lr", backwards[::-1])
    here = permutation_test(GAMP, X, y, runs, 9, columns_at_once=24)
    np.testing.assert_array_equal(joined.null, here.null)
    assert joined.score == here.score


def test_equal_label_vectors_are_fitted_once():
    X, y, runs, _ = blocks_of_noise(np.random.default_rng(2), n_runs=8, blocks_per_class=1)
    plan = plan_permutations(y, runs, X.shape[1], 250)
    assert 100 < plan.labels.shape[1] < 200  # of 256
    drawn = permuted_labels(y, runs, 250)
    np.testing.assert_array_equal(plan.labels[:, plan.place], np.column_stack([y, drawn]))


@pytest.mark.parametrize("n_runs", [8, 12])  # 256 distinct label vectors, many come again; 4,096
@pytest.mark.parametrize("n", [1, 9, 10, 11, 38, 40])
def test_a_plan_that_looks_ahead_begins_any_longer_one(n_runs, n):
    _, y, runs, _ = blocks_of_noise(np.random.default_rng(2), n_runs=n_runs, blocks_per_class=1)
    few, many = (plan_permutations(y, runs, 20, k, columns_at_once=10 * n_runs, ahead=True) for k in (n, 200))
    assert few.chunk_size == many.chunk_size == 10
    np.testing.assert_array_equal(many.labels[:, : few.labels.shape[1]], few.labels)
    np.testing.assert_array_equal(many.place[: n + 1], few.place)
    assert few.chunks == many.chunks[: len(few.chunks)]
    np.testing.assert_array_equal(few.labels[:, 0], y)  # the observed vector comes first
    assert [few.done(chunk) for chunk in few.chunks][-1] == n == few.place.size - 1
    assert few.chunks[-1].stop <= 1 + 10 * -(-n // 10)  # at most nine permutations ahead
    assert np.unique(many.labels, axis=1).shape == many.labels.shape


def test_permutations_ahead_are_not_in_the_test():
    """Neither their scores nor their failures; and without ``ahead`` nothing more is drawn than asked."""
    _, y, runs, blocks = blocks_of_noise(np.random.default_rng(2))
    how = {"columns_at_once": 60, "blocks": blocks}
    ahead, plain = (plan_permutations(y, runs, 20, 7, ahead=each, **how) for each in (True, False))
    assert ahead.labels.shape[1] == 11 and plain.labels.shape[1] == 8
    (chunk,) = ahead.chunks
    given = NullStatistics(np.arange(11.0), np.full(11, 0.5), np.arange(11.0), np.arange(11))
    test = ahead.joined("any", [given])
    np.testing.assert_array_equal(test.null, np.arange(1, 8))
    assert test.max_inclusion.size == 7 and test.n_failed == sum(range(8)) and ahead.done(chunk) == 7


def test_many_voxels_make_small_chunks():
    """Of a size that divides the usual numbers of permutations."""
    _, y, runs, _ = blocks_of_noise(np.random.default_rng(2), n_runs=12, rows=5)
    sizes = {n: plan_permutations(y, runs, n, 500).chunk_size for n in (577, 31_398, 230_000, 10**6)}
    assert sizes == {577: 50, 31_398: 10, 230_000: 1, 10**6: 1}


@pytest.mark.parametrize("name", [name for name in METHODS if not METHODS[name].uses_connectivity])
def test_the_score_is_the_accuracy_of_cross_validation(name):
    X, y, runs, _ = blocks_of_noise(np.random.default_rng(4), n_runs=4, n_features=8)
    X[:, 0] += y
    test = permutation_test(METHODS[name], X, y, runs, 2)
    assert test.score == pytest.approx(1 - fold_errors(cross_validate(METHODS[name], X, y, runs), y).mean())
    assert test.method == name and test.null.shape == (2,) and test.max_inclusion is None


def test_held_out_labels_are_not_used():
    class Spy:
        name = "spy"

        def fit_folds(self, X, y, train, runs):
            hidden = np.where(train, y, np.nan)
            return GAMP.fit_folds(X, hidden, train, runs)

    X, y, runs, _ = blocks_of_noise(np.random.default_rng(4))
    labels = permuted_labels(y, runs, 3)
    np.testing.assert_array_equal(
        null_statistics(Spy(), X, labels, runs).score, null_statistics(GAMP, X, labels, runs).score
    )


# --- p-values -------------------------------------------------------------------------------------------


def test_p_value_counts_ties_whatever_the_rounding():
    null = np.array([0.5, np.mean([0.6, 0.7, 0.8]), 0.9])
    test = PermutationTest("any", float(np.mean([0.8, 0.7, 0.6])), null, 100, 0, "block")
    assert test.pvalue == pytest.approx(3 / 4)


def test_a_clear_effect_has_the_smallest_p_value_and_its_voxel_survives_correction():
    X, y, runs, blocks = blocks_of_noise(np.random.default_rng(5), n_features=30)
    X[:, 7] += 4 * y
    test = permutation_test(GAMP, X, y, runs, 39, max_inclusion=True, scheme=Scheme(blocks=blocks))
    assert test.pvalue == 1 / 40 and test.score > 0.9 and abs(test.null.mean() - 0.5) < 0.1
    inclusion = cross_validate(GAMP, X, y, runs).folds.inclusion.mean(axis=1)
    family_wise = test.family_wise(inclusion)
    assert family_wise.shape == (30,) and np.argmin(family_wise) == 7 and family_wise[7] <= 0.05
    assert np.median(family_wise) > 0.5
    by_hand = [(1 + np.count_nonzero(test.max_inclusion >= value)) / 40 for value in inclusion]
    np.testing.assert_allclose(family_wise, by_hand)


def test_the_real_slice_is_decoded_beyond_chance(haxby_slice):
    rows = np.isin(haxby_slice.conditions, ("cat", "scissors"))
    y = np.where(haxby_slice.conditions[rows] == "cat", 1, -1)
    test = permutation_test(GAMP, haxby_slice.X[rows], y, haxby_slice.runs[rows], 19)
    assert test.n_distinct == 2**12 and test.caution == ""
    assert test.score > 0.75 and test.pvalue == 1 / 20


def test_p_values_are_uniform_on_noise():
    pvalues, uniform = many_tests(MeanDifference(), "block", 200, rows=6, shared=3.0)
    assert kstest(uniform, "uniform").pvalue > 0.01
    assert binomtest(int((pvalues <= 0.05).sum()), 200, 0.05, "greater").pvalue > 0.01
    assert pvalues.mean() < 0.55


@pytest.mark.slow
def test_p_values_of_gamp_are_uniform_on_noise():
    pvalues, uniform = many_tests(GAMP, "block", 20, n=9)
    assert kstest(uniform, "uniform").pvalue > 0.01
    assert binomtest(int((pvalues <= 0.1).sum()), 20, 0.1, "greater").pvalue > 0.01


def test_exchanging_samples_of_correlated_blocks_is_anti_conservative():
    """The check above can fail: here it does, and the default exchange is the cure."""
    pvalues, uniform = many_tests(MeanDifference(), "sample", 200, rows=6, shared=3.0)
    assert kstest(uniform, "uniform").pvalue < 1e-4
    assert binomtest(int((pvalues <= 0.05).sum()), 200, 0.05, "greater").pvalue < 1e-4


# --- cautions and errors --------------------------------------------------------------------------------


def test_few_distinct_permutations_are_said():
    y, runs = np.tile([1, 1, -1, -1], 4), np.repeat(np.arange(4), 4)
    plan = plan_permutations(y, runs, 10, 20)
    assert plan.n_distinct == 16
    for words in ("Only 16 label vectors", "cannot fall below 0.125", "exchange='sample'", "more runs"):
        assert words in plan.caution
    y, runs = np.tile([1, 1, -1, -1], 6), np.repeat(np.arange(6), 4)
    assert plan_permutations(y, runs, 10, 20).caution == ""
    assert "p-value is too small" in plan_permutations(y, runs, 10, 20, exchange="sample").caution


def test_no_p_value_is_below_what_the_labellings_allow():
    """Random draws meet the observed labelling by luck less often than its share: the p-value then waits."""
    y, runs = np.tile([1, 1, -1, -1], 4), np.repeat(np.arange(4), 4)
    plan = plan_permutations(y, runs, 10, 20)
    assert plan.floor == 0.125
    test = PermutationTest("any", 0.9, np.full(20, 0.5), 16, 0, "block", floor=plan.floor)
    assert test.pvalue == test.smallest == 0.125  # 1/21 otherwise
    assert PermutationTest("any", 0.9, np.full(20, 0.5), 10**6, 0, "block").pvalue == 1 / 21
    many = PermutationTest(
        "any", 0.9, np.full(20, 0.5), 16, 0, "block", max_inclusion=np.full(20, 0.3), floor=0.125
    )
    assert many.family_wise(np.array([0.9, 0.1])).tolist() == [0.125, 1.0]


def test_a_swap_of_both_classes_gives_the_same_accuracy():
    X, y, runs, _ = blocks_of_noise(np.random.default_rng(6), blocks_per_class=1)
    labels = permuted_labels(y, runs, 5)
    np.testing.assert_allclose(
        null_statistics(GAMP, X, labels, runs).score, null_statistics(GAMP, X, -labels, runs).score
    )
    assert find_exchange(y, runs).smallest_pvalue == 2 / 2**6


GOOD = {"y": np.tile([1, 1, -1, -1], 3), "runs": np.repeat([0, 1, 2], 4)}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"y": np.repeat([1, -1, 1], 4)}, "every run contains only one class"),
        ({"y": np.full(12, 0.5)}, r"y must be -1 or \+1.*got 0.5\."),
        ({"y": np.ones((12, 2))}, "one comparison at a time"),
        ({"exchange": "volume"}, "exchange must be 'block' or 'sample'"),
        ({"exchange": "sample", "blocks": np.arange(12)}, "leave blocks out"),
        ({"blocks": np.arange(5)}, "block of each of the 12 rows"),
        ({"blocks": np.zeros(12)}, "must have one label"),
        ({"n": 0}, "at least 1 permutation"),
    ],
)
def test_errors_say_what_to_do(change, words):
    with pytest.raises(ValueError, match=words):
        plan_permutations(**{**GOOD, "n_features": 4, "n": 5, **change})


def test_inclusion_needs_a_posterior():
    X, y, runs, _ = blocks_of_noise(np.random.default_rng(4), n_runs=4, n_features=8)
    with pytest.raises(ValueError, match=r"'cdn' does not have.*gamp-bg-lr"):
        permutation_test(METHODS["cdn"], X, y, runs, 2, max_inclusion=True)
    test = permutation_test(METHODS["cdn"], X, y, runs, 2)
    with pytest.raises(ValueError, match="max_inclusion=True"):
        test.family_wise(np.zeros(8))
    assert replace(test, max_inclusion=np.array([0.2, 0.4])).family_wise([0.3])[0] == pytest.approx(2 / 3)


def test_holm_multiplies_by_the_tests_that_are_left():
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03]), [0.03, 0.06, 0.06])
    np.testing.assert_allclose(holm([0.6, 0.9]), [1.0, 1.0])
    np.testing.assert_allclose(holm([0.2]), [0.2])


def test_blocks_end_where_condition_run_or_series_break():
    conditions = np.array(["a", "a", "a", "a", "b", "b", "b"])
    runs = np.array([0, 0, 0, 0, 0, 0, 1])
    volumes = np.array([3, 4, 9, 10, 11, 12, 13])
    np.testing.assert_array_equal(blocks_of_volumes(conditions, runs, volumes), [0, 0, 1, 1, 2, 2, 3])


def test_consistency_with_permuted_labels_by_hand():
    """Folds share training rows: selections overlap without any effect, far above what chance would have."""
    rng = np.random.default_rng(5)
    runs, y = np.repeat(np.arange(4), 4), np.tile([1, 1, -1, -1], 4)
    X, method = rng.standard_normal((16, 60)), METHODS["vamp-bg"]
    test = permutation_test(method, X, y, runs, 5)
    labels = permuted_labels(y, runs, 5)
    train = runs[:, None] != np.arange(4)
    by_hand = [jaccard(method.fit_folds(X, each, train, runs).support) for each in labels.T]
    np.testing.assert_allclose(test.null_consistency, by_hand)
    assert permutation_test(METHODS["svm"], X, y, runs, 2).null_consistency is None
    apart = plan_permutations(y, runs, 60, 5, columns_at_once=8)
    parts = [null_statistics(method, X, apart.labels[:, chunk], runs) for chunk in apart.chunks]
    np.testing.assert_allclose(apart.joined("vamp-bg", parts).null_consistency, by_hand)
