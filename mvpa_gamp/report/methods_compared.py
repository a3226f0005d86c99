"""How the methods compare: the averages, the accuracy of every run, and the paper's table."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from mvpa_gamp.report.markup import (
    cell,
    details,
    figure,
    file_link,
    folded,
    headings,
    html_cell,
    swatch,
    table,
    text,
)
from mvpa_gamp.report.methods_text import SELECTED
from mvpa_gamp.report.page_answers import leading_columns
from mvpa_gamp.report.style import colour_of
from mvpa_gamp.report.terminal import Measure, measured, measures_led_by, show
from mvpa_gamp.report.words import significant
from mvpa_gamp.results.files import cell as exact
from mvpa_gamp.results.reader import Results
from mvpa_gamp.results.tables import AVERAGE, selects

_COLUMNS = 26  # of numbers that fit side by side
_UPRIGHT = 3  # methods whose names stand upright above the columns of every measure
_OF_SELECTIONS = ("voxels", "sparsity_percent", "consistency_percent")


def methods_compared_section(results: Results) -> str:
    """Averages per method, the paper's table, and the accuracy of every run."""
    parts = []
    for subject in results.subjects:
        if len(results.subjects) > 1:
            parts.append(f"<h3>sub-{text(subject)}</h3>")
        parts += [_averages(results, subject), _figures(results, subject), _paper_table(results, subject)]
    title = "How the methods compare" if len(results.labels) > 1 else "Accuracy, run by run"
    unfolded = len(results.tasks) == 1
    return folded("methods-compared", title, _said(results), *parts, unfolded=unfolded)


def _said(results: Results) -> str:
    """The line that is always there: mean accuracies, best first."""
    measure, column, *_ = leading_columns(results)
    means = {
        results.labels[row["method"]]: row[column]
        for row in results.rows
        if row["contrast"] == AVERAGE and not math.isnan(row.get(column, math.nan))
    }
    ordered = sorted(means.items(), key=lambda item: -item[1])
    return "; ".join(f"{label} {accuracy:.1f} %" for label, accuracy in ordered) + f" {measure}."


def _averages(results: Results, subject: str) -> str:
    """One line per method: its averages over comparisons, and its name in commands and file names."""
    head = [
        "Method",
        _title_of_measure(results),
        "Voxels per fold",
        "Consistency",
        "by chance",
        "Nogueira",
        "Run time",
    ]
    if results.has_truth:
        head.append("Planted voxels (AP)")
    body = [_average_row(results, results.row(subject, AVERAGE, method)) for method in results.labels]
    count = len(results.tasks)
    caption = (f"Averages over {count} comparisons. " if count > 1 else "") + text(
        f"{_title_of_measure(results)}: mean over held-out {results.fold_word}s ± its standard error. "
        "Voxels per fold: selected in a fold on average, and as a share of all. Consistency: share of "
        "selected voxels that two folds have in common (mean Jaccard index), next to its value for random "
        "selections of the same sizes; a dash where a method selects nothing, or every voxel, in "
        "most folds. Nogueira's index corrects it for chance: 0 for random, 1 for identical selections. Run "
        "time: all folds and the refit of one comparison."
        + (" In small print: the name after --methods." if results.linked else "")
    )
    if results.has_truth:
        caption += text(" Planted voxels: area under the precision-recall curve of the refit map.")
    return table([headings(head)], body, caption, "averages sortable")


def _title_of_measure(results: Results) -> str:
    measure = leading_columns(results)[0]
    return "Accuracy" if measure == "correct" else measure.capitalize()


def _average_row(results: Results, row: Mapping[str, Any]) -> str:
    """The averages of one method."""
    accuracy, voxels, sparsity, consistency, seconds = (
        show(m, measured(m, row)) for m in measures_led_by(results.leading_measure)
    )
    method, se = row["method"], row.get(leading_columns(results)[2], math.nan)
    name = f"{swatch(colour_of(method))}{text(results.labels[method])} <code>{text(method)}</code>"
    cells = [
        html_cell(name, "name", results.labels[method]),
        cell(
            f"{accuracy} %" + ("" if math.isnan(se) else f" ± {se:.1f}"),
            value=_sorting(row, leading_columns(results)[1]),
        ),
        cell(f"{voxels} ({sparsity} %)", value=_sorting(row, "voxels")),
        cell(
            consistency if consistency == "–" else f"{consistency} %",
            value=_sorting(row, "consistency_percent"),
        ),
        cell(_percent(row["chance_consistency_percent"]), "quiet"),
        cell(_decimal(row["nogueira"])),
        cell(f"{seconds} s", value=_sorting(row, "seconds")),
    ]
    if results.has_truth:
        cells.append(cell(_decimal(row["average_precision"])))
    return "".join(cells)


def _sorting(row: Mapping[str, Any], column: str) -> str:
    """What a table sorts by; nothing comes last."""
    value = row.get(column)
    return "-1" if value is None or math.isnan(float(value)) else f"{float(value):.6g}"


def _figures(results: Results, subject: str) -> str:
    """Accuracies run by run, beside them accuracy against stability."""
    accuracies = text(
        f"Each dot is the accuracy in one held-out {results.fold_word}; the mark is their mean with its "
        f"standard error across {results.fold_word}s; the dashed line is chance. Any two folds share most "
        "of their "
        "training data, so the dots are not independent and the standard error is an approximation."
    )
    trade = text(
        "Small marks are comparisons, large marks their averages; the dashed line is chance. Up and to the "
        "right is better: accurate, and the same voxels whichever run is left out. A method that selects "
        "nothing, or every voxel, in most folds is not shown."
    )
    first, second = (
        results.folder.figure(f"sub-{subject}_{name}.svg") for name in ("accuracies", "accuracy")
    )
    if len(results.tasks) == 1:
        return figure(first, accuracies, f"Accuracies by fold, sub-{subject}", "beside")
    one = figure(first, accuracies, f"Accuracies by fold, sub-{subject}")
    other = figure(second, trade, f"Accuracy against consistency, sub-{subject}")
    return f'<div class="side-by-side">{one}{other}</div>'


def _percent(value: float) -> str:
    return "–" if math.isnan(value) else f"{significant(value)} %"


def _decimal(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.2f}"


def _paper_table(results: Results, subject: str) -> str:
    """The paper's form: a row per comparison, measures across, methods inside each measure.

    Of many methods a few measures at a time: no screen is wide enough for all.
    """
    measures = measures_led_by(results.leading_measure)
    beside = max(1, _COLUMNS // len(results.labels))
    bands = [measures[i : i + beside] for i in range(0, len(measures), beside)]
    links = " and ".join(
        file_link(path, results.folder.root, results.linked)
        for path in (results.folder.summary, results.folder.timings)
    )
    caption = text(
        "The best value of each group of columns is bold; differences smaller than the standard errors "
        f"are not meaningful. A sparser selection is not better as such. {SELECTED} Every number is "
        "in "
    )
    captions = [""] * (len(bands) - 1) + [f"{caption}{links}."]
    tables = (_band(results, subject, *each) for each in zip(bands, captions, strict=True))
    return details("The paper's table, comparison by comparison", *tables)


def _band(results: Results, subject: str, measures: Sequence[Measure], caption: str) -> str:
    """Measures side by side, every one of all methods."""
    methods = list(results.labels)
    groups = "".join(cell(m.title, "start", header=True, span=len(methods)) for m in measures)
    names = "".join(
        _name_cell(results.labels[method], i == 0, len(methods) > _UPRIGHT)
        for _ in measures
        for i, method in enumerate(methods)
    )
    head = [cell("", header=True) + groups, cell("Comparison", "name", header=True) + names]
    body = []
    lines = [(task["contrast"], task["label"]) for task in results.tasks]
    lines += [(AVERAGE, "average")] if len(lines) > 1 else []
    for contrast, label in lines:
        rows = [results.row(subject, contrast, method) for method in methods]
        cells = cell(label, "name") + "".join(_measure_cells(measure, rows) for measure in measures)
        body.append(f'<tr class="average">{cells}</tr>' if contrast == AVERAGE else f"<tr>{cells}</tr>")
    return table(head, body, caption, "paper")


def _name_cell(label: str, first: bool, turned: bool) -> str:
    """A method's name above a column: turned where columns are many; else it breaks between words only."""
    kinds = " ".join(["start"] * first + ["turned"] * turned)
    words = [label] if turned else label.split()
    spans = " ".join(f"<span>{text(word)}</span>" for word in words)
    return f'<th class="{kinds}">{spans}</th>' if kinds else f"<th>{spans}</th>"


def _measure_cells(measure: Measure, rows: Sequence[Mapping[str, Any]]) -> str:
    """One measure of one comparison: a cell per method, the best one bold (after rounding)."""
    shown = [show(measure, measured(measure, row)) for row in rows]
    fair = [row for row in rows if measure.column not in _OF_SELECTIONS or selects(row)]
    known = [float(row[measure.column]) for row in fair if row[measure.column] is not None]
    values = [value for value in known if not math.isnan(value)]
    best = show(measure, measure.best(values)) if len(values) > 1 else None
    return "".join(
        cell(
            said,
            " ".join(
                k for k in ("start" if i == 0 else "", "best" if said == best and row in fair else "") if k
            ),
            value=exact(row[measure.column]),
        )
        for i, (said, row) in enumerate(zip(shown, rows, strict=True))
    )
