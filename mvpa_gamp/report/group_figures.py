"""Accuracies of participants as dots beside their mean, comparisons side by side."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mvpa_gamp.report.style import INK, QUIET, RULE, colour_of, look, marker_of, svg
from mvpa_gamp.results.files import number

_NARROWEST, _WIDEST = 5.6, 13.0  # inches
_UPRIGHT = 60  # letters of names that fit side by side

Rows = Sequence[Mapping[str, str]]


def accuracy_figure(
    summary: Rows, accuracy: Rows, methods: Mapping[str, str], names: Mapping[str, str], banner: str | None
) -> bytes:
    """Accuracy of every participant (dots), mean and standard error, comparisons side by side.

    ``summary`` and ``accuracy`` are rows of the group and of its participants, ``methods`` the labels of
    methods by name, ``names`` what is written below each comparison.
    """
    with look():
        width = min(_WIDEST, max(_NARROWEST, 1.0 + 0.45 * len(methods) * len(names)))
        upright = sum(max(map(len, name.split("\n"))) for name in names.values()) <= _UPRIGHT
        drawing = Figure(figsize=(width, 3.4 if upright else 4.4), layout="constrained")
        ax = drawing.subplots()
        for row in summary:
            key = (row["comparison"], row["method"])
            mine = [number(r["accuracy_percent"]) for r in accuracy if (r["comparison"], r["method"]) == key]
            _draw_cell(ax, list(methods), list(names).index(row["comparison"]), row, mine)
        turned: dict[str, Any] = {} if upright else {"rotation": 40, "ha": "right"}
        ax.set_xticks(range(len(names)), list(names.values()), **turned)
        ax.set_ylabel("accuracy on held-out runs (%)")
        ax.set_ylim(None, 101.5)
        ax.grid(axis="y", color=RULE, lw=0.5)
        handles = [
            Line2D([], [], color=colour_of(name), marker=marker_of(name), ms=5, lw=1.2, label=label)
            for name, label in methods.items()
        ]
        drawing.legend(handles=handles, loc="outside upper left", ncols=min(4, len(handles)), labelcolor=INK)
        return svg(drawing, banner)


def _draw_cell(
    ax: Axes, methods: Sequence[str], place: int, row: Mapping[str, str], values: Sequence[float]
) -> None:
    """The participants of one comparison and method, beside them their mean, and the level of chance."""
    i, step = methods.index(row["method"]), 0.8 / len(methods)
    x = place + (i - (len(methods) - 1) / 2) * step
    of = colour_of(row["method"])
    ax.plot(np.full(len(values), x), values, "o", ms=3.4, color=of, alpha=0.5, mew=0)
    mean, se = number(row["accuracy_percent"]), number(row["accuracy_se_percent"])
    bar = 0.0 if math.isnan(se) else se
    shape = marker_of(row["method"])
    ax.errorbar(x + step / 4, mean, yerr=bar, fmt=shape, ms=5, color=of, capsize=2.5, lw=1.3)
    across, chance = (place - 0.45, place + 0.45), number(row["chance_percent"])
    ax.plot(across, (chance, chance), color=QUIET, lw=0.7, ls=(0, (4, 3)), zorder=0)
