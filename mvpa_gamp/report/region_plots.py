"""Figures of regions: the first ones of every method, by accuracy, summed inclusion or share of weight."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mvpa_gamp.report.inference import REGIONS_SHOWN
from mvpa_gamp.report.style import INK, QUIET, RULE, colour_of, look, svg
from mvpa_gamp.results.files import MISSING, number
from mvpa_gamp.results.reader import Results

LEVEL = 0.05  # family-wise
_LETTERS = 34  # of a name
_PANEL, _LINE = 3.1, 0.24  # inches: width of the bars, height of one
_COLUMNS = 2  # panels side by side

Rows = Sequence[Mapping[str, str]]


def region_bars(results: Results, tables: Mapping[str, Rows], chance: float) -> bytes:
    """A panel per method: its first regions as horizontal bars.

    ``tables`` are the rows of the regions of each method, ranked; ``chance`` is an accuracy in percent.
    """
    columns = min(_COLUMNS, len(tables))
    lines = -(-len(tables) // columns)
    most = max(min(REGIONS_SHOWN, len(rows)) for rows in tables.values())
    height = lines * (0.85 + _LINE * most) + 0.3
    with look():
        figure = Figure(figsize=(columns * (_PANEL + 2.4), height), layout="constrained")
        axes = figure.subplots(lines, columns, squeeze=False).ravel()
        for ax in axes[len(tables) :]:
            ax.set_visible(False)
        for ax, (method, rows) in zip(axes, tables.items(), strict=False):
            _draw(ax, rows, chance, colour_of(method))
            ax.set_title(results.labels[method], loc="left")
        return svg(figure, results.banner)


def _draw(ax: Axes, rows: Rows, chance: float, of: str) -> None:
    """One panel; the first region on top. Where some were decoded alone, only those are drawn."""
    tested = [row for row in rows if not math.isnan(number(row.get("accuracy_percent", MISSING)))]
    rows = (tested or rows)[:REGIONS_SHOWN]
    places = np.arange(len(rows))
    if tested:
        _draw_accuracies(ax, rows, chance, places, of)
    else:
        has_inclusion = rows[0]["summed_inclusion"] != MISSING
        column = "summed_inclusion" if has_inclusion else "weight_share_percent"
        ax.barh(places, np.nan_to_num([number(row[column]) for row in rows]), height=0.66, color=of)
        ax.set_xlabel("summed inclusion probability" if has_inclusion else "share of weight (%)")
    ax.set_yticks(places, [_short(row["region"]) for row in rows], color=INK)
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", color=RULE, lw=0.5)
    ax.set_axisbelow(True)


def _draw_accuracies(ax: Axes, rows: Rows, chance: float, places: np.ndarray, of: str) -> None:
    """Bars from chance to the accuracy, with standard errors; a star where it is better than chance."""
    accuracy = np.array([number(row["accuracy_percent"]) for row in rows])
    error = np.array([number(row["accuracy_se_percent"]) for row in rows])
    ax.barh(places, accuracy - chance, left=chance, height=0.66, color=of, alpha=0.75)
    ax.errorbar(
        accuracy, places, xerr=np.nan_to_num(error), fmt="none", ecolor=INK, elinewidth=0.9, capsize=1.8
    )
    ax.axvline(chance, color=QUIET, lw=0.9, ls=(0, (4, 3)))
    right = accuracy + np.nan_to_num(error)
    for place, row, at in zip(places, rows, right, strict=True):
        if number(row.get("p_value_fwe", MISSING)) <= LEVEL:
            ax.annotate(
                "*", (at, place), xytext=(4, -4.5), textcoords="offset points", color=INK, fontsize=11
            )
    left = accuracy - np.nan_to_num(error)
    ax.set_xlim(min(chance - 5, left.min() - 1), max(chance + 10, right.max() + 4))
    ax.set_xlabel("accuracy of the region alone (%), dashed: chance")


def _short(name: str) -> str:
    """A name that leaves room for the bars."""
    return name if len(name) <= _LETTERS else name[: _LETTERS - 1] + "…"
