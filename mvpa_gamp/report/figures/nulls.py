"""Figures behind tests: permuted labels, learning curves, scores of all classes together, regions."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from mvpa_gamp.report.designs import class_score, confusion_counts, score_text, scores_by_fold
from mvpa_gamp.report.figures.accuracy import COLUMNS, forest, grid, label_left, lines_of, short
from mvpa_gamp.report.inference import REGIONS_SHOWN, has_values
from mvpa_gamp.report.style import INK, OVERLAP, QUIET, RULE, colour_of, look, marker_of, svg
from mvpa_gamp.report.words import known, words_of
from mvpa_gamp.results.files import MISSING, number, read_tsv
from mvpa_gamp.results.names import ALL_CLASSES
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
            ax.set_xlabel(f"training {words_of(results).counted}s")
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


_SHARES = ("accuracy", "balanced_accuracy")
_FEW_CLASSES = 12  # counts are written into the cells up to this many classes


def score_figure(results: Results) -> bytes:
    """Score of every fold, their mean, and chance."""
    classes, scores = results.classes, scores_by_fold(results)
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
