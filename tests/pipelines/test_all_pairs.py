"""The table over all pairs and the dense example: what is written, and that differences are paired."""

import csv
import json

import numpy as np
import pytest

from pipelines import all_pairs, dense_effects
from pipelines.command import Options
from pipelines.haxby_table import PHANTOM_LABEL, choose_source


def rows_of(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_all_pairs_of_a_phantom(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("MVPA_GAMP_DATA", raising=False)
    source = choose_source(None, True, 0, (5, 6, 5))
    names = ("svm", "gamp-sbg-lr")
    options = Options(full=False, seed=0, out=tmp_path / "out")
    record = all_pairs.run(options, source, methods=names, pairs=("face:house", "cat:shoe", "cat:chair"))
    rows = rows_of(tmp_path / "out" / "all_pairs_phantom.csv")
    assert [(row["method"], row["noise"]) for row in rows] == [
        (name, noise) for noise in ("as measured", "whitened") for name in names
    ]
    assert {row["pairs"] for row in rows} == {"3"} and {row["data"] for row in rows} == {PHANTOM_LABEL}
    wide = rows_of(tmp_path / "out" / "all_pairs_phantom_table.csv")
    assert [row["method"] for row in wide] == list(names)
    assert wide[0]["whitened_error_percent"] == rows[2]["error_percent"]
    assert (
        record["simulated"] is True and len(rows_of(tmp_path / "out" / "all_pairs_phantom_pairs.csv")) == 12
    )
    assert json.loads((tmp_path / "out" / "all_pairs_phantom.json").read_text())["rows"] == record["rows"]


def test_differences_are_paired():
    rng = np.random.default_rng(0)
    base = 10 + 5 * rng.standard_normal(28)
    errors = {all_pairs.REFERENCE: base, ("svm", "as measured"): base + 3 + 0.1 * rng.standard_normal(28)}
    reference, svm = all_pairs.summary(errors, "data")
    assert reference["difference_percent"] == reference["difference_se_percent"] == 0
    assert svm["difference_percent"] == pytest.approx(3, abs=0.1) and svm["difference_se_percent"] < 0.05
    assert svm["error_se_percent"] == pytest.approx(
        np.std(errors["svm", "as measured"], ddof=1) / np.sqrt(28)
    )


def test_dense_effects_favour_dense_methods(tmp_path):
    size = dense_effects.Size(12, (2, 12), 80, 300, 2)
    dense_effects.run(Options(full=False, seed=0, out=tmp_path), size)
    rows = {
        (float(r["informative_percent"]), r["method"]): r for r in rows_of(tmp_path / "dense_effects.csv")
    }
    sparse, dense = 100 * 4 / 144, 100.0
    errors = {key: float(row["error_percent"]) for key, row in rows.items()}
    assert errors[sparse, "gamp-bg-lr"] < errors[sparse, "svm"]
    assert errors[dense, "lda"] < errors[dense, "l1-lr-cv"]
    assert (tmp_path / "dense_effects.png").stat().st_size > 1000


def test_committed_numbers_are_those_of_the_pages():
    """The table that docs/choosing.md shows: 28 pairs of the real slice, all methods, both kinds of noise."""
    rows = {(r["method"], r["noise"]): r for r in rows_of(all_pairs_figures() / "all_pairs_part.csv")}
    assert len(rows) == 2 * len(all_pairs.TABLE_METHODS)
    means = {key: float(row["error_percent"]) for key, row in rows.items()}
    expected = {"svm": 13.0, "lda": 11.0, "l1-lr-cv": 12.0, "gamp-bg-lr": 10.0, "gamp-sbg-lr": 8.4}
    for name, error in expected.items():
        assert means[name, "as measured"] == pytest.approx(error, abs=0.15)
    assert means["gamp-sbg-lr", "whitened"] == pytest.approx(7.0, abs=0.1)
    by_pair = rows_of(all_pairs_figures() / "all_pairs_part_pairs.csv")
    for (name, noise), mean in means.items():
        mine = [float(r["error_percent"]) for r in by_pair if (r["method"], r["noise"]) == (name, noise)]
        assert np.mean(mine) == pytest.approx(mean)


def all_pairs_figures():
    from pathlib import Path

    return Path(__file__).parents[2] / "figures" / "all_pairs"
