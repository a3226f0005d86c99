"""Permutations of several classes: what is exchanged, and that information is found and noise is not."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import kstest

from mvpa_gamp.coupling import couple
from mvpa_gamp.decoding import cross_validate, held_out_answers, leave_one_run_out, permutation_test
from mvpa_gamp.decoding.exchange import find_exchange, permuted_labels
from mvpa_gamp.decoding.fit import Scheme
from mvpa_gamp.decoding.null import mean_accuracy, null_statistics
from mvpa_gamp.decoding.permutation import plan_permutations
from mvpa_gamp.methods import METHODS

pytestmark = pytest.mark.whole

CODES = np.tile(np.repeat([0, 1, 2], 4), 3)
RUNS = np.repeat([0, 1, 2], 12)


def test_blocks_stay_whole_and_runs_keep_their_labels():
    assert find_exchange(CODES, RUNS).n_distinct == 6**3
    drawn = permuted_labels(CODES, RUNS, 50, seed=1).T
    for labels in drawn:
        blocks = labels.reshape(9, 4)
        assert (blocks == blocks[:, :1]).all()
        assert (np.sort(blocks[:, 0].reshape(3, 3), axis=1) == [0, 1, 2]).all()
    assert len({tuple(labels) for labels in drawn}) > 30


def test_samples_are_exchanged_within_runs():
    assert find_exchange(CODES, RUNS, "sample").n_distinct == 34650**3  # 12! / (4! 4! 4!)
    drawn = permuted_labels(CODES, RUNS, 5, seed=1, exchange="sample").T
    assert all((np.bincount(labels[run == RUNS]) == 4).all() for labels in drawn for run in range(3))


def test_more_permutations_change_none():
    few, many = (permuted_labels(CODES, RUNS, n, seed=3) for n in (4, 9))
    np.testing.assert_array_equal(few, many[:, :4])


def test_equal_block_names_in_two_runs_are_two_blocks():
    codes, runs = np.array([0, 0, 1, 1, 0, 0, 1, 1]), np.repeat([0, 1], 4)
    found = find_exchange(codes, runs, blocks=np.tile([0, 0, 1, 1], 2))
    assert found.n_distinct == 4 and found.labels.size == 4


def test_renamed_classes_limit_the_p_value():
    assert find_exchange(CODES, RUNS).smallest_pvalue == 6 / 6**3
    uneven = np.where(np.arange(36) < 4, 1, CODES)  # a run with two blocks of one class and none of another
    assert find_exchange(uneven, RUNS).smallest_pvalue == 1 / find_exchange(uneven, RUNS).n_distinct


def test_exchanging_single_samples_of_blocks_is_cautioned():
    assert "p-value is too small" in find_exchange(CODES, RUNS, "sample").caution
    assert find_exchange(CODES, RUNS).caution == ""


class Stubborn:
    """A method whose fits of the observed labels never converge."""

    name = "stubborn"

    def __init__(self, observed):
        self.observed = observed

    def fit_folds(self, X, y, train, runs):
        fits = METHODS["gamp-bg-lr"].fit_folds(X, y, train, runs)
        mine = (np.where(train, y, 0) == np.where(train, self.observed[:, None], 0)).all(axis=0)
        return replace(fits, converged=~mine)


def test_fits_of_the_observed_labels_that_fail_are_counted(toy_study):
    codes = np.unique(toy_study.conditions, return_inverse=True)[1]
    rows = codes < 2
    y = np.where(codes[rows] == 0, 1.0, -1.0)
    runs = toy_study.runs[rows]
    test = permutation_test(Stubborn(y), toy_study.X[rows], y, runs, 3)
    assert test.n_failed == len(np.unique(runs))


def accuracy(codes, said):
    return float(np.mean(couple(said.proba, 3).argmax(axis=1) == codes[said.rows]))


def test_information_is_found_and_noise_is_not(toy_study):
    codes = np.unique(toy_study.conditions, return_inverse=True)[1]
    method = METHODS["gamp-bg-lr"]
    test = permutation_test(method, toy_study.X, codes, toy_study.runs, 30, score=accuracy)
    assert test.score > 0.8 and test.pvalue == pytest.approx(1 / 31)
    assert test.null.shape == (30,) and abs(test.null.mean() - 1 / 3) < 0.12
    assert test.caution == "" and test.exchange == "block"
    noise = np.random.default_rng(8).standard_normal(toy_study.X.shape)
    nothing = permutation_test(method, noise, codes, toy_study.runs, 15)
    assert nothing.pvalue > 0.05


def test_two_classes_are_the_same_as_signs(toy_study):
    codes = np.unique(toy_study.conditions, return_inverse=True)[1]
    rows = codes < 2
    X, codes, runs = toy_study.X[rows], codes[rows], toy_study.runs[rows]
    y = np.where(codes == 0, 1.0, -1.0)
    by_codes, by_signs = (permutation_test(METHODS["gamp-bg-lr"], X, each, runs, 6) for each in (codes, y))
    np.testing.assert_array_equal(by_codes.null, by_signs.null)
    said = held_out_answers([cross_validate(METHODS["gamp-bg-lr"], X, y, runs)])
    assert by_codes.score == pytest.approx(mean_accuracy(codes, said))


def test_several_labellings_are_one_batch(toy_study):
    codes = np.unique(toy_study.conditions, return_inverse=True)[1]
    other = np.roll(codes, 4)
    folds, method = leave_one_run_out(toy_study.runs), METHODS["gamp-bg-lr"]
    both = null_statistics(
        method, toy_study.X, np.column_stack([codes, other]), toy_study.runs, scheme=Scheme(folds=folds)
    )
    for k, labels in enumerate((codes, other)):
        alone = null_statistics(
            method, toy_study.X, labels[:, None], toy_study.runs, scheme=Scheme(folds=folds)
        )
        assert both.score[k] == pytest.approx(alone.score[0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n": 0}, "at least 1 permutation"),
        ({"exchange": "volume"}, "'block' or 'sample', got 'volume'"),
        ({"runs": CODES}, "every run contains only one class"),
    ],
)
def test_bad_input_is_explained(change, message):
    given = {"y": CODES, "runs": RUNS, "n_features": 5, "n": 3} | change
    with pytest.raises(ValueError, match=message):
        plan_permutations(**given)


def noise_pvalue(number, n=9):
    """P-value of three classes without information, spread over its step: uniform under the null."""
    rng = np.random.default_rng([11, number])
    codes = np.repeat(np.concatenate([rng.permutation(3) for _ in range(4)]), 3)
    runs, blocks = np.repeat(np.arange(4), 9), np.repeat(np.arange(12), 3)
    X = rng.standard_normal((36, 8)) + 1.5 * rng.standard_normal((12, 8))[blocks]  # a block's rows are alike

    test = permutation_test(
        METHODS["gamp-bg-lr"], X, codes, runs, n, scheme=Scheme(seed=number, blocks=blocks)
    )
    return test.pvalue - rng.random() / (1 + n)


@pytest.mark.slow
def test_p_values_of_several_classes_are_uniform_on_noise():
    pvalues = [noise_pvalue(number) for number in range(20)]
    assert kstest(pvalues, "uniform").pvalue > 0.01  # 300 sets of 19 permutations: 0.88
