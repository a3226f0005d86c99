"""Permutations, selection at a rate and learning curves from the command line: files, resume, workers."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import nibabel
import numpy as np
import pytest

from mvpa_gamp.decoding import (
    calibrate,
    cross_validate,
    learning_curve,
    make_tasks,
    permutation_test,
)
from mvpa_gamp.decoding.exchange import blocks_of_volumes
from mvpa_gamp.decoding.fit import Scheme
from mvpa_gamp.haxby import main
from mvpa_gamp.imaging.samples import load_samples
from mvpa_gamp.methods import METHODS
from mvpa_gamp.report.figures.nulls import learning_curves
from mvpa_gamp.report.inference import floor_words, has_values
from mvpa_gamp.results.files import number, read_tsv, write_tsv
from mvpa_gamp.results.reader import Results, read_results
from mvpa_gamp.study import jobs
from mvpa_gamp.study.analyses.inference import permutation_words

pytestmark = pytest.mark.whole

ROOT = Path(__file__).parents[2]
ASKED = ("--permutations", "40", "--max-inclusion", "--fdr", "0.2", "--learning-curve")
METHODS_USED = ("--methods", "gamp-bg-lr", "onebit-cs")
STEM = "sub-tiny_contrast-faceMinusHouse_desc-gampBgLr"

# Ends the process with SIGKILL in the moment the second answer would be stored.
KILLED = """
import os, signal, sys
from mvpa_gamp.study import jobs
write, count = jobs.write_npz, []
def write_or_die(path, arrays):
    count.append(path)
    if len(count) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return write(path, arrays)
jobs.write_npz = write_or_die
from mvpa_gamp.haxby import main
sys.exit(main(sys.argv[1:]))
"""


def manifest(out: Path) -> str:
    return (out / "logs" / "manifest.tsv").read_text()


def options(tiny, out, *more):
    return tiny.options(out, *METHODS_USED, "--pairs", "face:house", "--quiet", *more)


@pytest.fixture(scope="module")
def inferred(tiny, tmp_path_factory):
    out = tmp_path_factory.mktemp("inferred") / "results"
    assert main(options(tiny, out, *ASKED)) == 0
    return out


@pytest.fixture(scope="module")
def pair(tiny):
    """X, labels, runs and blocks of the comparison, as the command sees them."""
    samples = load_samples(tiny.bold, tiny.labels, tiny.mask)
    (task,) = make_tasks(samples.conditions, [("face", "house")])
    blocks = blocks_of_volumes(samples.conditions, samples.runs, samples.volumes)
    rows = task.rows
    return samples.X[rows], task.y, samples.runs[rows], blocks[rows]


def row_of(out):
    (row,) = read_tsv(out / "sub-tiny" / "sub-tiny_inference.tsv")
    return row


def values(out, ending):
    mask = np.asarray(nibabel.load(out / "sub-tiny" / "sub-tiny_desc-analysed_mask.nii.gz").dataobj) > 0
    return np.asarray(nibabel.load(out / "sub-tiny" / f"{STEM}{ending}.nii.gz").dataobj)[mask]


def test_the_null_is_that_of_the_permutation_test(inferred, pair):
    X, y, runs, blocks = pair
    test = permutation_test(
        METHODS["gamp-bg-lr"], X, y, runs, 40, max_inclusion=True, scheme=Scheme(blocks=blocks)
    )
    written = read_tsv(inferred / "sub-tiny" / f"{STEM}_permutations.tsv")
    np.testing.assert_allclose([number(line["accuracy"]) for line in written], test.null, atol=1e-5)
    np.testing.assert_allclose(
        [number(line["max_inclusion"]) for line in written], test.max_inclusion, rtol=1e-5
    )
    row = row_of(inferred)
    assert number(row["p_value"]) == pytest.approx(test.pvalue, rel=1e-5)
    assert row["p_value_holm"] == row["p_value"]  # one comparison
    assert number(row["accuracy_percent"]) == pytest.approx(100 * test.score, rel=1e-5)
    assert row["labellings"] == str(2**4) and row["exchanged"] == "block"
    fits = cross_validate(METHODS["gamp-bg-lr"], X, y, runs).folds
    p = test.family_wise(fits.inclusion.mean(axis=1))
    np.testing.assert_allclose(values(inferred, "_stat-logpfwe_statmap"), -np.log10(p), atol=1e-5)


def test_the_observed_accuracy_is_that_of_the_summary(inferred):
    summary = next(r for r in read_tsv(inferred / "summary.tsv") if r["method"] == "gamp-bg-lr")
    assert number(row_of(inferred)["accuracy_percent"]) == pytest.approx(
        100 - number(summary["error_percent"]), abs=1e-3
    )


def test_the_selection_is_that_of_calibrate_and_checked(inferred, pair):
    X, y, runs, blocks = pair
    chosen = calibrate(METHODS["gamp-bg-lr"], X, y, runs, scheme=Scheme(blocks=blocks)).select(
        0.2, of="voxel"
    )
    selected = values(inferred, "Fdr_mask") > 0
    np.testing.assert_array_equal(selected, chosen.selected)
    row = row_of(inferred)
    assert row["fdr_voxels"] == str(selected.sum()) and selected.any()
    assert number(row["fdr_p_value"]) == 1 / 8 and row["fdr_selection"] == chosen.verdict
    assert number(row["fdr_estimate_percent"]) == pytest.approx(100 * chosen.estimate, rel=1e-4)
    voxels = read_tsv(inferred / "sub-tiny" / f"{STEM}Fdr_voxels.tsv")
    strengths = [number(line["strength"]) for line in voxels]
    expected = np.sort(chosen.strength[chosen.selected])[::-1]
    np.testing.assert_allclose(strengths, expected, rtol=1e-4)  # tables keep few digits
    assert row["fdr_holds"] in ("true", "false") and "false" in row["fdr_verdict"]
    planted = read_tsv(inferred / "sub-tiny" / f"{STEM}_planted.tsv")
    assert number(planted[0]["size"]) == 0 and len(planted) == 4
    assert {line["nominal_rate"] for line in planted} == {"0.2"}
    about = json.loads((inferred / "sub-tiny" / f"{STEM}Fdr_mask.json").read_text())
    assert row["fdr_verdict"] in about["Description"]


def test_the_curve_is_that_of_learning_curve(inferred, pair):
    X, y, runs, _ = pair
    curve = learning_curve(METHODS["gamp-bg-lr"], X, y, runs)
    written = read_tsv(inferred / "sub-tiny" / f"{STEM}_learningcurve.tsv")
    measured = [line for line in written if line["accuracy"] != "n/a"]
    assert [int(line["n_train_runs"]) for line in measured] == curve.n_train_runs.tolist()
    np.testing.assert_allclose([number(line["accuracy"]) for line in measured], curve.accuracy, atol=1e-5)
    assert bool(curve.refusal) == (len(measured) == len(written))
    assert not curve.refusal or row_of(inferred)["curve"] == curve.refusal


def test_the_page_shows_all_of_it(inferred):
    page = (inferred / "index.html").read_text()
    row = row_of(inferred)
    for words in (
        'id="inference"', "Is it better than chance?", "Which voxels are needed given", "How many runs",
        f'<data value="{row["p_value"]}">', "Not tested here: OneBitCS", "Phipson", "Tusher", "stat-logpfwe",
        "Which voxels carry information",
    ):  # fmt: skip
        assert words in page, words
    for name in ("permutations", "learningcurve"):
        assert (inferred / "figures" / f"sub-tiny_{name}.svg").is_file()


@pytest.mark.parametrize(("smallest", "few"), [("0.0322581", False), ("0.0625", True)])
def test_a_rounded_p_value_is_no_lack_of_labellings(smallest, few, inferred):
    class Rounded(Results):
        def inference_rows(self):
            return [{**row, "smallest_p_value": smallest} for row in super().inference_rows()]

    read = read_results(inferred)
    inference = {**read.inference, "permutations": 30}  # 1 / 31 is rounded up in the table
    results = Rounded(read.folder, replace(read.summary, inference=inference), read.rows, read.texts)
    said = floor_words(results)
    assert ("because the labels can be arranged in" in said) == few


@pytest.mark.parametrize(("known", "drawn"), [(2, True), (1, False)])
def test_a_legend_names_a_prediction_only_where_a_line_is_drawn(known, drawn, inferred, tmp_path):
    copy = shutil.copytree(inferred, tmp_path / "copy")
    path = copy / "sub-tiny" / f"{STEM}_learningcurve.tsv"
    rows = [{**row, "predicted": "n/a" if k >= known else "0.7"} for k, row in enumerate(read_tsv(path))]
    write_tsv(path, list(rows[0]), rows)
    assert has_values(read_results(copy), "tiny", "predicted") == drawn
    words = b"predicted for independent voxels"
    assert (words in learning_curves(read_results(copy), "tiny")) == drawn


@pytest.mark.slow
@pytest.mark.figures
def test_killed_and_resumed_is_identical_to_unbroken(inferred, tiny, tmp_path):
    out = tmp_path / "killed"
    command = [sys.executable, "-c", KILLED, *options(tiny, out, *ASKED)]
    killed = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    assert not (out / "summary.json").exists()
    stored = {path: path.stat().st_mtime_ns for path in (out / "work").glob("*.npz")}
    assert len(stored) == 3  # two fits and the first answer
    assert main(["--out", str(out), "--resume", "--quiet"]) == 0
    assert manifest(out) == manifest(inferred)
    assert all(path.stat().st_mtime_ns == when for path, when in stored.items())


@pytest.mark.slow
@pytest.mark.parametrize("workers", [("--n-jobs", "2"), ("--dask", "local:2")])
def test_workers_change_nothing(inferred, tiny, tmp_path, workers):
    if workers[0] == "--dask":
        pytest.importorskip("distributed")
    out = tmp_path / "out"
    assert main(options(tiny, out, *ASKED, *workers)) == 0
    assert manifest(out) == manifest(inferred)


@pytest.mark.slow
def test_a_finished_study_can_be_tested_afterwards(inferred, tiny, tmp_path):
    out = tmp_path / "out"
    assert main(options(tiny, out)) == 0
    assert "inference" not in json.loads((out / "summary.json").read_text())
    fits = {path: path.stat().st_mtime_ns for path in (out / "work").glob("*_fits.npz")}
    assert main(["--out", str(out), "--resume", "--quiet", *ASKED]) == 0
    assert manifest(out) == manifest(inferred)
    assert all(path.stat().st_mtime_ns == when for path, when in fits.items())


def test_the_bar_counts_permutations_that_were_asked_for(make_tiny, tmp_path, capsys):
    data = make_tiny(tmp_path / "data", n_runs=6)
    out = tmp_path / "out"
    used = ("--methods", "gamp-bg-lr", "--pairs", "face:house")
    assert main(data.options(out, *used, "--permutations", "7", "--quiet")) == 0
    capsys.readouterr()
    assert main(["--out", str(out), "--resume", "--permutations", "60"]) == 0
    assert re.search(r"\[60 of 60 permutations", capsys.readouterr().err)


def test_an_answer_that_is_damaged_is_asked_for_again(inferred, tmp_path):
    out = shutil.copytree(inferred, tmp_path / "out")
    next((out / "work").glob("*_planted.npz")).write_bytes(b"not an archive")
    cut = next((out / "work").glob("*_permutations-0001.npz"))
    cut.write_bytes(cut.read_bytes()[:-40])  # begins like an archive, and has lost its end
    assert main(["--out", str(out), "--resume", "--quiet"]) == 0
    assert manifest(out) == manifest(inferred)


def test_inference_that_fails_is_told_and_the_rest_stays(tiny, tmp_path, monkeypatch, capsys):
    def broken(*args, **kwargs):
        raise FloatingPointError("no such luck")

    monkeypatch.setattr(jobs, "joint_null", broken)
    out = tmp_path / "out"
    assert main(options(tiny, out, "--permutations", "5")) == 1
    assert row_of(out)["status"] == "failed: FloatingPointError: no such luck"
    assert "no such luck" in capsys.readouterr().err
    assert "no such luck" in (out / "index.html").read_text()
    assert (out / "sub-tiny" / f"{STEM}_stat-weight_statmap.nii.gz").is_file()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--permutations", "-3"), r"--permutations: expected 1 or more, got -3"),
        (("--max-inclusion",), r"Give --permutations 1000"),
        (("--fdr", "1.5"), r"--fdr: expected a rate between 0 and 1, got 1\.5"),
        (
            ("--fdr", "0.1", "--methods", "onebit-cs"),
            r"--fdr is for GAMP .*, got onebit-cs\. Add",
        ),
        (("--fdr", "0.1", "--methods", "gamp-l1-lr"), r"--fdr is for GAMP methods with inclusion"),
        (
            ("--permutations", "9", "--methods", "cdn"),
            r"methods without a nested search in every fit .*, got cdn",
        ),
    ],
)
def test_what_cannot_be_inferred_is_refused_before_anything_is_written(given, words, tiny, tmp_path, capsys):
    out = tmp_path / "out"
    methods = () if "--methods" in given else METHODS_USED
    assert main(tiny.options(out, *methods, "--pairs", "face:house", *given)) == 2
    assert re.search(words, capsys.readouterr().err)
    assert not out.exists()


def test_a_learning_curve_needs_runs(make_tiny, tmp_path, capsys):
    few = make_tiny(tmp_path / "few", n_runs=2)
    assert main(few.options(tmp_path / "out", "--methods", "gamp-bg-lr", "--learning-curve")) == 2
    assert "--learning-curve needs 3 runs or more, got 2" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_before_the_start_it_is_said_which_methods_get_permutations():
    """600 of 1,000 expected: two of five methods get none, for a reason that is known before."""
    names = ("l1-lr-cv", "gamp-l1-lr", "gamp-bg-lr", "onebit-cs", "vamp-sbg")
    methods = [METHODS[name] for name in names]
    drawn, every = SimpleNamespace(n=200, is_exact=False), SimpleNamespace(n=63, is_exact=True)
    said = permutation_words(SimpleNamespace(fdr=0.05), [None], methods, [drawn] * 3)
    assert said.startswith("Permutations: 200 for GAMP L1-LR, GAMP BG-LR, VAMP sBG, 600 in all (1 comp")
    assert "; none for L1-LR (CV), OneBitCS, whose nested cross-validation" in said
    assert "; no selection at FDR 0.05 for GAMP L1-LR (no inclusion" in said and "--methods vamp-sbg" in said
    plain = SimpleNamespace(fdr=None)
    assert permutation_words(plain, [None], methods[-1:], [drawn]) == "Permutations: 200 for VAMP sBG."
    assert permutation_words(plain, [None], methods[-1:], [every]) == (
        "Permutations: all 63 other arrangements of the labels for VAMP sBG."
    )
    assert permutation_words(plain, [None] * 2, methods[-1:], [every, drawn]) == (
        "Permutations: 200 (all 63 other arrangements of the labels where no more exist) for VAMP sBG, "
        "263 in all (2 comparisons x 1 method)."
    )
    assert permutation_words(plain, [None], methods, []) == ""
