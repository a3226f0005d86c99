"""Information maps and selections of a decoder: numbers and files of the command for the same volumes."""

import json

import nibabel
import numpy as np
import pytest

from mvpa_gamp import GAMPDecoder
from mvpa_gamp.haxby import main
from mvpa_gamp.imaging.labels import read_labels
from mvpa_gamp.report.page import section
from mvpa_gamp.results.files import number, read_tsv
from mvpa_gamp.results.reader import missing_files, read_results

N, FDR = 99, 0.1
STEM = "sub-tiny_contrast-faceMinusHouse_desc-"
IMAGES = (
    "information_stat-corr_statmap", "information_stat-logpfwe_statmap", "information_mask",
    "vampSbgFdr_mask",
)  # fmt: skip


@pytest.fixture(scope="module")
def six_runs(make_tiny, tmp_path_factory):
    return make_tiny(tmp_path_factory.mktemp("six"), ("face", "house"), n_runs=6)


@pytest.fixture(scope="module")
def commanded(six_runs, tmp_path_factory):
    out = tmp_path_factory.mktemp("commanded") / "results"
    asked = ("--methods", "vamp-sbg", "--permutations", str(N), "--fdr", str(FDR), "--quiet")
    assert main(six_runs.options(out, *asked, "--pairs", "face:house")) == 0
    return out / "sub-tiny"


@pytest.fixture(scope="module")
def decoder(six_runs):
    labels = read_labels(six_runs.labels)
    decoder = GAMPDecoder(mask=six_runs.mask, ignore="rest", detrend=True)
    return decoder.fit(six_runs.bold, labels.conditions, groups=labels.runs)


@pytest.fixture(scope="module")
def found(decoder):
    return decoder.information(N), decoder.select(FDR, check=True)


@pytest.fixture(scope="module")
def folder(decoder, found, tmp_path_factory):
    information, selection = found
    out = tmp_path_factory.mktemp("decoded") / "results"
    return decoder.to_bids(out, "tiny", information=information, selection=selection)


def values(path):
    return np.asarray(nibabel.load(path).dataobj)


def test_what_is_found_prints_a_line_per_contrast(found, folder):
    information, selection = (str(each).splitlines() for each in found)
    assert len(selection) == 2 and "at an estimated false-discovery rate of" in selection[1]
    assert len(information) == 2 and information[1].endswith(
        f" of {found[0].records['face-house'].pvalue.size}"
    )
    study = json.loads((folder / "summary.json").read_text())
    assert study["held_out"] == "run" and study["data"]["unit"] == "volumes"  # groups are runs


@pytest.mark.parametrize("name", IMAGES)
def test_images_are_those_of_the_command(commanded, folder, name):
    file = f"{STEM}{name}.nii.gz"
    np.testing.assert_allclose(values(folder / "sub-tiny" / file), values(commanded / file), atol=1e-4)


@pytest.mark.parametrize("table", ["information_voxels", "vampSbgFdr_voxels", "vampSbg_planted"])
def test_tables_are_those_of_the_command(commanded, folder, table):
    ours, theirs = (read_tsv(place / f"{STEM}{table}.tsv") for place in (folder / "sub-tiny", commanded))
    assert len(ours) == len(theirs) > 0
    for own, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(
            [number(own[name]) for name in other],
            [number(other[name]) for name in other],
            rtol=2e-3,
            atol=1e-4,
        )


def test_rows_are_those_of_the_command(commanded, folder):
    for table, keys in (
        ("information", ("voxels", "permutations", "smallest_p_value", "exchanged", "caution")),
        ("inference", ("fdr_voxels", "fdr_p_value", "fdr_selection", "fdr_holds", "status")),
    ):
        ours, theirs = (
            next(
                row
                for row in read_tsv(place / f"sub-tiny_{table}.tsv")
                if row["contrast"] == "faceMinusHouse"
            )
            for place in (folder / "sub-tiny", commanded)
        )
        assert {key: ours[key] for key in keys} == {key: theirs[key] for key in keys}


def test_what_is_returned_is_what_is_written(found, folder):
    information, selection = found
    written = [values(folder / "sub-tiny" / f"{STEM}{name}.nii.gz") for name in IMAGES]
    maps = (information.corr_img, information.logpfwe_img, information.mask_img, selection.mask_img)
    for image, given in zip(written, maps, strict=True):
        np.testing.assert_allclose(given["face-house"].dataobj, image, atol=1e-6)
    turned = information.corr_img["house-face"].dataobj
    np.testing.assert_allclose(turned, -written[0], atol=1e-6)
    record = selection.records["face-house"]
    assert written[3].sum() == record.selected.sum() > 0 and record.n == 2**6 // 2 - 1
    strength = selection.strength_img["face-house"].get_fdata()
    assert strength[written[3] > 0].min() > strength[(written[3] == 0)].max()
    assert set(selection.checks) == set(selection.records) == set(information.records)


def test_folder_is_complete_and_the_page_tells_both(decoder, found, folder):
    information, selection = found
    missing = {path.name for path in missing_files(read_results(folder))}
    assert missing <= {"index.html"}  # a decoder's page is a report of its own
    page = section(read_results(folder), "inference")
    for words in ("Which voxels carry information", selection.records["face-house"].verdict[:40]):
        assert words in page
    only = decoder.generate_report(information=information)
    assert "Which voxels carry information" in only.html and "rate of false discoveries?" not in only.html


def test_a_whitened_decoder_selects_nothing(decoder):
    whitened = GAMPDecoder(whiten=True)
    whitened._data = whitened._model = decoder._data
    with pytest.raises(ValueError, match=r"mixtures of voxels.*whiten=False"):
        whitened.select()
