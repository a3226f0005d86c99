"""A saved model: the same answers in a new process, only numbers in its folder, hostile ones refused."""

import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import nibabel
import numpy as np
import pandas as pd
import pytest
from nilearn.image import index_img
from sklearn.ensemble import RandomForestClassifier

from mvpa_gamp import GAMPDecoder
from mvpa_gamp.__main__ import main
from mvpa_gamp.decoder.model_folder import signature_model
from mvpa_gamp.imaging.errors import DataError

FRESH = """
import sys, numpy as np
from mvpa_gamp import GAMPDecoder
decoder = GAMPDecoder.load(sys.argv[1])
ask = decoder.predict_proba, decoder.decision_function, decoder.predict
np.savez(sys.argv[3], *(each(sys.argv[2]) for each in ask))
"""


@pytest.fixture(scope="module")
def files(planted, tmp_path_factory):
    """A run as a file, and decoders fitted to all."""
    folder = tmp_path_factory.mktemp("models")
    nibabel.save(planted.bold, folder / "bold.nii.gz")
    nibabel.save(index_img(planted.bold, planted.runs == 1), folder / "run-1.nii.gz")
    return folder


@pytest.fixture(scope="module")
def decoder(planted):
    """One whose model has a likelihood."""
    fitted = GAMPDecoder("gamp-sbg-lr", mask=planted.mask, ignore="rest")
    return fitted.fit(planted.bold, planted.y, planted.runs)


@pytest.fixture(scope="module")
def saved(decoder, files):
    return decoder.save(files / "model")


@pytest.mark.parametrize("method", ["gamp-sbg-lr", "vamp-sbg", "lda", "svm"])
def test_answers_are_equal_to_the_bit(planted, files, method, tmp_path):
    fitted = GAMPDecoder(method, mask=planted.mask, ignore="rest").fit(planted.bold, planted.y, planted.runs)
    loaded = GAMPDecoder.load(fitted.save(tmp_path / "model"))
    for scaling in ("own", "training"):
        fitted.predict_scaling = loaded.predict_scaling = scaling
        for ask in ("decision_function", "predict", "predict_proba")[: 2 + (method != "svm")]:
            np.testing.assert_array_equal(
                getattr(fitted, ask)(planted.bold), getattr(loaded, ask)(planted.bold), strict=True
            )
    assert loaded.score(planted.bold, np.where(planted.y == "rest", "face", planted.y)) > 0
    np.testing.assert_array_equal(loaded.coef_, fitted.coef_)
    np.testing.assert_array_equal(
        loaded.coef_img_["face-house"].get_fdata(), fitted.coef_img_["face-house"].get_fdata()
    )


def test_a_new_process_says_the_same_to_the_bit(decoder, saved, files, tmp_path):
    there, out = str(files / "run-1.nii.gz"), tmp_path / "said.npz"
    subprocess.run([sys.executable, "-c", FRESH, str(saved), there, str(out)], check=True)
    asked = (decoder.predict_proba, decoder.decision_function, decoder.predict)
    with np.load(out) as said:
        for name, ask in zip(said.files, asked, strict=True):
            np.testing.assert_array_equal(said[name], ask(there), strict=True)


def test_many_classes_and_numbers_as_names(planted, tmp_path):
    y = np.select([planted.y == "face", planted.y == "house"], [3, 7], 10)
    fitted = GAMPDecoder("gamp-bg-lr", mask=planted.mask).fit(planted.bold, y, planted.runs)
    loaded = GAMPDecoder.load(fitted.save(tmp_path / "model"))
    np.testing.assert_array_equal(loaded.predict_proba(planted.bold), fitted.predict_proba(planted.bold))
    assert loaded.classes_.tolist() == [3, 7, 10] and loaded.contrasts_ == fitted.contrasts_


def test_the_folder_holds_numbers_that_any_tool_reads(planted, decoder, saved):
    said = json.loads((saved / "model.json").read_text())
    one = said["contrasts"][0]
    weights, mean, spread = (
        nibabel.load(saved / name).get_fdata()
        for name in (one["weights"], said["scaling"]["center"], said["scaling"]["spread"])
    )
    inside = nibabel.load(saved / said["mask"]).get_fdata() > 0
    values = planted.bold.get_fdata()[inside].T
    score = ((values - mean[inside]) / spread[inside]) @ weights[inside] + one["intercept"]
    decoder.predict_scaling = "training"
    np.testing.assert_allclose(-decoder.decision_function(planted.bold), score, atol=1e-5)
    decoder.predict_scaling = "own"
    assert one["positive"] == "face" and {path.suffix for path in saved.iterdir()} == {".json", ".gz", ".tsv"}
    table = pd.read_csv(saved / "held_out.tsv", sep="\t")
    assert len(table) == len(decoder.cv_predictions_)


def test_a_loaded_decoder_says_what_it_cannot_do(saved):
    loaded = GAMPDecoder.load(saved)
    for ask in (loaded.permutation_test, loaded.information, loaded.generate_report):
        with pytest.raises(ValueError, match="holds its weights and no images"):
            ask()


def test_what_cannot_be_saved_is_said_and_nothing_is_written(planted, decoder, tmp_path):
    for given, message in (
        ({"method": RandomForestClassifier(5)}, "does not predict by weights"),
        ({"method": "gamp-bg-lr", "whiten": True}, "with whiten or fold_confounds"),
    ):
        fitted = GAMPDecoder(mask=planted.mask, **given).fit(*planted.rows(planted.shown))
        with pytest.raises(ValueError, match=message):
            fitted.save(tmp_path / "model")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    with pytest.raises(DataError, match="expected a new or empty folder"):
        decoder.save(tmp_path / "full")
    assert [path.name for path in tmp_path.iterdir()] == ["full"]


def _edit(name, value):
    def change(folder):
        said = json.loads((folder / "model.json").read_text())
        place = said
        *names, last = name.split(".")
        for each in names:
            place = place[int(each) if each.isdigit() else each]
        place[last] = value
        (folder / "model.json").write_text(json.dumps(said))

    return change


def _weights(folder):
    return folder / json.loads((folder / "model.json").read_text())["contrasts"][0]["weights"]


def _replaced(values, shape=(7, 8, 6), size=3.0):
    def change(folder):
        affine = np.diag([size, size, size, 1.0])
        image = nibabel.Nifti1Image(np.full(shape, values, dtype=np.float32), affine)
        nibabel.save(image, _weights(folder))

    return change


def _linked(folder):
    target = folder.parent / "elsewhere.nii.gz"
    shutil.move(_weights(folder), target)
    _weights(folder).symlink_to(target)


def _linked_json(folder):
    shutil.move(folder / "model.json", folder.parent / "elsewhere.json")
    (folder / "model.json").symlink_to(folder.parent / "elsewhere.json")


class _Bomb:
    def __reduce__(self):
        return os.mkdir, ("was-run",)


def _pickled(folder):
    (folder / "model.json").write_bytes(pickle.dumps(_Bomb()))


HOSTILE = [
    (_linked, "expected a file, found a link"),
    (_linked_json, "expected a file, found a link"),
    (lambda folder: _weights(folder).unlink(), "expected a file, found nothing there"),
    (lambda folder: (folder / "model.json").write_text(" " * 5_000_000), "at most 4,000,000 bytes"),
    (lambda folder: (folder / "model.json").write_text("[" * 100_000), "cannot be read as JSON"),
    (lambda folder: (folder / "model.json").write_text("[1]"), "expected names and values, got list"),
    (lambda folder: (folder / "model.json").write_text('{"format": NaN}'), "it contains NaN"),
    (_pickled, "cannot be read as JSON"),
    (_edit("version", 2), "expected 'mvpa_gamp model' of version 1, got 2"),
    (_edit("classes", ["house", "face"]), "two or more different names in their order"),
    (_edit("classes", ["face", "house", "shoe"]), "contrasts: expected 3 of them"),
    (_edit("contrasts.0.intercept", "0"), "intercept: expected a number, got '0'"),
    (
        _edit("contrasts.0.weights", "../../etc/passwd.nii.gz"),
        "the name of a .nii.gz file in the same folder",
    ),
    (_edit("contrasts.0.positive", "house"), "the pairs of classes in their order"),
    (_edit("cleaning.detrend", "os.system"), "detrend: expected a yes or no"),
    (_edit("cleaning.high_pass", -1), "numbers above 0"),
    (_edit("likelihood.name", "eval"), "likelihood: expected one of logistic"),
    (_edit("likelihood.parameters", {"scale": -1}), "parameters within their range"),
    (_replaced(np.nan), "expected finite numbers, got 120 that are not"),
    (_replaced(1.0, shape=(7, 8, 5)), "grid"),
    (_replaced(1.0, shape=(7, 8, 6, 2)), r"expected a 3-D image, got shape \(7, 8, 6, 2\)"),
    (_replaced(1.0, size=1.0), "grid"),
    (lambda folder: _weights(folder).write_bytes(b"no image"), "cannot be read as an image"),
]


@pytest.mark.parametrize(("change", "message"), HOSTILE)
def test_a_hostile_folder_ends_in_a_sentence(saved, files, tmp_path, monkeypatch, capsys, change, message):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "copy"
    shutil.copytree(saved, folder)
    change(folder)
    with pytest.raises(DataError, match=message):
        GAMPDecoder.load(folder)
    arguments = ["predict", str(folder), "--bold", str(files / "run-1.nii.gz"), "--out", "said.tsv"]
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "error:" in error
    assert not (tmp_path / "said.tsv").exists() and not (tmp_path / "was-run").exists()


# --- images that do not fit


def test_images_on_another_scale_or_grid_are_warned_of(planted, saved):
    loaded = GAMPDecoder.load(saved).set_params(predict_scaling="training")
    larger = nibabel.Nifti1Image(planted.bold.get_fdata() * 50, planted.bold.affine)
    with pytest.warns(UserWarning, match=r"times as large as those that the model was fitted to"):
        loaded.predict(larger)
    shifted = nibabel.Nifti1Image(planted.bold.get_fdata(), np.diag([2.9, 3, 3, 1]))
    with pytest.warns(UserWarning, match="resampl"):
        loaded.predict(shifted)


# --- the command


def test_the_command_writes_what_the_decoder_says(planted, decoder, saved, files, tmp_path, capsys):
    out = tmp_path / "said.tsv"
    arguments = ["predict", str(saved), "--bold", str(files / "run-1.nii.gz"), "--out", str(out)]
    assert main([*arguments, "--scaling", "own"]) == 0
    table = pd.read_csv(out, sep="\t")
    run = str(files / "run-1.nii.gz")
    assert table["predicted"].tolist() == decoder.predict(run).tolist()
    np.testing.assert_allclose(table["probability_face"], decoder.predict_proba(run)[:, 0], rtol=1e-5)
    assert main(arguments) == 2 and "--overwrite" in capsys.readouterr().err
    assert main([*arguments, "--overwrite"]) == 0
    decoder.predict_scaling = "training"
    assert pd.read_csv(out, sep="\t")["predicted"].tolist() == decoder.predict(run).tolist()
    decoder.predict_scaling = "own"


def test_overwrite_replaces_no_file_that_is_read_and_no_other_kind(saved, files, tmp_path, capsys):
    model = Path(shutil.copytree(saved, tmp_path / "model"))
    run, other = shutil.copy(files / "run-1.nii.gz", tmp_path / "run.nii.gz"), tmp_path / "thesis.docx"
    table = tmp_path / "maps.tsv"
    table.write_text("file\nrun.nii.gz\n")
    other.write_text("thesis")
    (model / "notes.tsv").write_text("mine")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for out in (run, table, other, model / "model.json", model / "notes.tsv", model, tmp_path / ("x" * 300)):
        assert main(["predict", str(model), "--maps", str(table), "--out", str(out), "--overwrite"]) == 2
        assert "error: --out" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_table_of_maps_keeps_its_columns_and_order(planted, decoder, saved, tmp_path, capsys):
    rows = np.flatnonzero(planted.shown)[::-7]
    for row in rows:
        nibabel.save(index_img(planted.bold, int(row)), tmp_path / f"map-{row}.nii.gz")
    names = [f"map-{row}.nii.gz" for row in rows]
    lines = pd.DataFrame({"participant": planted.runs[rows], "file": names, "condition": planted.y[rows]})
    lines.to_csv(tmp_path / "maps.tsv", sep="\t", index=False)
    assert (
        main(["predict", str(saved), "--maps", str(tmp_path / "maps.tsv"), "--out", str(tmp_path / "o.tsv")])
        == 0
    )
    table = pd.read_csv(tmp_path / "o.tsv", sep="\t")
    assert table["file"].tolist() == names and table["condition"].tolist() == planted.y[rows].tolist()
    decoder.predict_scaling = "training"
    assert table["predicted"].tolist() == [decoder.predict(index_img(planted.bold, int(r)))[0] for r in rows]
    decoder.predict_scaling = "own"
    assert "predicted as in the column condition" in capsys.readouterr().err


def test_a_published_weight_map(planted, tmp_path, capsys):
    weights = np.zeros((7, 8, 6), dtype=np.float32)
    weights[2, 3, 1], weights[4, 5, 3] = 1.5, -2.0
    nibabel.save(nibabel.Nifti1Image(weights, planted.bold.affine), tmp_path / "signature.nii.gz")
    nibabel.save(index_img(planted.bold, slice(0, 6)), tmp_path / "maps.nii.gz")
    arguments = ["predict", str(tmp_path / "signature.nii.gz"), "--maps", str(tmp_path / "maps.nii.gz")]
    assert main([*arguments, "--intercept", "3", "--out", str(tmp_path / "said.tsv")]) == 0
    table, values = pd.read_csv(tmp_path / "said.tsv", sep="\t"), planted.bold.get_fdata()[..., :6]
    expected = 1.5 * values[2, 3, 1] - 2 * values[4, 5, 3] + 3
    np.testing.assert_allclose(table["score"], expected, rtol=1e-4)
    pair = values[[2, 4], [3, 5], [1, 3]]
    cosine = (expected - 3) / np.hypot(1.5, 2) / np.linalg.norm(pair, axis=0)
    np.testing.assert_allclose(table["cosine"], cosine, rtol=1e-3)
    model = signature_model(tmp_path / "signature.nii.gz", 3.0, planted.mask)
    assert len(model.coef) == 120
    capsys.readouterr()
    assert main([*arguments, "--intercept", "nan"]) == 2 and "finite number" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere", "--maps", "a.nii.gz"], "found no such folder"),
        (["MODEL", "--maps", "nowhere.tsv"], "expected a table, found no file"),
        (["MODEL", "--maps", "none-*.nii.gz"], "expected image files, found none"),
        (["MODEL", "--maps", "a.nii.gz"], "found nothing there"),
        (["MODEL", "--bold", "RUN", "--intercept", "1"], "is for a weight map"),
        (["MODEL", "--maps", "RUN", "--scaling", "own"], "were not scaled within participants"),
        (["TEXT", "--maps", "RUN"], "cannot be read as an image"),
    ],
)
def test_bad_input_ends_with_a_sentence_and_writes_nothing(
    saved, files, tmp_path, monkeypatch, capsys, arguments, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "weights.nii.gz").write_text("no image")
    names = {"MODEL": str(saved), "RUN": str(files / "run-1.nii.gz"), "TEXT": "weights.nii.gz"}
    given = [names.get(word, word) for word in arguments]
    assert main(["predict", *given, "--out", "said.tsv"]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1 and not (tmp_path / "said.tsv").exists()
