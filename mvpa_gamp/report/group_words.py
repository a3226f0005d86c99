"""The words and numbers of the group's table: one source for the terminal and the page."""

import math
from collections.abc import Mapping, Sequence

from mvpa_gamp.results.files import number

ACCURACY = {
    "participants": "Participants",
    "accuracy": "Accuracy",
    "lowest": "lowest",
    "highest": "highest",
    "chance": "by chance",
}
PREVALENCE = {
    "significant": "significant",
    "prevalence": "Prevalence",
    "interval": "95 % interval",
    "majority": "P(more than half)",
}
BOUND = {"bound": "smaller prevalences rejected"}  # where every participant has a permutation test
ACCURACY_CAPTION = (
    "Accuracy: mean over participants of the mean over held-out runs ± its standard error across "
    "participants."
)
CHANCE_CAPTION = "By chance: always saying the more frequent category."
_SPOKEN = ("participants", "accuracy", "significant", "prevalence", "interval")  # in the terminal
_UNKNOWN = "–"


def words(row: Mapping[str, str]) -> dict[str, str]:
    """What is said about a line of group_summary.tsv, by column."""
    low, high = number(row["prevalence_low"]), number(row["prevalence_high"])
    spread = number(row["accuracy_se_percent"])
    percents = {
        name: f"{number(row[f'{name}_percent']):.1f} %"
        for name in ("accuracy", "lowest", "highest", "chance")
    }
    return percents | {
        "participants": row["participants"],
        "accuracy": percents["accuracy"] + ("" if math.isnan(spread) else f" ± {spread:.1f}"),
        "significant": f"{row['significant']} of {row['tested']}",
        "prevalence": _share(row["prevalence"]),
        "interval": _UNKNOWN if math.isnan(low) else f"{low:.2f} to {high:.2f}",
        "majority": _share(row["majority_probability"]),
        "bound": _share(row["minimum_bound"]),
    }


def significance_caption(alpha: float, test: str) -> str:
    """What is counted as significant; ``test`` is the name of the test of each participant."""
    return (
        f"Significant: participants whose test ({test}) has p ≤ {alpha:g}, of those who can reach it. "
        "Prevalence: share of the population in which this experiment would find above-chance decoding, most "
        "probable value and 95 % highest-density interval."
    )


def group_lines(rows: Sequence[Mapping[str, str]], methods: Mapping[str, str]) -> str:
    """The group's table for the terminal; ``methods`` has their labels by name."""
    headings = ACCURACY | PREVALENCE
    table = [["Comparison", "Method", *(headings[name] for name in _SPOKEN)]]
    for row in rows:
        said = words(row)
        table.append([row["comparison"], methods[row["method"]], *(said[name] for name in _SPOKEN)])
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return "\n".join(
        "  ".join(
            text.ljust(width) if place < 2 else text.rjust(width)
            for place, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in table
    )


def _share(written: str) -> str:
    value = number(written)
    return _UNKNOWN if math.isnan(value) else f"{value:.2f}"
