"""The last three lines of a run: the answer as the page gives it, where the page is, what to try next."""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from mvpa_gamp.methods import METHODS
from mvpa_gamp.report.answer_box import p_words
from mvpa_gamp.report.answers import PREFERRED, leading_columns, sentence
from mvpa_gamp.report.class_plots import chance_words, score_words
from mvpa_gamp.report.group_results import Group
from mvpa_gamp.report.group_words import words
from mvpa_gamp.report.inference_rows import ENOUGH
from mvpa_gamp.report.overview import answers, mean_sentence
from mvpa_gamp.report.permutation_words import compared_classes, compared_with
from mvpa_gamp.results.files import number
from mvpa_gamp.results.names import ALL_CLASSES
from mvpa_gamp.results.reader import Results
from mvpa_gamp.results.tables import AVERAGE, selects


def closing_lines(results: Results, page: Path) -> list[str]:
    """Three lines for the terminal."""
    many = len(results.classes.get("names", ())) > 2
    said = _of_classes(results) if many else _of_comparisons(results)
    return [f"Answer: {said}", f"Page: {page}", f"Next: {_next(results)}"]


def _of_classes(results: Results) -> str:
    """All classes together, as the page answers."""
    method, test = results.classes["method"], results.classes.get("permutation")
    sure = f", {p_words(test['pvalue'])}, {compared_with([compared_classes(test)])}" if test else ""
    rows = [row for row in results.table(results.subjects[0], "classes") if row["class"] == ALL_CLASSES]
    others = [100 * number(row["score"]) for row in rows if row["method"] != method]
    return (
        f"{_named(results.labels, method)}, {score_words(results)} for {len(results.classes['names'])} "
        f"classes (chance {chance_words(results)}{sure}){_others(others)}"
    )


def _of_comparisons(results: Results) -> str:
    """What the method that answers on the page says, in the words of the page."""
    found = [(task["label"], each) for subject in results.subjects
             for task, each in zip(results.tasks, answers(results, subject).values(), strict=True)
             if each is not None]  # fmt: skip
    if not found:
        return "none, because every method failed; the page gives the reasons."
    methods = list(dict.fromkeys(each.method for _, each in found))
    names = " or ".join(_named(results.labels, method) for method in methods)
    column = leading_columns(results)[1]
    others = [row[column] for row in results.rows
              if row["contrast"] == AVERAGE and row["method"] not in methods]  # fmt: skip
    label, first = found[0]
    said = f"{label}: {sentence(first, results.fold_word).rstrip('.')}"
    if len(found) > 1:
        said = mean_sentence([each for _, each in found])
    return f"{names}, {said}{_others(others)}"


def _others(percents: Iterable[float]) -> str:
    """From where to where the other methods are: they are no answer, so none of them is named."""
    known = sorted(f"{value:5.1f}" for value in percents if not math.isnan(value))
    span = " to ".join(dict.fromkeys((known[0].strip(), known[-1].strip()))) if known else ""
    return f"; other method{'s' * (len(known) > 1)}: {span} %" if known else ""


def _named(labels: Mapping[str, str], method: str) -> str:
    """A method as tables and as commands call it."""
    return f"{labels[method]} ({method})"


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
    return f"{_named(group.study['methods'], lead)}, {said}{_others(others)}"


def _next(results: Results) -> str:
    """What a reader of these results would ask for first."""
    if results.phantom:
        return "your own data: --bold FILE --labels FILE --mask FILE instead of --phantom"
    if PREFERRED[0] not in results.labels:
        methods = " ".join([*results.labels, PREFERRED[0]])
        return f"try the spatial prior: add --methods {methods} --resume"
    if not results.inference.get("permutations") and not results.classes:
        return f"is it better than chance? Add --permutations {ENOUGH} --resume to the command"
    row = next(r for r in results.rows if (r["contrast"], r["method"]) == (AVERAGE, PREFERRED[0]))
    if not selects(row):
        return "no voxel was selected: read the pattern maps, or use more samples (volumes instead of means)"
    if not results.inference.get("learning_curve"):
        return "would more runs help? Add --learning-curve --resume to the command"
    return "the page links the files at the top and has a methods text to copy"
