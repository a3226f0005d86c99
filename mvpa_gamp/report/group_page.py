"""The page of a group: accuracies of all participants, prevalence, mean maps; a pure reader of the folder."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mvpa_gamp.imaging.atomic_files import write_atomic
from mvpa_gamp.imaging.map_names import entity
from mvpa_gamp.imaging.samples import PHANTOM_BANNER
from mvpa_gamp.report.answers import PREFERRED
from mvpa_gamp.report.brain_figures import MapLine, map_figure
from mvpa_gamp.report.frame import banner, document, header
from mvpa_gamp.report.glass_brain import glass_figure
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
from mvpa_gamp.report.markup import (
    block,
    cell,
    details,
    figure,
    file_link,
    folded,
    headings,
    paragraph,
    section,
    swatch,
    table,
    text,
)
from mvpa_gamp.report.style import INK, QUIET, RULE, colour_of, look, marker_of, svg
from mvpa_gamp.report.surface_figures import group_caption, worded
from mvpa_gamp.results.files import number, read_json, read_tsv, write_text
from mvpa_gamp.results.names import ResultsFolder

_BESIDE = 12  # lines of a table that stands beside its figure
_NOTES = 3  # shown at the top; more of them open on a click
_SIMULATED = "At least one participant is simulated; nothing here is a finding about brains."
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


@dataclass(frozen=True)
class Group:
    """The tables of a group's folder: ``study`` is group_summary.json, cells of the others are texts."""

    folder: ResultsFolder
    study: Mapping[str, Any]
    summary: Sequence[dict[str, str]]
    accuracy: Sequence[dict[str, str]]

    @property
    def contrasts(self) -> list[str]:
        """The comparisons that have mean maps."""
        return list(dict.fromkeys(each["contrast"] for each in self.study["maps"]))

    @property
    def unfolded(self) -> bool:
        """Whether there is so little to show that all of it may be open."""
        return len(self.study["comparisons"]) == 1


def read_group(root: Path) -> Group:
    """What the group level wrote."""
    folder = ResultsFolder(root)
    study = read_json(folder.group)
    tables = (read_tsv(folder.group_table(name)) for name in ("summary", "accuracy"))
    return Group(ResultsFolder(root, study.get("entities", {})), study, *tables)


def build_group_page(root: Path) -> Path:
    """Draw the figures and write ``index.html`` of a folder of participants; returns the page's path."""
    group = read_group(root)
    folder = group.folder
    write_atomic(folder.figure("group_accuracy.svg"), _accuracy_figure(group))
    for contrast in group.contrasts:
        lines = _map_lines(folder, group.study, contrast)
        drawn = map_figure(lines, folder.group_background, folder.group_mask, _banner(group))
        drawn.write(folder.figure(f"group_contrast-{contrast}_maps"))
        for path in _glass_maps(group, contrast):
            stem = folder.figure(f"group_contrast-{contrast}_glass")
            glass_figure(path, False, _banner(group)).write(stem)
    parts = [make(group) for make in SECTIONS]
    page = document(_title(group), _header(group), parts, group.study["version"])
    return write_text(folder.page, worded(page, folder.group_mask))


def _glass_maps(group: Group, contrast: str) -> list[Path]:
    """The mean inclusion map of the first method that has one, in standard space."""
    if not str(group.study.get("space", "")).startswith("MNI"):
        return []
    methods = [e["method"] for e in group.study["maps"] if (e["contrast"], e["stat"]) == (contrast, "pip")]
    return [group.folder.group_map(contrast, f"{entity(method)}Mean", "pip") for method in methods[:1]]


def _banner(group: Group) -> str | None:
    return PHANTOM_BANNER if group.study["phantom"] else None


def _title(group: Group) -> str:
    return "PHANTOM – mvpa_gamp: group" if group.study["phantom"] else "mvpa_gamp: group"


def _header(group: Group) -> str:
    """Who is in the group, and what must not be missed."""
    study = group.study
    facts = {
        "participants": len(study["subjects"]),
        "comparisons": len(study["comparisons"]),
        "methods": len(study["methods"]),
        "level of each test": study["alpha"],
    }
    names = ", ".join(f"sub-{subject}" for subject in study["subjects"])
    banners = banner(PHANTOM_BANNER, _SIMULATED) if study["phantom"] else ""
    notes = [banner("Note", note) for note in study["notes"]]
    banners += "".join(notes[:_NOTES]) + (details(f"{len(notes) - _NOTES} more notes", *notes[_NOTES:])
                                          if len(notes) > _NOTES else "")  # fmt: skip
    return header("Decoding in a group of participants", f"{names}.", banners, facts)


def answer_section(group: Group) -> str:
    """A line per comparison: how accurate, in how many participants, how common."""
    methods = list(group.study["methods"])
    chosen = next((name for name in (*PREFERRED, *methods) if name in methods), "")
    lines = [_answer_line(group, row) for row in group.summary if row["method"] == chosen]
    by = text(f"Answers are those of {group.study['methods'][chosen]}; the tables below have every method.")
    return section("answer", "The answer", *lines, f'<p class="quiet">{by}</p>')


def _answer_line(group: Group, row: dict[str, str]) -> str:
    said = words(row)
    sentence = (
        f"{said['accuracy']} correct on average over {said['participants']} participants ({said['lowest']} "
        "to "
        f"{said['highest']}; chance {said['chance']}); above chance in {said['significant']} (p ≤ "
        f"{group.study['alpha']:g}, {group.study['test']}); prevalence {said['prevalence']} "
        f"(95 % interval {said['interval']})."
    )
    spot = swatch(colour_of(row["method"]))
    return f'<p class="headline">{spot}<b>{text(row["comparison"])}</b>: {text(sentence)}</p>'


def accuracy_section(group: Group) -> str:
    """Every participant as a dot, beside the table."""
    best = max(group.summary, key=lambda row: number(row["accuracy_percent"]))
    said = f"Highest: {best['comparison']}, {words(best)['accuracy']}."
    parts = _accuracy_picture(group.folder) + _accuracy_table(group.study, group.summary)
    few = len(group.summary) <= _BESIDE
    parts = f'<div class="side-by-side">{parts}</div>' if few else parts
    return folded("group", "Accuracy", said, parts, unfolded=True)


def prevalence_section(group: Group) -> str:
    """How common above-chance decoding is."""
    said = f"Test of each participant: {group.study['test']}."
    parts = _prevalence_parts(group.study, group.summary)
    title = "How common is above-chance decoding?"
    return folded("prevalence", title, said, *parts, unfolded=group.unfolded)


def participants_section(group: Group) -> str:
    """Links to the participants' pages, and their numbers."""
    return section(
        "participants", "Participants", _links(group.study), _participant_table(group.study, group.accuracy)
    )


def maps_section(group: Group) -> str:
    """The mean maps, a block per comparison."""
    if not group.study["maps"]:
        nothing = paragraph("There are no maps of the group; the notes at the top of the page say why.")
        return section("maps", "Maps of the group", nothing)
    return section("maps", "Maps of the group", *_map_parts(group))


def references_section(group: Group) -> str:
    """The works behind the statistics."""
    works = "".join(f"<li>{text(work)}</li>" for work in _REFERENCES)
    return folded("references", "References", "", f'<ol class="references">{works}</ol>')


def differences_section(group: Group) -> str:
    """Paired differences between methods and comparisons."""
    said = "Paired differences over participants."
    title = "Differences between methods and comparisons"
    return folded("differences", title, said, *_difference_parts(group.folder, group.study))


def methods_section(group: Group) -> str:
    """The paragraph for a paper."""
    said = paragraph(methods_text(group.study, group.summary))
    prose = f'<div class="prose" data-copy="Copy the text">{said}</div>'
    return folded("methods", "Methods text, ready for a paper", "Written from what was done.", prose)


# The page from top to bottom, as in report/page.py: functions of the group that return HTML, or "".
SECTIONS: tuple[Callable[[Group], str], ...] = (
    answer_section,
    accuracy_section,
    prevalence_section,
    differences_section,
    maps_section,
    participants_section,
    methods_section,
    references_section,
)


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


def _map_parts(group: Group) -> list[str]:
    """A figure per comparison."""
    caption = text(
        "Means over participants of the fits' patterns (each scaled to unit root mean square first) and "
        "inclusion probabilities, at the voxels analysed in all of them; the folder group/ also has the "
        "share of participants that select a voxel and, with enough participants, family-wise p-values. The "
        "same slices for every method: those through the first one's largest pattern (ring). Views from "
        "above "
        "show the largest value of all slices on the outline of the analysed voxels. Neurological "
        "convention: "
        "the left hemisphere is on the left."
    )
    caption = group_caption(group.folder.group_mask, caption)
    parts = []
    for contrast in group.contrasts:
        label, folder = group.study["comparisons"][contrast], group.folder
        stem = f"group_contrast-{contrast}_maps"
        files = [
            folder.group_map(contrast, entity(each["method"]) + each.get("of", "Mean"), each["stat"])
            for each in group.study["maps"]
            if each["contrast"] == contrast
        ]
        links = ", ".join(file_link(path, folder.root) for path in files)
        picture = figure(folder.figure(f"{stem}.png"), caption, f"Mean maps of {label}")
        glass = folder.figure(f"{stem.removesuffix('maps')}glass.png")
        seen = text(
            "Glass brain (MNI space): mean inclusion probability, the largest along each line of sight."
        )
        picture += figure(glass, seen, f"Glass brain of {label}", "beside") if glass.is_file() else ""
        inside = (picture, details("Files", f'<p class="files">{links}</p>'))
        parts.append(
            block(f"maps-{contrast}", label, f"<h3>{text(label)}</h3>", *inside, unfolded=group.unfolded)
        )
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


def _accuracy_figure(group: Group) -> bytes:
    """Accuracy of every participant (dots), mean and standard error, comparisons side by side."""
    study, summary, accuracy = group.study, group.summary, group.accuracy
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
            Line2D([], [], color=colour_of(name), marker=marker_of(name), ms=5, lw=1.2, label=label)
            for name, label in methods.items()
        ]
        drawing.legend(handles=handles, loc="outside upper left", ncols=min(4, len(handles)), labelcolor=INK)
        return svg(drawing, _banner(group))


def _draw_cell(ax: Axes, study: Mapping[str, Any], row: Mapping[str, str], values: Sequence[float]) -> None:
    """The participants of one comparison and method, beside them their mean, and the level of chance."""
    methods, place = list(study["methods"]), list(study["comparisons"]).index(row["contrast"])
    i, step = methods.index(row["method"]), 0.8 / len(methods)
    x = place + (i - (len(methods) - 1) / 2) * step
    of = colour_of(row["method"])
    ax.plot(np.full(len(values), x), values, "o", ms=3.4, color=of, alpha=0.5, mew=0)
    mean, se = number(row["accuracy_percent"]), number(row["accuracy_se_percent"])
    bar = 0.0 if math.isnan(se) else se
    shape = marker_of(row["method"])
    ax.errorbar(x + step / 4, mean, yerr=bar, fmt=shape, ms=5, color=of, capsize=2.5, lw=1.3)
    across, chance = (place - 0.45, place + 0.45), number(row["chance_percent"])
    ax.plot(across, (chance, chance), color=QUIET, lw=0.7, ls=(0, (4, 3)), zorder=0)
