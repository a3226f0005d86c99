"""The null of steps that are fitted on the rows of a group: what is sound, and what is not and is refused."""

import csv
from pathlib import Path

import numpy as np
import pytest

from pipelines import swapped_labels as null
from pipelines.command import Options

COMMITTED = Path(__file__).parents[2] / "figures" / "swapped_labels"
REFUSED = (
    "detrend, same order",
    "centre, groups split over folds",
    "z-score all rows, groups split over folds",
)


def rows_of(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def mean(path, n_rows, n=12):
    children = np.random.SeedSequence(3).spawn(n)
    return 100 * np.mean([null.trial(path, n_rows, np.random.default_rng(child))[0] for child in children])


@pytest.mark.parametrize("path", ["nothing", "z-score all rows", "detrend, random order"])
def test_sound_steps_decode_nothing(path):
    assert 43 <= mean(path, 8) <= 57


@pytest.mark.parametrize("path", REFUSED)
def test_the_null_sees_steps_that_leak(path):
    assert mean(path, 4) > 57


def test_tables_are_written(tmp_path):
    record = null.run(Options(full=False, seed=0, out=tmp_path), null.Size((2, 8), (), 3))
    rows = rows_of(tmp_path / "swapped_labels.csv")
    assert {row["path"] for row in rows} == set(null.PATHS)
    assert record["provenance"]["command"].startswith("python -m pipelines.swapped_labels")


def test_committed_numbers_are_those_of_the_page():
    """Whatever the package does without refusing it is at 50 +- 3 %, with 1 to 20 rows in a group."""
    rows = rows_of(COMMITTED / "swapped_labels.csv")
    allowed = [row for row in rows if null.ALLOWED.get(row["path"], "allowed") == "allowed"]
    assert len(allowed) > 80 and {row["sound"] for row in allowed} == {"True"}
    assert all(float(row["p_below_5_percent"]) <= 15 for row in allowed)
