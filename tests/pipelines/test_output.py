"""Tables, records and figures of pipelines."""

import argparse
import csv
import json
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

from mvpa_gamp.methods import METHODS
from pipelines.command import Options
from pipelines.output import COLOUR_OF, MARKER_OF, save_figure, style, write_record, write_table

OPTIONS = Options(full=False, seed=3, out=Path("somewhere"))


def test_table_keeps_every_digit(tmp_path):
    value = 0.1 + 0.2
    write_table(
        tmp_path / "t.csv", [{"a": value, "b": None, "c": "x, y"}, {"a": np.float64("nan"), "b": 1, "c": ""}]
    )
    with (tmp_path / "t.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert float(rows[0]["a"]) == value
    assert rows[0]["b"] == "" and rows[0]["c"] == "x, y"
    assert np.isnan(float(rows[1]["a"]))
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


def test_table_of_nothing_or_of_unlike_rows_is_refused(tmp_path):
    with pytest.raises(ValueError, match="at least one row, got none"):
        write_table(tmp_path / "t.csv", [])
    with pytest.raises(ValueError, match=r"needs the columns \['a'\], got \['b'\]"):
        write_table(tmp_path / "t.csv", [{"a": 1}, {"b": 1}])
    assert not list(tmp_path.iterdir())


def test_record_has_provenance_and_no_place(tmp_path):
    own = argparse.Namespace(data=tmp_path / "data", trials=4)
    written = write_record(
        tmp_path / "r.json",
        {"mse": np.float64(0.25), "missing": float("nan"), "levels": np.arange(2)},
        pipeline="some_figure",
        options=OPTIONS,
        seconds=1.234,
        own=own,
    )
    read = json.loads((tmp_path / "r.json").read_text())
    assert (read["mse"], read["missing"], read["levels"]) == (0.25, None, [0, 1])
    about = read["provenance"]
    assert about == written["provenance"]
    assert about["command"] == "python -m pipelines.some_figure --quick --seed 3"
    assert about["arguments"] == {"data": "data", "trials": 4}
    assert about["seconds"] == 1.23
    versions = {"mvpa_gamp", "numpy", "scipy", "python", "commit", "cpu", "cores"}
    assert set(about) == {"pipeline", "command", "size", "seed", "arguments", "seconds"} | versions
    assert str(tmp_path) not in (tmp_path / "r.json").read_text()


def test_record_refuses_a_provenance_of_the_callers(tmp_path):
    with pytest.raises(ValueError, match="Rename yours"):
        write_record(tmp_path / "r.json", {"provenance": 1}, pipeline="p", options=OPTIONS, seconds=0)


def drawn() -> Figure:
    figure = Figure(figsize=(3, 2))
    axes = figure.subplots()
    axes.plot([0, 1], [1, 0], color=COLOUR_OF["gamp-bg-lr"])
    axes.set_xlabel("$M/N$")
    return figure


def test_equal_figures_are_equal_bytes(tmp_path):
    with style():
        first = [path.read_bytes() for path in save_figure(drawn(), tmp_path / "a.b")]
        second = [path.read_bytes() for path in save_figure(drawn(), tmp_path / "a.b")]
    assert first == second
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.b.pdf", "a.b.png"]


def test_style_ends_with_its_context():
    before = matplotlib.rcParams["axes.grid"]
    with style():
        assert matplotlib.rcParams["axes.grid"] is True
    assert matplotlib.rcParams["axes.grid"] == before


def test_every_method_has_its_own_colour_and_marker():
    assert set(METHODS) <= set(COLOUR_OF)
    assert len(set(COLOUR_OF.values())) == len(COLOUR_OF) == len(set(MARKER_OF.values()))
