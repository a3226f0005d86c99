"""Vectors back in the brain: exact values, the mask's grid, the same bytes every time."""

import json
import os

import nibabel
import numpy as np
import pytest
from nilearn import masking

from mvpa_gamp.imaging.brainmaps import (
    coordinates,
    from_image,
    sidecar_path,
    space_name,
    to_image,
    write_image,
    write_map,
)
from mvpa_gamp.imaging.disk import write_atomic
from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.names import entity
from mvpa_gamp.imaging.samples import load_samples
from mvpa_gamp.results.names import statmap_ending

SHEARED = np.array([[-3.0, 0.4, 0, 12], [0.2, 3.5, 0.6, -20], [0, -0.3, 4.0, 5], [0, 0, 0, 1]])
FLIPPED = np.diag([-3.0, 3.5, -4.0, 1.0])


def mask_image(inside, affine, sform=1, qform=1):
    image = nibabel.Nifti1Image(inside.astype(np.uint8), affine)
    image.set_sform(affine, code=sform)
    image.set_qform(affine, code=qform, strip_shears=True)
    image.header.set_xyzt_units("mm", "sec")
    return image


@pytest.mark.parametrize("affine", [SHEARED, FLIPPED])
@pytest.mark.parametrize("codes", [(1, 1), (4, 0), (2, 1)])
def test_image_to_matrix_to_image_is_exact(tmp_path, inside, affine, codes):
    mask = mask_image(inside, affine, *codes)
    values = np.random.default_rng(2).normal(size=int(inside.sum())).astype(np.float32)
    path = write_map(tmp_path / "map.nii.gz", values, mask, {"Description": "x"})
    read = nibabel.load(path)
    np.testing.assert_array_equal(from_image(read, mask), values)
    assert (np.asarray(read.dataobj)[~inside] == 0).all()
    np.testing.assert_array_equal(read.affine, mask.affine)
    for field in ("sform_code", "qform_code", "pixdim", "srow_x", "srow_y", "srow_z"):
        np.testing.assert_array_equal(read.header[field], mask.header[field])
    assert read.header.get_zooms() == mask.header.get_zooms()
    assert read.header.get_xyzt_units() == ("mm", "sec")
    assert read.get_data_dtype() == np.float32
    again = to_image(from_image(read, mask), mask)
    np.testing.assert_array_equal(np.asarray(again.dataobj), np.asarray(read.dataobj))


def test_the_order_of_voxels_is_nilearns(inside):
    mask = mask_image(inside, SHEARED)
    values = np.arange(inside.sum(), dtype=np.float32)
    np.testing.assert_array_equal(
        np.asarray(to_image(values, mask).dataobj), masking.unmask(values, mask).get_fdata()
    )


def test_from_volumes_to_a_map(study):
    """A column of X, put back, sits where its voxel was."""
    samples = load_samples(study.bold, study.labels, study.mask)
    back = np.asarray(to_image(samples.X[4], samples.mask_img).dataobj)
    x, y, z = np.argwhere(study.inside)[17]
    assert back[x, y, z] == samples.X[4, 17]


def test_booleans_become_uint8_and_integers_float32(inside):
    mask = mask_image(inside, FLIPPED)
    image = to_image(np.ones(inside.sum(), dtype=bool), mask)
    assert image.get_data_dtype() == np.uint8 and np.asarray(image.dataobj).sum() == inside.sum()
    image = to_image(np.full(inside.sum(), 300), mask)
    assert image.get_data_dtype() == np.float32 and np.asarray(image.dataobj).max() == 300


def test_vectors_that_do_not_fit(inside):
    mask = mask_image(inside, FLIPPED)
    n = int(inside.sum())
    with pytest.raises(DataError, match=rf"expected a vector of {n} voxels, .* got shape \({n - 1},\)"):
        to_image(np.zeros(n - 1), mask)
    values = np.zeros(n)
    values[3] = np.nan
    with pytest.raises(DataError, match="expected finite values, got 1 that are not"):
        to_image(values, mask)
    with pytest.raises(DataError, match="on another grid"):
        from_image(to_image(np.zeros(n), mask), mask_image(inside, SHEARED))


def test_equal_maps_are_equal_bytes(tmp_path, inside):
    mask = mask_image(inside, SHEARED)
    values = np.random.default_rng(2).normal(size=int(inside.sum()))
    one = write_map(tmp_path / "a" / "one.nii.gz", values, mask, {"Description": "ä", "N": 3})
    two = write_map(tmp_path / "b" / "two.nii.gz", values, mask, {"Description": "ä", "N": 3})
    assert one.read_bytes() == two.read_bytes()
    assert sidecar_path(one).read_bytes() == sidecar_path(two).read_bytes()
    assert one.read_bytes()[4:8] == bytes(4)  # no time stamp in the gzip header
    assert json.loads(sidecar_path(one).read_text(encoding="utf-8")) == {"Description": "ä", "N": 3}
    plain = write_image(tmp_path / "plain.nii", to_image(values, mask), {})
    np.testing.assert_array_equal(
        np.asarray(nibabel.load(plain).dataobj), np.asarray(nibabel.load(one).dataobj)
    )


def test_a_failed_write_leaves_the_old_file_and_no_rest(tmp_path, monkeypatch):
    path = write_atomic(tmp_path / "file", b"old")
    monkeypatch.setattr(os, "replace", lambda *names: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_atomic(path, b"new")
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]


def test_new_files_follow_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        path = write_atomic(tmp_path / "file", b"x", memoryview(b"y"))
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o640 and path.read_bytes() == b"xy"


def test_names():
    name = statmap_ending("cat-scissors", "gamp-bg-lr", "pip")
    assert name == "contrast-catScissors_desc-gampBgLr_stat-pip_statmap.nii.gz"
    for label in ("../../etc", "<script>", "a b", "ä1", "a_b"):
        assert entity(label).isalnum() and entity(label).isascii()
    with pytest.raises(DataError, match="at least one letter or digit"):
        entity("../")
    with pytest.raises(DataError, match="expected one of weight, weightsd, pip, selfreq, pattern, truth"):
        statmap_ending("a", "b", "z")


def test_coordinates_and_space(inside):
    mask = mask_image(inside, SHEARED, 4, 1)
    expected = nibabel.affines.apply_affine(mask.affine, np.argwhere(inside))
    np.testing.assert_allclose(coordinates(mask), expected)
    assert space_name(mask) == "MNI152"
    assert space_name(mask_image(inside, SHEARED, 0, 1)) == "scanner"
    assert space_name(mask_image(inside, SHEARED, 0, 0)) == "unknown"
