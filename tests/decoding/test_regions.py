"""Sums over regions that are exact, accuracies of regions alone, and p-values corrected for all of them."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import binom

from mvpa_gamp.decoding import (
    RegionTest,
    cross_validate,
    decode_regions,
    exact_sums,
    fold_errors,
    permutation_test,
)
from mvpa_gamp.decoding.fit import Scheme
from mvpa_gamp.decoding.localisation import join_scores, region_null, region_scores
from mvpa_gamp.decoding.permutation import plan_permutations
from mvpa_gamp.imaging.spaces import voxel_connectivity
from mvpa_gamp.methods import METHODS
from mvpa_gamp.methods.fold_fits import FoldFits

pytestmark = pytest.mark.whole


@dataclass(frozen=True)
class ClassMeans:
    """The difference of the class means as weights: the fastest method that keeps the contract."""

    name = "class-means"
    uses_connectivity = False

    def fit_folds(self, X, y, train, runs):
        labels = np.where(train, y, 0.0)
        coef = X.T @ labels
        blank = np.zeros(train.shape[1])
        decision = X @ coef
        return FoldFits(
            coef,
            blank,
            coef != 0,
            ("",) * blank.size,
            blank == 0,
            blank,
            0.0,
            {},
            decision,
            decision * np.nan,
        )


# --- sums


@pytest.mark.parametrize("scale", [1e-30, 1e-3, 1.0, 3e7])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_regions_add_up_to_the_whole_to_the_last_bit(scale, dtype):
    rng = np.random.default_rng(1)
    values = (scale * rng.standard_normal(30_000) * 10.0 ** rng.uniform(-9, 0, 30_000)).astype(dtype)
    regions = rng.integers(-1, 50, values.size)
    *parts, whole = exact_sums(values, regions, 50)
    assert sum(parts) == whole and sum(parts[::-1]) == whole  # in any order
    expected = [values[regions == k].sum(dtype=float) for k in (*range(50), -1)]
    tolerance = 600 * np.abs(values).max() * 2.0**-29  # voxels of a region times half the unit
    np.testing.assert_allclose(parts, expected, atol=tolerance, rtol=0)
    assert sum(expected) != whole or dtype == np.float32  # ordinary sums need not agree


def test_sums_of_nothing():
    assert exact_sums(np.zeros(3), np.array([0, 1, -1]), 2).tolist() == [0, 0, 0, 0]
    assert exact_sums([True, False, True], np.array([0, 1, -1]), 2).tolist() == [1, 0, 1, 2]


# --- accuracies


@pytest.fixture(scope="module")
def study(toy_study):
    rows = toy_study.conditions != "shoe"
    return toy_study.X[rows], np.where(toy_study.conditions[rows] == "cat", 1, -1), toy_study.runs[rows]


PARTS = [np.arange(0, 6), np.arange(6, 10), np.arange(30, 60)]


def test_a_region_is_decoded_as_if_there_were_nothing_else(study):
    X, y, runs = study
    method = METHODS["gamp-bg-lr"]
    found = decode_regions(method, X, y, runs, PARTS)
    for voxels, accuracy, error in zip(PARTS, found.accuracy, found.standard_error, strict=True):
        alone = 1 - fold_errors(cross_validate(method, X[:, voxels], y, runs), y)
        assert accuracy == pytest.approx(alone.mean(), abs=1e-12)
        assert error == pytest.approx(alone.std(ddof=1) / np.sqrt(6), abs=1e-12)
    assert found.accuracy[0] > 0.8 and found.null is None
    with pytest.raises(ValueError, match="need permutations"):
        _ = found.family_wise


def test_permutations_are_those_of_the_permutation_test(study):
    X, y, runs = study
    method = METHODS["gamp-bg-lr"]
    found = decode_regions(method, X, y, runs, PARTS[:2], n=12, scheme=Scheme(seed=4))
    for k in range(2):
        alone = permutation_test(method, X[:, PARTS[k]], y, runs, n=12, scheme=Scheme(seed=4))
        np.testing.assert_allclose(found.null[k], alone.null, atol=1e-12)
        assert found.pvalue[k] == alone.pvalue and found.accuracy[k] == pytest.approx(alone.score)
    assert found.n_distinct == 64


def test_regions_one_by_one_or_together_are_the_same(study):
    X, y, runs = study
    plan = plan_permutations(y, runs, max(map(len, PARTS)), 9, seed=2)
    method = METHODS["gamp-bg-lr"]
    parts = [region_scores(method, X, y, runs, [voxels], Scheme()) for voxels in PARTS]
    nulls = [
        [region_null(method, X, plan.labels[:, chunk], runs, [voxels], Scheme()) for chunk in plan.chunks]
        for voxels in PARTS
    ]
    apart, together = (
        join_scores(parts, plan, nulls),
        decode_regions(method, X, y, runs, PARTS, n=9, scheme=Scheme(seed=2)),
    )
    np.testing.assert_array_equal(apart.null, together.null)
    np.testing.assert_array_equal(apart.family_wise, together.family_wise)


def test_neighbours_are_those_inside_the_region(study):
    """A method that asks for neighbours gets the part of the graph between voxels of the region."""
    import nibabel

    X, y, runs = study
    graph = voxel_connectivity(nibabel.Nifti1Image(np.ones((60, 1, 1), dtype=np.uint8), np.eye(4)))
    method, voxels = METHODS["gamp-sbg-lr"], np.array([0, 1, 2, 5, 6, 20])
    found = decode_regions(method, X, y, runs, [voxels], scheme=Scheme(connectivity=graph))
    alone = cross_validate(
        method, X[:, voxels], y, runs, scheme=Scheme(connectivity=graph[voxels][:, voxels])
    )
    assert found.accuracy[0] == pytest.approx(1 - fold_errors(alone, y).mean())


# --- corrected p-values


def test_family_wise_p_values_are_step_down_maxima():
    null = np.array([[0.5, 0.9, 0.4, 0.6], [0.8, 0.2, 0.5, 0.5], [0.3, 0.3, 0.7, 0.6]])
    test = RegionTest(np.array([0.7, 0.85, 0.5]), np.zeros(3), np.zeros(3), null)
    assert test.pvalue.tolist() == [2 / 5, 1 / 5, 3 / 5]
    # 0.85: maxima of all three 0.8 0.9 0.7 0.6; 0.7: of rows 0 and 2 0.5 0.9 0.7 0.6; 0.5: of row 2.
    assert test.family_wise.tolist() == [3 / 5, 2 / 5, 3 / 5]


def test_without_ties_the_level_is_met_exactly():
    """Correlated normal scores of six regions: 5 % of the sets have a claim, 20 % and more uncorrected."""
    rng = np.random.default_rng(11)
    n_sets = 1500
    corrected = uncorrected = 0
    for _ in range(n_sets):
        scores = rng.standard_normal((6, 100)) + 0.5 * rng.standard_normal(100)
        found = RegionTest(scores[:, 0], np.zeros(6), np.zeros(6), scores[:, 1:])
        corrected += (found.family_wise <= 0.05).any()
        uncorrected += (found.pvalue <= 0.05).any()
    low, high = binom.ppf([0.001, 0.999], n_sets, 0.05)
    assert low <= corrected <= high and uncorrected > 0.2 * n_sets


def null_set(seed, planted=0.0, n_regions=6, n_runs=8, block=3):
    """Blocks of correlated rows; regions share noise; the first region may carry an effect."""
    rng = np.random.default_rng([7, seed])
    runs = np.repeat(np.arange(n_runs), 2 * block)
    blocks = np.repeat(np.arange(2 * n_runs), block)
    y = np.concatenate([np.repeat(rng.permutation([1, -1]), block) for _ in range(n_runs)])
    X = (
        rng.standard_normal((y.size, 5 * n_regions))
        + rng.standard_normal((2 * n_runs, 5 * n_regions))[blocks]
    )
    X += 0.5 * rng.standard_normal((y.size, 2)) @ rng.standard_normal((2, 5 * n_regions))
    X[:, :5] += planted * y[:, None]
    return X, y, runs, np.split(np.arange(5 * n_regions), n_regions)


def claims(planted, n_sets, exchange="block"):
    """Share of sets with a region of no effect at p <= 0.05: corrected, and by the smallest p-value."""
    corrected = uncorrected = 0
    for seed in range(n_sets):
        X, y, runs, regions = null_set(seed, planted)
        found = decode_regions(
            ClassMeans(), X, y, runs, regions, n=39, scheme=Scheme(seed=seed, exchange=exchange)
        )
        empty = slice(1 if planted else 0, None)
        corrected += (found.family_wise[empty] <= 0.05).any()
        uncorrected += (found.pvalue[empty] <= 0.05).any()
    return corrected, uncorrected


@pytest.mark.parametrize("planted", [0.0, 1.5])
def test_one_false_region_is_as_rare_as_promised(planted):
    """Also beside a region with a strong effect; uncorrected p-values of the same sets fail the limit."""
    n_sets = 120
    limit = binom.ppf(0.999, n_sets, 0.05)
    corrected, uncorrected = claims(planted, n_sets)
    assert corrected <= limit < uncorrected
    assert planted or corrected >= 1  # the limit is used
