"""The decoder's folder and page: names as the Haxby command writes them, numbers as fitted."""

import json
import re

import nibabel
import numpy as np
import pandas as pd
import pytest
from nilearn.image import index_img

from mvpa_gamp import GAMPDecoder
from mvpa_gamp.imaging.disk import WriteError, begin
from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.phantom import Phantom, phantom_images, phantom_labels

SPEC = Phantom(shape=(10, 12, 8), n_runs=4, categories=("cat", "face", "house"), signal=2.5)


@pytest.fixture(scope="module")
def three():
    bold, mask, _, _ = phantom_images(SPEC)
    labels = phantom_labels(SPEC)
    return GAMPDecoder(mask=mask, ignore="rest", detrend=True).fit(bold, labels.conditions, labels.runs)


@pytest.fixture(scope="module")
def folder(three, tmp_path_factory):
    return three.to_bids(tmp_path_factory.mktemp("bids") / "out", subject="phantom")


def test_maps_have_the_names_of_the_command_and_the_values_of_the_fit(three, folder):
    kinds = {
        "weight": three.coef_img_,
        "weightsd": three.coef_std_img_,
        "pip": three.inclusion_img_,
        "pattern": three.pattern_img_,
        "selfreq": three.selection_freq_img_,
    }
    for stat, maps in kinds.items():
        name = f"sub-phantom_contrast-faceMinusHouse_desc-vampSbg_stat-{stat}_statmap"
        written = nibabel.load(folder / "sub-phantom" / f"{name}.nii.gz")
        np.testing.assert_array_equal(written.dataobj, maps["face-house"].dataobj)
        about = json.loads((folder / "sub-phantom" / f"{name}.json").read_text())
        assert next(iter(about)) == "Phantom" and "face (positive)" in about["Contrast"]
    # refits, selected, means over folds; by class
    assert len(list(folder.glob("sub-phantom/*_statmap.nii.gz"))) == 3 * (5 + 1 + 4) + 3 * 4


def test_tables_say_what_was_fitted(three, folder):
    sub = folder / "sub-phantom"
    read = {path.name: pd.read_csv(path, sep="\t") for path in sub.glob("*.tsv")}
    stem = "sub-phantom_contrast-catMinusHouse_desc-vampSbg"
    folds = read[f"{stem}_folds.tsv"]
    np.testing.assert_allclose(
        1 - folds["error_percent"][:-1] / 100, three.contrast_scores_["cat-house"], atol=1e-5
    )
    assert folds["fold"].tolist()[-1] == "refit"
    predictions = read[f"{stem}_predictions.tsv"]
    assert set(predictions["true"]) == {"cat", "house"} and len(predictions) == 2 * 9 * 4
    assert read[f"{stem}_jaccard.tsv"].shape == (4, 5)
    together = read["sub-phantom_contrast-all_desc-vampSbg_predictions.tsv"]
    assert (together["predicted"].to_numpy() == three.cv_predictions_["predicted"].to_numpy()).all()
    confusion = read["sub-phantom_confusion.tsv"]
    counts = confusion[confusion["contrast"] == "all"]["count"].to_numpy().reshape(3, 3)
    np.testing.assert_array_equal(counts, three.confusion_.to_numpy())
    consistency = read["sub-phantom_consistency.tsv"]
    np.testing.assert_allclose(
        consistency["consistency_percent"] / 100, three.stability_["jaccard"], rtol=1e-4
    )
    summary = pd.read_csv(folder / "summary.tsv", sep="\t")
    assert summary["contrast"].tolist()[-1] == "average" and len(summary) == 4
    study = json.loads((folder / "summary.json").read_text())
    assert study["banner"].startswith("SIMULATED PHANTOM")
    assert "PHANTOM" in json.loads((folder / "dataset_description.json").read_text())["Name"]


@pytest.mark.figures
def test_equal_fits_give_equal_bytes(three, folder, tmp_path):
    again = three.to_bids(tmp_path / "again", subject="phantom")
    for path in folder.rglob("*"):
        if path.is_file() and path.name != "written.jsonl":  # whose tokens are random
            assert path.read_bytes() == (again / path.relative_to(folder)).read_bytes(), path.name


def test_the_page_is_one_file_that_tells_everything(three, tmp_path):
    test = three.permutation_test(4)
    report = three.generate_report(subject="phantom", max_contrasts=1, permutation=test)
    report.save_as_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page == report.html and page.startswith("<!DOCTYPE html>")
    for anchor in ("scores", "confusion", "maps", "consistency", "convergence", "methods"):
        assert re.search(f'<section[^>]* id="{anchor}"', page) and f'href="#{anchor}"' in page
    assert "SIMULATED PHANTOM" in page and "Figures show 1 of 3 contrasts" in page
    assert f"p = {test.pvalue:.3g}" in page and f"{100 * three.fold_scores_.mean():.1f} % correct" in page
    assert "http://" not in page.replace("http://www.w3.org", "") and page.count("<script") == 1
    assert not re.findall(r'href="(?!#|data:)', page)  # it stands in no folder
    assert report._repr_html_().startswith("<iframe")


def drawn(page):
    return re.findall(r'class="viewer" data-label="([^"]*)"', page)


def test_contrasts_are_chosen_by_name(three):
    page = three.generate_report(contrasts=["house-face"]).html  # either way round
    assert drawn(page) == ["Viewer of all classes, VAMP sBG", "Viewer of face vs house, VAMP sBG"]
    assert "<h3>cat vs face</h3>" in page  # its answer is there without figures
    assert "Figures show 1 of 3 contrasts" in page
    assert "contrasts=[...]" not in three.generate_report(contrasts=three.contrasts_).html
    page = three.generate_report(contrasts="face-house").html
    assert len(drawn(page)) == 2 and page.count("_maps") == 0
    for wrong, said in (
        (["face-hose"], "'face-house', .*got 'face-hose'"),
        ([], "got none"),
        (["cat"], "'cat'"),
    ):
        with pytest.raises(ValueError, match=rf"contrasts: expected names among contrasts_ .*{said}.*Choose"):
            three.generate_report(contrasts=wrong)


def test_names_that_look_like_markup_stay_text(three):
    page = three.generate_report(title="<script>alert(1)</script>", max_contrasts=1).html
    assert page.count("<script") == 1 and "&lt;script&gt;" in page


def test_one_fold_without_groups_has_a_page_too():
    bold, mask, _, _ = phantom_images(SPEC)
    labels = phantom_labels(SPEC)
    rows = np.isin(labels.conditions, ["face", "house"])
    y, runs = labels.conditions[rows], labels.runs[rows]
    split = [(np.flatnonzero(runs < 3), np.flatnonzero(runs == 3))]
    decoder = GAMPDecoder(mask=mask, cv=split, scoring="roc_auc").fit(index_img(bold, rows), y)
    assert decoder.stability_["jaccard"].isna().all() and len(decoder.fold_scores_) == 1
    page = decoder.generate_report().html
    assert "No groups were given" in page and 'id="consistency"' not in page


def test_class_names_that_share_a_file_name_are_refused(tmp_path):
    rng = np.random.default_rng(0)
    y = np.tile(["a b", "ab", "c"], 8)
    image = nibabel.Nifti1Image(rng.standard_normal((3, 3, 3, 24)), np.eye(4))
    mask = nibabel.Nifti1Image(np.ones((3, 3, 3), dtype=np.uint8), np.eye(4))
    decoder = GAMPDecoder("svm", mask=mask, cv=2).fit(image, y)
    with pytest.raises(ValueError, match="would share the file name"):
        decoder.to_bids(tmp_path)


def test_to_bids_writes_into_no_folder_of_a_command_and_through_no_link(three, tmp_path):
    begin(tmp_path / "study", "decode", "token")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "figures").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "nowhere").symlink_to(tmp_path / "missing")
    before = sorted(tmp_path.rglob("*"))
    for name, said in (
        ("study", "holds results of a command"),
        ("linked", "is a link"),
        ("nowhere", "written"),
    ):
        with pytest.raises((DataError, WriteError), match=said):
            three.to_bids(tmp_path / name)
    assert sorted(tmp_path.rglob("*")) == before
