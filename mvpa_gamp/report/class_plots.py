"""Figures of all classes together: scores by fold, confusion, the permutation null."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from mvpa_gamp.report.facts import class_score, confusion_counts, fold_scores
from mvpa_gamp.report.inference_plots import draw_null
from mvpa_gamp.report.style import INK, OVERLAP, QUIET, RULE, colour_of, look, svg
from mvpa_gamp.report.terminal import score_text
from mvpa_gamp.report.words import known
from mvpa_gamp.results.files import number, read_tsv
from mvpa_gamp.results.names import ALL_CLASSES
from mvpa_gamp.results.reader import Results

_SHARES = ("accuracy", "balanced_accuracy")
_FEW_CLASSES = 12  # counts are written into the cells up to this many classes


def score_figure(results: Results) -> bytes:
    """Score of every fold, their mean, and chance."""
    classes, scores = results.classes, fold_scores(results)
    with look():
        figure = Figure(figsize=(min(5.6, max(4.6, 0.38 * len(scores) + 2.2)), 2.7), layout="constrained")
        ax = figure.subplots()
        places = np.arange(len(scores))
        times = _times(results)
        ax.bar(places, times * scores, color=colour_of(classes["method"]), width=0.66)
        ax.axhline(class_score(results).mean, color=INK, lw=1.1, label="mean")
        if classes["chance"] is not None:
            ax.axhline(times * classes["chance"], color=QUIET, lw=0.9, ls=(0, (4, 3)), label="chance")
        ax.set_xticks(places, classes["held_out"], rotation=90 if len(scores) > 14 else 0)
        ax.set_xlabel(f"held-out {results.fold_word}")
        ax.set_ylabel(_axis(results))
        ax.set_ylim(times * min([0.0, *scores[scores < 0]]), None)
        ax.grid(axis="y", color=RULE, lw=0.5)
        ax.set_axisbelow(True)
        figure.legend(loc="outside upper right", ncols=2)
        return svg(figure, results.banner)


def _times(results: Results) -> float:
    """100 for scores that are shares, which are shown in percent, else 1."""
    return 100.0 if results.classes["scoring"] in _SHARES else 1.0


def _axis(results: Results) -> str:
    name = results.classes["scoring"].replace("_", " ")
    return f"{name} (%)" if _times(results) > 1 else name


def confusion_figure(results: Results) -> bytes:
    """Shares of held-out images of each true class (rows) by predicted class, counts in the cells."""
    names = list(results.classes["names"])
    counts = confusion_counts(results)
    with look():
        size = 1.9 + 0.52 * len(names)
        figure = Figure(figsize=(size + 0.9, size), layout="constrained")
        ax = figure.subplots()
        shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        image = ax.imshow(shares, vmin=0, vmax=1, cmap=OVERLAP, interpolation="nearest")
        places = np.arange(len(names))
        ax.set_xticks(places, names, rotation=90)
        ax.set_yticks(places, names)
        ax.set_xlabel("predicted")
        ax.set_ylabel("true")
        ax.spines[:].set_visible(False)
        if len(names) <= _FEW_CLASSES:
            _write_counts(ax, counts, shares)
        bar = figure.colorbar(image, ax=ax, shrink=0.7, pad=0.02)
        bar.set_label("share of the true class")
        bar.outline.set_visible(False)
        return svg(figure, results.banner)


def _write_counts(ax: Axes, counts: NDArray, shares: NDArray) -> None:
    for (row, column), count in np.ndenumerate(counts):
        pale = "white" if shares[row, column] > 0.5 else INK
        ax.text(column, row, str(count), ha="center", va="center", fontsize=8, color=pale)


def null_figure(results: Results) -> bytes:
    """Scores of permuted labels, and the observed one."""
    classes, test = results.classes, results.classes["permutation"]
    path = results.folder.cell_table(results.subjects[0], ALL_CLASSES, classes["method"], "permutations")
    null = np.array([number(row["accuracy"]) for row in read_tsv(path)])
    with look():
        figure = Figure(figsize=(5.2, 2.7), layout="constrained")
        ax = figure.subplots()
        times = _times(results)
        draw_null(ax, times * null, times * test["score"], colour_of(classes["method"]))
        ax.set_xlabel(f"{_axis(results)} with permuted labels")
        ax.set_ylabel("permutations")
        ax.yaxis.set_major_locator(MaxNLocator(integer=True))
        observed = score_text(results, test["score"])
        ax.set_title(f"observed {observed}, p = {test['pvalue']:.2g}", loc="left")
        return svg(figure, results.banner)


def cross_null_figure(results: Results) -> bytes:
    """Accuracies with permuted training labels, a panel per cross."""
    rows = [row for row in results.cross_rows() if known(row["p_value"])]
    names = list(dict.fromkeys(row["contrast"] for row in rows))
    with look():
        columns = min(3, len(names))
        lines = -(-len(names) // columns)
        drawn = Figure(figsize=(3.8 * columns, 2.3 * lines), layout="constrained")
        axes = np.atleast_1d(drawn.subplots(lines, columns, squeeze=False)).ravel()
        for ax in axes[len(names) :]:
            ax.set_visible(False)
        for ax, name in zip(axes, names, strict=False):
            for row in (row for row in rows if row["contrast"] == name):
                table_of = (results.subjects[0], name, row["method"], "crosspermutations")
                lines_of = read_tsv(results.folder.cell_table(*table_of))
                null = 100 * np.array([number(line["accuracy"]) for line in lines_of])
                draw_null(ax, null, number(row["accuracy_percent"]), colour_of(row["method"]))
                ax.set_title(row["cross"], loc="left", fontsize=8)
                ax.axvline(number(row["chance_percent"]), color=QUIET, lw=0.8, ls=(0, (4, 3)))
            ax.set_yticks([])
            ax.set_xlabel("accuracy (%)")
        return svg(drawn, results.banner)
