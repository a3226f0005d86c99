"""--whiten from the command line: what is written, said, resumed and refused."""

import json
import shutil
from pathlib import Path

import nibabel
import numpy as np
import pytest

from mvpa_gamp.__main__ import main as app
from mvpa_gamp.decoding import NoiseWhitening, fit_tasks, fold_errors, make_tasks, permutation_test
from mvpa_gamp.decoding.exchange import blocks_of_volumes
from mvpa_gamp.decoding.fit import Scheme
from mvpa_gamp.haxby import main
from mvpa_gamp.imaging.names import entity
from mvpa_gamp.imaging.samples import load_samples
from mvpa_gamp.methods import METHODS
from mvpa_gamp.results.files import number, read_tsv
from mvpa_gamp.results.reader import missing_files, read_results, result_files
from mvpa_gamp.study.analyses import pairs

pytestmark = pytest.mark.whole

USED = ("onebit-cs", "gamp-bg-lr", "gamp-sbg-lr")
PAIRS = (("face", "house"), ("face", "cat"))
CONTRASTS = ("faceMinusHouse", "faceMinusCat")


def options(tiny, out, *more):
    return tiny.options(out, "--methods", *USED, "--pairs", "face:house", "face:cat", "--quiet", *more)


def statmap(out: Path, contrast: str, method: str, stat: str) -> Path:
    name = f"sub-tiny_contrast-{contrast}_desc-{entity(method)}_stat-{stat}_statmap.nii.gz"
    return out / "sub-tiny" / name


def sidecar(out: Path, *which: str) -> dict:
    path = statmap(out, *which)
    return json.loads(path.with_name(path.name.replace(".nii.gz", ".json")).read_text())


def manifest(out: Path) -> str:
    return (out / "logs" / "manifest.tsv").read_text()


@pytest.fixture(scope="module")
def whitened(tiny, tmp_path_factory):
    out = tmp_path_factory.mktemp("whitened") / "results"
    assert main(options(tiny, out, "--whiten", "--fold-maps")) == 0
    return out


@pytest.fixture(scope="module")
def plain(tiny, tmp_path_factory):
    out = tmp_path_factory.mktemp("plain") / "results"
    assert main(tiny.options(out, "--pairs", "face:house", "--quiet")) == 0
    return out


@pytest.fixture(scope="module")
def direct(tiny):
    """Tasks and fits of the same samples, without the command."""
    samples = load_samples(tiny.bold, tiny.labels, tiny.mask)
    tasks = make_tasks(samples.conditions, PAIRS)
    blocks = blocks_of_volumes(samples.conditions, samples.runs, samples.volumes)
    methods, graph = [METHODS[name] for name in USED], samples.connectivity
    return tasks, fit_tasks(
        methods,
        samples.X,
        tasks,
        samples.runs,
        Scheme(preparation=NoiseWhitening(blocks), connectivity=graph),
    )


def test_the_numbers_are_those_of_fit_whitened(whitened, direct):
    tasks, fits = direct
    mask = np.asarray(nibabel.load(whitened / "sub-tiny" / "sub-tiny_desc-analysed_mask.nii.gz").dataobj) > 0
    rows = {(row["contrast"], row["method"]): row for row in read_tsv(whitened / "summary.tsv")}
    for task in tasks:
        for name in USED:
            row, found = rows[task.name, name], fits[name, task.name]
            error = 100 * fold_errors(found, task.y).mean()
            assert number(row["error_percent"]) == pytest.approx(error, abs=1e-3)  # tables keep few digits
            written = np.asarray(nibabel.load(statmap(whitened, task.name, name, "weight")).dataobj)[mask]
            # Maps are float32, and the command's BLAS may add in another order.
            scale = np.abs(found.coef[:, -1]).max()
            np.testing.assert_allclose(written, found.coef[:, -1], rtol=1e-4, atol=1e-5 * scale)


def test_whitening_changes_the_weights(whitened, plain):
    here, there = (
        np.asarray(nibabel.load(statmap(out, "faceMinusHouse", "onebit-cs", "weight")).dataobj)
        for out in (whitened, plain)
    )
    assert np.abs(here - there).max() > 0.01 * np.abs(there).max()
    assert "NoiseWhitening" not in sidecar(plain, "faceMinusHouse", "onebit-cs", "weight")


@pytest.mark.parametrize("contrast", CONTRASTS)
@pytest.mark.parametrize("method", USED)
def test_sidecars_say_what_whitening_means_for_each_map(whitened, contrast, method):
    stats = ("weight", "selfreq", "pattern", *(("pip",) if method != "onebit-cs" else ()))
    said = {stat: sidecar(whitened, contrast, method, stat)["NoiseWhitening"] for stat in stats}
    assert all(words.startswith("Noise was whitened") for words in said.values())
    assert "mapped back to voxels" in said["weight"] and "measured volumes" in said["pattern"]
    assert all("whitened voxels" in said[stat] for stat in ("selfreq", "pip") if stat in said)


def test_deviations_are_neither_written_nor_promised_and_all_else_is_there(whitened):
    results = read_results(whitened)
    promised = list(result_files(results))
    assert not missing_files(results) and all(path.is_file() for path in promised)
    assert not [path for path in promised if "weightsd" in path.name]
    assert not list(whitened.rglob("*weightsd*"))
    for method in ("gamp-bg-lr", "gamp-sbg-lr"):
        assert set(results.stats("tiny", "faceMinusHouse", method)) == {"weight", "pip", "pattern", "selfreq"}


def test_study_and_page_say_it(whitened, plain):
    assert json.loads((whitened / "summary.json").read_text())["processing"]["whiten"] is True
    words = "inverse square root of the noise covariance"
    assert words in (whitened / "index.html").read_text()
    assert words not in (plain / "index.html").read_text()


def test_a_map_that_is_gone_is_written_again_from_the_stored_fits(whitened, tmp_path, monkeypatch):
    out = shutil.copytree(whitened, tmp_path / "out")
    gone = statmap(out, "faceMinusCat", "gamp-sbg-lr", "pip")
    gone.unlink()
    monkeypatch.setattr(pairs, "fit_tasks", None)  # nothing is fitted
    assert main(["--out", str(out), "--resume", "--quiet"]) == 0
    assert gone.read_bytes() == statmap(whitened, "faceMinusCat", "gamp-sbg-lr", "pip").read_bytes()
    assert manifest(out) == manifest(whitened)


def test_fits_that_are_gone_are_made_again_and_the_others_kept(whitened, tmp_path):
    out = shutil.copytree(whitened, tmp_path / "out")
    gone = out / "work" / "sub-tiny_contrast-faceMinusCat_desc-gampBgLr_fits.npz"
    gone.unlink()
    kept = {path: path.stat().st_mtime_ns for path in (out / "work").glob("*_fits.npz")}
    assert len(kept) == len(USED) * len(PAIRS) - 1
    assert main(["--out", str(out), "--resume", "--quiet"]) == 0
    assert gone.is_file() and all(path.stat().st_mtime_ns == when for path, when in kept.items())
    assert (out / "summary.tsv").read_bytes() == (whitened / "summary.tsv").read_bytes()


def test_fits_that_fail_are_told(tiny, tmp_path, monkeypatch, capsys):
    def broken(*args, **kwargs):
        raise FloatingPointError("no such luck")

    monkeypatch.setattr(pairs, "fit_tasks", broken)
    out = tmp_path / "out"
    assert main(options(tiny, out, "--whiten")) == 1
    rows = [row for row in read_tsv(out / "summary.tsv") if row["contrast"] != "average"]
    assert {row["status"] for row in rows} == {"failed: FloatingPointError: no such luck"}
    assert len(rows) == len(USED) * len(PAIRS) and "no such luck" in capsys.readouterr().err


def test_config_repeats_the_run(whitened, tmp_path):
    assert "whiten = true" in (whitened / "config.toml").read_text()
    out = tmp_path / "again"
    assert main(["--config", str(whitened / "config.toml"), "--out", str(out), "--quiet"]) == 0
    assert (out / "summary.tsv").read_bytes() == (whitened / "summary.tsv").read_bytes()
    assert manifest(out) == manifest(whitened)


def test_workers_change_nothing(whitened, tiny, tmp_path):
    out = tmp_path / "out"
    assert main(options(tiny, out, "--whiten", "--fold-maps", "--n-jobs", "2")) == 0
    assert manifest(out) == manifest(whitened)


# --- tested


@pytest.fixture(scope="module")
def inferred(tiny, tmp_path_factory):
    out = tmp_path_factory.mktemp("inferred") / "results"
    asked = ("--permutations", "9", "--max-inclusion", "--learning-curve")
    assert main(options(tiny, out, "--whiten", *asked)) == 0
    return out


def test_inference_is_about_the_whitened_fits(inferred, whitened, tiny):
    samples = load_samples(tiny.bold, tiny.labels, tiny.mask)
    blocks = blocks_of_volumes(samples.conditions, samples.runs, samples.volumes)
    rows = read_tsv(inferred / "sub-tiny" / "sub-tiny_inference.tsv")
    summary = {(r["contrast"], r["method"]): r for r in read_tsv(whitened / "summary.tsv")}
    assert {(r["contrast"], r["method"]) for r in rows} == {(c, m) for c in CONTRASTS for m in USED[1:]}
    for row in rows:
        error = number(summary[row["contrast"], row["method"]]["error_percent"])
        assert number(row["accuracy_percent"]) == pytest.approx(100 - error, abs=1e-3)
        assert row["status"] == "ok" and "X is prepared again for every subset" in row["curve"]
    (task,) = make_tasks(samples.conditions, [("face", "cat")])
    test = permutation_test(
        METHODS["gamp-bg-lr"],
        samples.X,
        task.y,
        samples.runs,
        9,
        scheme=Scheme(blocks=blocks[task.rows], rows=task.rows, preparation=NoiseWhitening(blocks)),
    )
    stem = "sub-tiny_contrast-faceMinusCat_desc-gampBgLr"
    written = read_tsv(inferred / "sub-tiny" / f"{stem}_permutations.tsv")
    np.testing.assert_allclose([number(line["accuracy"]) for line in written], test.null, atol=1e-5)


def test_answers_that_are_gone_are_found_again(inferred, tmp_path):
    out = shutil.copytree(inferred, tmp_path / "out")
    gone = out / "work" / "sub-tiny_contrast-faceMinusCat_desc-gampBgLr_permutations-0001.npz"
    gone.unlink()
    kept = {path: path.stat().st_mtime_ns for path in (out / "work").glob("*.npz")}
    assert main(["--out", str(out), "--resume", "--quiet"]) == 0
    assert gone.is_file() and all(path.stat().st_mtime_ns == when for path, when in kept.items())
    assert manifest(out) == manifest(inferred)


# --- refused


def test_a_folder_made_without_it_is_not_resumed_with_it(plain, tmp_path, capsys):
    out = shutil.copytree(plain, tmp_path / "out")
    before = manifest(out)
    assert main(["--out", str(out), "--resume", "--whiten", "--quiet"]) == 2
    assert "whiten was off, now on" in capsys.readouterr().err
    assert manifest(out) == before


def test_no_rate_is_calibrated_for_whitened_voxels(tiny, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(options(tiny, out, "--whiten", "--fdr", "0.1")) == 2
    assert "whitened voxels are mixtures of voxels" in capsys.readouterr().err and not out.exists()


@pytest.mark.parametrize("asked", [("--samples", "block"), ("--samples", "betas", "--betas", "maps")])
def test_rows_that_stand_for_blocks_have_no_noise_to_whiten(asked, bids_tree, tmp_path, capsys):
    out = tmp_path / "out"
    given = ("--methods", "onebit-cs", "--contrasts", "face:house", "--quiet")
    assert app([str(bids_tree.root), str(out), "participant", *given, *asked, "--whiten"]) == 2
    said = capsys.readouterr().err.strip()
    assert (
        "--whiten estimates noise from several volumes of every block" in said and len(said.splitlines()) == 1
    )
    assert not out.exists()


def test_a_participant_of_a_bids_dataset_is_whitened(bids_tree, tmp_path):
    out = tmp_path / "out"
    given = ("--participant-label", "01", "--methods", "gamp-sbg-lr", "--contrasts", "face:house", "--quiet")
    assert app([str(bids_tree.root), str(out), "participant", *given, "--whiten"]) == 0
    (path,) = out.glob("sub-01/*_contrast-faceMinusHouse_desc-gampSbgLr_stat-pip_statmap.json")
    assert "NoiseWhitening" in json.loads(path.read_text())
