import numpy as np
import pytest

from mvpa_gamp.decoding import leave_one_run_out


def test_every_run_is_held_out_once():
    runs = np.array([3, 3, 1, 2, 1])
    folds = leave_one_run_out(runs)
    np.testing.assert_array_equal(folds.held_out, [1, 2, 3])
    assert folds.train.dtype == bool
    for column, run in enumerate(folds.held_out):
        np.testing.assert_array_equal(folds.train[:, column], runs != run)
    np.testing.assert_array_equal((~folds.train).sum(axis=1), 1)


def test_runs_may_have_names():
    assert list(leave_one_run_out(["b", "a", "b"]).held_out) == ["a", "b"]


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ([4, 4, 4], "at least two runs, got 1. Give data of more runs"),
        ([], "at least two runs, got 0"),
        ([[1, 2]], r"one run per row, got shape \(1, 2\)"),
        ([1.0, np.nan], "got NaN. Number the runs"),
    ],
)
def test_bad_runs_are_explained(runs, message):
    with pytest.raises(ValueError, match=message):
        leave_one_run_out(runs)
