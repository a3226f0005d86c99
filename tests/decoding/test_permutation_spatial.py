"""P-values of the method whose prior follows neighbours; and what it says where neighbours are not given."""

from functools import cache

import numpy as np
import pytest
from scipy.stats import binomtest, kstest
from sklearn.feature_extraction.image import grid_to_graph

from mvpa_gamp.decoding import cross_validate, fold_errors, learning_curve, permutation_test
from mvpa_gamp.decoding.exchange import permuted_labels
from mvpa_gamp.decoding.fit import Scheme
from mvpa_gamp.decoding.null import NullStatistics, null_statistics
from mvpa_gamp.decoding.permutation import plan_permutations
from mvpa_gamp.methods import METHODS

pytestmark = pytest.mark.whole

SPATIAL = METHODS["gamp-sbg-lr"]
SIDE, RUNS, ROWS = 4, 3, 2  # a grid of 16 features; two blocks of either class per run, of two rows each
GRAPH = grid_to_graph(SIDE, SIDE)


def smooth_noise(rng, n_features=SIDE**2):
    """Noise that rows of a block share in part, and neighbours too: (24, N), labels, runs, blocks."""
    order = np.concatenate([rng.permutation([1.0, 1.0, -1.0, -1.0]) for _ in range(RUNS)])
    y, blocks = np.repeat(order, ROWS), np.repeat(np.arange(order.size), ROWS)
    e = rng.standard_normal((y.size, n_features)) + rng.standard_normal((order.size, n_features))[blocks]
    if n_features == SIDE**2:
        e = e + 0.5 * e @ GRAPH.toarray()
    return e, y, np.repeat(np.arange(RUNS), y.size // RUNS), blocks


def circular(rng):
    """The same, but features are chosen with the real labels of all rows: held-out labels leak."""
    X, y, runs, blocks = smooth_noise(rng, 5 * SIDE**2)
    chosen = np.argsort(-np.abs(y @ X))[: SIDE**2]
    return X[:, chosen], y, runs, blocks


def spread(test, rng):
    """The reported p-value anywhere in its step of 1 / (1 + n): uniform when labels may be exchanged."""
    return test.pvalue - rng.random() / (1 + test.null.size)


@cache
def many_tests(make, n_sets, n=9):
    """P-values of as many data sets, as they are and spread over their steps."""
    pvalues, uniform = np.empty(n_sets), np.empty(n_sets)
    for k in range(n_sets):
        rng = np.random.default_rng([11, k])
        X, y, runs, blocks = make(rng)
        test = permutation_test(
            SPATIAL, X, y, runs, n, scheme=Scheme(seed=k, blocks=blocks, connectivity=GRAPH)
        )
        pvalues[k], uniform[k] = test.pvalue, spread(test, rng)
    return pvalues, uniform


def on_one_background(rng, n_sets, n=9):
    """Tests of as many label vectors, drawn independently, on the same noise: one solve for all."""
    X, y, runs, blocks = smooth_noise(rng)
    drawn = permuted_labels(y, runs, n_sets, seed=int(rng.integers(2**31)), blocks=blocks)
    plans = [
        plan_permutations(labels, runs, X.shape[1], n, seed=int(rng.integers(2**31)), blocks=blocks)
        for labels in drawn.T
    ]
    every = null_statistics(
        SPATIAL, X, np.hstack([p.labels for p in plans]), runs, scheme=Scheme(connectivity=GRAPH)
    )
    at = np.cumsum([plan.labels.shape[1] for plan in plans])[:-1]
    each = zip(*(np.split(values, at) for values in (every.score, every.auc, every.n_failed)), strict=True)
    return [
        plan.joined(SPATIAL.name, [NullStatistics(score, auc, None, failed)])
        for plan, (score, auc, failed) in zip(plans, each, strict=True)
    ]


@pytest.mark.slow
def test_p_values_are_uniform_on_noise():
    """150 data sets: 15 backgrounds of noise with ten independent label vectors each."""
    rng = np.random.default_rng(11)
    tests = [test for _ in range(15) for test in on_one_background(rng, 10)]
    pvalues = np.array([test.pvalue for test in tests])
    uniform = np.array([spread(test, rng) for test in tests])
    assert kstest(uniform, "uniform").pvalue > 0.01  # seeds are fixed: passes always or never
    assert binomtest(int((pvalues <= 0.1).sum()), 150, 0.1, "greater").pvalue > 0.01
    assert 0.43 < uniform.mean() < 0.57  # three standard errors, 3 * 0.289 / sqrt(150)


@pytest.mark.slow
def test_a_leak_of_held_out_labels_is_seen_by_the_same_check():
    """The check above can fail: with features chosen by the labels of all rows it does."""
    pvalues, uniform = many_tests(circular, 30)
    assert kstest(uniform, "uniform").pvalue < 1e-4
    assert binomtest(int((pvalues <= 0.1).sum()), 30, 0.1, "greater").pvalue < 1e-4


def effect(seed=0):
    """Four neighbours of the grid carry the labels."""
    X, y, runs, blocks = smooth_noise(np.random.default_rng(seed))
    X[:, [5, 6, 9, 10]] += 3 * y[:, None]
    return X, y, runs, blocks


def test_a_clear_effect_has_the_smallest_p_value():
    X, y, runs, blocks = effect()
    test = permutation_test(
        SPATIAL, X, y, runs, 19, max_inclusion=True, scheme=Scheme(blocks=blocks, connectivity=GRAPH)
    )
    assert test.method == "gamp-sbg-lr" and test.pvalue == 1 / 20 and test.score > 0.9
    fits = cross_validate(SPATIAL, X, y, runs, scheme=Scheme(connectivity=GRAPH))
    assert test.score == pytest.approx(1 - fold_errors(fits, y).mean())
    assert test.family_wise(fits.folds.inclusion.mean(axis=1)).min() == test.family_wise([1.0])[0]


def test_every_label_vector_is_fitted_with_the_neighbours():
    """One by one and all together give the same, and neighbours are not lost on the way to permutations."""
    X, y, runs, blocks = effect(1)
    X = X + np.random.default_rng(2).standard_normal(X.shape)
    test = permutation_test(
        SPATIAL, X, y, runs, 5, max_inclusion=True, scheme=Scheme(blocks=blocks, connectivity=GRAPH)
    )
    several = permutation_test(
        SPATIAL,
        X,
        y,
        runs,
        5,
        max_inclusion=True,
        columns_at_once=3,
        scheme=Scheme(blocks=blocks, connectivity=GRAPH),
    )
    np.testing.assert_allclose(several.null, test.null, atol=1e-12)
    np.testing.assert_allclose(several.max_inclusion, test.max_inclusion, atol=1e-6)  # sums in other order
    alone = METHODS["gamp-bg-lr"]
    plain = permutation_test(
        alone, X, y, runs, 5, max_inclusion=True, scheme=Scheme(blocks=blocks, connectivity=GRAPH)
    )
    assert np.abs(plain.max_inclusion - test.max_inclusion).max() > 1e-3


def test_held_out_labels_are_not_used():
    class Spy:
        name, uses_connectivity = "spy", True

        def fit_folds(self, X, y, train, runs, connectivity):
            return SPATIAL.fit_folds(X, np.where(train, y, np.nan), train, runs, connectivity)

    X, y, runs, _ = smooth_noise(np.random.default_rng(4))
    labels = np.column_stack([y, -y, np.roll(y, 2)])
    spied, plain = (
        null_statistics(each, X, labels, runs, scheme=Scheme(connectivity=GRAPH)).score
        for each in (Spy(), SPATIAL)
    )
    np.testing.assert_array_equal(spied, plain)


@pytest.mark.parametrize("ask", [cross_validate, permutation_test, learning_curve])
def test_without_neighbours_the_methods_own_sentence_is_said(ask):
    X, y, runs, _ = smooth_noise(np.random.default_rng(4))
    sentence = r"gamp-sbg-lr needs to know which features are neighbours, got connectivity=None\. Give"
    with pytest.raises(ValueError, match=sentence):
        ask(SPATIAL, X, y, runs)


def test_a_learning_curve_with_neighbours_is_measured_and_not_extrapolated():
    X, y, runs, _ = effect()
    curve = learning_curve(SPATIAL, X, y, runs, scheme=Scheme(connectivity=GRAPH))
    assert curve.accuracy[-1] > 0.9 and "this prior assumes that neighbours are similar" in curve.refusal
