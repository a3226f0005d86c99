"""Figures of inference: accuracies of permuted labels, and accuracy against the number of training runs."""

import math
from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from mvpa_gamp.report.inference import has_values
from mvpa_gamp.report.small_multiples import COLUMNS, forest, grid, label_left, lines_of, short
from mvpa_gamp.report.style import INK, QUIET, RULE, colour_of, look, marker_of, svg
from mvpa_gamp.results.files import number, read_tsv
from mvpa_gamp.results.reader import Results

_DOTS = (0, (1, 1.5))
_FEW_BARS, _WIDEST_BAR = 6, 0.06  # of a histogram; the width as a share of what it spans
_ENTRY_INCHES = 2.8  # of a legend
_FEW = 6  # comparisons that have a panel each


def null_accuracies(results: Results, subject: str) -> bytes:
    """Per comparison and method, the accuracies of permuted labels and the observed one."""
    draw = _null_panels if len(results.tasks) <= _FEW else _null_lines
    with look():
        figure = draw(
            results, subject, {(row["contrast"], row["method"]): row for row in results.inference_rows()}
        )
        drawn = _methods_with(results, subject, "permutations")
        shown = [Line2D([], [], color=colour_of(m), lw=1.8, label=f"{label}, observed") for m, label in drawn]
        handles = [*shown, Line2D([], [], color=QUIET, lw=5, alpha=0.5, label="with permuted labels")]
        _legend(figure, handles)
        return svg(figure, results.banner)


def _null_panels(
    results: Results, subject: str, observed: Mapping[tuple[str, str], Mapping[str, str]]
) -> Figure:
    """Histograms, a panel per comparison."""
    figure, axes = grid(results, height=2.2, sharey=False)
    for ax, task in zip(axes, results.tasks, strict=True):
        for method in results.labels:
            if "permutations" in results.inferred(subject, task["contrast"], method):
                seen = number(observed[task["contrast"], method]["accuracy_percent"])
                null = _column(results, subject, task["contrast"], method, "permutations", "accuracy")
                draw_null(ax, 100 * null, seen, colour_of(method))
        ax.set_title(short(task["label"]), loc="left")
        ax.set_yticks([])
    for ax in axes[-COLUMNS:]:
        ax.set_xlabel("accuracy (%)")
    label_left(axes, "permutations")
    return figure


def _null_lines(
    results: Results, subject: str, observed: Mapping[tuple[str, str], Mapping[str, str]]
) -> Figure:
    """A line per comparison and method: the range of the middle 95 % and of all permutations."""
    figure, ax = forest(results)
    for place, _, contrast, method in lines_of(results):
        if "permutations" in results.inferred(subject, contrast, method):
            null = 100 * _column(results, subject, contrast, method, "permutations", "accuracy")
            low, high = np.percentile(null, [2.5, 97.5])
            of = colour_of(method)
            ax.plot([null.min(), null.max()], [place, place], color=of, lw=1, alpha=0.35)
            ax.plot([low, high], [place, place], color=of, lw=4, alpha=0.35, solid_capstyle="butt")
            ax.plot(
                number(observed[contrast, method]["accuracy_percent"]), place, "|", ms=9, mew=1.8, color=of
            )
    ax.set_xlabel("accuracy (%)")
    return figure


def draw_null(ax: Axes, null: NDArray, observed: float, of: str) -> None:
    """A histogram in the colour of a method, and a line at what was observed."""
    counts, edges = np.histogram(null, bins=null_edges(null))
    span = max(edges[-1], observed) - min(edges[0], observed)
    width = float(edges[1] - edges[0])
    if len(counts) <= _FEW_BARS:
        width = min(width, _WIDEST_BAR * float(span))  # few values are far apart
    ax.bar((edges[1:] + edges[:-1]) / 2, counts, width=width, color=of, alpha=0.35, lw=0)
    ax.axvline(observed, color=of, lw=1.8)


def null_edges(null: NDArray) -> NDArray:
    """Edges of bins that hold the same number of possible values each, else some would seem rare.

    An accuracy is a number of right samples over all of them: its possible values are multiples of a step.
    """
    values = np.unique(np.round(null, 3))
    bins = math.ceil(2 * null.size ** (1 / 3))  # Rice's rule
    step = _common_step(values)
    if not step:
        return np.histogram_bin_edges(null, bins)
    wide = step * max(1, math.ceil((values[-1] - values[0]) / (step * bins)))
    first = wide * math.floor((values[0] + step / 2) / wide) - step / 2
    return first + wide * np.arange(2 + math.floor((values[-1] - first) / wide))


def _common_step(values: NDArray) -> float:
    """The step whose multiples the differences of sorted values are; 0.0 where there is none."""
    gaps = np.diff(values)
    if not gaps.size:
        return 1.0
    apart = np.round(gaps / gaps.min())
    step = float(values[-1] - values[0]) / float(apart.sum())
    return step if np.allclose(gaps, apart * step, atol=0.1 * step, rtol=0) else 0.0


def learning_curves(results: Results, subject: str) -> bytes:
    """Per comparison and method, accuracy against training runs: measured, predicted, extrapolated."""
    with look():
        figure, axes = grid(results, height=2.4, sharey=True)
        for ax, task in zip(axes, results.tasks, strict=True):
            for method in results.labels:
                if "learningcurve" in results.inferred(subject, task["contrast"], method):
                    _draw_curve(ax, results, subject, task["contrast"], method)
            ax.set_title(short(task["label"]), loc="left")
            ax.axhline(50, color=QUIET, lw=0.7, ls=(0, (4, 3)))
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
            ax.grid(axis="y", color=RULE, lw=0.5)
            ax.set_ylim(None, 101.5)
        label_left(axes, "accuracy (%)")
        for ax in axes[-COLUMNS:]:
            ax.set_xlabel("training runs")
        drawn = _methods_with(results, subject, "learningcurve")
        handles = [
            Line2D([], [], color=colour_of(method), marker=marker_of(method), ms=4, lw=1.2, label=name)
            for method, name in drawn
        ]
        if has_values(results, subject, "predicted"):
            label = "predicted for independent voxels"
            handles.append(Line2D([], [], color=QUIET, ls=_DOTS, lw=1.4, label=label))
        _legend(figure, handles)
        return svg(figure, results.banner)


def _legend(figure: Figure, handles: list[Line2D]) -> None:
    """One legend above all panels, in as many columns as the figure has room for."""
    columns = max(1, min(len(handles), int(figure.get_figwidth() / _ENTRY_INCHES)))
    figure.legend(handles=handles, loc="outside upper left", ncols=columns, labelcolor=INK)


def _draw_curve(ax: Axes, results: Results, subject: str, contrast: str, method: str) -> None:
    """One curve with standard errors; dotted what state evolution predicts, with its interval."""
    names = ("n_train_runs", "accuracy", "standard_error", "predicted", "predicted_low", "predicted_high")
    runs, accuracy, error, predicted, low, high = (
        _column(results, subject, contrast, method, "learningcurve", name) for name in names
    )
    known = np.isfinite(accuracy)
    ax.errorbar(
        runs[known], 100 * accuracy[known], yerr=100 * np.nan_to_num(error[known]), capsize=2,
        marker=marker_of(method), ms=4, lw=1.2, color=colour_of(method),
    )  # fmt: skip
    ax.plot(runs, 100 * predicted, ls=_DOTS, lw=1.4, color=colour_of(method), alpha=0.8)
    if np.isfinite(low).any():
        ax.fill_between(runs, 100 * low, 100 * high, color=colour_of(method), alpha=0.15, lw=0)


def _methods_with(results: Results, subject: str, what: str) -> list[tuple[str, str]]:
    """Name and label of the methods that have something for any comparison."""
    return [
        (method, label)
        for method, label in results.labels.items()
        if any(what in results.inferred(subject, task["contrast"], method) for task in results.tasks)
    ]


def _column(results: Results, subject: str, contrast: str, method: str, table: str, name: str) -> NDArray:
    """A column of numbers of one of a cell's tables."""
    rows = read_tsv(results.folder.cell_table(subject, contrast, method, table))
    return np.array([number(row[name]) for row in rows])
