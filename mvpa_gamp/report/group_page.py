"""The page of a group: what participants say together; a pure reader of the folder, as report/page.py."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from mvpa_gamp.report import group_answers as said
from mvpa_gamp.report.backdrops import Backdrop, MeshBackdrop
from mvpa_gamp.report.comparisons import FEW
from mvpa_gamp.report.figures import draw_group, group_classes_path, line_maps, maps_path
from mvpa_gamp.report.group_answers import difference_words, entries, sentence, words
from mvpa_gamp.report.group_facts import (
    SHOWN,
    Group,
    GroupFacts,
    Row,
    comparison_facts,
    design_facts,
    is_classes,
    read_group,
)
from mvpa_gamp.report.group_methods import group_methods_text, group_references
from mvpa_gamp.report.html import Cell, Pair, Renderer, Table, accuracy_matrix, cell, method_cell, name, table
from mvpa_gamp.report.viewer import (
    GROUND,
    backdrop_of_group,
    comparison_viewer,
    group_class_viewer,
    group_thumbnail,
    shared_grounds,
)
from mvpa_gamp.report.words import NONE, decimals, significant, span, two_digits
from mvpa_gamp.results.files import MISSING, number, read_tsv, write_text

_OPEN = 12  # lines of a table that is open
_NOTES = 1  # shown at the top; more of them open on a click
_SIMULATED = "At least one participant is simulated; nothing here is a finding about brains."


@dataclass(frozen=True)
class GroupPage:
    """What the sections of a group's page are made from; facts and what lies under maps are read once."""

    group: Group

    @cached_property
    def facts(self) -> list[GroupFacts]:
        """The facts of every comparison."""
        return [comparison_facts(self.group, row) for row in self.group.answers()]

    @cached_property
    def backdrop(self) -> Backdrop | MeshBackdrop | None:
        """What lies under the maps, if there are any."""
        return backdrop_of_group(self.group)


def build_group_page(root: Path) -> Path:
    """Draw the figures and write ``index.html`` of a folder of participants; returns the page's path."""
    group = read_group(root)
    draw_group(group)
    return write_text(group.folder.page, render_group(group))


def render_group(group: Group) -> str:
    """The HTML of the page."""
    page, study = GroupPage(group), group.study
    renderer = Renderer(group.folder.root, True, w=group.w, phantom=group.banner)
    body = [renderer.section(template, make(page)) for template, make in SECTIONS.items()]
    notes = [("banner", "Note", group.w.said(note)) for note in study["notes"]]
    return renderer.page(
        body,
        title="PHANTOM – mvpa_gamp: group" if study["phantom"] else "mvpa_gamp: group",
        heading="Decoding in a group of participants",
        lead=", ".join(f"sub-{subject}" for subject in study["subjects"]) + ".",
        simulated=_SIMULATED,
        first=notes[:_NOTES],
        rest=notes[_NOTES:],
        more=f"More notes ({len(notes) - _NOTES})",
        facts={
            "participants": len(study["subjects"]),
            "comparisons": len(study["comparisons"]),
            "methods": len(group.labels),
            "level of each test": study["alpha"],
        },
        version=study["version"],
    )


# ---- answers -----------------------------------------------------------------------------------------------


def designs_answer(page: GroupPage) -> dict[str, Any] | None:
    """A box for all classes together and for every cross."""
    group = page.group
    blocks = [_design_block(page, facts) for facts in design_facts(group)]
    if not blocks:
        return None
    kinds = {row["design"] for row in group.designs}
    title = "All classes together, and cross-decoding (trained → tested)"
    if len(kinds) == 1:
        title = "All classes together" if "classes" in kinds else "Cross-decoding: trained → tested"
    return {"title": title, "blocks": blocks}


def _design_block(page: GroupPage, facts: GroupFacts) -> dict[str, Any]:
    group, maps = page.group, {name: maps for name, (maps, _) in facts.classes.items()}
    tested = any(("SignFlip", "logpfwe") in paths for paths in maps.values())
    return {
        "facts": facts,
        "entries": entries(facts, group),
        "sentence": sentence(facts, group),
        "viewer": group_class_viewer(group, page.backdrop, maps) if maps else None,
        "figure": group_classes_path(group) if maps and is_classes(facts) else None,
        "tested": tested,
    }


def overview(page: GroupPage) -> dict[str, Any] | None:
    """All comparisons at a glance; nothing for a single one, whose answer comes first by itself."""
    group, facts = page.group, page.facts
    if len(facts) < 2:
        return None
    values = [each.score.mean for each in facts]
    chance = span(sorted(words(each.row)["chance"] for each in facts))
    pairs = [_pair(group, each) for each in facts if each.contrast in group.study["sides"]]
    over = f"{len(facts)} comparisons and {facts[0].score.over}"
    return {
        "score": f"{np.mean(values):.1f} % correct",
        "over": f"{over} ({min(values):.1f} to {max(values):.1f} %; chance {chance})",
        "by": group.labels[group.answering],
        "tested": _tested(group, facts),
        "stable": _stable(facts),
        "matrix": accuracy_matrix(pairs),
        "table": _overview_table(facts),
    }


def _pair(group: Group, facts: GroupFacts) -> Pair:
    """Two categories of the matrix, whose cell leads to their comparison."""
    positive, negative = group.study["sides"][facts.contrast]
    return Pair(positive, negative, f"comparison-{facts.contrast}", facts.score.mean, facts.score.chance)


def _overview_table(facts: Sequence[GroupFacts]) -> Table:
    """One line per comparison, by the answering method."""
    rows = []
    for each in facts:
        row, told, shared = each.row, words(each.row), each.stability.shared
        link = Markup('<a href="#comparison-{}">{}</a>').format(each.contrast, row["comparison"])
        rows.append([
            cell(link, "name", row["comparison"]),
            cell(told["accuracy"], value=row["accuracy_percent"]),
            cell(told["flip"], value=row["signflip_p_value"]),
            cell(told["significant"] if int(row["tested"]) else NONE, value=row["significant"]),
            cell(decimals(shared, 0), value=shared),
        ])  # fmt: skip
    return table(("Comparison", "Accuracy", "p (sign flips)", "Above chance", "Consistency (%)"), rows)


def _tested(group: Group, facts: Sequence[GroupFacts]) -> str:
    """How many comparisons are above chance across participants."""
    alpha, known = group.study["alpha"], [each for each in facts if each.tested]
    if not known:
        return "Not tested across participants: there are too few."
    passed = sum(number(each.row["signflip_p_holm"]) <= alpha for each in known)
    least = min(each.least for each in known) * len(known)
    if not passed and least > alpha:
        needed = math.ceil(math.log2(len(known) / alpha))
        return (
            f"None of them can be above chance after Holm's correction: with {facts[0].score.over} the "
            f"smallest possible corrected p of {len(known)} comparisons is {least:.2g} "
            f"(sign flips; {needed} participants are needed at a level of {alpha:g})."
        )
    return (
        f"{passed} of {len(known)} are above chance (p ≤ {alpha:g} after Holm's correction, sign flips of "
        "participants)."
    )


def _stable(facts: Sequence[GroupFacts]) -> str:
    """How stable the selected voxels are, on average."""
    known = [(each.stability.shared, each.stability.by_chance) for each in facts
             if not math.isnan(each.stability.shared)]  # fmt: skip
    if not known:
        return ""
    shared, chance = (float(value) for value in np.mean(known, axis=0))
    voxels = facts[0].w.voxels
    return f"Two folds share {shared:.0f} % of the selected {voxels} (chance {significant(chance)} %)."


def answers(page: GroupPage) -> dict[str, Any]:
    """A block per comparison; of a few the first one is open."""
    group = page.group
    blocks = [_block(page, facts) for facts in page.facts]
    for first in blocks[:1] if len(blocks) <= FEW else ():
        first["unfolded"] = True
    return {
        "title": "The answer" if group.unfolded else "Comparison by comparison",
        "many": not group.unfolded,
        "by": group.labels[group.answering],
        "maps": bool(group.study["maps"]),
        "blocks": blocks,
    }


def _block(page: GroupPage, facts: GroupFacts) -> dict[str, Any]:
    """One comparison."""
    group, contrast = page.group, facts.contrast
    maps = group.maps(contrast)
    by_method: dict[str, dict[str, Path]] = {}
    for (method, of, stat), path in maps.items():
        by_method.setdefault(group.labels[method], {})[SHOWN[of, stat].split(":")[0]] = path
    picture, glass = maps_path(group, contrast, "maps"), maps_path(group, contrast, "glass")
    return {
        "facts": facts,
        "entries": entries(facts, group),
        "sentence": sentence(facts, group),
        "thumbnail": group_thumbnail(group, page.backdrop, facts),
        "viewer": comparison_viewer(group, page.backdrop, facts),
        "unfolded": False,
        "files": by_method,
        "maps": picture if maps else None,
        "glass": glass if maps and glass.is_file() else None,
        "tested": any(of == "SignFlip" for _, of, _ in maps),
        "passed": bool(maps) and "logpfwe" in line_maps(group, contrast)[0].paths,
    }


# ---- tables ------------------------------------------------------------------------------------------------


def accuracy(page: GroupPage) -> dict[str, Any]:
    """Every participant as a dot, beside the table."""
    group, rows = page.group, page.group.summary
    best = max(rows, key=lambda row: number(row["accuracy_percent"]))
    return {
        "said": f"Highest: {best['comparison']} by {group.labels[best['method']]}, "
        f"{words(best)['accuracy']}.",
        "unfolded": len(rows) <= _OPEN,
        "beside": "beside" if len(rows) <= _OPEN else "wide",
        "figure": group.folder.figure("group_accuracy.svg"),
        "table": _rows(group, rows, "Comparison", said.ACCURACY, "accuracy"),
        "student": _rows(group, rows, "Comparison", said.STUDENT),
        "caption": f"{said.ACCURACY_CAPTION} {said.TESTS_CAPTION}",
    }


def _rows(group: Group, rows: Sequence[Row], what: str, columns: Mapping[str, str], exact: str = "") -> Table:
    """Comparison, method and what is said about them; ``exact`` is the column with its unrounded value."""
    body = []
    for row in rows:
        told = words(row)
        value = {exact: row.get(f"{exact}_percent", row.get(exact))} if exact else {}
        cells = (cell(told[each], value=value.get(each)) for each in columns)
        body.append(
            [name(row["comparison"]), method_cell(row["method"], group.labels[row["method"]]), *cells]
        )
    return table((what, "Method", *columns.values()), body, 2)


def designs(page: GroupPage) -> dict[str, Any] | None:
    """All methods on all classes together and on crosses, where there are any."""
    group, rows = page.group, page.group.designs
    if not rows:
        return None
    return {
        "figure": group.folder.figure("group_designs.svg"),
        "table": _rows(group, rows, "Design", said.DESIGN, "accuracy"),
        "caption": said.DESIGN_CAPTION,
        "student": _rows(group, rows, "Comparison", said.STUDENT),
        "participants": _participant_table(group, group.design_accuracy),
    }


def prevalence(page: GroupPage) -> dict[str, Any]:
    """How common above-chance decoding is."""
    group, study = page.group, page.group.study
    permuted = any(row["minimum_p_value"] != MISSING for row in group.summary)
    columns = said.PREVALENCE | (said.BOUND if permuted else {})
    return {
        "test": study["test"],
        "permuted": permuted,
        "unfolded": group.unfolded,
        "table": _rows(group, group.summary, "Comparison", columns, "prevalence"),
        "caption": said.significance_caption(study["alpha"], study["test"]),
    }


def differences(page: GroupPage) -> dict[str, Any]:
    """Paired differences over participants, between methods and between comparisons."""
    group, study = page.group, page.group.study
    rows = read_tsv(group.folder.group_table("differences"))
    places = {**study["comparisons"], **group.labels}
    tables = {}
    for between, names in (("methods", group.labels), ("comparisons", study["comparisons"])):
        body = [_difference_row(row, places, names) for row in rows if row["between"] == between]
        if body:
            tables[f"Differences between {between} ({len(body)})"] = table(
                ("Within", "First", "Second", "First - second", "p (Holm)", "t-test"), body, 3
            )
    return {"tables": tables}


def _difference_row(row: Row, places: Mapping[str, str], names: Mapping[str, str]) -> list[Cell]:
    told, within = difference_words(row), places.get(row["within"], row["within"])
    exact = cell(told["difference"], value=row["difference_percent"])
    labels = (name(each) for each in (within, names[row["first"]], names[row["second"]]))
    return [*labels, exact, cell(told["p"]), cell(told["student"])]


def participants(page: GroupPage) -> dict[str, Any]:
    """Links to the participants' pages, and their numbers."""
    group = page.group
    made = _participant_table(group, group.accuracy)
    return {"subjects": group.study["subjects"], "table": made, "test": group.study["test"]}


def _participant_table(group: Group, rows: Sequence[Row]) -> Table:
    """Every participant's accuracy and test."""
    body = [
        [
            name(f"sub-{row['subject']}"),
            name(row["comparison"]),
            name(group.labels[row["method"]]),
            cell(decimals(row["accuracy_percent"], 1, " %"), value=row["accuracy_percent"]),
            f"{row['runs_above_chance']} of {row['runs']}",
            two_digits(row["p_value"]),
        ]
        for row in rows
    ]
    return table(("Participant", "Comparison", "Method", "Accuracy", "runs above chance", "p"), body, 3)


def methods(page: GroupPage) -> dict[str, Any]:
    """The paragraph for a paper."""
    return {"text": page.group.w.said(group_methods_text(page.group))}


def references(page: GroupPage) -> dict[str, Any]:
    """The works behind the classifiers and the statistics."""
    return {"references": group_references(page.group)}


def grounds(page: GroupPage) -> dict[str, Any] | None:
    """What the viewers of the page share."""
    return None if page.backdrop is None else shared_grounds({GROUND: page.backdrop})


# The page from top to bottom, as in report/page.py.
SECTIONS: dict[str, Callable[[GroupPage], Mapping[str, Any] | None]] = {
    "group/designs_answer": designs_answer,
    "group/overview": overview,
    "group/answers": answers,
    "group/accuracy": accuracy,
    "group/designs": designs,
    "group/prevalence": prevalence,
    "group/differences": differences,
    "group/participants": participants,
    "group/methods": methods,
    "group/references": references,
    "grounds": grounds,
}
