import shutil
from pathlib import Path

import nibabel
import numpy as np
import pytest
from nilearn import datasets

from mvpa_gamp.imaging.bids.betas import BetasSource
from mvpa_gamp.imaging.bids.source import BidsSource
from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.phantom.source import PhantomSource
from mvpa_gamp.imaging.source import HaxbySource, OwnFiles
from mvpa_gamp.study.console import Console
from mvpa_gamp.study.ending import StudyError
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


def resolved(**values):
    return StudySettings.of(values).resolve(Console().note).source


def test_haxby_data_are_found_where_they_are_said_to_be(layout):
    for mask, voxels in (({}, 60), ({"mask": "brain"}, 60), ({"mask": "vt"}, 20)):
        samples = resolved(data_dir=str(layout), participant_label="2", **mask).load()
        assert (samples.subject, samples.X.shape[1], samples.is_phantom) == ("2", voxels, False)


def test_without_options_haxby_data_of_nilearn_are_used_if_there(layout, monkeypatch, capsys):
    (layout / "haxby2001" / "subj2").rename(layout / "haxby2001" / "subj1")
    monkeypatch.setenv("NILEARN_DATA", str(layout))
    source = resolved()
    assert source == HaxbySource(data_dir=str(layout / "haxby2001"), participant_label="1")
    assert source.resolve() == source
    assert "PHANTOM" not in capsys.readouterr().err


def test_without_options_and_data_the_phantom_is_used_and_says_so(capsys):
    assert resolved(lag_trs=1, mask="vt", seed=3) == PhantomSource(lag_trs=1, mask="vt", seed=3)
    said = capsys.readouterr().err
    assert "PHANTOM" in said
    assert "--fetch" in said
    with pytest.raises(StudyError, match="--confounds does not apply to the phantom"):
        resolved(confounds=("c.tsv",))
    with pytest.raises(DataError, match="expected haxby2001/subj1"):
        resolved(participant_label="1")  # asked for by name: no phantom instead


def test_a_phantom_has_no_participant():
    with pytest.raises(StudyError, match="--participant-label does not apply"):
        resolved(phantom=True, participant_label="1")


def test_own_files_become_absolute(tiny, monkeypatch):
    monkeypatch.chdir(tiny.bold.parent)
    source = resolved(bold=("bold.nii.gz",), labels="labels.tsv", mask="mask.nii.gz", confounds=("c.tsv",))
    assert source.bold == (str(tiny.bold),)
    assert source.labels == str(tiny.labels)
    assert source.confounds == (str(tiny.bold.parent / "c.tsv"),)
    assert source.resolve() == source


def test_a_fetched_study_is_resolved_like_one_that_was_there(layout, monkeypatch, tmp_path):
    """A resume must not find other settings than the run that downloaded the data."""
    shutil.move(layout / "haxby2001", tmp_path / "far")
    monkeypatch.setenv("NILEARN_DATA", str(tmp_path / "near"))

    def pretend(data_dir=None, subjects=()):
        shutil.copytree(tmp_path / "far", tmp_path / "near" / "haxby2001")

    monkeypatch.setattr(datasets, "fetch_haxby", pretend)
    first = resolved(fetch=True, participant_label="2")
    assert first.data_dir == str(tmp_path / "near" / "haxby2001")
    assert resolved(fetch=True, participant_label="2") == first


def test_nothing_of_a_resolved_bids_source_is_left_open(bids_tree, monkeypatch):
    monkeypatch.chdir(bids_tree.root.parent)
    name = bids_tree.root.name
    source = resolved(bids_dir=name, participant_label="sub-01")
    assert (source.lag_trs, source.confounds, source.samples, source.pairs) == (
        2,
        ("motion6",),
        "tr",
        ("all",),
    )
    assert Path(source.bids_dir) == bids_tree.root and Path(source.derivatives) == bids_tree.derivatives
    assert source.participant_label == "01" and source.resolve() == source
    raw = resolved(bids_dir=name, participant_label="01", derivatives="none", lag_trs=0)
    assert (raw.derivatives, raw.confounds, raw.lag_trs) == ("none", ("none",), 0)
    shared = BidsSource(bids_dir=name).dataset()
    assert shared.lag_trs is None and shared.confounds == ("motion6",)  # every participant has its own lag
    with pytest.raises(DataError, match="needs --participant-label"):
        shared.resolve()


def test_beta_maps_are_a_source_of_their_own(bids_tree):
    given = {"bids_dir": str(bids_tree.root), "participant_label": "01"}
    source = resolved(**given, betas="maps")
    assert isinstance(source, BetasSource) and (source.samples, source.lag_trs) == ("betas", 0)
    assert source.betas == str(Path("maps").absolute()) and source.betas_glob.startswith("*_stat-effect")
    for wrong in ({"samples": "betas"}, {"samples": "tr", "betas": "maps"}):
        with pytest.raises(DataError, match="--samples betas and --betas FOLDER belong together"):
            resolved(**given, **wrong)
    with pytest.raises(DataError, match="--high-pass does not apply to --samples betas"):
        resolved(**given, betas="maps", high_pass=0.01)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"phantom": True, "bold": ("x.nii",)}, "one source, got options of --bold/--labels and --phantom"),
        ({"phantom": True, "data_dir": "x"}, "one source, got options of --data-dir/--fetch and --phantom"),
        ({"phantom": True, "task": "x"}, "--task does not apply to the phantom"),
        ({"bids_dir": "x", "bold": ("x.nii",)}, "--bold does not apply to a BIDS dataset"),
        ({"data_dir": "x", "betas": "y"}, "--betas does not apply to Haxby's data"),
    ],
)
def test_settings_of_another_source_are_refused(values, words):
    with pytest.raises(StudyError, match=words):
        StudySettings.of(values)


@pytest.mark.parametrize("kind", [HaxbySource, OwnFiles, PhantomSource, BidsSource])
def test_processing_without_meaning_is_refused_before_anything_is_read(kind, bids_tree, tiny):
    needs = {
        OwnFiles: {"bold": (str(tiny.bold),), "labels": str(tiny.labels), "mask": str(tiny.mask)},
        BidsSource: {"bids_dir": str(bids_tree.root), "participant_label": "01"},
    }
    for wrong in ({"lag_trs": -1}, {"high_pass": 0.0}):
        with pytest.raises(DataError, match=next(iter(wrong))):
            kind(**needs.get(kind, {}), **wrong).resolve()
