"""What is answered first about cross-decoding: does what is learnt on one comparison hold on the other?"""

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mvpa_gamp.imaging.map_names import entity
from mvpa_gamp.imaging.surface_names import is_there
from mvpa_gamp.report.answer_box import Fact, Files, answer_box, map_line, p_words, tested_words
from mvpa_gamp.report.answer_facts import place_fact, stability_fact, untested_fact, voxel_fact
from mvpa_gamp.report.map_files import leading_files
from mvpa_gamp.report.markup import block, paragraph, section, swatch, text
from mvpa_gamp.report.page_answers import PREFERRED, Answer, answer, peak_words
from mvpa_gamp.report.style import colour_of
from mvpa_gamp.report.words import chance_text, compared, compared_with
from mvpa_gamp.results.files import MISSING, number
from mvpa_gamp.results.reader import Results

_OPEN = 2  # crosses whose boxes are open
Row = Mapping[str, str]


def cross_answer_section(results: Results) -> str:
    """A box per cross, by the method that answers for comparisons."""
    if not results.cross:
        return ""
    rows = {each["name"]: _answering(results, each["name"]) for each in results.cross["crosses"]}
    unfolded = len(rows) <= _OPEN
    blocks = [
        _block(results, each, row, unfolded)
        for each in results.cross["crosses"]
        if (row := rows[each["name"]]) is not None
    ]
    if not blocks:
        return section("cross-answer", "Cross-decoding", paragraph("Every method failed on every cross."))
    return section("cross-answer", "Cross-decoding: trained → tested", *blocks)


def _answering(results: Results, name: str) -> Row | None:
    """The row of the answering method, None where all failed."""
    rows = {
        row["method"]: row
        for row in results.cross_rows()
        if row["contrast"] == name and row["status"] == "ok"
    }
    return next((rows[method] for method in (*PREFERRED, *rows) if method in rows), None)


def _block(results: Results, cross: Mapping[str, Any], row: Row, unfolded: bool) -> str:
    method = row["method"]
    by = f'<span class="by">{swatch(colour_of(method))}{text(results.labels[method])}</span>'
    facts, files = _facts(results, cross, row)
    more = "; ".join(fact.said for fact in facts if fact.question in ("How stable", "Where"))
    said = text(f"{sentence(row)} {f'The classifier: {more}.' if more else ''}")
    head = f'<h3>{text(cross["label"])}</h3> {by} <span class="said">{said}</span>'
    named = Files(files, results.folder.root, results.linked)
    box, head = answer_box(facts, named), head + map_line(named)
    caution = paragraph(row["caution"], kind="note") if row["caution"] != MISSING else ""
    return block(f"cross-{cross['name']}", cross["label"], head, box, caution, unfolded=unfolded)


def sentence(row: Row) -> str:
    """The answer in a line."""
    chance = f"chance {chance_text(number(row['chance_percent']))} %"
    p = ", not tested"
    if row["p_value"] != MISSING:
        p = f", {p_words(number(row['p_value']))}, {compared_with([compared(row)])}"
    return f"{number(row['accuracy_percent']):.1f} % correct ({chance}{p})."


def _facts(results: Results, cross: Mapping[str, Any], row: Row) -> tuple[list[Fact], dict[str, Path]]:
    """The facts and the maps to use: those of the classifier that was trained."""
    subject, method = results.subjects[0], row["method"]
    se = number(row["accuracy_se_percent"])
    spread = "" if math.isnan(se) else f" ± {se:.1f} (standard error)"
    note = (
        f"chance {chance_text(number(row['chance_percent']))} %; mean over {row['runs']} tested runs{spread}"
    )
    facts = [
        Fact("How accurate", f"{number(row['accuracy_percent']):.1f} % correct", note),
        _sure(results, row),
        *_by_itself(results, cross, method),
    ]
    if cross["own_maps"]:
        files = _own_files(results, cross["name"], method)
        at = peak_words(files["pattern"]) if "pattern" in files else ""
        where = f"peak of the pattern (x y z) of the classifier trained on {cross['trained_on']}, not tested"
        return [*facts, *([Fact("Where", f"{at} mm", where)] if at else [])], files
    trained = answer(results, subject, cross["contrast"], results.table(subject, "clusters"))
    files = leading_files(results, subject, cross["contrast"], method)
    return [*facts, *_trained_facts(results, cross, trained, method)], files


def _trained_facts(
    results: Results, cross: Mapping[str, Any], trained: Answer | None, method: str
) -> list[Fact]:
    """Voxels of the comparison that was trained on, whose classifier it is."""
    if trained is None or trained.method != method:
        return []
    facts = [
        voxel_fact(results, results.subjects[0], cross["contrast"], trained),
        stability_fact(trained.shared, trained.shared_by_chance),
        place_fact(results, results.subjects[0], cross["contrast"], trained),
    ]
    return [replace(fact, note=f"{fact.note}; classifier of {cross['trained_on']}") for fact in facts]


def _sure(results: Results, row: Row) -> Fact:
    if row["p_value"] == MISSING:
        return untested_fact(results)
    least = max(1 / (1 + int(row["permutations"])), 1 / number(row["labellings"]))
    fact = tested_words(number(row["p_value"]), compared(row), least, "the training labels")
    if len(results.cross["crosses"]) == 1:
        return fact
    holm = f"{number(row['p_value_holm']):.2g} after Holm's correction for the crosses"
    return Fact(fact.question, fact.said, f"{fact.note}; {holm}")


def _by_itself(results: Results, cross: Mapping[str, Any], method: str) -> list[Fact]:
    """How well both comparisons are decoded by themselves: what a cross has to be compared with."""
    subject = results.subjects[0]
    labels = {task["label"]: task["contrast"] for task in results.tasks}
    known = {
        label: results.row(subject, labels[label], method)["accuracy_percent"]
        for label in (cross["tested_on"], cross["trained_on"])
        if label in labels
    }
    if cross["tested_on"] not in known:
        return []
    (tested, accuracy), *rest = known.items()
    note = f"{tested}, trained and tested within it" + "".join(
        f"; {label} {value:.1f} %" for label, value in rest
    )
    return [Fact("Without crossing", f"{accuracy:.1f} % correct", note)]


def _own_files(results: Results, name: str, method: str) -> dict[str, Path]:
    words = {"pattern": "pattern", "pip": "inclusion probability", "weight": "weights"}
    paths = {
        said: results.folder.statmap(results.subjects[0], name, entity(method), stat)
        for stat, said in words.items()
    }
    return {said: path for said, path in paths.items() if is_there(path)}
