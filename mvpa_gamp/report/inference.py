"""What goes beyond the table: permutation tests, selection at a false-discovery rate, learning curves."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from mvpa_gamp.imaging.atomic_files import write_atomic
from mvpa_gamp.imaging.brainmaps import read_image
from mvpa_gamp.imaging.map_names import entity
from mvpa_gamp.imaging.spaces import space_of
from mvpa_gamp.report import inference_plots
from mvpa_gamp.report.markup import cell, details, figure, file_link, folded, headings, paragraph, table, text
from mvpa_gamp.report.outlines import FAMILY_WISE, at_least, has_selection
from mvpa_gamp.results.files import MISSING, number, read_tsv
from mvpa_gamp.results.reader import Results

Rows = Sequence[Mapping[str, str]]
_ALPHA = 0.05
_DIGITS = 1e-5  # relative rounding of the numbers in tables
_MEASURED = (
    "Marks: mean accuracy on the runs left out, over random sets of training runs, with the standard error "
    "across runs."
)
_PREDICTED = (
    " Dotted: what state evolution predicts for independent voxels with the parameters learnt here; shaded "
    "where it may be extrapolated."
)
_LISTED = 20  # voxels listed on the page; files have all of them


def draw_inference(results: Results, subject: str) -> None:
    """Write the figures of the section into ``figures/``."""
    for what, draw in (
        ("permutations", inference_plots.null_accuracies),
        ("learningcurve", inference_plots.learning_curves),
    ):
        if subject in _subjects_with(results, what):
            write_atomic(results.folder.figure(f"sub-{subject}_{what}.svg"), draw(results, subject))


def _subjects_with(results: Results, what: str) -> list[str]:
    """Subjects that have something for any cell."""
    return [
        sub
        for sub in results.subjects
        if any(what in results.inferred(*u) for u in results.cells() if u[0] == sub)
    ]


def inference_section(results: Results) -> str:
    """Everything that was asked for, in this order; nothing where nothing was."""
    if not results.inference:
        return ""
    rows = [row for row in results.inference_rows() if row["status"] == "ok"]
    parts: list[str] = []
    for what, show in (("permutations", _tests), ("fdr", _selections), ("learning_curve", _curves)):
        if results.inference.get(what):
            parts += show(results, rows)
    if results.study.get("information"):
        parts += _information(results)
    left_out = [method["label"] for method in results.methods if not method["is_batched"]]
    if left_out:
        parts.append(
            paragraph(
                f"Not tested here: {', '.join(left_out)}. Their tuning by nested cross-validation would have "
                "to be repeated for every permutation."
            )
        )
    return folded("inference", "Inference", _said(results, rows), *parts, unfolded=len(results.tasks) == 1)


def _said(results: Results, rows: Rows) -> str:
    """The line that is always there."""
    said = []
    if n := results.inference.get("permutations"):
        small = [number(row["p_value_holm"]) <= _ALPHA for row in rows]
        said.append(
            f"{sum(small)} of {len(small)} tests have p ≤ {_ALPHA} (Holm-corrected, {n:,} permutations)"
        )
    if results.study.get("information"):
        counts = [row["voxels"] for sub in results.subjects for row in results.table(sub, "information")]
        said.append(f"{_voxels(', '.join(counts[:3]) + ' …' * (len(counts) > 3))} information")
    if rate := results.inference.get("fdr"):
        holds = sum(row["fdr_holds"] == "true" for row in rows)
        asked = sum(row["fdr_voxels"] != MISSING for row in rows)
        said.append(f"a false-discovery rate of {rate:g} could be confirmed in {holds} of {asked} selections")
    return "; ".join(said) + "." if said else "Tests beyond the table."


def _tests(results: Results, rows: Rows) -> list[str]:
    """P-values and the nulls they come from."""
    head = ("Comparison", "Method", "Accuracy", "with permuted labels", "p", "p (Holm)", "Labellings")
    body = [
        _names(results, row)
        + cell(f"{number(row['accuracy_percent']):.1f} %")
        + cell(f"{number(row['null_mean_percent']):.1f} %", "quiet")
        + cell(p_text(row["p_value"]), value=row["p_value"])
        + cell(p_text(row["p_value_holm"]), value=row["p_value_holm"])
        + cell(_count(row["labellings"]), "quiet")
        for row in rows
    ]
    n = results.inference["permutations"]
    least = max([1 / (1 + n), *(number(row.get("smallest_p_value", "0")) for row in rows)])
    few = ""
    if least > (1 + _DIGITS) / (1 + n):
        few = "; smaller values are set to it, because there are so few labellings"
    failed = sum(int(number(row["fits_not_converged"])) for row in rows)
    caption = text(
        f"Labels were exchanged {results.exchanged} within runs {n:,} times, and the whole "
        "cross-validation, including tuning, was repeated each time. p = (1 + number of permutations "
        f"at least as good) / (1 + {n:,}), never below {least:.2g}{few}; equal accuracies are ordered by the "
        "area under the ROC curve. Holm: corrected for the comparisons of the same method. "
        "Labellings: the number of different labellings that are possible."
        + (f" {failed} of the fits did not meet their stopping rule." if failed else "")
    )
    said = text(
        "Bars: accuracies with permuted labels; line: the accuracy observed. A small p-value says that the "
        "labels matter, not that the accuracy is high, nor which voxels matter."
    )
    cautions = dict.fromkeys(row["caution"] for row in rows if row["caution"] != MISSING)
    parts = ["<h3>Is it better than chance?</h3>", _table(head, body, caption)]
    parts += [paragraph(caution) for caution in cautions]
    for subject in _subjects_with(results, "permutations"):
        path = results.folder.figure(f"sub-{subject}_permutations.svg")
        beside = "beside" if len(results.tasks) <= 2 else "wide"
        parts.append(figure(path, said, f"Accuracies with permuted labels, sub-{subject}", beside))
    if results.inference["max_inclusion"]:
        parts.append(
            paragraph(
                "Maps stat-logpfwe: minus the decimal logarithm of each voxel's p-value, corrected for all "
                "voxels by the largest inclusion probability of each permutation (1.3 is p = 0.05)."
            )
        )
    return parts


def _selections(results: Results, rows: Rows) -> list[str]:
    """Voxels at the expected rate, and what planted effects say about that rate."""
    mine = [row for row in rows if row["fdr_verdict"] != MISSING]
    body = [
        _names(results, row)
        + cell("–" if row["fdr_voxels"] == MISSING else row["fdr_voxels"])
        + cell(_power(results, row), "name")
        + cell(row["fdr_verdict"].split(":")[0], "name wrap")
        for row in mine
    ]
    told = [f"{row['comparison']}, {results.labels[row['method']]}: {_told(row)}" for row in mine]
    listed = "".join(f"<li>{text(each)}</li>" for each in told)
    caption = text(
        f"Largest set of voxels whose estimated share of false discoveries is at most "
        f"{100 * results.inference['fdr']:g} % (mask and table desc-<method>Fdr). Voxels are ranked by "
        "inclusion probability times squared correlation with the labels: the decoder must rely on a voxel, "
        "and the voxel must carry information. A voxel that only cancels noise is not found. "
        "The rate is estimated from fits to permuted labels of the same volumes and checked: effects are "
        "planted at known voxels, with labels unrelated to the real ones, and false selections are counted. "
        "A neighbour with a correlation of 0.5 or more with a planted voxel is not counted as false."
    )
    return [
        "<h3>Which voxels are needed given the others, at which rate of false discoveries?</h3>",
        _table(("Comparison", "Method", "Voxels", "Power", "Check"), body, caption),
        details("Basis of each selection", f"<ul>{listed}</ul>"),
    ]


def _told(row: Mapping[str, str]) -> str:
    """The sentence on the selection and the one on its check, without saying a thing twice."""
    parts = (row.get("fdr_selection", MISSING), row["fdr_verdict"])
    return " ".join(part for part in dict.fromkeys(parts) if part != MISSING)


def _power(results: Results, row: Mapping[str, str]) -> str:
    """Share of planted voxels found, by the size of the effect in standard deviations."""
    cell_of = (row["subject"], row["contrast"], row["method"])
    if "planted" not in results.inferred(*cell_of):
        return "–"
    effects = read_tsv(results.folder.cell_table(*cell_of, "planted"))
    shares = [(number(e["size"]), number(e["power"])) for e in effects if number(e["size"])]
    return ", ".join(f"{100 * share:.0f} % at {size:.2g} SD" for size, share in sorted(shares))


def voxel_lists(results: Results, subject: str, contrast: str) -> list[str]:
    """Voxels of a comparison that inference names, with their coordinates, each list folded."""
    out = []
    for method in results.finished(subject, contrast):
        found, folder = results.inferred(subject, contrast, method), results.folder
        label, desc = results.labels[method], entity(method)
        if "logpfwe" in found:
            path = folder.statmap(subject, contrast, desc, "logpfwe")
            n = results.inference["permutations"]
            title = f"{label}: family-wise p ≤ {_ALPHA} for the inclusion probability ({n:,} permutations)"
            out.append(
                _voxel_list(results, title, path, float(FAMILY_WISE), "p", lambda v: p_text(str(10**-v)))
            )
        if has_selection(found):
            row = _row(results, subject, contrast, method)
            title = (
                f"{label}: selected at a false-discovery rate of {results.inference['fdr']:g} "
                f"({row['fdr_verdict'].split(':')[0]}; power: {_power(results, row)})"
            )
            out.append(_voxel_list(results, title, folder.fdr_mask(subject, contrast, method), 1.0))
    if contrast in results.study.get("information", {}).get("contrasts", ()):
        path = results.folder.information(subject, contrast, "stat-logpfwe_statmap.nii.gz")
        title = f"Voxels that carry information, family-wise p ≤ {_ALPHA}, whatever the method"
        out.append(_voxel_list(results, title, path, float(FAMILY_WISE), "p", lambda v: p_text(str(10**-v))))
    return out


def _row(results: Results, subject: str, contrast: str, method: str) -> Mapping[str, str]:
    """The row of inference.tsv of a cell."""
    wanted = (subject, contrast, method)
    rows = results.inference_rows()
    return next(row for row in rows if (row["subject"], row["contrast"], row["method"]) == wanted)


def _voxel_list(
    results: Results, title: str, path: Path, level: float, head: str = "", show: Callable[[float], str] = str
) -> str:
    """The voxels of a map from a level on, largest value first, and a link to the map."""
    image = read_image(path)
    space = space_of(image)
    values = space.values(image).astype(float)  # others are 0 and below every level
    there = np.flatnonzero(at_least(values, level))
    there = there[np.argsort(-values[there], kind="stable")]
    link = file_link(path, results.folder.root, results.linked)
    if not len(there):
        return details(f"{title}: none", f"<p>No voxel. {link}</p>")
    places = space.coordinates()[there[:_LISTED]]
    body = [
        cell(" ".join(f"{x:.1f}" for x in place)) + (cell(show(values[voxel])) if head else "")
        for voxel, place in zip(there, places, strict=False)
    ]
    more = f"The first {_LISTED} of {len(there):,}. " if len(there) > _LISTED else ""
    count = f"{len(there):,} voxel{'s' * (len(there) != 1)}"
    top = headings(("x y z (mm)", *([head] if head else [])), 0)
    return details(f"{title}: {count}", table([top], body, f"{more}All of them: {link}"))


def _information(results: Results) -> list[str]:
    """Voxels that differ between the two categories, whatever a classifier needs."""
    level = results.study["information"]["level"]
    body, cautions = [], []
    for subject in results.subjects:
        for row in results.table(subject, "information"):
            peak = ", ".join(f"{number(row[f'peak_{axis}_mm']):.0f}" for axis in "xyz")
            body.append(
                cell(row["comparison"], "name")
                + cell(row["voxels"])
                + cell(peak)
                + cell(f"{number(row['peak_correlation']):+.2f}")
                + cell(p_text(row["smallest_p_value"]), value=row["smallest_p_value"])
            )
            cautions += [row["caution"]] if row["caution"] != MISSING else []
    caption = text(
        f"Voxels whose correlation with the labels has a family-wise p of at most {level:g}: corrected for "
        "all voxels by step-down maxima over permutations, whatever the method (maps and mask "
        "desc-information, every voxel with its coordinates in the voxels table). A voxel that carries "
        "information is not always needed by the decoder: among redundant voxels, a sparse classifier gives "
        "its inclusion probability to one, and the easier the categories are to decode, the fewer it needs."
    )
    head = ("Comparison", "Voxels", "Peak x, y, z (mm)", "Correlation there", "smallest p")
    parts = ["<h3>Which voxels carry information about the labels?</h3>", _table(head, body, caption)]
    return parts + [paragraph(caution) for caution in dict.fromkeys(cautions)]


def _curves(results: Results, rows: Rows) -> list[str]:
    """Accuracy against training runs."""
    parts = ["<h3>How many runs are needed?</h3>"]
    for subject in _subjects_with(results, "learningcurve"):
        said = text(_MEASURED + (_PREDICTED if inference_plots.predicts(results, subject) else ""))
        path = results.folder.figure(f"sub-{subject}_learningcurve.svg")
        beside = "beside" if len(results.tasks) <= 2 else "wide"
        parts.append(figure(path, said, f"Learning curves, sub-{subject}", beside))
    head = ("Comparison", "Method", "May the curve be extrapolated?")
    body = [_names(results, row) + cell(row["curve"], "name wrap") for row in rows if row["curve"] != MISSING]
    return [*parts, _table(head, body, "")]


def _names(results: Results, row: Mapping[str, str]) -> str:
    return cell(row["comparison"], "name") + cell(results.labels[row["method"]], "name")


def _table(head: tuple[str, ...], body: list[str], caption: str) -> str:
    words = ("Comparison", "Method", "Power", "Check", "May the curve be extrapolated?")
    top = "".join(cell(name, "name" if name in words else "", header=True) for name in head)
    return table([top], body, caption)


def p_text(value: str) -> str:
    """A p-value in two digits."""
    return f"{number(value):.2g}"


def _count(digits: str) -> str:
    """A whole number, of which only the size matters where it is large."""
    return f"{int(digits):,}" if len(digits) <= 7 else f"10^{len(digits) - 1}"


def inference_lines(results: Results) -> str:
    """The same for the terminal: a line per comparison and method."""
    asked = results.inference
    lines = []
    for row in results.inference_rows():
        if row["status"] != "ok":
            continue
        said = []
        if asked["permutations"]:
            said.append(f"p = {p_text(row['p_value'])} ({asked['permutations']:,} permutations)")
        if row["fdr_voxels"] != MISSING:
            check = row["fdr_verdict"].split(":")[0]
            said.append(f"{row['fdr_voxels']} voxels at FDR {asked['fdr']:g} ({check[0].lower()}{check[1:]})")
        elif row["fdr_verdict"] != MISSING:
            said.append(f"no voxels are reported at FDR {asked['fdr']:g} (the page gives the reason)")
        if row["curve"] != MISSING:
            said.append("learning curve measured")
        lines.append(f"{row['comparison']}, {results.labels[row['method']]}: {'; '.join(said)}")
    for subject in results.subjects if results.study.get("information") else ():
        lines += [
            f"{row['comparison']}: {_voxels(row['voxels'])} information about the labels (family-wise p "
            f"<= {results.study['information']['level']:g}, {row['permutations']} permutations)"
            for row in results.table(subject, "information")
        ]
    return "\n".join(lines)


def _voxels(number: str) -> str:
    """How many voxels carry something."""
    return f"{number} voxel carries" if number == "1" else f"{number} voxels carry"
