"""Facts in words: an answer in one sentence, and question by question as the box of a page has it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mvpa_gamp.methods import BUDGET, METHODS
from mvpa_gamp.report.facts import ENOUGH, Confusion, Facts, Place, Score, Selected, Stability
from mvpa_gamp.report.words import (
    ALPHA,
    NONE,
    Words,
    chance_text,
    compared_with,
    p_words,
    place_words,
    significant,
    span,
    voxels_text,
)
from mvpa_gamp.results.names import ALL_CLASSES

_ROUNDING = 1e-6  # of tables


@dataclass(frozen=True)
class Entry:
    """A question, its answer in a few words, and the lines of the note below it.

    ``counts`` are further numbers, each with its meaning.
    """

    question: str
    said: str
    notes: Sequence[str] = ()
    counts: Sequence[tuple[str, str]] = ()


def sentence(facts: Facts) -> str:
    """The answer in one sentence, without the comparison's name."""
    return f"{correct(facts.score)} ({_sure(facts)}){_which(facts)}."


def correct(score: Score) -> str:
    """How much is right."""
    if score.name == "correct":
        return f"{score.mean:.1f} % correct"
    return f"{score.mean:.1f} % {score.name}" if score.percent else f"{score.name} {score.mean:.3f}"


def class_correct(score: Score) -> str:
    """The same of all classes together, whose score has its name before it."""
    if score.name == "correct" or not score.percent:
        return correct(score)
    return f"{score.name} {score.mean:.1f} %"


def chance_of(score: Score) -> str:
    """The level of chance, where the score has one."""
    if math.isnan(score.chance):
        return "unknown"
    return f"{chance_text(score.chance)} %" if score.percent else f"{score.chance:.2g}"


def _sure(facts: Facts) -> str:
    chance, score = f"chance {chance_of(facts.score)}", facts.score
    if facts.test is not None:
        return f"{chance}, {p_words(facts.test.p)}, {compared_with([facts.test.compared])}"
    if math.isnan(score.se) or facts.trained_on:
        return f"{chance}, not tested"
    return f"{chance}, standard error {score.se:.1f} over {score.over.replace('held-out ', '')}, not tested"


def _which(facts: Facts) -> str:
    """Which voxels a comparison needs, and where they are."""
    chosen, stable, w = facts.selected, facts.stability, facts.w
    if facts.trained_on or chosen is None:
        return ""
    if chosen.none:
        return f"; no single {w.voxel} was selected (too few samples, or too many redundant {w.voxels})"
    if chosen.every:
        return f"; all {w.voxels} are used, none selected"
    if math.isnan(chosen.per_fold):
        return f"; {w.count(chosen.voxels)} in the fit to all data{_clusters(facts)}"
    shared = "" if stable is None or math.isnan(stable.shared) else (
        f", two folds share {stable.shared:.0f} % of them (chance {significant(stable.by_chance)} %)"
    )  # fmt: skip
    return f"; {voxels_text(chosen.per_fold)} {w.voxels} per fold{shared}{_clusters(facts)}"


def _clusters(facts: Facts) -> str:
    if facts.where != "clusters" or not facts.places:
        return ""
    clusters = "largest clusters at" if len(facts.places) > 1 else "at"
    return f"; {clusters} {', '.join(map(place_of, facts.places))} mm"


def place_of(place: Place) -> str:
    """Coordinates, and the region where one is known."""
    return f"{place_words(place.at)} ({place.region})" if place.region else place_words(place.at)


def entries(facts: Facts, linked: bool = True, all_tested: bool = False) -> list[Entry]:
    """The facts one by one, each with what it has to be compared with.

    ``all_tested``: there is a test of all classes together, if none of this.
    """
    of = f"classifier of {facts.trained_on}"
    classifier = [*_selected(facts), *_stable(facts), *_where(facts)]
    if facts.trained_on and facts.selected is not None:
        classifier = [Entry(each.question, each.said, [*each.notes, of], each.counts) for each in classifier]
    return [
        _accuracy(facts),
        _tested(facts, linked, all_tested),
        *_alone(facts),
        *confusion_entries(facts.confusion),
        *classifier,
    ]


def _accuracy(facts: Facts) -> Entry:
    score = facts.score
    if facts.name != ALL_CLASSES:
        return accuracy_entry(score, correct(score), chance_of(score))
    chance = f"{chance_of(score)} for {len(facts.label.split(', '))} classes"
    return accuracy_entry(score, class_correct(score), chance)


def accuracy_entry(score: Score, said: str, chance: str, *more: str) -> Entry:
    """How accurate, over what the mean was taken, and chance."""
    se = f"{score.se:.1f}" if score.percent else f"{score.se:.3f}"
    spread = "" if math.isnan(score.se) else f" ± {se} (standard error)"
    return Entry("How accurate", said, [f"chance {chance}", f"mean over {score.over}{spread}", *more])


def _tested(facts: Facts, linked: bool, all_tested: bool) -> Entry:
    """How sure, by permutations: p, their number and the smallest p-value that they allow."""
    test = facts.test
    if test is None:
        return _untested(linked, all_tested)
    of = "" if test.compared[1] else f" of {test.labels}"
    said = compared_with([test.compared], test.labels) + of
    notes = [said, f"smallest possible p: {test.least:.2g}"]
    if facts.tests > 1 and not math.isnan(test.holm):
        family = "the crosses" if facts.trained_on else f"{facts.tests} comparisons"
        notes.append(f"{test.holm:.2g} after Holm's correction for {family}")
    return Entry("How sure", p_words(test.p), notes)


def _untested(linked: bool, all_tested: bool) -> Entry:
    """What to do where nothing was permuted."""
    if all_tested:
        return Entry("How sure", "not tested", ["the test above is of all classes together"])
    asked = f"permutation_test({ENOUGH}), given to generate_report"
    how = f"--permutations {ENOUGH} --resume" if linked else asked
    return Entry("How sure", "not tested", ["the standard error alone is not a test", f"to test: {how}"])


def _alone(facts: Facts) -> list[Entry]:
    """What a cross has to be compared with."""
    if not facts.alone:
        return []
    (tested, accuracy), *rest = facts.alone
    notes = [f"{tested}, trained and tested within it", *(f"{label} {value:.1f} %" for label, value in rest)]
    return [Entry("Without crossing", f"{accuracy:.1f} % correct", notes)]


def confusion_entries(found: Confusion | None) -> list[Entry]:
    """What is confused with what, in a line."""
    if found is None:
        return []
    (best, most), (least, fewest) = found.best, found.least
    recall = f"highest recall: {best} ({most:.0f} %), lowest: {least} ({fewest:.0f} %)"
    question = "What is confused"
    if not found.wrong:
        return [Entry(question, "nothing", [recall])]
    wrong = f"{found.wrong} of {found.of} {found.true} samples predicted as {found.predicted}"
    return [Entry(question, f"{found.true} taken for {found.predicted}", [wrong, recall])]


def _selected(facts: Facts) -> list[Entry]:
    """How many voxels a fold selects; then those of the fit to all data and those that passed a test."""
    found = facts.selected
    if found is None:
        return []
    is_budget = facts.method in METHODS and getattr(METHODS[facts.method], "selected_if", "") == BUDGET
    return [_selected_entry(found, facts.w.voxels, is_budget)]


def _selected_entry(found: Selected, voxels: str, is_budget: bool = False) -> Entry:
    question, of = f"Which {voxels}", f"of {found.total:,}"
    if found.none:
        why = "no pair of classes selects" if found.pairs else "see the explanation below"
        return Entry(question, "none selected", [of, why], found.tested)
    if found.every:
        notes = [] if found.pairs else [f"{found.total:,}", "this method selects none"]
        return Entry(question, "all", notes, found.tested)
    if found.pairs:
        by = f", by the fit to all data of at least one of {found.pairs} pairs"
        return Entry(question, f"{found.voxels:,} selected", [_share(found.voxels, found.total) + by])
    if math.isnan(found.per_fold):
        notes = [_share(found.voxels, found.total), "by the fit to all data"]
        return Entry(question, f"{found.voxels:,} selected", notes, found.tested)
    in_all = (f"{found.voxels:,}", "in the fit to all data, as in its weight and inclusion maps")
    notes = [f"{_share(found.per_fold, found.total)}, on average"]
    notes += ["a budget: those with the largest inclusion probabilities, as many as these sum to"] * is_budget
    said = f"{voxels_text(found.per_fold)} selected per fold"
    return Entry(question, said, notes, [in_all, *found.tested])


def _share(count: float, total: int) -> str:
    return f"{significant(100 * count / total)} % of {total:,}"


def _stable(facts: Facts) -> list[Entry]:
    if facts.stability is None:
        return []
    of_pairs = [f"mean over {facts.selected.pairs} pairs"] if facts.selected and facts.selected.pairs else []
    return [stability_entry(facts.stability, facts.w, *of_pairs)]


def stability_entry(found: Stability, w: Words, *more: str) -> Entry:
    """Consistency, what it is, and its level by chance."""
    if math.isnan(found.shared):
        return Entry("How stable", NONE, ["no selection whose folds could be compared", *more])
    by_chance = f"{significant(found.by_chance)} % by chance"
    if not math.isnan(found.permuted):
        by_chance += f", {found.permuted:.0f} % with permuted labels"
    notes = [f"share of selected {w.voxels} that two folds have in common", by_chance, *more]
    return Entry("How stable", f"{found.shared:.0f} % consistency", notes)


def _where(facts: Facts) -> list[Entry]:
    """The largest clusters of selected voxels, or where the pattern is strongest."""
    if not facts.places:
        if facts.name == ALL_CLASSES or (facts.trained_on and facts.selected is None):
            return []
        notes = [
            f"no clusters of selected {facts.w.voxels}",
            "the pattern shows where signals differ",
        ]
        return [Entry("Where", "see the maps", notes)]
    if facts.name == ALL_CLASSES:
        strongest, *others = map(class_place, facts.places)
        what = "largest pattern (x y z) of each class against the others, not tested"
        return [Entry("Where", strongest, [*others, what, f"space: {facts.space}"])]
    first, *rest = facts.places
    if facts.trained_on and facts.selected is None:
        what = f"peak of the pattern (x y z) of the classifier trained on {facts.trained_on}, not tested"
        return [Entry("Where", f"{place_words(first.at)} mm", [what])]
    then = [f"then {', '.join(map(place_of, rest))}"] if rest else []
    of = "largest clusters" if facts.where == "clusters" else "pattern (a description, not a test)"
    region = [first.region] if first.region else []
    peaks = f"peak{'s' * bool(rest)} (x y z) of the {of}"
    return [Entry("Where", f"{place_words(first.at)} mm", [*region, *then, peaks, f"space: {facts.space}"])]


def class_place(place: Place) -> str:
    """Where the pattern of a class is strongest, and whether it has more or less signal there."""
    return f"{place.of} {place_words(place.at)} mm ({'more' if place.higher else 'less'} signal)"


# ---- several comparisons -----------------------------------------------------------------------------------


def mean_sentence(found: Sequence[Facts]) -> str:
    """The mean of several comparisons, their range and chance."""
    accuracy, chance = [each.score.mean for each in found], sorted(each.score.chance for each in found)
    return (
        f"{np.mean(accuracy):.1f} % {found[0].score.name} on average over {len(found)} comparisons "
        f"({min(accuracy):.1f} to {max(accuracy):.1f} %; chance {span(map(chance_text, chance))} %)"
    )


def above_chance_sentence(found: Sequence[Facts]) -> str:
    """How many comparisons passed the test."""
    tests = [each.test for each in found if each.test is not None]
    if not tests:
        return "Not tested against permuted labels."
    passed, used = sum(test.holm <= ALPHA for test in tests), compared_with(test.compared for test in tests)
    least = min(test.floor for test in tests)
    if not passed and len(tests) * least > ALPHA:
        more = f"at least {math.ceil(len(tests) / ALPHA) - 1:,} permutations"
        few_labels = all(test.floor > 1 / (1 + test.compared[0]) + _ROUNDING for test in tests)
        return (
            f"Whether they are above chance cannot be decided: with {used} "
            f"no p-value of {len(tests)} comparisons can be at most {ALPHA} after Holm's correction. "
            f"Give {f'more {found[0].w.counted}s' if few_labels else more}."
        )
    return f"{passed} of {len(tests)} are above chance (p ≤ {ALPHA} after Holm's correction, {used})."


def selected_sentence(found: Sequence[Facts]) -> str:
    """How many voxels, and how stable."""
    w = found[0].w
    chose = [(each.selected, each.stability) for each in found
             if each.selected and each.stability and not math.isnan(each.stability.shared)]  # fmt: skip
    if not chose:
        return f"No single {w.voxels} were selected."
    mean = voxels_text(float(np.mean([selected.per_fold for selected, _ in chose])))
    shared = np.mean([stable.shared for _, stable in chose])
    chance = significant(float(np.mean([stable.by_chance for _, stable in chose])))
    some = "" if len(chose) == len(found) else (
        f" in the {len(chose)} comparisons with selected {w.voxels}"
    )  # fmt: skip
    return (
        f"{mean} {w.voxels} per fold on average{some}; two folds share {shared:.0f} % of them "
        f"(chance {chance} %)."
    )
