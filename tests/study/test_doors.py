import shutil

import nibabel
import numpy as np
import pytest

from mvpa_gamp.study.console import Console
from mvpa_gamp.study.doors import open_door, resolve_door
from mvpa_gamp.study.errors import StudyError
from mvpa_gamp.study.settings import StudySettings


@pytest.fixture
def layout(tiny, tmp_path):
    """The tiny data in nilearn's Haxby layout."""
    subject = tmp_path / "haxby2001" / "subj2"
    subject.mkdir(parents=True)
    shutil.copy(tiny.bold, subject / "bold.nii.gz")
    shutil.copy(tiny.mask, tmp_path / "haxby2001" / "mask.nii.gz")
    (subject / "labels.txt").write_text(tiny.labels.read_text().replace("\t", " "))
    image = nibabel.load(tiny.mask)
    ventral = np.asarray(image.dataobj).copy()
    ventral[:, :, 1:] = 0
    nibabel.save(nibabel.Nifti1Image(ventral, image.affine), subject / "mask4_vt.nii.gz")
    return tmp_path


def test_haxby_data_are_found_where_they_are_said_to_be(layout):
    for mask, voxels in ((None, 60), ("brain", 60), ("vt", 20)):
        settings = StudySettings(data_dir=str(layout), participant_label="2", mask=mask)
        samples = open_door(resolve_door(settings, Console(0)))
        assert (samples.subject, samples.X.shape[1], samples.is_phantom) == ("2", voxels, False)


def test_without_options_haxby_data_of_nilearn_are_used_if_there(layout, monkeypatch, capsys):
    (layout / "haxby2001" / "subj2").rename(layout / "haxby2001" / "subj1")
    monkeypatch.setenv("NILEARN_DATA", str(layout))
    resolved = resolve_door(StudySettings(), Console())
    assert (resolved.data_dir, resolved.participant_label, resolved.phantom) == (
        str(layout / "haxby2001"),
        "1",
        False,
    )
    assert resolve_door(resolved, Console()) == resolved
    assert "PHANTOM" not in capsys.readouterr().err


def test_without_options_and_data_the_phantom_is_used_and_says_so(capsys):
    resolved = resolve_door(StudySettings(), Console())
    assert resolved.phantom
    said = capsys.readouterr().err
    assert "PHANTOM" in said
    assert "--fetch" in said


def test_a_phantom_has_no_participant():
    with pytest.raises(StudyError, match="--participant-label has no meaning"):
        resolve_door(StudySettings(phantom=True, participant_label="1"), Console())


def test_own_files_become_absolute(tiny, monkeypatch):
    monkeypatch.chdir(tiny.bold.parent)
    settings = StudySettings(bold=("bold.nii.gz",), labels="labels.tsv", mask="mask.nii.gz")
    resolved = resolve_door(settings, Console())
    assert resolved.bold == (str(tiny.bold),)
    assert resolved.labels == str(tiny.labels)
