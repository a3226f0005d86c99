"""X, runs and regions that a test cannot use: one sentence, whichever function is given them."""

import numpy as np
import pytest
from scipy import sparse

from mvpa_gamp.decoding import (
    cross_decode,
    decode_regions,
    fit_confounds,
    learning_curve,
    make_crosses,
    permutation_test,
)
from mvpa_gamp.methods import METHODS

GAMP = METHODS["gamp-bg-lr"]
RUNS, Y = np.repeat(np.arange(3), 8), np.tile(np.repeat([1, -1], 4), 3)
X = np.random.default_rng(0).standard_normal((24, 5))
SHOWN = np.where(np.arange(24) % 2, np.where(Y > 0, "face", "house"), np.where(Y > 0, "cat", "chair"))
CALLS = {
    "permutation_test": lambda X, runs: permutation_test(GAMP, X, Y, runs, n=2),
    "learning_curve": lambda X, runs: learning_curve(GAMP, X, Y, runs, n_splits=1),
    "decode_regions": lambda X, runs: decode_regions(GAMP, X, Y, runs, [[0, 1]]),
    "cross_decode": lambda X, runs: cross_decode(
        GAMP, X, make_crosses(SHOWN, ["face:house>cat:chair"]), runs
    ),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(
    ("X", "runs", "words"),
    [
        ("features.csv", RUNS, "X must be a matrix with one row per sample"),
        ([[1.0], [2.0, 3.0]], RUNS, "rows of different length"),
        (np.where(X > 2, np.nan, X), RUNS, "X must be finite"),
        (X, RUNS[:-1], "the run of each of the 24 rows of X"),
        (X, np.column_stack([RUNS, RUNS]), "the run of each of the 24 rows of X"),
        (X, np.array([run or None for run in RUNS], dtype=object), r"runs has missing labels \(None\)"),
    ],
)  # fmt: skip
def test_rows_that_cannot_be_used(name, X, runs, words):
    with pytest.raises(ValueError, match=words):
        CALLS[name](X, runs)


@pytest.mark.parametrize("name", ["decode_regions", "cross_decode"])
def test_a_sparse_x_is_refused_where_it_cannot_be_used(name):
    with pytest.raises(ValueError, match=r"dense matrix here, got a sparse one. Use X.toarray"):
        CALLS[name](sparse.csr_array(X), RUNS)


@pytest.mark.parametrize(
    ("regions", "words"),
    [
        ([], "at least one region, got none"),
        ([[]], "a list of voxel numbers"),
        (["left"], "a list of voxel numbers"),
        ([[0, 99]], "from 0 to 4, got 0 to 99"),
    ],
)
def test_regions_are_lists_of_columns(regions, words):
    with pytest.raises(ValueError, match=words):
        decode_regions(GAMP, X, Y, RUNS, regions)


def test_a_region_may_be_a_mask():
    masks = [np.arange(5) < 2]
    given = [decode_regions(GAMP, X, Y, RUNS, each).accuracy for each in (masks, [[0, 1]])]
    np.testing.assert_array_equal(*given)


@pytest.mark.parametrize(
    ("covariates", "words"),
    [(np.full((24, 1), 1e200), r"at most 1e\+15"), (np.full((24, 1), "slow"), "must be numbers")],
)
def test_covariates_that_cannot_be_regressed_out(covariates, words):
    with pytest.raises(ValueError, match=words):
        fit_confounds(X, covariates)


def test_covariates_of_true_and_false_features():
    seconds = np.linspace(0, 1, 24)[:, None]
    left = fit_confounds(X > 0, seconds).apply(X > 0, seconds)
    np.testing.assert_allclose((seconds - seconds.mean()).T @ left, 0, atol=1e-12)
