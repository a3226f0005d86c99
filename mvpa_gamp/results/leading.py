"""The measure that leads tables: the error rate, or balanced accuracy where categories are unequal."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mvpa_gamp.decoding.scores import UNEQUAL


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
