"""The first section of the page: the averages, and the paper's table."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from mvpa_gamp.report.markup import cell, details, headings, paragraph, section, table, text
from mvpa_gamp.report.methods_text import SELECTED
from mvpa_gamp.report.printed import Measure, measured, measures_led_by, show, significant
from mvpa_gamp.report.style import colour
from mvpa_gamp.results.files import cell as exact
from mvpa_gamp.results.reader import Results
from mvpa_gamp.results.tables import AVERAGE, selects

_OF_SELECTIONS = ("voxels", "sparsity_percent", "consistency_percent")


def headline_section(results: Results) -> str:
    """Averages per method, the paper's table, and summary.tsv to the letter."""
    parts = []
    for subject in results.subjects:
        if len(results.subjects) > 1:
            parts.append(f"<h3>sub-{text(subject)}</h3>")
        parts += [_overview(results, subject), _paper_table(results, subject)]
    return section("headline", "Error, sparsity, consistency, run time", *parts, _all_numbers(results))


def _overview(results: Results, subject: str) -> str:
    """One line per method: its averages over comparisons."""
    lead = results.leading_measure
    head = [
        "Method",
        lead.name.capitalize(),
        "Selected voxels",
        "Consistency",
        "by chance",
        "Stability",
        "Run time",
    ]
    if results.has_truth:
        head.append("Planted voxels (AP)")
    top = headings(head)
    body = [
        _overview_row(results, i, results.row(subject, AVERAGE, method))
        for i, method in enumerate(results.labels)
    ]
    count = len(results.tasks)
    caption = f"Averages over {count} comparison{'s' * (count > 1)}. " + text(
        f"{lead.name.capitalize()}: mean over held-out runs ± its standard error across runs (mean of the "
        "comparisons' standard errors). Consistency: mean Jaccard overlap of the voxels selected in two "
        "folds; by chance: what random selections of the same sizes would reach; a dash where a method "
        "selects nothing, or every voxel, in most folds. Stability: Nogueira's index, 0 for random and 1 "
        "for identical selections. Run time: all folds and the refit of one comparison."
    )
    if results.has_truth:
        caption += text(" Planted voxels: area under the precision-recall curve of the refit map.")
    return table([top], body, caption, "overview")


def _overview_row(results: Results, index: int, row: Mapping[str, Any]) -> str:
    """The averages of one method."""
    lead = results.leading_measure
    first, voxels, sparsity, consistency, seconds = (show(m, measured(m, row)) for m in measures_led_by(lead))
    swatch = f'<span class="swatch" style="background:{colour(index)}"></span>'
    se = row[lead.spread]
    cells = [
        f'<td class="name">{swatch}{text(results.labels[row["method"]])}</td>',
        cell(f"{first} %" + ("" if math.isnan(se) else f" ± {se:.1f}")),
        cell(f"{voxels} ({sparsity} %)"),
        cell(consistency if consistency == "–" else f"{consistency} %"),
        cell(_percent(row["chance_consistency_percent"]), "quiet"),
        cell(_decimal(row["nogueira"])),
        cell(f"{seconds} s"),
    ]
    if results.has_truth:
        cells.append(cell(_decimal(row["average_precision"])))
    return "".join(cells)


def _percent(value: float) -> str:
    return "–" if math.isnan(value) else f"{significant(value)} %"


def _decimal(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.2f}"


def _paper_table(results: Results, subject: str) -> str:
    """The paper's form: a row per comparison, measures across, methods inside each measure."""
    methods, measures = list(results.labels), measures_led_by(results.leading_measure)
    groups = "".join(cell(m.title, "start", header=True, span=len(methods)) for m in measures)
    names = "".join(
        _name_cell(results.labels[method], first=i == 0) for _ in measures for i, method in enumerate(methods)
    )
    head = [cell("", header=True) + groups, cell("Comparison", "name", header=True) + names]
    body = []
    lines = [(task["contrast"], task["label"]) for task in results.tasks]
    for contrast, label in [*lines, (AVERAGE, "average")]:
        rows = [results.row(subject, contrast, method) for method in methods]
        cells = cell(label, "name") + "".join(_measure_cells(measure, rows) for measure in measures)
        body.append(f'<tr class="average">{cells}</tr>' if contrast == AVERAGE else f"<tr>{cells}</tr>")
    caption = text(
        "The best value of each group of columns is bold; differences smaller than the standard errors "
        "cannot be told apart here. A sparser selection is not better as such. "
        + SELECTED
        + " Every number is in summary.tsv, run "
        "times in timings.tsv."
    )
    return table(head, body, caption, "paper")


def _name_cell(label: str, first: bool) -> str:
    """A method's name above a column: it may break between words, not at hyphens."""
    words = " ".join(f"<span>{text(word)}</span>" for word in label.split())
    return f'<th class="start">{words}</th>' if first else f"<th>{words}</th>"


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


def _all_numbers(results: Results) -> str:
    """summary.tsv, cell by cell."""
    columns = list(results.texts[0])
    head = headings(columns, 4)
    body = [
        "".join(cell(row[name], "name" if i < 4 else "") for i, name in enumerate(columns))
        for row in results.texts
    ]
    note = paragraph("The numbers of summary.tsv, to the letter.", kind="quiet")
    return details("All numbers (summary.tsv)", note, table([head], body, kind="summary"))
