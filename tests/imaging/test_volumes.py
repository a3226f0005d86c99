"""Files that cannot be trusted are refused in one sentence, before memory is asked for."""

import gzip
import struct
import tracemalloc
from types import SimpleNamespace

import nibabel
import numpy as np
import pytest

from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.volumes import (
    _check_end,
    check_same_grid,
    mean_volume,
    open_image,
    open_mask,
    open_series,
    repetition_time,
    volume_blocks,
)


def with_dimensions(content: bytes, *sides: int) -> bytes:
    """A NIfTI file whose header claims other dimensions (dim is at byte 40, int16)."""
    claimed = struct.pack(f"<{len(sides) + 1}h", len(sides), *sides)
    return content[:40] + claimed + content[40 + len(claimed) :]


def test_a_missing_file_and_a_folder(tmp_path):
    with pytest.raises(DataError, match=r"none\.nii\.gz: expected a NIfTI file, found nothing there"):
        open_image(tmp_path / "none.nii.gz", "BOLD file")
    with pytest.raises(DataError, match="found a folder"):
        open_image(tmp_path, "mask")


@pytest.mark.parametrize("name", ["text.nii.gz", "text.nii", "text.txt"])
def test_a_file_that_is_no_image(tmp_path, name):
    (tmp_path / name).write_text("labels chunks\nrest 0\n" * 100)
    with pytest.raises(DataError, match="cannot be read as an image"):
        open_image(tmp_path / name, "BOLD file")


def read_whole(path):
    """A series as every source reads it; once, so that a damage must be noticed on the way."""
    return [len(block) for block in volume_blocks(open_series(path), "BOLD file")]


@pytest.mark.parametrize("reads", [read_whole, lambda path: open_image(path, "BOLD file")])
@pytest.mark.parametrize("part", [0.01, 0.5, 0.999])
def test_a_truncated_gzip_stream(study, part, reads):
    content = study.bold.read_bytes()
    study.bold.write_bytes(content[: int(part * len(content))])
    with pytest.raises(DataError, match=r"BOLD file .*cannot be read as an image .*download it again"):
        reads(study.bold)


def test_a_flipped_bit_fails_the_checksum(study):
    content = bytearray(gzip.decompress(study.bold.read_bytes()))
    stored = bytearray(gzip.compress(bytes(content), compresslevel=0))  # stored: any bit may flip unseen
    stored[len(stored) // 2] ^= 4
    study.bold.write_bytes(bytes(stored))
    with pytest.raises(DataError, match=rf"BOLD file {study.bold} cannot .*CRC check failed"):
        read_whole(study.bold)
    with pytest.raises(DataError, match="CRC check failed"):
        open_image(study.bold, "BOLD file")


def test_a_checksum_is_compared_whatever_reads_the_stream(study, monkeypatch):
    """Bytes behind the last volume, and a nibabel that keeps its stream to itself."""
    content = gzip.decompress(study.bold.read_bytes()) + bytes(10_000)
    stored = bytearray(gzip.compress(content))
    study.bold.write_bytes(stored)
    assert read_whole(study.bold)
    stored[-8] ^= 1  # of the checksum itself
    study.bold.write_bytes(stored)
    with pytest.raises(DataError, match="CRC check failed"):
        read_whole(study.bold)
    image, proxy = open_series(study.bold), SimpleNamespace(file_like=str(study.bold))
    monkeypatch.setattr(type(image), "dataobj", proxy)
    with pytest.raises(DataError, match="CRC check failed"):
        _check_end(image, "BOLD file")


def test_a_series_is_unpacked_once(study, monkeypatch):
    unpacked = []
    monkeypatch.setattr("mvpa_gamp.imaging.volumes._unzipped_bytes", lambda *given: unpacked.append(given))
    assert read_whole(study.bold)
    assert not unpacked


def test_data_that_end_early_inside_a_whole_gzip_stream(study):
    content = gzip.decompress(study.bold.read_bytes())
    study.bold.write_bytes(gzip.compress(content[: len(content) // 2]))
    with pytest.raises(DataError, match=r"is truncated: the header promises dimensions \(7, 8, 9, 60\)"):
        read_whole(study.bold)


@pytest.mark.parametrize("zipped", [True, False])
def test_absurd_dimensions_are_refused_without_allocating(study, zipped):
    content = with_dimensions(gzip.decompress(study.bold.read_bytes()), 30000, 30000, 30000, 30000)
    path = study.bold if zipped else study.folder / "bold.nii"
    path.write_bytes(gzip.compress(content) if zipped else content)
    tracemalloc.start()
    with pytest.raises(DataError, match=r"header claims dimensions \(30000, 30000, 30000, 30000\)"):
        open_series(path)
    assert tracemalloc.get_traced_memory()[1] < 50e6
    tracemalloc.stop()


def test_dimensions_beyond_an_unzipped_file(study):
    content = with_dimensions(gzip.decompress(study.bold.read_bytes()), 7, 8, 9, 61)
    path = study.folder / "bold.nii"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"truncated.*\(7, 8, 9, 61\).*the file holds"):
        open_series(path)


@pytest.mark.parametrize("sides", [(7, 8, 9, 0), (7, -8, 9, 60)])
def test_dimensions_below_one(study, sides):
    study.bold.write_bytes(gzip.compress(with_dimensions(gzip.decompress(study.bold.read_bytes()), *sides)))
    with pytest.raises(DataError, match="BOLD file"):
        open_series(study.bold)


def test_three_dimensions_where_four_are_needed(study):
    with pytest.raises(DataError, match=r"expected a 4-D series .* got shape \(7, 8, 9\)"):
        open_series(study.mask)


def test_colours_are_no_signal(tmp_path):
    colours = np.zeros((3, 3, 3), dtype=[("R", "u1"), ("G", "u1"), ("B", "u1")])
    nibabel.save(nibabel.Nifti1Image(colours, np.eye(4)), tmp_path / "rgb.nii.gz")
    with pytest.raises(DataError, match="expected real numbers"):
        open_image(tmp_path / "rgb.nii.gz", "BOLD file")


def test_masks(study, make_image):
    _, inside = open_mask(study.mask)
    np.testing.assert_array_equal(inside, study.inside)
    _, inside = open_mask(make_image(study.inside[..., None].astype(np.uint8)))
    np.testing.assert_array_equal(inside, study.inside)
    odd = np.where(study.inside, 0.3, np.nan)
    np.testing.assert_array_equal(open_mask(make_image(odd))[1], study.inside)
    with pytest.raises(DataError, match="is empty: no voxel differs from zero"):
        open_mask(make_image(np.zeros((7, 8, 9), dtype=np.uint8)))
    with pytest.raises(DataError, match=r"expected a 3-D image, got shape \(7, 8, 9, 60\)"):
        open_mask(study.bold)


def test_grids(study, make_image):
    bold = open_series(study.bold)
    mask, inside = open_mask(study.mask)
    check_same_grid(mask, bold, "mask")
    shifted = nibabel.Nifti1Image(inside.astype(np.uint8), mask.affine + 0.01)
    with pytest.raises(
        DataError, match=r"mask in memory is on another grid: .* affines differ by up to 0\.01"
    ):
        check_same_grid(shifted, bold, "mask")
    with pytest.raises(DataError, match=r"expected shape \(7, 8, 9\), got \(7, 8, 4\)"):
        check_same_grid(make_image(np.ones((7, 8, 4))), bold, "mask")


def test_blocks_are_the_volumes(study, monkeypatch):
    monkeypatch.setattr("mvpa_gamp.imaging.volumes.BLOCK_BYTES", 4 * 7 * 8 * 9 * 11)
    blocks = list(volume_blocks(open_series(study.bold)))
    assert [block.shape[3] for block in blocks] == [11, 11, 11, 11, 11, 5]
    np.testing.assert_array_equal(np.concatenate(blocks, axis=3), study.volumes)


def test_scaled_integers_are_read_as_values(tmp_path, make_image):
    values = np.random.default_rng(1).normal(40, 9, (7, 8, 9, 5))
    image = make_image(values, 2.0)
    image.set_data_dtype(np.int16)  # nibabel chooses slope and intercept
    nibabel.save(image, tmp_path / "scaled.nii")
    read = np.concatenate(list(volume_blocks(open_series(tmp_path / "scaled.nii"))), axis=3)
    np.testing.assert_allclose(read, values, atol=np.ptp(values) / 2**16)  # half a step of 16 bits


def test_mean_volume(study):
    mean = mean_volume([open_series(study.bold)] * 2)
    np.testing.assert_allclose(np.asarray(mean.dataobj), study.volumes.mean(axis=3), rtol=1e-6)
    np.testing.assert_array_equal(mean.affine, nibabel.load(study.bold).affine)


@pytest.mark.parametrize(
    ("units", "zoom", "expected"), [("sec", 2.5, 2.5), ("msec", 2500, 2.5), ("sec", 0, None)]
)
def test_repetition_time(make_image, units, zoom, expected):
    image = make_image(np.zeros((7, 8, 9, 4), dtype=np.int16), zoom)
    image.header.set_xyzt_units("mm", units)
    assert repetition_time(image) == expected


@pytest.mark.parametrize("name", ["pair.hdr", "pair.img", "pair.img.gz", "whole.nii.bz2", "whole.mgz"])
def test_other_forms_of_files(tmp_path, name):
    values = np.random.default_rng(1).normal(40, 9, (7, 8, 9, 5)).astype(np.float32)
    kind = {"p": nibabel.Nifti1Pair, "w": nibabel.Nifti1Image}[name[0]]
    if name.endswith("mgz"):
        kind = nibabel.MGHImage
    nibabel.save(kind(values, np.diag([2.0, 2, 2, 1])), tmp_path / name)
    read = np.concatenate(list(volume_blocks(open_series(tmp_path / name))), axis=3)
    np.testing.assert_array_equal(read, values)


def test_values_beyond_single_precision_are_infinite(make_image):
    values = np.zeros((7, 8, 9, 2))
    values[0, 0, 0] = 1e300
    (block,) = volume_blocks(open_series(make_image(values, 2.0)))
    assert np.isinf(block[0, 0, 0]).all() and np.isfinite(block[1:]).all()


def test_a_file_that_may_not_be_read_is_not_called_damaged(tmp_path, monkeypatch):
    (tmp_path / "mine.nii.gz").write_bytes(b"secret")
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with pytest.raises(DataError, match="no permission to read"):
        open_image(tmp_path / "mine.nii.gz", "BOLD file")
