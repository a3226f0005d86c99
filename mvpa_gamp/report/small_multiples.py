"""Small multiples, a panel per comparison, under one legend of the methods."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mvpa_gamp.report.style import INK, colour, marker
from mvpa_gamp.results.reader import Results

COLUMNS = 3  # panels per line
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
        Line2D([], [], color=colour(i), marker=marker(i), ms=5, lw=1.2, label=label)
        for i, label in enumerate(results.labels.values())
    ]
    line, letter = _LEGEND_INCHES
    entry = line + letter * max(len(label) for label in results.labels.values())
    columns = max(1, min(5, len(handles), int(figure.get_figwidth() / entry)))
    figure.legend(handles=handles, loc="outside upper left", ncols=columns, labelcolor=INK)
