"""Sentences of the methods text on designs: groups, many classes, cross-decoding."""

from mvpa_gamp.report.words import compared_classes, compared_with
from mvpa_gamp.results.reader import Results

HASTIE = (
    "Hastie T, Tibshirani R (1998). Classification by pairwise coupling. Annals of Statistics 26, 451–471. "
    "doi:10.1214/aos/1028144844"
)


def design_paragraphs(results: Results) -> list[str]:
    """A paragraph on what goes beyond pairs of single conditions, if anything does."""
    said = [*_groups(results), *_classes(results), *_crosses(results)]
    return [" ".join(said)] if said else []


def _groups(results: Results) -> list[str]:
    named = [
        f"{side} ({', '.join(members)})"
        for task in results.tasks
        for side, members in task.get("members", {}).items()
        if members != [side]
    ]
    return [f"Grouped conditions: {'; '.join(dict.fromkeys(named))}."] if named else []


def _classes(results: Results) -> list[str]:
    if not results.classes or results.summary.settings:  # a decoder's page says so elsewhere
        return []
    names = results.classes["names"]
    out = [
        f"All {len(names)} classes ({', '.join(names)}) were decoded together: probabilities of all pairs "
        "were combined into class probabilities (Hastie & Tibshirani, 1998); for methods without "
        "probabilities, "
        "pairs voted."
    ]
    if test := results.classes.get("permutation"):
        out.append(
            f"Its accuracy was compared with that of {compared_with([compared_classes(test)])} within runs."
        )
    return out


def _crosses(results: Results) -> list[str]:
    if not results.cross:
        return []
    labels = "; ".join(each["label"] for each in results.cross["crosses"])
    out = [
        f"Cross-decoding (trained → tested): {labels}. A tested run was never part of the training volumes "
        "of either comparison."
    ]
    if any(row["p_value"] != "n/a" for row in results.cross_rows()):
        out.append(
            "Its accuracy was compared with that after permutations of the training labels within runs, the "
            "test labels being kept."
        )
    return out
