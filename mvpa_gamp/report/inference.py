"""What goes beyond the table: permutation tests, selection at a false-discovery rate, learning curves."""

from collections.abc import Mapping, Sequence

from mvpa_gamp.imaging.atomic_files import write_atomic
from mvpa_gamp.report import inference_plots
from mvpa_gamp.report.inference_rows import (
    ALPHA,
    all_compared,
    few_permutations,
    floor_words,
    inference_table,
    named_cells,
    p_text,
    smallest_p,
    voxels_carry,
)
from mvpa_gamp.report.markup import cell, figure, folded, paragraph, text
from mvpa_gamp.report.voxel_tests import informative, selections
from mvpa_gamp.results.files import MISSING, number
from mvpa_gamp.results.reader import Results

Rows = Sequence[Mapping[str, str]]
_MEASURED = (
    "Marks: mean accuracy on the runs left out, over random sets of training runs, with the standard error "
    "across runs."
)
_PREDICTED = (
    " Dotted: what theory (state evolution) predicts for independent voxels with what was learnt here"
)
_EXTRAPOLATED = "; shaded where it may be extrapolated"


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
    for what, show in (("permutations", _tests), ("fdr", selections), ("learning_curve", _curves)):
        if results.inference.get(what):
            parts += show(results, rows)
    if results.summary.information:
        parts += informative(results)
    if few := few_permutations(results):
        parts.append(paragraph(few))
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
    if results.inference.get("permutations"):
        small = [number(row["p_value_holm"]) <= ALPHA for row in rows]
        said.append(
            f"{sum(small)} of {len(small)} tests have p ≤ {ALPHA} (Holm-corrected, {all_compared(results)})"
        )
    if results.summary.information:
        rows_of = [row for sub in results.subjects for row in results.table(sub, "information")]
        counts = sorted(int(row["voxels"]) for row in rows_of)
        span = " to ".join(dict.fromkeys(f"{count:,}" for count in (counts[0], counts[-1])))
        said.append(f"{voxels_carry(span)} information{' in each comparison' * (len(counts) > 1)}")
    if rate := results.inference.get("fdr"):
        holds = sum(row["fdr_holds"] == "true" for row in rows)
        asked = sum(row["fdr_voxels"] != MISSING for row in rows)
        said.append(f"a false-discovery rate of {rate:g} was confirmed in {holds} of {asked} selections")
    return "; ".join(said) + "." if said else "Tests beyond the table."


def _tests(results: Results, rows: Rows) -> list[str]:
    """P-values and the nulls they come from."""
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
        named_cells(results, row)
        + cell(f"{number(row['accuracy_percent']):.1f} %")
        + cell(f"{number(row['null_mean_percent']):.1f} %", "quiet")
        + cell(p_text(row["p_value"]), value=row["p_value"])
        + cell(p_text(row["p_value_holm"]), value=row["p_value_holm"])
        + cell(_count(row["labellings"]), "quiet")
        for row in rows
    ]
    floor = floor_words(results) or f"never below {smallest_p(results):.2g}"
    failed = sum(int(number(row["fits_not_converged"])) for row in rows)
    caption = text(
        f"Compared with {all_compared(results)}: labels were exchanged {results.exchanged} within runs, and "
        "the whole cross-validation, including tuning, was repeated each time. p = (1 + k) / (1 + n) with k "
        f"of the n at least as good as observed, {floor}; equal accuracies are ordered by the "
        "area under the ROC curve. Holm: corrected for the comparisons of the same method. "
        "Possible labellings: in how many ways the labels can be arranged."
        + (f" {failed} of the fits did not meet their stopping rule." if failed else "")
    )
    said = text(
        "Bars: accuracies with permuted labels; line: the accuracy observed. A small p-value says that the "
        "labels matter, not that the accuracy is high, nor which voxels matter."
    )
    cautions = dict.fromkeys(row["caution"] for row in rows if row["caution"] != MISSING)
    parts = ["<h3>Is it better than chance?</h3>", inference_table(head, body, caption)]
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


def _curves(results: Results, rows: Rows) -> list[str]:
    """Accuracy against training runs."""
    parts = ["<h3>How many runs are needed?</h3>"]
    for subject in _subjects_with(results, "learningcurve"):
        predicted, shaded = (
            inference_plots.draws(results, subject, of) for of in ("predicted", "predicted_low")
        )
        said = text(_MEASURED + (f"{_PREDICTED}{_EXTRAPOLATED * shaded}." if predicted else ""))
        path = results.folder.figure(f"sub-{subject}_learningcurve.svg")
        beside = "beside" if len(results.tasks) <= 2 else "wide"
        parts.append(figure(path, said, f"Learning curves, sub-{subject}", beside))
    head = ("Comparison", "Method", "May the curve be extrapolated?")
    known = [row for row in rows if row["curve"] != MISSING]
    body = [named_cells(results, row) + cell(row["curve"], "name wrap") for row in known]
    return [*parts, inference_table(head, body, "")]


def _count(digits: str) -> str:
    """A whole number, of which only the size matters where it is large."""
    return f"{int(digits):,}" if len(digits) <= 7 else f"10^{len(digits) - 1}"
