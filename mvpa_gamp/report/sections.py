"""Sections on what lies behind the answers: stability, planted voxels of a phantom, confusion."""

from mvpa_gamp.report.markup import cell, figure, folded, headings, paragraph, table, text
from mvpa_gamp.report.words import significant
from mvpa_gamp.results.files import cell as table_text
from mvpa_gamp.results.files import number
from mvpa_gamp.results.reader import Results
from mvpa_gamp.results.tables import AVERAGE, selects


def consistency_section(results: Results) -> str:
    """Overlap matrices, stability indices and the spread of selections; nothing without folds."""
    if not results.has_folds:
        return ""
    parts = []
    for subject in results.subjects:
        folder = results.folder
        overlap = text(
            "Jaccard overlap between the voxels selected when run i and when run j was held out (size of "
            "the intersection over size of the union); rows and columns are held-out runs, the number above "
            "is the mean off the diagonal: the consistency."
        )
        spread = text(
            "From the voxels that every fold selects (left end) to those that any fold selects (right "
            "end), the mark "
            "is the mean of the folds. A short line is a selection that does not depend on the run left out."
        )
        first, second = (folder.figure(f"sub-{subject}_{name}.svg") for name in ("overlap", "selection"))
        parts += [
            figure(first, overlap, f"Overlap of folds, sub-{subject}", "beside"),
            figure(second, spread, f"Spread of selections, sub-{subject}", "beside"),
            _consistency_table(results, subject),
        ]
    return folded("consistency", "How stable the selected voxels are", _stability(results), *parts, bulk=True)


def _stability(results: Results) -> str:
    """Mean overlap of each method, and its chance level."""
    said = []
    for method, label in results.labels.items():
        row = next(r for r in results.rows if (r["contrast"], r["method"]) == (AVERAGE, method))
        if selects(row):
            chance = significant(row["chance_consistency_percent"])
            said.append(f"{label} {row['consistency_percent']:.0f} % (chance {chance} %)")
    return "Consistency: " + ("; ".join(said) or "no method selects") + "."


def _consistency_table(results: Results, subject: str) -> str:
    """Jaccard, its chance level, Kuncheva, Nogueira with interval."""
    names = (
        "Comparison",
        "Method",
        "Voxels per fold",
        "Consistency %",
        "by chance %",
        "Kuncheva",
        "Nogueira",
    )
    top = headings((*names, "95 % interval"), 2)
    body, before = [], None
    for row in results.table(subject, "consistency"):
        low, high = number(row["nogueira_low"]), number(row["nogueira_high"])
        chose = selects(results.row(subject, row["contrast"], row["method"]))
        body.append(
            cell("" if row["comparison"] == before else row["comparison"], "name")
            + cell(results.labels[row["method"]], "name")
            + cell(f"{number(row['voxels']):.1f}")
            + cell(
                f"{number(row['consistency_percent']):.1f}" if chose else "–",
                value=row["consistency_percent"],
            )
            + cell(f"{number(row['chance_consistency_percent']):.2f}" if chose else "–")
            + cell(_index(row["kuncheva"]))
            + cell(_index(row["nogueira"]))
            + cell(f"{max(low, -1.0):.2f} to {min(high, 1.0):.2f}" if low == low else "–")
        )
        before = row["comparison"]
    caption = text(
        "Consistency is the mean Jaccard index of two folds: voxels that both select over voxels that either "
        "selects. By chance: random selections of the same sizes. Kuncheva's index (for unequal sizes: "
        "Cohen's kappa) and Nogueira's correct for chance: 0 is random, 1 identical. The interval treats "
        "folds as independent draws; they share training data, so it is too narrow rather than too wide. "
        "A dash: the method selects nothing, or every voxel, in most folds."
    )
    return table([top], body, caption)


def _index(cell_text: str) -> str:
    """A stability index with two decimals."""
    value = number(cell_text)
    return "–" if value != value else f"{value:.2f}"


def phantom_section(results: Results) -> str:
    """Phantom only: ranking of the planted voxels."""
    if not results.has_truth:
        return ""
    parts = [paragraph("In a phantom it is known which voxels differ between two categories.")]
    for subject in results.subjects:
        caption = text(
            "PHANTOM. Precision (share of planted voxels among those ranked so far) against recall (share of "
            "planted voxels found). Voxels are ranked by the refit map: inclusion probability if a "
            "method has "
            "it, otherwise absolute weight. Voxels with equal values are taken together: after the last "
            "non-zero voxel of a sparse map, precision falls to chance. A sparse method is not meant to find "
            "all planted voxels; one of several redundant voxels is enough."
        )
        path = results.folder.figure(f"sub-{subject}_truth.svg")
        parts += [
            figure(path, caption, "Precision and recall of planted voxels"),
            _truth_table(results, subject),
        ]
    said = "; ".join(
        f"{label} {results.row(results.subjects[0], AVERAGE, method)['average_precision']:.2f}"
        for method, label in results.labels.items()
    )
    return folded(
        "truth", "Planted voxels of the phantom", f"Area under the precision-recall curve: {said}.", *parts,
        bulk=True,
    )  # fmt: skip


def _truth_table(results: Results, subject: str) -> str:
    """Average precision of each comparison and method."""
    top = cell("Comparison", "name", header=True) + cell("by chance", header=True)
    top += "".join(cell(label, header=True) for label in results.labels.values())
    body = []
    for task in results.tasks:
        rows = [results.row(subject, task["contrast"], method) for method in results.labels]
        chance = next((r["chance_average_precision"] for r in rows if r["status"] == "ok"), float("nan"))
        cells = cell(task["label"], "name") + cell(f"{chance:.4f}", "quiet")
        for row in rows:
            value = row["average_precision"]
            cells += cell("–" if value != value else f"{value:.3f}")
        body.append(cells)
    return table([top], body, text("Area under the precision-recall curve (average precision)."))


def confusion_section(results: Results) -> str:
    """Share of held-out volumes of each category that were recognised."""
    head = ("Comparison", "Method", "first category correct", "second category correct")
    top = headings(head, 2)
    body, before = [], None
    for subject in results.subjects:
        counts = {
            (row["contrast"], row["method"], row["true"], row["predicted"]): int(row["count"])
            for row in results.table(subject, "confusion")
        }
        for task in results.tasks:
            pair = table_text(task["positive"]), table_text(task["negative"])
            for method in results.finished(subject, task["contrast"]):
                shares = [_recognised(counts, (task["contrast"], method), true, pair) for true in pair]
                name = "" if task["contrast"] == before else task["label"]
                body.append(
                    cell(name, "name")
                    + cell(results.labels[method], "name")
                    + "".join(cell(share) for share in shares)
                )
                before = task["contrast"]
    unit = results.summary.data.get("unit", "volumes")
    caption = text(
        f"Held-out {unit}, each predicted by the fold that did not train on its {results.fold_word}."
    )
    said = "Which of the two categories is predicted correctly more often."
    return folded("confusion", "Confusion", said, table([top], body, caption), bulk=True)


def _recognised(
    counts: dict[tuple[str, str, str, str], int], of: tuple[str, str], true: str, pair: tuple[str, str]
) -> str:
    """How many volumes of a category were recognised as such."""
    right = counts[(*of, true, true)]
    total = sum(counts[(*of, true, said)] for said in pair)
    return f"{right} of {total} ({100 * right / max(total, 1):.1f} %)"
