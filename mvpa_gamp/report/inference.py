"""What goes beyond the table on the page: permutation tests, tested voxels, learning curves, regions."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from mvpa_gamp.imaging.regions import OUTSIDE
from mvpa_gamp.report.facts import ENOUGH, Page, powers
from mvpa_gamp.report.html import Cell, Table, cell, name, table
from mvpa_gamp.report.words import (
    ALPHA,
    NONE,
    Compared,
    compared,
    compared_with,
    decimals,
    known,
    peak_of_row,
    span,
    tenths,
    two_digits,
    words_of,
)
from mvpa_gamp.results.files import MISSING, number
from mvpa_gamp.results.reader import Results
from mvpa_gamp.results.regions import EVERYTHING

REGIONS_SHOWN = 15  # in a figure
_REGION_ROWS = 12  # of a table on the page
_REGIONS_NAMED = 8  # in a sentence
_ROUNDING = 1e-5  # relative, of the numbers in tables
_LONG = 7  # digits of a count; of longer ones only the size matters

Row = Mapping[str, str]
Rows = Sequence[Row]


# ---- facts -------------------------------------------------------------------------------------------------


def inference_row(results: Results, subject: str, contrast: str, method: str) -> Row:
    """The row of inference.tsv of a method on a comparison."""
    wanted = (subject, contrast, method)
    rows = results.inference_rows()
    return next(row for row in rows if (row["subject"], row["contrast"], row["method"]) == wanted)


def _good(results: Results) -> list[dict[str, str]]:
    return [row for row in results.inference_rows() if row["status"] == "ok"]


def tests_of(results: Results) -> list[Compared]:
    """What each test of a comparison's accuracy compared with, every kind once."""
    rows = results.inference_rows()
    return sorted({compared(row) for row in rows if known(row["p_value"])})


def all_compared(results: Results) -> str:
    """What the tests of the comparisons' accuracies compared with."""
    return compared_with(tests_of(results) or [(results.inference["permutations"], False)])


def smallest_p(results: Results) -> float:
    """The smallest p-value of an accuracy that permutations and arrangements of the labels allow."""
    least = [number(row["smallest_p_value"]) for row in _good(results) if known(row["smallest_p_value"])]
    return max([1 / (1 + results.inference["permutations"]), *least])


def floor_words(results: Results) -> str:
    """That p-values end above 1 / (1 + n), and why; "" where they do not."""
    least = smallest_p(results)
    if least <= (1 + _ROUNDING) / (1 + results.inference["permutations"]):
        return ""
    ways = {row["labellings"] for row in _good(results)}
    if len(ways) > 1:
        return f"never below {least:.2g} because the labels can be arranged in so few ways"
    count = int(ways.pop())
    same = ", and exchanging the two categories leaves an accuracy as it is" if least * count > 1.5 else ""
    return f"never below {least:.2g} because the labels can be arranged in only {count:,} ways{same}"


def few_permutations(results: Results) -> str:
    """What fewer than 1,000 permutations mean for family-wise p-values of voxels; "" where they are enough.

    Where all arrangements of the labels were used, more cannot be had.
    """
    n = results.inference.get("permutations") or 0
    rows = [row for sub in results.subjects if results.summary.information
            for row in results.table(sub, "information")]  # fmt: skip
    drawn = any(int(row["permutations"]) >= n for row in rows)
    if results.inference.get("max_inclusion"):
        drawn |= not all(every for _, every in tests_of(results))
    if not 0 < n < ENOUGH or not drawn:
        return ""
    voxels = words_of(results).voxels
    return (
        f"{n:,} permutations are few for family-wise p-values of {voxels}: which {voxels} are at p ≤ {ALPHA} "
        f"still changes with their number. Give {ENOUGH:,} for a map that you publish."
    )


def power_words(results: Results, row: Row) -> str:
    """Which share of simulated effects was found, by their size in standard deviations of a voxel."""
    shares = (f"{100 * share:.0f} % of effects of {size:.2g} SD" for size, share in powers(results, row))
    said = ", ".join(shares)
    return f"finds {said}" if said else NONE


# ---- the section -------------------------------------------------------------------------------------------


def inference(page: Page) -> dict[str, Any] | None:
    """Everything that was asked for; nothing where nothing was."""
    results, asked = page.results, page.results.inference
    if not asked:
        return None
    rows = _good(results)
    left_out = [method["label"] for method in results.methods if not method["is_batched"]]
    return {
        "said": _said(page, rows),
        "unfolded": len(results.tasks) == 1,
        "beside": "beside" if len(results.tasks) <= 2 else "wide",
        "tests": _tests(page, rows) if asked.get("permutations") else None,
        "selections": _selections(page, rows) if asked.get("fdr") else None,
        "fdr": asked.get("fdr"),
        "curves": _curves(page, rows) if asked.get("learning_curve") else None,
        "information": _information(page) if results.summary.information else None,
        "few": few_permutations(results),
        "left_out": ", ".join(left_out),
    }


def _said(page: Page, rows: Rows) -> str:
    """The line that is always there."""
    results, said = page.results, []
    if results.inference.get("permutations"):
        small = [number(row["p_value_holm"]) <= ALPHA for row in rows]
        said.append(
            f"{sum(small)} of {len(small)} tests have p ≤ {ALPHA} (Holm-corrected, {all_compared(results)})"
        )
    if results.summary.information:
        rows_of = [row for sub in results.subjects for row in results.table(sub, "information")]
        counts = sorted(int(row["voxels"]) for row in rows_of)
        one = counts == [1]
        many = f"{span(f'{n:,}' for n in counts)} {page.w.voxel if one else page.w.voxels}"
        each = " in each comparison" if len(counts) > 1 else ""
        said.append(f"{many} {'carries' if one else 'carry'} information{each}")
    if rate := results.inference.get("fdr"):
        holds = sum(row["fdr_holds"] == "true" for row in rows)
        asked = sum(known(row["fdr_voxels"]) for row in rows)
        said.append(f"a false-discovery rate of {rate:g} was confirmed in {holds} of {asked} selections")
    return "; ".join(said) + "." if said else "Tests beyond the table."


def _named(results: Results, row: Row) -> list[Cell]:
    """Comparison and method, the first cells of a line."""
    return [name(row["comparison"]), name(results.labels[row["method"]])]


def _worded(head: Sequence[str], rows: Sequence[Sequence[object]]) -> Table:
    """A table whose columns of words are set to the left."""
    made = table(head, rows)
    words = ("Comparison", "Method", "Power", "Check", "May the curve be extrapolated?")
    return made._replace(heads=[[cell(each, "name" if each in words else "") for each in head]])


def _with(results: Results, what: str) -> list[str]:
    """Subjects that have something for any cell."""
    return [
        sub
        for sub in results.subjects
        if any(what in results.inferred(*each) for each in results.cells() if each[0] == sub)
    ]


def inference_figures(results: Results, what: str) -> dict[str, Path]:
    """The figure of ``permutations`` or ``learningcurve`` of every subject that has any."""
    return {sub: results.folder.figure(f"sub-{sub}_{what}.svg") for sub in _with(results, what)}


def _tests(page: Page, rows: Rows) -> dict[str, Any]:
    """P-values and the nulls they come from."""
    results = page.results
    head = (
        "Comparison",
        "Method",
        "Accuracy",
        "with permuted labels",
        "p",
        "p (Holm)",
        "Possible labellings",
    )
    body = [
        [
            *_named(results, row),
            decimals(row["accuracy_percent"], 1, " %"),
            cell(decimals(row["null_mean_percent"], 1, " %"), "quiet"),
            *(cell(two_digits(row[each]), value=row[each]) for each in ("p_value", "p_value_holm")),
            cell(_count(row["labellings"]), "quiet"),
        ]
        for row in rows
    ]
    return {
        "table": _worded(head, body),
        "compared": all_compared(results),
        "exchanged": results.exchanged,
        "floor": floor_words(results) or f"never below {smallest_p(results):.2g}",
        "failed": sum(int(number(row["fits_not_converged"])) for row in rows),
        "cautions": dict.fromkeys(page.w.said(row["caution"]) for row in rows if known(row["caution"])),
        "figures": inference_figures(results, "permutations"),
        "max_inclusion": results.inference["max_inclusion"],
    }


def _count(digits: str) -> str:
    """A whole number, of which only the size matters where it is large."""
    return f"{int(digits):,}" if len(digits) <= _LONG else f"10^{len(digits) - 1}"


def _selections(page: Page, rows: Rows) -> dict[str, Any]:
    """Voxels at the expected rate, and what simulated effects say about that rate."""
    results, w = page.results, page.w
    mine = [row for row in rows if known(row["fdr_verdict"])]
    body = [
        [
            *_named(results, row),
            row["fdr_voxels"] if known(row["fdr_voxels"]) else NONE,
            cell(power_words(results, row), "name wrap"),
            cell(w.said(row["fdr_verdict"].split(":")[0]), "name wrap"),
        ]
        for row in mine
    ]
    told = [f"{row['comparison']}, {results.labels[row['method']]}: {w.said(_told(row))}" for row in mine]
    head = ("Comparison", "Method", w.voxels.capitalize(), "Power", "Check")
    return {"table": _worded(head, body), "told": told}


def _told(row: Row) -> str:
    """The sentence on the selection and the one on its check, without saying a thing twice."""
    parts = (row["fdr_selection"], row["fdr_verdict"])
    return " ".join(part for part in dict.fromkeys(parts) if known(part))


def _curves(page: Page, rows: Rows) -> dict[str, Any]:
    """Accuracy against training runs."""
    results = page.results
    head = ("Comparison", "Method", "May the curve be extrapolated?")
    body = [[*_named(results, row), cell(row["curve"], "name wrap")] for row in rows if known(row["curve"])]
    figures = [
        (sub, path, has_values(results, sub, "predicted"), has_values(results, sub, "predicted_low"))
        for sub, path in inference_figures(results, "learningcurve").items()
    ]
    return {"table": _worded(head, body), "figures": figures}


def has_values(results: Results, subject: str, what: str) -> bool:
    """Whether a column of any learning curve is drawn: a line needs two neighbouring values."""
    for each in results.cells():
        if each[0] == subject and "learningcurve" in results.inferred(*each):
            rows = results.read(results.folder.cell_table(*each, "learningcurve"))
            there = [known(row[what]) for row in rows]
            if any(a and b for a, b in pairwise(there)):
                return True
    return False


def _information(page: Page) -> dict[str, Any]:
    """Voxels that differ between the two categories, whatever a classifier needs."""
    rows = [row for sub in page.results.subjects for row in page.results.table(sub, "information")]
    body = [
        [
            name(row["comparison"]),
            row["voxels"],
            tenths(peak_of_row(row)),
            f"{number(row['peak_correlation']):+.2f}",
            cell(two_digits(row["smallest_p_value"]), value=row["smallest_p_value"]),
        ]
        for row in rows
    ]
    head = ("Comparison", page.w.voxels.capitalize(), "Peak x, y, z (mm)", "Correlation there", "smallest p")
    return {
        "table": _worded(head, body),
        "level": page.results.summary.information["level"],
        "cautions": dict.fromkeys(page.w.said(row["caution"]) for row in rows if known(row["caution"])),
    }


# ---- regions -----------------------------------------------------------------------------------------------


def region_tables(results: Results, subject: str, contrast: str) -> dict[str, Rows]:
    """The rows of regions.tsv of every method on a comparison, ranked; none without an atlas."""
    there = results.summary.regions.get("tables", ())
    return {
        method: results.read(results.folder.cell_table(subject, contrast, method, "regions"))
        for method in results.labels
        if f"sub-{subject}/{contrast}/{method}" in there
    }


def regions_of(rows: Rows) -> Rows:
    """The rows of regions, without those outside the atlas and of all voxels."""
    return [row for row in rows if row["index"] != MISSING]


def first_regions(results: Results) -> Iterator[tuple[str, str, Row]]:
    """Comparison, method and the row of the first region, where there is an atlas."""
    for subject, contrast, method in results.cells():
        rows = regions_of(region_tables(results, subject, contrast).get(method, ()))
        if rows:
            yield results.row(subject, contrast, method)["comparison"], method, rows[0]


def regions_path(results: Results, subject: str, contrast: str) -> Path:
    """The figure of a comparison's regions."""
    return results.folder.figure(f"sub-{subject}_contrast-{contrast}_regions.svg")


def regions(page: Page) -> dict[str, Any] | None:
    """What regions add up to and how well each decodes by itself; nothing where no atlas was given."""
    found = page.results.summary.regions
    if not found:
        return None
    small = found["too_small"] if found["by_region"] else []
    more = f" and {len(small) - _REGIONS_NAMED} more" if len(small) > _REGIONS_NAMED else ""
    blocks = []
    for subject in page.results.subjects:
        for task in page.results.tasks:
            tables = region_tables(page.results, subject, task["contrast"])
            path = regions_path(page.results, subject, task["contrast"])
            if tables and path.is_file():
                by = {
                    page.results.labels[method]: _region_table(page, rows) for method, rows in tables.items()
                }
                blocks.append({"name": task["label"] + page.who(subject), "figure": path, "tables": by})
    return {
        "found": found,
        "unfolded": len(page.results.tasks) == 1,
        "small": ", ".join(small[:_REGIONS_NAMED]) + more,
        "blocks": blocks,
        "shown": REGIONS_SHOWN,
        "outside": OUTSIDE,
        "everything": EVERYTHING,
        "notes": [page.w.said(note) for note in (*found["notes"], *found["cautions"])],
    }


def _region_table(page: Page, rows: Rows) -> tuple[Table, int]:
    """The first regions, what is outside the atlas, and the whole; how many more there are."""
    alone, tested = "accuracy_percent" in rows[0], "p_value" in rows[0]
    without = "accuracy_without_percent" in rows[0]
    head = ["Region", page.w.voxels.capitalize(), "Summed inclusion", "Weight %", "Selected",
            "Peak x, y, z (mm)", *["Accuracy %"] * alone, *["p", "p (all regions)"] * tested,
            *["Without it %"] * without]  # fmt: skip
    known_regions = regions_of(rows)
    shown = [*known_regions[:_REGION_ROWS], *(row for row in rows if row["index"] == MISSING)]
    body = [
        [
            name(row["region"]),
            row["voxels"],
            cell(decimals(row["summed_inclusion"], 2), value=row["summed_inclusion"]),
            decimals(row["weight_share_percent"], 1),
            row["selected_voxels"],
            tenths(peak_of_row(row)) if known(row["peak_x_mm"]) else NONE,
            *([_accuracy(row)] if alone else []),
            *([cell(two_digits(row[p]), value=row[p]) for p in ("p_value", "p_value_fwe")] if tested else []),
            *([_accuracy(row, "accuracy_without")] if without else []),
        ]
        for row in shown
    ]
    return table(head, body), max(0, len(known_regions) - _REGION_ROWS)


def _accuracy(row: Row, column: str = "accuracy") -> str:
    if not known(row[f"{column}_percent"]):
        return NONE
    return f"{number(row[f'{column}_percent']):.1f} ± {number(row[f'{column}_se_percent']):.1f}"
