"""svm, lda and --class-weight in both commands: files, page, resume, permutations, and what is refused."""

import json
import re

import numpy as np
import pytest
import tomllib

from mvpa_gamp.__main__ import main as bids
from mvpa_gamp.decoding import cross_validate, fold_errors, permutation_test
from mvpa_gamp.decoding.fit import Scheme
from mvpa_gamp.decoding.scores import mean_balanced_accuracy
from mvpa_gamp.decoding.tasks import make_tasks
from mvpa_gamp.haxby import main
from mvpa_gamp.imaging.samples import load_samples
from mvpa_gamp.methods import METHODS
from mvpa_gamp.methods.fold_fits import with_class_weight
from mvpa_gamp.results.files import number, read_tsv
from mvpa_gamp.results.reader import read_results
from mvpa_gamp.study.comparisons import blocks_of

ASKED = ("--methods", "svm", "lda", "gamp-bg-lr", "--pairs", "face:house", "--class-weight", "balanced")


@pytest.fixture(scope="module")
def unequal(make_tiny, tmp_path_factory):
    """The tiny study with two volumes of every block of faces left, against five of houses."""
    tiny = make_tiny(tmp_path_factory.mktemp("unequal"))
    lines = tiny.labels.read_text().splitlines()
    rest = [
        line.replace("face", "rest") if lines[k - 2 : k] == [line, line] else line
        for k, line in enumerate(lines)
    ]
    tiny.labels.write_text("\n".join(rest) + "\n")
    return tiny


@pytest.fixture(scope="module")
def weighted(unequal, tmp_path_factory):
    out = tmp_path_factory.mktemp("weighted") / "results"
    assert main(unequal.options(out, *ASKED, "--permutations", "19", "--fold-maps", "--quiet")) == 0
    return out


def samples_of(tiny):
    return load_samples(bold=[tiny.bold], labels=tiny.labels, mask=tiny.mask)


def test_the_command_and_python_give_the_same_numbers(weighted, unequal):
    results = read_results(weighted)
    samples = samples_of(unequal)
    (task,) = make_tasks(samples.conditions, [("face", "house")])
    assert (task.y > 0).sum() * 2 <= (task.y < 0).sum()
    X, runs = samples.X[task.rows], samples.runs[task.rows]
    for name in ("svm", "lda", "gamp-bg-lr"):
        method = with_class_weight(METHODS[name], "balanced")
        row = results.row("tiny", "faceMinusHouse", name)
        error = 100 * fold_errors(cross_validate(method, X, task.y, runs), task.y).mean()
        assert row["error_percent"] == pytest.approx(error, abs=1e-3)
        assert results.leading_measure.name == "balanced accuracy"
    test = permutation_test(
        with_class_weight(METHODS["svm"], "balanced"),
        X,
        task.y,
        runs,
        19,
        score=mean_balanced_accuracy,
        scheme=Scheme(blocks=blocks_of(samples)[task.rows]),
    )
    (told,) = [row for row in results.inference_rows() if row["method"] == "svm"]
    assert told["measure"] == "balanced accuracy" and "accuracy tested is the balanced one" in told["caution"]
    assert number(told["accuracy_percent"]) == pytest.approx(100 * test.score, abs=1e-3)
    assert number(told["p_value"]) == pytest.approx(test.pvalue, abs=1e-4)


def test_dense_methods_have_no_selection_in_any_file(weighted):
    results = read_results(weighted)
    for name in ("svm", "lda"):
        cell = ("tiny", "faceMinusHouse", name)
        assert results.stats(*cell) == ["weight", "pattern"]
        assert np.isnan(results.jaccard(*cell)).all()
        assert (
            np.isnan(results.row(*cell)["consistency_percent"])
            and results.row(*cell)["sparsity_percent"] == 100
        )
    assert {row["method"] for row in results.table("tiny", "clusters")} <= {"gamp-bg-lr"}
    notes = {row["method"]: row["note"] for row in results.table("tiny", "consistency")}
    assert notes["svm"].startswith("Every voxel has a weight") and notes["gamp-bg-lr"] == "n/a"
    assert not list(weighted.glob("sub-tiny/*desc-svm_stat-selfreq*"))


def test_the_page_and_the_methods_text_tell_it(weighted):
    page = (weighted / "index.html").read_text()
    for words in (
        "Cortes C, Vapnik V (1995)",
        "Ledoit O, Wolf M (2004)",
        "Balanced accuracy",
        "chance: 50 %",
    ):
        assert words in page
    assert "both categories had the same total weight" in page
    summary = read_tsv(weighted / "summary.tsv")
    assert {"accuracy_percent", "balanced_accuracy_percent", "auc"} <= set(summary[0])


def test_config_resume_and_workers(weighted, unequal, tmp_path, capsys):
    config = tomllib.loads((weighted / "config.toml").read_text())
    assert config["study"]["class_weight"] == "balanced"
    before = (weighted / "logs" / "manifest.tsv").read_text()
    assert (
        main(unequal.options(weighted, *ASKED, "--permutations", "19", "--fold-maps", "--resume", "--quiet"))
        == 0
    )
    assert (weighted / "logs" / "manifest.tsv").read_text() == before
    capsys.readouterr()
    settings = json.loads((weighted / "summary.json").read_text())["methods"]
    assert all("class_weight='balanced'" in each["settings"] for each in settings)
    again = tmp_path / "again"
    files = ["--config", str(weighted / "config.toml"), "--out", str(again), "--n-jobs", "2", "--quiet"]
    assert main(files) == 0
    assert (again / "logs" / "manifest.tsv").read_text() == before


def test_a_resume_with_other_weights_is_refused(weighted, unequal, capsys):
    without = [word for word in ASKED if word not in ("--class-weight", "balanced")]
    files = unequal.options(weighted, *without, "--fold-maps", "--resume")
    config = weighted / "config.toml"
    plain = config.read_text().replace('class_weight = "balanced"\n', "")
    other = config.with_name("other.toml")
    other.write_text(plain)
    try:
        assert main([*files, "--config", str(other)]) == 2
    finally:
        other.unlink()
    assert "class_weight was balanced, now not given" in capsys.readouterr().err


@pytest.mark.parametrize("given", ["heavy", "none"])
def test_other_weights_are_refused_before_anything_is_written(given, tiny, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(tiny.options(out, "--class-weight", given)) == 2
    assert re.search(f"--class-weight: expected balanced, got '{given}'. Correct it", capsys.readouterr().err)
    assert not out.exists()


def test_the_bids_command_takes_them_too(bids_tree, tmp_path, capsys):
    out = tmp_path / "out"
    asked = ["--methods", "svm", "lda", "--contrasts", "face:house", "--class-weight", "balanced", "--quiet"]
    participant = [str(bids_tree.root), str(out), "participant", "--participant-label", "01"]
    assert bids([*participant, *asked]) == 0
    results = read_results(out / "sub-01")
    assert [method["name"] for method in results.methods] == ["svm", "lda"]
    assert "class_weight='balanced'" in results.methods[0]["settings"]
    other = [*participant[:1], str(tmp_path / "other"), *participant[2:]]
    assert bids([*other, "--class-weight", "heavy"]) == 2
    assert (
        "--class-weight: expected balanced" in capsys.readouterr().err and not (tmp_path / "other").exists()
    )


def test_whitened_and_on_the_phantom(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    out = tmp_path / "out"
    shape = ["--phantom", "--phantom-shape", "7", "8", "6", "--pairs", "face:house"]
    assert main([*shape, "--methods", "svm", "lda", "--whiten", "--out", str(out), "--quiet"]) == 0
    results = read_results(out)
    assert results.leading_measure.name == "error rate"
    assert all(row["error_percent"] < 35 for row in results.rows)
