"""The figure of a group: the accuracy of every participant, comparisons side by side."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mvpa_gamp.report.group_results import Group
from mvpa_gamp.report.style import INK, QUIET, RULE, colour_of, look, marker_of, svg
from mvpa_gamp.results.files import number

_NARROWEST, _WIDEST = 5.6, 13.0  # inches
_UPRIGHT = 6  # comparisons whose names fit side by side


def accuracy_figure(group: Group) -> bytes:
    """Accuracy of every participant (dots), mean and standard error, comparisons side by side."""
    study, summary, accuracy = group.study, group.summary, group.accuracy
    methods, names = study["methods"], list(study["comparisons"].values())
    with look():
        width = min(_WIDEST, max(_NARROWEST, 1.0 + 0.45 * len(methods) * len(names)))
        drawing = Figure(figsize=(width, 3.4 if len(names) <= _UPRIGHT else 4.4), layout="constrained")
        ax = drawing.subplots()
        for row in summary:
            key = (row["contrast"], row["method"])
            mine = [number(r["accuracy_percent"]) for r in accuracy if (r["contrast"], r["method"]) == key]
            _draw_cell(ax, study, row, mine)
        turned: dict[str, Any] = {} if len(names) <= _UPRIGHT else {"rotation": 40, "ha": "right"}
        ax.set_xticks(range(len(names)), names, **turned)
        ax.set_ylabel("accuracy on held-out runs (%)")
        ax.set_ylim(None, 101.5)
        ax.grid(axis="y", color=RULE, lw=0.5)
        handles = [
            Line2D([], [], color=colour_of(name), marker=marker_of(name), ms=5, lw=1.2, label=label)
            for name, label in methods.items()
        ]
        drawing.legend(handles=handles, loc="outside upper left", ncols=min(4, len(handles)), labelcolor=INK)
        return svg(drawing, group.banner)


def _draw_cell(ax: Axes, study: Mapping[str, Any], row: Mapping[str, str], values: Sequence[float]) -> None:
    """The participants of one comparison and method, beside them their mean, and the level of chance."""
    methods, place = list(study["methods"]), list(study["comparisons"]).index(row["contrast"])
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
