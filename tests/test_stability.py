from itertools import combinations, permutations

import numpy as np
import pytest

from mvpa_gamp.stability import jaccard, jaccard_chance, jaccard_matrix, kuncheva, nogueira


@pytest.fixture
def support():
    rng = np.random.default_rng(0)
    often = rng.random(40) < 0.25
    return (rng.random((40, 6)) < np.where(often, 0.8, 0.1)[:, None]).astype(bool)


def random_supports(rng, n_features, sizes):
    support = np.zeros((n_features, len(sizes)), dtype=bool)
    for column, size in enumerate(sizes):
        support[rng.choice(n_features, size, replace=False), column] = True
    return support


def test_jaccard_is_the_mean_over_ordered_pairs(support):
    sets = [set(np.flatnonzero(column)) for column in support.T]
    pairs = [len(a & b) / len(a | b) for a, b in permutations(sets, 2)]
    assert jaccard(support) == pytest.approx(np.mean(pairs), abs=1e-14)


def test_jaccard_matrix_is_symmetric_with_ones_on_the_diagonal(support):
    matrix = jaccard_matrix(support)
    assert matrix.shape == (6, 6)
    np.testing.assert_array_equal(matrix, matrix.T)
    np.testing.assert_array_equal(np.diag(matrix), 1.0)


def test_two_empty_supports_agree_and_an_empty_one_shares_nothing_with_others():
    assert jaccard(np.zeros((5, 3), dtype=bool)) == 1.0
    support = np.array([[0, 0, 1], [0, 0, 0]], dtype=bool)
    np.testing.assert_array_equal(jaccard_matrix(support), [[1, 1, 0], [1, 1, 0], [0, 0, 1]])


def test_jaccard_chance_is_exact_for_a_case_counted_by_hand():
    # Sets of sizes 1 and 2 among 3: they meet with probability 2/3, and then the index is 1/2.
    assert jaccard_chance(np.array([[1, 1], [0, 1], [0, 0]], dtype=bool)) == pytest.approx(1 / 3, abs=1e-15)


def test_jaccard_chance_matches_random_supports_of_the_same_sizes():
    rng = np.random.default_rng(1)
    sizes = (3, 10, 10, 17)
    draws = np.array([jaccard(random_supports(rng, 30, sizes)) for _ in range(3000)])
    standard_error = draws.std() / np.sqrt(len(draws))
    assert abs(draws.mean() - jaccard_chance(random_supports(rng, 30, sizes))) < 4 * standard_error


def test_jaccard_chance_of_empty_and_complete_supports():
    assert jaccard_chance(np.zeros((4, 2), dtype=bool)) == 1.0
    assert jaccard_chance(np.ones((4, 2), dtype=bool)) == pytest.approx(1.0, abs=1e-12)


def test_kuncheva_of_equal_sizes_is_its_textbook_formula():
    support = random_supports(np.random.default_rng(2), 20, (5, 5, 5))
    values = [((a & b).sum() - 25 / 20) / (5 - 25 / 20) for a, b in combinations(support.T, 2)]
    assert kuncheva(support) == pytest.approx(np.mean(values), abs=1e-14)


def test_kuncheva_of_unequal_sizes_is_cohens_kappa(support):
    sklearn_metrics = pytest.importorskip("sklearn.metrics")
    values = [sklearn_metrics.cohen_kappa_score(a, b) for a, b in combinations(support.T, 2)]
    assert kuncheva(support) == pytest.approx(np.mean(values), abs=1e-12)


@pytest.mark.parametrize("index", [kuncheva, lambda support: nogueira(support).estimate])
def test_corrected_indices_are_zero_by_chance_and_one_for_equal_supports(index):
    rng = np.random.default_rng(3)
    draws = np.array([index(random_supports(rng, 50, (10, 10, 10, 10))) for _ in range(2000)])
    assert abs(draws.mean()) < 4 * draws.std() / np.sqrt(len(draws))
    assert index(np.repeat(rng.random((50, 1)) < 0.3, 4, axis=1)) == pytest.approx(1.0, abs=1e-12)


def test_nogueira_equals_kuncheva_when_all_sizes_are_equal():
    # A property proved by the authors; with B folds it is exact because both average over pairs.
    support = random_supports(np.random.default_rng(4), 30, (6,) * 5)
    assert nogueira(support).estimate == pytest.approx(kuncheva(support), abs=1e-12)


def test_nogueira_variance_matches_the_spread_over_independent_studies():
    rng = np.random.default_rng(5)
    frequency = np.where(np.arange(200) < 20, 0.7, 0.05)
    records = [nogueira(rng.random((200, 40)) < frequency[:, None]) for _ in range(400)]
    spread = np.var([record.estimate for record in records])
    # 400 draws know a variance to about 7 %; the formula is asymptotic in the 40 folds.
    assert np.mean([record.variance for record in records]) == pytest.approx(spread, rel=0.25)
    truth = nogueira(rng.random((200, 20000)) < frequency[:, None]).estimate
    covered = np.mean([record.low <= truth <= record.high for record in records])
    assert 0.90 < covered < 0.985


def test_nogueira_interval_is_symmetric_and_95_percent(support):
    estimate, variance, low, high = nogueira(support)
    assert high - estimate == pytest.approx(estimate - low)
    assert high - estimate == pytest.approx(1.95996 * np.sqrt(variance), rel=1e-5)


@pytest.mark.parametrize("fill", [False, True])
def test_indices_without_a_defined_value_are_nan(fill):
    support = np.full((4, 3), fill)
    assert np.isnan(kuncheva(support))
    assert np.isnan(nogueira(support)).all()


@pytest.mark.parametrize("index", [jaccard, jaccard_matrix, jaccard_chance, kuncheva, nogueira])
@pytest.mark.parametrize(
    ("support", "message"),
    [
        (np.zeros(5, dtype=bool), r"one column per fold, got shape \(5,\)\. Stack one boolean vector"),
        (np.zeros((0, 3), dtype=bool), r"got shape \(0, 3\)"),
        (np.zeros((5, 1), dtype=bool), "at least two columns, got 1. Fit more than one fold"),
        (np.full((5, 2), 0.3), "must be boolean .* float64 other than 0 and 1. Pass coef != 0"),
        (np.full((5, 2), np.nan), "must be boolean"),
    ],
)
def test_bad_supports_are_explained(index, support, message):
    with pytest.raises(ValueError, match=message):
        index(support)


def test_zeros_and_ones_are_taken_as_booleans(support):
    assert jaccard(support.astype(float)) == jaccard(support)
    assert jaccard(support.astype(int).tolist()) == jaccard(support)


def test_order_of_features_and_folds_does_not_matter(support):
    rng = np.random.default_rng(6)
    shuffled = support[rng.permutation(40)][:, rng.permutation(6)]
    for index in (jaccard, jaccard_chance, kuncheva):
        assert index(shuffled) == pytest.approx(index(support), abs=1e-14)
    np.testing.assert_allclose(nogueira(shuffled), nogueira(support), atol=1e-14)
