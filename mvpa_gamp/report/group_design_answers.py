"""What a group's page answers first about all classes together and about cross-decoding."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from mvpa_gamp.report.answer_box import Fact, Files, answer_box
from mvpa_gamp.report.answers import confusion_entries
from mvpa_gamp.report.facts import confused
from mvpa_gamp.report.group_answers import comparison_facts, files_of, head_of, score_sentence
from mvpa_gamp.report.group_facts import (
    Row,
    accuracy_fact,
    common_fact,
    space_words,
    stable_fact,
    sure_fact,
    voxels_words,
)
from mvpa_gamp.report.group_maps import class_figure
from mvpa_gamp.report.group_places import Maps, Places, places_of
from mvpa_gamp.report.group_results import Group
from mvpa_gamp.report.group_viewer import backdrop_of_group, class_viewer
from mvpa_gamp.report.group_words import words
from mvpa_gamp.report.markup import block, details, section
from mvpa_gamp.results.files import number
from mvpa_gamp.results.names import ALL_CLASSES
from mvpa_gamp.results.tables import AVERAGE

_OPEN = 1  # designs whose box is open
_MOST = 8  # classes that are named and linked in a box
_UNTESTED = "its comparisons share a condition, or there are too few participants for a test across them"


def design_answer_section(group: Group) -> str:
    """A box for all classes together and for every cross, by the method that answers for comparisons."""
    rows = answering_designs(group)
    if not rows:
        return ""
    blocks = [
        (_class_block if row["design"] == "classes" else _cross_block)(group, row, number < _OPEN)
        for number, row in enumerate(rows)
    ]
    return section("designs-answer", _title(rows), *blocks)


def _title(rows: list[Row]) -> str:
    kinds = {row["design"] for row in rows}
    if kinds == {"cross"}:
        return "Cross-decoding: trained → tested"
    return (
        "All classes together, and cross-decoding (trained → tested)"
        if "cross" in kinds
        else "All classes together"
    )


def answering_designs(group: Group) -> list[Row]:
    """The rows of group_designs.tsv that answer, one per design."""
    found: dict[tuple[str, str], Row] = {}
    for row in group.designs:
        key = row["design"], row["comparison"]
        if key not in found or row["method"] == group.answering:
            found[key] = row
    return list(found.values())


def _class_block(group: Group, row: Row, unfolded: bool) -> str:
    """All classes together: what is confused, the pattern of every class, viewer and figure."""
    maps = _recognised_first(group, row["method"], class_maps(group, row["method"]))
    places = {name: places_of(paths) for name, paths in maps.items()}
    maps = {name: maps[name] for name in sorted(maps, key=lambda name: not places[name].voxels)}
    files = _class_files(group, maps, places)
    facts = [
        accuracy_fact(row),
        sure_fact(row),
        common_fact(group, row),
        *_confused(group, row),
        stable_fact(group, AVERAGE, row["method"], Places(), " and pairs of classes"),
        _class_places(group, places),
    ]
    where = facts[-1]
    said = f"{score_sentence(group, row)}; {facts[-2].said}; strongest for {where.said}."
    parts = [answer_box(facts, files)]
    if maps:
        parts.append(class_viewer(group, backdrop_of_group(group), maps))
        parts.append(details("Maps of all classes, the same slices for each", class_figure(group, maps)))
    return block(f"design-{ALL_CLASSES}", row["comparison"], head_of(group, row, said, files), *parts,
                 unfolded=unfolded)  # fmt: skip


def class_maps(group: Group, method: str) -> dict[str, Maps]:
    """The group's maps of each class against the others, by the name of the class."""
    told = group.study.get("classes", {})
    found = {
        name: group.maps_of(contrast, method, of_classes=True)
        for name, contrast in zip(told.get("names", ()), told.get("contrasts", ()), strict=False)
    }
    return {name: maps for name, maps in list(found.items())[:_MOST] if maps}


def _recognised_first(group: Group, method: str, maps: dict[str, Maps]) -> dict[str, Maps]:
    """Classes by their recall over all participants, the best one first."""
    told = group.study.get("classes", {})
    counts = np.array(told.get("confusion", {}).get(method, ()))
    if not counts.size:
        return maps
    recall = dict(zip(told["names"], np.diagonal(counts) / counts.sum(axis=1), strict=True))
    return {name: maps[name] for name in sorted(maps, key=lambda name: -recall[name])}


def _class_files(group: Group, maps: Mapping[str, Maps], places: Mapping[str, Places]) -> Files:
    """The map of each class to use."""
    found = {}
    for name in maps:
        words_of, path = next(iter(files_of(group, maps[name], places[name]).paths.items()))
        found[f"{name} against the others: {words_of.split(':')[0]}"] = path
    return Files(found, group.folder.root)


def _confused(group: Group, row: Row) -> list[Fact]:
    """Counts of all participants."""
    told = group.study.get("classes", {})
    counts = told.get("confusion", {}).get(row["method"])
    if not counts:
        return []
    found = confusion_entries(confused(told["names"], np.array(counts)))
    return [Fact(each.question, each.said, "; ".join(each.notes)) for each in found]


def _class_places(group: Group, places: Mapping[str, Places]) -> Fact:
    """Where the pattern of each class is strongest over participants, those that passed the test first."""
    known = {name: each for name, each in places.items() if each.peak}
    if not known:
        return Fact("Where", "no maps of the group", "not all participants have maps in a common space")
    names = sorted(known, key=lambda name: not known[name].voxels)
    first, *others = (f"{name} {known[name].peak} mm ({_amount(known[name])})" for name in names)
    passed = ", ".join(f"{name} {voxels_words(known[name].voxels)}" for name in names if known[name].voxels)
    test = f"family-wise p ≤ 0.05, not corrected over classes: {passed or 'no voxel of any class'}"
    listed = "".join(f"{each}; " for each in others)
    note = f"{listed}largest pattern (x y z) of each class against the others; {test}"
    return Fact("Where", first, note + space_words(group))


def _amount(places: Places) -> str:
    """Whether a class has more or less signal there than the others."""
    return "more signal" if places.higher else "less signal"


def _cross_block(group: Group, row: Row, unfolded: bool) -> str:
    """A cross: maps are those of the classifier that was trained."""
    cross: Mapping[str, Any] = next(
        (each for each in group.study.get("crosses", ()) if each["name"] == row["contrast"]), {}
    )
    trained = row["contrast"] if cross.get("own_maps") else cross.get("contrast", "")
    maps = group.maps_of(trained, row["method"])
    places = places_of(maps)
    files = files_of(group, maps, places)
    *_, stable, where = comparison_facts(group, {**row, "contrast": trained}, places)
    of = f"; of the classifier trained on {cross.get('trained_on', 'the first comparison')}"
    facts = [
        accuracy_fact(row),
        sure_fact(row, _UNTESTED),
        common_fact(group, row),
        *_by_itself(group, cross, row["method"]),
        *(Fact(fact.question, fact.said, fact.note + of) for fact in (stable, where)),
    ]
    said = (
        f"{score_sentence(group, row)}. The classifier trained on "
        f"{cross.get('trained_on', 'the first comparison')}: {stable.said}; {where.said}."
    )
    box = answer_box(facts, files)
    return block(f"design-{row['contrast']}", row["comparison"], head_of(group, row, said, files), box,
                 unfolded=unfolded)  # fmt: skip


def _by_itself(group: Group, cross: Mapping[str, Any], method: str) -> list[Fact]:
    """How well both comparisons are decoded by themselves, what a cross has to be compared with."""
    known = {row["comparison"]: row for row in group.summary if row["method"] == method}
    tested, trained = (known.get(cross.get(name, "")) for name in ("tested_on", "trained_on"))
    if tested is None:
        return []
    also = "" if trained is None else f"; {trained['comparison']} {words(trained)['accuracy']}"
    said = f"{number(tested['accuracy_percent']):.1f} % correct"
    return [Fact("Without crossing", said, f"{tested['comparison']}, trained and tested within it{also}")]
