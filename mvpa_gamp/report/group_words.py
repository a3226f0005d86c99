"""The words and numbers of the group's table: one source for the terminal and the page."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from mvpa_gamp.decoding.group_tests import DRAWS, EXACT
from mvpa_gamp.report.processing_words import processing_words
from mvpa_gamp.report.words import chance_text, compared_with
from mvpa_gamp.results.files import number

ACCURACY = {
    "participants": "Participants",
    "accuracy": "Accuracy",
    "balanced": "balanced accuracy, 95 % interval",
    "flip": "p (sign flips)",
    "range": "lowest to highest",
    "chance": "by chance",
}
PREVALENCE = {
    "significant": "significant",
    "prevalence": "Prevalence",
    "interval": "95 % interval",
    "majority": "P(more than half)",
}
BOUND = {
    "bound": "smaller prevalences rejected",
    "minimum": "p (no participant above chance)",
}  # where every participant has a permutation test
ACCURACY_TABLES = {**ACCURACY, "student": "t-test"}
DESIGN = {
    **{name: ACCURACY[name] for name in ("participants", "accuracy", "chance", "balanced", "flip")},
    "significant": "significant",
}
DESIGN_CAPTION = (
    "Balanced accuracy, the mean over classes of the share correct, was tested across participants "
    "against 1 / number of classes, one-sided: p by flipping signs of participants; in brackets after Holm's "
    "correction over the crosses of a method. Significant: participants by their own permutation tests, of "
    "those who have one. A cross whose comparisons share a condition is not tested. By chance: always "
    "predicting the most frequent class or side."
)
ACCURACY_CAPTION = (
    "Accuracy: mean over participants of the mean over held-out runs ± its standard error across "
    "participants."
)
TESTS_CAPTION = (
    "Balanced accuracy (the mean of the accuracies within both categories, chance 50 %) was tested across "
    "participants, one-sided: p by flipping signs of participants (equal means ordered by the mean area "
    "under the ROC curve); in brackets after Holm's correction over the comparisons of a method."
)
STUDENT_CAPTION = (
    "One-sided t-test of balanced accuracy against chance; in brackets after Holm's correction, as for sign "
    "flips."
)
CHANCE_CAPTION = "By chance: always predicting the more frequent category."
_SPOKEN = ("participants", "accuracy", "flip", "significant", "prevalence", "interval")  # in the terminal
_UNKNOWN = "–"
_NAMED = 6  # comparisons that a text lists


def words(row: Mapping[str, str]) -> dict[str, str]:
    """What is said about a line of group_summary.tsv, by column."""
    low, high = number(row["prevalence_low"]), number(row["prevalence_high"])
    spread = number(row["accuracy_se_percent"])
    percents = {name: f"{number(row[f'{name}_percent']):.1f} %" for name in ("accuracy", "lowest", "highest")}
    return percents | {
        "participants": row["participants"],
        "chance": f"{chance_text(number(row['chance_percent']))} %",
        "range": f"{number(row['lowest_percent']):.1f} to {percents['highest']}",
        "balanced": _interval(row),
        "flip": _p_values(row, "signflip_p_value", "signflip_p_holm"),
        "student": _student(row),
        "minimum": _p_values(row, "minimum_p_value", "minimum_p_holm"),
        "accuracy": percents["accuracy"] + ("" if math.isnan(spread) else f" ± {spread:.1f}"),
        "significant": f"{row['significant']} of {row['tested']}",
        "prevalence": _share(row["prevalence"]),
        "interval": _UNKNOWN if math.isnan(low) else f"{low:.2f} to {high:.2f}",
        "majority": _share(row["majority_probability"]),
        "bound": _share(row["minimum_bound"]),
    }


def design_names(rows: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """What is written below each design in a figure, in as many lines as it needs."""
    return {row["comparison"]: row["comparison"].split(":")[0].replace(" → ", "\n→ ") for row in rows}


def _interval(row: Mapping[str, str]) -> str:
    """Balanced accuracy and its 95 % interval."""
    mean, low, high = (number(row.get(f"balanced{end}_percent", "n/a")) for end in ("", "_low", "_high"))
    if math.isnan(mean):
        return _UNKNOWN
    return f"{mean:.1f} %" + ("" if math.isnan(low) else f" ({low:.1f} to {high:.1f})")


def _p_values(row: Mapping[str, str], single: str, corrected: str) -> str:
    """A p-value, and in brackets after the correction where there is more than one comparison."""
    p, holm = number(row.get(single, "n/a")), number(row.get(corrected, "n/a"))
    if math.isnan(p):
        return _UNKNOWN
    many = number(row.get("comparisons_tested", "1")) > 1
    return f"{p:.2g}" + (f" ({holm:.2g})" if many else "")


def _student(row: Mapping[str, str]) -> str:
    """T value, degrees of freedom and p."""
    t = number(row.get("t_value", "n/a"))
    if math.isnan(t):
        return _UNKNOWN
    said = _p_values(row, "t_p_value", "t_p_holm")
    return f"t({int(row['participants']) - 1}) = {t:.2f}, p = {said}"


def difference_words(row: Mapping[str, str]) -> dict[str, str]:
    """What is said about a line of group_differences.tsv, by column."""
    mean, low, high = (number(row[name]) for name in ("difference_percent", "low_percent", "high_percent"))
    p, holm = number(row["signflip_p_value"]), number(row["signflip_p_holm"])
    return {
        "difference": f"{mean:+.1f} ({low:+.1f} to {high:+.1f})",
        "p": f"{p:.2g} ({holm:.2g}, {row['tests_in_family']} tests)",
        "student": f"t({int(row['participants']) - 1}) = {number(row['t_value']):.2f}, "
        f"p = {number(row['t_p_value']):.2g}",
    }


def _samples(study: Mapping[str, Any]) -> str:
    """What was analysed with which program, as far as it is the same for all."""
    made = " and ".join(f"{name} {version}" for name, version in (study.get("prepared_with") or {}).items())
    place = ", ".join(str(study[name]) for name in ("space", "resolution") if study.get(name))
    unit, steps, n = study.get("unit") or "samples", study.get("processing") or {}, len(study["subjects"])
    return (
        f"{unit[:1].upper()}{unit[1:]} of {n} participant{'s' * (n != 1)}"
        + (f" were preprocessed with {made} and" if made else " were")
        + f" decoded with mvpa_gamp {study['version']}"
        + (f" (space: {place})" if place else "")
        + f": {_compared(study['comparisons'])}. "
        + (f"{processing_words(steps, unit)} " if steps else "")
    )


def _classifiers(study: Mapping[str, Any]) -> str:
    """Classifiers and their cross-validation; folders of earlier versions do not know them."""
    word = study.get("cross_validation")
    each = "".join(
        f"{method['label']} ({method['short_reference']}): {method['description'].rstrip('.')}. "
        for method in study.get("described", ())
    )
    folds = (
        f"Accuracies are those of leave-one-{word}-out cross-validation within each participant: every "
        f"{word} was predicted by a classifier trained on the participant's other {word}s, and parameters "
        f"were tuned on the training {word}s only. "
    )
    return each + (folds if word else "")


def _compared(comparisons: Mapping[str, str]) -> str:
    """The comparisons by name, or how many there are."""
    names = list(comparisons.values())
    return ", ".join(names) if len(names) <= _NAMED else f"{len(names)} comparisons"


def methods_text(
    study: Mapping[str, Any], rows: Sequence[Mapping[str, str]], designs: Sequence[Mapping[str, str]] = ()
) -> str:
    """A paragraph for a paper about the group's statistics, from what was done."""
    n, alpha = len(study["subjects"]), study["alpha"]
    exact = "all sign patterns" if n <= EXACT else f"{DRAWS:,} random sign patterns"
    many = max((int(number(row.get("comparisons_tested", "1"))) for row in rows), default=1)
    holm = f", corrected over {many} comparisons (Holm, 1979)" if many > 1 else ""
    maps = {each["of"] for each in study["maps"] if "of" in each}
    said = _samples(study) + _classifiers(study)
    tests = [(n_compared, every) for n_compared, every in study.get("compared_with", ())]
    own = f"{study['test']} test: {compared_with(tests)}" if tests else study["test"]
    said += (
        f"Each participant's classifiers were tested ({own}) at a level of {alpha:g}, and "
        "the prevalence of above-chance decoding in the population was estimated from the number of "
        f"significant participants (Ince et al., 2021){_bound(rows)}. "
        f"Across the {n} participants balanced accuracy was compared with 50 % by a one-sided sign-flip test "
        f"({exact}, equal means ordered by the mean area under the ROC curve) and a one-sided t-test{holm}; "
        "intervals are 95 % intervals from the t distribution."
    )
    if designs:
        kinds = {"classes": "all classes together (against 1 / number of classes)", "cross": "cross-decoding"}
        told = " and ".join(words for kind, words in kinds.items() if kind in {r["design"] for r in designs})
        said += f" Balanced accuracies of {told} were tested in the same way."
    if "SignFlip" in maps:
        classes = ", each class against the others," if "ClassSignFlip" in maps else ""
        said += (
            " Activation patterns (Haufe et al., 2014) of all participants, each divided by its root mean "
            "square, were tested voxel by voxel with family-wise p-values from the largest |t| over voxels "
            f"under sign flips (Nichols & Holmes, 2002), separately for each comparison{classes} and method."
        )
    return said


def _bound(rows: Sequence[Mapping[str, str]]) -> str:
    """The minimum statistic, where every participant has a permutation test."""
    known = any(not math.isnan(number(row.get("minimum_p_value", "n/a"))) for row in rows)
    return ", with a lower bound from the minimum statistic (Allefeld et al., 2016)" if known else ""


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
