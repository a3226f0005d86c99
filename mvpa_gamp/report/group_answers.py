"""A group's facts in words: sentences, boxes, columns of its tables, and the last lines on the terminal."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from mvpa_gamp.methods import METHODS
from mvpa_gamp.report.answers import Entry, accuracy_entry, confusion_entries, correct, stability_entry
from mvpa_gamp.report.facts import ENOUGH
from mvpa_gamp.report.group_facts import Group, GroupFacts, Peak, Row, is_classes
from mvpa_gamp.report.terminal import named, other_words
from mvpa_gamp.report.words import NONE, chance_text, decimals, p_words, place_words, significant, span
from mvpa_gamp.results.files import number

ACCURACY = {
    "participants": "Participants",
    "accuracy": "Accuracy",
    "balanced": "balanced accuracy, 95 % interval",
    "flip": "p (sign flips)",
    "range": "lowest to highest",
    "chance": "by chance",
}
PREVALENCE = {
    "significant": "significant",
    "prevalence": "Prevalence",
    "interval": "95 % interval",
    "majority": "P(more than half)",
}
BOUND = {
    "bound": "smaller prevalences rejected",
    "minimum": "p (no participant above chance)",
}  # where every participant has a permutation test
STUDENT = {"balanced": ACCURACY["balanced"], "student": "t-test"}
DESIGN = {
    **{name: ACCURACY[name] for name in ("participants", "accuracy", "chance", "balanced", "flip")},
    "significant": "significant",
}
DESIGN_CAPTION = (
    "Balanced accuracy, the mean over classes of the share correct, was tested across participants "
    "against 1 / number of classes, one-sided: p by flipping signs of participants; in brackets after Holm's "
    "correction over the crosses of a method. Significant: participants by their own permutation tests, of "
    "those who have one. A cross whose comparisons share a condition is not tested. By chance: always "
    "predicting the most frequent class or side."
)
ACCURACY_CAPTION = (
    "Accuracy: mean over participants of the mean over held-out runs ± its standard error across "
    "participants."
)
TESTS_CAPTION = (
    "Balanced accuracy (the mean of the accuracies within both categories, chance 50 %) was tested across "
    "participants, one-sided: p by flipping signs of participants (equal means ordered by the mean area "
    "under the ROC curve); in brackets after Holm's correction over the comparisons of a method."
)
_SPOKEN = ("participants", "accuracy", "flip", "significant", "prevalence", "interval")  # in the terminal
_UNTESTED = "too few participants for a test across them"
_UNTESTED_CROSS = (
    "its comparisons share a condition, or there are too few participants for a test across them"
)


# ---- answers -----------------------------------------------------------------------------------------------


def sentence(facts: GroupFacts, group: Group) -> str:
    """The answer in one sentence, without the name of what is answered."""
    said = score_sentence(facts, group)
    if is_classes(facts):
        stable, where = entries(facts, group)[-2:]
        return f"{said}; {stable.said}; strongest for {where.said}."
    if facts.trained_on:
        stable, where = entries(facts, group)[-2:]
        return f"{said}. The classifier trained on {facts.trained_on}: {stable.said}; {where.said}."
    shared = "" if math.isnan(facts.stability.shared) else (
        f"; two folds share {facts.stability.shared:.0f} % of the selected {facts.w.voxels} "
        f"(chance {significant(facts.stability.by_chance)} %)"
    )  # fmt: skip
    return f"{said}{shared}{_strongest(facts)}."


def score_sentence(facts: GroupFacts, group: Group) -> str:
    """How accurate, how sure and how common, in a line."""
    said = words(facts.row)
    tested = f"{p_words(facts.p)}, sign flips" if facts.tested else "not tested across participants"
    common = (
        f"; above chance in {said['significant']} (p ≤ {group.study['alpha']:g}, {facts.row['test']})"
        if int(facts.row["tested"])
        else ""
    )
    holm = "" if math.isnan(facts.holm) else f", {_holm(facts)}"
    return (
        f"{said['accuracy']} correct on average over {facts.score.over} ({facts.low:.1f} % to "
        f"{facts.high:.1f} %; chance {said['chance']}, {tested}{holm}){common}"
    )


def _holm(facts: GroupFacts) -> str:
    """The p-value after Holm's correction, where several comparisons were tested."""
    return f"{facts.holm:.2g} after Holm's correction"


def _strongest(facts: GroupFacts) -> str:
    """Where the pattern is largest, in the sentence of a comparison."""
    if facts.peak.at is None:
        return ""
    at, w = f"{place_words(facts.peak.at)} mm (higher for {facts.higher_for})", facts.w
    if math.isnan(facts.peak.p):
        return f"; location not tested, mean pattern strongest at {at}"
    if not facts.peak.voxels:
        return f"; no {w.voxel} has a family-wise p ≤ 0.05, mean pattern strongest at {at}"
    return f"; largest |t| of the pattern (family-wise p = {facts.peak.p:.2g}) at {at}"


def entries(facts: GroupFacts, group: Group) -> list[Entry]:
    """The facts one by one, each with what it has to be compared with."""
    from_to = f"participants from {facts.low:.1f} % to {facts.high:.1f} %"
    stable, where = _stable(facts, group), _class_places(facts) if is_classes(facts) else _place(facts)
    if facts.trained_on:
        of = f"of the classifier trained on {facts.trained_on}"
        stable, where = (Entry(each.question, each.said, [*each.notes, of]) for each in (stable, where))
    return [
        accuracy_entry(facts.score, correct(facts.score), f"{chance_text(facts.score.chance)} %", from_to),
        _sure(facts),
        _common(facts, group),
        *_alone(facts),
        *confusion_entries(facts.confusion),
        stable,
        where,
    ]


def _sure(facts: GroupFacts) -> Entry:
    """The sign-flip test over participants."""
    if not facts.tested:
        why = _UNTESTED_CROSS if facts.trained_on else _UNTESTED
        return Entry("How sure", "not tested", [why])
    notes = [f"sign flips of {facts.score.over}", f"smallest possible p: {facts.least:.2g}"]
    return Entry("How sure", p_words(facts.p), notes if math.isnan(facts.holm) else [*notes, _holm(facts)])


def _common(facts: GroupFacts, group: Group) -> Entry:
    """In how many participants decoding is above chance."""
    row, said = facts.row, words(facts.row)
    if not int(row["tested"]):
        note = "participants have no tests of their own: --permutations at the participant level"
        return Entry("How common", "not tested", [note])
    notes = [f"above chance by themselves (p ≤ {group.study['alpha']:g}, {row['test']})"]
    if said["prevalence"] != NONE:
        notes.append(f"prevalence {said['prevalence']}, 95 % interval {said['interval']}")
    return Entry("How common", f"{said['significant']} participants", notes)


def _alone(facts: GroupFacts) -> list[Entry]:
    """What a cross has to be compared with."""
    if not facts.alone:
        return []
    (tested, row), *rest = facts.alone
    notes = [f"{tested}, trained and tested within it"]
    notes += [f"{label} {words(each)['accuracy']}" for label, each in rest]
    return [Entry("Without crossing", f"{number(row['accuracy_percent']):.1f} % correct", notes)]


def _stable(facts: GroupFacts, group: Group) -> Entry:
    """Consistency of folds inside participants, and how many participants select the same voxel."""
    n, most = len(group.study["subjects"]), facts.peak.most
    over = "mean over participants" + " and pairs of classes" * is_classes(facts)
    same = [] if math.isnan(most) else [
        f"no {facts.w.voxel} is selected by more than {round(most * n)} of {n} participants"
    ]  # fmt: skip
    return stability_entry(facts.stability, facts.w, over, *same)


def _place(facts: GroupFacts) -> Entry:
    """Where the pattern of participants is strongest, for which category, and how many voxels passed."""
    peak, w = facts.peak, facts.w
    if peak.at is None:
        return Entry("Where", "no maps of the group", ["the notes at the top of the page give the reason"])
    at, space = f"{place_words(peak.at)} mm", [f"space: {facts.space}"] if facts.space else []
    higher = f"signal higher for {facts.higher_for}"
    largest = [f"the mean pattern is largest at {at} (x y z; {higher}), a description"]
    if math.isnan(peak.p):
        return Entry("Where", "not tested", largest + space)
    if not peak.voxels:
        smallest = f"smallest family-wise p: {peak.p:.2g}"
        return Entry("Where", f"no {w.voxel} at p ≤ 0.05", [smallest, *largest, *space])
    what = f"largest |t| of the patterns of participants (x y z), {higher}"
    notes = [what, f"family-wise p = {peak.p:.2g}"]
    return Entry("Where", at, [*notes, f"{w.count(peak.voxels)} with p ≤ 0.05", *space])


def _class_places(facts: GroupFacts) -> Entry:
    """Where the pattern of each class is strongest over participants, those that passed the test first."""
    known = {name: peak for name, (_, peak) in facts.classes.items() if peak.at is not None}
    if not known:
        return Entry("Where", "no maps of the group", ["not all participants have maps in a common space"])
    first, *others = (_class_place(name, peak) for name, peak in known.items())
    counts = {name: facts.w.count(peak.voxels) for name, peak in known.items() if peak.voxels}
    listed = ", ".join(f"{name} {count}" for name, count in counts.items())
    passed = listed or f"no {facts.w.voxel} of any class"
    test = f"family-wise p ≤ 0.05, not corrected over classes: {passed}"
    what = "largest pattern (x y z) of each class against the others"
    space = [f"space: {facts.space}"] if facts.space else []
    return Entry("Where", first, [*others, what, test, *space])


def _class_place(name: str, peak: Peak) -> str:
    return f"{name} {place_words(peak.at or ())} mm ({'more' if peak.higher else 'less'} signal)"


# ---- columns of the tables ---------------------------------------------------------------------------------


def words(row: Row) -> dict[str, str]:
    """What is said about a line of group_summary.tsv or group_designs.tsv, by column."""
    low, high = number(row["prevalence_low"]), number(row["prevalence_high"])
    spread = number(row["accuracy_se_percent"])
    percents = {name: f"{number(row[f'{name}_percent']):.1f} %" for name in ("accuracy", "lowest", "highest")}
    return percents | {
        "participants": row["participants"],
        "chance": f"{chance_text(number(row['chance_percent']))} %",
        "range": f"{number(row['lowest_percent']):.1f} to {percents['highest']}",
        "balanced": _interval(row),
        "flip": _p_values(row, "signflip_p_value", "signflip_p_holm"),
        "student": _student(row),
        "minimum": _p_values(row, "minimum_p_value", "minimum_p_holm"),
        "accuracy": percents["accuracy"] + ("" if math.isnan(spread) else f" ± {spread:.1f}"),
        "significant": f"{row['significant']} of {row['tested']}",
        "prevalence": decimals(row["prevalence"], 2),
        "interval": NONE if math.isnan(low) else f"{low:.2f} to {high:.2f}",
        "majority": decimals(row["majority_probability"], 2),
        "bound": decimals(row["minimum_bound"], 2),
    }


def _interval(row: Row) -> str:
    """Balanced accuracy and its 95 % interval."""
    mean, low, high = (number(row.get(f"balanced{end}_percent", "n/a")) for end in ("", "_low", "_high"))
    if math.isnan(mean):
        return NONE
    return f"{mean:.1f} %" + ("" if math.isnan(low) else f" ({low:.1f} to {high:.1f})")


def _p_values(row: Row, single: str, corrected: str) -> str:
    """A p-value, and in brackets after the correction where there is more than one comparison."""
    p, holm = number(row.get(single, "n/a")), number(row.get(corrected, "n/a"))
    if math.isnan(p):
        return NONE
    many = number(row.get("comparisons_tested", "1")) > 1
    return f"{p:.2g}" + (f" ({holm:.2g})" if many else "")


def _student(row: Row) -> str:
    """T value, degrees of freedom and p."""
    t = number(row.get("t_value", "n/a"))
    if math.isnan(t):
        return NONE
    return f"t({int(row['participants']) - 1}) = {t:.2f}, p = {_p_values(row, 't_p_value', 't_p_holm')}"


def difference_words(row: Row) -> dict[str, str]:
    """What is said about a line of group_differences.tsv, by column."""
    mean, low, high = (number(row[name]) for name in ("difference_percent", "low_percent", "high_percent"))
    p, holm = number(row["signflip_p_value"]), number(row["signflip_p_holm"])
    return {
        "difference": f"{mean:+.1f} ({low:+.1f} to {high:+.1f})",
        "p": f"{p:.2g} ({holm:.2g}, {row['tests_in_family']} tests)",
        "student": f"t({int(row['participants']) - 1}) = {number(row['t_value']):.2f}, "
        f"p = {number(row['t_p_value']):.2g}",
    }


def significance_caption(alpha: float, test: str) -> str:
    """What is counted as significant; ``test`` is the name of the test of each participant."""
    return (
        f"Significant: participants whose test ({test}) has p ≤ {alpha:g}, of those who can reach it. "
        "Prevalence: share of the population in which this experiment would find above-chance decoding, most "
        "probable value and 95 % highest-density interval."
    )


# ---- the terminal ------------------------------------------------------------------------------------------


def group_tables(group: Group) -> list[str]:
    """The group's tables for the terminal: comparisons, then classes and crosses."""
    return [_lines(rows, group.labels) for rows in (group.summary, group.designs) if rows]


def _lines(rows: Sequence[Row], methods: Mapping[str, str]) -> str:
    headings = ACCURACY | PREVALENCE
    table = [["Comparison", "Method", *(headings[name] for name in _SPOKEN)]]
    for row in rows:
        said = words(row)
        table.append([row["comparison"], methods[row["method"]], *(said[name] for name in _SPOKEN)])
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return "\n".join(
        "  ".join(
            text.ljust(width) if place < 2 else text.rjust(width)
            for place, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in table
    )


def group_captions(group: Group) -> list[str]:
    """What the columns of these tables mean."""
    alpha, test = group.study["alpha"], group.study["test"]
    more = [DESIGN_CAPTION] if group.designs else []
    return [ACCURACY_CAPTION, TESTS_CAPTION, significance_caption(alpha, test), *more]


def group_closing(group: Group) -> list[str]:
    """The answer as the page gives it, where the page is, what to try next."""
    rows = group.summary
    able = [row for row in rows if row["method"] not in METHODS or METHODS[row["method"]].is_batched]
    untested = any(int(row["tested"]) < int(row["participants"]) for row in able)
    then = (
        f"test every participant: participant level with --permutations {ENOUGH} --resume, then group"
        if untested
        else "the page links each participant's page; check participants who differ from the others"
    )
    classes = [row for row in group.designs if row["design"] == "classes"]
    said = _answer(group, classes or rows)
    return [f"Answer: {said}", f"Page: {group.folder.page}", f"Next: {then}"]


def _answer(group: Group, rows: Sequence[Row]) -> str:
    """What the method that answers on the group's page says."""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    lead = group.answering if group.answering in methods else methods[0]
    mine = [row for row in rows if row["method"] == lead]
    means = {name: float(np.mean([number(row["accuracy_percent"]) for row in rows if row["method"] == name]))
             for name in methods}  # fmt: skip
    chance = span(words(row)["chance"] for row in mine)
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
    return f"{named(group.labels, lead)}, {said}{other_words(others)}"
