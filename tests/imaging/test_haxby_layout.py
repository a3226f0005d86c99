"""Haxby's files in nilearn's layout, written here from a small phantom."""

import shutil
import socket

import nibabel
import numpy as np
import pytest
from nilearn import datasets

from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.phantom import Phantom, phantom_images, phantom_labels, phantom_samples
from mvpa_gamp.imaging.processing import Processing
from mvpa_gamp.imaging.source import HaxbySource, find_haxby, participant_number

SPEC = Phantom(shape=(14, 20, 20), n_runs=3, categories=("cat", "face", "house"))


@pytest.fixture(scope="module")
def nilearn_data(tmp_path_factory):
    """A folder as nilearn leaves it: haxby2001/mask.nii.gz, haxby2001/subj2/..."""
    root = tmp_path_factory.mktemp("nilearn_data")
    folder = root / "haxby2001" / "subj2"
    folder.mkdir(parents=True)
    bold, brain, ventral, _ = phantom_images(SPEC)
    nibabel.save(bold, folder / "bold.nii.gz")
    nibabel.save(ventral, folder / "mask4_vt.nii.gz")
    nibabel.save(brain, root / "haxby2001" / "mask.nii.gz")
    labels = phantom_labels(SPEC)
    lines = [f"{condition} {run}" for condition, run in zip(labels.conditions, labels.runs, strict=True)]
    (folder / "labels.txt").write_text("\n".join(["labels chunks", *lines]) + "\n")
    return root


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("the network was touched")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def load_haxby(participant, mask, data_dir, **more):
    given = {"participant_label": str(participant), "mask": str(mask), "data_dir": str(data_dir), **more}
    return HaxbySource(**given).load()


@pytest.mark.parametrize("mask", ["brain", "vt"])
def test_the_files_give_what_the_phantom_itself_gives(nilearn_data, mask):
    read = load_haxby(2, mask, nilearn_data)
    made = phantom_samples(SPEC, mask=mask, cache=False)
    np.testing.assert_array_equal(read.X, made.X)
    assert read.conditions.tolist() == made.conditions.tolist()
    assert read.runs.tolist() == made.runs.tolist()
    np.testing.assert_array_equal(np.asarray(read.mask_img.dataobj), np.asarray(made.mask_img.dataobj))
    np.testing.assert_allclose(
        np.asarray(read.background_img.dataobj), np.asarray(made.background_img.dataobj), rtol=1e-6
    )
    assert (read.subject, made.subject) == ("2", "phantom")
    assert (
        read.provenance["source"] == "haxby"
        and "Haxby et al. (2001), participant 2" in read.provenance["description"]
    )


def test_smoothing_agrees_for_files_and_phantom(nilearn_data):
    steps = {"smoothing_fwhm": 15.0, "high_pass": 0.01, "lag_trs": 1}
    read = load_haxby(2, "vt", nilearn_data, **steps)
    made = phantom_samples(SPEC, Processing(**steps), False, "vt")
    np.testing.assert_allclose(read.X, made.X, atol=1e-4)  # single precision


def test_the_folder_may_be_the_dataset_itself_or_one_of_nilearns(nilearn_data, monkeypatch):
    expected = nilearn_data / "haxby2001"
    assert find_haxby(2, nilearn_data) == expected
    assert find_haxby(2, nilearn_data / "haxby2001") == expected
    monkeypatch.setenv("NILEARN_DATA", str(nilearn_data))
    assert find_haxby(2) == expected
    assert find_haxby(3) is None


def test_a_mask_file(nilearn_data, tmp_path):
    shutil.copy(nilearn_data / "haxby2001" / "subj2" / "mask4_vt.nii.gz", tmp_path / "mine.nii.gz")
    by_name = load_haxby("sub-2", "vt", nilearn_data)
    by_file = load_haxby("2", tmp_path / "mine.nii.gz", nilearn_data)
    np.testing.assert_array_equal(by_file.X, by_name.X)
    with pytest.raises(DataError, match=r"mask .*none\.nii"):
        load_haxby(2, "none.nii", nilearn_data)


@pytest.mark.parametrize("reason", ["is missing", "is on another participant's grid"])
def test_without_a_fitting_brain_mask_one_is_computed(nilearn_data, tmp_path, reason):
    shutil.copytree(nilearn_data / "haxby2001" / "subj2", tmp_path / "subj2")
    if reason != "is missing":
        mask = nibabel.load(nilearn_data / "haxby2001" / "mask.nii.gz")
        other = nibabel.Nifti1Image(np.asarray(mask.dataobj), mask.affine * [[1.1], [1], [1], [1]])
        nibabel.save(other, tmp_path / "mask.nii.gz")
    samples = load_haxby(2, "brain", tmp_path)
    assert len(samples.notes) == 1 and reason in samples.notes[0]
    assert f"{samples.X.shape[1]:,} voxels" in samples.notes[0]
    brain = np.asarray(nibabel.load(nilearn_data / "haxby2001" / "mask.nii.gz").dataobj) > 0
    found = np.asarray(samples.mask_img.dataobj) > 0
    assert (found & brain).sum() / (found | brain).sum() > 0.8  # the phantom has no skull: a close match


def test_what_is_missing_is_said(nilearn_data, tmp_path):
    with pytest.raises(
        DataError, match=r"expected haxby2001/subj5/bold\.nii\.gz and labels\.txt in .*--fetch"
    ):
        load_haxby(5, "vt", nilearn_data)
    shutil.copytree(nilearn_data / "haxby2001" / "subj2", tmp_path / "subj2")
    (tmp_path / "subj2" / "mask4_vt.nii.gz").unlink()
    with pytest.raises(DataError, match=r"mask vt: expected .*mask4_vt\.nii\.gz, found none"):
        load_haxby(2, "vt", tmp_path)


@pytest.mark.parametrize("given", [0, 7, "x", "../2", "", "²"])
def test_participants_are_1_to_6(given):
    with pytest.raises(DataError, match="expected 1 to 6"):
        participant_number(given)


def test_fetch_downloads_only_what_is_missing(nilearn_data, tmp_path, monkeypatch):
    asked = []

    def pretend(data_dir=None, subjects=(2,), **kwargs):
        asked.append((data_dir, subjects))
        shutil.copytree(nilearn_data / "haxby2001", tmp_path / "haxby2001")

    monkeypatch.setattr(datasets, "fetch_haxby", pretend)
    load_haxby(2, "vt", nilearn_data, fetch=True)
    assert asked == []
    load_haxby(2, "vt", tmp_path, fetch=True)
    assert asked == [(str(tmp_path), [2])]


def test_a_failed_download_is_one_sentence(tmp_path, monkeypatch):
    def fail(**kwargs):
        raise ConnectionError("no route to host")

    monkeypatch.setattr(datasets, "fetch_haxby", fail)
    with pytest.raises(DataError, match="participant 1 could not be downloaded: no route to host"):
        load_haxby(1, "vt", tmp_path, fetch=True)
