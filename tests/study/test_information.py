"""Voxels that carry information, written with --permutations; --fdr where runs are few."""

import io
import json
import shutil
from contextlib import redirect_stdout

import nibabel
import numpy as np
import pytest

from mvpa_gamp.decoding import carries_information, make_tasks
from mvpa_gamp.decoding.exchange import blocks_of_volumes
from mvpa_gamp.haxby import main
from mvpa_gamp.imaging.samples import load_samples
from mvpa_gamp.report.facts import maps_to_use
from mvpa_gamp.results.files import number, read_tsv
from mvpa_gamp.results.reader import missing_files, read_results, result_files

pytestmark = pytest.mark.whole

PAIRS = {"faceMinusHouse": ("face", "house"), "faceMinusCat": ("face", "cat")}
N, SEED = 99, 3  # in eight runs there are 256 labellings: random ones are drawn
ENDINGS = ("stat-corr_statmap.nii.gz", "stat-logpfwe_statmap.nii.gz", "mask.nii.gz")


def options(tiny, out, *more):
    chosen = () if "--methods" in more else ("--methods", "gamp-bg-lr", "onebit-cs")
    return tiny.options(out, *chosen, "--pairs", "face:house", "face:cat", "--seed", str(SEED), *more)


@pytest.fixture(scope="module")
def eight_runs(make_tiny, tmp_path_factory):
    return make_tiny(tmp_path_factory.mktemp("eight"), n_runs=8)


@pytest.fixture(scope="module")
def told(eight_runs, tmp_path_factory):
    """A results folder, and what the terminal showed."""
    out = tmp_path_factory.mktemp("informed") / "results"
    with redirect_stdout(io.StringIO()) as said:
        assert main(options(eight_runs, out, "--permutations", str(N), "--quiet")) == 0
    return out, said.getvalue()


@pytest.fixture(scope="module")
def informed(told):
    return told[0]


@pytest.fixture(scope="module")
def direct(eight_runs):
    """The maps of the same samples, without the command."""
    samples = load_samples(eight_runs.bold, eight_runs.labels, eight_runs.mask)
    blocks = blocks_of_volumes(samples.conditions, samples.runs, samples.volumes)
    return {
        task.name: carries_information(
            samples.X[task.rows], task.y, samples.runs[task.rows], N, SEED, blocks=blocks[task.rows]
        )
        for task in make_tasks(samples.conditions, list(PAIRS.values()))
    }


def path_of(out, contrast, ending):
    return out / "sub-tiny" / f"sub-tiny_contrast-{contrast}_desc-information_{ending}"


def mask_of(out):
    return np.asarray(nibabel.load(out / "sub-tiny" / "sub-tiny_desc-analysed_mask.nii.gz").dataobj) > 0


def rows_of(out, table):
    return {
        (row["contrast"], row.get("method")): row
        for row in read_tsv(out / "sub-tiny" / f"sub-tiny_{table}.tsv")
    }


@pytest.mark.parametrize("contrast", PAIRS)
def test_maps_and_mask_are_those_of_carries_information(informed, direct, contrast):
    inside, found = mask_of(informed), direct[contrast]
    corr, logp, mask = (
        np.asarray(nibabel.load(path_of(informed, contrast, ending)).dataobj)[inside] for ending in ENDINGS
    )
    np.testing.assert_allclose(corr, found.correlation, atol=1e-6)  # float32
    np.testing.assert_allclose(logp, -np.log10(found.pvalue), atol=1e-6)
    np.testing.assert_array_equal(mask > 0, found.selected())
    assert found.n == N and 0 < found.selected().sum() < found.pvalue.size
    for ending in ENDINGS:
        sidecar = json.loads(path_of(informed, contrast, ending.replace(".nii.gz", ".json")).read_text())
        assert sidecar["Contrast"].startswith(f"{PAIRS[contrast][0]} (positive)")


@pytest.mark.parametrize("contrast", PAIRS)
def test_the_map_of_what_passed_is_zero_elsewhere_and_recommended(informed, contrast, tmp_path):
    results = read_results(shutil.copytree(informed, tmp_path / "out"))
    everywhere, mask = (
        np.asarray(nibabel.load(path_of(informed, contrast, ENDINGS[n])).dataobj) for n in (0, 2)
    )
    path = results.folder.tested_information("tiny", contrast)
    assert path.name == f"sub-tiny_contrast-{contrast}_desc-informationFwe_{ENDINGS[0]}"
    np.testing.assert_array_equal(nibabel.load(path).dataobj, np.where(mask > 0, everywhere, 0))
    sidecar = json.loads(path.with_name(path.name.replace(".nii.gz", ".json")).read_text())
    assert sidecar["Threshold"] == "family-wise p of 0.05 or less"
    assert maps_to_use(results, "tiny", contrast, "gamp-bg-lr").first == path


@pytest.mark.parametrize("contrast", PAIRS)
def test_the_table_names_every_voxel_the_smallest_p_value_first(informed, direct, contrast):
    rows, found = read_tsv(path_of(informed, contrast, "voxels.tsv")), direct[contrast]
    assert len(rows) == found.selected().sum()
    image = nibabel.load(path_of(informed, contrast, ENDINGS[0]))
    values = np.asarray(image.dataobj)
    for row in rows:
        voxel = tuple(int(row[axis]) for axis in "ijk")
        assert number(row["correlation"]) == pytest.approx(values[voxel], rel=1e-4)  # tables keep few digits
        place = nibabel.affines.apply_affine(image.affine, voxel)
        np.testing.assert_allclose([number(row[f"{axis}_mm"]) for axis in "xyz"], place, atol=1e-3)
    order = [(number(row["p_value"]), -abs(number(row["correlation"]))) for row in rows]
    assert order == sorted(order) and order[-1][0] <= 0.05


def test_the_voxels_with_signal_are_found(informed):
    """write_tiny puts faces into the first slice of the mask and houses into the second."""
    planted = np.zeros((6, 7, 4), dtype=bool)
    planted[1:3, 2:4, 1:3] = True
    values = np.asarray(nibabel.load(path_of(informed, "faceMinusHouse", ENDINGS[0])).dataobj)
    selected = np.asarray(nibabel.load(path_of(informed, "faceMinusHouse", ENDINGS[2])).dataobj) > 0
    assert selected[planted].all() and np.count_nonzero(selected & ~planted) <= 1
    assert (values[1, 2:4, 1:3] > 0).all() and (values[2, 2:4, 1:3] < 0).all()


def test_the_row_of_a_comparison_sums_it_up(informed, direct):
    rows = rows_of(informed, "information")
    assert [contrast for contrast, _ in rows] == list(PAIRS)
    for (contrast, _), row in rows.items():
        found = direct[contrast]
        peak = np.argmax(np.abs(found.correlation))
        assert row["voxels"] == str(found.selected().sum()) and row["permutations"] == str(N)
        assert number(row["smallest_p_value"]) == pytest.approx(found.pvalue.min(), rel=1e-4)
        assert number(row["peak_correlation"]) == pytest.approx(found.correlation[peak], rel=1e-4)
        assert row["exchanged"] == "block" and (row["caution"] == "n/a") == (not found.caution)


def test_the_folder_promises_these_files(informed, tmp_path):
    results = read_results(informed)
    promised = {path.relative_to(informed).as_posix() for path in result_files(results)}
    found = (path for path in informed.rglob("sub-*") if "information" in path.name)
    written = {path.relative_to(informed).as_posix() for path in found}
    assert len(written) == 2 * (4 + 4 + 1) + 1 and written <= promised
    listed = {row["path"] for row in read_tsv(informed / "logs" / "manifest.tsv")}
    assert written <= listed
    out = shutil.copytree(informed, tmp_path / "out")
    gone = path_of(out, "faceMinusCat", ENDINGS[2])
    gone.unlink()
    assert missing_files(read_results(out)) == [gone]
    assert main(["--out", str(out), "--resume", "--quiet"]) == 0
    assert (out / "logs" / "manifest.tsv").read_text() == (informed / "logs" / "manifest.tsv").read_text()


def test_page_and_terminal_tell_it(told):
    out, said = told
    page = (out / "index.html").read_text()
    assert "<h3>Which voxels carry information about the labels?</h3>" in page
    for row in rows_of(out, "information").values():
        assert f'<data value="{row["smallest_p_value"]}">' in page
        words = f"{row['comparison']}: {row['voxels']} voxels carry information about the labels"
        assert f"{words} (family-wise p <= 0.05, {N} permutations)" in said


def test_where_few_labellings_exist_all_are_used_and_it_is_said(tiny, tmp_path):
    out = tmp_path / "out"
    assert main(options(tiny, out, "--permutations", "40", "--quiet")) == 0
    row = rows_of(out, "information")["faceMinusHouse", None]
    assert row["permutations"] == str(2**4 - 1) and row["voxels"] == "0"
    # An exchange of all blocks gives the same |correlation|: 2 of 16.
    assert number(row["smallest_p_value"]) == pytest.approx(2 / 16)
    words = "Only 16 label vectors"
    assert words in row["caution"] and words in (out / "index.html").read_text()


def test_without_permutations_nothing_of_it_is_there(finished):
    assert not list(finished.rglob("*information*"))
    assert "information" not in json.loads((finished / "summary.json").read_text())
    assert "carry information about the labels" not in (finished / "index.html").read_text()


# --- a rate for methods with and without neighbours


@pytest.fixture(scope="module")
def both(tiny, tmp_path_factory):
    out = tmp_path_factory.mktemp("both") / "results"
    chosen = ("--methods", "gamp-bg-lr", "gamp-sbg-lr", "--fdr", "0.1", "--quiet")
    with redirect_stdout(io.StringIO()) as said:
        assert main(options(tiny, out, *chosen)) == 0
    return out, said.getvalue()


def test_four_runs_are_too_few_for_a_small_rate_and_it_is_said_instead_of_checked(both):
    out, _ = both
    rows = rows_of(out, "inference")
    assert {method for _, method in rows} == {"gamp-bg-lr", "gamp-sbg-lr"}
    words = "only 8 arrangements of the labels were available, too few for a rate below 0.12."
    for row in rows.values():
        assert row["status"] == "ok" and row["fdr_voxels"] == "0" and row["fdr_holds"] == "n/a"
        assert row["fdr_verdict"] == row["fdr_selection"] and words in row["fdr_verdict"]
    assert len(list((out / "sub-tiny").glob("*Fdr_mask.nii.gz"))) == 4
    assert not list((out / "sub-tiny").glob("*_planted.tsv"))
    assert not missing_files(read_results(out))
    assert (out / "index.html").read_text().count(words) == 4


def test_no_line_of_the_terminal_ends_with_nothing(both):
    said = [line for line in both[1].splitlines() if "GAMP sBG-LR:" in line or "GAMP BG-LR:" in line]
    assert len([line for line in said if "voxels at FDR 0.1 (no voxel can" in line]) == 4
    assert not [line for line in said if line.rstrip().endswith(":")]
