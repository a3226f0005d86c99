"""What lies behind the answers on a participant's page: methods, stability, convergence, record."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from mvpa_gamp.gamp.result import CAVITY, SMALLER_STEPS
from mvpa_gamp.report.cobidas import cobidas_rows
from mvpa_gamp.report.facts import Page, leading_columns
from mvpa_gamp.report.html import Cell, Table, cell, name, swatch, table
from mvpa_gamp.report.methods_text import methods_paragraphs, references, selected_words
from mvpa_gamp.report.terminal import Measure, measured, measures_led_by, show
from mvpa_gamp.report.words import NONE, decimals, significant
from mvpa_gamp.results.files import cell as exact
from mvpa_gamp.results.files import number, read_json
from mvpa_gamp.results.reader import Results
from mvpa_gamp.results.tables import AVERAGE, selects

_COLUMNS = 26  # of numbers that fit side by side
_UPRIGHT = 3  # methods whose names stand upright above the columns of every measure
_OF_SELECTIONS = ("voxels", "sparsity_percent", "consistency_percent")
_SUBJECT_TABLES = ("consistency", "confusion", "clusters", "inference", "information")
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?")


# ---- methods -----------------------------------------------------------------------------------------------


def methods_compared(page: Page) -> dict[str, Any]:
    """Averages per method, the paper's table, and the accuracy of every run."""
    results = page.results
    measure, column, *_ = leading_columns(results)
    means = {
        results.labels[row["method"]]: row[column]
        for row in results.rows
        if row["contrast"] == AVERAGE and not math.isnan(row.get(column, math.nan))
    }
    ordered = sorted(means.items(), key=lambda item: -item[1])
    several = len(results.subjects) > 1
    return {
        "said": "; ".join(f"{label} {accuracy:.1f} %" for label, accuracy in ordered) + f" {measure}.",
        "title": "How the methods compare"
        if len(results.labels) > 1
        else f"Accuracy, {page.w.counted} by {page.w.counted}",
        "measure": _title_of_measure(results),
        "subjects": [_methods_of(page, subject, several) for subject in results.subjects],
        "n_tasks": len(results.tasks),
        "truth": results.has_truth,
        "selected": page.w.said(selected_words(results.labels)),
        "tables": [results.folder.summary, results.folder.timings],
    }


def _methods_of(page: Page, subject: str, several: bool) -> dict[str, Any]:
    results, w = page.results, page.w
    head = ["Method", _title_of_measure(results), f"{w.voxels.capitalize()} per fold", "Consistency",
            "by chance", "Nogueira", "Run time",
            *([f"Planted {w.voxels} (AP)"] * results.has_truth)]  # fmt: skip
    rows = [_average_row(results, results.row(subject, AVERAGE, method)) for method in results.labels]
    measures = measures_led_by(results.leading_measure)
    beside = max(1, _COLUMNS // len(results.labels))  # no screen is wide enough for all of many methods
    bands = [measures[i : i + beside] for i in range(0, len(measures), beside)]
    names = ("accuracies", "accuracy")
    return {
        "name": f"sub-{subject}" if several else "",
        "subject": subject,
        "averages": table(head, rows),
        "figures": [results.folder.figure(f"sub-{subject}_{each}.svg") for each in names],
        "bands": [_band(page, subject, band) for band in bands],
    }


def _title_of_measure(results: Results) -> str:
    measure = leading_columns(results)[0]
    return "Accuracy" if measure == "correct" else measure.capitalize()


def _average_row(results: Results, row: Mapping[str, Any]) -> list[Cell]:
    """The averages of one method, behind its name on pages and in commands."""
    accuracy, voxels, sparsity, consistency, seconds = (
        show(m, measured(m, row)) for m in measures_led_by(results.leading_measure)
    )
    method, (_, column, spread, _) = row["method"], leading_columns(results)
    label, se = results.labels[method], row.get(spread, math.nan)
    shown = Markup("{}{} <code>{}</code>").format(swatch(method), label, method)
    percent = NONE if consistency == NONE else f"{consistency} %"
    chance = row["chance_consistency_percent"]
    cells = [
        cell(shown, "name", label),
        cell(f"{accuracy} %" + ("" if math.isnan(se) else f" ± {se:.1f}"), value=_sorting(row, column)),
        cell(f"{voxels} ({sparsity} %)", value=_sorting(row, "voxels")),
        cell(percent, value=_sorting(row, "consistency_percent")),
        cell(NONE if math.isnan(chance) else f"{significant(chance)} %", "quiet"),
        cell(decimals(row["nogueira"], 2)),
        cell(f"{seconds} s", value=_sorting(row, "seconds")),
    ]
    return [*cells, cell(decimals(row["average_precision"], 2))] if results.has_truth else cells


def _sorting(row: Mapping[str, Any], column: str) -> str:
    """What a table sorts by; nothing comes last."""
    value = row.get(column)
    return "-1" if value is None or math.isnan(float(value)) else f"{float(value):.6g}"


def _band(page: Page, subject: str, measures: Sequence[Measure]) -> Table:
    """The paper's form: a row per comparison, measures side by side, every one of all methods."""
    results, methods = page.results, list(page.results.labels)
    top = [Cell(page.w.said(m.title), "start", span=len(methods)) for m in measures]
    names = [_upright(results.labels[method], i == 0, len(methods) > _UPRIGHT)
             for _ in measures for i, method in enumerate(methods)]  # fmt: skip
    lines = [(task["contrast"], task["label"]) for task in results.tasks]
    lines += [(AVERAGE, "average")] * (len(lines) > 1)
    body = []
    for contrast, label in lines:
        rows = [results.row(subject, contrast, method) for method in methods]
        body.append([name(label), *(each for measure in measures for each in _measure_cells(measure, rows))])
    return Table([[Cell(""), *top], [name("Comparison"), *names]], body, average=len(results.tasks) > 1)


def _upright(label: str, first: bool, turned: bool) -> Cell:
    """A method's name above a column: turned where columns are many; else it breaks between words only."""
    words = [label] if turned else label.split()
    spans = Markup(" ").join(Markup("<span>{}</span>").format(word) for word in words)
    return Cell(spans, " ".join(["start"] * first + ["turned"] * turned))


def _measure_cells(measure: Measure, rows: Sequence[Mapping[str, Any]]) -> list[Cell]:
    """One measure of one comparison: a cell per method, the best one bold (after rounding)."""
    shown = [show(measure, measured(measure, row)) for row in rows]
    fair = [measure.column not in _OF_SELECTIONS or selects(row) for row in rows]
    known = [row[measure.column] for row, good in zip(rows, fair, strict=True) if good]
    values = [float(value) for value in known if value is not None and not math.isnan(value)]
    best = show(measure, measure.best(values)) if len(values) > 1 else None
    return [
        cell(
            said,
            " ".join(["start"] * (i == 0) + ["best"] * (said == best and fair[i])),
            exact(row[measure.column]),
        )
        for i, (said, row) in enumerate(zip(shown, rows, strict=True))
    ]


# ---- stability, planted voxels, confusion, convergence -----------------------------------------------------


def consistency(page: Page) -> dict[str, Any] | None:
    """Overlap matrices, stability indices and the spread of selections; nothing without folds."""
    results = page.results
    if not results.has_folds:
        return None
    said = []
    for method, label in results.labels.items():
        row = next(r for r in results.rows if (r["contrast"], r["method"]) == (AVERAGE, method))
        if selects(row):
            chance = significant(row["chance_consistency_percent"])
            said.append(f"{label} {row['consistency_percent']:.0f} % (chance {chance} %)")
    figure = results.folder.figure
    subjects = [
        {
            "name": f"sub-{subject}",
            "overlap": figure(f"sub-{subject}_overlap.svg"),
            "selection": figure(f"sub-{subject}_selection.svg"),
            "table": _consistency_table(page, subject),
        }
        for subject in results.subjects
    ]
    return {"said": f"Consistency: {'; '.join(said) or 'no method selects'}.", "subjects": subjects}


def _consistency_table(page: Page, subject: str) -> Table:
    """Jaccard, its chance level, Kuncheva, Nogueira with interval."""
    results, before, body = page.results, "", []
    for row in results.table(subject, "consistency"):
        low, high = number(row["nogueira_low"]), number(row["nogueira_high"])
        chose = selects(results.row(subject, row["contrast"], row["method"]))
        consistent = decimals(row["consistency_percent"], 1) if chose else NONE
        body.append([
            name("" if row["comparison"] == before else row["comparison"]),
            name(results.labels[row["method"]]),
            f"{number(row['voxels']):.1f}",
            cell(consistent, value=row["consistency_percent"]),
            decimals(row["chance_consistency_percent"], 2) if chose else NONE,
            decimals(row["kuncheva"], 2),
            decimals(row["nogueira"], 2),
            NONE if math.isnan(low) else f"{max(low, -1.0):.2f} to {min(high, 1.0):.2f}",
        ])  # fmt: skip
        before = row["comparison"]
    head = ("Comparison", "Method", f"{page.w.voxels.capitalize()} per fold", "Consistency %", "by chance %",
            "Kuncheva", "Nogueira", "95 % interval")  # fmt: skip
    return table(head, body, 2)


def truth(page: Page) -> dict[str, Any] | None:
    """Phantom only: ranking of the planted voxels."""
    results = page.results
    if not results.has_truth:
        return None
    first = results.subjects[0]
    said = "; ".join(
        f"{label} {results.row(first, AVERAGE, method)['average_precision']:.2f}"
        for method, label in results.labels.items()
    )
    subjects = [
        {"figure": results.folder.figure(f"sub-{sub}_truth.svg"), "table": _truth_table(results, sub)}
        for sub in results.subjects
    ]
    return {"said": said, "subjects": subjects}


def _truth_table(results: Results, subject: str) -> Table:
    """Average precision of each comparison and method."""
    body = []
    for task in results.tasks:
        rows = [results.row(subject, task["contrast"], method) for method in results.labels]
        chance = next((r["chance_average_precision"] for r in rows if r["status"] == "ok"), math.nan)
        precisions = (decimals(row["average_precision"], 3) for row in rows)
        body.append([name(task["label"]), cell(f"{chance:.4f}", "quiet"), *precisions])
    return table(("Comparison", "by chance", *results.labels.values()), body)


def confusion(page: Page) -> dict[str, Any]:
    """Share of held-out volumes of each category that were recognised."""
    results, body, before = page.results, [], ""
    for subject in results.subjects:
        counts = {
            (row["contrast"], row["method"], row["true"], row["predicted"]): int(row["count"])
            for row in results.table(subject, "confusion")
        }
        for task in results.tasks:
            contrast, pair = task["contrast"], (exact(task["positive"]), exact(task["negative"]))
            for method in results.finished(subject, contrast):
                shares = [_recognised(counts, (contrast, method), true, pair) for true in pair]
                label = "" if contrast == before else task["label"]
                body.append([name(label), name(results.labels[method]), *shares])
                before = contrast
    head = ("Comparison", "Method", "first category correct", "second category correct")
    return {"table": table(head, body, 2)}


def _recognised(
    counts: dict[tuple[str, str, str, str], int], of: tuple[str, str], true: str, pair: tuple[str, str]
) -> str:
    """How many volumes of a category were recognised as such."""
    right = counts[(*of, true, true)]
    total = sum(counts[(*of, true, said)] for said in pair)
    return f"{right} of {total} ({100 * right / max(total, 1):.1f} %)"


def convergence(page: Page) -> dict[str, Any]:
    """How every fit ended, in its own words."""
    results, labels = page.results, page.labels()
    body, before, fits, good, by_score = [], "", 0, 0, False
    for subject, contrast, method in results.cells():
        folds = results.folds(subject, contrast, method)
        by_score = by_score or any(row["status"] in (CAVITY, SMALLER_STEPS) for row in folds)
        steps = [number(row["n_iter"]) for row in folds]
        ended = sum(row["converged"] == "true" for row in folds)
        low, high = min(steps), max(steps)
        body.append([
            name("" if contrast == before else labels[contrast]),
            name(results.labels[method]),
            f"{ended} of {len(folds)}",
            f"{low:.0f}–{high:.0f}" if low < high else f"{low:.0f}",
            cell("; ".join(endings([page.w.said(row["status"]) for row in folds])), "name wrap"),
        ])  # fmt: skip
        before = contrast
        row = results.row(subject, contrast, method)
        fits, good = fits + int(row["folds"]), good + int(row["folds_converged"])
    head = ("Comparison", "Method", "Fits that ended as intended", "Iterations", "How the fits ended")
    made = table(head, body, 2)
    made = made._replace(heads=[[*made.heads[0][:-1], cell(head[-1], "name")]])
    said = (
        f"All {fits:,} fits converged."
        if good == fits
        else f"{fits - good:,} of {fits:,} fits did not converge."
    )
    return {"said": said, "table": made, "by_score": by_score}


def endings(statuses: list[str]) -> list[str]:
    """The different ways in which fits ended, with their count; numbers that differ become their range."""
    groups: dict[str, list[str]] = {}
    for status in statuses:
        groups.setdefault(_NUMBER.sub("…", status), []).append(status)
    return [f"{len(some)} × {_with_ranges(some).rstrip('.')}" for some in groups.values()]


def _with_ranges(statuses: list[str]) -> str:
    """Sentences that differ in their numbers as one sentence: "after 12 to 40 iterations"."""
    columns = zip(*(_NUMBER.findall(status) for status in statuses), strict=True)
    ranges = iter([sorted(set(column), key=_size) for column in columns])

    def written(_: re.Match[str]) -> str:
        values = next(ranges)
        return values[0] if len(values) == 1 else f"{values[0]} to {values[-1]}"

    return _NUMBER.sub(written, statuses[0])


def _size(digits: str) -> float:
    """The number that a status wrote, thousands separated by commas or not."""
    return float(digits.replace(",", "").rstrip("."))


# ---- for the paper, and to repeat the run ------------------------------------------------------------------


def methods(page: Page) -> dict[str, Any]:
    """The paragraphs for a paper and their references."""
    said = [page.w.said(each) for each in methods_paragraphs(page.results)]
    return {"paragraphs": said, "references": references(page.results)}


def cobidas(page: Page) -> dict[str, Any]:
    """The items as a table; the file beside the page has the same lines."""
    rows = cobidas_rows(page.results)
    body = [
        [cell(page.w.said(row["item"]), "name wrap item"), cell(row["reported"], "name wrap")] for row in rows
    ]
    known = sum(row["from_the_run"] == "yes" for row in rows)
    made = table(("What to report", "This run"), body, 2)
    return {"known": known, "count": len(rows), "table": made, "path": page.results.folder.cobidas}


def record(page: Page) -> dict[str, Any]:
    """Settings first, then versions, origins, method settings and the files of the folder."""
    results, folder, summary = page.results, page.results.folder, page.results.summary
    files = [folder.summary, folder.timings, folder.study, folder.config, folder.cobidas, folder.manifest,
             folder.log]  # fmt: skip
    for sub in results.subjects:
        files += [folder.subject_table(sub, each) for each in _SUBJECT_TABLES]
        files += [folder.mask(sub), folder.background(sub)]
    own = "" if summary.settings else folder.config.read_text(encoding="utf-8")
    return {
        "notes": [page.w.said(note) for note in summary.data["notes"]],
        "files": [path for path in files if path.is_file()],
        "settings": own or _listed(summary.settings),
        "versions": _listed(read_json(folder.environment)),
        "provenance": _listed(summary.data["provenance"]),
        "methods": "\n\n".join(f"{method['name']}: {method['settings']}" for method in results.methods),
    }


def _listed(items: Mapping[str, Any]) -> str:
    return "\n".join(f"{key}: {value}" for key, value in items.items())
