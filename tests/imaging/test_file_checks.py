import numpy as np

from mvpa_gamp.imaging.labels import Labels, order_notes


def notes(names, volumes, runs):
    return order_notes(names, volumes, Labels(np.array(["a"] * len(runs)), np.array(runs)))


def test_files_in_order_need_no_word():
    assert notes(["run-2.nii", "run-10.nii"], [2, 2], [2, 2, 10, 10]) == ()
    assert notes(["rest.nii", "1.nii"], [2, 2], [1, 1, 2, 2]) == ()


def test_files_out_of_order_and_runs_across_files_are_mentioned():
    (order,) = notes(["/x/run-10.nii", "/x/run-2.nii"], [2, 2], [2, 2, 10, 10])
    assert "run-10.nii comes before run-2.nii" in order
    (border,) = notes(["a.nii", "b.nii"], [2, 2], [1, 1, 1, 2])
    assert "run 1 continues across the boundary" in border
