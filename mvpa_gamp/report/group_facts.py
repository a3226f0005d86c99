"""What is known about a comparison, all classes together or a cross in a group of participants."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.imaging.names import entity, is_surface_map
from mvpa_gamp.imaging.samples import PHANTOM_BANNER
from mvpa_gamp.report.backdrops import FAMILY_WISE, at_least, peak_of, read_map
from mvpa_gamp.report.facts import MOST_CLASSES, PREFERRED, Confusion, Files, Score, Stability, confused
from mvpa_gamp.report.words import Words, words_for
from mvpa_gamp.results.files import MISSING, number, read_json, read_tsv
from mvpa_gamp.results.names import ALL_CLASSES, ResultsFolder
from mvpa_gamp.results.tables import AVERAGE

# What maps show, by what was done over participants and their kind, in the order in which they are offered.
SHOWN = {
    ("SignFlipFwe", "t"): "t values where the family-wise p ≤ 0.05: where the patterns of participants agree",
    ("SignFlip", "logpfwe"): "−log10 of the family-wise p of the pattern over participants: 1.3 is p = 0.05",
    ("SignFlip", "t"): "t values",
    ("Mean", "pip"): "mean inclusion probability: how likely the classifiers need a voxel",
    ("Mean", "pattern"): "mean pattern over participants: where the signals of the two categories differ",
    ("Share", "selfreq"): "share of participants",
}
_OF_CLASS = "Class"  # before what was done with maps of a class against the others
Row = Mapping[str, str]
Maps = Mapping[tuple[str, str], Path]  # of a comparison and method, by the keys of SHOWN


@dataclass(frozen=True)
class Group:
    """The tables of a group's folder: ``study`` is group_summary.json, cells of the others are texts."""

    folder: ResultsFolder
    study: Mapping[str, Any]
    summary: Sequence[dict[str, str]]
    accuracy: Sequence[dict[str, str]]
    designs: Sequence[dict[str, str]] = ()  # all classes together, and crosses
    design_accuracy: Sequence[dict[str, str]] = ()

    @cached_property
    def w(self) -> Words:
        """What the data are called."""
        on_surface = bool(self.study["maps"]) and is_surface_map(self.folder.group_mask)
        return words_for(on_surface, self.study.get("unit") or "samples")

    @property
    def unfolded(self) -> bool:
        """Whether there is so little to show that all of it may be open."""
        return len(self.study["comparisons"]) == 1

    @property
    def banner(self) -> str | None:
        """The line that marks everything made from a phantom as simulated."""
        return PHANTOM_BANNER if self.study["phantom"] else None

    def side(self, contrast: str, positive: bool) -> str:
        """The category of positive or of negative values of a contrast's maps."""
        sides = self.study["sides"].get(contrast, ("the first category", "the second category"))
        return str(sides[0] if positive else sides[1])

    @property
    def labels(self) -> Mapping[str, str]:
        """Method name to the label of tables."""
        return self.study["methods"]

    @property
    def answering(self) -> str:
        """The method whose answers lead, settled before any result is seen."""
        return next(name for name in (*PREFERRED, *self.labels) if name in self.labels)

    def answers(self) -> list[dict[str, str]]:
        """The rows of group_summary.tsv that answer, one per comparison."""
        return [row for row in self.summary if row["method"] == self.answering]

    def maps(
        self, contrast: str, method: str | None = None, of_classes: bool = False
    ) -> dict[tuple[str, str, str], Path]:
        """The files of a comparison's maps by method, what they are (Mean, Share, SignFlip) and kind.

        ``of_classes``: those of a class against the others, of the same contrast name.
        """
        out = {}
        for each in self.study["maps"]:
            of = each["of"]
            asked = each["contrast"] == contrast and method in (None, each["method"])
            if asked and of.startswith(_OF_CLASS) == of_classes:
                path = self.folder.group_map(contrast, entity(each["method"]) + of, each["stat"])
                out[each["method"], of.removeprefix(_OF_CLASS), each["stat"]] = path
        return out

    def maps_of(self, contrast: str, method: str, of_classes: bool = False) -> dict[tuple[str, str], Path]:
        """The same of one method."""
        return {key[1:]: path for key, path in self.maps(contrast, method, of_classes).items()}

    @cached_property
    def _stability(self) -> dict[tuple[str, str], list[tuple[float, float]]]:
        """Consistency and its level by chance of every participant, by contrast and method."""
        names = ("consistency_percent", "chance_consistency_percent")
        out: dict[tuple[str, str], list[tuple[float, float]]] = {}
        for subject in self.study["subjects"]:
            path = ResultsFolder(self.folder.root / f"sub-{subject}").summary
            for row in read_tsv(path) if path.is_file() else ():
                shared, chance = (number(row[name]) for name in names)
                if not math.isnan(shared):
                    out.setdefault((row["contrast"], row["method"]), []).append((shared, chance))
        return out

    def stability(self, contrast: str, method: str) -> Stability:
        """The mean over participants of the consistency of their folds."""
        known = self._stability.get((contrast, method))
        return Stability(*(float(value) for value in np.mean(known, axis=0))) if known else Stability()


def read_group(root: Path) -> Group:
    """What the group level wrote."""
    folder = ResultsFolder(root)
    study = read_json(folder.group)
    paths = (folder.group_table(name) for name in ("summary", "accuracy", "designs", "designaccuracy"))
    tables = (read_tsv(path) if path.is_file() else [] for path in paths)  # not every group has designs
    return Group(ResultsFolder(root, study["entities"]), study, *tables)


@dataclass(frozen=True)
class Peak:
    """What maps of a group come to; ``at`` is None where there are none."""

    at: tuple[float, ...] | None = None  # of the largest |t| if it passed the test, else of the mean pattern
    higher: bool = True  # whether the pattern is positive there
    p: float = math.nan  # the smallest family-wise p
    voxels: int = 0  # with a family-wise p of at most 0.05
    most: float = math.nan  # largest share of participants that select one voxel


@dataclass(frozen=True)
class GroupFacts:
    """What is known about a comparison, all classes together or a cross, by the method that answers.

    ``row`` is that of group_summary.tsv or group_designs.tsv, ``contrast`` that of the maps.
    """

    row: Row
    contrast: str
    by: str
    score: Score
    low: float
    high: float
    p: float  # of the sign flips, NaN where there was no test
    holm: float
    least: float
    stability: Stability
    w: Words
    higher_for: str = ""  # the category whose signal is higher at the peak
    peak: Peak = field(default_factory=Peak)
    maps: Maps = field(default_factory=dict)
    files: Files = field(default_factory=lambda: Files({}))
    space: str = ""
    trained_on: str = ""  # of a cross
    alone: tuple[tuple[str, Row], ...] = ()  # of a cross: its comparisons by themselves, tested on first
    confusion: Confusion | None = None
    classes: Mapping[str, tuple[Maps, Peak]] = field(default_factory=dict)

    @property
    def tested(self) -> bool:
        """Whether there was a test across participants."""
        return not math.isnan(self.p)


def comparison_facts(group: Group, row: Row) -> GroupFacts:
    """The facts about a comparison."""
    return _with_maps(group, row, row["contrast"])


def _with_maps(group: Group, row: Row, contrast: str, **more: Any) -> GroupFacts:
    maps = group.maps_of(contrast, row["method"])
    peak = peak_of_maps(maps)
    files = Files({group.w.said(SHOWN[key]): path for key, path in ordered(maps, peak).items()})
    higher = group.side(contrast, peak.higher)
    return _facts(group, row, contrast, higher_for=higher, peak=peak, maps=maps, files=files, **more)


def _facts(group: Group, row: Row, contrast: str, **more: Any) -> GroupFacts:
    mean, se, chance, low, high = (
        number(row[f"{name}_percent"]) for name in ("accuracy", "accuracy_se", "chance", "lowest", "highest")
    )
    names = ("p_value", "p_holm", "smallest_p")
    p, holm, least = (number(row.get(f"signflip_{name}", MISSING)) for name in names)
    return GroupFacts(
        row,
        contrast,
        group.labels[row["method"]],
        Score(mean, se, chance, f"{row['participants']} participants"),
        low,
        high,
        p,
        holm if number(row.get("comparisons_tested", "1")) > 1 else math.nan,
        least,
        group.stability(contrast, row["method"]),
        group.w,
        space=group.study.get("space") or "",
        **more,
    )


def design_facts(group: Group) -> Iterator[GroupFacts]:
    """The facts about all classes together and about every cross, by the method that answers."""
    for row in answering_designs(group):
        yield _class_facts(group, row) if row["design"] == "classes" else _cross_facts(group, row)


def answering_designs(group: Group) -> list[dict[str, str]]:
    """The rows of group_designs.tsv that answer, one per design."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for row in group.designs:
        key = row["design"], row["comparison"]
        if key not in found or row["method"] == group.answering:
            found[key] = row
    return list(found.values())


def _class_facts(group: Group, row: Row) -> GroupFacts:
    """All classes together: classes whose pattern passed the test first, then those recognised best."""
    told = group.study.get("classes", {})
    counts = np.array(told.get("confusion", {}).get(row["method"], ()))
    maps = class_maps(group, row["method"])
    if counts.size:
        recall = dict(zip(told["names"], np.diagonal(counts) / counts.sum(axis=1), strict=True))
        maps = {name: maps[name] for name in sorted(maps, key=lambda name: -recall[name])}
    peaks = {name: peak_of_maps(paths) for name, paths in maps.items()}
    names = sorted(maps, key=lambda name: not peaks[name].voxels)
    files = {}
    for name in names:
        key, path = next(iter(ordered(maps[name], peaks[name]).items()))
        files[f"{name} against the others: {SHOWN[key].split(':')[0]}"] = path
    return _facts(
        group, row, AVERAGE, files=Files(files), classes={name: (maps[name], peaks[name]) for name in names},
        confusion=confused(told["names"], counts) if counts.size else None,
    )  # fmt: skip


def class_maps(group: Group, method: str) -> dict[str, Maps]:
    """The group's maps of each class against the others, by the name of the class."""
    told = group.study.get("classes", {})
    found = {
        name: group.maps_of(contrast, method, of_classes=True)
        for name, contrast in zip(told.get("names", ()), told.get("contrasts", ()), strict=False)
    }
    return {name: maps for name, maps in list(found.items())[:MOST_CLASSES] if maps}


def _cross_facts(group: Group, row: Row) -> GroupFacts:
    """A cross: maps are those of the classifier that was trained."""
    cross: Mapping[str, Any] = next(
        each for each in group.study["crosses"] if each["name"] == row["contrast"]
    )
    rows = {each["comparison"]: each for each in group.summary if each["method"] == row["method"]}
    labels = [cross[name] for name in ("tested_on", "trained_on") if cross[name] in rows]
    alone = tuple((label, rows[label]) for label in labels) if cross["tested_on"] in rows else ()
    trained = row["contrast"] if cross["own_maps"] else cross["contrast"]
    return _with_maps(group, row, trained, trained_on=cross["trained_on"], alone=alone)


def is_classes(facts: GroupFacts) -> bool:
    """Whether these are the facts about all classes together."""
    return facts.row["contrast"] == ALL_CLASSES


# ---- maps --------------------------------------------------------------------------------------------------


def peak_of_maps(paths: Maps) -> Peak:
    """Read a comparison's maps."""
    maps = {key: read_map(path) for key, path in paths.items()}
    tested, t = maps.get(("SignFlip", "logpfwe")), maps.get(("SignFlip", "t"))
    voxels = 0 if tested is None else passed(tested.data)
    lead = t if t is not None and voxels else maps.get(("Mean", "pattern"))
    if lead is None:
        return Peak()
    at, share = peak_of(lead.data), maps.get(("Share", "selfreq"))
    return Peak(
        tuple(float(value) for value in lead.coordinates(at)),
        bool(lead.data[at] >= 0),
        math.nan if tested is None else float(10 ** -tested.data.max()),
        voxels,
        math.nan if share is None else float(share.data.max()),
    )


def passed(tested: NDArray) -> int:
    """How many voxels of a map of -log10 p have a family-wise p of at most 0.05."""
    return int(at_least(tested, FAMILY_WISE).sum())


def ordered(paths: Maps, peak: Peak) -> dict[tuple[str, str], Path]:
    """The maps, the one to use first.

    As for a participant: what was tested if a voxel passed, else what classifiers need if participants
    selected voxels, else the pattern.
    """
    first = ("Mean", "pip") if peak.most > 0 else ("Mean", "pattern")
    if peak.voxels:
        first = ("SignFlipFwe", "t")
    return {key: paths[key] for key in sorted(SHOWN, key=lambda key: key != first) if key in paths}
