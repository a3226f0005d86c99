"""What inference found, for the terminal: a line per comparison and method."""

from mvpa_gamp.report.inference_rows import few_permutations, floor_words, p_text, voxels_carry
from mvpa_gamp.report.permutation_words import compared, compared_with
from mvpa_gamp.results.files import MISSING
from mvpa_gamp.results.reader import Results


def inference_lines(results: Results) -> str:
    """A line per comparison and method, then one per comparison whose voxels were tested."""
    asked = results.inference
    lines = []
    for row in results.inference_rows():
        if row["status"] != "ok":
            continue
        said = []
        if asked["permutations"]:
            floor = floor_words(results)
            said.append(
                f"p = {p_text(row['p_value'])} ({compared_with([compared(row)])}"
                f"{f'; {floor}' if floor else ''})"
            )
        if row["fdr_voxels"] != MISSING:
            check = row["fdr_verdict"].split(":")[0]
            said.append(f"{row['fdr_voxels']} voxels at FDR {asked['fdr']:g} ({check[0].lower()}{check[1:]})")
        elif row["fdr_verdict"] != MISSING:
            said.append(f"no voxels are reported at FDR {asked['fdr']:g} (the page gives the reason)")
        if row["curve"] != MISSING:
            said.append("learning curve measured")
        lines.append(f"{row['comparison']}, {results.labels[row['method']]}: {'; '.join(said)}")
    for subject in results.subjects if results.summary.information else ():
        lines += [
            f"{row['comparison']}: {voxels_carry(row['voxels'])} information about the labels (family-wise p "
            f"<= {results.summary.information['level']:g}, {_drawn(results, int(row['permutations']))})"
            for row in results.table(subject, "information")
        ]
    if few := few_permutations(results):
        lines.append(few.replace("≤", "<="))
    return "\n".join(lines)


def _drawn(results: Results, n: int) -> str:
    """How many label vectors a map of information was compared with."""
    return compared_with([(n, n < results.inference["permutations"])])
