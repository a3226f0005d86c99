"""The page of a group: accuracies of all participants, prevalence, mean maps; a pure reader of the folder."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mvpa_gamp.imaging.atomic_files import write_atomic
from mvpa_gamp.imaging.map_names import entity
from mvpa_gamp.report.brain_figures import MapLine, map_figure
from mvpa_gamp.report.group_words import (
    ACCURACY,
    ACCURACY_CAPTION,
    BOUND,
    CHANCE_CAPTION,
    PREVALENCE,
    TESTS_CAPTION,
    difference_words,
    methods_text,
    significance_caption,
    words,
)
from mvpa_gamp.report.markup import cell, details, figure, headings, paragraph, section, table, text
from mvpa_gamp.report.page import banner, document, header
from mvpa_gamp.report.style import INK, QUIET, RULE, colour, look, marker, svg
from mvpa_gamp.results.files import number, read_json, read_tsv, write_text
from mvpa_gamp.results.names import ResultsFolder

_NARROWEST, _WIDEST = 5.6, 13.0  # inches
_UPRIGHT = 6  # comparisons whose names fit side by side

_REFERENCES = (
    "Allefeld C, Görgen K, Haynes JD (2016). Valid population inference for information-based imaging: "
    "from the second-level t-test to prevalence inference. NeuroImage 141, 378–392. "
    "doi:10.1016/j.neuroimage.2016.07.040",
    "Ince RAA, Paton AT, Kay JW, Schyns PG (2021). Bayesian inference of population prevalence. eLife 10, "
    "e62461. doi:10.7554/eLife.62461",
    "Nichols TE, Holmes AP (2002). Nonparametric permutation tests for functional neuroimaging: a primer "
    "with examples. Human Brain Mapping 15, 1–25. doi:10.1002/hbm.1058",
    "Holm S (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal of "
    "Statistics 6, 65–70.",
)
_RUN_TEST = (
    "Participants without permutation results were tested by a sign test whose units are held-out "
    "runs: under chance a run's balanced accuracy is above one half in at most half of the runs. "
    "Volumes of a run are correlated and are not counted one by one. Folds share training runs, so that "
    "their outcomes are correlated, by 1 / (runs - 1) between two runs if there is no signal; the p-value is "
    "the chance of as many runs above one half under that correlation. It needs at least seven runs to reach "
    "0.05. A permutation test (--permutations at the participant level) assumes less and finds more."
)
_PERMUTATION = (
    "Each participant was tested by permuting labels within runs and repeating the whole cross-validation. "
    "The minimum statistic (Allefeld et al., 2016) gives the largest prevalence that the data reject: in "
    "more than that share of the population decoding is above chance."
)
_BAYES = (
    "The prevalence is the share of the population in which this experiment would find above-chance "
    "decoding (Ince et al., 2021): participants are a random sample of it, a uniform prior, and a test "
    "that misses nobody (sensitivity 1), which makes it a lower bound. A mean accuracy above chance says "
    "less: a single participant can bring it about."
)


def build_group_page(root: Path) -> Path:
    """Draw the figures and write ``index.html`` of a folder of participants; returns the page's path."""
    folder = ResultsFolder(root)
    study = read_json(folder.group)
    summary, accuracy = (read_tsv(folder.group_table(name)) for name in ("summary", "accuracy"))
    write_atomic(folder.figure("group_accuracy.svg"), _accuracy_figure(study, summary, accuracy))
    for contrast in dict.fromkeys(each["contrast"] for each in study["maps"]):
        lines = _map_lines(folder, study, contrast)
        image = map_figure(lines, folder.group_background, folder.group_mask, None)
        write_atomic(folder.figure(f"group_contrast-{contrast}_maps.png"), image)
    return write_text(folder.page, _render(folder, study, summary, accuracy))


def _render(
    folder: ResultsFolder, study: Mapping[str, Any], summary: Sequence[dict[str, str]],
    accuracy: Sequence[dict[str, str]],
) -> str:  # fmt: skip
    """The HTML of the page."""
    facts = {
        "participants": len(study["subjects"]),
        "comparisons": len(study["comparisons"]),
        "methods": len(study["methods"]),
        "level of each test": study["alpha"],
    }
    links = {
        "group": "Table",
        "prevalence": "Prevalence",
        "differences": "Differences",
        "participants": "Participants",
        "maps": "Maps",
        "methods": "Methods text",
    }
    names = ", ".join(f"sub-{subject}" for subject in study["subjects"])
    banners = "".join(banner("Note", note) for note in study["notes"])
    top = header("Decoding in a group of participants", f"{names}.", banners, facts, links)
    works = "".join(f"<li>{text(work)}</li>" for work in _REFERENCES)
    sections = [
        section("group", "Accuracy", _accuracy_table(study, summary), _accuracy_picture(folder)),
        section("prevalence", "How common is above-chance decoding?", *_prevalence_parts(study, summary)),
        section(
            "differences", "Differences between methods and comparisons", *_difference_parts(folder, study)
        ),
        section("participants", "Participants", _links(study), _participant_table(study, accuracy)),
        section("maps", "Maps of the group", *_map_parts(folder, study)),
        section(
            "methods",
            "Methods text, ready for a paper",
            f'<div class="prose">{paragraph(methods_text(study, summary))}</div>',
        ),
        section("references", "References", f'<ol class="references">{works}</ol>'),
    ]
    return document("mvpa_gamp: group", top, sections, study["version"])


def _accuracy_table(study: Mapping[str, Any], rows: Sequence[dict[str, str]]) -> str:
    """Mean and standard error over participants."""
    body = [_line(study, row, list(ACCURACY), {"accuracy": row["accuracy_percent"]}) for row in rows]
    caption = text(f"{ACCURACY_CAPTION} {TESTS_CAPTION} {CHANCE_CAPTION}")
    return table([headings(("Comparison", "Method", *ACCURACY.values()), 2)], body, caption)


def _line(
    study: Mapping[str, Any], row: dict[str, str], columns: Sequence[str], exact: dict[str, str]
) -> str:
    """Comparison, method and what is said about them; ``exact`` are unrounded values by column."""
    said = words(row)
    names = cell(row["comparison"], "name") + cell(study["methods"][row["method"]], "name")
    return names + "".join(cell(said[name], value=exact.get(name)) for name in columns)


def _accuracy_picture(folder: ResultsFolder) -> str:
    caption = text("Each dot is a participant, the mark beside the dots their mean with its standard error.")
    return figure(folder.figure("group_accuracy.svg"), caption, "Accuracy of participants")


def _prevalence_parts(study: Mapping[str, Any], rows: Sequence[dict[str, str]]) -> list[str]:
    """What the prevalence means, and its table."""
    permuted = study["test"] == "permutation"
    columns = PREVALENCE | (BOUND if permuted else {})
    body = [_line(study, row, list(columns), {"prevalence": row["prevalence"]}) for row in rows]
    caption = text(significance_caption(study["alpha"], study["test"]))
    return [
        paragraph(_PERMUTATION if permuted else _RUN_TEST),
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


_PAIRED = (
    "Mean difference of balanced accuracies in percentage points with its 95 % interval, over participants "
    "who have both; two-sided p by flipping the signs of the differences, in brackets after Holm's "
    "correction over the family: all pairs of methods on all comparisons, all pairs of methods on the "
    "average, or all pairs of comparisons by one method."
)


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


def _participant_table(study: Mapping[str, Any], rows: Sequence[dict[str, str]]) -> str:
    """Every participant's accuracy and test."""
    head = ("Participant", "Comparison", "Method", "Accuracy", "runs above chance", "p")
    top = headings(head, 3)
    body = [
        cell(f"sub-{row['subject']}", "name")
        + cell(row["comparison"], "name")
        + cell(study["methods"][row["method"]], "name")
        + cell(f"{number(row['accuracy_percent']):.1f} %", value=row["accuracy_percent"])
        + cell(f"{row['runs_above_chance']} of {row['runs']}")
        + cell(f"{number(row['p_value']):.3g}")
        for row in rows
    ]
    caption = text(f"p: {study['test']}.")
    return details("Accuracy and test of every participant", table([top], body, caption))


def _map_parts(folder: ResultsFolder, study: Mapping[str, Any]) -> list[str]:
    """A figure per comparison, or the sentence that there is none."""
    if not study["maps"]:
        return [paragraph("There are no maps of the group; the notes at the top of the page say why.")]
    caption = text(
        "Means over participants of the refits' patterns (each scaled to unit root mean square first) and "
        "inclusion probabilities, at the voxels analysed in all of them; the folder group/ also has the "
        "share of participants that select a voxel and, with enough participants, family-wise p-values. "
        "Slices pass through the pattern's peak (ring); views from above show the largest value of all "
        "slices on the outline of the analysed voxels. Left is left."
    )
    parts = []
    for contrast in dict.fromkeys(each["contrast"] for each in study["maps"]):
        label = study["comparisons"][contrast]
        path = folder.figure(f"group_contrast-{contrast}_maps.png")
        parts += [f"<h3>{text(label)}</h3>", figure(path, caption, f"Mean maps of {label}")]
    return parts


def _map_lines(folder: ResultsFolder, study: Mapping[str, Any], contrast: str) -> list[MapLine]:
    """The mean maps of a comparison, a line per method."""
    drawn = [each for each in study["maps"] if each["contrast"] == contrast]
    return [
        MapLine(study["methods"][method], {
            each["stat"]: folder.group_map(contrast, entity(method) + each.get("of", "Mean"), each["stat"])
            for each in drawn
            if each["method"] == method
        })
        for method in dict.fromkeys(each["method"] for each in drawn)
    ]  # fmt: skip


def _accuracy_figure(
    study: Mapping[str, Any], summary: Sequence[dict[str, str]], accuracy: Sequence[dict[str, str]]
) -> bytes:
    """Accuracy of every participant (dots), mean and standard error, comparisons side by side."""
    methods, names = study["methods"], list(study["comparisons"].values())
    with look():
        width = min(_WIDEST, max(_NARROWEST, 1.0 + 0.45 * len(methods) * len(names)))
        drawing = Figure(figsize=(width, 3.4 if len(names) <= _UPRIGHT else 4.4), layout="constrained")
        ax = drawing.subplots()
        for row in summary:
            key = (row["contrast"], row["method"])
            mine = [number(r["accuracy_percent"]) for r in accuracy if (r["contrast"], r["method"]) == key]
            _draw_cell(ax, study, row, mine)
        turned: dict[str, Any] = {} if len(names) <= _UPRIGHT else {"rotation": 40, "ha": "right"}
        ax.set_xticks(range(len(names)), names, **turned)
        ax.set_ylabel("accuracy on held-out runs (%)")
        ax.set_ylim(None, 101.5)
        ax.grid(axis="y", color=RULE, lw=0.5)
        handles = [
            Line2D([], [], color=colour(i), marker=marker(i), ms=5, lw=1.2, label=label)
            for i, label in enumerate(methods.values())
        ]
        drawing.legend(handles=handles, loc="outside upper left", ncols=min(4, len(handles)), labelcolor=INK)
        return svg(drawing, None)


def _draw_cell(ax: Axes, study: Mapping[str, Any], row: Mapping[str, str], values: Sequence[float]) -> None:
    """The participants of one comparison and method, beside them their mean, and the level of chance."""
    methods, place = list(study["methods"]), list(study["comparisons"]).index(row["contrast"])
    i, step = methods.index(row["method"]), 0.8 / len(methods)
    x = place + (i - (len(methods) - 1) / 2) * step
    ax.plot(np.full(len(values), x), values, "o", ms=3.4, color=colour(i), alpha=0.5, mew=0)
    mean, se = number(row["accuracy_percent"]), number(row["accuracy_se_percent"])
    bar = 0.0 if math.isnan(se) else se
    ax.errorbar(x + step / 4, mean, yerr=bar, fmt=marker(i), ms=5, color=colour(i), capsize=2.5, lw=1.3)
    across, chance = (place - 0.45, place + 0.45), number(row["chance_percent"])
    ax.plot(across, (chance, chance), color=QUIET, lw=0.7, ls=(0, (4, 3)), zorder=0)
