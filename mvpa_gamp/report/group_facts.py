"""The facts of a group's answer boxes: how accurate, how sure, how common, how stable, where."""

import math

from mvpa_gamp.report.answer_box import Fact
from mvpa_gamp.report.answers import stability_entry
from mvpa_gamp.report.facts import Stability
from mvpa_gamp.report.group_places import Places
from mvpa_gamp.report.group_results import Group
from mvpa_gamp.report.group_words import words
from mvpa_gamp.report.words import Words
from mvpa_gamp.results.files import MISSING, number

Row = dict[str, str]


def accuracy_fact(row: Row) -> Fact:
    """The mean over participants, their spread, and chance."""
    said = words(row)
    spread = number(row["accuracy_se_percent"])
    se = "" if math.isnan(spread) else f" ± {spread:.1f} (standard error)"
    note = (
        f"chance {said['chance']}; mean over {row['participants']} participants{se}; "
        f"participants from {said['lowest']} to {said['highest']}"
    )
    return Fact("How accurate", f"{number(row['accuracy_percent']):.1f} % correct", note)


def sure_fact(row: Row, untested: str = "too few participants for a test across them") -> Fact:
    """The sign-flip test over participants."""
    p, least = number(row.get("signflip_p_value", MISSING)), number(row.get("signflip_smallest_p", MISSING))
    if math.isnan(p):
        return Fact("How sure", "not tested", untested)
    note = f"sign flips of {row['participants']} participants; smallest possible p: {least:.2g}"
    return Fact("How sure", f"p = {p:.2g}", note + holm_words(row, "; "))


def holm_words(row: Row, before: str = ", ") -> str:
    """The p-value after Holm's correction, where several comparisons were tested."""
    holm, many = number(row.get("signflip_p_holm", MISSING)), number(row.get("comparisons_tested", "1"))
    return f"{before}{holm:.2g} after Holm's correction" if many > 1 and not math.isnan(holm) else ""


def common_fact(group: Group, row: Row) -> Fact:
    """In how many participants decoding is above chance."""
    said = words(row)
    if not int(row["tested"]):
        note = "participants have no tests of their own: --permutations at the participant level"
        return Fact("How common", "not tested", note)
    note = f"above chance by themselves (p ≤ {group.study['alpha']:g}, {row['test']})"
    if said["prevalence"] != "–":
        note += f"; prevalence {said['prevalence']}, 95 % interval {said['interval']}"
    return Fact("How common", f"{said['significant']} participants", note)


def stable_fact(group: Group, contrast: str, method: str, places: Places, over: str = "") -> Fact:
    """Consistency of folds inside participants, and how many participants select the same voxel."""
    fact = stability_entry(Stability(*group.consistency(contrast, method)), Words())
    n = len(group.study["subjects"])
    same = "" if math.isnan(places.most) else (
        f"; no voxel is selected by more than {round(places.most * n)} of {n} participants"
    )  # fmt: skip
    return Fact(fact.question, fact.said, f"{'; '.join(fact.notes)}; mean over participants{over}{same}")


def place_fact(group: Group, places: Places, contrast: str) -> Fact:
    """Where the pattern of participants is strongest, for which category, and how many voxels passed."""
    if not places.peak:
        return Fact("Where", "no maps of the group", "the notes at the top of the page give the reason")
    higher = f"signal higher for {group.side(contrast, places.higher)}"
    largest = f"the mean pattern is largest at {places.peak} mm (x y z; {higher}), a description"
    if math.isnan(places.p):
        return Fact("Where", "not tested", f"{largest}{space_words(group)}")
    if not places.voxels:
        note = f"smallest family-wise p: {places.p:.2g}; {largest}{space_words(group)}"
        return Fact("Where", "no voxel at p ≤ 0.05", note)
    note = (
        f"largest |t| of the patterns of participants (x y z), {higher}; family-wise p = {places.p:.2g}; "
        f"{voxels_words(places.voxels)} with p ≤ 0.05{space_words(group)}"
    )
    return Fact("Where", f"{places.peak} mm", note)


def voxels_words(count: int) -> str:
    """A number of voxels."""
    return f"{count:,} voxel{'s' * (count != 1)}"


def space_words(group: Group) -> str:
    """The space of coordinates, where it is one."""
    return f"; space: {group.study['space']}" if group.study.get("space") else ""
