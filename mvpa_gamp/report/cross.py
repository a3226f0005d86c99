"""The section of the page on cross-decoding: trained on one comparison, or some runs, tested on another."""

import numpy as np
from matplotlib.figure import Figure

from mvpa_gamp.imaging.atomic_files import write_atomic
from mvpa_gamp.imaging.map_names import entity
from mvpa_gamp.imaging.surface_names import is_there
from mvpa_gamp.report.brain_figures import MapLine, map_figure
from mvpa_gamp.report.inference_plots import draw_null
from mvpa_gamp.report.markup import cell, details, figure, folded, headings, paragraph, table, text
from mvpa_gamp.report.style import QUIET, colour_of, look, svg
from mvpa_gamp.results.files import MISSING, number, read_tsv
from mvpa_gamp.results.reader import Results

_NULL = "cross_null.svg"
_MOST_FIGURES = 6  # of maps; those of further crosses are in the folder


def draw_cross(results: Results) -> None:
    """Write the figures of the section into ``figures/``."""
    if any(row["p_value"] != MISSING for row in results.cross_rows()):
        write_atomic(results.folder.figure(_NULL), _null_figure(results))
    chosen = [each for each in results.cross["crosses"] if each["own_maps"]]
    for each in chosen[:_MOST_FIGURES]:
        if lines := _map_lines(results, each["name"]):
            folder, sub = results.folder, results.subjects[0]
            image = map_figure(lines, folder.background(sub), folder.mask(sub), results.banner)
            image.write(folder.figure(f"cross_{each['name']}_maps"))


def cross_section(results: Results) -> str:
    """Accuracies on the other comparison or runs, tests, and where the maps of the classifiers are."""
    if not results.cross:
        return ""
    rows = results.cross_rows()
    tested = any(row["p_value"] != MISSING for row in rows)
    head = (
        "Trained → tested",
        "Method",
        "Accuracy",
        "SE",
        "Chance",
        "Balanced",
        "AUC",
        "Runs",
        "p",
        "p (Holm)",
    )
    body = []
    for row in rows:
        numbers = ("accuracy_percent", "accuracy_se_percent", "chance_percent", "balanced_accuracy_percent")
        body.append(
            cell(row["cross"], "name")
            + cell(results.labels[row["method"]], "name")
            + "".join(cell(_percent(row[name]), value=row[name]) for name in numbers)
            + cell(_digits(row["auc"]), value=row["auc"])
            + cell(row["runs"], "quiet")
            + "".join(cell(_digits(row[name]), value=row[name]) for name in ("p_value", "p_value_holm"))
        )
    parts = [table([headings(head, left=2)], body, text(_caption(tested)))]
    if tested:
        said = text("Bars: accuracies with permuted training labels; line: the accuracy observed.")
        parts.append(figure(results.folder.figure(_NULL), said, "Nulls of cross-decoding"))
    for caution in dict.fromkeys(row["caution"] for row in rows if row["caution"] != MISSING):
        parts.append(paragraph(caution))
    for each in results.cross["crosses"]:
        path = results.folder.figure(f"cross_{each['name']}_maps.png")
        if each["own_maps"] and is_there(path):
            about = text(f"Maps of the classifiers trained on {each['trained_on']}.")
            parts.append(details(f"Maps: {each['label']}", figure(path, about, each["label"])))
    best = max(
        (r for r in rows if r["status"] == "ok"), key=lambda r: number(r["accuracy_percent"]), default=None
    )
    said = "" if best is None else f"Highest: {best['cross']}, {_percent(best['accuracy_percent'])}."
    return folded("cross", "Cross-decoding by every method", said, *parts)


def _caption(tested: bool) -> str:
    said = (
        "Every run of the tested comparison is predicted by a classifier trained on the other comparison in "
        "all other runs; if runs were chosen, by one classifier trained on the runs before the >. "
        "Accuracy, balanced accuracy and AUC are means over tested runs, with the standard error across "
        "them; chance is always predicting the more frequent side. The first side of one comparison "
        "corresponds to the first of the other. Maps of a classifier are those of the comparison "
        "it was trained on."
    )
    if tested:
        said += (
            " p: training labels exchanged within runs, test labels kept; Holm: corrected for the crosses of "
            "the same method. Methods with nested tuning are not tested."
        )
    return said


def _map_lines(results: Results, name: str) -> list[MapLine]:
    """A line per method that has maps of a cross."""
    subject, out = results.subjects[0], []
    for method, label in results.labels.items():
        stats = ("weight", "pattern", "pip")
        paths = {stat: results.folder.statmap(subject, name, entity(method), stat) for stat in stats}
        known = {stat: path for stat, path in paths.items() if is_there(path)}
        out += [MapLine(label, known)] if known else []
    return out


def _null_figure(results: Results) -> bytes:
    """Accuracies with permuted training labels, a panel per cross."""
    rows = [row for row in results.cross_rows() if row["p_value"] != MISSING]
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


def _percent(value: str) -> str:
    return "–" if value == MISSING else f"{number(value):.1f} %"


def _digits(value: str) -> str:
    return "–" if value == MISSING else f"{number(value):.2g}"
