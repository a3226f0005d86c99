"""The headline table: one row per comparison and method, their average, and its printed forms."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

AVERAGE = "average"  # the contrast name of the rows that average over comparisons

SUMMARY_COLUMNS = (
    "subject", "contrast", "comparison", "method",
    "error_percent", "error_se_percent", "error_binomial_se_percent", "chance_error_percent",
    "voxels", "sparsity_percent",
    "consistency_percent", "chance_consistency_percent", "kuncheva",
    "nogueira", "nogueira_low", "nogueira_high",
    "average_precision", "chance_average_precision",
    "folds", "folds_selecting", "folds_converged", "status",
)  # fmt: skip
_LONGEST_NAME = 48  # characters of a comparison in print
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
_OF_SELECTIONS = ("consistency_percent", "chance_consistency_percent")

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


def error_summary(wrong: NDArray, held_out: NDArray, y: NDArray) -> dict[str, float]:
    """Error rate over held-out rows with two standard errors, in percent.

    ``wrong`` (M,) bool; ``held_out`` (M,) the run in which each row was held out; ``y`` (M,) in -1/+1.
    ``error_se_percent`` is the standard deviation of the run-wise errors over sqrt(runs): it respects
    that rows of one block are correlated. ``error_binomial_se_percent`` treats all M rows as
    independent and is usually too small. Folds share training rows, so neither is exact.
    """
    rates = np.array([wrong[held_out == run].mean() for run in np.unique(held_out)])
    error = float(rates.mean())
    spread = float(rates.std(ddof=1) / math.sqrt(len(rates))) if len(rates) > 1 else math.nan
    majority = max(float((y > 0).mean()), float((y < 0).mean()))
    return {
        "error_percent": 100 * error,
        "error_se_percent": 100 * spread,
        "error_binomial_se_percent": 100 * math.sqrt(error * (1 - error) / len(wrong)),
        "chance_error_percent": 100 * (1 - majority),
    }


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
            used = [row for row in good if selects(row)] if column in _OF_SELECTIONS else good
            values = [float(row[column]) for row in used if row.get(column) is not None]
            out[column] = float(np.mean(values)) if values else math.nan
    for column in ("folds", "folds_selecting", "folds_converged"):
        out[column] = sum(int(row.get(column, 0)) for row in good)
    out["status"] = "ok" if len(good) == len(rows) else f"{len(rows) - len(good)} of {len(rows)} failed"
    return out


@dataclass(frozen=True)
class Measure:
    """A column group of the printed table."""

    title: str
    column: str
    show: Callable[[float], str]
    best: Callable[[Iterable[float]], float]


def significant(value: float) -> str:
    """A small percentage with as many decimals as it needs: 12, 3.4, 0.12, 0.013."""
    if value == 0 or value >= 10:
        return f"{value:.0f}" if value != 0 else "0"
    return f"{value:.1f}" if value >= 1 else f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


def seconds_text(value: float) -> str:
    """Seconds with a decimal where it says something."""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


MEASURES = (
    Measure("Error rate (%)", "error_percent", lambda v: f"{v:.1f}", min),
    Measure("Selected voxels", "voxels", lambda v: f"{v:.0f}" if v >= 10 else f"{v:.1f}", min),
    Measure("Sparsity (%)", "sparsity_percent", significant, min),
    Measure("Consistency (%)", "consistency_percent", lambda v: f"{v:.0f}", max),
    Measure("Runtime (s)", "seconds", seconds_text, min),
)


def show(measure: Measure, value: Any) -> str:
    """A cell of the printed table; a dash where there is no number."""
    return "–" if value is None or math.isnan(float(value)) else measure.show(float(value))


def measured(measure: Measure, row: Row) -> float | None:
    """The number of a row that may be shown: no consistency where the method does not select."""
    if measure.column in _OF_SELECTIONS and not selects(row):
        return None
    return row.get(measure.column)


def join_timings(summary: Iterable[Row], timings: Iterable[Row]) -> list[dict[str, Any]]:
    """Summary rows with their ``seconds``."""
    seconds = {tuple(row[key] for key in _KEYS): row["seconds"] for row in timings}
    return [{**row, "seconds": seconds.get(tuple(row[key] for key in _KEYS))} for row in summary]


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


def pair_lines(
    rows: Sequence[Row], labels: Mapping[str, str], header: bool, names: Sequence[str] = ()
) -> str:
    """The lines printed when a comparison is done: one per method, 80 characters wide for short names.

    ``names`` are all comparisons that will be printed: the first column has room for the longest.
    """
    lines = []
    first = _room((*names, *(row["comparison"] for row in rows)), at_least=19)
    if header:
        measures = f"{'Error %':>12}{'Voxels (%)':>15}{'Consist. %':>11}{'Time s':>8}"
        lines.append(f"{'Comparison':<{first + 1}}{'Method':<18}{measures}")
    for i, row in enumerate(rows):
        name = row["comparison"] if i == 0 else ""
        method = _clip(labels[row["method"]], 17)
        lines.append(f"{_clip(name, first):<{first + 1}}{method:<18}" + _measures_text(row))
    return "\n".join(lines)


def _measures_text(row: Row) -> str:
    """The four measures of one row, or the sentence that says why there are none."""
    if row["status"] != "ok":
        return f"  {row['status']}"
    error, voxels, sparsity, consistency, seconds = (show(m, measured(m, row)) for m in MEASURES)
    spread = row["error_se_percent"]
    error += f" ± {spread:.1f}" if not math.isnan(spread) else ""
    return f"{error:>12}{f'{voxels} ({sparsity})':>15}{consistency:>11}{seconds:>8}"


def paper_table(rows: Sequence[Row], labels: Mapping[str, str], width: int) -> str:
    """The paper's table: a row per comparison and the average, methods side by side in each measure.

    As many measures stand beside each other as fit into ``width`` characters; the rest follow below.
    """
    methods = [method for method in labels if any(row["method"] == method for row in rows)]
    comparisons = list(dict.fromkeys(row["comparison"] for row in rows))
    if len(comparisons) == 2 and AVERAGE in comparisons:
        comparisons.remove(AVERAGE)  # of one comparison
    by_key = {(row["comparison"], row["method"]): row for row in rows}
    first = _room(comparisons, at_least=len("Comparison")) + 1
    title = max(len(measure.title) for measure in MEASURES) + 1
    column = max(-(-title // len(methods)), *(len(labels[method]) + 2 for method in methods))
    group = column * len(methods) + 2
    per_band = max(1, (width - first) // group)
    bands = [MEASURES[i : i + per_band] for i in range(0, len(MEASURES), per_band)]
    texts = [_band(band, comparisons, methods, by_key, labels, first, column) for band in bands]
    return "\n\n".join(texts)


def _band(
    band: Sequence[Measure], comparisons: Sequence[str], methods: Sequence[str],
    by_key: Mapping[tuple[str, str], Row], labels: Mapping[str, str], first: int, column: int,
) -> str:  # fmt: skip
    """The measures that stand side by side."""
    group = column * len(methods)
    place = ">" if len(methods) == 1 else "^"  # a single column has its title right above it
    lines = [" " * first + "  ".join(f"{m.title:{place}{group}}" for m in band).rstrip()]
    names = "".join(f"{labels[method]:>{column}}" for method in methods)
    lines.append(f"{'Comparison':<{first}}" + "  ".join(names for _ in band))
    rule = "-" * len(lines[-1])
    lines.append(rule)
    for name in comparisons:
        if name == AVERAGE:
            lines.append(rule)
        known = [by_key.get((name, method)) for method in methods]
        cells = [
            "".join(f"{show(m, None if row is None else measured(m, row)):>{column}}" for row in known)
            for m in band
        ]
        lines.append(f"{_clip(name, first - 1):<{first}}" + "  ".join(cells))
    return "\n".join(lines)


def _room(names: Iterable[str], at_least: int) -> int:
    """Characters that the longest name needs, within reason."""
    return min(_LONGEST_NAME, max([at_least, *(len(name) for name in names)]))


def _clip(text: str, width: int) -> str:
    """``text`` on one line of at most ``width`` characters."""
    text = "".join(c if c.isprintable() else "?" for c in text)
    return text if len(text) <= width else text[: width - 1] + "…"
