"""A mask on another grid: exact where grids agree, resampled with a note, or refused with the reason."""

import nibabel
import numpy as np
import pytest

from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.masks import mask_on_grid
from mvpa_gamp.imaging.samples import load_samples

SHAPE = (10, 12, 8)
AFFINE = np.array([[-3.0, 0.2, 0, 12], [0, 3.5, 0.1, -20], [0, 0, 4.0, 5], [0, 0, 0, 1]])


def image(values, affine=AFFINE):
    return nibabel.Nifti1Image(np.asarray(values, dtype=np.uint8), affine)


@pytest.fixture
def bold():
    return nibabel.Nifti1Image(np.zeros((*SHAPE, 3), dtype=np.float32), AFFINE)


@pytest.fixture
def inside():
    box = np.zeros(SHAPE, dtype=bool)
    box[2:7, 3:9, 2:6] = True
    return box


def moved(offset=0.0, scale=1.0):
    """The grid's affine, moved by some mm and with other voxel sizes."""
    return AFFINE @ np.diag([scale, scale, scale, 1.0]) + np.array([[0, 0, 0, offset], *[[0] * 4] * 3])


def test_a_mask_on_the_same_grid_is_returned_as_it_is(bold, inside):
    mask = image(inside)
    same, voxels, notes = mask_on_grid(mask, bold)
    assert same is mask and notes == ()
    np.testing.assert_array_equal(voxels, inside)


def test_a_finer_mask_gives_back_the_voxels_it_was_made_from(bold, inside):
    """Every voxel split into 27: the nearest of them is its centre, so nothing changes."""
    fine = np.kron(inside, np.ones((3, 3, 3)))
    affine = AFFINE @ np.diag([1 / 3, 1 / 3, 1 / 3, 1.0])
    affine[:3, 3] = AFFINE[:3, 3] - AFFINE[:3, :3] @ np.full(3, 1 / 3)
    found, voxels, (note,) = mask_on_grid(image(fine, affine), bold)
    np.testing.assert_array_equal(voxels, inside)
    assert found.shape == SHAPE
    np.testing.assert_allclose(found.affine, AFFINE)
    assert (
        "30 x 36 x 24 voxels of 1 x 1.17 x 1.33 mm, the volumes 10 x 12 x 8 voxels of 3 x 3.51 x 4 mm" in note
    )
    assert f"{27 * inside.sum():,} voxels became {inside.sum():,}." in note and "same space" in note


def test_a_shift_by_whole_voxels_moves_the_mask_exactly(bold, inside):
    affine = AFFINE.copy()
    affine[:3, 3] += AFFINE[:3, :3] @ [1, 0, 0]
    _, voxels, (note,) = mask_on_grid(image(inside, affine), bold)
    np.testing.assert_array_equal(voxels, np.roll(inside, 1, axis=0))
    assert "the affines differ by up to 3" in note


def test_what_lies_outside_is_told(bold):
    _, voxels, (note,) = mask_on_grid(image(np.ones(SHAPE), moved(offset=-15.0)), bold)
    assert 0 < voxels.sum() < voxels.size
    assert "50 % of the mask lies outside the volumes." in note


@pytest.mark.parametrize(
    ("offset", "scale", "word"),
    [(500.0, 1.0, "outside the field of view of the volumes"), (1.4, 0.01, "no voxel left")],
)
def test_what_cannot_be_resampled_is_refused(bold, inside, offset, scale, word):
    with pytest.raises(DataError, match=word):
        mask_on_grid(image(inside, moved(offset, scale)), bold)


def test_a_header_without_a_position_is_refused(bold, inside):
    mask = image(inside, moved(scale=0.5))
    mask.header["sform_code"] = mask.header["qform_code"] = 0
    with pytest.raises(DataError, match="gives no position"):
        mask_on_grid(mask, bold)


def test_a_singular_affine_has_its_own_sentence(bold, inside):
    broken = nibabel.Nifti1Image(np.asarray(inside, dtype=np.uint8), AFFINE)
    broken._affine = AFFINE @ np.diag([1.0, 0.0, 1.0, 1.0])
    with pytest.raises(DataError, match=r"is singular.*an axis has no length.*Repair the header"):
        mask_on_grid(broken, bold)


def test_samples_of_a_resampled_mask_are_those_of_the_mask_it_becomes(study):
    grid = nibabel.load(study.mask)
    fine = nibabel.Nifti1Image(
        np.kron(study.inside, np.ones((2, 2, 2))).astype(np.uint8),
        grid.affine @ np.diag([0.5, 0.5, 0.5, 1.0]),
    )
    samples = load_samples(study.bold, study.labels, fine)
    same = load_samples(study.bold, study.labels, samples.mask_img)
    np.testing.assert_array_equal(samples.X, same.X)
    assert "was resampled" in samples.notes[0] and not any("resampled" in note for note in same.notes)
