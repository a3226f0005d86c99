"""The methods paragraph of a group's page, written from what the group level recorded, and its references."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from mvpa_gamp.decoding.group import DRAWS, EXACT
from mvpa_gamp.methods.fold_fits import ZINIEL_2015
from mvpa_gamp.report.group_facts import Group
from mvpa_gamp.report.methods_text import HAUFE
from mvpa_gamp.report.words import compared_with, processing_words
from mvpa_gamp.results.files import MISSING, number

_NAMED = 6  # comparisons that a text lists
_ALLEFELD = (
    "Allefeld C, Görgen K, Haynes JD (2016). Valid population inference for information-based imaging: "
    "from the second-level t-test to prevalence inference. NeuroImage 141, 378–392. "
    "doi:10.1016/j.neuroimage.2016.07.040"
)
_INCE = (
    "Ince RAA, Paton AT, Kay JW, Schyns PG (2021). Bayesian inference of population prevalence. eLife 10, "
    "e62461. doi:10.7554/eLife.62461"
)
_NICHOLS = (
    "Nichols TE, Holmes AP (2002). Nonparametric permutation tests for functional neuroimaging: a primer "
    "with examples. Human Brain Mapping 15, 1–25. doi:10.1002/hbm.1058"
)
_HOLM = (
    "Holm S (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal of "
    "Statistics 6, 65–70."
)


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
    """Classifiers and their cross-validation."""
    word = study["cross_validation"]
    each = "".join(
        f"{method['label']} ({method['short_reference']}): {method['description'].rstrip('.')}. "
        for method in study["described"]
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


def group_methods_text(group: Group) -> str:
    """A paragraph for a paper about the group's statistics, from what was done."""
    study, rows, designs = group.study, group.summary, group.designs
    n, alpha = len(study["subjects"]), study["alpha"]
    exact = "all sign patterns" if n <= EXACT else f"{DRAWS:,} random sign patterns"
    many = max((int(number(row.get("comparisons_tested", "1"))) for row in rows), default=1)
    holm = f", corrected over {many} comparisons (Holm, 1979)" if many > 1 else ""
    maps = {each["of"] for each in study["maps"]}
    said = _samples(study) + _classifiers(study)
    tests = [(n_compared, every) for n_compared, every in study["compared_with"]]
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


def group_references(group: Group) -> list[str]:
    """The works that the page and its methods text name."""
    described = [method["reference"] for method in group.study["described"]]
    permuted = any(row["minimum_p_value"] != MISSING for row in group.summary)
    tested = any(each["of"] == "SignFlip" for each in group.study["maps"])
    bound, maps = [_ALLEFELD] * permuted, [HAUFE, _NICHOLS] * tested
    return list(dict.fromkeys([ZINIEL_2015, *described, _INCE, *bound, *maps, _HOLM]))
