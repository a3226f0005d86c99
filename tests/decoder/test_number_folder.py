"""A number of a table of maps by the command: the folder, its page, and input that cannot be used."""

import json
import re

import nibabel
import numpy as np
import pandas as pd
import pytest

from mvpa_gamp import GAMPRegressor
from mvpa_gamp.__main__ import main


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Maps of eight people, four each, of which the last are volumes of one file."""
    folder, rng = tmp_path_factory.mktemp("rated"), np.random.default_rng(0)
    people, rating = np.repeat(np.arange(1, 9), 4), rng.normal(50, 10, 32).round(2)
    values = rng.normal(0, 1, (32, 5, 6, 4)) + rng.normal(0, 1, (8, 5, 6, 4))[people - 1]
    values[:, 1, 2, 1] += (rating - 50) / 4
    values[:, 3, 3, 2] -= (rating - 50) / 5
    affine, names = np.diag([3.0, 3.0, 3.0, 1.0]), []
    for k, volume in enumerate(values[:24]):
        nibabel.save(nibabel.Nifti1Image(volume.astype(np.float32), affine), folder / f"map-{k}.nii.gz")
        names.append(f"map-{k}.nii.gz")
    last = np.moveaxis(values[24:], 0, -1).astype(np.float32)
    nibabel.save(nibabel.Nifti1Image(last, affine), folder / "last.nii.gz")
    mask = nibabel.Nifti1Image(np.ones((5, 6, 4), dtype=np.uint8), affine)
    nibabel.save(mask, folder / "mask.nii.gz")
    lines = pd.DataFrame({"file": names + ["last.nii.gz"] * 8, "participant": people, "Rating": rating})
    lines["word"], lines["level"], lines["site"] = "high", 1, people // 5
    lines.to_csv(folder / "maps.tsv", sep="\t", index=False)
    return folder / "maps.tsv"


def test_the_command_writes_a_folder_with_a_page_and_models(table, tmp_path, capsys):
    out = tmp_path / "out"
    mask = str(table.parent / "mask.nii.gz")
    arguments = ["decode", "--maps", str(table), "--target", "Rating", "--scaling", "centre", "--mask", mask]
    arguments += ["--permutations", "19", "--learning-curve", "--out", str(out)]
    assert main(arguments) == 0
    assert "held-out correlation" in capsys.readouterr().out
    summary = pd.read_csv(out / "summary.tsv", sep="\t")
    assert summary["method"].tolist() == ["vamp-bg-reg", "ridge"] and summary["within"][0] > 0.5
    assert summary["pvalue"][0] == 0.05
    page = (out / "index.html").read_text()
    for words in (
        "How well Rating is predicted",
        "Better than chance?",
        "With fewer participants",
        "within each participant",
    ):
        assert words in page
    assert not re.search(
        r"\b(groups?|runs?|images?)\b", re.sub(r"<(style|script).*?</\1>|<[^>]*>", "", page, flags=re.S)
    )
    assert not re.findall(r"(?:src|href)=.http", page)  # opens offline
    said = json.loads((out / "regression.json").read_text())
    assert said["images"] == 32 and said["groups"] == 8
    predictions = pd.read_csv(out / "target-Rating_desc-ridge_predictions.tsv", sep="\t")
    np.testing.assert_allclose(predictions["true"], pd.read_csv(table, sep="\t")["Rating"])
    loaded = GAMPRegressor.load(out / "model-vampBgReg")
    weights = nibabel.load(out / "target-Rating_desc-vampBgReg_stat-weight_statmap.nii.gz").get_fdata()
    np.testing.assert_allclose(weights.ravel(), loaded.coef_, rtol=1e-6)
    assert np.unravel_index(weights.argmax(), weights.shape) == (1, 2, 1)
    assert main(["predict", str(out / "model-ridge"), "--maps", str(table)]) == 0


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["--target", "age"], "expected a column of maps.tsv (rating"),
        (["--target", "word"], "expected numbers, got 'high'. Correct the column"),
        (["--target", "level"], "four finite numbers that differ"),
        (["--target", "Rating", "--methods", "svm"], "methods for a number"),
        (["--target", "Rating", "--folds", "stimulus"], "participant or a number of folds"),
        (["--target", "Rating", "--folds", "9"], "2 to 8 folds"),
        (["--target", "Rating", "--scaling", "minmax"], "none, centre, zscore"),
        (
            ["--target", "site", "--learning-curve"],
            "--learning-curve: The targets of every fit must be finite",
        ),
        (["--target", "Rating", "--whiten"], "has no meaning for a --target"),
    ],
)
def test_bad_input_ends_with_a_sentence_and_writes_nothing(
    table, tmp_path, monkeypatch, capsys, extra, message
):
    monkeypatch.chdir(tmp_path)
    assert main(["decode", "--maps", str(table), *extra, "--out", "out"]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1 and not (tmp_path / "out").exists()


def test_names_of_folders_that_cannot_be_written(table, tmp_path, capsys):
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("x" * 300, "link"):
        arguments = ["decode", "--maps", str(table), "--target", "Rating", "--out", str(tmp_path / name)]
        assert main(arguments) == 2
        assert "error: --out" in capsys.readouterr().err
    assert not (tmp_path / "nowhere").exists()


def test_maps_without_any_value_are_one_sentence_and_no_warning(table, tmp_path, capsys):
    empty = nibabel.Nifti1Image(np.zeros((5, 6, 4, 8), dtype=np.float32), np.diag([3.0, 3.0, 3.0, 1.0]))
    nibabel.save(empty, tmp_path / "empty.nii.gz")
    lines = [f"empty.nii.gz\tp{k}\t{k}" for k in range(8)]
    (tmp_path / "maps.tsv").write_text("\n".join(["file\tparticipant\tRating", *lines]) + "\n")
    given = ["decode", "--maps", str(tmp_path / "maps.tsv"), "--target", "Rating"]
    assert main([*given, "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1 and "no voxel" in said[0] and not (tmp_path / "out").exists()


def test_damaged_maps_are_refused(tmp_path, capsys):
    maps = [nibabel.Nifti1Image(np.random.default_rng(k).random((4, 4, 4)), np.eye(4)) for k in range(6)]
    for k, image in enumerate(maps):
        nibabel.save(image, tmp_path / f"{k}.nii.gz")
    lines = [f"{k}.nii.gz\t{k}\t{k}" for k in range(6)]
    (tmp_path / "maps.tsv").write_text("\n".join(["file\tparticipant\tRating", *lines]) + "\n")
    whole = (tmp_path / "3.nii.gz").read_bytes()
    five = nibabel.Nifti1Image(np.zeros((4, 4, 4, 1, 2)), np.eye(4))
    nibabel.save(five, tmp_path / "five.nii.gz")
    for content, words in ((whole[:-40], "3.nii.gz"), ((tmp_path / "five.nii.gz").read_bytes(), "3-D image")):
        (tmp_path / "3.nii.gz").write_bytes(content)
        given = ["decode", "--maps", str(tmp_path / "maps.tsv"), "--target", "Rating"]
        assert main([*given, "--out", str(tmp_path / "out")]) == 2
        said = capsys.readouterr().err
        assert words in said and "--verbose" not in said and not (tmp_path / "out").exists(), said


def test_dropped_voxels_are_a_note_and_no_warning(table, tmp_path, capsys):
    folder = table.parent
    image = nibabel.load(folder / "map-0.nii.gz")
    values = image.get_fdata()
    values[0, 0, :2] = np.inf
    nibabel.save(nibabel.Nifti1Image(values, image.affine), tmp_path / "odd.nii.gz")
    lines = pd.read_csv(table, sep="\t")
    lines["file"] = [str(folder / name) for name in lines["file"]]
    lines.loc[0, "file"] = str(tmp_path / "odd.nii.gz")
    lines.to_csv(tmp_path / "maps.tsv", sep="\t", index=False)
    given = [
        "--maps",
        str(tmp_path / "maps.tsv"),
        "--target",
        "Rating",
        "--mask",
        str(folder / "mask.nii.gz"),
    ]
    assert main(["decode", *given, "--methods", "ridge", "--out", str(tmp_path / "out")]) == 0
    said = capsys.readouterr()
    assert "Note: 2 of 120 voxels of the mask have NaN or infinite values" in said.out and not said.err
    assert "2 of 120 voxels" in (tmp_path / "out" / "index.html").read_text()
