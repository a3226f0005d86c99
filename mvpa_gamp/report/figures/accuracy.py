"""Figures of accuracies and selections: by run, by participant, overlap and spread, against stability."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from mvpa_gamp.imaging.brainmaps import read_image
from mvpa_gamp.imaging.names import entity
from mvpa_gamp.imaging.spaces import space_of
from mvpa_gamp.report.style import INK, OVERLAP, QUIET, RULE, colour_of, look, marker_of, svg
from mvpa_gamp.results.files import number
from mvpa_gamp.results.names import ResultsFolder
from mvpa_gamp.results.reader import Results
from mvpa_gamp.results.tables import AVERAGE, selects

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


_MOSAIC = 7.2  # inches across a mosaic: letters of 9 points are 10 pixels at 620
_BAR = 2.0  # inches along its colour bar
_GAP = 0.3  # between matrices of a mosaic, as a share of their side


def fold_accuracies(results: Results, subject: str) -> bytes:
    """Accuracy of every held-out run (dots), their mean and its standard error: a line per comparison."""
    with look():
        figure, ax = forest(results)
        for place, _, contrast, method in lines_of(results):
            row = results.row(subject, contrast, method)
            if row["status"] != "ok":
                continue
            folds = results.folds(subject, contrast, method)
            values = 100 - np.array([number(fold["error_percent"]) for fold in folds])
            of, shape = colour_of(method), marker_of(method)
            ax.plot(values, place + 0.2 * _beeswarm(values), "o", ms=3.2, color=of, alpha=0.45, mew=0)
            se = 0.0 if math.isnan(row["accuracy_se_percent"]) else row["accuracy_se_percent"]
            mean = row["accuracy_percent"]
            ax.errorbar(
                mean, place, xerr=se, fmt=shape, ms=5, color=of, capsize=2.5, lw=1.3, mec="white", mew=0.6
            )
            across = (place - 0.5 / len(results.labels), place + 0.5 / len(results.labels))
            ax.plot([row["chance_percent"]] * 2, across, color=QUIET, lw=0.9, ls=(0, (4, 3)), zorder=0)
        ax.set_xlabel(f"accuracy on held-out {results.fold_word}s (%)")
        ax.set_xlim(None, 101.5)
        legend(figure, results)
        return svg(figure, results.banner)


def _beeswarm(values: NDArray) -> NDArray:
    """Horizontal places (within -0.3..0.25) that keep equal values apart, without random numbers."""
    places = np.zeros(len(values))
    for value in np.unique(values):
        same = np.flatnonzero(values == value)
        step = min(0.09, 0.5 / max(len(same) - 1, 1))
        places[same] = step * (np.arange(len(same)) - (len(same) - 1) / 2)
    return places - 0.03


def overlap_matrices(results: Results, subject: str) -> bytes:
    """Jaccard overlap of the voxels selected in every two folds: comparisons down, methods across."""
    cells = {
        (task["contrast"], method): results.jaccard(subject, task["contrast"], method)
        for task in results.tasks
        for method in results.finished(subject, task["contrast"])
        if results.row(subject, task["contrast"], method)["folds"] > 1
    }
    side = max((len(matrix) for matrix in cells.values()), default=1)
    step = side * (1 + _GAP)
    rows, columns = len(results.tasks), len(results.labels)
    with look():
        letters = max(len(short(task["label"])) for task in results.tasks)
        across = (_MOSAIC - 2.0 - 0.085 * letters) / ((1 + _GAP) * columns)
        inches = max(0.55, min(1.5, 9.0 / rows, across))  # of a matrix
        size = (inches * (1 + _GAP) * columns + 2.0 + 0.085 * letters, inches * (1 + _GAP) * rows + 1.0)
        figure = Figure(figsize=size, layout="constrained")
        ax = figure.subplots()
        image = None
        for r, task in enumerate(results.tasks):
            for c, method in enumerate(results.labels):
                matrix = cells.get((task["contrast"], method))
                if matrix is not None:
                    chose = selects(results.row(subject, task["contrast"], method))
                    image = _draw_overlap(ax, matrix, c * step, r * step, side, chose)
        ax.set_xlim(-0.5 * side * _GAP, columns * step)
        ax.set_ylim(rows * step, -side * _GAP)
        ax.set_aspect("equal")
        names = [label.replace(" ", "\n", 1) for label in results.labels.values()]
        ax.set_xticks(np.arange(columns) * step + side / 2, names)
        ax.set_yticks(np.arange(rows) * step + side / 2, [short(task["label"]) for task in results.tasks])
        ax.tick_params(length=0, labeltop=True, labelbottom=False, colors=INK)
        ax.spines[:].set_visible(False)
        if image is not None:
            bar = figure.colorbar(
                image, ax=ax, shrink=min(0.8, _BAR / size[1]), pad=0.02, aspect=14, anchor=(0.0, 1.0)
            )
            bar.set_label("Jaccard overlap")
            bar.outline.set_visible(False)
        return svg(figure, results.banner)


def _draw_overlap(ax: Axes, matrix: NDArray, x: float, y: float, side: int, chose: bool) -> AxesImage:
    """One heat map, above it the mean of its off-diagonal entries if the folds chose anything."""
    place = (x, x + side, y + side, y)
    image = ax.imshow(matrix, vmin=0, vmax=1, cmap=OVERLAP, interpolation="none", extent=place)
    if np.isnan(matrix).all():
        middle = (x + side / 2, y + side / 2)
        ax.text(*middle, "every voxel", ha="center", va="center", color=QUIET, fontsize=8)
    off = matrix[~np.eye(len(matrix), dtype=bool)]
    mean = f"{100 * off.mean():.0f} %" if off.size and chose else "–"
    ax.text(x + side / 2, y - 0.02 * side, mean, ha="center", va="bottom", fontsize=8.5, color=QUIET)
    return image


def selection_spread(results: Results, subject: str) -> bytes:
    """From the voxels that every fold selects to those that any fold selects: short lines are stable."""
    rows = {(row["contrast"], row["method"]): row for row in results.table(subject, "consistency")}
    with look():
        figure, ax = forest(results)
        for place, _, contrast, method in lines_of(results):
            row = rows.get((contrast, method))
            if row is None or math.isnan(number(row["voxels_in_any_fold"])):
                continue
            every, fold, some = (
                number(row[name]) for name in ("voxels_in_every_fold", "voxels", "voxels_in_any_fold")
            )
            ax.plot([every, some], [place, place], "|-", ms=7, lw=1.6, color=colour_of(method), alpha=0.7)
            ax.plot(fold, place, marker_of(method), ms=5, color=colour_of(method), mec="white", mew=0.6)
        ax.set_xscale("symlog", linthresh=1)
        ax.xaxis.set_major_formatter("{x:g}")
        ax.set_xlim(-0.2, None)
        ax.set_xlabel("voxels selected in every fold, in a fold on average (mark), in any fold")
        legend(figure, results)
        return svg(figure, results.banner)


def accuracy_and_stability(results: Results, subject: str) -> bytes:
    """Accuracy against consistency: small marks are comparisons, large marks their averages."""
    with look():
        figure = Figure(figsize=(5.4, 4.2), layout="constrained")
        ax = figure.subplots()
        for method in results.labels:
            rows = [r for r in results.rows if (r["subject"], r["method"]) == (subject, method)]
            for row in filter(selects, rows):
                average = row["contrast"] == AVERAGE
                ax.plot(
                    row["consistency_percent"], row["accuracy_percent"], marker_of(method),
                    color=colour_of(method), ms=11 if average else 5, alpha=1.0 if average else 0.45,
                    mec="white" if average else "none", mew=1.2, zorder=3 if average else 2,
                )  # fmt: skip
        chance = np.mean([r["chance_percent"] for r in results.rows if r["status"] == "ok"] or [50.0])
        ax.axhline(chance, color=QUIET, lw=0.7, ls=(0, (4, 3)))
        ax.set_xlabel("consistency of the selected voxels (mean Jaccard overlap, %)")
        ax.set_ylabel(f"accuracy on held-out {results.fold_word}s (%)")
        ax.set_xlim(-2, 102)
        ax.set_ylim(min(48, ax.get_ylim()[0]), 101.5)
        ax.grid(color=RULE, lw=0.5)
        ax.set_axisbelow(True)
        legend(figure, results)
        return svg(figure, results.banner)


def precision_recall(results: Results, subject: str) -> bytes:
    """Phantom only: how well the maps rank the planted voxels, per comparison and method."""
    with look():
        figure, axes = grid(results, height=2.6, sharey=True)
        for ax, task in zip(axes, results.tasks, strict=True):
            for method in results.labels:
                if results.row(subject, task["contrast"], method)["status"] == "ok":
                    recall, precision = _ranking(results, subject, task["contrast"], method)
                    ax.step(recall, precision, where="pre", lw=1.3, color=colour_of(method))
            ax.set_title(short(task["label"]), loc="left")
            ax.set_xlim(-0.02, 1.02)
            ax.set_ylim(-0.02, 1.04)
            ax.grid(color=RULE, lw=0.5)
        label_left(axes, "precision")
        for ax in axes[-COLUMNS:]:
            ax.set_xlabel("recall")
        legend(figure, results)
        return svg(figure, results.banner)


def ranking_scores(
    folder: ResultsFolder, subject: str, contrast: str, method: str, stats: Sequence[str]
) -> NDArray:
    """The refit map that ranks voxels: inclusion probability where a method has it, else |weight|."""
    stat = "pip" if "pip" in stats else "weight"
    return np.abs(_values(folder.statmap(subject, contrast, entity(method), stat)))


def _ranking(results: Results, subject: str, contrast: str, method: str) -> tuple[NDArray, NDArray]:
    """Recall and precision while walking down the ranked voxels of the mask; ties are taken together."""
    mask = _values(results.folder.mask(subject)) > 0
    truth = _values(results.folder.truth(subject, contrast))[mask] > 0
    scores = ranking_scores(
        results.folder, subject, contrast, method, results.stats(subject, contrast, method)
    )[mask]
    order = np.argsort(-scores, kind="stable")
    last = np.append(np.flatnonzero(np.diff(scores[order])), len(order) - 1)
    hits = np.cumsum(truth[order])[last]
    recall, precision = hits / max(truth.sum(), 1), hits / (last + 1)
    return np.append(0.0, recall), np.append(precision[0], precision)


def _values(path: Path) -> NDArray:
    """The values of an image."""
    image = read_image(path)
    return space_of(image).whole(image)


_NARROW, _WIDEST = 5.6, 13.0  # inches
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
        width = min(_WIDEST, max(_NARROW, 1.0 + 0.45 * len(methods) * len(names)))
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
