"""The command from volumes to a results folder: what it writes, and that it writes it again."""

import io
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import nibabel
import numpy as np
import pytest

from mvpa_gamp.haxby import build_parser, main, study_settings
from mvpa_gamp.imaging.source import OwnFiles
from mvpa_gamp.methods import METHODS
from mvpa_gamp.results.files import number, read_tsv
from mvpa_gamp.study.options import KNOWN_METHODS

pytestmark = pytest.mark.whole

ROOT = Path(__file__).parents[1]
STATS = ("weight", "pattern", "selfreq")

# Ends the process with SIGKILL in the moment the third unit would be stored.
KILLED = """
import os, signal, sys
from mvpa_gamp.study import jobs
save, count = jobs.save_fits, []
def save_or_die(path, fits, fingerprint):
    count.append(path)
    if len(count) == 3:
        os.replace = lambda *names: os.kill(os.getpid(), signal.SIGKILL)  # all is written but the name
    save(path, fits, fingerprint)
jobs.save_fits = save_or_die
from mvpa_gamp.haxby import main
sys.exit(main(sys.argv[1:]))
"""


def manifest(out: Path) -> str:
    """Digests of all tables and maps."""
    return (out / "logs" / "manifest.tsv").read_text()


def results_bytes(out: Path) -> dict[str, bytes]:
    """Tables and maps, without what may differ: run times, the page that shows them, logs and stored fits."""
    left_out = {"timings.tsv", "index.html"}
    files = [p for p in out.rglob("*") if p.is_file() and p.name not in left_out]
    files = [p for p in files if p.relative_to(out).parts[0] not in ("logs", "work")]
    return {p.relative_to(out).as_posix(): p.read_bytes() for p in files}


def test_the_folder_has_the_promised_layout(finished):
    names = {path.name for path in finished.iterdir()}
    assert names == {
        "dataset_description.json", "index.html", "summary.tsv", "summary.json", "timings.tsv", "config.toml",
        "cobidas_multivariate.tsv", "sub-tiny", "figures", "logs", "work", "README.md", ".bidsignore",
    }  # fmt: skip
    for table in ("consistency", "confusion", "clusters"):
        assert (finished / "sub-tiny" / f"sub-tiny_{table}.tsv").is_file()
    for stat in STATS:
        stem = f"sub-tiny/sub-tiny_contrast-faceMinusHouse_desc-onebitCs_stat-{stat}_statmap"
        assert (finished / f"{stem}.nii.gz").is_file()
        about = json.loads((finished / f"{stem}.json").read_text())
        assert about["Method"] == "onebit-cs"
        assert "Phantom" not in about


def test_maps_have_the_grid_of_the_mask_and_are_zero_outside(finished, tiny):
    mask = nibabel.load(tiny.mask)
    maps = sorted((finished / "sub-tiny").glob("*_statmap.nii.gz"))
    # comparisons x methods x (refit, its selected voxels, mean over folds, 4 folds)
    assert len(maps) == 3 * 2 * (3 + 1 + 2 + 4)
    for path in maps:
        image = nibabel.load(path)
        assert image.shape == mask.shape
        np.testing.assert_array_equal(image.affine, mask.affine)
        assert not np.asarray(image.dataobj)[np.asarray(mask.dataobj) == 0].any()


def test_the_summary_agrees_with_predictions_folds_and_maps(finished):
    folder = finished / "sub-tiny"
    for row in read_tsv(finished / "summary.tsv"):
        if row["contrast"] == "average":
            continue
        desc = {"onebit-cs": "onebitCs", "cdn": "cdn"}[row["method"]]
        stem = f"sub-tiny_contrast-{row['contrast']}_desc-{desc}"
        predictions = read_tsv(folder / f"{stem}_predictions.tsv")
        wrong = [r["true"] != r["predicted"] for r in predictions]
        assert number(row["error_percent"]) == pytest.approx(100 * np.mean(wrong), abs=1e-3)
        folds = read_tsv(folder / f"{stem}_folds.tsv")
        assert [r["fold"] for r in folds] == ["1", "2", "3", "4", "refit"]
        voxels = [int(r["voxels"]) for r in folds[:-1]]
        assert number(row["voxels"]) == pytest.approx(np.mean(voxels), abs=1e-3)
        frequency = np.asarray(nibabel.load(folder / f"{stem}_stat-selfreq_statmap.nii.gz").dataobj)
        assert frequency.sum() == pytest.approx(np.mean(voxels), rel=1e-5)
        matrix = read_tsv(folder / f"{stem}_jaccard.tsv")
        values = np.array([[number(r[c]) for c in r if c != "held_out_run"] for r in matrix])
        off = values[~np.eye(4, dtype=bool)].mean()
        assert number(row["consistency_percent"]) == pytest.approx(100 * off, abs=1e-3)


def test_fold_maps_differ_and_their_mean_is_the_mean_map(finished):
    folder = finished / "sub-tiny"
    stem = "sub-tiny_contrast-faceMinusCat_desc-cdn"
    if not (folder / f"{stem}_folds.tsv").exists():
        stem = "sub-tiny_contrast-catMinusFace_desc-cdn"
    folds = [
        np.asarray(nibabel.load(folder / f"{stem}Fold{k:02d}_stat-weight_statmap.nii.gz").dataobj)
        for k in (1, 2, 3, 4)
    ]
    assert all(np.any(folds[0] != other) for other in folds[1:])
    mean = np.asarray(nibabel.load(folder / f"{stem}FoldMean_stat-weight_statmap.nii.gz").dataobj)
    np.testing.assert_allclose(mean, np.mean(folds, axis=0), rtol=1e-5, atol=1e-7)  # float32 files


def test_a_fold_map_is_what_a_separate_fit_of_that_fold_gives(finished, tiny):
    from mvpa_gamp.imaging.samples import load_samples

    samples = load_samples(tiny.bold, tiny.labels, tiny.mask)
    rows = np.isin(samples.conditions, ["face", "house"])
    y = np.where(samples.conditions[rows] == "face", 1.0, -1.0)
    runs = samples.runs[rows]
    y[runs == 2] = np.nan
    fit = METHODS["onebit-cs"].fit_folds(samples.X[rows], y, (runs != 2)[:, None], runs)
    path = (
        finished
        / "sub-tiny"
        / "sub-tiny_contrast-faceMinusHouse_desc-onebitCsFold03_stat-weight_statmap.nii.gz"
    )
    saved = np.asarray(nibabel.load(path).dataobj)[np.asarray(nibabel.load(tiny.mask).dataobj) > 0]
    np.testing.assert_array_equal(saved, fit.coef[:, 0].astype(np.float32))


@pytest.mark.figures
def test_two_runs_are_identical_and_config_repeats_a_run(finished, tmp_path):
    again = tmp_path / "again"
    assert main(["--config", str(finished / "config.toml"), "--out", str(again), "--quiet"]) == 0
    assert manifest(again) == manifest(finished)
    assert results_bytes(again) == results_bytes(finished)  # figures too


@pytest.mark.figures
def test_killed_and_resumed_is_identical_to_unbroken(finished, tiny, tmp_path):
    out = tmp_path / "killed"
    options = tiny.options(out, "--methods", "onebit-cs", "cdn", "--pairs", "all", "--fold-maps", "--quiet")
    child = subprocess.run([sys.executable, "-c", KILLED, *options], cwd=ROOT, env=dict(os.environ))
    assert child.returncode == -signal.SIGKILL
    assert not (out / "summary.tsv").exists()
    assert len(list((out / "work").glob("*.npz"))) == 2
    assert main([*options, "--resume"]) == 0
    assert results_bytes(out) == results_bytes(finished)  # figures too
    assert manifest(out) == manifest(finished)
    assert not list(out.rglob(".writing-*"))


def test_a_terminal_without_utf8_ends_no_run(tiny, tmp_path, monkeypatch):
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    assert main(tiny.options(tmp_path / "ascii", "--methods", "onebit-cs")) == 0
    assert b"95.0 ? 5.0" in written.getvalue()


def test_several_processes_give_the_same_results(finished, tiny, tmp_path):
    out = tmp_path / "parallel"
    options = tiny.options(out, "--methods", "onebit-cs", "cdn", "--pairs", "all", "--fold-maps", "--quiet")
    assert main([*options, "--n-jobs", "2"]) == 0
    assert manifest(out) == manifest(finished)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of Dask, when it ends its processes
def test_a_dask_cluster_gives_the_same_results(finished, tiny, tmp_path):
    pytest.importorskip("distributed")
    out = tmp_path / "cluster"
    options = tiny.options(out, "--methods", "onebit-cs", "cdn", "--pairs", "all", "--fold-maps", "--quiet")
    assert main([*options, "--dask", "local:2"]) == 0
    assert manifest(out) == manifest(finished)


def test_labels_of_a_run_do_not_reach_the_fold_that_holds_it_out(tiny, tmp_path):
    lines = tiny.labels.read_text().splitlines()
    swap = {"face": "house", "house": "face"}
    noisy = [
        f"{swap.get(label, label)}\t{run}" if run == "1" and i % 2 else line
        for i, line in enumerate(lines)
        for label, run in [line.split("\t")]
    ]
    labels = tmp_path / "noisy.tsv"
    labels.write_text("\n".join(noisy) + "\n")
    options = ("--pairs", "face:house", "--fold-maps", "--quiet")
    clean = tmp_path / "clean"
    assert main(tiny.options(clean, *options)) == 0
    given = tiny.options(tmp_path / "noise", *options)
    given[given.index("--labels") + 1] = str(labels)
    assert main(given) == 0
    name = "sub-tiny/sub-tiny_contrast-faceMinusHouse_desc-onebitCsFold{:02d}_stat-weight_statmap.nii.gz"
    same = [
        (clean / name.format(k)).read_bytes() == (tmp_path / "noise" / name.format(k)).read_bytes()
        for k in (1, 2, 3, 4)
    ]
    assert same == [False, True, False, False]  # run 1 is held out by the second fold


@pytest.mark.figures
def test_reports_only_rebuilds_the_page_from_the_folder(finished, tmp_path):
    import shutil

    copy = shutil.copytree(finished, tmp_path / "copy")
    before = (copy / "index.html").read_bytes()
    shutil.rmtree(copy / "figures")
    shutil.rmtree(copy / "work")
    (copy / "index.html").unlink()
    assert main(["--reports-only", "--out", str(copy), "--quiet"]) == 0
    assert (copy / "index.html").read_bytes() == before


def test_each_result_is_printed_once_then_three_lines_say_what_it_comes_to(tiny, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(tiny.options(out, "--pairs", "face:house", "face:cat")) == 0
    said = capsys.readouterr()
    assert said.out.count("face vs house") == said.out.count("face vs cat") == said.out.count("average") == 1
    assert "Accuracy %" in said.out and "rror" not in said.out
    assert "[1/2" in said.err  # plain lines where stderr is no terminal ...
    assert not re.search(r"OneBitCS: \d", said.err)  # ... which repeat nothing of the table
    answered, page, then = said.err.splitlines()[-3:]
    over = r"on average over 2 comparisons \(\d+\.\d to \d+\.\d %; chance 50 %\)"
    assert re.fullmatch(rf"Answer: OneBitCS \(onebit-cs\), \d+\.\d % correct {over}", answered)
    assert page == f"Page: {out / 'index.html'}"
    assert then.startswith("Next: ") and "--methods onebit-cs vamp-sbg --resume" in then


def test_a_quiet_run_prints_the_table_once(tiny, tmp_path, capsys):
    assert main(tiny.options(tmp_path / "out", "--pairs", "face:house", "--quiet")) == 0
    said = capsys.readouterr()
    assert said.out.count("face vs house") == said.out.count("Accuracy (%)") == 1
    assert said.err == ""


def test_selected_voxels_are_a_mask_and_a_thresholded_map_with_headers_for_viewers(finished, phantom_results):
    for root, name in ((finished, "sub-tiny"), (phantom_results, "sub-phantom")):
        masks = sorted((root / name).glob("*Selected_mask.nii.gz"))
        assert len(masks) == sum(row["contrast"] != "average" for row in read_tsv(root / "summary.tsv"))
        listed = (root / "logs" / "manifest.tsv").read_text()
        for path in masks:
            stem = path.name.removesuffix("Selected_mask.nii.gz")
            mask = nibabel.load(path)
            whole, kept = (
                nibabel.load(root / name / f"{stem}{which}_stat-weight_statmap.nii.gz")
                for which in ("", "Selected")
            )
            inside = np.asarray(mask.dataobj) > 0
            np.testing.assert_array_equal(
                np.asarray(kept.dataobj), np.where(inside, np.asarray(whole.dataobj), 0)
            )
            folds = read_tsv(root / name / f"{stem}_folds.tsv")
            assert inside.sum() == int(folds[-1]["voxels"])
            assert (mask.header["intent_code"], kept.header["intent_code"]) == (1002, 1001)
            assert (mask.header["cal_min"], mask.header["cal_max"]) == (0, 1)
            top = np.abs(np.asarray(kept.dataobj)).max()
            assert kept.header["cal_max"] == pytest.approx(top) and kept.header["cal_min"] in (-top, 0)
            told = bytes(kept.header["descrip"]).decode()
            assert "weight" in told and ("PHANTOM" in told) == (name == "sub-phantom")
            assert path.name in listed and kept.get_filename().rpartition("/")[2] in listed
            about = json.loads(path.with_name(f"{stem}Selected_mask.json").read_text())
            assert about["Type"] == "ROI" and about["Method"]


def test_a_resume_needs_no_other_option(tiny, tmp_path):
    out = tmp_path / "out"
    given = tiny.options(out, "--pairs", "face:house", "--participant-label", "sub-07", "--quiet")
    assert main(given) == 0
    page = (out / "index.html").read_bytes()
    (out / "index.html").unlink()
    assert main(["--out", str(out), "--resume", "--quiet"]) == 0
    assert (out / "sub-07").is_dir()
    assert len((out / "index.html").read_bytes()) == pytest.approx(len(page), abs=200)


def test_a_reader_that_goes_away_does_not_end_the_study(tiny, tmp_path):
    out = tmp_path / "out"
    command = [sys.executable, "-m", "mvpa_gamp.haxby", *tiny.options(out, "--pairs", "all")]
    child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    child.stdout.close()
    said = child.stderr.read().decode()
    child.stderr.close()
    assert child.wait() == 0, said
    assert "BrokenPipe" not in said
    assert (out / "index.html").is_file()


def test_predictions_name_the_volume(finished, tiny):
    path = next((finished / "sub-tiny").glob("*faceMinusHouse_desc-cdn_predictions.tsv"))
    labels = [line.split("\t") for line in tiny.labels.read_text().splitlines()[1:]]
    for row in read_tsv(path):
        assert labels[int(row["volume"])] == [row["true"], row["run"]]
    about = json.loads(path.with_suffix(".json").read_text())
    assert set(about) == set(read_tsv(path)[0])


def test_a_resume_may_add_methods_but_not_change_settings(tiny, tmp_path, capsys):
    out = tmp_path / "grows"
    assert main(tiny.options(out, "--pairs", "face:house", "--quiet")) == 0
    first = (out / "sub-tiny" / "sub-tiny_contrast-faceMinusHouse_desc-onebitCs_folds.tsv").read_bytes()
    more = tiny.options(out, "--methods", "onebit-cs", "cdn", "--pairs", "face:house", "--quiet", "--resume")
    assert main(more) == 0
    assert {row["method"] for row in read_tsv(out / "summary.tsv")} == {"onebit-cs", "cdn"}
    assert (
        out / "sub-tiny" / "sub-tiny_contrast-faceMinusHouse_desc-onebitCs_folds.tsv"
    ).read_bytes() == first
    assert main([*more, "--no-detrend"]) == 2
    assert "detrend was on, now off" in capsys.readouterr().err


def test_the_phantom_can_never_pass_for_real_data(phantom_results):
    folder = phantom_results / "sub-phantom"
    assert all(path.name.startswith("sub-phantom_") for path in folder.iterdir())
    for path in folder.glob("*.json"):
        assert "PHANTOM" in json.loads(path.read_text())["Phantom"], path
    assert "PHANTOM" in json.loads((phantom_results / "dataset_description.json").read_text())["Name"]
    page = (phantom_results / "index.html").read_text()
    assert 'class="banner"' in page
    assert "<title>PHANTOM" in page
    rows = read_tsv(phantom_results / "summary.tsv")
    assert number(rows[0]["average_precision"]) > number(rows[0]["chance_average_precision"])
    assert number(rows[1]["average_precision"]) > 3 * number(rows[1]["chance_average_precision"])
    truth = folder / "sub-phantom_contrast-faceMinusHouse_desc-plantedTruth_mask.nii.gz"
    assert set(np.unique(np.asarray(nibabel.load(truth).dataobj))) == {0, 1}


def test_a_posterior_gives_inclusion_and_deviation_maps(phantom_results):
    stem = "sub-phantom/sub-phantom_contrast-faceMinusHouse_desc-gampBgLr{}_stat-{}_statmap.nii.gz"
    for which in ("", "FoldMean"):
        inclusion = np.asarray(nibabel.load(phantom_results / stem.format(which, "pip")).dataobj)
        assert 0 <= inclusion.min() <= inclusion.max() <= 1
        assert (phantom_results / stem.format(which, "weightsd")).is_file()
    folder = phantom_results / "sub-phantom"
    assert not list(folder.glob("*onebitCs*_stat-pip_*"))
    said = read_tsv(folder / "sub-phantom_contrast-faceMinusHouse_desc-gampBgLr_predictions.tsv")
    chances = np.array([number(row["probability_positive"]) for row in said])
    assert ((chances > 0.5) == [row["predicted"] == "face" for row in said]).all()


def test_help_names_the_methods_there_are():
    missing, gone = sorted(set(METHODS) - set(KNOWN_METHODS)), sorted(set(KNOWN_METHODS) - set(METHODS))
    assert not missing, f"Add {missing} to KNOWN_METHODS in mvpa_gamp/study/options.py."
    assert not gone, f"{gone} of KNOWN_METHODS in mvpa_gamp/study/options.py are not in METHODS."
    text = build_parser().format_help()
    assert all(name in text.replace("\n", " ") for name in ("l1-lr-cv", "gamp-bg-lr", "onebit-cs"))


def test_help_is_quick_because_it_imports_little():
    script = "import sys, mvpa_gamp.haxby as h; h.build_parser().format_help(); print(*sys.modules)"
    out = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert not {"nilearn", "sklearn", "matplotlib", "scipy", "nibabel"} & set(out.split())


def test_options_win_over_the_config_file_and_data_take_the_place_of_others(tmp_path):
    config = tmp_path / "config.toml"
    config.write_text('[data]\nphantom = true\n[study]\nseed = 3\nmethods = ["cdn"]\n')
    parsed = vars(build_parser().parse_args(["--config", str(config), "--seed", "4", "--bold", "a.nii"]))
    settings = study_settings(parsed)
    assert (settings.seed, settings.methods) == (4, ("cdn",))
    assert settings.source == OwnFiles(bold=("a.nii",))
