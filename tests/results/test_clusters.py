import nibabel
import numpy as np
import pytest

from mvpa_gamp.imaging.spaces import VoxelSpace
from mvpa_gamp.results.cells import consistency, overlap_rows
from mvpa_gamp.results.regions import cluster_rows

AFFINE = np.array([[-3.0, 0, 0, 10], [0, 4, 0.5, -20], [0, 0, 5, 7], [0, 0, 0, 1]])


def space(mask, affine):
    return VoxelSpace(nibabel.Nifti1Image(mask.astype(np.uint8), affine))


def test_clusters_have_the_coordinates_of_the_affine():
    mask = np.zeros((5, 6, 4), dtype=bool)
    mask[1:4, 1:5, 1:3] = True
    weight_image = np.zeros(mask.shape)
    weight_image[1, 1, 1] = 0.5
    weight_image[2, 2, 2] = -2.0  # touches (1, 1, 1) at a corner
    weight_image[3, 4, 1] = 1.0
    weight = weight_image[mask]
    frequency = np.linspace(0, 1, mask.sum())
    rows = cluster_rows(weight != 0, weight, frequency, space(mask, AFFINE))
    assert [row["voxels"] for row in rows] == [2, 1]
    assert (rows[0]["peak_i"], rows[0]["peak_j"], rows[0]["peak_k"]) == (2, 2, 2)
    peak = AFFINE @ [2, 2, 2, 1]
    assert [rows[0][f"peak_{axis}_mm"] for axis in "xyz"] == pytest.approx(peak[:3])
    centre = AFFINE @ [1.5, 1.5, 1.5, 1]
    assert [rows[0][f"centre_{axis}_mm"] for axis in "xyz"] == pytest.approx(centre[:3])
    assert rows[0]["peak_weight"] == -2.0
    assert rows[0]["volume_mm3"] == pytest.approx(2 * 60)


def test_no_selected_voxel_no_cluster():
    mask = np.ones((2, 2, 1), dtype=bool)
    assert cluster_rows(np.zeros(4, dtype=bool), np.zeros(4), np.zeros(4), space(mask, np.eye(4))) == []


def test_consistency_of_equal_and_of_empty_selections():
    equal = np.zeros((20, 4), dtype=bool)
    equal[3:6] = True
    said = consistency(equal)
    assert said["consistency_percent"] == 100.0
    assert said["voxels"] == 3.0
    assert said["sparsity_percent"] == pytest.approx(15.0)
    assert said["voxels_in_every_fold"] == said["voxels_in_any_fold"] == 3
    assert said["nogueira"] == pytest.approx(1.0)
    empty = consistency(np.zeros((20, 4), dtype=bool))
    assert empty["voxels"] == 0
    assert np.isnan(empty["nogueira"])


def test_overlap_rows_are_named_by_the_run_held_out():
    support = np.eye(4, 3, dtype=bool)
    columns, rows = overlap_rows(support, np.array([2, 5, 7]))
    assert columns == ["held_out_run", "run_2", "run_5", "run_7"]
    assert [row["run_5"] for row in rows] == [0.0, 1.0, 0.0]
