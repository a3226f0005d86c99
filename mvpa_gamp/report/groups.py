"""The section of the page on sides that are several conditions: who they are, and their balance."""

from collections.abc import Mapping, Sequence
from typing import Any

from mvpa_gamp.report.markup import cell, headings, paragraph, section, table, text
from mvpa_gamp.results.reader import Results

_MANY_RUNS = 12  # beyond, a table shows the smallest and the largest run


def groups_section(results: Results) -> str:
    """The members of every group, and how many samples each gives in all and by run."""
    if not results.summary.members:
        return ""
    unit = results.summary.data.get("unit", "volumes")
    rows: Sequence[Mapping[str, Any]] = results.summary.members
    runs = list(rows[0]["by_run"])
    few = len(runs) <= _MANY_RUNS
    columns = [f"run {run}" for run in runs] if few else ["smallest run", "largest run"]
    body = []
    for row in rows:
        counts = list(row["by_run"].values())
        shown = counts if few else [min(counts), max(counts)]
        kind = "caution" if row["dominates"] else ""
        body.append(
            cell(row["comparison"], "name")
            + cell(row["side"], "name")
            + cell(row["member"], "name")
            + cell(row["rows"], kind)
            + "".join(cell(count, "quiet") for count in shown)
        )
    top = headings(("Comparison", "Side", "Condition", unit, *columns), left=3)
    caption = text(
        "A side of a comparison that is several conditions takes all their samples. Where one condition "
        "gives most of them, the classifier may have learnt that condition alone."
    )
    said = paragraph(*member_cautions(results)) if member_cautions(results) else ""
    return section("groups", "Grouped conditions", table([top], body, caption, "compact"), said)


def member_cautions(results: Results) -> list[str]:
    """A sentence about every side that one of its conditions dominates."""
    rows = results.summary.members
    out = []
    for row in rows:
        if row["dominates"]:
            same = [r["rows"] for r in rows if (r["contrast"], r["side"]) == (row["contrast"], row["side"])]
            share = 100 * row["rows"] / sum(same)
            out.append(
                f"{row['comparison']}: {row['member']} gives {share:.0f} % of the side {row['side']}, which "
                "is then mostly about this one condition. Compare it alone as well."
            )
    return out
