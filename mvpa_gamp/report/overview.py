"""What all comparisons come to: a sentence, a matrix of categories to click on, and a table to sort."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mvpa_gamp.report.accuracy_matrix import Pair, accuracy_matrix
from mvpa_gamp.report.answer_box import map_name, p_words
from mvpa_gamp.report.answer_facts import files_of
from mvpa_gamp.report.markup import cell, html_cell, section, swatched, table, text
from mvpa_gamp.report.page_answers import Answer, answer, facts, leading_columns
from mvpa_gamp.report.style import colour_of
from mvpa_gamp.report.words import chance_text, compared_with, significant, voxels_text
from mvpa_gamp.results.reader import Results

_ALPHA = 0.05
_ROUNDING = 1e-6  # of tables


def anchor(results: Results, subject: str, contrast: str) -> str:
    """Where a comparison is on the page."""
    return f"comparison-{contrast}" if len(results.subjects) == 1 else f"comparison-{subject}-{contrast}"


def overview_section(results: Results) -> str:
    """Nothing for a single comparison, whose answer comes first by itself."""
    if len(results.tasks) < 2:
        return ""
    return section("overview", "All comparisons", *(_of_subject(results, s) for s in results.subjects))


def _of_subject(results: Results, subject: str) -> str:
    found = answers(results, subject)
    who = f"<h3>sub-{text(subject)}</h3>" if len(results.subjects) > 1 else ""
    parts = [who, _headline(results, subject, found)]
    matrix = _matrix(results, subject, found)
    parts.append(f'<div class="side-by-side">{matrix}{_comparison_table(results, subject, found)}</div>')
    return "\n".join(parts)


def answers(results: Results, subject: str) -> dict[str, Answer | None]:
    """The answer of every comparison, by contrast."""
    clusters = results.table(subject, "clusters")
    return {task["contrast"]: answer(results, subject, task["contrast"], clusters) for task in results.tasks}


def _headline(results: Results, subject: str, answered: Mapping[str, Answer | None]) -> str:
    """All answers in three sentences, and the map of the first comparison."""
    found = [each for each in answered.values() if each is not None]
    if not found:
        return '<p class="headline">Every method failed on every comparison.</p>'
    methods = " or ".join(dict.fromkeys(results.labels[each.method] for each in found))
    score, rest = text(mean_sentence(found)).split(" on average", 1)
    said = f"<b>{score}</b> on average{rest}, by {text(methods)}. "
    maps = _map_names(results, subject, answered)
    return f'<div class="headline"><p>{said}{text(_tested(found))} {text(_selected(found))}</p>{maps}</div>'


def mean_sentence(found: Sequence[Answer]) -> str:
    """The mean of several comparisons, their range and chance."""
    accuracy = [each.accuracy for each in found]
    return (
        f"{np.mean(accuracy):.1f} % {found[0].measure} on average over {len(found)} comparisons "
        f"({min(accuracy):.1f} to {max(accuracy):.1f} %; chance {_range([e.chance for e in found])} %)"
    )


def _map_names(results: Results, subject: str, answered: Mapping[str, Answer | None]) -> str:
    """Which file has the map, by the example of the first comparison that has one."""
    for task in results.tasks:
        found = answered[task["contrast"]]
        files = None if found is None else files_of(results, subject, task["contrast"], found)
        if files is not None and files.paths:
            meaning, path = next(iter(files.paths.items()))
            writes = "" if results.linked else " (to_bids(folder) writes it)"
            lead = f"Map of {task['label']}{writes}; every comparison below names its own: "
            return f'{map_name(path, files, lead)} <span class="said">({text(meaning)})</span>'
    return ""


def _range(values: Sequence[float]) -> str:
    low, high = chance_text(min(values)), chance_text(max(values))
    return low if low == high else f"{low} to {high}"


def _tested(found: Sequence[Answer]) -> str:
    """How many comparisons passed the test."""
    tested = [each for each in found if each.permutations]
    if not tested:
        return "Not tested against permuted labels."
    passed, used = sum(each.p_holm <= _ALPHA for each in tested), compared_with(e.compared for e in tested)
    least = min(each.least_p for each in tested)
    if not passed and len(tested) * least > _ALPHA:
        more = f"at least {math.ceil(len(tested) / _ALPHA) - 1:,} permutations"
        few_labels = all(each.least_p > 1 / (1 + each.permutations) + _ROUNDING for each in tested)
        return (
            f"Whether they are above chance cannot be decided: with {used} "
            f"no p-value of {len(tested)} comparisons can be at most {_ALPHA} after Holm's correction. "
            f"Give {'more runs' if few_labels else more}."
        )
    return f"{passed} of {len(tested)} are above chance (p ≤ {_ALPHA} after Holm's correction, {used})."


def _selected(found: Sequence[Answer]) -> str:
    """How many voxels, and how stable."""
    chose = [each for each in found if not math.isnan(each.shared)]
    if not chose:
        return "No single voxels were selected."
    voxels = voxels_text(float(np.mean([e.fold_voxels for e in chose])))
    shared = np.mean([e.shared for e in chose])
    chance = significant(float(np.mean([e.shared_by_chance for e in chose])))
    named = f"{voxels} voxels per fold on average" if len(chose) == len(found) else (
        f"{voxels} voxels per fold on average in the {len(chose)} comparisons with selected voxels"
    )  # fmt: skip
    return f"{named}; two folds share {shared:.0f} % of them (chance {chance} %)."


def _matrix(results: Results, subject: str, found: Mapping[str, Answer | None]) -> str:
    """Accuracy of every pair of categories; a click leads to the comparison."""
    pairs = []
    for task in results.tasks:
        names, mine = (task["positive"], task["negative"]), found[task["contrast"]]
        facts_of = () if mine is None else (mine.accuracy, mine.chance, mine.measure)
        pairs.append(Pair(*names, anchor(results, subject, task["contrast"]), *facts_of))
    return accuracy_matrix(pairs)


def _comparison_table(results: Results, subject: str, found: Mapping[str, Answer | None]) -> str:
    """One line per comparison: what the answering method says, then the accuracy of the other methods."""
    tested = any(each is not None and each.permutations for each in found.values())
    lead = next((each.method for each in found.values() if each is not None), next(iter(results.labels)))
    others = [method for method in results.labels if method != lead]
    facts_of_lead = [*(["p"] if tested else []), "Voxels per fold", "Consistency (%)", "Largest cluster (mm)"]
    head = cell("Comparison", "name", header=True) + _method_heading(results, lead)
    head += "".join(cell(name, header=True) for name in facts_of_lead)
    head += "".join(_method_heading(results, method) for method in others)
    body = [
        _comparison_row(results, subject, task, found[task["contrast"]], (lead, *others), tested)
        for task in results.tasks
    ]
    measure = leading_columns(results)[0].replace("correct", "accuracy").capitalize()
    caption = text(
        f"{measure} (%) of every method on held-out {results.fold_word}s; a click on a heading sorts. For "
        f"{results.labels[lead]}, the answering method (chosen by a fixed order, not by its results), "
        f"also: {'p, ' if tested else ''}voxels selected per fold, on average, consistency (share of "
        "selected voxels that two folds have in common), peak of the largest cluster (x y z)."
    )
    return table([head], body, caption, "sortable")


def _method_heading(results: Results, method: str) -> str:
    return f"<th>{swatched(colour_of(method), results.labels[method])}</th>"


def _comparison_row(
    results: Results, subject: str, task: Mapping[str, Any], found: Answer | None, methods: Sequence[str],
    tested: bool,
) -> str:  # fmt: skip
    """The comparison, the first method's accuracy and what else it says, the other methods' accuracies."""
    contrast = task["contrast"]
    link = f'<a href="#{text(anchor(results, subject, contrast))}">{text(task["label"])}</a>'
    lead, *others = (_accuracy_cell(results, subject, contrast, method) for method in methods)
    return html_cell(link, "name", task["label"]) + lead + _answer_cells(found, tested) + "".join(others)


def _accuracy_cell(results: Results, subject: str, contrast: str, method: str) -> str:
    row = results.row(subject, contrast, method)
    good = row["status"] == "ok"
    exact = row[leading_columns(results)[1]] if good else -1
    shown = f"{exact:.1f}" if good else "failed"
    title = facts(results, row) if good else row["status"]
    return f'<td title="{text(title)}"><data value="{exact:.6g}">{shown}</data></td>'


def _answer_cells(found: Answer | None, tested: bool) -> str:
    """P-value, voxels, consistency and where, as the answer says."""
    if found is None:
        return cell("–") * (3 + tested)
    shared = "–" if math.isnan(found.shared) else f"{found.shared:.0f}"
    line = cell(voxels_text(found.fold_voxels), value=f"{found.fold_voxels:.6g}")
    line += cell(shared, value=-1 if shared == "–" else found.shared)
    line += cell(found.peaks[0] if found.peaks else "–", "where")
    if not tested:
        return line
    shown = p_words(found.p).removeprefix("p = ") if found.permutations else "–"
    return cell(shown, value=f"{found.p:.6g}") + line
