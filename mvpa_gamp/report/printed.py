"""The headline table in print: lines for the terminal, and the measures that the page shows."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mvpa_gamp.results.leading import ERROR, LeadingMeasure
from mvpa_gamp.results.tables import AVERAGE, OF_SELECTIONS, Row, selects, with_accuracy

_LONGEST_NAME = 48  # characters of a comparison in print


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


def voxels_text(value: float) -> str:
    """A mean number of voxels, with a decimal where it is small."""
    if math.isnan(value):
        return "–"
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def tenths(place: Iterable[float]) -> str:
    """Coordinates in tenths of a mm, the same whether read from a table or computed."""
    return ", ".join(f"{rounded(10 * float(value)) / 10:.1f}" for value in place)


def rounded(value: float) -> int:
    """A whole number, halves upwards, also where tables keep fewer digits than the computer."""
    return math.floor(round(value, 3) + 0.5)


def chance_text(percent: float) -> str:
    """A chance level the same way everywhere: 50, or 50.2 where it is not a whole percentage."""
    return f"{percent:.1f}".removesuffix(".0")


def seconds_text(value: float) -> str:
    """Seconds with a decimal where it says something."""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


MEASURES = (
    Measure("Accuracy (%)", "accuracy_percent", lambda v: f"{v:.1f}", max),
    Measure("Voxels per fold", "voxels", voxels_text, min),
    Measure("Sparsity (%)", "sparsity_percent", significant, min),
    Measure("Consistency (%)", "consistency_percent", lambda v: f"{v:.0f}", max),
    Measure("Runtime (s)", "seconds", seconds_text, min),
)


def measures_led_by(lead: LeadingMeasure) -> tuple[Measure, ...]:
    """The measures of a table, the leading one first; what the error rate says is shown as accuracy."""
    if lead == ERROR:
        return MEASURES
    best = max if lead.higher_is_better else min
    return (Measure(lead.title, lead.column, lambda v: f"{v:.1f}", best), *MEASURES[1:])


def show(measure: Measure, value: Any) -> str:
    """A cell of the printed table; a dash where there is no number."""
    return "–" if value is None or math.isnan(float(value)) else measure.show(float(value))


def measured(measure: Measure, row: Row) -> float | None:
    """The number of a row that may be shown: no consistency where the method does not select."""
    row = with_accuracy(row)
    if measure.column in OF_SELECTIONS and not selects(row):
        return None
    return row.get(measure.column)


def pair_lines(
    rows: Sequence[Row], labels: Mapping[str, str], header: bool, names: Sequence[str] = (),
    lead: LeadingMeasure = ERROR,
) -> str:  # fmt: skip
    """The lines printed when a comparison is done: one per method, 80 characters wide for short names.

    ``names`` are all comparisons that will be printed: the first column has room for the longest.
    """
    lines = []
    first = _room((*names, *(row["comparison"] for row in rows)), at_least=19)
    if header:
        first_title = "Accuracy %" if lead == ERROR else lead.short
        measures = f"{first_title:>13}{'Voxels (%)':>13}{'Consistency':>12}{'Time s':>8}"
        lines.append(f"{'Comparison':<{first + 1}}{'Method':<18}{measures}")
    for i, row in enumerate(rows):
        name = row["comparison"] if i == 0 else ""
        method = _clip(labels[row["method"]], 17)
        lines.append(f"{_clip(name, first):<{first + 1}}{method:<18}" + _measures_text(row, lead))
    return "\n".join(lines)


def _measures_text(row: Row, lead: LeadingMeasure) -> str:
    """The four measures of one row, or the sentence that says why there are none."""
    if row["status"] != "ok":
        return f"  {row['status']}"
    row = with_accuracy(row)
    first, voxels, sparsity, consistency, seconds = (show(m, measured(m, row)) for m in measures_led_by(lead))
    spread = row["accuracy_se_percent" if lead == ERROR else lead.spread]
    first += f" ± {spread:.1f}" if not math.isnan(spread) else ""
    return f"{first:>13}{f'{voxels} ({sparsity})':>13}{consistency:>12}{seconds:>8}"


def paper_table(
    rows: Sequence[Row], labels: Mapping[str, str], width: int, lead: LeadingMeasure = ERROR
) -> str:
    """The paper's table: a row per comparison and the average, methods side by side in each measure.

    As many measures stand beside each other as fit into ``width`` characters; the rest follow below.
    """
    methods = [method for method in labels if any(row["method"] == method for row in rows)]
    comparisons = list(dict.fromkeys(row["comparison"] for row in rows))
    if len(comparisons) == 2 and AVERAGE in comparisons:
        comparisons.remove(AVERAGE)  # of one comparison
    by_key = {(row["comparison"], row["method"]): row for row in rows}
    first = _room(comparisons, at_least=len("Comparison")) + 1
    measures = measures_led_by(lead)
    title = max(len(measure.title) for measure in measures) + 1
    column = max(-(-title // len(methods)), *(len(labels[method]) + 2 for method in methods))
    group = column * len(methods) + 2
    per_band = max(1, (width - first) // group)
    bands = [measures[i : i + per_band] for i in range(0, len(measures), per_band)]
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
