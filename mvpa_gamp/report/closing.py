"""The last three lines of a group: the answer as the page gives it, where the page is, what to try next."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from mvpa_gamp.methods import METHODS
from mvpa_gamp.report.facts import ENOUGH
from mvpa_gamp.report.group_results import Group
from mvpa_gamp.report.group_words import words
from mvpa_gamp.report.terminal import named, other_words
from mvpa_gamp.report.words import p_words
from mvpa_gamp.results.files import number


def group_closing(group: Group) -> list[str]:
    """The same of a group."""
    rows = group.summary
    able = [row for row in rows if row["method"] not in METHODS or METHODS[row["method"]].is_batched]
    untested = any(int(row["tested"]) < int(row["participants"]) for row in able)
    then = (
        f"test every participant: participant level with --permutations {ENOUGH} --resume, then group"
        if untested
        else "the page links each participant's page; check participants who differ from the others"
    )
    classes = [row for row in group.designs if row["design"] == "classes"]
    said = _of_group(group, classes or rows)
    return [f"Answer: {said}", f"Page: {group.folder.page}", f"Next: {then}"]


def _of_group(group: Group, rows: Sequence[Mapping[str, str]]) -> str:
    """What the method that answers on the group's page says."""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    lead = group.answering if group.answering in methods else methods[0]
    mine = [row for row in rows if row["method"] == lead]
    means = {name: float(np.mean([number(row["accuracy_percent"]) for row in rows if row["method"] == name]))
             for name in methods}  # fmt: skip
    chance = " to ".join(dict.fromkeys(words(row)["chance"] for row in mine))
    people = f"{mine[0]['participants']} participant{'s' * (mine[0]['participants'] != '1')}"
    if len(mine) == 1:
        label, p = mine[0]["comparison"], number(mine[0].get("signflip_p_value", "n/a"))
        sure = "" if math.isnan(p) else f", {p_words(p)}, sign flips"
        said = (
            f"{label}: {words(mine[0])['accuracy']} correct on average over {people} (chance {chance}{sure})"
        )
    else:
        over = f"{len(mine)} comparisons and {people}"
        said = f"{means[lead]:.1f} % correct on average over {over} (chance {chance})"
    others = [mean for name, mean in means.items() if name != lead]
    return f"{named(group.study['methods'], lead)}, {said}{other_words(others)}"
