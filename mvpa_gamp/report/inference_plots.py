"""Figures of inference: accuracies of permuted labels, and accuracy against the number of training runs."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from mvpa_gamp.report.small_multiples import COLUMNS, grid, label_left
from mvpa_gamp.report.style import INK, QUIET, RULE, colour, look, marker, svg
from mvpa_gamp.results.files import number, read_tsv
from mvpa_gamp.results.reader import Results

_DOTS = (0, (1, 1.5))
_ENTRY_INCHES = 2.8  # of a legend


def null_accuracies(results: Results, subject: str) -> bytes:
    """Per comparison and method, the accuracies of permuted labels and the observed one."""
    with look():
        figure, axes = grid(results, height=2.2, sharey=False)
        observed = {(row["contrast"], row["method"]): row for row in results.inference_rows()}
        for ax, task in zip(axes, results.tasks, strict=True):
            for i, method in enumerate(results.labels):
                if "permutations" in results.inferred(subject, task["contrast"], method):
                    row = observed[task["contrast"], method]
                    null = _column(results, subject, task["contrast"], method, "permutations", "accuracy")
                    draw_null(ax, 100 * null, number(row["accuracy_percent"]), colour(i))
            ax.set_title(task["label"], loc="left")
            ax.set_yticks([])
        for ax in axes[-COLUMNS:]:
            ax.set_xlabel("accuracy (%)")
        label_left(axes, "permutations")
        drawn = _methods_with(results, subject, "permutations")
        shown = [Line2D([], [], color=colour(i), lw=1.8, label=f"{label}, observed") for i, label in drawn]
        handles = [*shown, Line2D([], [], color=QUIET, lw=5, alpha=0.5, label="with permuted labels")]
        _legend(figure, handles)
        return svg(figure, results.banner)


def draw_null(ax: Axes, null: NDArray, observed: float, of: str) -> None:
    """Steps of a histogram in the colour of a method, and a line at what was observed."""
    values, counts = np.unique(np.round(null, 6), return_counts=True)
    if values.size > 40:
        counts, edges = np.histogram(null, bins=min(40, max(8, null.size // 20)))
        values = (edges[1:] + edges[:-1]) / 2
    width = np.diff(values).min() if values.size > 1 else 1.0
    ax.bar(values, counts, width=width, color=of, alpha=0.35, lw=0)
    ax.axvline(observed, color=of, lw=1.8)


def learning_curves(results: Results, subject: str) -> bytes:
    """Per comparison and method, accuracy against training runs: measured, predicted, extrapolated."""
    with look():
        figure, axes = grid(results, height=2.4, sharey=True)
        for ax, task in zip(axes, results.tasks, strict=True):
            for i, method in enumerate(results.labels):
                if "learningcurve" in results.inferred(subject, task["contrast"], method):
                    _draw_curve(ax, results, subject, task["contrast"], method, i)
            ax.set_title(task["label"], loc="left")
            ax.axhline(50, color=QUIET, lw=0.7, ls=(0, (4, 3)))
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
            ax.grid(axis="y", color=RULE, lw=0.5)
            ax.set_ylim(None, 101.5)
        label_left(axes, "accuracy (%)")
        for ax in axes[-COLUMNS:]:
            ax.set_xlabel("training runs")
        drawn = _methods_with(results, subject, "learningcurve")
        handles = [
            Line2D([], [], color=colour(i), marker=marker(i), ms=4, lw=1.2, label=name) for i, name in drawn
        ]
        dotted = Line2D([], [], color=QUIET, ls=_DOTS, lw=1.4, label="predicted for independent voxels")
        handles.append(dotted)
        _legend(figure, handles)
        return svg(figure, results.banner)


def _legend(figure: Figure, handles: list[Line2D]) -> None:
    """One legend above all panels, in as many columns as the figure has room for."""
    columns = max(1, min(len(handles), int(figure.get_figwidth() / _ENTRY_INCHES)))
    figure.legend(handles=handles, loc="outside upper left", ncols=columns, labelcolor=INK)


def _draw_curve(ax: Axes, results: Results, subject: str, contrast: str, method: str, i: int) -> None:
    """One curve with standard errors; dotted what state evolution predicts, with its interval."""
    names = ("n_train_runs", "accuracy", "standard_error", "predicted", "predicted_low", "predicted_high")
    runs, accuracy, error, predicted, low, high = (
        _column(results, subject, contrast, method, "learningcurve", name) for name in names
    )
    known = np.isfinite(accuracy)
    ax.errorbar(
        runs[known], 100 * accuracy[known], yerr=100 * np.nan_to_num(error[known]), marker=marker(i), ms=4,
        lw=1.2, capsize=2, color=colour(i),
    )  # fmt: skip
    ax.plot(runs, 100 * predicted, ls=_DOTS, lw=1.4, color=colour(i), alpha=0.8)
    if np.isfinite(low).any():
        ax.fill_between(runs, 100 * low, 100 * high, color=colour(i), alpha=0.15, lw=0)


def _methods_with(results: Results, subject: str, what: str) -> list[tuple[int, str]]:
    """Number and label of the methods that have something for any comparison."""
    return [
        (i, label)
        for i, (method, label) in enumerate(results.labels.items())
        if any(what in results.inferred(subject, task["contrast"], method) for task in results.tasks)
    ]


def _column(results: Results, subject: str, contrast: str, method: str, table: str, name: str) -> NDArray:
    """A column of numbers of one of a cell's tables."""
    rows = read_tsv(results.folder.cell_table(subject, contrast, method, table))
    return np.array([number(row[name]) for row in rows])
