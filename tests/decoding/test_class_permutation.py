"""Permutations of several classes: what is exchanged, and that information is found and noise is not."""

import numpy as np
import pytest
from scipy.stats import kstest

from mvpa_gamp.decoding import leave_one_run_out
from mvpa_gamp.decoding.class_permutation import permutation_test_of_classes, permuted_codes
from mvpa_gamp.decoding.multiclass import couple
from mvpa_gamp.methods import METHODS

CODES = np.tile(np.repeat([0, 1, 2], 4), 3)
RUNS = np.repeat([0, 1, 2], 12)


def test_blocks_stay_whole_and_runs_keep_their_labels():
    labelings, n_distinct = permuted_codes(CODES, RUNS, 50, seed=1, unit="block")
    assert n_distinct == 6**3
    for labels in labelings:
        blocks = labels.reshape(9, 4)
        assert (blocks == blocks[:, :1]).all()
        assert (np.sort(blocks[:, 0].reshape(3, 3), axis=1) == [0, 1, 2]).all()
    assert len({tuple(labels) for labels in labelings}) > 30


def test_samples_are_exchanged_within_runs():
    labelings, n_distinct = permuted_codes(CODES, RUNS, 5, seed=1, unit="sample")
    assert n_distinct == 34650**3  # 12! / (4! 4! 4!)
    assert all((np.bincount(labels[run == RUNS]) == 4).all() for labels in labelings for run in range(3))


def test_more_permutations_change_none():
    few, many = (permuted_codes(CODES, RUNS, n, seed=3, unit="block")[0] for n in (4, 9))
    np.testing.assert_array_equal(few, many[:4])


def accuracy(codes, answers):
    return float(np.mean(couple(answers[1], 3).argmax(axis=1) == codes[ROWS]))


def splits_of(runs):
    train = leave_one_run_out(runs).train
    return [(np.flatnonzero(rows), np.flatnonzero(~rows)) for rows in train.T]


ROWS = np.arange(72)  # leave-one-run-out in sorted runs tests rows in their order


def test_information_is_found_and_noise_is_not(toy_study):
    codes = np.unique(toy_study.conditions, return_inverse=True)[1]
    splits = splits_of(toy_study.runs)
    method = METHODS["gamp-bg-lr"]
    test = permutation_test_of_classes(
        method, toy_study.X, codes, toy_study.runs, splits, accuracy, n=30, seed=0
    )
    assert test.score > 0.8 and test.pvalue == pytest.approx(1 / 31)
    assert test.null.shape == (30,) and abs(test.null.mean() - 1 / 3) < 0.12
    assert test.caution == "" and test.unit == "block"
    noise = np.random.default_rng(8).standard_normal(toy_study.X.shape)
    nothing = permutation_test_of_classes(method, noise, codes, toy_study.runs, splits, accuracy, n=15)
    assert nothing.pvalue > 0.05


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n": 0}, "at least 1 permutation"),
        ({"unit": "volume"}, "'block' or 'sample', got 'volume'"),
        ({"groups": CODES}, "every group holds one class"),
    ],
)
def test_bad_input_is_explained(change, message):
    given = {"codes": CODES, "groups": RUNS, "n": 3, "seed": 0, "unit": "block"} | change
    with pytest.raises(ValueError, match=message):
        permuted_codes(**given)


def noise_pvalue(number, n=9):
    """P-value of three classes without information, ties broken at random: uniform under the null."""
    rng = np.random.default_rng([11, number])
    codes = np.repeat(np.concatenate([rng.permutation(3) for _ in range(4)]), 3)
    runs, blocks = np.repeat(np.arange(4), 9), np.repeat(np.arange(12), 3)
    X = rng.standard_normal((36, 8)) + 1.5 * rng.standard_normal((12, 8))[blocks]  # a block's rows are alike

    def right(codes, answers):
        return float(np.mean(couple(answers[1], 3).argmax(axis=1) == codes))

    test = permutation_test_of_classes(
        METHODS["gamp-bg-lr"], X, codes, runs, splits_of(runs), right, n=n, seed=number, blocks=blocks
    )
    ties = np.abs(test.null - test.score) < 1e-9
    above = np.count_nonzero((test.null > test.score) & ~ties)
    return (above + rng.random() * (1 + ties.sum())) / (1 + n)


@pytest.mark.slow
def test_p_values_of_several_classes_are_uniform_on_noise():
    pvalues = [noise_pvalue(number) for number in range(20)]
    assert kstest(pvalues, "uniform").pvalue > 0.01  # 300 sets of 19 permutations: 0.88
