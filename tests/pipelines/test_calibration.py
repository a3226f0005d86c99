"""Tests on simulated data without an effect: what is counted, and that ways which must fail do."""

import csv
import json

import numpy as np
import pytest

from pipelines import calibration
from pipelines.calibration import MEANS, Size, cases, covariates, crossed, group_of_numbers, order, summary
from pipelines.command import Options

SMALL = Size(3, 19)


def test_every_case_is_written_with_its_share(tmp_path, monkeypatch):
    cheap = [case for case in cases() if case.page == "order" or case.name == "random numbers"]
    monkeypatch.setattr(calibration, "cases", lambda: iter(cheap))
    calibration.run(Options(full=False, seed=0, out=tmp_path), SMALL)
    with (tmp_path / "calibration.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert {row["case"] for row in rows} == {case.name for case in cheap}
    assert all(0 <= float(row["reported_percent"]) <= 100 and int(row["sets"]) == 3 for row in rows)
    assert "commit" in json.loads((tmp_path / "calibration.json").read_text())["provenance"]


def test_names_of_cases_are_their_own():
    names = [(case.page, case.name) for case in cases()]
    assert len(names) == len(set(names)) > 20


def test_shares_and_their_errors_by_hand():
    rows = [{"page": "a", "case": "b", "test": "c", "p": p} for p in (0.01, 0.05, 0.2, 0.9)]
    assert summary(rows) == [{"page": "a", "case": "b", "test": "c", "sets": 4, "reported_percent": 50.0,
                              "se_percent": 25.0}]  # fmt: skip


def test_a_map_without_correction_fails_and_a_corrected_one_does_not():
    found = [group_of_numbers(k, SMALL) for k in range(60)]
    corrected, wrong = (
        np.mean([each[name] <= 0.05 for each in found])
        for name in (
            "family-wise map, 60 voxels, 8 participants: any voxel",
            "wrong: the map without correction",
        )
    )
    assert corrected <= 0.15 < 0.5 < wrong  # 10 or more of 60 at 5 %: 0.1 %


@pytest.mark.parametrize(("effect", "low", "high"), [("nothing", 0, 0.25), ("the same code", 0.9, 1)])
def test_a_shared_code_is_found_and_nothing_is_not(effect, low, high):
    found = [crossed(MEANS, effect)(k, Size(1, 39))["training labels"] <= 0.05 for k in range(20)]
    assert low <= np.mean(found) <= high


def test_checks_say_one_or_nothing():
    assert covariates(8, 1, True)(0, SMALL)["reported"] in (0.0, 1.0)
    assert order(2, 4, 1)(0, SMALL) == {"reported": 1.0}  # too few runs to be told from chance
