import math

import numpy as np
import pytest

from mvpa_gamp.report import terminal, words
from mvpa_gamp.results import cells, tables

LABELS = {"m1": "Method 1", "m2": "Method 2"}


def row(comparison, method, **values):
    base = {"subject": "1", "contrast": comparison.replace(" vs ", "Minus"), "comparison": comparison}
    numbers = {
        "error_percent": 10.0,
        "error_se_percent": 2.0,
        "voxels": 31.0,
        "sparsity_percent": 0.1,
        "consistency_percent": 38.0,
        "seconds": 12.0,
    }
    return {**base, "method": method, **numbers, "folds": 12, "folds_converged": 11, "status": "ok", **values}


def test_error_is_the_mean_over_runs_with_two_standard_errors():
    runs = np.repeat([0, 1, 2], 4)
    wrong = np.array([1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0], dtype=bool)
    y = np.tile([1, -1], 6)
    said = cells.error_summary(wrong, runs, y)
    rates = np.array([0.5, 0.0, 0.25])
    assert said["error_percent"] == pytest.approx(25.0)
    assert said["error_se_percent"] == pytest.approx(100 * rates.std(ddof=1) / math.sqrt(3))
    assert said["error_binomial_se_percent"] == pytest.approx(100 * math.sqrt(0.25 * 0.75 / 12))
    assert said["chance_error_percent"] == 50.0


def test_the_average_leaves_failed_comparisons_out_and_says_so():
    rows = [
        row("a vs b", "m1"),
        row("c vs d", "m1", error_percent=20.0),
        row("e vs f", "m1", status="failed: x"),
    ]
    rows[2] = {k: v for k, v in rows[2].items() if k != "error_percent"}
    (average,) = tables.average_rows(rows)
    assert average["error_percent"] == 15.0
    assert average["folds"] == 24
    assert average["status"] == "1 of 3 failed"


def test_the_printed_row_fits_eighty_columns_and_carries_the_numbers():
    text = terminal.pair_lines(
        [row("cat vs scissors", "m1"), row("cat vs scissors", "m2")], LABELS, header=True
    )
    assert max(map(len, text.splitlines())) <= 84
    assert "90.0 ± 2.0" in text  # accuracy
    assert "31 (0.10)" in text
    wide = [row("cat vs scissors", "m1", error_percent=10.2, voxels=217972.0, sparsity_percent=100.0)]
    # columns stand apart however long a number is
    assert "89.8 ± 2.0 217,972 (100) " in terminal.pair_lines(wide, LABELS, header=False), (
        "columns stand apart"
    )
    failed = row("a vs b", "m1", status="failed: it broke")
    assert "failed: it broke" in terminal.pair_lines([failed], LABELS, header=False)


@pytest.mark.parametrize("width", [40, 90, 400])
def test_the_paper_table_has_a_row_per_comparison_whatever_the_width(width):
    rows = [row(c, m) for c in ("cat vs scissors", "average") for m in LABELS]
    text = terminal.paper_table(rows, LABELS, width)
    for measure in terminal.MEASURES:
        assert measure.title in text
    bands = text.split("\n\n")
    assert all(sum(line.startswith("cat vs scissors") for line in band.splitlines()) == 1 for band in bands)
    if width >= 90:
        assert max(map(len, text.splitlines())) <= width


def test_control_characters_of_a_label_do_not_reach_the_terminal():
    text = terminal.pair_lines([row("\x1b[31mred vs b", "m1")], LABELS, header=False)
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("value", "said"), [(0, "0"), (0.0123, "0.012"), (0.123, "0.12"), (1.23, "1.2"), (12.3, "12")]
)
def test_small_percentages_keep_their_digits(value, said):
    assert words.significant(value) == said


@pytest.mark.parametrize(("voxels", "chose"), [(0.0, 0), (1000.0, 0), (0.1, 1), (31.0, 12)])
def test_no_consistency_is_shown_where_nothing_or_everything_is_selected(voxels, chose):
    rows = [row("a vs b", "m1", voxels=voxels, folds_selecting=chose, consistency_percent=97.0)]
    rows += tables.average_rows(rows)
    assert all(tables.selects(each) == (chose > 5) for each in rows)
    text = terminal.pair_lines(rows, LABELS, header=False) + terminal.paper_table(rows, LABELS, 200)
    assert ("97" in text) == (chose > 5)
    assert rows[0]["consistency_percent"] == 97.0  # the tables keep the number


def test_one_comparison_has_no_average_and_long_names_are_not_cut():
    name = "a rather long category vs another one"
    rows = [row(name, "m1"), row("average", "m1")]
    rows[1]["contrast"] = tables.AVERAGE
    text = terminal.paper_table(rows, LABELS, 200)
    assert "average" not in text
    assert name in text
    assert name in terminal.pair_lines(rows[:1], LABELS, header=True)
