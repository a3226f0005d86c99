"""Accuracy, balanced accuracy and area under the curve of a cell, and which of them leads a table."""

import math

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

from mvpa_gamp.decoding import cross_validate
from mvpa_gamp.methods import METHODS
from mvpa_gamp.report import terminal
from mvpa_gamp.results.cells import NO_SELECTION, measures_of
from mvpa_gamp.results.tables import (
    BALANCED,
    ERROR,
    SUMMARY_COLUMNS,
    average_rows,
    leading_measure,
    leading_of_tasks,
    selects,
)


@pytest.fixture(scope="module")
def unequal():
    y, runs = np.tile(np.repeat([1.0, -1.0], [3, 7]), 5), np.repeat(np.arange(5), 10)
    X = np.random.default_rng(0).standard_normal((50, 8)) + 0.7 * y[:, None] * (np.arange(8) < 2)
    return X, y, runs


def test_measures_of_a_cell_are_those_of_scikit_learn(unequal):
    X, y, runs = unequal
    fits = cross_validate(METHODS["lda"], X, y, runs)
    found = measures_of(fits, y)
    balanced, areas = [], []
    for k in range(5):
        mine = runs == k
        balanced.append(balanced_accuracy_score(y[mine] > 0, fits.decision[mine, k] > 0))
        areas.append(roc_auc_score(y[mine] > 0, fits.decision[mine, k]))
    assert found["balanced_accuracy_percent"] == pytest.approx(100 * np.mean(balanced))
    expected = 100 * np.std(balanced, ddof=1) / math.sqrt(5)
    assert found["balanced_accuracy_se_percent"] == pytest.approx(expected)
    assert found["auc"] == pytest.approx(np.mean(areas)) and found["auc"] > 0.6
    assert found["accuracy_percent"] == pytest.approx(100 - found["error_percent"])
    assert found["accuracy_se_percent"] == found["error_se_percent"]
    chance = [found[f"chance_{name}"] for name in ("error_percent", "accuracy_percent", "auc")]
    assert chance == pytest.approx([30.0, 70.0, 0.5]) and found["chance_balanced_accuracy_percent"] == 50
    assert {name for name in found if "accuracy" in name or "auc" in name} <= set(SUMMARY_COLUMNS)


@pytest.mark.parametrize("name", ["svm", "lda", "tron"])
def test_who_weighs_every_voxel_claims_no_selection(name, unequal):
    found = measures_of(cross_validate(METHODS[name], *unequal), unequal[1])
    for column in ("consistency_percent", "chance_consistency_percent", "kuncheva", "nogueira"):
        assert math.isnan(found[column])
    assert (
        found["note"] == NO_SELECTION and found["folds_selecting"] == 0 and found["sparsity_percent"] == 100
    )
    keys = {"subject": "1", "contrast": "aMinusB", "comparison": "a vs b", "method": name, "status": "ok"}
    (average,) = average_rows([{**keys, **found}])
    assert not selects({**keys, **found}) and not selects(average)


def test_balanced_accuracy_leads_where_any_comparison_is_unequal():
    assert leading_measure([(9, 9), (9, 6)]) is ERROR and leading_measure([(9, 9), (6, 10)]) is BALANCED
    task = {"positive_volumes": 10, "negative_volumes": 6}
    assert leading_of_tasks([task]) is BALANCED


def test_printed_tables_lead_with_it():
    numbers = {
        "error_percent": 10.0, "error_se_percent": 2.0, "balanced_accuracy_percent": 81.25,
        "balanced_accuracy_se_percent": 3.0, "voxels": 31.0, "sparsity_percent": 0.1,
        "consistency_percent": 38.0, "seconds": 12.0, "folds": 12, "folds_selecting": 12,
    }  # fmt: skip
    row = {
        "subject": "1",
        "contrast": "aMinusB",
        "comparison": "a vs b",
        "method": "m",
        "status": "ok",
        **numbers,
    }
    lines = terminal.pair_lines([row], {"m": "Method"}, header=True, lead=BALANCED)
    assert "Bal. acc. %" in lines and "81.2 ± 3.0" in lines and "90.0" not in lines
    table = terminal.paper_table([row], {"m": "Method"}, 200, BALANCED)
    assert (
        table.splitlines()[0].split("  ")[0] != "Error"
        and "Balanced accuracy (%)" in table
        and "81.2" in table
    )
    assert "Accuracy (%)" in terminal.paper_table([row], {"m": "Method"}, 200)
