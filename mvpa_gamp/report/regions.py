"""Where in the brain, by the names of an atlas: tables and figures of regions, sentences about them."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from mvpa_gamp.imaging.atomic_files import write_atomic
from mvpa_gamp.imaging.regions import OUTSIDE
from mvpa_gamp.report.markup import cell, details, figure, folded, headings, paragraph, table, text
from mvpa_gamp.report.region_plots import LEVEL, SHOWN, Rows, region_bars
from mvpa_gamp.report.words import compared_with, tenths
from mvpa_gamp.results.files import MISSING, number, read_tsv
from mvpa_gamp.results.reader import Results
from mvpa_gamp.results.region_rows import EVERYTHING

_ROWS = 12  # regions of a table on the page
_NAMED = 8  # regions named in a sentence
WESTFALL_YOUNG = (
    "Westfall PH, Young SS (1993). Resampling-based multiple testing: examples and methods for p-value "
    "adjustment. Wiley, New York."
)


def region_tables(results: Results, subject: str, contrast: str) -> dict[str, Rows]:
    """The rows of regions.tsv of every method on a comparison, ranked; none without an atlas."""
    known = results.summary.regions.get("tables", ())
    return {
        method: read_tsv(results.folder.cell_table(subject, contrast, method, "regions"))
        for method in results.labels
        if f"sub-{subject}/{contrast}/{method}" in known
    }


def draw_regions(results: Results, subject: str) -> None:
    """Write a figure per comparison into ``figures/``."""
    for task in results.tasks:
        contrast = task["contrast"]
        tables = region_tables(results, subject, contrast)
        named = {method: _regions_of(rows) for method, rows in tables.items()}
        if named:
            chance = 100 - results.row(subject, contrast, next(iter(named)))["chance_error_percent"]
            write_atomic(_figure(results, subject, contrast), region_bars(results, named, chance))


def _figure(results: Results, subject: str, contrast: str) -> Path:
    return results.folder.figure(f"sub-{subject}_contrast-{contrast}_regions.svg")


def _regions_of(rows: Rows) -> Rows:
    """The rows of regions, without those outside the atlas and of all voxels."""
    return [row for row in rows if row["index"] != MISSING]


def regions_section(results: Results) -> str:
    """What regions add up to and how well each decodes by itself; empty where no atlas was given."""
    found = results.summary.regions
    if not found:
        return ""
    parts = [paragraph(*_about(found))]
    parts += [paragraph(note) for note in (*found["notes"], *found["cautions"])]
    for subject in results.subjects:
        for task in results.tasks:
            parts += _comparison(results, subject, dict(task))
    said = f"{found['n_regions']} regions of the atlas {found['atlas']}."
    return folded("regions", "Regions", said, *parts, unfolded=len(results.tasks) == 1)


def _about(found: Mapping[str, Any]) -> list[str]:
    """What the reader sees, and how to read it."""
    said = [
        f"Regions of the atlas {found['atlas']}: {found['n_regions']} have voxels in the mask; "
        f"{found['outside']:,} voxels are in none of them.",
        "Inclusion, weight and selected voxels are those of the classifier of all voxels (refit on all "
        "runs), summed over each region. Large regions have more voxels to sum over, and a region that is "
        "redundant with another one may have none.",
    ]
    if found["by_region"]:
        said.append("The accuracy is that of a classifier fitted to the region alone.")
        if small := found["too_small"]:
            said.append(
                f"Not decoded alone, because they have fewer than {found['fewest_voxels']} voxels: "
                f"{_listed(small)}."
            )
    return said


def _comparison(results: Results, subject: str, task: Mapping[str, str]) -> list[str]:
    """One comparison: heading, figure, a table per method."""
    tables = region_tables(results, subject, task["contrast"])
    path = _figure(results, subject, task["contrast"])
    if not tables or not path.is_file():
        return []
    who = f", sub-{subject}" if len(results.subjects) > 1 else ""
    stars = (
        f" Star: better than chance, p ≤ {LEVEL:g} corrected for all regions."
        if results.summary.regions["permutations"]
        else ""
    )
    caption = text(
        f"The first {SHOWN} regions of each method. Bars of accuracies begin at chance; lines are standard "
        f"errors across runs.{stars}"
        if results.summary.regions["by_region"]
        else f"The first {SHOWN} regions of each method."
    )
    parts = [
        f"<h3>{text(task['label'] + who)}</h3>",
        figure(path, caption, f"Regions of {task['label']}{who}"),
    ]
    for method, rows in tables.items():
        parts.append(details(f"{results.labels[method]}: table of regions", _table(rows)))
    return parts


def _table(rows: Rows) -> str:
    """The first regions, what is outside the atlas, and the whole."""
    columns: dict[str, Callable[[Mapping[str, str]], str]] = {
        "Region": lambda row: cell(row["region"], "name"),
        "Voxels": lambda row: cell(row["voxels"]),
        "Summed inclusion": lambda row: cell(
            _digits(row["summed_inclusion"], 2), value=row["summed_inclusion"]
        ),
        "Weight %": lambda row: cell(_digits(row["weight_share_percent"], 1)),
        "Selected": lambda row: cell(row["selected_voxels"]),
        "Peak x, y, z (mm)": lambda row: cell(_peak(row)),
    }
    if "accuracy_percent" in rows[0]:
        columns["Accuracy %"] = lambda row: cell(_accuracy(row))
    if "p_value" in rows[0]:
        columns["p"] = lambda row: cell(_p(row["p_value"]), value=row["p_value"])
        columns["p (all regions)"] = lambda row: cell(_p(row["p_value_fwe"]), value=row["p_value_fwe"])
    regions = _regions_of(rows)
    shown = [*regions[:_ROWS], *(row for row in rows if row["index"] == MISSING)]
    body = ["".join(make(row) for make in columns.values()) for row in shown]
    more = f" {len(regions) - _ROWS} more regions are in the table." if len(regions) > _ROWS else ""
    caption = text(
        f"Sums over all regions and '{OUTSIDE}' equal '{EVERYTHING}'. The peak has the largest absolute "
        f"weight.{more} All of them: the regions table of the subject's folder."
    )
    return table([headings(tuple(columns))], body, caption)


def _digits(value: str, digits: int) -> str:
    return "–" if value == MISSING else f"{number(value):.{digits}f}"


def _p(value: str) -> str:
    return "–" if value == MISSING else f"{number(value):.2g}"


def _accuracy(row: Mapping[str, str]) -> str:
    if row["accuracy_percent"] == MISSING:
        return "–"
    return f"{number(row['accuracy_percent']):.1f} ± {number(row['accuracy_se_percent']):.1f}"


def _peak(row: Mapping[str, str]) -> str:
    if row["peak_x_mm"] == MISSING:
        return "–"
    return tenths(number(row[f"peak_{axis}_mm"]) for axis in "xyz")


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def first_regions(results: Results) -> Iterator[tuple[str, str, Mapping[str, str]]]:
    """Comparison, method and the row of the first region, where there is an atlas."""
    for subject, contrast, method in results.cells():
        rows = _regions_of(region_tables(results, subject, contrast).get(method, ()))
        if rows:
            yield results.row(subject, contrast, method)["comparison"], method, rows[0]


def regions_text(results: Results) -> list[str]:
    """Sentences for the methods text; none without an atlas."""
    found = results.summary.regions
    if not found:
        return []
    said = (
        f"Voxels were assigned to {found['n_regions']} regions of the atlas {found['atlas']} (the nearest "
        "voxel of the atlas), and inclusion probabilities, absolute weights and selected voxels were summed "
        "over regions."
    )
    if found["by_region"]:
        said += (
            f" Each region of {found['fewest_voxels']} voxels or more was also decoded by itself, in the "
            "same folds."
        )
    if found["permutations"]:
        counts = found.get("compared_with", [[found["permutations"], False]])  # folders of earlier versions
        used = compared_with((n, every) for n, every in counts)
        said += (
            f" Its accuracy was compared with {used}, the "
            "same for all regions, and p-values were corrected for all regions by step-down maxima "
            "(Westfall & Young, 1993)."
        )
    return [said]
