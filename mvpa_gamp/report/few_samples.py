"""What a page leads with when no single voxel can be named: the prediction, the pattern, its places."""

from collections.abc import Mapping, Sequence

from mvpa_gamp.report.markup import cell, headings, paragraph, section, table, text
from mvpa_gamp.report.words import tenths
from mvpa_gamp.results.files import number, read_tsv
from mvpa_gamp.results.reader import Results

_SHOWN = 5  # places of a comparison on the page; the table in the folder has up to ten
_WHY = (
    "No inclusion probability is above one half there: many voxels are redundant, and there are too few "
    "samples to decide which of them the classifier needs. This is about single voxels, not about decoding: "
    "prediction and pattern use all voxels. The table lists where the pattern is strongest, at least "
    "half as strong as its peak. It describes the map and is not a test; permutations of the labels test "
    "which voxels carry information."
)


def few_samples_section(results: Results) -> str:
    """The section, or nothing where every fit to all samples selected voxels."""
    if not results.summary.pattern_clusters:
        return ""
    parts = []
    for subject in results.subjects:
        places = read_tsv(results.folder.subject_table(subject, "patternclusters"))
        cells = dict.fromkeys((row["contrast"], row["method"]) for row in places)
        parts.append(paragraph(_lead(results, subject, list(cells))))
        rows = [_row(results, row) for row in places if number(row["cluster"]) <= _SHOWN]
        caption = text(
            "All clusters, with voxel indices, are in patternclusters.tsv; the maps are stat-pattern."
        )
        head = ("Comparison", "Method", "Signal is higher for", "Peak (mm)", "Voxels", "Pattern")
        parts.append(table([headings(head, 3)], rows, caption))
    return section("pattern", "Prediction and pattern; no single voxel was selected", *parts)


def _lead(results: Results, subject: str, cells: Sequence[tuple[str, str]]) -> str:
    """How well each of these cells predicts, and why it names no voxel."""
    labels = {task["contrast"]: task["label"] for task in results.tasks}
    known = [(c, m, results.row(subject, c, m)["error_percent"]) for c, m in cells if c in labels]
    said = "; ".join(
        f"{labels[contrast]}, {results.labels[method]}: {100 - error:.1f} % of held-out samples correct"
        for contrast, method, error in known
    )
    data = results.summary.data
    size = f"{data['n_samples']:,} samples and {data['n_voxels']:,} voxels"
    return f"With {size}, some fits select no voxel. {said}. {_WHY}"


def _row(results: Results, row: Mapping[str, str]) -> str:
    labels = {task["contrast"]: task["label"] for task in results.tasks}
    peak = tenths(number(row[f"peak_{axis}_mm"]) for axis in "xyz")
    return (
        cell(labels.get(row["contrast"], row["contrast"]), "name")
        + cell(results.labels[row["method"]], "name")
        + cell(row["higher_for"], "name")
        + cell(peak)
        + cell(row["voxels"])
        + cell(f"{number(row['peak_pattern']):+.3g}")
    )
