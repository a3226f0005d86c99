import json
import math

import numpy as np
import pytest

from mvpa_gamp.results import files


def test_a_table_comes_back_as_written(tmp_path):
    path = tmp_path / "deep" / "table.tsv"
    rows = [{"name": "a\tb\n c", "value": 1 / 3, "flag": np.True_}, {"name": "x", "value": math.nan}]
    files.write_tsv(path, ("name", "value", "flag"), rows)
    assert path.read_text().splitlines() == ["name\tvalue\tflag", "a b c\t0.333333\ttrue", "x\tn/a\tn/a"]
    back = files.read_tsv(path)
    assert files.number(back[0]["value"]) == pytest.approx(1 / 3, abs=1e-6)  # six digits are written
    assert math.isnan(files.number(back[1]["value"]))


def test_quotes_in_labels_survive_a_table(tmp_path):
    path = files.write_tsv(tmp_path / "t.tsv", ("name",), [{"name": "\"quoted\" 'label'"}])
    assert files.read_tsv(path) == [{"name": "\"quoted\" 'label'"}]


def test_json_has_no_nan(tmp_path):
    path = files.write_json(tmp_path / "x.json", {"a": np.float32("nan"), "b": np.arange(3), "c": (1, None)})
    assert json.loads(path.read_text()) == {"a": None, "b": [0, 1, 2], "c": [1, None]}


def test_equal_arrays_give_equal_bytes(tmp_path):
    arrays = {"a": np.arange(100.0), "b": np.array("text")}
    one, two = files.write_npz(tmp_path / "1.npz", arrays), files.write_npz(tmp_path / "2.npz", arrays)
    assert one.read_bytes() == two.read_bytes()
