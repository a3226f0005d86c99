"""What is answered first: how accurate, how sure, which voxels, how stable, where, in which file."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mvpa_gamp.report.answer_box import p_words
from mvpa_gamp.report.volumes import peak_of, read_map
from mvpa_gamp.report.words import (
    Compared,
    chance_text,
    compared,
    compared_classes,
    compared_with,
    rounded,
    significant,
    voxels_text,
)
from mvpa_gamp.results.files import MISSING, number
from mvpa_gamp.results.reader import Results
from mvpa_gamp.results.tables import selects

# Which method answers is settled before any result is seen: choosing the most accurate one would make its
# accuracy look better than it is. The order is that of the measured table in the documentation.
PREFERRED = (
    "gamp-sbg-lr", "gamp-bg-lr", "gamp-bl-lr", "gamp-bg-pr", "gamp-bg-hl", "gamp-l1-lr", "gamp-l1-lr-cv",
    "l1-lr-cv",
)  # fmt: skip
_PEAKS = 3  # clusters named in the answer
NOBODY = (
    "No single voxel was selected: there are too few samples, or too many redundant voxels. The prediction "
    "uses all voxels together; read the accuracy and the pattern."
)
EVERYBODY = "This method uses every voxel and selects none."


@dataclass(frozen=True)
class Answer:
    """The facts about one comparison, by the method that answers for it."""

    method: str
    measure: str  # "correct", or what leads where categories are unequal
    accuracy: float
    se: float
    chance: float
    folds: int
    p: float  # NaN where nothing was permuted
    p_holm: float
    permutations: int
    smallest_p: float  # the smallest p-value that the test could have given
    voxels: int  # selected by the fit to all runs: those of the maps
    fold_voxels: float  # selected in a fold, on average; NaN of a single fold
    n_voxels: int
    shared: float  # percent of voxels that two folds share, NaN where there is no choice to agree on
    shared_by_chance: float
    peaks: tuple[str, ...]
    every: bool = False  # the permutations are all other arrangements of the labels

    @property
    def compared(self) -> Compared:
        """What the test compared with."""
        return self.permutations, self.every

    @property
    def least_p(self) -> float:
        """The smallest p-value by both limits: permutations, and arrangements of the labels."""
        return max(self.smallest_p, 1 / (1 + self.permutations))


def answering(results: Results, subject: str, contrast: str) -> str | None:
    """The method that answers for a comparison, None where every method failed."""
    finished = results.finished(subject, contrast)
    return next((name for name in (*PREFERRED, *finished) if name in finished), None)


def answer(results: Results, subject: str, contrast: str, clusters: list[dict[str, str]]) -> Answer | None:
    """The facts about a comparison, from the tables of the folder."""
    method = answering(results, subject, contrast)
    if method is None:
        return None
    row = results.row(subject, contrast, method)
    test = _test(results, contrast, method)
    mine = [each for each in clusters if (each["contrast"], each["method"]) == (contrast, method)]
    chose = selects(row)
    measure, *names = leading_columns(results)
    accuracy, se, chance = (float(row[name]) for name in names)
    return Answer(
        method=method,
        measure=measure,
        accuracy=accuracy,
        se=se,
        chance=chance,
        folds=int(row["folds"]),
        p=test["p"],
        p_holm=test["holm"],
        permutations=int(test["n"]),
        every=bool(test["every"]),
        smallest_p=test["smallest"],
        voxels=int(results.refit(subject, contrast, method)["voxels"]),
        fold_voxels=float(row["voxels"]),
        n_voxels=int(results.summary.data["n_voxels"]),
        shared=row["consistency_percent"] if chose else math.nan,
        shared_by_chance=row["chance_consistency_percent"] if chose else math.nan,
        peaks=tuple(place(each) for each in mine[:_PEAKS]),
    )


def leading_columns(results: Results) -> tuple[str, str, str, str]:
    """The word after a percentage, and the columns of the accuracy, its standard error and chance."""
    lead = results.leading_measure
    if lead.higher_is_better:
        return lead.name, lead.column, lead.spread, lead.chance
    return "correct", "accuracy_percent", "accuracy_se_percent", "chance_percent"


def _test(results: Results, contrast: str, method: str) -> dict[str, float]:
    """P-value, its Holm correction, permutations, if all, smallest possible p; NaN and 0 without a test."""
    for row in results.inference_rows():
        if (row["contrast"], row["method"]) == (contrast, method) and row.get("p_value", MISSING) != MISSING:
            n, every = compared(row)
            least = number(row.get("smallest_p_value", str(1 / (1 + n))))  # folders of earlier versions
            holm = number(row["p_value_holm"])
            return {"p": number(row["p_value"]), "holm": holm, "n": n, "every": every, "smallest": least}
    whole = results.classes.get("permutation")
    if whole and len(results.tasks) == 1:
        least = whole.get("smallest", 1 / (1 + whole["n"]))
        n, every = compared_classes(whole)
        return {"p": whole["pvalue"], "holm": math.nan, "n": n, "every": every, "smallest": least}
    return {"p": math.nan, "holm": math.nan, "n": 0, "every": False, "smallest": math.nan}


def place(cluster: Mapping[str, str]) -> str:
    """Coordinates of a cluster's peak, and its region where one is known."""
    at = place_words(number(cluster[f"peak_{axis}_mm"]) for axis in "xyz")
    region = cluster.get("region", MISSING)
    return at if region in (MISSING, "") else f"{at} ({region})"


def whole(value: float) -> str:
    """A coordinate in whole mm, halves upwards as in the viewer."""
    return str(rounded(value)).replace("-", "−")


def peak_words(path: Path) -> str:
    """Where the absolute value of a map is largest, x y z in whole mm."""
    found = read_map(path)
    return place_words(found.coordinates(peak_of(found.data)))


def place_words(place: Iterable[float]) -> str:
    """Coordinates in whole mm."""
    return " ".join(whole(float(value)) for value in place)


def sentence(found: Answer, fold_word: str) -> str:
    """The answer in one sentence, without the comparison's name."""
    return f"{correct(found)} ({_sure(found, fold_word)}); {_which(found)}{_where(found)}."


def correct(found: Answer) -> str:
    """How much is right."""
    return f"{found.accuracy:.1f} % {found.measure}"


def _sure(found: Answer, fold_word: str) -> str:
    chance = f"chance {chance_text(found.chance)} %"
    if found.permutations:
        return f"{chance}, {p_words(found.p)}, {compared_with([found.compared])}"
    if math.isnan(found.se):
        return f"{chance}, not tested"
    return f"{chance}, standard error {found.se:.1f} over {found.folds} {fold_word}s, not tested"


def _which(found: Answer) -> str:
    if found.voxels == 0:
        return "no single voxel was selected (too few samples, or too many redundant voxels)"
    if found.voxels == found.n_voxels:
        return "all voxels are used, none selected"
    chance = significant(found.shared_by_chance)
    shared = f", two folds share {found.shared:.0f} % of them (chance {chance} %)"
    shared = "" if math.isnan(found.shared) else shared
    if math.isnan(found.fold_voxels):  # a single fold
        return f"{found.voxels:,} voxel{'s' * (found.voxels != 1)} in the fit to all data"
    return f"{voxels_text(found.fold_voxels)} voxels per fold{shared}"


def _where(found: Answer) -> str:
    if not found.peaks or found.voxels == found.n_voxels:
        return ""
    clusters = "largest clusters at" if len(found.peaks) > 1 else "at"
    return f"; {clusters} {', '.join(found.peaks)} mm"


def facts(results: Results, row: Mapping[str, Any]) -> str:
    """Accuracy with its standard error, as tables show it."""
    _, column, spread, _ = leading_columns(results)
    return f"{row[column]:.1f} %" + ("" if math.isnan(row[spread]) else f" ± {row[spread]:.1f}")
