"""The sections of the page between the headline and the methods text."""

from mvpa_gamp.report.markup import cell, details, figure, headings, paragraph, section, table, text
from mvpa_gamp.results.files import cell as table_text
from mvpa_gamp.results.files import number
from mvpa_gamp.results.reader import Results
from mvpa_gamp.results.tables import selects

_CLUSTERS_SHOWN = 5

_MEANING = {
    "Weight": "How the classifier weighs a voxel. A weight is not activation: a voxel without signal can "
    "carry weight because it cancels noise of its neighbours, and an active voxel can carry none because "
    "another one says the same.",
    "Pattern": "How a voxel’s signal changes with the classifier’s decision (Haufe et al., 2014): the map "
    "to read for where the two categories differ. It says nothing about which voxels the classifier needed.",
    "Inclusion probability": "The posterior probability that the weight is not zero, given the model. It "
    "shows how sure the model is, not how large an effect is; methods without a posterior have no such map.",
    "Selection frequency": "The share of folds in which a voxel was selected. Folds share most of their "
    "training data, so a high frequency is repeatability, not independent replication.",
}


def errors_section(results: Results) -> str:
    """Errors by fold, and accuracy against stability."""
    errors = text(
        "Each dot is the error in one held-out run; the mark beside the dots is their mean with its "
        "standard error across runs; the dashed line is chance. Any two folds share most of their "
        "training runs, so the dots are not independent and the standard error is an approximation."
    )
    trade = text(
        "Small marks are comparisons, large marks their averages; the dashed line is chance. Up and to the "
        "right is better: accurate, and the same voxels whichever run is left out. A method that selects "
        "very many voxels reaches consistency more easily, see the chance levels in the consistency section. "
        "A method that selects nothing, or every voxel, in most folds has no place here."
    )
    parts = []
    for subject in results.subjects:
        path = results.folder.figure(f"sub-{subject}_errors.svg")
        parts.append(figure(path, errors, f"Errors by fold, sub-{subject}"))
        path = results.folder.figure(f"sub-{subject}_accuracy.svg")
        parts.append(figure(path, trade, f"Accuracy against consistency, sub-{subject}", "beside"))
    return section("errors", "Errors, run by run", *parts)


def comparisons_section(results: Results, left_out: int = 0) -> str:
    """Brain figures of each comparison, with the largest clusters; so many others have none."""
    meaning = "".join(f"<dt>{text(k)}</dt><dd>{text(v)}</dd>" for k, v in _MEANING.items())
    parts = [f'<dl class="meaning">{meaning}</dl>']
    if left_out:
        parts.append(
            paragraph(
                f"Figures show {len(results.tasks)} of {len(results.tasks) + left_out} contrasts; "
                "generate_report(contrasts=[...]) draws those named, max_contrasts=... more; to_bids writes "
                "all maps."
            )
        )
    for subject in results.subjects:
        clusters = results.table(subject, "clusters")
        for task in results.tasks:
            parts += _comparison(results, subject, dict(task), clusters)
    return section("maps", "Brain maps", *parts)


def _comparison(
    results: Results, subject: str, task: dict[str, str], clusters: list[dict[str, str]]
) -> list[str]:
    """One comparison: heading, figure and cluster table."""
    contrast = task["contrast"]
    who = f", sub-{subject}" if len(results.subjects) > 1 else ""
    parts = [f"<h3>{text(task['label'] + who)}</h3>"]
    if not results.finished(subject, contrast):
        return [*parts, paragraph("Every method failed on this comparison; there is no map.")]
    kind = "PHANTOM, simulated. " if results.phantom else ""
    caption = (
        f"{kind}Refit on all runs. <b>Orange to red</b> speaks for {text(task['positive'])}, <b>blue</b> for "
        f"{text(task['negative'])}. Slices pass through each method's voxel of largest weight (ring; none if "
        "all weights are zero); views from above, front and side show the largest value along the line of "
        "sight. Every signed map has its own scale; weights below 5 % of it and inclusion probabilities "
        "below 0.2 are left out. Left is left."
    )
    path = results.folder.figure(f"sub-{subject}_contrast-{contrast}_maps.png")
    parts.append(figure(path, caption, f"Maps of {task['label']}{who}"))
    mine = [row for row in clusters if row["contrast"] == contrast]
    if mine:
        parts.append(details("Largest clusters of selected voxels", _cluster_table(results, mine)))
    return parts


def _cluster_table(results: Results, rows: list[dict[str, str]]) -> str:
    """The largest clusters of each method."""
    regions = ("Region of the peak",) if "region" in rows[0] else ()
    head = ("Method", "Cluster", "Voxels", "mm³", "Peak x, y, z (mm)", "Peak weight", "Selected in folds")
    top = headings((*head, *regions))
    body = []
    for method, label in results.labels.items():
        mine = [row for row in rows if row["method"] == method]
        for row in mine[:_CLUSTERS_SHOWN]:
            peak = ", ".join(f"{number(row[f'peak_{axis}_mm']):.1f}" for axis in "xyz")
            cells = (
                f"{row['cluster']} of {len(mine)}",
                row["voxels"],
                f"{number(row['volume_mm3']):.0f}",
                peak,
                f"{number(row['peak_weight']):+.3g}",
                f"{100 * number(row['peak_selection_frequency']):.0f} %",
            )
            region = cell(row["region"], "name") if regions else ""
            body.append(cell(label, "name") + "".join(cell(value) for value in cells) + region)
    caption = text(
        "Voxels of the refit that touch (faces, edges or corners) form a cluster; coordinates are in the "
        f"space of the image's affine ({results.study['data']['space']}). All clusters are in the clusters "
        "table of the subject's folder."
    )
    return table([top], body, caption)


def consistency_section(results: Results) -> str:
    """Overlap matrices, stability indices and selection frequency."""
    parts = []
    for subject in results.subjects:
        folder = results.folder
        overlap = text(
            "Jaccard overlap between the voxels selected when run i and when run j was held out (size of "
            "the intersection over size of the union); rows and columns are held-out runs, the number above "
            "is the mean off the diagonal, which is the paper's consistency."
        )
        counts = text(
            "Number of voxels selected in at least k folds. A flat line is a selection that does not depend "
            "on the run left out; a steep one changes with every fold."
        )
        first, second = (folder.figure(f"sub-{subject}_{name}.svg") for name in ("overlap", "selection"))
        parts += [
            figure(first, overlap, f"Overlap of folds, sub-{subject}", "medium"),
            _consistency_table(results, subject),
            figure(second, counts, f"Selection frequency, sub-{subject}"),
        ]
    return section("consistency", "Consistency of the selected voxels", *parts)


def _consistency_table(results: Results, subject: str) -> str:
    """Jaccard, its chance level, Kuncheva, Nogueira with interval."""
    names = ("Comparison", "Method", "Voxels", "Jaccard %", "by chance %", "Kuncheva", "Nogueira")
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
        "Jaccard by chance: random selections of the same sizes. Kuncheva's index (for unequal sizes: "
        "Cohen's kappa) and Nogueira's correct for chance: 0 is random, 1 identical. The interval treats "
        "folds as independent draws; they share training data, so it is too narrow rather than too wide. "
        "A dash stands where a method selects nothing, or every voxel, in most folds: no choice to agree on."
    )
    return table([top], body, caption)


def _index(cell_text: str) -> str:
    """A stability index with two decimals."""
    value = number(cell_text)
    return "–" if value != value else f"{value:.2f}"


def phantom_section(results: Results) -> str:
    """Phantom only: ranking of the planted voxels."""
    parts = [paragraph("A phantom knows which voxels differ between two categories; a real brain does not.")]
    for subject in results.subjects:
        caption = text(
            "PHANTOM. Precision (share of planted voxels among those ranked so far) against recall (share of "
            "planted voxels found), walking down the refit map: inclusion probability where a method has it, "
            "else the absolute weight. Voxels with equal values are taken together: past the last "
            "non-zero voxel of a sparse map, precision falls to chance. A sparse method is not meant to find "
            "all planted voxels, one of several that say the same is enough for it."
        )
        path = results.folder.figure(f"sub-{subject}_truth.svg")
        parts += [
            figure(path, caption, "Precision and recall of planted voxels"),
            _truth_table(results, subject),
        ]
    return section("truth", "Planted voxels of the phantom", *parts)


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
    head = ("Comparison", "Method", "first category recognised", "second category recognised")
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
    caption = text("Held-out volumes, each predicted by the fold that did not train on its run.")
    return section("confusion", "Confusion", table([top], body, caption))


def _recognised(
    counts: dict[tuple[str, str, str, str], int], of: tuple[str, str], true: str, pair: tuple[str, str]
) -> str:
    """How many volumes of a category were recognised as such."""
    right = counts[(*of, true, true)]
    total = sum(counts[(*of, true, said)] for said in pair)
    return f"{right} of {total} ({100 * right / max(total, 1):.1f} %)"
