"""What is answered first where many classes are told apart together: the questions asked of comparisons."""

import math
from pathlib import Path

import numpy as np

from mvpa_gamp.imaging.map_names import entity
from mvpa_gamp.imaging.surface_names import is_there
from mvpa_gamp.report.answer_box import Fact, Files, answer_box, tested_words
from mvpa_gamp.report.answer_facts import mean_words, space_of, stability_fact, untested_fact
from mvpa_gamp.report.class_plots import chance_words, score_words, spread_words
from mvpa_gamp.report.confusion_words import confusion_fact
from mvpa_gamp.report.markup import block, details, section, swatch, text
from mvpa_gamp.report.page_answers import place_words
from mvpa_gamp.report.style import colour_of
from mvpa_gamp.report.viewer import class_viewer
from mvpa_gamp.report.volumes import peak_of, read_map
from mvpa_gamp.report.words import compared_classes, significant
from mvpa_gamp.results.reader import Results
from mvpa_gamp.results.tables import AVERAGE, selects

_MOST_FILES = 8  # classes whose maps are linked in the box


def class_answer_section(results: Results) -> str:
    """A box about all classes together; nothing for pairs, whose own boxes say the same."""
    if len(results.classes.get("names", ())) < 3:
        return ""
    method = results.classes["method"]
    facts = [
        Fact("How accurate", score_words(results), _accuracy_note(results)),
        _sure(results),
        *_confused(results),
        _voxels(results, method),
        _stability(results, method),
        *_places(results, method),
    ]
    patterns = list(_patterns(results, method).items())[:_MOST_FILES]
    files = {f"pattern of {name}": path for name, path in patterns}
    box = answer_box(facts, Files(files, results.folder.root, results.linked))
    names = results.classes["names"]
    by = f'<span class="by">{swatch(colour_of(method))}{text(results.labels[method])}</span>'
    head = f"<h3>{text(', '.join(names))}</h3> {by}"
    title = f"All {len(names)} classes together"
    viewed = class_viewer(results, method)
    maps = details("Look through the maps of every class", viewed) if viewed else ""
    return section("classes", title, block("classes-answer", "The answer", head, box, maps, unfolded=True))


def _accuracy_note(results: Results) -> str:
    count = sum(value is not None for value in results.classes["fold_scores"])
    spread = f" ± {spread_words(results)} (standard error)" if count > 1 else ""
    over = mean_words(count, results.fold_word, math.nan)
    return f"chance {chance_words(results)} for {len(results.classes['names'])} classes; {over}{spread}"


def _sure(results: Results) -> Fact:
    test = results.classes.get("permutation")
    if not test:
        return untested_fact(results)
    return tested_words(test["pvalue"], compared_classes(test), test.get("smallest", 1 / (1 + test["n"])))


def _confused(results: Results) -> list[Fact]:
    """What is confused most; folders of earlier versions do not say."""
    if not results.classes.get("recall"):
        return []
    names = results.classes["names"]
    counts = np.array([row["count"] for row in results.classes["confusion"]]).reshape(len(names), -1)
    return [confusion_fact(names, counts)]


def _voxels(results: Results, method: str) -> Fact:
    """Voxels that at least one pair of classes selects."""
    masks = [path for path in (results.folder.selected_mask(sub, task["contrast"], method)
             for sub in results.subjects for task in results.tasks) if is_there(path)]  # fmt: skip
    selected = np.logical_or.reduce([read_map(path).data > 0 for path in masks])
    total = int(results.summary.data["n_voxels"])
    count = int(np.sum(selected))
    if count in (0, total):
        said = "none selected" if not count else "all"
        return Fact("Which voxels", said, f"of {total:,}; no pair of classes selects" if not count else "")
    share = significant(100 * count / total)
    note = f"{share} % of {total:,}, by the fit to all data of at least one of {len(masks)} pairs"
    return Fact("Which voxels", f"{count:,} selected", note)


def _stability(results: Results, method: str) -> Fact:
    row = next(r for r in results.rows if (r["contrast"], r["method"]) == (AVERAGE, method))
    fact = stability_fact(
        row["consistency_percent"] if selects(row) else math.nan, row["chance_consistency_percent"]
    )
    return Fact(fact.question, fact.said, f"{fact.note}; mean over {len(results.tasks)} pairs")


def _patterns(results: Results, method: str) -> dict[str, Path]:
    """The pattern of each class against the others, the class with the highest recall first."""
    maps, recall = results.classes.get("maps") or {"contrasts": []}, results.classes.get("recall", {})
    names, sub = results.classes["names"], results.subjects[0]
    paths = {
        name: results.folder.statmap(sub, contrast, f"{entity(method)}Class", "pattern")
        for name, contrast in zip(names, maps["contrasts"], strict=False)
    }
    order = sorted(paths, key=lambda name: -recall.get(name, 0.0))
    return {name: paths[name] for name in order if is_there(paths[name])}


def _places(results: Results, method: str) -> list[Fact]:
    """Where the pattern of each class is strongest."""
    patterns = list(_patterns(results, method).items())[:_MOST_FILES]
    if not patterns:
        return []
    first, *others = (f"{name} {_peak(path)}" for name, path in patterns)
    listed = "".join(f"{each}; " for each in others)
    note = f"{listed}largest pattern (x y z) of each class against the others, not tested"
    return [Fact("Where", first, f"{note}; space: {space_of(results)}")]


def _peak(path: Path) -> str:
    """Where a pattern is strongest, and whether the class has more or less signal there than the others."""
    found = read_map(path)
    at = peak_of(found.data)
    amount = "more signal" if found.data[at] >= 0 else "less signal"
    return f"{place_words(found.coordinates(at))} mm ({amount})"
