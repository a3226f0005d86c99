"""Real maps between people, and swapped labels through the commands: small, and what the pages promise."""

import csv
from pathlib import Path

import nibabel
import numpy as np
import pytest
from people_maps import make_people

from mvpa_gamp.decoding.tasks import make_tasks
from mvpa_gamp.imaging.samples import Samples
from pipelines import people, people_null
from pipelines.data_sets import DataSet

FIGURES = Path(__file__).parents[2] / "figures"


def rows_of(path):
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


@pytest.fixture(scope="module")
def data():
    maps = make_people(6, effect=1.0)
    mask = nibabel.Nifti1Image(np.ones((6, 7, 4), np.uint8), np.diag([2.0, 2.0, 2.0, 1.0]))
    samples = Samples(maps.X, maps.conditions, maps.participants, mask, None, "group", kind="beta")
    return DataSet("contrasts", "generated", samples, make_tasks(maps.conditions, [("heat", "warmth")]), True)


def test_coarser_voxels_are_means_of_eight(data):
    found = people.coarser(data.samples)
    assert found.X.shape == (24, 3 * 3 * 2) and found.mask_img.affine[0, 0] == 4
    whole = data.samples.X[5].reshape(6, 7, 4)
    np.testing.assert_allclose(found.X[5, 0], whole[:2, :2, :2].mean(), rtol=1e-5)
    np.testing.assert_allclose(found.mask_img.affine @ [0, 0, 0, 1], [1, 1, 1, 1])


def test_every_map_is_judged_by_the_fold_that_did_not_know_its_participant(data, monkeypatch):
    monkeypatch.setattr(people, "METHODS_TRIED", ("svm", "lda"))
    monkeypatch.setattr(people, "REFERENCE", "svm")
    one_out, halves = people.rows_of(data)
    assert len(one_out) == 4 and len(halves) == 8
    centred = [row for row in one_out if row["scaling"] == "centre"]
    assert all(row["accuracy_percent"] == row["forced_choice_percent"] > 75 for row in centred)
    assert all(row["best_threshold_percent"] >= row["accuracy_percent"] for row in one_out)
    assert [line["method"] for line in people.wide(one_out)] == ["svm", "lda", "svm", "lda"]
    assert len(people.thresholds(halves)) == 4


@pytest.mark.parametrize("path", people_null.PATHS)
def test_a_path_reports_accuracy_and_p_of_swapped_labels(path):
    accuracy, p = people_null.trial(path, 4, np.random.default_rng(3))
    assert 10 <= accuracy <= 90 and 1 / 40 <= p <= 1


def test_the_recommended_method_is_as_good_as_svm_and_lda_on_the_same_rows():
    """Committed: no difference on real maps is worse than one standard error."""
    rows = [row for row in rows_of(FIGURES / "people" / "people.csv") if row["scaling"] == "centre"]
    others = [row for row in rows if row["method"] in ("svm", "lda")]
    assert len(others) == 6
    assert all(float(row["minus_reference"]) <= float(row["its_se"]) for row in others)


def test_no_path_decodes_swapped_labels():
    """Committed: 200 data sets for every path at 50 +- 3 %, p-values no smaller than they should be."""
    rows = rows_of(FIGURES / "people_null" / "people_null.csv")
    assert {row["path"] for row in rows} == set(people_null.PATHS)
    assert all(row["sound"] == "True" and row["data_sets"] == "200" for row in rows)
    assert all(47 <= float(row["accuracy_percent"]) <= 53 for row in rows)
    assert all(float(row["uniform_p"]) > 0.01 for row in rows)
