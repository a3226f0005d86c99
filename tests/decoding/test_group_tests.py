"""Tests over participants: exact values, uniform p-values without an effect, and tests that must fail."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from mvpa_gamp.decoding.exchange import permuted_labels
from mvpa_gamp.decoding.group import (
    bounded,
    flip_map,
    holm_of_known,
    mean_test,
    runs_above_by_chance,
    smallest_flip_p,
)
from mvpa_gamp.decoding.null import null_statistics
from mvpa_gamp.decoding.scores import mean_balanced_accuracy
from mvpa_gamp.methods import METHODS
from mvpa_gamp.results.group_tables import Score, difference_rows, group_rows

pytestmark = pytest.mark.whole


def test_the_mean_test_against_scipy_and_all_sign_patterns():
    values = np.random.default_rng(0).normal(0.1, 0.3, 7)
    found = mean_test(values)
    t = stats.ttest_1samp(values, 0, alternative="greater")
    assert (found.t, found.t_p) == pytest.approx((t.statistic, t.pvalue))
    assert (found.low, found.high) == pytest.approx(stats.ttest_1samp(values, 0).confidence_interval(0.95))
    sums = [np.dot(signs, values) for signs in itertools.product((-1, 1), repeat=7)]
    assert found.flip_p == pytest.approx(np.mean(np.array(sums) >= values.sum() - 1e-12))
    both = mean_test(values, two_sided=True)
    assert both.flip_p == pytest.approx(np.mean(np.abs(sums) >= abs(values.sum()) - 1e-12))
    assert both.t_p == pytest.approx(2 * min(t.pvalue, 1 - t.pvalue))


def test_the_smallest_p_is_reached_and_one_participant_has_none():
    assert mean_test([0.1, 0.2, 0.3]).flip_p == smallest_flip_p(3, two_sided=False) == 1 / 8
    assert mean_test([0.1, 0.2, 0.3], two_sided=True).flip_p == smallest_flip_p(3, two_sided=True) == 1 / 4
    alone = mean_test([0.2])
    assert alone.mean == 0.2 and math.isnan(alone.flip_p) and math.isnan(alone.low)
    with pytest.raises(ValueError, match="finite values of at least one participant"):
        mean_test([0.1, math.nan])


def test_random_sign_patterns_agree_with_all_of_them(monkeypatch):
    values = np.random.default_rng(1).normal(0.15, 0.4, 14)
    exact = mean_test(values).flip_p
    monkeypatch.setattr("mvpa_gamp.decoding.group.EXACT", 13)
    drawn = mean_test(values)
    assert drawn.flip_p == pytest.approx(exact, abs=4 * math.sqrt(exact / 10_000))
    assert drawn.smallest_p == 1 / 10_000


def test_the_correction_leaves_out_tests_that_were_not_made():
    p = [0.011, 0.2, 0.02, math.nan, 0.04]
    corrected = holm_of_known(p)
    assert corrected[:3] == pytest.approx([0.044, 0.2, 0.06])
    assert math.isnan(corrected[3]) and corrected[4] == pytest.approx(0.08)
    assert holm_of_known([]) == []


def null_scores(rng, n_sets, n_people=10, n_runs=6, share=0.5, trials=20):
    """Accuracy and balanced accuracy (n_sets, n_people) of guesses that favour the frequent category."""
    positives = round(trials * share)
    right = rng.binomial(positives, share, (n_sets, n_people, n_runs))
    wrong = rng.binomial(trials - positives, 1 - share, (n_sets, n_people, n_runs))
    balanced = (right / positives + wrong / (trials - positives)) / 2
    return ((right + wrong) / trials).mean(axis=2), balanced.mean(axis=2)


def p_values(values, chance=0.5):
    found = [mean_test(row - chance) for row in values]
    return np.array([each.flip_p for each in found]), np.array([each.t_p for each in found])


def test_p_values_are_uniform_and_a_wrong_chance_is_not():
    """300 null groups with categories of 3 : 1. Ties of a discrete score only make p-values larger."""
    accuracy, balanced = null_scores(np.random.default_rng(2), 300, share=0.75)
    for p in p_values(balanced):
        assert stats.kstest(p, "uniform").pvalue > 0.01
        assert np.mean(p <= 0.05) < 0.05 + 3 * (0.05 * 0.95 / 300) ** 0.5
    for p in p_values(accuracy):  # plain accuracy against 1/2
        assert np.mean(p <= 0.05) > 0.9


def test_equal_means_are_ordered_by_finer_values():
    values, finer = np.array([0.1, 0.1, -0.1, 0.0]), np.array([0.3, 0.1, -0.1, 0.05])
    sums = np.array([np.dot(signs, values) for signs in itertools.product((-1, 1), repeat=4)])
    areas = np.array([np.dot(signs, finer) for signs in itertools.product((-1, 1), repeat=4)])
    ties = np.abs(sums - values.sum()) < 1e-9
    as_good = (sums > values.sum() + 1e-9) | (ties & (areas >= finer.sum() - 1e-9))
    fine = mean_test(values, finer=finer).flip_p
    assert fine == pytest.approx(as_good.mean()) and fine < mean_test(values).flip_p
    assert mean_test(values).flip_p == pytest.approx(np.mean(sums >= values.sum() - 1e-9))
    lost = mean_test(values, finer=[0.3, math.nan, -0.1, 0.05])  # all participants have one, or none counts
    assert lost.flip_p == mean_test(values).flip_p
    turned = [mean_test(sign * values, two_sided=True, finer=sign * finer).flip_p for sign in (-1, 1)]
    assert turned[0] == turned[1] < mean_test(values, two_sided=True).flip_p


def decoded_noise(n_backgrounds, per_background, score, seed):
    """Scores and areas of participants without information: label vectors drawn on some noise each."""
    found = []
    for k in range(n_backgrounds):
        rng = np.random.default_rng([seed, k])
        codes, runs = np.repeat(np.tile([0, 1, 0, 1], 4), 2), np.repeat(np.arange(4), 8)
        blocks = np.repeat(np.arange(16), 2)
        X = rng.standard_normal((32, 10)) + rng.standard_normal((16, 10))[blocks]
        labels = permuted_labels(codes, runs, per_background, seed=k, blocks=blocks)
        found.append(null_statistics(METHODS["gamp-bg-lr"], X, labels, runs, score=score)[:2])
    return np.array(found)  # (backgrounds, 2, vectors)


@pytest.mark.slow
def test_areas_make_sign_flip_p_values_of_decoded_noise_uniform():
    """Groups of six whose members are decoded by GAMP: ties made p-values larger, areas order them."""
    found = decoded_noise(60, 10, mean_balanced_accuracy, 8)
    groups = found.reshape(10, 6, 2, 10).transpose(0, 3, 2, 1).reshape(100, 2, 6)
    rng = np.random.default_rng(9)
    fine = [mean_test(v - 0.5, finer=a - 0.5).flip_p - rng.random() / 2**6 for v, a in groups]
    coarse = [mean_test(v - 0.5).flip_p - rng.random() / 2**6 for v, _ in groups]
    assert stats.kstest(fine, "uniform").pvalue > 0.01 and np.mean(np.array(fine) <= 0.05) < 0.12
    assert np.mean(coarse) > np.mean(fine) + 0.02
    wrong = [mean_test(v - 0.4).flip_p for v, _ in groups]  # a wrong chance is seen by the same check
    assert stats.kstest(wrong, "uniform").pvalue < 1e-4


@pytest.mark.parametrize("n_classes", [3, 8])
def test_several_classes_are_tested_against_their_own_chance(n_classes):
    """300 null groups, 8 participants of 72 volumes; against one half nobody would be above chance."""
    rng = np.random.default_rng(9)
    values = rng.binomial(72, 1 / n_classes, (300, 8)) / 72
    people = [
        [Score(f"{k}", "all", "c", "m", v, 1 / n_classes, (v,), level=1 / n_classes, runs_count=False)
         for k, v in enumerate(row)]
        for row in values
    ]  # fmt: skip
    rows = [group_rows(each, 0.05)[0] for each in people]
    for name in ("t_p_value", "signflip_p_value"):
        p = np.array([row[name] for row in rows])
        assert np.mean(p <= 0.05) < 0.05 + 3 * (0.05 * 0.95 / 300) ** 0.5 and np.mean(p <= 0.2) > 0.1
    assert rows[0]["chance_percent"] == pytest.approx(100 / n_classes)


def test_pooling_volumes_of_participants_is_not_a_test_of_the_population():
    """Participants vary around chance: a binomial test of all their volumes together rejects too often."""
    rng = np.random.default_rng(3)
    own = 0.5 + rng.normal(0, 0.05, (300, 10))
    right = rng.binomial(400, own)
    p, _ = p_values(right / 400)
    pooled = stats.binom.sf(right.sum(axis=1) - 1, 4000, 0.5)
    assert np.mean(p <= 0.05) < 0.05 + 3 * (0.05 * 0.95 / 300) ** 0.5
    assert np.mean(pooled <= 0.05) > 0.15


def test_the_family_wise_map_finds_what_is_there_and_rarely_more():
    rng = np.random.default_rng(4)
    wrong = [flip_map(rng.normal(size=(7, 200))).p.min() <= 0.05 for _ in range(200)]
    assert np.mean(wrong) < 0.05 + 3 * (0.05 * 0.95 / 200) ** 0.5
    uncorrected = [
        2 * stats.t.sf(np.abs(flip_map(rng.normal(size=(7, 200))).t).max(), 6) <= 0.05 for _ in range(20)
    ]
    assert np.mean(uncorrected) > 0.9  # without the correction there is nearly always a voxel
    maps = rng.normal(size=(7, 200))
    maps[:, :5] += 8
    found = flip_map(maps)
    assert (found.p[:5] == found.smallest_p).all() and found.smallest_p == 2 / 2**7 and found.n_patterns == 64
    np.testing.assert_allclose(found.t, stats.ttest_1samp(maps, 0).statistic)


def test_a_map_of_zeros_is_no_finding():
    maps = np.zeros((6, 4))
    maps[:, 0] = 1 + np.arange(6) / 10
    found = flip_map(maps)
    assert found.t[1:].tolist() == [0, 0, 0] and (found.p[1:] == 1).all() and found.p[0] == 1 / 32


def test_runs_above_chance_against_a_simulation():
    """Sums of rows of a symmetric Gaussian matrix; few dimensions have a lighter tail."""
    rng = np.random.default_rng(5)
    for runs in (6, 10):
        d = rng.normal(size=(20_000, runs, runs))
        g = np.triu(d, 1)
        above = ((g + g.transpose(0, 2, 1)).sum(axis=2) > 0).sum(axis=1)
        tail = runs_above_by_chance(runs)
        for k in range(runs + 1):
            assert np.mean(above >= k) == pytest.approx(tail[k], abs=4 * (0.25 / 20_000) ** 0.5)
        d = rng.normal(size=(20_000, runs, 3))
        g = d @ d.transpose(0, 2, 1) * (1 - np.eye(runs))
        few = (g.sum(axis=2) > 0).sum(axis=1)
        assert np.mean(few >= runs) < tail[runs]
    assert runs_above_by_chance(2).tolist() == [1.0, 0.5, 0.5]


def score(subject, contrast, method, value, runs=8):
    return Score(subject, contrast, contrast, method, value, 0.5, (value,) * runs)


def test_rows_of_the_group_and_their_families():
    rng = np.random.default_rng(6)
    people, contrasts, methods = (
        [f"{k:02d}" for k in range(7)],
        ["aMinusB", "aMinusC", "bMinusC"],
        ["m1", "m2"],
    )
    level = {("aMinusB", "m1"): 0.8, ("aMinusB", "m2"): 0.7}
    scores = [
        score(s, c, m, level.get((c, m), 0.55) + rng.normal(0, 0.03))
        for s in people
        for c in contrasts
        for m in methods
    ]
    rows = group_rows(scores, 0.05)
    first = next(row for row in rows if (row["contrast"], row["method"]) == ("aMinusB", "m1"))
    assert first["signflip_p_value"] == first["signflip_smallest_p"] == 2**-7
    assert first["signflip_p_holm"] == pytest.approx(3 * 2**-7) and first["comparisons_tested"] == 3
    assert first["balanced_low_percent"] < 80 < first["balanced_high_percent"]
    table = difference_rows(scores)
    kinds = [(row["between"], row["within"], row["tests_in_family"]) for row in table]
    assert kinds == [("methods", c, 3) for c in contrasts] + [("methods", "average", 1)] + [
        ("comparisons", m, 3) for m in methods for _ in range(3)
    ]
    assert table[0]["difference_percent"] == pytest.approx(10, abs=4)
    assert table[0]["signflip_p_value"] == 2 / 2**7 and table[0]["signflip_p_holm"] == pytest.approx(6 / 2**7)


def test_no_interval_leaves_what_accuracies_can_be():
    """Two participants have wide intervals: t has one degree of freedom."""
    rows = group_rows([score("1", "c", "m", 0.9), score("2", "c", "m", 0.99)], 0.05)
    assert rows[0]["balanced_low_percent"] > 0 and rows[0]["balanced_high_percent"] == 100
    rows = group_rows([score("1", "c", "m", 0.5), score("2", "c", "m", 0.99)], 0.05)
    assert (rows[0]["balanced_low_percent"], rows[0]["balanced_high_percent"]) == (0, 100)
    scores = [
        score(s, "c", m, v) for s, m, v in (("1", "a", 1), ("1", "b", 0), ("2", "a", 0.5), ("2", "b", 0.4))
    ]
    (row,) = difference_rows(scores)
    assert (row["low_percent"], row["high_percent"]) == (-100, 100) and math.isnan(bounded(math.nan, 0, 1))


def test_who_lacks_a_cell_has_no_part_in_its_difference():
    scores = [score(s, "c", m, 0.6) for s in ("1", "2", "3") for m in ("m1", "m2") if (s, m) != ("3", "m2")]
    (row,) = difference_rows(scores)
    assert row["participants"] == 2 and row["difference_percent"] == 0
