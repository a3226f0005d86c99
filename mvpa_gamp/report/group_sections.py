"""Sections of a group's page behind its answers: accuracy, prevalence, differences, participants, methods."""

from collections.abc import Mapping, Sequence
from typing import Any

from mvpa_gamp.methods.references import ZINIEL_2015
from mvpa_gamp.report.group_results import Group
from mvpa_gamp.report.group_words import (
    ACCURACY,
    ACCURACY_CAPTION,
    ACCURACY_TABLES,
    BOUND,
    CHANCE_CAPTION,
    PREVALENCE,
    STUDENT_CAPTION,
    TESTS_CAPTION,
    difference_words,
    methods_text,
    significance_caption,
    words,
)
from mvpa_gamp.report.markup import (
    cell,
    details,
    figure,
    folded,
    headings,
    html_cell,
    paragraph,
    section,
    swatch,
    table,
    text,
)
from mvpa_gamp.report.methods_text import HAUFE
from mvpa_gamp.report.style import colour_of
from mvpa_gamp.results.files import MISSING, number, read_tsv
from mvpa_gamp.results.names import ResultsFolder

DOTS = (
    "Each dot is a participant, the mark beside the dots their mean with its standard error; the dashed line "
    "is chance."
)
_OPEN = 12  # lines of a table that is open
_BESIDE = 12  # lines of a figure that has its caption beside it
_ALLEFELD = (
    "Allefeld C, Görgen K, Haynes JD (2016). Valid population inference for information-based imaging: "
    "from the second-level t-test to prevalence inference. NeuroImage 141, 378–392. "
    "doi:10.1016/j.neuroimage.2016.07.040"
)
_INCE = (
    "Ince RAA, Paton AT, Kay JW, Schyns PG (2021). Bayesian inference of population prevalence. eLife 10, "
    "e62461. doi:10.7554/eLife.62461"
)
_NICHOLS = (
    "Nichols TE, Holmes AP (2002). Nonparametric permutation tests for functional neuroimaging: a primer "
    "with examples. Human Brain Mapping 15, 1–25. doi:10.1002/hbm.1058"
)
_HOLM = (
    "Holm S (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal of "
    "Statistics 6, 65–70."
)
_RUN_TEST = (
    "Participants without permutation results were tested by a sign test whose units are held-out "
    "runs: under chance a run's balanced accuracy is above one half in at most half of the runs. "
    "Volumes of a run are correlated and are not counted individually. Folds share training runs, so that "
    "their outcomes are correlated, by 1 / (runs - 1) between two runs if there is no signal; the p-value is "
    "the chance of as many runs above one half under that correlation. It needs at least seven runs to reach "
    "0.05. A permutation test (--permutations at the participant level) assumes less and has more power."
)
_PERMUTATION = (
    "Participants with permutation results were tested by permuting labels within runs and repeating the "
    "whole cross-validation. "
    "The minimum statistic (Allefeld et al., 2016) gives the largest prevalence that the data reject: in "
    "more than that share of the population decoding is above chance."
)
_BAYES = (
    "The prevalence is the share of the population in which this experiment would find above-chance "
    "decoding (Ince et al., 2021): participants are assumed to be a random sample of it, with a uniform "
    "prior and a test of sensitivity 1, which makes it a lower bound. A mean accuracy above chance is weaker "
    "evidence: it can be due to a single participant."
)


_PAIRED = (
    "Mean difference of balanced accuracies in percentage points with its 95 % interval, over participants "
    "who have both; two-sided p by flipping the signs of the differences, in brackets after Holm's "
    "correction over the family: all pairs of methods on all comparisons, all pairs of methods on the "
    "average, or all pairs of comparisons by one method."
)


def accuracy_section(group: Group) -> str:
    """Every participant as a dot, beside the table."""
    best = max(group.summary, key=lambda row: number(row["accuracy_percent"]))
    method = group.study["methods"][best["method"]]
    said = f"Highest: {best['comparison']} by {method}, {words(best)['accuracy']}."
    picture = _accuracy_picture(group.folder, len(group.summary) <= _BESIDE)
    tables = _accuracy_table(group.study, group.summary), student_table(group.study, group.summary)
    few = len(group.summary) <= _OPEN
    return folded("group", "Accuracy of every method", said, picture, *tables, unfolded=few)


def prevalence_section(group: Group) -> str:
    """How common above-chance decoding is."""
    said = f"Test of each participant: {group.study['test']}."
    parts = _prevalence_parts(group.study, group.summary)
    title = "How common is above-chance decoding?"
    return folded("prevalence", title, said, *parts, unfolded=group.unfolded)


def participants_section(group: Group) -> str:
    """Links to the participants' pages, and their numbers."""
    return section(
        "participants",
        "Participants",
        _links(group.study),
        participant_table(group.study, group.accuracy, group.study["test"]),
    )


def references_section(group: Group) -> str:
    """The works behind the classifiers and the statistics."""
    works = "".join(f"<li>{text(work)}</li>" for work in group_references(group))
    listed = f'<ol class="references" data-copy="Copy the references">{works}</ol>'
    return folded("references", "References", "", listed)


def group_references(group: Group) -> list[str]:
    """The works that the page and its methods text name."""
    described = [method["reference"] for method in group.study.get("described", ())]
    permuted = any(row["minimum_p_value"] != MISSING for row in group.summary)
    tested = any(each.get("of") == "SignFlip" for each in group.study["maps"])
    bound, maps = [_ALLEFELD] * permuted, [HAUFE, _NICHOLS] * tested
    return list(dict.fromkeys([ZINIEL_2015, *described, _INCE, *bound, *maps, _HOLM]))


def differences_section(group: Group) -> str:
    """Paired differences between methods and comparisons."""
    said = "Paired differences over participants."
    title = "Differences between methods and comparisons"
    return folded("differences", title, said, *_difference_parts(group.folder, group.study))


def methods_section(group: Group) -> str:
    """The paragraph for a paper."""
    said = paragraph(methods_text(group.study, group.summary, group.designs))
    prose = f'<div class="prose" data-copy="Copy the text">{said}</div>'
    title = "Methods text, ready for a paper"
    return folded("methods", title, "Written from the settings of this study.", prose)


def _accuracy_table(study: Mapping[str, Any], rows: Sequence[dict[str, str]]) -> str:
    """Mean and standard error over participants."""
    body = [line(study, row, list(ACCURACY), {"accuracy": row["accuracy_percent"]}) for row in rows]
    caption = text(f"{ACCURACY_CAPTION} {TESTS_CAPTION} {CHANCE_CAPTION}")
    return table(
        [headings(("Comparison", "Method", *ACCURACY.values()), 2)], body, caption, "sortable compact"
    )


def student_table(study: Mapping[str, Any], rows: Sequence[dict[str, str]]) -> str:
    """T-tests, folded: beside sign flips in one line two p-values would have to be told apart."""
    names = ("balanced", "student")
    body = [line(study, row, names, {}) for row in rows]
    head = headings(("Comparison", "Method", *(ACCURACY_TABLES[name] for name in names)), 2)
    return details(
        "t-tests, which assume normally distributed accuracies", table([head], body, text(STUDENT_CAPTION))
    )


def line(study: Mapping[str, Any], row: dict[str, str], columns: Sequence[str], exact: dict[str, str]) -> str:
    """Comparison, method and what is said about them; ``exact`` are unrounded values by column."""
    said = words(row)
    label = study["methods"][row["method"]]
    names = cell(row["comparison"], "name") + _method_cell(row["method"], label)
    return names + "".join(cell(said[name], value=exact.get(name)) for name in columns)


def _method_cell(method: str, label: str) -> str:
    return html_cell(f"{swatch(colour_of(method))}<span>{text(label)}</span>", "name", label)


def _accuracy_picture(folder: ResultsFolder, few: bool) -> str:
    """All participants; beside a small figure its caption."""
    caption = text(DOTS)
    kind = "beside" if few else "wide"
    return figure(folder.figure("group_accuracy.svg"), caption, "Accuracy of participants", kind)


def _prevalence_parts(study: Mapping[str, Any], rows: Sequence[dict[str, str]]) -> list[str]:
    """What the prevalence means, and its table."""
    permuted = any(row["minimum_p_value"] != MISSING for row in rows)
    columns = PREVALENCE | (BOUND if permuted else {})
    tests = (_PERMUTATION,) * permuted + (_RUN_TEST,) * (study["test"] != "permutation")
    body = [line(study, row, list(columns), {"prevalence": row["prevalence"]}) for row in rows]
    caption = text(significance_caption(study["alpha"], study["test"]))
    return [
        *(paragraph(each) for each in tests),
        paragraph(_BAYES),
        table([headings(("Comparison", "Method", *columns.values()), 2)], body, caption),
    ]


def _difference_parts(folder: ResultsFolder, study: Mapping[str, Any]) -> list[str]:
    """Paired differences over participants, folded where they are many."""
    path = folder.group_table("differences")
    rows = read_tsv(path) if path.is_file() else []  # folders of earlier versions have none
    if not rows:
        return [paragraph("There is one method and one comparison, or one participant: nothing to compare.")]
    out = []
    for between, words_of in (("methods", study["methods"]), ("comparisons", study["comparisons"])):
        mine = [row for row in rows if row["between"] == between]
        if mine:
            body = [_difference_line(study, row, words_of) for row in mine]
            head = headings(("Within", "First", "Second", "First - second", "p (Holm)", "t-test"), 3)
            out.append(
                details(f"Differences between {between} ({len(mine)})", table([head], body, text(_PAIRED)))
            )
    return out


def _difference_line(study: Mapping[str, Any], row: dict[str, str], names: Mapping[str, str]) -> str:
    said = difference_words(row)
    where = {**study["comparisons"], **study["methods"]}.get(row["within"], row["within"])
    named = "".join(cell(each, "name") for each in (where, names[row["first"]], names[row["second"]]))
    exact = cell(said["difference"], value=row["difference_percent"])
    return named + exact + cell(said["p"]) + cell(said["student"])


def _links(study: Mapping[str, Any]) -> str:
    """Where each participant's own page is."""
    pages = (
        f'<a href="sub-{text(subject)}/index.html">sub-{text(subject)}</a>' for subject in study["subjects"]
    )
    return f"<p>Pages of the participants: {', '.join(pages)}.</p>"


def participant_table(study: Mapping[str, Any], rows: Sequence[dict[str, str]], test: str) -> str:
    """Every participant's accuracy and test."""
    head = ("Participant", "Comparison", "Method", "Accuracy", "runs above chance", "p")
    top = headings(head, 3)
    body = [
        cell(f"sub-{row['subject']}", "name")
        + cell(row["comparison"], "name")
        + cell(study["methods"][row["method"]], "name")
        + cell(f"{number(row['accuracy_percent']):.1f} %", value=row["accuracy_percent"])
        + cell(f"{row['runs_above_chance']} of {row['runs']}")
        + cell("–" if row["p_value"] == "n/a" else f"{number(row['p_value']):.2g}")
        for row in rows
    ]
    caption = text(f"p: {test}.")
    return details("Accuracy and test of every participant", table([top], body, caption))
