"""--fold-confounds from the command line: the fits, the check before them, files, page, refusals."""

import json
import re
import shutil

import numpy as np
import pytest

from mvpa_gamp.__main__ import main as app
from mvpa_gamp.decoding import FoldConfounds, fit_confounds, fit_tasks, fold_errors, make_tasks
from mvpa_gamp.decoding.fit import Scheme
from mvpa_gamp.haxby import main
from mvpa_gamp.imaging.phantom import phantom_labels
from mvpa_gamp.imaging.samples import load_samples
from mvpa_gamp.methods import METHODS
from mvpa_gamp.results.files import number, read_tsv
from mvpa_gamp.results.reader import missing_files, read_results


def manifest(out):
    return (out / "logs" / "manifest.tsv").read_text()


def options(tiny, out, table, *more):
    used = ("--methods", "gamp-bg-lr", "--pairs", "face:house", "--quiet", "--fold-confounds", str(table))
    return tiny.options(out, *used, *more)


def write_table(path, **columns):
    rows = zip(*columns.values(), strict=True)
    path.write_text("\n".join("\t".join(map(str, row)) for row in (columns, *rows)) + "\n")
    return path


@pytest.fixture(scope="module")
def samples(tiny):
    return load_samples(tiny.bold, tiny.labels, tiny.mask)


@pytest.fixture(scope="module")
def covariates(samples):
    """Of all 96 volumes: one that knows the faces, one that knows nothing."""
    values = np.random.default_rng(0).standard_normal((96, 2))
    values[samples.volumes, 0] += 9 * (samples.conditions == "face")
    return values


@pytest.fixture(scope="module")
def table(covariates, tmp_path_factory):
    return write_table(tmp_path_factory.mktemp("table") / "rt.tsv", rt=covariates[:, 0], age=covariates[:, 1])


@pytest.fixture(scope="module")
def cleaned(tiny, table, tmp_path_factory):
    out = tmp_path_factory.mktemp("cleaned") / "results"
    assert main(options(tiny, out, table, "--permutations", "5")) == 0
    return out


def test_the_numbers_are_those_of_fit_prepared(cleaned, samples, covariates):
    tasks = make_tasks(samples.conditions, [("face", "house")])
    confounds = FoldConfounds(covariates[samples.volumes])
    found = fit_tasks([METHODS["gamp-bg-lr"]], samples.X, tasks, samples.runs, Scheme(preparation=confounds))
    row = read_tsv(cleaned / "summary.tsv")[0]
    error = fold_errors(found["gamp-bg-lr", "faceMinusHouse"], tasks[0].y).mean()
    assert number(row["error_percent"]) == pytest.approx(100 * error, abs=1e-3)
    assert not missing_files(read_results(cleaned))


def test_a_covariate_that_decodes_is_named_before_the_fits_and_on_the_page(cleaned, tiny, table, capsys):
    words = "The covariate rt alone decodes face vs house with an accuracy of 100%"
    assert words in (cleaned / "index.html").read_text()
    log = (cleaned / "logs" / "run.log").read_text()
    assert log.index(words) < log.index("[1/1")
    rows = read_tsv(cleaned / "sub-tiny" / "sub-tiny_foldconfounds.tsv")
    assert [(row["covariate"], row["decodes"]) for row in rows] == [("rt", "true"), ("age", "false")]
    about = json.loads((cleaned / "summary.json").read_text())
    assert len(about["fold_confounds"]["cautions"]) == 1 and about["processing"]["fold_confounds"] == [
        "rt",
        "age",
    ]
    assert "Covariates (rt, age) were regressed out of every voxel" in (cleaned / "index.html").read_text()


def test_strict_stops_at_a_covariate_that_decodes(tiny, table, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(options(tiny, out, table, "--strict")) == 2
    said = capsys.readouterr().err.strip()
    assert "error: --strict: sub-tiny: The covariate rt alone decodes face vs house" in said
    assert len(said.splitlines()) == 1 and not out.exists()


def test_strict_of_a_dataset_knows_the_covariates_of_every_participant(bids_tree, tmp_path, capsys):
    """Those of the last one follow the faces, from a block's start to the next: nobody is analysed."""
    for label in ("01", "03"):
        shown = phantom_labels(bids_tree.phantoms[label]).conditions
        last = np.maximum.accumulate(np.where(shown != "rest", np.arange(shown.size), 0))
        slow = 9 * (shown[last] == "face") if label == "03" else 0
        noise = np.random.default_rng(int(label)).standard_normal(shown.size)
        write_table(tmp_path / f"sub-{label}.tsv", rt=noise + slow)
    given = ("--methods", "onebit-cs", "--contrasts", "face:house", "--participant-label", "01", "03")
    out = tmp_path / "out"
    asked = [str(bids_tree.root), str(out), "participant", *given, "--quiet", "--strict"]
    assert app([*asked, "--fold-confounds", str(tmp_path / "sub-{participant}.tsv")]) == 2
    assert "--strict: sub-03: The covariate rt alone decodes face vs house" in capsys.readouterr().err
    assert not out.exists()


def test_config_repeats_the_run_and_workers_change_nothing(cleaned, tmp_path):
    out = tmp_path / "again"
    again = ("--config", str(cleaned / "config.toml"), "--out", str(out), "--quiet", "--n-jobs", "2")
    assert main(list(again)) == 0
    assert manifest(out) == manifest(cleaned)


def test_other_covariates_are_not_resumed(cleaned, table, tmp_path, capsys):
    out = shutil.copytree(cleaned, tmp_path / "out")
    before = table.read_text()
    header, *lines = before.splitlines()
    table.write_text("\n".join([header, *lines[::-1]]) + "\n")
    try:
        assert main(["--out", str(out), "--resume", "--quiet"]) == 2
    finally:
        table.write_text(before)
    assert "computed from other data" in capsys.readouterr().err


def test_a_line_per_sample_and_whitening_go_together(tiny, samples, covariates, tmp_path):
    own = write_table(tmp_path / "own.tsv", age=covariates[samples.volumes, 1])
    out = tmp_path / "out"
    assert main(options(tiny, out, own, "--whiten")) == 0
    page = (out / "index.html").read_text()
    assert "inverse square root" in page and "Covariates (age) were regressed" in page


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "expected a TSV, found no file there"),
        ("rt\n1\n2\n", r"expected a header and 60 lines \(volumes that are decoded\) or 96 .*, got 2"),
        ("rt\n" + "1\n" * 60, "rt is the same in all samples"),
        ("rt\n0.5\nn/a\n", r"line 3: expected a number for rt, got 'n/a'"),
        ("0.4\n0.5\n", "expected a header with a name for each column"),
        ("a\tb\n1\n", "expected 2 columns as in its header, got 1 in line 2"),
        ("rt\n" + "1\n-1e308\n" * 30, r"expected rt to be at most 1e\+15 in size, .*, got 1e\+308"),
        ("rt\n", "expected a header line and a line of numbers per sample, got 1 lines"),
    ],
)
def test_tables_that_do_not_fit_are_refused_before_anything_is_written(text, words, tiny, tmp_path, capsys):
    table, out = tmp_path / "table.tsv", tmp_path / "out"
    if text is not None:
        table.write_text(text)
    assert main(options(tiny, out, table)) == 2
    said = capsys.readouterr().err.strip()
    assert re.search(words, said) and len(said.splitlines()) == 1
    assert not out.exists()


def test_participants_have_a_file_each(bids_tree, tmp_path, capsys):
    given = (
        "--methods",
        "onebit-cs",
        "--contrasts",
        "face:house",
        "--quiet",
        "--participant-label",
        "01",
        "03",
    )
    out = tmp_path / "out"
    one = [str(bids_tree.root), str(out), "participant", *given, "--fold-confounds"]
    assert app([*one, str(tmp_path / "rt.tsv")]) == 2
    assert "Write {participant} in it where the label belongs" in capsys.readouterr().err
    assert not out.exists()
    volumes = bids_tree.phantoms["01"].volumes_per_run * 6
    for label in ("01", "03"):
        values = np.random.default_rng(int(label)).standard_normal(volumes)
        write_table(tmp_path / f"sub-{label}.tsv", rt=values)
    assert app([*one, str(tmp_path / "sub-{participant}.tsv")]) == 0
    for label in ("01", "03"):
        rows = read_tsv(next((out / f"sub-{label}").glob(f"sub-{label}_*_foldconfounds.tsv")))
        assert [row["covariate"] for row in rows] == ["rt"]


def test_values_that_float32_cannot_hold_are_refused():
    X = np.ones((6, 2))
    X[2, 1] = -1e308
    with pytest.raises(ValueError, match=r"X must be at most 1e\+15 in size, .*got 1e\+308. Rescale it."):
        fit_confounds(X, np.arange(6.0)[:, None])
