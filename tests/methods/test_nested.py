import numpy as np
import pytest

from mvpa_gamp.methods.nested import choose, nested_plan


def leave_out(y, runs, *held_out):
    return np.where(np.isin(runs, held_out), 0.0, y)


def balanced(n_runs):
    return np.tile([1.0, -1.0], 2 * n_runs), np.repeat(np.arange(n_runs), 4)


def test_twelve_folds_and_a_refit_share_79_fits():
    y, runs = balanced(12)
    Y = np.column_stack([leave_out(y, runs, run) for run in range(12)] + [y])
    plan = nested_plan(Y, runs)
    assert plan.labels.shape == (66 + 12 + 1, len(y))
    assert [len(folds) for folds in plan.inner] == [11] * 12 + [12]
    assert {fold.fit for fold in plan.inner[12]} == set(plan.outer[:12])


def test_every_inner_fold_trains_on_the_other_runs_only():
    y, runs = balanced(4)
    Y = np.column_stack([leave_out(y, runs, 1), leave_out(-y, runs, 2)])
    plan = nested_plan(Y, runs)
    for b, outer_run in ((0, 1), (1, 2)):
        np.testing.assert_array_equal(plan.labels[plan.outer[b]], Y[:, b])
        inner_runs = [run for run in range(4) if run != outer_run]
        for run, fold in zip(inner_runs, plan.inner[b], strict=True):
            np.testing.assert_array_equal(fold.rows, runs == run)
            np.testing.assert_array_equal(plan.labels[fold.fit], np.where(runs == run, 0, Y[:, b]))


def test_columns_with_other_labels_share_nothing():
    y, runs = balanced(3)
    assert len(nested_plan(np.column_stack([y, -y]), runs).labels) == 2 * 4
    assert len(nested_plan(np.column_stack([y, y]), runs).labels) == 4


def test_inner_folds_that_leave_one_class_are_left_out():
    y = np.array([1, 1, 1, -1, 1, -1, 1.0])
    runs = np.array([0, 0, 1, 1, 2, 2, 2])
    assert len(nested_plan(y[:, None], runs).inner[0]) == 3
    y[5] = 1  # now run 1 holds the only negative row
    assert len(nested_plan(y[:, None], runs).inner[0]) == 2


def test_too_few_runs_are_explained():
    y, runs = balanced(2)
    Y = np.column_stack([y, leave_out(y, runs, 0)])
    with pytest.raises(
        ValueError, match=r"at least two training runs.*fold 1 has 0.*Give at least three runs"
    ):
        nested_plan(Y, runs)


def test_the_least_mean_error_wins_and_ties_go_to_the_sparser():
    y, runs = balanced(3)
    plan = nested_plan(y[:, None], runs)
    scores = np.full((4, len(plan.labels), len(y)), np.nan)
    wrong = [2, 1, 1, 3]  # rows of run 0 that each candidate gets wrong
    for fold in plan.inner[0]:
        scores[:, fold.fit, fold.rows] = y[fold.rows]
    first = plan.inner[0][0]
    for g, n in enumerate(wrong):
        scores[g, first.fit, np.flatnonzero(first.rows)[:n]] *= -1
    choice = choose(plan, scores)
    assert choice.candidate.tolist() == [1]
    assert choice.error[0] == pytest.approx(1 / 4 / 3)
