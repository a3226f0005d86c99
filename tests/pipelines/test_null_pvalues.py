"""P-values of the VAMP methods on simulated sets: what is counted, and that an effect is found."""

import csv
import json

import numpy as np
import pytest

from pipelines import null_pvalues
from pipelines.command import Options
from pipelines.null_pvalues import CASES, Size, case_rows, pvalues, simulated, summary


def test_shares_and_uniformity_by_hand():
    even = [{"case": "a", "test": "b", "p": p} for p in np.tile(np.arange(1, 41) / 40, 5)]
    (row,) = summary(even)
    assert (row["sets"], row["p_5_percent"], row["p_50_percent"]) == (200, 5.0, 50.0)
    assert row["uniform_p"] > 0.99
    (small,) = summary([{**each, "p": each["p"] ** 2} for each in even])
    assert summary([{**even[0], "p": 1e-12}])[0]["uniform_p"] < 1  # of a test with other steps
    assert small["uniform_p"] < 1e-6 and small["p_5_percent"] > 15


@pytest.mark.parametrize("kind", ["two classes", "eight classes", "groups of two rows"])
def test_an_effect_is_found_in_every_kind_of_set(kind):
    data = simulated(kind, np.random.default_rng(1), effect=2.0)
    assert pvalues("vamp-sbg", data, 19, 0)["permutations"] == 1 / 20
    assert all(np.unique(data.y[data.runs == run]).size == np.unique(data.y).size for run in range(3))


def test_every_case_is_written(tmp_path, monkeypatch):
    known = {name: (k / 40, k / 10) for k, name in enumerate(CASES)}

    def drawn(name, size, seed):
        return [{"case": name, "test": "permutations", "p": known[name][0] + 1 / 40}] * size.n_trials

    null_pvalues.run(Options(full=False, seed=0, out=tmp_path), Size(3), drawn)
    with (tmp_path / "null_pvalues.csv").open(newline="") as stream:
        assert [row["case"] for row in csv.DictReader(stream)] == list(CASES)
    assert "commit" in json.loads((tmp_path / "null_pvalues.json").read_text())["provenance"]


def test_a_case_has_a_counter_test_beside_it():
    rows = case_rows("two classes, vamp-sbg", Size(2, 3), 0)
    assert {row["test"] for row in rows} == {"permutations", "binomial", "permutations of single rows"}
    assert all(0 < row["p"] <= 1 for row in rows)
