"""What is known about a comparison, all classes together or a cross of a participant: one record, read once.

Terminal, page and texts render these records; nothing of them is said twice.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.imaging.names import entity, is_there
from mvpa_gamp.report.backdrops import peak_of, read_map
from mvpa_gamp.report.words import Compared, Words, compared, compared_classes, peak_of_row, words_of
from mvpa_gamp.results.files import MISSING, number
from mvpa_gamp.results.reader import Results
from mvpa_gamp.results.tables import selects

# Which method answers is settled before any result is seen: choosing the most accurate one would make its
# accuracy look better than it is. The order is that of the measured table in the documentation.
PREFERRED = (
    "vamp-sbg", "gamp-sbg-lr", "vamp-bg", "gamp-bg-lr", "gamp-bl-lr", "gamp-bg-pr", "gamp-bg-hl",
    "gamp-l1-lr", "gamp-l1-lr-cv", "l1-lr-cv",
)  # fmt: skip
LIKELY = 0.5  # an inclusion probability
ENOUGH = 1000  # permutations of maps with family-wise p-values
MOST_CLASSES = 8  # classes whose maps are named in an answer
_PEAKS = 3  # places named in an answer


@dataclass(frozen=True)
class Score:
    """A mean score with its standard error, over what the mean was taken, and the level of chance.

    Shares are in percent; other scores are as they are. NaN is unknown.
    """

    mean: float
    se: float
    chance: float
    over: str  # "12 held-out runs"
    name: str = "correct"  # or what leads where categories are unequal, or the score of a decoder
    percent: bool = True


@dataclass(frozen=True)
class LabelTest:
    """A test by permutations: its p-value, the same after Holm's correction, the smallest possible one."""

    p: float
    holm: float  # NaN of a single test
    least: float
    compared: Compared
    labels: str = "the labels"

    @property
    def floor(self) -> float:
        """The smallest p-value by both limits: permutations, and arrangements of the labels."""
        return max(self.least, 1 / (1 + self.compared[0]))


@dataclass(frozen=True)
class Stability:
    """Percent of selected voxels that two folds share, by chance and with permuted labels; NaN is unknown."""

    shared: float = math.nan
    by_chance: float = math.nan
    permuted: float = math.nan


@dataclass(frozen=True)
class Selected:
    """The voxels that a classifier selects; ``tested`` are those that passed a test, with its name."""

    voxels: int  # by the fit to all data: those of the maps
    total: int
    per_fold: float = math.nan  # on average; NaN of a single fold
    pairs: int = 0  # of classes, of which at least one selects these voxels
    tested: tuple[tuple[str, str], ...] = ()

    @property
    def none(self) -> bool:
        """Whether no voxel is selected."""
        return self.voxels == 0

    @property
    def every(self) -> bool:
        """Whether the method uses all voxels and selects none."""
        return self.voxels == self.total


@dataclass(frozen=True)
class Place:
    """Where something is largest, in mm; in which region, or of which class."""

    at: tuple[float, ...]
    region: str = ""
    of: str = ""
    higher: bool = True  # whether the signal is higher there
    listed: bool = True  # in a table; else it is the largest value of a map


@dataclass(frozen=True)
class Files:
    """The maps to use, by what they show: the one to start with, then others.

    ``stat`` is the kind of the first one where it is the recommended map.
    """

    paths: Mapping[str, Path]
    stat: str = ""

    @property
    def meaning(self) -> str:
        """What the map to use first shows."""
        return next(iter(self.paths), "")

    @property
    def first(self) -> Path | None:
        """The map to use first."""
        return next(iter(self.paths.values()), None)

    @property
    def others(self) -> list[tuple[str, Path]]:
        """What the others show, in a few words."""
        return [(words.split(":")[0], path) for words, path in list(self.paths.items())[1:]]


@dataclass(frozen=True)
class Confusion:
    """Which two classes are confused most, and the classes with the highest and the lowest recall."""

    true: str
    predicted: str
    wrong: int  # samples of the true class that are predicted as the other; 0 if none is wrong
    of: int
    best: tuple[str, float]
    least: tuple[str, float]


@dataclass(frozen=True)
class Facts:
    """What is known about a comparison, all classes together or a cross, by the method that answers."""

    name: str  # as in names of files
    label: str
    method: str
    by: str  # label of the method
    score: Score
    test: LabelTest | None
    files: Files
    w: Words
    selected: Selected | None = None
    stability: Stability | None = None
    places: tuple[Place, ...] = ()
    where: str = "pattern"  # what has its peaks there: clusters (of selected voxels), or the pattern
    space: str = ""
    tests: int = 1  # comparisons, or crosses, for which p-values are corrected
    trained_on: str = ""  # of a cross: the comparison or runs whose classifier it is
    alone: tuple[tuple[str, float], ...] = ()  # of a cross: accuracy within the comparisons, tested on first
    confusion: Confusion | None = None
    caution: str = ""


def answering(results: Results, subject: str, contrast: str) -> str | None:
    """The method that answers for a comparison, None where every method failed."""
    finished = results.finished(subject, contrast)
    return next((name for name in (*PREFERRED, *finished) if name in finished), None)


def leading_columns(results: Results) -> tuple[str, str, str, str]:
    """The word after a percentage, and the columns of the accuracy, its standard error and chance."""
    lead = results.leading_measure
    if lead.higher_is_better:
        return lead.name, lead.column, lead.spread, lead.chance
    return "correct", "accuracy_percent", "accuracy_se_percent", "chance_percent"


def participant_facts(results: Results, subject: str) -> dict[str, Facts | None]:
    """The facts of every comparison, by contrast; None where every method failed."""
    return {task["contrast"]: comparison_facts(results, subject, task) for task in results.tasks}


def comparison_facts(results: Results, subject: str, task: Mapping[str, Any]) -> Facts | None:
    """The facts about a comparison, from the tables of the folder."""
    contrast = task["contrast"]
    method = answering(results, subject, contrast)
    if method is None:
        return None
    row, w = results.row(subject, contrast, method), words_of(results)
    name, *columns = leading_columns(results)
    mean, se, chance = (float(row[column]) for column in columns)
    total = int(results.summary.data["n_voxels"])
    voxels = int(results.refit(subject, contrast, method)["voxels"])
    selected = Selected(
        voxels, total, float(row["voxels"]), tested=_tested_voxels(results, subject, contrast, method)
    )
    clusters = [] if selected.every else _places(results, subject, "clusters", contrast, method)
    return Facts(
        contrast,
        task["label"],
        method,
        results.labels[method],
        Score(mean, se, chance, f"{int(row['folds'])} held-out {w.run}s", name),
        _test(results, contrast, method),
        maps_to_use(results, subject, contrast, method),
        w,
        selected,
        replace(stability_of(row), permuted=_permuted_consistency(results, contrast, method)),
        tuple(clusters or _pattern_places(results, subject, contrast, method)),
        "clusters" if clusters else "pattern",
        space_of(results),
        len(results.tasks),
    )


def stability_of(row: Mapping[str, Any]) -> Stability:
    """Consistency of a row of summary.tsv, where its method selects."""
    if not selects(row):
        return Stability()
    return Stability(row["consistency_percent"], row["chance_consistency_percent"])


def _permuted_consistency(results: Results, contrast: str, method: str) -> float:
    """Mean consistency with permuted labels, where a permutation test was made."""
    for row in results.inference_rows():
        if (row["contrast"], row["method"]) == (contrast, method):
            return number(row.get("null_consistency_percent", MISSING))
    return math.nan


def _test(results: Results, contrast: str, method: str) -> LabelTest | None:
    """The permutation test of a comparison; of the only one that of all classes says the same."""
    for row in results.inference_rows():
        if (row["contrast"], row["method"]) == (contrast, method) and row["p_value"] != MISSING:
            p, holm, least = (number(row[name]) for name in ("p_value", "p_value_holm", "smallest_p_value"))
            return LabelTest(p, holm, least, compared(row))
    return class_test(results) if len(results.tasks) == 1 else None


def class_test(results: Results) -> LabelTest | None:
    """The permutation test of all classes together, if there was one."""
    test = results.classes.get("permutation")
    return test and LabelTest(test["pvalue"], math.nan, test["smallest"], compared_classes(test))


def _tested_voxels(results: Results, subject: str, contrast: str, method: str) -> tuple[tuple[str, str], ...]:
    """How many voxels passed a test, and which."""
    out = []
    count = informative_voxels(results, subject, contrast)
    if count is not None:
        level = results.summary.information["level"]
        out.append((f"{count:,}", f"carry information about the labels (family-wise p ≤ {level:g})"))
    for row in results.inference_rows():
        mine = (row["subject"], row["contrast"], row["method"]) == (subject, contrast, method)
        if mine and row["fdr_voxels"] != MISSING:
            rate = f"{results.inference['fdr']:g}{power_range(results, row)}"
            out.append((row["fdr_voxels"], f"needed given the others (false-discovery rate {rate})"))
    return tuple(out)


def powers(results: Results, row: Mapping[str, str]) -> list[tuple[float, float]]:
    """Size and share found of the effects that a check planted, small ones first; none without a check."""
    of = (row["subject"], row["contrast"], row["method"])
    if "planted" not in results.inferred(*of):
        return []
    effects = results.read(results.folder.cell_table(*of, "planted"))
    return sorted((number(e["size"]), number(e["power"])) for e in effects if number(e["size"]))


def power_range(results: Results, row: Mapping[str, str]) -> str:
    """The same from the smallest to the largest effect, in words."""
    found = powers(results, row)
    if not found:
        return ""
    shares, sizes = ([f"{100 * share:.0f}" for _, share in found], [f"{size:.2g}" for size, _ in found])
    ranged, effects = (" to ".join(dict.fromkeys((each[0], each[-1]))) for each in (shares, sizes))
    return f"; power {ranged} % for effects of {effects} SD added to these data"


def informative_voxels(results: Results, subject: str, contrast: str) -> int | None:
    """How many voxels carry information about a comparison's labels; None where that was not tested."""
    if contrast not in results.summary.information.get("contrasts", ()):
        return None
    rows = results.table(subject, "information")
    return next(int(row["voxels"]) for row in rows if row["contrast"] == contrast)


def _places(results: Results, subject: str, table: str, contrast: str, method: str) -> list[Place]:
    """The first places of a method on a comparison in a table of clusters."""
    rows = results.table(subject, table)
    mine = [row for row in rows if (row["contrast"], row["method"]) == (contrast, method)]
    regions = (row.get("region", MISSING) for row in mine)
    return [
        Place(tuple(peak_of_row(row)), "" if region == MISSING else region)
        for row, region in zip(mine[:_PEAKS], regions, strict=False)
    ]


def _pattern_places(results: Results, subject: str, contrast: str, method: str) -> list[Place]:
    """Where the pattern is strongest: its clusters, known where no voxel was selected, or its peak."""
    known = results.summary.pattern_clusters and _places(
        results, subject, "patternclusters", contrast, method
    )
    if known:
        return known
    path = results.folder.statmap(subject, contrast, entity(method), "pattern")
    return [peak_place(path)] if is_there(path) else []


def peak_place(path: Path, of: str = "") -> Place:
    """Where the absolute value of a map is largest, and whether it is positive there."""
    found = read_map(path)
    at = peak_of(found.data)
    place = tuple(float(value) for value in found.coordinates(at))
    return Place(place, of=of, higher=bool(found.data[at] >= 0), listed=False)


def space_of(results: Results) -> str:
    """The space of coordinates."""
    data = results.summary.data
    return str(data.get("bids_space") or data["space"])


# ---- maps ------------------------------------------------------------------------------------------------

INFORMATION = "information map: where the two categories differ, family-wise p ≤ 0.05"
_MEANING = {
    "information": INFORMATION,
    "pip": "inclusion probability: how likely the classifier needs a voxel",
    "pattern": "pattern: where the signals of the two categories differ, not tested",
    "weight": "weights of the classifier",
}
_STATS = {
    "pattern": "pattern",
    "pip": "inclusion probability",
    "selfreq": "selection frequency",
    "weight": "all weights",
    "weightsd": "posterior deviation",
    "logpfwe": "family-wise p of the inclusion probability",
}
_TABLES = ("folds", "predictions", "jaccard", "permutations", "planted", "learningcurve")


def maps_to_use(results: Results, subject: str, contrast: str, method: str) -> Files:
    """The maps to use by what they show: the recommended one, then others; weights alone come last.

    Recommended is what was tested and found; else what the classifier needs; else the pattern.
    """
    folder, desc, w = results.folder, entity(method), words_of(results)
    first = {stat: folder.statmap(subject, contrast, desc, stat) for stat in ("pip", "pattern", "weight")}
    if informative_voxels(results, subject, contrast):
        first = {"information": folder.tested_information(subject, contrast)} | first
    if results.refit(subject, contrast, method)["voxels"] == "0" or _nowhere_likely(first["pip"]):
        del first["pip"]  # nowhere above one half
    stat, path = next(((stat, path) for stat, path in first.items() if is_there(path)), ("", None))
    lead = {} if path is None else {w.said(_MEANING[stat]): path}
    others = there({
        **dict(list(information_files(results, subject, contrast).items())[:2]),
        f"{w.voxels} at the FDR": folder.fdr_mask(subject, contrast, method),
        "pattern": folder.statmap(subject, contrast, desc, "pattern"),
        "inclusion probability": folder.statmap(subject, contrast, desc, "pip"),
        f"selected {w.voxels}": folder.selected_mask(subject, contrast, method),
        "their weights": folder.statmap(subject, contrast, f"{desc}Selected", "weight"),
    })  # fmt: skip
    paths = lead | {said: each for said, each in others.items() if each != path}
    return Files(paths, stat)


def _nowhere_likely(path: Path) -> bool:
    """Whether no voxel is more likely in than out: a budget selects some all the same."""
    return is_there(path) and float(np.nanmax(read_map(path).data, initial=0.0)) < LIKELY


def information_files(results: Results, subject: str, contrast: str) -> dict[str, Path]:
    """Which voxels carry information about the labels, whatever the method; none without permutations."""
    folder, w = results.folder, words_of(results)
    return there({
        "information map, where p ≤ 0.05": folder.tested_information(subject, contrast),
        f"information map of all {w.voxels}":
            folder.information(subject, contrast, "stat-corr_statmap.nii.gz"),
        "its mask (p ≤ 0.05)": folder.information(subject, contrast, "mask.nii.gz"),
        "its family-wise p": folder.information(subject, contrast, "stat-logpfwe_statmap.nii.gz"),
        f"its {w.voxels}": folder.information(subject, contrast, "voxels.tsv"),
    })  # fmt: skip


def method_files(results: Results, subject: str, contrast: str, method: str) -> dict[str, Path]:
    """Every map and table of a method on a comparison."""
    folder, desc, w = results.folder, entity(method), words_of(results)
    return there({
        f"{w.voxels} at the FDR": folder.fdr_mask(subject, contrast, method),
        **{words: folder.statmap(subject, contrast, desc, stat) for stat, words in _STATS.items()},
        f"selected {w.voxels}": folder.selected_mask(subject, contrast, method),
        f"weights of selected {w.voxels}": folder.statmap(subject, contrast, f"{desc}Selected", "weight"),
        **{name: folder.cell_table(subject, contrast, method, name) for name in _TABLES},
    })  # fmt: skip


def there(files: dict[str, Path]) -> dict[str, Path]:
    """Those of the files that exist."""
    return {words: path for words, path in files.items() if is_there(path)}


def confused(names: Iterable[str], counts: NDArray) -> Confusion:
    """The pair of classes confused most, the classes recognised best and least; counts (true, predicted)."""
    names, totals = list(names), counts.sum(axis=1)
    recall = np.where(totals > 0, np.diagonal(counts) / np.maximum(totals, 1), np.nan)
    best, least = ((names[k], 100 * float(recall[k])) for k in (np.nanargmax(recall), np.nanargmin(recall)))
    wrong = np.where(np.eye(len(names), dtype=bool), 0, counts)
    true, predicted = divmod(int(wrong.argmax()), len(names))
    most = int(wrong[true, predicted])
    return Confusion(names[true], names[predicted], most, int(totals[true]), best, least)


@dataclass(frozen=True)
class Page:
    """What the sections of a participant's page are made from; facts are read once."""

    results: Results

    @cached_property
    def w(self) -> Words:
        """What the data are called."""
        return words_of(self.results)

    @cached_property
    def facts(self) -> dict[str, dict[str, Facts | None]]:
        """The facts of every comparison, by subject and contrast."""
        return {subject: participant_facts(self.results, subject) for subject in self.results.subjects}

    def labels(self) -> dict[str, str]:
        """The label of every comparison, by contrast."""
        return {task["contrast"]: task["label"] for task in self.results.tasks}

    def who(self, subject: str) -> str:
        """The subject behind a name, where there are several."""
        return f", sub-{subject}" if len(self.results.subjects) > 1 else ""

    def anchor(self, subject: str, contrast: str) -> str:
        """Where a comparison is on the page."""
        one = len(self.results.subjects) == 1
        return f"comparison-{contrast}" if one else f"comparison-{subject}-{contrast}"
