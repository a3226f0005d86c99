import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from mvpa_gamp.methods import check_fold_input


def sample(n_rows=6, n_features=3, n_folds=2, seed=0):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n_rows) % 2, 1.0, -1.0)
    train = np.ones((n_rows, n_folds), dtype=bool)
    train[-1] = False
    return rng.standard_normal((n_rows, n_features)), y, train, np.arange(n_rows) // 2


def test_labels_become_a_matrix_with_zeros_outside_training():
    X, y, train, runs = sample()
    data = check_fold_input(X, np.where(train, y[:, None], np.nan), train, runs)
    np.testing.assert_array_equal(data.Y, np.where(train, y[:, None], 0))
    assert data.Y.dtype == np.float64 and data.X is X


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16])
def test_x_keeps_float_precision_and_integers_become_float64(dtype):
    X, y, train, runs = sample()
    data = check_fold_input((10 * X).astype(dtype), y, train, runs)
    assert data.X.dtype == (np.float32 if dtype == np.float32 else np.float64)
    matrix = check_fold_input(sparse.csc_matrix((10 * X).astype(dtype)), y, train, runs).X
    assert isinstance(matrix, sparse.csr_array) and matrix.dtype == data.X.dtype


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": np.zeros(3)}, "one row per sample and one column per feature, got shape (3,)"),
        ({"X": np.zeros((6, 0))}, "got shape (6, 0). Pass samples x features"),
        ({"X": np.full((6, 3), "a")}, "X must hold real numbers, got type <U1"),
        ({"X": np.full((6, 3), np.inf)}, "X must be finite, got 18 NaN or infinite values. Drop or repair"),
        ({"X": sparse.csr_array(np.diag([np.nan] * 6))}, "X must be finite, got 6 NaN"),
        ({"train": np.ones(6, dtype=bool)}, "one column per fold, got shape (6,). Use leave_one_run_out"),
        ({"train": np.ones((6, 0), dtype=bool)}, "got shape (6, 0)"),
        (
            {"train": np.ones((6, 2))},
            "train must be boolean, True where a row is used for training, got type",
        ),
        ({"train": np.zeros((6, 2), dtype=bool)}, "fold 0 has no row labelled +1. Leave that fold out"),
        ({"y": np.ones(5)}, "y must have shape (6,) or (6, 2), like train, got (5,)"),
        ({"y": np.ones((6, 3))}, "y must have shape (6,) or (6, 2), like train, got (6, 3)"),
        ({"y": np.array(["a"] * 6)}, "y must hold the numbers -1 and +1, got type <U1. Make it"),
        ({"y": np.arange(6)}, "y must be -1 or +1 on training rows, got 0 in row 0 (fold 0)"),
        ({"y": np.full(6, np.nan)}, "got nan in row 0 (fold 0)"),
        ({"runs": np.zeros((6, 1))}, "runs must name the run of each of the 6 rows of X, got shape (6, 1)"),
        ({"runs": np.full(6, np.nan)}, "runs must name a run for every row, got NaN"),
        ({"runs": np.array([None, 1, 1, 2, 2, 2])}, "runs has missing labels (None) in 1 of 6 samples"),
    ],
)
def test_errors_say_what_was_expected_what_came_and_what_to_do(change, message):
    X, y, train, runs = sample()
    with pytest.raises(ValueError, match=re.escape(message)):
        check_fold_input(**{"X": X, "y": y, "train": train, "runs": runs, **change})


@settings(max_examples=60, deadline=None)
@given(
    n_rows=st.integers(2, 12),
    n_folds=st.integers(1, 4),
    seed=st.integers(0, 999),
    junk=st.sampled_from([np.nan, np.inf, -np.inf, 0.0, 7.5, -1.0]),
)
def test_junk_outside_training_never_shows(n_rows, n_folds, seed, junk):
    rng = np.random.default_rng(seed)
    train = rng.random((n_rows, n_folds)) < 0.7
    train[:2] = True
    y = np.where(rng.random((n_rows, n_folds)) < 0.5, 1.0, -1.0)
    y[0], y[1] = 1.0, -1.0
    data = check_fold_input(np.eye(n_rows), np.where(train, y, junk), train, np.zeros(n_rows))
    np.testing.assert_array_equal(data.Y, np.where(train, y, 0.0))
