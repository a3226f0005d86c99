"""From volumes to a matrix, whatever the source: interleaved runs, single volumes, voxels that are kept."""

import nibabel
import numpy as np
import pytest

from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.matrix import ALL, FINITE, Volumes, read_series, volumes_to_matrix
from mvpa_gamp.imaging.processing import Processing, clean_run

RAW = Processing(detrend=False, standardize=None)


@pytest.fixture
def stack(volumes, inside, make_image):
    """The small study as volumes, as a series or as single images."""

    def of(values=volumes, single=False):
        mask = make_image(inside.astype(np.uint8))
        images = (
            [make_image(values[..., k]) for k in range(values.shape[3])] if single else [make_image(values)]
        )
        return Volumes(images), mask

    return of


def test_interleaved_runs_are_cleaned_by_themselves(stack, volumes, inside):
    runs = np.tile(["b", "a", "c"], 20)
    found = volumes_to_matrix(*stack(), Processing(), runs)
    for run in "abc":
        expected = clean_run(volumes[inside].T[runs == run], Processing(), None, None, run)
        np.testing.assert_array_equal(found.X[runs == run], expected.astype(np.float32))
    with pytest.raises(DataError, match="the run of each of 60 volumes, got 59"):
        volumes_to_matrix(*stack(), Processing(), runs[1:])


def test_single_images_are_the_volumes_of_a_series(stack):
    runs = np.repeat([1, 2, 3], 20)
    for steps in (Processing(), RAW, Processing(smoothing_fwhm=6.0)):
        whole, pieces = (volumes_to_matrix(*stack(single=single), steps, runs) for single in (False, True))
        np.testing.assert_array_equal(pieces.X, whole.X)
        np.testing.assert_array_equal(pieces.mean_img.dataobj, whole.mean_img.dataobj)


def test_runs_of_one_volume_need_no_cleaning(stack, volumes, inside):
    """Where every run is a single map, a voxel must vary over the runs."""
    volumes[tuple(np.argwhere(inside)[4])] = 3
    found = volumes_to_matrix(*stack(volumes, single=True), RAW, np.arange(60))
    assert found.notes == (
        f"1 of {inside.sum()} voxels of the mask are constant within a run and were dropped.",
    )
    np.testing.assert_array_equal(found.X, np.delete(volumes[inside].T, 4, axis=1))
    with pytest.raises(DataError, match="run 0: expected at least 3 volumes, got 1"):
        volumes_to_matrix(*stack(), Processing(), np.arange(60))


def test_which_voxels_are_kept_is_asked_for(stack, volumes, inside):
    volumes[(*np.argwhere(inside)[3], 7)] = np.nan
    volumes[tuple(np.argwhere(inside)[5])] = 3
    size = int(inside.sum())
    sizes = [volumes_to_matrix(*stack(volumes), RAW, voxels=kind).X.shape[1] for kind in (FINITE, ALL)]
    assert sizes == [size - 1, size] and volumes_to_matrix(*stack(volumes), RAW).X.shape[1] == size - 2
    assert volumes_to_matrix(*stack(volumes), RAW, voxels=ALL).X[7, 3] == 0  # missing values are 0


def test_images_without_values_are_listed(stack, volumes):
    volumes[..., 10:20] = np.nan
    with pytest.raises(
        DataError, match=r"in memory is NaN or infinite in all .*; and 5 more, so that no voxel"
    ):
        volumes_to_matrix(*stack(volumes, single=True), RAW)
    with pytest.raises(DataError, match=r"volumes 11, 12, 13, 14, 15 and 5 more \(counted from 1\) are NaN"):
        volumes_to_matrix(*stack(volumes), RAW)


def test_a_kernel_wider_than_the_volume_is_refused():
    image = nibabel.Nifti1Image(np.ones((4, 5, 6, 3), dtype=np.float32), np.diag([2, 2, 3, 1]))
    mask = nibabel.Nifti1Image(np.ones((4, 5, 6), dtype=np.uint8), image.affine)
    with pytest.raises(DataError, match="at most the size of the volume, 18 mm, got 19"):
        read_series(Volumes([image]), mask, smoothing_fwhm=19.0)
