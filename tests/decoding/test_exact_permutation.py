"""Few arrangements of the labels: each is used once, and p-values are shares of all of them."""

from itertools import product

import numpy as np
import pytest
from block_noise import MeanDifference, blocks_of_noise

from mvpa_gamp.decoding import decode_regions, permutation_test, permuted_labels, plan_permutations
from mvpa_gamp.decoding.cross import cross_permutation_test
from mvpa_gamp.decoding.designs import Cross
from mvpa_gamp.decoding.exchange import Exchange, find_exchange
from mvpa_gamp.decoding.fit import Scheme
from mvpa_gamp.decoding.tasks import Task
from mvpa_gamp.methods import METHODS

pytestmark = pytest.mark.whole

GAMP = METHODS["gamp-bg-lr"]

DESIGNS = {  # blocks of every run, and how many arrangements there are
    "one block of each class": (([1, -1],) * 5, 32),
    "more blocks of one class": (([1, -1, -1],) * 3, 27),
    "three classes": (([0, 1, 2],) * 2, 36),
}


def six_runs(seed):
    X, y, runs, _ = blocks_of_noise(np.random.default_rng(seed), blocks_per_class=1, rows=3, shared=0.5)
    return X + 0.1 * y[:, None], y, runs


def accuracy_and_area(method, X, y, runs):
    """Means over runs left out, one arrangement at a time."""
    right, area = [], []
    folds = np.unique(runs)
    decisions = method.fit_folds(X, np.tile(y, (folds.size, 1)).T, runs[:, None] != folds, runs).decision
    for run, column in zip(folds, decisions.T, strict=True):
        decision, positive = column[runs == run], y[runs == run] > 0
        right.append(np.mean((decision > 0) == positive))
        area.append(np.mean(decision[positive][:, None] > decision[~positive]))
    return np.mean(right), np.mean(area)


@pytest.mark.parametrize(
    ("method", "seed"),
    [(MeanDifference(), 1), (MeanDifference(), 2), pytest.param(GAMP, 1, marks=pytest.mark.slow)],
    ids=["first", "second", "gamp"],
)
def test_the_p_value_is_the_share_of_all_arrangements(method, seed):
    X, y, runs = six_runs(seed)
    found = [accuracy_and_area(method, X, y * np.array(s)[runs], runs) for s in product([1, -1], repeat=6)]
    (score, area), all_scores, areas = found[0], *np.transpose(found)
    tied = np.abs(all_scores - score) < 1e-9
    as_good = (all_scores > score + 1e-9) | (tied & (areas > area - 1e-9))
    assert tied.sum() > (tied & as_good).sum() >= 2  # the area decides, and swapped classes are equal
    test = permutation_test(method, X, y, runs, 200, scheme=Scheme(seed=seed))
    assert test.null.size == 63 and test.is_exact and test.n_distinct == 64
    assert test.pvalue == as_good.mean() >= test.smallest == 2 / 64


def test_neither_the_seed_nor_a_larger_number_matters():
    X, y, runs = six_runs(0)
    first, *others = (
        permutation_test(MeanDifference(), X, y, runs, n, scheme=Scheme(seed=seed))
        for n, seed in ((63, 0), (63, 1), (64, 2), (1000, 3))
    )
    for other in others:
        np.testing.assert_array_equal(other.null, first.null)
        assert other.pvalue == first.pvalue
    drawn = {
        permutation_test(MeanDifference(), X, y, runs, 62, scheme=Scheme(seed=seed)).pvalue
        for seed in range(4)
    }
    assert len(drawn) > 1  # one arrangement more than asked for: they are drawn


@pytest.mark.parametrize("ahead", [False, True])
def test_the_plan_has_every_arrangement_once_in_chunks_that_stay(ahead):
    _, y, runs = six_runs(0)
    plans = [
        plan_permutations(y, runs, 20, n, seed=n, columns_at_once=60, ahead=ahead) for n in (63, 70, 500)
    ]
    for plan in plans:
        assert plan.is_exact and plan.n == 63
        np.testing.assert_array_equal(plan.labels, plans[0].labels)
        np.testing.assert_array_equal(plan.place, np.arange(64))
        assert plan.chunks == plans[0].chunks and [plan.done(c) for c in plan.chunks][-1] == 63
    np.testing.assert_array_equal(plans[0].labels[:, 0], y)
    assert len(np.unique(plans[0].labels, axis=1).T) == 64
    assert {chunk.stop - chunk.start for chunk in plans[0].chunks[1:-1]} == {10}


def test_more_arrangements_are_drawn_as_ever_and_never_listed(monkeypatch):
    monkeypatch.setattr(Exchange, "every", lambda self: pytest.fail("all arrangements were listed"))
    for blocks_per_class, n in ((1, 62), (2, 200)):  # 64 and 46,656 arrangements
        _, y, runs, blocks = blocks_of_noise(np.random.default_rng(2), blocks_per_class=blocks_per_class)
        plan = plan_permutations(y, runs, 20, n, seed=4, blocks=blocks)
        drawn = permuted_labels(y, runs, n, seed=4, blocks=blocks)
        np.testing.assert_array_equal(plan.labels[:, plan.place], np.column_stack([y, drawn]))
        assert not plan.is_exact and plan.n == n


def each_as_observed(design, n):
    """P-values (n_distinct,) of one X when each arrangement of the labels is taken for the observed one."""
    blocks, n_distinct = DESIGNS[design]
    y, runs = np.repeat(np.concatenate(blocks), 2), np.repeat(np.arange(len(blocks)), 2 * len(blocks[0]))
    units = np.repeat(np.arange(y.size // 2), 2)
    X = np.random.default_rng(8).standard_normal((y.size, 6))
    every = find_exchange(y, runs, blocks=units).every()
    assert every.shape[1] == n_distinct
    return np.array(
        [
            permutation_test(MeanDifference(), X, each, runs, n, scheme=Scheme(blocks=units)).pvalue
            for each in every.T
        ]
    )


@pytest.mark.parametrize("design", DESIGNS)
def test_p_values_are_uniform_on_their_grid(design):
    """No chance is in this check: if labels may be exchanged, p is at most p with probability p."""
    pvalues = each_as_observed(design, 1000)
    assert len(np.unique(pvalues)) > 4
    for p in pvalues:
        assert np.mean(pvalues <= p + 1e-9) == pytest.approx(p)


@pytest.mark.parametrize("design", DESIGNS)
def test_p_values_of_draws_are_not(design):
    """The check above can fail."""
    pvalues = each_as_observed(design, DESIGNS[design][1] - 2)
    assert any(abs(np.mean(pvalues <= p + 1e-9) - p) > 0.01 for p in pvalues)


def test_crosses_and_regions_use_every_arrangement():
    X, y, runs = six_runs(3)
    rows, other = np.arange(y.size), np.arange(y.size, 2 * y.size)
    cross = Cross(Task("face", "house", rows, y), Task("cat", "chair", other, y))
    both, twice = np.concatenate([X, X[::-1]]), np.concatenate([runs, runs])
    found = [
        cross_permutation_test(GAMP, both, cross, twice, 100, scheme=Scheme(seed=seed)) for seed in (0, 1)
    ]
    assert found[0].is_exact and found[0].null.size == 63 and found[0].pvalue == found[1].pvalue
    halves = np.split(np.arange(X.shape[1]), 2)
    regions = [decode_regions(GAMP, X, y, runs, halves, 100, scheme=Scheme(seed=seed)) for seed in (0, 1)]
    assert regions[0].is_exact and regions[0].null.shape == (2, 63)
    np.testing.assert_array_equal(regions[0].pvalue, regions[1].pvalue)
    np.testing.assert_array_equal(regions[0].family_wise, regions[1].family_wise)
