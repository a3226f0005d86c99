"""The section of the page on classes by method: recall of every class, confusion, maps by class."""

from dataclasses import replace

from mvpa_gamp.imaging.atomic_files import write_atomic
from mvpa_gamp.imaging.map_names import entity
from mvpa_gamp.imaging.surface_names import is_there
from mvpa_gamp.report.brain_figures import MapLine, map_figure
from mvpa_gamp.report.class_plots import confusion_figure, in_words
from mvpa_gamp.report.inference_rows import p_text
from mvpa_gamp.report.markup import cell, details, figure, headings, html_cell, swatch, table, text
from mvpa_gamp.report.style import colour_of
from mvpa_gamp.results.files import MISSING, number
from mvpa_gamp.results.names import ALL_CLASSES
from mvpa_gamp.results.reader import Results

_SCORES = ("score", "score_se", "chance")


def draw_class_methods(results: Results) -> None:
    """Write the figures of the section into ``figures/``."""
    for part in results.class_parts[1:]:
        alone = replace(results, summary=replace(results.summary, classes=part))
        name = f"classes_confusion_{entity(part['method'])}.svg"
        write_atomic(results.folder.figure(name), confusion_figure(alone))
    folder = results.folder
    for part in results.class_parts:
        if not part.get("maps") or results.summary.settings:  # a decoder's page draws its contrasts
            continue
        sub, desc = results.subjects[0], f"{entity(part['method'])}Class"
        lines = [
            MapLine(name, {stat: folder.statmap(sub, contrast, desc, stat) for stat in part["maps"]["stats"]})
            for name, contrast in zip(part["names"], part["maps"]["contrasts"], strict=True)
        ]
        image = map_figure(lines, folder.background(sub), folder.mask(sub), results.banner)
        image.write(folder.figure(f"classes_maps_{entity(part['method'])}"))


def class_method_parts(results: Results) -> list[str]:
    """A row per method, columns of recall; confusion of further methods and maps on a click."""
    if "recall" not in results.classes:  # a folder of an earlier version
        return []
    rows = [row for sub in results.subjects for row in results.table(sub, "classes")]
    names = results.classes["names"]
    head = (
        "Method",
        results.classes["scoring"].replace("_", " "),
        "SE",
        "chance",
        "p",
        "mean recall",
        *names,
    )
    body = []
    for row in (row for row in rows if row["class"] == ALL_CLASSES):
        recall = {r["class"]: r["recall_percent"] for r in rows if r["method"] == row["method"]}
        body.append(
            html_cell(_method(results, row["method"]), "name", results.labels[row["method"]])
            + "".join(cell(_score(results, row[name]), value=row[name]) for name in _SCORES)
            + cell("–" if row["p_value"] == MISSING else p_text(row["p_value"]), value=row["p_value"])
            + "".join(cell(_percent(recall[name]), value=recall[name]) for name in (ALL_CLASSES, *names))
        )
    caption = text(
        "Recall: the share of a class's held-out samples that are predicted as this class. The "
        "standard error is that across folds, which share training samples."
    )
    parts = [table([headings(head)], body, caption, "sortable compact")]
    for part in results.class_parts[1:]:
        path = results.folder.figure(f"classes_confusion_{entity(part['method'])}.svg")
        label = results.labels[part["method"]]
        shown = figure(path, text(f"Confusion of classes by {label}."), f"Confusion, {label}", "medium")
        parts.append(details(f"Confusion: {label}", shown))
    about = text(
        "Maps by class: the mean over the pairs that a class is part of, refits on all samples. Positive "
        "weights and patterns favour the class against the others."
    )
    for part in results.class_parts:
        path = results.folder.figure(f"classes_maps_{entity(part['method'])}.png")
        if part.get("maps") and is_there(path):
            label = results.labels[part["method"]]
            parts.append(details(f"Maps by class: {label}", figure(path, about, f"Maps by class, {label}")))
    return parts


def _percent(value: str) -> str:
    return "–" if value == MISSING else f"{number(value):.0f} %"


def _score(results: Results, value: str) -> str:
    return "–" if value == MISSING else in_words(results, number(value))


def _method(results: Results, method: str) -> str:
    return f"{swatch(colour_of(method))}<span>{text(results.labels[method])}</span>"
