"""Volumes, labels and mask become samples."""

from dataclasses import replace

import nibabel
import numpy as np
import pytest
from nilearn import masking, signal

from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.labels import is_image, is_text
from mvpa_gamp.imaging.processing import Processing
from mvpa_gamp.imaging.samples import Samples, load_samples


def expected_rows(study, **clean):
    """The same through nilearn alone; runs are cleaned one by one because nilearn returns them sorted."""
    X = masking.apply_mask(nibabel.load(study.bold), nibabel.load(study.mask), dtype="d")
    cleaned = np.empty_like(X)
    for run in np.unique(study.runs):
        rows = study.runs == run
        cleaned[rows] = signal.clean(X[rows], standardize="zscore_sample", filter=False, **clean)
    return cleaned


def test_samples_are_nilearns(study):
    samples = load_samples(study.bold, study.labels, study.mask)
    shown = study.conditions != "rest"
    np.testing.assert_array_equal(samples.X, expected_rows(study)[shown].astype(np.float32))
    assert samples.X.dtype == np.float32 and samples.X.flags.c_contiguous
    assert samples.conditions.tolist() == study.conditions[shown].tolist()
    assert samples.runs.tolist() == study.runs[shown].tolist()  # in the order of the file: 3, 1, 2
    assert samples.subject == "01" and not samples.is_phantom and samples.banner is None
    assert samples.notes == () and samples.truth is None


def test_grid_and_background_are_those_of_the_files(study):
    samples = load_samples(study.bold, study.labels, study.mask)
    mask, original = samples.mask_img, nibabel.load(study.mask)
    np.testing.assert_array_equal(np.asarray(mask.dataobj) != 0, study.inside)
    np.testing.assert_array_equal(mask.affine, original.affine)
    for field in ("sform_code", "qform_code", "pixdim"):
        np.testing.assert_array_equal(mask.header[field], original.header[field])
    mean = np.asarray(samples.background_img.dataobj)
    np.testing.assert_allclose(mean, study.volumes.mean(axis=3), rtol=1e-6)


def test_provenance_names_files_and_processing(study):
    found = load_samples(study.bold, study.labels, study.mask, Processing(high_pass=0.02)).provenance
    assert found["source"] == "nifti" and found["t_r"] == 2.0
    assert found["bold"] == [str(study.bold)] and found["mask"] == str(study.mask)
    assert found["processing"]["high_pass"] == 0.02 and found["processing"]["drop"] == ["rest"]


def test_fields_say_what_provenance_only_prints(study):
    found = load_samples(study.bold, study.labels, study.mask, Processing(drop=("rest", "face")))
    assert (found.kind, found.plural, found.source) == ("volume", "volumes", "nifti")
    assert found.dropped == ("rest", "face") and set(found.conditions) == {"house"}
    assert found.description == "fMRI volumes of sub-01 (bold.nii.gz)." and found.space is None
    assert replace(found, kind="block").plural == "means of events"
    assert replace(found, kind="beta").plural == "maps"
    with pytest.raises(DataError, match="kind: expected one of volume, block, trial, beta, got 'voxel'"):
        replace(found, kind="voxel")


def test_connectivity_is_that_of_the_voxels_kept(tmp_path, volumes, inside, make_study):
    volumes[tuple(np.argwhere(inside)[10])] = 500  # constant: leaves the mask
    study = make_study(tmp_path, volumes, inside)
    samples = load_samples(study.bold, study.labels, study.mask)
    assert samples.connectivity.shape == (samples.X.shape[1],) * 2 == (inside.sum() - 1,) * 2
    assert samples.connectivity is samples.connectivity


def test_several_files_are_one_series(study, make_image):
    parts = [make_image(study.volumes[..., 20 * k : 20 * k + 20], 2.0) for k in range(3)]
    whole = load_samples(study.bold, study.labels, study.mask)
    together = load_samples(parts, study.labels, study.mask)
    np.testing.assert_array_equal(together.X, whole.X)
    assert together.provenance["volumes"] == [20, 20, 20]
    bare = study.folder / "bare.txt"
    bare.write_text("\n".join(["labels", *study.conditions]) + "\n")
    by_file = load_samples(parts, bare, study.mask)
    np.testing.assert_array_equal(by_file.X, whole.X)
    assert np.unique(by_file.runs).tolist() == [1, 2, 3]
    with pytest.raises(DataError, match=r"column with the run of each volume .* for a single BOLD file"):
        load_samples(study.bold, bare, study.mask)


def test_the_lag(study):
    lagged = load_samples(study.bold, study.labels, study.mask, Processing(lag_trs=2))
    rows = np.r_[7:12, 17:20]
    rows = np.r_[rows, rows + 20, rows + 40]
    np.testing.assert_array_equal(lagged.X, expected_rows(study)[rows].astype(np.float32))
    assert lagged.conditions.tolist() == (["face"] * 5 + ["house"] * 3) * 3


def test_smoothing_comes_before_the_mask(study):
    smoothed = load_samples(study.bold, study.labels, study.mask, Processing(smoothing_fwhm=6.0))
    X = masking.apply_mask(nibabel.load(study.bold), nibabel.load(study.mask), smoothing_fwhm=6.0)
    rows = study.runs == 1
    expected = signal.clean(X[rows].astype(float), standardize="zscore_sample", filter=False)
    shown = study.conditions[rows] != "rest"
    # nilearn smooths in the dtype it is given; both are single precision of values around 500
    np.testing.assert_allclose(smoothed.X[smoothed.runs == 1], expected[shown], atol=2e-4)


def test_blocks_of_any_size_give_the_same(study, monkeypatch):
    whole = load_samples(study.bold, study.labels, study.mask, Processing(smoothing_fwhm=6.0))
    monkeypatch.setattr("mvpa_gamp.imaging.volumes.BLOCK_BYTES", 4 * 7 * 8 * 9 * 7)
    pieces = load_samples(study.bold, study.labels, study.mask, Processing(smoothing_fwhm=6.0))
    np.testing.assert_array_equal(pieces.X, whole.X)
    np.testing.assert_allclose(
        np.asarray(pieces.background_img.dataobj), np.asarray(whole.background_img.dataobj), rtol=1e-6
    )


def test_confounds(study):
    nuisance = np.random.default_rng(8).normal(size=(60, 2))
    path = study.folder / "confounds.tsv"
    lines = [f"{x:.17g}\t{y:.17g}" for x, y in nuisance]
    path.write_text("\n".join(["x\ty", "n/a\tn/a", *lines[1:]]) + "\n")
    samples = load_samples(study.bold, study.labels, study.mask, Processing(confounds=path))
    assert samples.notes == ("2 missing values in the confounds were replaced by the mean of their run.",)
    rows = study.runs == 1
    X = masking.apply_mask(nibabel.load(study.bold), nibabel.load(study.mask), dtype="d")
    expected = signal.clean(X[rows], standardize="zscore_sample", filter=False, confounds=nuisance[rows])
    shown = study.conditions[rows] != "rest"
    np.testing.assert_array_equal(samples.X[samples.runs == 1], expected[shown].astype(np.float32))


def test_useless_voxels_are_dropped_and_counted(tmp_path, volumes, inside, make_study):
    where = np.argwhere(inside)
    nan, infinite, constant, quiet_run = where[3], where[7], where[8], where[20]
    volumes[(*nan, 17)] = np.nan
    volumes[(*infinite, 3)] = np.inf
    volumes[tuple(constant)] = 500
    volumes[tuple(quiet_run)][20:40] = 0
    study = make_study(tmp_path, volumes, inside)
    samples = load_samples(study.bold, study.labels, study.mask)
    n = int(inside.sum())
    assert samples.notes == (
        f"2 of {n} voxels of the mask have NaN or infinite values and were dropped.",
        f"2 of {n} voxels of the mask are constant within a run and were dropped.",
    )
    kept = np.ones(n, dtype=bool)
    kept[[3, 7, 8, 20]] = False
    assert samples.X.shape[1] == n - 4 and np.isfinite(samples.X).all()
    np.testing.assert_array_equal((np.asarray(samples.mask_img.dataobj) != 0)[inside], kept)
    np.testing.assert_allclose(samples.X.std(axis=0) > 0.1, True)


def test_a_volume_of_nan_is_named_with_its_file(study, make_image):
    study.volumes[..., 26] = np.nan
    for name, part in (("a.nii", slice(0, 20)), ("b.nii", slice(20, 60))):
        nibabel.save(make_image(study.volumes[..., part], 2.0), study.folder / name)
    files = [study.folder / "a.nii", study.folder / "b.nii"]
    with pytest.raises(
        DataError, match=r"b\.nii: volume 7 \(counted from 1\) is NaN .* all voxels"
    ) as caught:
        load_samples(files, study.labels, study.mask)
    assert "a.nii" not in str(caught.value) and "leave out such volumes" in str(caught.value)
    study.volumes[..., 26][np.isnan(study.volumes[..., 26])] = 500
    for place in (26, 41):
        study.volumes[..., place][study.inside] = np.r_[500, [np.nan] * (study.inside.sum() - 1)]
    samples = load_samples(make_image(study.volumes, 2.0), study.labels, study.mask)
    assert samples.X.shape[1] == 1
    assert "volumes 27, 42 (counted from 1) are NaN or infinite in most voxels" in samples.notes[0]


def test_a_mask_where_most_volumes_have_no_value_is_to_blame(study, make_image):
    study.volumes[study.inside] = np.nan
    with pytest.raises(DataError, match=r"mask: none of its \d+ voxels can be used \(\d+ with NaN"):
        load_samples(make_image(study.volumes), study.labels, study.mask)


def test_nan_beside_the_mask_does_no_harm(tmp_path, volumes, inside, make_study):
    volumes[0, 0, 0] = np.nan
    study = make_study(tmp_path, volumes, inside)
    samples = load_samples(study.bold, study.labels, study.mask, Processing(smoothing_fwhm=5.0))
    assert samples.notes == () and np.isfinite(samples.X).all()
    assert np.isfinite(np.asarray(samples.background_img.dataobj)).all()


def test_a_mask_without_a_usable_voxel(study, make_image):
    flat = make_image(np.full((7, 8, 9, 60), 3, dtype=np.int16))
    with pytest.raises(DataError, match=r"none of its \d+ voxels can be used \(0 with NaN .* constant"):
        load_samples(flat, study.labels, study.mask)


def test_labels_that_do_not_fit(study):
    lines = study.labels.read_text().splitlines()
    study.labels.write_text("\n".join(lines[:-1]) + "\n")
    with pytest.raises(DataError, match="expected one label per volume, 60, got 59"):
        load_samples(study.bold, study.labels, study.mask)
    bold = nibabel.load(study.bold)
    with pytest.raises(DataError, match=r"expected one label per volume, 120 \(60 \+ 60\), got 59"):
        load_samples([bold, bold], study.labels, study.mask)


def test_only_rest(study):
    study.labels.write_text("\n".join(["labels chunks", *(f"rest {run}" for run in study.runs)]) + "\n")
    with pytest.raises(DataError, match="no volume is left after dropping rest"):
        load_samples(study.bold, study.labels, study.mask)


def test_grids_that_do_not_fit(study, make_image):
    other = nibabel.Nifti1Image(study.inside.astype(np.uint8), np.diag([900.0, 900.0, 900.0, 1.0]))
    with pytest.raises(DataError, match="mask in memory is on another grid, and its voxels lie outside"):
        load_samples(study.bold, study.labels, other)
    smaller = make_image(study.volumes[:5], 2.0)
    with pytest.raises(
        DataError, match=r"BOLD file in memory is on another grid: expected shape \(7, 8, 9\)"
    ):
        load_samples([study.bold, smaller], study.labels, study.mask)


@pytest.mark.parametrize("name", ["bold.nii.gz", "bold.nii", "bold"])
def test_swapped_files_are_called_swapped(study, make_image, name):
    bold = study.folder / name
    if name.endswith(".nii.gz"):
        bold = study.bold
    else:
        bold.write_bytes(make_image(study.volumes, 2.0).to_bytes())
    with pytest.raises(
        DataError, match=r"labels\.txt is text .*bold\S* is an image: they look swapped\. Give"
    ):
        load_samples(study.labels, bold, study.mask)
    with pytest.raises(DataError, match=r"label file \S*bold\S* is an image, expected text"):
        load_samples(make_image(study.volumes, 2.0), bold, study.mask)
    with pytest.raises(DataError, match=r"BOLD file \S*labels\.txt is text, expected a 4-D NIfTI file"):
        load_samples(study.labels, study.labels, study.mask)


def test_labels_in_any_letters_are_text(study):
    text = "labels chunks\n" + "ä" * 5000
    study.labels.write_text(text, encoding="utf-8")
    assert is_text(study.labels) and not is_image(study.labels)
    assert not is_text(study.bold) and not is_text(study.folder / "nowhere")


def test_no_file_at_all(study):
    with pytest.raises(DataError, match="at least one 4-D NIfTI file"):
        load_samples([], study.labels, study.mask)


def test_the_name_of_a_subject_is_safe_and_never_phantom(study):
    named = load_samples(study.bold, study.labels, study.mask, subject="../a <b>")
    assert named.subject == "aB"
    with pytest.raises(DataError, match="at least one letter or digit"):
        load_samples(study.bold, study.labels, study.mask, subject="../")
    with pytest.raises(DataError, match="is reserved for the simulated phantom"):
        load_samples(study.bold, study.labels, study.mask, subject="Phantom")
    with pytest.raises(DataError, match="is reserved for the simulated phantom"):
        Samples(
            named.X, named.conditions, named.runs, named.mask_img, named.background_img, "1", is_phantom=True
        )


def test_the_real_slice_equals_the_published_recipe(real_data, haxby_slice):
    folder = real_data / "haxby_slice"
    samples = load_samples(folder / "bold.nii.gz", folder / "labels.txt", folder / "mask.nii.gz", subject="1")
    assert samples.X.shape == (864, 530) and samples.notes == ()
    np.testing.assert_array_equal(samples.X, haxby_slice.X)
    assert samples.conditions.tolist() == haxby_slice.conditions.tolist()
    assert samples.runs.tolist() == haxby_slice.runs.tolist()
    assert samples.provenance["t_r"] == 2.5
