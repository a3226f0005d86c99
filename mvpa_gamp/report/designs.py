"""What goes beyond comparisons: all classes together, and cross-decoding; their facts, and their sections."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.imaging.names import entity, is_there
from mvpa_gamp.report.answers import Entry, chance_of, class_correct, entries, sentence
from mvpa_gamp.report.backdrops import read_map
from mvpa_gamp.report.facts import (
    MOST_CLASSES,
    PREFERRED,
    Facts,
    Files,
    LabelTest,
    Page,
    Score,
    Selected,
    class_test,
    comparison_facts,
    confused,
    maps_to_use,
    peak_place,
    space_of,
    stability_of,
    there,
)
from mvpa_gamp.report.html import Cell, cell, method_cell, name, table
from mvpa_gamp.report.viewer import class_viewer
from mvpa_gamp.report.words import (
    compared,
    compared_classes,
    compared_with,
    decimals,
    known,
    two_digits,
    words_of,
)
from mvpa_gamp.results.files import MISSING, number
from mvpa_gamp.results.names import ALL_CLASSES
from mvpa_gamp.results.reader import Results
from mvpa_gamp.results.tables import AVERAGE

_SHARES = ("accuracy", "balanced_accuracy")  # scores that are shown in percent
_PAIRS = 10  # comparisons of a page whose figures of all classes are open
_SCORES = ("score", "score_se", "chance")
_OPEN = 2  # crosses whose boxes are open


# ---- all classes together ----------------------------------------------------------------------------------


def has_classes(results: Results) -> bool:
    """Whether more than pairs was decoded: two classes are a comparison."""
    return len(results.classes.get("names", ())) > 2


def class_score(results: Results) -> Score:
    """The mean score of all classes together, over the folds in which it is defined."""
    told = results.classes
    percent = told["scoring"] in _SHARES
    times = 100.0 if percent else 1.0
    scores = times * scores_by_fold(results)
    known = scores[~np.isnan(scores)]
    se = float(known.std(ddof=1) / math.sqrt(known.size)) if known.size > 1 else math.nan
    chance = math.nan if told["chance"] is None else times * told["chance"]
    over, name = f"{known.size} held-out {words_of(results).run}s", told["scoring"].replace("_", " ")
    return Score(float(known.mean()), se, chance, over, "correct" if name == "accuracy" else name, percent)


def scores_by_fold(results: Results) -> NDArray:
    """The score of every fold as it is kept, NaN where it is not defined."""
    return np.array([math.nan if value is None else value for value in results.classes["fold_scores"]])


def class_facts(results: Results) -> Facts:
    """The facts about all classes together."""
    told, subject, method = results.classes, results.subjects[0], results.classes["method"]
    average = results.row(subject, AVERAGE, method)
    patterns = list(_class_patterns(results, method).items())[:MOST_CLASSES]
    files = {f"pattern of {name}": path for name, path in patterns}
    return Facts(
        ALL_CLASSES,
        ", ".join(told["names"]),
        method,
        results.labels[method],
        class_score(results),
        class_test(results),
        Files(files),
        words_of(results),
        _class_selection(results, method),
        stability_of(average),
        tuple(peak_place(path, name) for name, path in patterns),
        space=space_of(results),
        confusion=confused(told["names"], confusion_counts(results)),
    )


def confusion_counts(results: Results) -> NDArray:
    """Samples of all classes (true, predicted)."""
    counts = [row["count"] for row in results.classes["confusion"]]
    return np.array(counts).reshape(len(results.classes["names"]), -1)


def _class_selection(results: Results, method: str) -> Selected:
    """Voxels that at least one pair of classes selects."""
    masks = [path for path in (results.folder.selected_mask(sub, task["contrast"], method)
             for sub in results.subjects for task in results.tasks) if is_there(path)]  # fmt: skip
    selected = np.logical_or.reduce([read_map(path).data > 0 for path in masks])
    return Selected(int(np.sum(selected)), int(results.summary.data["n_voxels"]), pairs=len(masks))


def _class_patterns(results: Results, method: str) -> dict[str, Path]:
    """The pattern of each class against the others, the class with the highest recall first."""
    told, sub = results.classes, results.subjects[0]
    maps = told.get("maps") or {"contrasts": []}
    paths = {
        name: results.folder.statmap(sub, contrast, f"{entity(method)}Class", "pattern")
        for name, contrast in zip(told["names"], maps["contrasts"], strict=False)
    }
    order = sorted(paths, key=lambda name: -told["recall"].get(name, 0.0))
    return {name: paths[name] for name in order if is_there(paths[name])}


def score_text(results: Results, value: str | float) -> str:
    """A score of all classes together as tables show it: shares in percent."""
    score = number(value) if isinstance(value, str) else value
    if results.classes["scoring"] in _SHARES:
        return decimals(100 * score, 1, " %")
    return decimals(score, 3)


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


def all_cross_facts(results: Results) -> Iterator[Facts]:
    """The facts of every cross that some method can answer for."""
    for cross in results.cross.get("crosses", ()):
        rows = {
            row["method"]: row
            for row in results.cross_rows()
            if row["contrast"] == cross["name"] and row["status"] == "ok"
        }
        row = next((rows[method] for method in (*PREFERRED, *rows) if method in rows), None)
        if row is not None:
            yield _cross_facts(results, cross, row)


def _cross_facts(results: Results, cross: Mapping[str, Any], row: Mapping[str, str]) -> Facts:
    subject, method, w = results.subjects[0], row["method"], words_of(results)
    mean, se, chance = (number(row[f"{name}_percent"]) for name in ("accuracy", "accuracy_se", "chance"))
    facts = Facts(
        cross["name"],
        cross["label"],
        method,
        results.labels[method],
        Score(mean, se, chance, f"{row['runs']} tested {w.counted}s"),
        _cross_test(row),
        Files({}),
        w,
        space=space_of(results),
        tests=len(results.cross["crosses"]),
        trained_on=cross["trained_on"],
        alone=_alone(results, cross, method),
        caution="" if row["caution"] == MISSING else w.said(row["caution"]),
    )
    if cross["own_maps"]:
        files = _own_files(results, cross["name"], method)
        places = (peak_place(files["pattern"]),) if "pattern" in files else ()
        return replace(facts, places=places, files=Files(files))
    (task,) = (task for task in results.tasks if task["contrast"] == cross["contrast"])
    trained = comparison_facts(results, subject, task)
    facts = replace(facts, files=maps_to_use(results, subject, cross["contrast"], method))
    if trained is None or trained.method != method:
        return facts
    return replace(facts, selected=trained.selected, stability=trained.stability, places=trained.places,
                   where=trained.where)  # fmt: skip


def _cross_test(row: Mapping[str, str]) -> LabelTest | None:
    if row["p_value"] == MISSING:
        return None
    least = max(1 / (1 + int(row["permutations"])), 1 / number(row["labellings"]))
    p, holm = number(row["p_value"]), number(row["p_value_holm"])
    return LabelTest(p, holm, least, compared(row), "the training labels")


def _alone(results: Results, cross: Mapping[str, Any], method: str) -> tuple[tuple[str, float], ...]:
    """How well both comparisons are decoded by themselves: what a cross has to be compared with."""
    contrasts = {task["label"]: task["contrast"] for task in results.tasks}
    if cross["tested_on"] not in contrasts:
        return ()
    labels = [label for label in (cross["tested_on"], cross["trained_on"]) if label in contrasts]
    row_of = {label: results.row(results.subjects[0], contrasts[label], method) for label in labels}
    return tuple((label, row["accuracy_percent"]) for label, row in row_of.items())


def _own_files(results: Results, name: str, method: str) -> dict[str, Path]:
    words = {"pattern": "pattern", "pip": "inclusion probability", "weight": "weights"}
    return there({
        said: results.folder.statmap(results.subjects[0], name, entity(method), stat)
        for stat, said in words.items()
    })  # fmt: skip


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
        f"{page.w.counted.capitalize()}s",
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
        "cautions": dict.fromkeys(page.w.said(row["caution"]) for row in rows if known(row["caution"])),
        "maps": [(each, path) for each, path in paths if is_there(path)],
    }


CROSS_NULL = "cross_null.svg"


def cross_maps_path(results: Results, each: Mapping[str, Any]) -> Path:
    """The figure of a cross's own maps."""
    return results.folder.figure(f"cross_{each['name']}_maps.png")
