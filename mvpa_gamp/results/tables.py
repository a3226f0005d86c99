"""The headline table: a row per comparison and method, averages, what leads it; the table of participants."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mvpa_gamp.decoding.group import PeopleScores
from mvpa_gamp.decoding.scores import UNEQUAL
from mvpa_gamp.results.files import write_tsv
from mvpa_gamp.results.ledger import Cell
from mvpa_gamp.results.names import ResultsFolder

AVERAGE = "average"  # the contrast name of the rows that average over comparisons

SUMMARY_COLUMNS = (
    "subject", "contrast", "comparison", "method",
    "error_percent", "error_se_percent", "error_binomial_se_percent", "chance_error_percent",
    "accuracy_percent", "accuracy_se_percent", "chance_accuracy_percent",
    "balanced_accuracy_percent", "balanced_accuracy_se_percent", "chance_balanced_accuracy_percent",
    "auc", "auc_se", "chance_auc",
    "voxels", "sparsity_percent",
    "consistency_percent", "chance_consistency_percent", "kuncheva",
    "nogueira", "nogueira_low", "nogueira_high",
    "average_precision", "chance_average_precision",
    "folds", "folds_selecting", "folds_converged", "status",
)  # fmt: skip
TIMING_COLUMNS = ("subject", "contrast", "comparison", "method", "seconds")
_KEYS = ("subject", "contrast", "comparison", "method")
_NOT_AVERAGED = (
    *_KEYS,
    "status",
    "nogueira_low",
    "nogueira_high",
    "folds",
    "folds_selecting",
    "folds_converged",
)
OF_SELECTIONS = ("consistency_percent", "chance_consistency_percent")

Row = Mapping[str, Any]


def selects(row: Row) -> bool:
    """Whether a row's method chose voxels in at least half of its folds, neither none nor all of them.

    Otherwise its consistency says nothing: two empty selections are as equal as two complete ones.
    """
    if row["contrast"] == AVERAGE:
        return not math.isnan(_number(row, "consistency_percent"))
    chose, folds = _number(row, "folds_selecting"), _number(row, "folds")
    return not 2 * chose < folds  # a table without the count is taken at its word


def _number(row: Row, column: str) -> float:
    """A cell as a number, NaN where there is none."""
    value = row.get(column)
    return math.nan if value is None else float(value)


def average_rows(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """One row per subject and method: the mean of every number over its comparisons, as in the paper.

    Comparisons that failed are left out of the mean and counted in ``status``; fold counts are summed.
    Consistency is averaged over the comparisons where the method :func:`selects`.
    """
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["subject"], row["method"]), []).append(row)
    return [_average(subject, method, group) for (subject, method), group in groups.items()]


def _average(subject: str, method: str, rows: Sequence[Row]) -> dict[str, Any]:
    """The average row of one method."""
    good = [row for row in rows if row["status"] == "ok"]
    out: dict[str, Any] = {"subject": subject, "contrast": AVERAGE, "comparison": AVERAGE, "method": method}
    for column in SUMMARY_COLUMNS:
        if column not in _NOT_AVERAGED:
            used = [row for row in good if selects(row)] if column in OF_SELECTIONS else good
            values = [float(row[column]) for row in used if row.get(column) is not None]
            out[column] = float(np.mean(values)) if values else math.nan
    for column in ("folds", "folds_selecting", "folds_converged"):
        out[column] = sum(int(row.get(column, 0)) for row in good)
    out["status"] = "ok" if len(good) == len(rows) else f"{len(rows) - len(good)} of {len(rows)} failed"
    return out


def join_timings(summary: Sequence[Row], timings: Iterable[Row]) -> list[dict[str, Any]]:
    """Summary rows with their ``seconds``; a KeyError where the two tables are of different cells."""
    seconds = {tuple(row[key] for key in _KEYS): row["seconds"] for row in timings}
    keys = [tuple(row[key] for key in _KEYS) for row in summary]
    timed = {(key[0], key[3]) for key, value in seconds.items() if value == value}  # not NaN: there is a mean
    lost = [key for key in keys if key not in seconds]
    if lost := [key for key in lost if AVERAGE not in key or (key[0], key[3]) in timed]:
        raise KeyError(f"no run time of {lost[0]}")
    out = [{**row, "seconds": seconds.pop(tuple(row[key] for key in _KEYS), None)} for row in summary]
    if seconds:
        raise KeyError(f"run times of {next(iter(seconds))}")
    return out


def with_accuracy(row: Row) -> dict[str, Any]:
    """The row with what the error rate says as an accuracy, where its table has no such columns."""
    told = {
        "accuracy_percent": 100 - _number(row, "error_percent"),
        "accuracy_se_percent": _number(row, "error_se_percent"),
        "chance_percent": 100 - _number(row, "chance_error_percent"),
    }
    return {**told, **row}


def timing_averages(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """One row per subject and method: its mean seconds per comparison."""
    groups: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        if row["seconds"] is not None:
            groups.setdefault((row["subject"], row["method"]), []).append(float(row["seconds"]))
    return [
        {
            "subject": subject,
            "contrast": AVERAGE,
            "comparison": AVERAGE,
            "method": method,
            "seconds": np.mean(s),
        }
        for (subject, method), s in groups.items()
    ]


@dataclass(frozen=True)
class LeadingMeasure:
    """Columns of summary.tsv: the measure, its standard error over folds, and what guessing reaches."""

    name: str
    title: str  # above a group of columns
    short: str  # above a narrow column
    column: str
    spread: str
    chance: str
    higher_is_better: bool


ERROR = LeadingMeasure(
    "error rate", "Error rate (%)", "Error %",
    "error_percent", "error_se_percent", "chance_error_percent", False,
)  # fmt: skip
BALANCED = LeadingMeasure(
    "balanced accuracy", "Balanced accuracy (%)", "Bal. acc. %",
    "balanced_accuracy_percent", "balanced_accuracy_se_percent", "chance_balanced_accuracy_percent", True,
)  # fmt: skip


def leading_measure(counts: Iterable[tuple[int, int]]) -> LeadingMeasure:
    """Balanced accuracy if any comparison has over 1.5 times as many rows of one category as of the other.

    ``counts`` are the rows of both categories of every comparison. One measure leads the whole table, so that
    its rows can be compared; the others have their columns in summary.tsv either way.

    >>> leading_measure([(108, 108), (108, 108)]).name, leading_measure([(108, 108), (108, 60)]).name
    ('error rate', 'balanced accuracy')
    """
    return BALANCED if any(max(pair) > UNEQUAL * min(pair) for pair in counts) else ERROR


def leading_of_tasks(tasks: Iterable[Mapping[str, Any]]) -> LeadingMeasure:
    """The same from the ``tasks`` of summary.json."""
    return leading_measure((task["positive_volumes"], task["negative_volumes"]) for task in tasks)


_PEOPLE_COLUMNS = (
    "contrast", "comparison", "method", "participants", "forced_choice_percent", "low_percent",
    "high_percent", "p_value", "sensitivity_percent", "specificity_percent", "auc",
)  # fmt: skip


def write_people(
    folder: ResultsFolder, subject: str, found: Sequence[tuple[Cell, PeopleScores]]
) -> dict[str, Any]:
    """Write the table; returns the ``people`` part of summary.json."""
    if not found:
        return {}
    rows = [_people_row(*each) for each in found]
    write_tsv(folder.subject_table(subject, "people"), _PEOPLE_COLUMNS, rows)
    return {"people": rows}


def _people_row(cell: Cell, scores: PeopleScores) -> dict[str, Any]:
    shares = ("choice", "low", "high", "sensitivity", "specificity")
    percent = {name: _known(100 * getattr(scores, name)) for name in shares}
    return {
        "contrast": cell.task.name,
        "comparison": cell.task.label,
        "method": cell.method.name,
        "participants": scores.n,
        "forced_choice_percent": percent["choice"],
        "low_percent": percent["low"],
        "high_percent": percent["high"],
        "p_value": _known(scores.pvalue),
        "sensitivity_percent": percent["sensitivity"],
        "specificity_percent": percent["specificity"],
        "auc": _known(scores.auc),
    }


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
