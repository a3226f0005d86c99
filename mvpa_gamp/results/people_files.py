"""people.tsv: forced choice, sensitivity, specificity and area under the curve of maps of participants."""

import math
from collections.abc import Sequence
from typing import Any

from mvpa_gamp.decoding.people import PeopleScores
from mvpa_gamp.results.cell import Cell
from mvpa_gamp.results.files import write_tsv
from mvpa_gamp.results.names import ResultsFolder

_COLUMNS = (
    "contrast", "comparison", "method", "participants", "forced_choice_percent", "low_percent",
    "high_percent", "p_value", "sensitivity_percent", "specificity_percent", "auc",
)  # fmt: skip


def write_people(
    folder: ResultsFolder, subject: str, found: Sequence[tuple[Cell, PeopleScores]]
) -> dict[str, Any]:
    """Write the table; returns the ``people`` part of summary.json."""
    if not found:
        return {}
    rows = [_row(*each) for each in found]
    write_tsv(folder.subject_table(subject, "people"), _COLUMNS, rows)
    return {"people": rows}


def _row(cell: Cell, scores: PeopleScores) -> dict[str, Any]:
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
