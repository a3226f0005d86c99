"""What goes beyond comparisons on a participant's page: all classes together, and cross-decoding."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mvpa_gamp.imaging.map_names import entity
from mvpa_gamp.imaging.surface_names import is_there
from mvpa_gamp.report.answers import Entry, chance_of, class_correct, entries, sentence
from mvpa_gamp.report.facts import Page, all_cross_facts, class_facts, class_score, has_classes
from mvpa_gamp.report.html import Cell, cell, method_cell, name, table
from mvpa_gamp.report.terminal import score_text
from mvpa_gamp.report.viewer import class_viewer
from mvpa_gamp.report.words import compared_classes, compared_with, decimals, known, two_digits
from mvpa_gamp.results.files import number
from mvpa_gamp.results.names import ALL_CLASSES
from mvpa_gamp.results.reader import Results

_PAIRS = 10  # comparisons of a page whose figures of all classes are open
_SCORES = ("score", "score_se", "chance")
_OPEN = 2  # crosses whose boxes are open


# ---- all classes together ----------------------------------------------------------------------------------


def classes_answer(page: Page) -> dict[str, Any] | None:
    """The facts about all classes together; nothing for pairs, whose own boxes say the same."""
    if not has_classes(page.results):
        return None
    facts = class_facts(page.results)
    return {
        "facts": facts,
        "entries": entries(facts, page.results.linked),
        "count": len(page.results.classes["names"]),
        "viewer": class_viewer(page.results, facts.method),
    }


def classes(page: Page) -> dict[str, Any] | None:
    """Many classes: scores by fold, what is taken for what, recall by class and method."""
    if not has_classes(page.results):
        return None
    parts = {"methods": _methods(page.results), "unfolded": len(page.results.tasks) <= _PAIRS}
    return {"title": "Scores, confusion and recall", **_scores(page.results), **parts}


def fold_scores(page: Page) -> dict[str, Any] | None:
    """Two classes, of a decoder: the score of every fold, below the answer of their comparison."""
    if len(page.results.classes.get("names", ())) != 2:
        return None
    return {"title": "Scores by fold", **_scores(page.results), "methods": None, "unfolded": False}


def _scores(results: Results) -> dict[str, Any]:
    """Figures of all classes together, and the scores of every contrast and class."""
    told, score = results.classes, class_score(results)
    test = told.get("permutation")
    scored = dict(told["contrast_scores"])
    scored |= {f"{each} against all others": scores for each, scores in told["class_scores"].items()}
    measure = told["scoring"].replace("_", " ")
    head = ("", f"mean {measure}", "lowest fold", "highest fold")
    rows = [[name(label), *_score_cells(results, scores)] for label, scores in scored.items()]
    return {
        "answer": class_correct(score),
        "chance": chance_of(score),
        "measure": measure[:1].upper() + measure[1:],
        "test": test,
        "compared": compared_with([compared_classes(test)]) if test else "",
        "figures": {each: results.folder.figure(f"classes_{each}.svg") for each in CLASS_FIGURES},
        "scores": table(head, rows),
    }


CLASS_FIGURES = ("scores", "confusion", "null")


def _score_cells(results: Results, scores: Sequence[float | None]) -> list[Cell]:
    values = np.array([value for value in scores if value is not None])
    said = (values.mean(), values.min(), values.max()) if values.size else (np.nan,) * 3
    return [cell(score_text(results, float(value))) for value in said]


def _methods(results: Results) -> dict[str, Any]:
    """A row per method, columns of recall; confusion of further methods, and maps by class."""
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
        body.append([
            method_cell(row["method"], results.labels[row["method"]]),
            *(cell(score_text(results, row[each]), value=row[each]) for each in _SCORES),
            cell(two_digits(row["p_value"]), value=row["p_value"]),
            *(cell(decimals(recall[each], 0, " %"), value=recall[each]) for each in (ALL_CLASSES, *names)),
        ])  # fmt: skip
    others = {results.labels[part["method"]]: confusion_path(results, part)
              for part in results.class_parts[1:]}  # fmt: skip
    maps = {results.labels[part["method"]]: class_maps_path(results, part)
            for part in results.class_parts if part.get("maps")}  # fmt: skip
    there = {label: path for label, path in maps.items() if is_there(path)}
    return {"table": table(head, body), "confusion": others, "maps": there}


def confusion_path(results: Results, part: Mapping[str, Any]) -> Path:
    """The figure of what a method confuses."""
    return results.folder.figure(f"classes_confusion_{entity(part['method'])}.svg")


def class_maps_path(results: Results, part: Mapping[str, Any]) -> Path:
    """The figure of a method's maps by class."""
    return results.folder.figure(f"classes_maps_{entity(part['method'])}.png")


# ---- crosses -----------------------------------------------------------------------------------------------


def cross_answer(page: Page) -> dict[str, Any] | None:
    """A box per cross, by the method that answers for comparisons."""
    if not page.results.cross:
        return None
    unfolded = len(page.results.cross["crosses"]) <= _OPEN
    return {"blocks": list(_cross_blocks(page.results)), "unfolded": unfolded}


def _cross_blocks(results: Results) -> Iterator[dict[str, Any]]:
    all_tested = bool(results.classes.get("permutation"))
    for facts in all_cross_facts(results):
        listed: list[Entry] = entries(facts, results.linked, all_tested)
        more = "; ".join(each.said for each in listed if each.question in ("How stable", "Where"))
        said = f"{sentence(facts)} The classifier: {more}." if more else sentence(facts)
        yield {"facts": facts, "entries": listed, "sentence": said}


def cross(page: Page) -> dict[str, Any] | None:
    """Accuracies on the other comparison or runs, tests, and where the maps of the classifiers are."""
    results = page.results
    if not results.cross:
        return None
    rows = results.cross_rows()
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
    percents = ("accuracy_percent", "accuracy_se_percent", "chance_percent", "balanced_accuracy_percent")
    body = [
        [
            name(row["cross"]),
            name(results.labels[row["method"]]),
            *(cell(decimals(row[each], 1, " %"), value=row[each]) for each in percents),
            cell(two_digits(row["auc"]), value=row["auc"]),
            cell(row["runs"], "quiet"),
            *(cell(two_digits(row[each]), value=row[each]) for each in ("p_value", "p_value_holm")),
        ]
        for row in rows
    ]
    good = [row for row in rows if row["status"] == "ok"]
    best = max(good, key=lambda row: number(row["accuracy_percent"]), default=None)
    paths = [(each, cross_maps_path(results, each)) for each in results.cross["crosses"] if each["own_maps"]]
    return {
        "said": ""
        if best is None
        else f"Highest: {best['cross']}, {decimals(best['accuracy_percent'], 1, ' %')}.",
        "table": table(head, body, 2),
        "null": results.folder.figure(CROSS_NULL) if any(known(row["p_value"]) for row in rows) else None,
        "cautions": dict.fromkeys(row["caution"] for row in rows if known(row["caution"])),
        "maps": [(each, path) for each, path in paths if is_there(path)],
    }


CROSS_NULL = "cross_null.svg"


def cross_maps_path(results: Results, each: Mapping[str, Any]) -> Path:
    """The figure of a cross's own maps."""
    return results.folder.figure(f"cross_{each['name']}_maps.png")
