"""What the parts of a page on inference share: cells of their tables, p-values, counts and power in words."""

from collections.abc import Mapping

from mvpa_gamp.report.markup import cell, table
from mvpa_gamp.report.words import Compared, compared, compared_with
from mvpa_gamp.results.files import MISSING, number, read_tsv
from mvpa_gamp.results.reader import Results

ALPHA = 0.05
ENOUGH = 1000  # permutations of maps with family-wise p-values
_DIGITS = 1e-5  # relative rounding of the numbers in tables
_WORDS = ("Comparison", "Method", "Power", "Check", "May the curve be extrapolated?")  # columns of words


def named_cells(results: Results, row: Mapping[str, str]) -> str:
    """Comparison and method, the first cells of a line."""
    return cell(row["comparison"], "name") + cell(results.labels[row["method"]], "name")


def inference_table(head: tuple[str, ...], body: list[str], caption: str) -> str:
    """A table whose columns of words are set to the left."""
    top = "".join(cell(name, "name" if name in _WORDS else "", header=True) for name in head)
    return table([top], body, caption)


def p_text(value: str) -> str:
    """A p-value in two digits."""
    return f"{number(value):.2g}"


def voxels_carry(count: str) -> str:
    """How many voxels carry something."""
    return f"{count} voxel carries" if count == "1" else f"{count} voxels carry"


def power_words(results: Results, row: Mapping[str, str]) -> str:
    """Which share of simulated effects was found, by their size in standard deviations of a voxel."""
    shares = _powers(results, row)
    said = ", ".join(f"{100 * share:.0f} % of effects of {size:.2g} SD" for size, share in shares)
    return f"finds {said}" if said else "–"


def power_range(results: Results, row: Mapping[str, str]) -> str:
    """The same from the smallest to the largest effect, for a line that has little space."""
    found = _powers(results, row)
    if not found:
        return ""
    shares, sizes = ([f"{100 * share:.0f}" for _, share in found], [f"{size:.2g}" for size, _ in found])
    span, effects = (" to ".join(dict.fromkeys((each[0], each[-1]))) for each in (shares, sizes))
    return f"; power {span} % for effects of {effects} SD added to these data"


def _powers(results: Results, row: Mapping[str, str]) -> list[tuple[float, float]]:
    """Size and share found of the simulated effects, small ones first; none where none were tried."""
    of = (row["subject"], row["contrast"], row["method"])
    if "planted" not in results.inferred(*of):
        return []
    effects = read_tsv(results.folder.cell_table(*of, "planted"))
    return sorted((number(e["size"]), number(e["power"])) for e in effects if number(e["size"]))


def inference_row(results: Results, subject: str, contrast: str, method: str) -> Mapping[str, str]:
    """The row of inference.tsv of a method on a comparison."""
    wanted = (subject, contrast, method)
    rows = results.inference_rows()
    return next(row for row in rows if (row["subject"], row["contrast"], row["method"]) == wanted)


def selected_at_rate(row: Mapping[str, str]) -> bool:
    """Whether voxels were selected at a false-discovery rate."""
    return row.get("fdr_voxels", MISSING) != MISSING


def smallest_p(results: Results) -> float:
    """The smallest p-value of an accuracy that permutations and arrangements of the labels allow."""
    least = 1 / (1 + results.inference["permutations"])
    return max([least, *(number(row.get("smallest_p_value", "0")) for row in results.inference_rows()
                         if row["status"] == "ok")])  # fmt: skip


def floor_words(results: Results) -> str:
    """That p-values end above 1 / (1 + n), and why; "" where they do not."""
    least = smallest_p(results)
    if least <= (1 + _DIGITS) / (1 + results.inference["permutations"]):
        return ""
    ways = {row["labellings"] for row in results.inference_rows() if row["status"] == "ok"}
    if len(ways) > 1:
        return f"never below {least:.2g} because the labels can be arranged in so few ways"
    count = int(ways.pop())
    same = ", and exchanging the two categories leaves an accuracy as it is" if least * count > 1.5 else ""
    return f"never below {least:.2g} because the labels can be arranged in only {count:,} ways{same}"


def _permuted(results: Results) -> list[dict[str, str]]:
    """The rows of methods that were tested: others may have a learning curve alone."""
    return [row for row in results.inference_rows() if row.get("p_value", MISSING) != MISSING]


def all_compared(results: Results) -> str:
    """What the tests of the comparisons' accuracies compared with."""
    return compared_with(tests_of(results) or [(results.inference["permutations"], False)])


def tests_of(results: Results) -> list[Compared]:
    """What each test of a comparison's accuracy compared with, every kind once."""
    return sorted({compared(row) for row in _permuted(results)})


def few_permutations(results: Results) -> str:
    """What fewer than 1,000 permutations mean for family-wise p-values of voxels; "" where they are enough.

    Where all arrangements of the labels were used, more cannot be had.
    """
    n = results.inference.get("permutations") or 0
    rows = [row for sub in results.subjects if results.summary.information
            for row in results.table(sub, "information")]  # fmt: skip
    drawn = any(int(row["permutations"]) >= n for row in rows)
    if results.inference.get("max_inclusion"):
        drawn |= not all(compared(row)[1] for row in _permuted(results))
    if not 0 < n < ENOUGH or not drawn:
        return ""
    return (
        f"{n:,} permutations are few for family-wise p-values of voxels: which voxels are at p ≤ {ALPHA} "
        f"still changes with their number. Give {ENOUGH:,} for a map that you publish."
    )
