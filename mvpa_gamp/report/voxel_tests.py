"""Which voxels, as tested: at a false-discovery rate, and those that carry information by themselves."""

from collections.abc import Mapping, Sequence

from mvpa_gamp.report.inference_rows import inference_table, named_cells, p_text, power_words
from mvpa_gamp.report.markup import cell, details, paragraph, text
from mvpa_gamp.report.words import tenths
from mvpa_gamp.results.files import MISSING, number
from mvpa_gamp.results.reader import Results

Rows = Sequence[Mapping[str, str]]


def selections(results: Results, rows: Rows) -> list[str]:
    """Voxels at the expected rate, and what simulated effects say about that rate."""
    mine = [row for row in rows if row["fdr_verdict"] != MISSING]
    body = [
        named_cells(results, row)
        + cell("–" if row["fdr_voxels"] == MISSING else row["fdr_voxels"])
        + cell(power_words(results, row), "name wrap")
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
        "The rate is estimated from fits to permuted labels of the same volumes (a labelling is one way to "
        "arrange the labels) and checked by simulation: effects of known size are added to (planted in) some "
        "voxels of the real volumes, with labels unrelated to the real ones, and false selections are "
        "counted. Power: the share of these voxels that is found; the size of an effect is the difference "
        "between the categories in standard deviations (SD) of a voxel. A neighbour with a correlation of "
        "0.5 or more with such a voxel is not counted as false."
    )
    return [
        "<h3>Which voxels are needed given the others, at which rate of false discoveries?</h3>",
        inference_table(("Comparison", "Method", "Voxels", "Power", "Check"), body, caption),
        details("Basis of each selection", f"<ul>{listed}</ul>"),
    ]


def _told(row: Mapping[str, str]) -> str:
    """The sentence on the selection and the one on its check, without saying a thing twice."""
    parts = (row.get("fdr_selection", MISSING), row["fdr_verdict"])
    return " ".join(part for part in dict.fromkeys(parts) if part != MISSING)


def informative(results: Results) -> list[str]:
    """Voxels that differ between the two categories, whatever a classifier needs."""
    level = results.summary.information["level"]
    body, cautions = [], []
    for subject in results.subjects:
        for row in results.table(subject, "information"):
            peak = tenths(number(row[f"peak_{axis}_mm"]) for axis in "xyz")
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
        "all voxels by step-down maxima over permutations, independent of the method (maps and mask "
        "desc-information, every voxel with its coordinates in the voxels table). A voxel that carries "
        "information is not always needed by the decoder: among redundant voxels, a sparse classifier gives "
        "its inclusion probability to one, and the easier the categories are to decode, the fewer it needs."
    )
    head = ("Comparison", "Voxels", "Peak x, y, z (mm)", "Correlation there", "smallest p")
    parts = [
        "<h3>Which voxels carry information about the labels?</h3>",
        inference_table(head, body, caption),
    ]
    return parts + [paragraph(caution) for caution in dict.fromkeys(cautions)]
