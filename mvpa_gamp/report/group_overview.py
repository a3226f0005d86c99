"""What all comparisons of a group come to: a sentence, and a matrix of categories to click on."""

import math

import numpy as np

from mvpa_gamp.report.accuracy_matrix import Pair, accuracy_matrix
from mvpa_gamp.report.group_facts import Row
from mvpa_gamp.report.group_results import Group
from mvpa_gamp.report.group_words import words
from mvpa_gamp.report.markup import cell, headings, html_cell, section, table, text
from mvpa_gamp.report.words import significant
from mvpa_gamp.results.files import MISSING, number

_TABLE_CAPTION = (
    "Mean accuracy ± standard error over participants; p in brackets after Holm's correction; participants "
    "above chance by their own tests, of those who can be; consistency: share of selected voxels that two "
    "folds have in common. A click on a heading sorts."
)
_CAPTION = "Mean accuracy over participants (%), darker is higher; click on a pair for its maps."


def group_overview_section(group: Group) -> str:
    """Nothing for a single comparison, whose answer comes first by itself."""
    rows = group.answers()
    if len(rows) < 2:
        return ""
    values = [number(row["accuracy_percent"]) for row in rows]
    chance = " to ".join(dict.fromkeys(words(row)["chance"] for row in rows))
    said = (
        f"on average over {len(rows)} comparisons and {rows[0]['participants']} participants "
        f"({min(values):.1f} to {max(values):.1f} %; chance {chance}), by "
        f"{group.study['methods'][group.answering]}. {_tested(group, rows)} {_stable(group, rows)}"
    )
    headline = f'<div class="headline"><p><b>{np.mean(values):.1f} % correct</b> {text(said)}</p></div>'
    matrix = accuracy_matrix([_pair(group, row) for row in rows if row["contrast"] in group.sides], _CAPTION)
    both = f'<div class="side-by-side">{matrix}{_table(group, rows)}</div>'
    return section("overview", "All comparisons", headline, both)


def _table(group: Group, rows: list[Row]) -> str:
    """One line per comparison, by the answering method."""
    head = headings(("Comparison", "Accuracy", "p (sign flips)", "Above chance", "Consistency (%)"))
    body = []
    for row in rows:
        said, shared = words(row), group.consistency(row["contrast"], row["method"])[0]
        label = row["comparison"]
        link = f'<a href="#comparison-{text(row["contrast"])}">{text(label)}</a>'
        body.append(
            html_cell(link, "name", label)
            + cell(said["accuracy"], value=row["accuracy_percent"])
            + cell(said["flip"], value=row["signflip_p_value"])
            + cell(said["significant"] if int(row["tested"]) else "–", value=row["significant"])
            + cell("–" if math.isnan(shared) else f"{shared:.0f}", value=shared)
        )
    return table([head], body, text(_TABLE_CAPTION), "sortable")


def _pair(group: Group, row: Row) -> Pair:
    positive, negative = group.sides[row["contrast"]]
    value, chance = number(row["accuracy_percent"]), number(row["chance_percent"])
    return Pair(positive, negative, f"comparison-{row['contrast']}", value, chance)


def _tested(group: Group, rows: list[Row]) -> str:
    """How many comparisons are above chance across participants."""
    alpha = group.study["alpha"]
    tested = [row for row in rows if not math.isnan(number(row.get("signflip_p_holm", MISSING)))]
    if not tested:
        return "Not tested across participants: there are too few."
    passed = sum(number(row["signflip_p_holm"]) <= alpha for row in tested)
    least = min(number(row["signflip_smallest_p"]) for row in tested) * len(tested)
    if not passed and least > alpha:
        needed = math.ceil(math.log2(len(tested) / alpha))
        return (
            f"None of them can be above chance after Holm's correction: with {rows[0]['participants']} "
            f"participants the smallest possible corrected p of {len(tested)} comparisons is {least:.2g} "
            f"(sign flips; {needed} participants are needed at a level of {alpha:g})."
        )
    return (
        f"{passed} of {len(tested)} are above chance (p ≤ {alpha:g} after Holm's correction, sign flips of "
        "participants)."
    )


def _stable(group: Group, rows: list[Row]) -> str:
    """How stable the selected voxels are, on average."""
    found = [group.consistency(row["contrast"], row["method"]) for row in rows]
    known = [pair for pair in found if not math.isnan(pair[0])]
    if not known:
        return ""
    shared, chance = np.mean(known, axis=0)
    return f"Two folds share {shared:.0f} % of the selected voxels (chance {significant(float(chance))} %)."
