"""The leakage check in the commands: cautions in the terminal, on the page, in summary.json; --strict."""

import html
import json
from dataclasses import replace

import nibabel
import numpy as np
import pytest
from bids_tree import write_tree

from mvpa_gamp import __main__ as bids_app
from mvpa_gamp.haxby import main
from mvpa_gamp.imaging.samples import load_samples
from mvpa_gamp.study.settings import StudySettings, differences, read_settings


@pytest.fixture
def twice(make_tiny, tmp_path):
    """Eight runs whose last one is a copy of the first, with its labels."""
    data = make_tiny(tmp_path / "data", n_runs=8)
    image = nibabel.load(data.bold)
    volumes = np.asarray(image.dataobj).copy()
    volumes[..., -24:] = volumes[..., :24]
    nibabel.save(nibabel.Nifti1Image(volumes, image.affine, image.header), data.bold)
    head, *lines = data.labels.read_text().splitlines()
    lines[-24:] = [line.replace("\t0", "\t7") for line in lines[:24]]
    data.labels.write_text("\n".join([head, *lines]) + "\n")
    return data


def test_a_run_given_twice_is_a_caution_everywhere(twice, tmp_path, capsys):
    out = tmp_path / "out"
    assert main([*twice.options(out), "--pairs", "face:house"]) == 0
    said = capsys.readouterr().err
    (caution,) = [line for line in said.splitlines() if line.startswith("Caution: ")]
    assert "30 of 120 volumes occur in more than one run" in caution and "no file was given twice" in caution
    assert said.index("Caution: ") < said.index("face vs house")  # before the first fit
    sentence = caution.removeprefix("Caution: ")
    assert sentence in html.unescape((out / "index.html").read_text())
    stored = json.loads((out / "summary.json").read_text())["leakage"]
    assert stored["findings"] == [{"check": "repeats", "sentence": sentence}]
    assert {"blocks", "repeats", "runs", "order", "lag"} <= set(stored["checked"])


def test_strict_stops_before_anything_is_written(twice, tmp_path, capsys):
    out = tmp_path / "out"
    assert main([*twice.options(out), "--pairs", "face:house", "--strict"]) == 2
    said = capsys.readouterr().err
    assert "mvpa_gamp.haxby: error: --strict: sub-tiny: 30 of 120 volumes" in said
    assert not out.exists()


def test_strict_is_a_setting_that_a_resume_may_change(tiny, tmp_path):
    out = tmp_path / "out"
    assert main([*tiny.options(out), "--pairs", "face:house", "--strict", "--quiet"]) == 0  # a sound design
    assert "strict = true" in (out / "config.toml").read_text()
    assert json.loads((out / "summary.json").read_text())["leakage"]["findings"] == []
    given = read_settings(out / "config.toml")
    assert StudySettings.of(given).strict
    assert differences(given, replace(StudySettings.of(given), strict=False)) == []


def test_a_mask_from_the_labels_is_found_in_the_volumes(tiny, tmp_path, capsys):
    """The 40 voxels of noise that differ most between two conditions, of a larger volume."""
    rng = np.random.default_rng(0)
    image = nibabel.load(tiny.bold)
    volumes = (100 + rng.normal(size=(12, 12, 8, image.shape[3]))).astype(np.float32)
    bold = nibabel.Nifti1Image(volumes, image.affine)
    bold.header.set_zooms((*bold.header.get_zooms()[:3], 2.0))
    nibabel.save(bold, tmp_path / "bold.nii.gz")
    whole = nibabel.Nifti1Image(np.ones(volumes.shape[:3], dtype=np.uint8), image.affine)
    samples = load_samples(tmp_path / "bold.nii.gz", tiny.labels, whole)
    sides = [samples.X[samples.conditions == name] for name in ("face", "house")]
    t = np.abs(sides[0].mean(axis=0) - sides[1].mean(axis=0)) / (sides[0].std(axis=0) + sides[1].std(axis=0))
    chosen = (t >= np.sort(t)[-40]).reshape(volumes.shape[:3]).astype(np.uint8)
    nibabel.save(nibabel.Nifti1Image(chosen, image.affine), tmp_path / "mask.nii.gz")
    given = [
        "--bold",
        str(tmp_path / "bold.nii.gz"),
        "--labels",
        str(tiny.labels),
        "--mask",
        str(tmp_path / "mask.nii.gz"),
    ]
    more = ["--methods", "onebit-cs", "--pairs", "face:house", "--strict", "--out", str(tmp_path / "out")]
    assert main([*given, *more]) == 2
    assert "The mask looks as if it had been selected with these labels" in capsys.readouterr().err


def test_strict_of_a_dataset_reads_everybody_first(tmp_path, capsys):
    tree = write_tree(tmp_path / "data", ("01", "02"), (), n_runs=3, shape=(6, 7, 6))
    runs = sorted(tree.func("02", True).glob("*_desc-preproc_bold.nii.gz"))
    events = sorted(tree.func("02").glob("*_events.tsv"))
    runs[1].write_bytes(runs[0].read_bytes())
    events[1].write_text(events[0].read_text())
    given = [
        str(tree.root),
        str(tmp_path / "out"),
        "participant",
        "--methods",
        "onebit-cs",
        "--contrasts",
        "face:house",
    ]
    assert bids_app.main([*given, "--strict"]) == 2
    assert "--strict: sub-02: " in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_real_slice_is_not_accused(real_data, tmp_path):
    folder = real_data / "haxby_slice"
    given = [
        "--bold",
        str(folder / "bold.nii.gz"),
        "--labels",
        str(folder / "labels.txt"),
        "--mask",
        str(folder / "mask.nii.gz"),
    ]
    more = [
        "--methods",
        "onebit-cs",
        "--pairs",
        "face:house",
        "cat:chair",
        "--strict",
        "--quiet",
        "--out",
        str(tmp_path / "out"),
    ]
    assert main([*given, *more]) == 0
