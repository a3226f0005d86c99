"""Figures of numbers: errors by fold, overlap of folds, selection frequency, accuracy against stability."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from mvpa_gamp.imaging.map_names import entity
from mvpa_gamp.report.small_multiples import COLUMNS, grid, label_left, legend
from mvpa_gamp.report.style import OVERLAP, QUIET, RULE, colour, look, marker, svg
from mvpa_gamp.results.files import number
from mvpa_gamp.results.names import ResultsFolder
from mvpa_gamp.results.reader import Results
from mvpa_gamp.results.tables import AVERAGE, selects


def fold_errors(results: Results, subject: str) -> bytes:
    """Error of every held-out run (dots), their mean and its standard error, per comparison and method."""
    with look():
        figure, axes = grid(results, height=2.2, sharey=True)
        for ax, task in zip(axes, results.tasks, strict=True):
            _draw_fold_errors(ax, results, subject, task["contrast"])
            ax.set_title(task["label"], loc="left")
        label_left(axes, "error (%)")
        legend(figure, results)
        return svg(figure, results.banner)


def _draw_fold_errors(ax: Axes, results: Results, subject: str, contrast: str) -> None:
    """One panel of :func:`fold_errors`."""
    for i, method in enumerate(results.labels):
        row = results.row(subject, contrast, method)
        if row["status"] != "ok":
            continue
        errors = np.array([number(f["error_percent"]) for f in results.folds(subject, contrast, method)])
        ax.plot(i + _beeswarm(errors), errors, "o", ms=3.2, color=colour(i), alpha=0.45, mew=0)
        se = 0.0 if math.isnan(row["error_se_percent"]) else row["error_se_percent"]
        ax.errorbar(
            i + 0.36, row["error_percent"], yerr=se, fmt=marker(i), ms=5, color=colour(i), capsize=2.5, lw=1.3
        )
        ax.axhline(row["chance_error_percent"], color=QUIET, lw=0.7, ls=(0, (4, 3)), zorder=0)
    ax.set_xticks([])
    ax.set_xlim(-0.5, len(results.labels) - 0.3)
    ax.set_ylim(-3, None)
    ax.grid(axis="y", color=RULE, lw=0.5)
    ax.set_axisbelow(True)


def _beeswarm(values: NDArray) -> NDArray:
    """Horizontal places (within -0.3..0.25) that keep equal values apart, without random numbers."""
    places = np.zeros(len(values))
    for value in np.unique(values):
        same = np.flatnonzero(values == value)
        step = min(0.09, 0.5 / max(len(same) - 1, 1))
        places[same] = step * (np.arange(len(same)) - (len(same) - 1) / 2)
    return places - 0.03


def overlap_matrices(results: Results, subject: str) -> bytes:
    """Jaccard overlap of the selected voxels of every two folds: comparisons down, methods across."""
    with look():
        rows, columns = len(results.tasks), len(results.labels)
        figure = Figure(figsize=(1.75 * columns + 2.6, 1.75 * rows + 0.5), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False)
        image = None
        for r, task in enumerate(results.tasks):
            axes[r, 0].set_ylabel(task["label"], rotation=0, ha="right", va="center", labelpad=10)
            for c, (method, label) in enumerate(results.labels.items()):
                ax = axes[r, c]
                ax.set_xticks([])
                ax.set_yticks([])
                if results.row(subject, task["contrast"], method)["status"] != "ok":
                    ax.text(0.5, 0.5, "failed", ha="center", va="center", color=QUIET, transform=ax.transAxes)
                    continue
                chose = selects(results.row(subject, task["contrast"], method))
                image = _draw_overlap(ax, results.jaccard(subject, task["contrast"], method), chose)
                if r == 0:
                    ax.set_title(label, pad=18)
        if image is not None:
            bar = figure.colorbar(image, ax=axes, shrink=max(0.25, 0.8 / rows), pad=0.02, aspect=14)
            bar.set_label("Jaccard overlap")
            bar.outline.set_visible(False)
        return svg(figure, results.banner)


def _draw_overlap(ax: Axes, matrix: NDArray, chose: bool) -> AxesImage:
    """One heat map, with the mean of its off-diagonal entries above it if the folds chose anything."""
    image = ax.imshow(matrix, vmin=0, vmax=1, cmap=OVERLAP, interpolation="nearest")
    for spine in ax.spines.values():
        spine.set_visible(False)
    if np.isnan(matrix).all():
        ax.text(0.5, 0.5, "every voxel", ha="center", va="center", color=QUIET, transform=ax.transAxes)
    off = matrix[~np.eye(len(matrix), dtype=bool)]
    mean = f"{100 * off.mean():.0f} %" if off.size and chose else "–"
    ax.text(0.5, 1.03, f"mean {mean}", transform=ax.transAxes, ha="center", fontsize=8, color=QUIET)
    return image


def selection_frequency(results: Results, subject: str) -> bytes:
    """How many voxels are selected in at least k folds: a flat line is a stable selection."""
    with look():
        figure, axes = grid(results, height=2.4, sharey=True)
        for ax, task in zip(axes, results.tasks, strict=True):
            for i, method in enumerate(results.labels):
                cell = subject, task["contrast"], method
                if results.row(*cell)["status"] == "ok" and "selfreq" in results.stats(*cell):
                    k, counts = _selected_at_least(results, *cell)
                    ax.plot(k, counts, "-", marker=marker(i), ms=3.5, lw=1.2, color=colour(i))
            ax.set_title(task["label"], loc="left")
            ax.set_yscale("symlog", linthresh=1)
            ax.yaxis.set_major_formatter("{x:g}")
            ax.set_ylim(0, None)
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
            ax.grid(axis="y", color=RULE, lw=0.5)
        label_left(axes, "voxels")
        for ax in axes[-COLUMNS:]:
            ax.set_xlabel("selected in at least k folds")
        legend(figure, results)
        return svg(figure, results.banner)


def _selected_at_least(results: Results, subject: str, contrast: str, method: str) -> tuple[NDArray, NDArray]:
    """k = 1..B and the number of voxels chosen in at least k of the B folds."""
    path = results.folder.statmap(subject, contrast, entity(method), "selfreq")
    folds = len(results.folds(subject, contrast, method))
    times = np.rint(_values(path) * folds)
    k = np.arange(1, folds + 1)
    return k, np.array([(times >= level).sum() for level in k])


def accuracy_and_stability(results: Results, subject: str) -> bytes:
    """Accuracy against consistency: small marks are comparisons, large marks their averages."""
    with look():
        figure = Figure(figsize=(6.4, 4.6), layout="constrained")
        ax = figure.subplots()
        for i, method in enumerate(results.labels):
            rows = [r for r in results.rows if (r["subject"], r["method"]) == (subject, method)]
            for row in filter(selects, rows):
                average = row["contrast"] == AVERAGE
                ax.plot(
                    row["consistency_percent"], 100 - row["error_percent"], marker(i), color=colour(i),
                    ms=11 if average else 5, alpha=1.0 if average else 0.45,
                    mec="white" if average else "none", mew=1.2, zorder=3 if average else 2,
                )  # fmt: skip
        chance = np.mean([r["chance_error_percent"] for r in results.rows if r["status"] == "ok"] or [50.0])
        ax.axhline(100 - chance, color=QUIET, lw=0.7, ls=(0, (4, 3)))
        ax.set_xlabel("consistency of the selected voxels (mean Jaccard overlap, %)")
        ax.set_ylabel("accuracy on held-out runs (%)")
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
            for i, method in enumerate(results.labels):
                if results.row(subject, task["contrast"], method)["status"] == "ok":
                    recall, precision = _ranking(results, subject, task["contrast"], method)
                    ax.step(recall, precision, where="pre", lw=1.3, color=colour(i))
            ax.set_title(task["label"], loc="left")
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
    image: Any = nibabel.load(path)
    return np.asarray(image.dataobj)
