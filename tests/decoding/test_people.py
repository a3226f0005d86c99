"""Forced choice and its like: by hand, and calibrated on maps without a difference."""

import math

import numpy as np
import pytest
from scipy.stats import binomtest

from mvpa_gamp.decoding.group import people_scores
from mvpa_gamp.decoding.permutation import PermutationTest


def test_by_hand():
    decision, y = [3.0, 2.0, -1.0, -2.0, 0.5, 0.7, 1.0], [1, -1, 1, -1, 1, -1, 1]
    found = people_scores(decision, y, [1, 1, 2, 2, 3, 3, 4])
    assert found.n == 3 and found.choice == pytest.approx(2 / 3)  # whatever the threshold
    assert found.sensitivity == 3 / 4 and found.specificity == 1 / 3
    assert found.auc == pytest.approx(7 / 12) and math.isnan(found.pvalue)
    assert found.low < 2 / 3 < found.high


def test_a_constant_added_to_a_participant_changes_no_choice():
    rng = np.random.default_rng(0)
    decision, y, people = rng.normal(size=40), np.tile([1, -1], 20), np.repeat(np.arange(20), 2)
    moved = decision + np.repeat(rng.normal(0, 9, 20), 2)
    first, second = (people_scores(each, y, people) for each in (decision, moved))
    assert first.choice == second.choice and first.auc != second.auc


def test_without_participants_of_both_sides_there_is_no_choice():
    found = people_scores([1.0, -1.0], [1, -1], [1, 2])
    assert found.n == 0 and math.isnan(found.choice) and found.sensitivity == found.specificity == 1


def choices(products, flips):
    """Whether each person is right (G,) when the others' differences, flipped, are the classifier."""
    own = products - np.diag(np.diag(products))
    return (flips * (own @ flips) > 0).mean()


def nulls(n_sets, people=14):
    """P-values of the forced choice, by permutations and by a binomial test, where maps do not differ."""
    rng = np.random.default_rng(1)
    for _ in range(n_sets):
        shared = rng.standard_normal((3, 40))
        differences = rng.standard_normal((people, 40)) + 2 * rng.standard_normal((people, 3)) @ shared
        products = differences @ differences.T
        observed = choices(products, np.ones(people))
        null = np.array([choices(products, rng.choice([-1.0, 1.0], people)) for _ in range(59)])
        test = PermutationTest("m", observed, null, 2**people, 0, "sample", auc=observed, null_auc=null)
        decision = np.column_stack([np.zeros(people), np.zeros(people)])
        decision[:, 0] = np.where(np.arange(people) < round(observed * people), 1.0, -1.0)
        y, who = np.tile([1, -1], people), np.repeat(np.arange(people), 2)
        found = people_scores(decision.ravel(), y, who, test)
        yield found.pvalue, binomtest(round(observed * people), people, alternative="greater").pvalue, found


def test_permutations_are_calibrated_and_a_binomial_test_is_not():
    found = list(nulls(300))
    by_permutation, by_binomial = np.array([[p, q] for p, q, _ in found]).T
    assert np.mean(by_permutation <= 0.05) <= 0.075 and np.mean(by_permutation <= 0.5) <= 0.56
    assert np.mean(by_binomial <= 0.05) > 0.055  # 0.029 of independent choices: 11 of 14 or more
    covered = [each.low <= 0.5 <= each.high for _, _, each in found]
    assert np.mean(covered) >= 0.91
