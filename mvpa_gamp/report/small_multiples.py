"""Figures of all comparisons under one legend of the methods: a panel each, or a line each in one panel."""

from collections.abc import Iterator, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mvpa_gamp.report.style import INK, RULE, colour_of, marker_of
from mvpa_gamp.results.reader import Results

COLUMNS = 3  # panels per line
_LONGEST = 40  # letters of a label in a figure
_NARROWEST = 5.6  # inches: room for a legend above a single panel
_LEGEND_INCHES = 0.6, 0.085  # width of an entry: its line, and each letter


def grid(results: Results, height: float, sharey: bool) -> tuple[Figure, list[Axes]]:
    """Small multiples, one per comparison."""
    count = len(results.tasks)
    columns = min(COLUMNS, count)
    rows = -(-count // columns)
    figure = Figure(figsize=(max(_NARROWEST, 3.5 * columns + 0.6), height * rows + 0.7))
    figure.set_layout_engine("constrained", h_pad=0.1)
    axes = list(figure.subplots(rows, columns, squeeze=False, sharey=sharey).ravel())
    for ax in axes[count:]:
        ax.set_visible(False)
    return figure, axes[:count]


def label_left(axes: Sequence[Axes], text: str) -> None:
    """A y label for the first panel of each line."""
    for ax in axes[::COLUMNS]:
        ax.set_ylabel(text)


def legend(figure: Figure, results: Results) -> None:
    """One legend above all panels, in as many columns as the figure has room for."""
    handles = [
        Line2D([], [], color=colour_of(method), marker=marker_of(method), ms=5, lw=1.2, label=label)
        for method, label in results.labels.items()
    ]
    line, letter = _LEGEND_INCHES
    entry = line + letter * max(len(label) for label in results.labels.values())
    columns = max(1, min(5, len(handles), int(figure.get_figwidth() / entry)))
    figure.legend(handles=handles, loc="outside upper left", ncols=columns, labelcolor=INK)


def short(label: str) -> str:
    """A label that leaves room for what it labels."""
    return label if len(label) <= _LONGEST else label[: _LONGEST - 1] + "…"


def lines_of(results: Results) -> Iterator[tuple[float, str, str, str]]:
    """Height, label, contrast and method of every line of a :func:`forest`, from top to bottom."""
    count = len(results.labels)
    for at, task in enumerate(results.tasks):
        for i, method in enumerate(results.labels):
            yield at + (i + 0.5) / count - 0.5, task["label"], task["contrast"], method


def forest(results: Results) -> tuple[Figure, Axes]:
    """One panel in which every comparison has a band of lines, the first one at the top."""
    count = len(results.tasks)
    figure = Figure(figsize=(6.0, 1.25 + count * max(0.26, 0.15 * len(results.labels))), layout="constrained")
    ax = figure.subplots()
    ax.set_ylim(count - 0.5, -0.5)
    ax.set_yticks(range(count), [short(task["label"]) for task in results.tasks], color=INK)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.hlines(
        [at + 0.5 for at in range(count - 1)], 0, 1, transform=ax.get_yaxis_transform(), color=RULE, lw=0.5
    )
    ax.grid(axis="x", color=RULE, lw=0.5)
    ax.set_axisbelow(True)
    return figure, ax
