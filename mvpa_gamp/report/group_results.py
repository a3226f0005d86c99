"""Reading a group's folder back: all that its page may know."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mvpa_gamp.imaging.map_names import entity
from mvpa_gamp.imaging.samples import PHANTOM_BANNER
from mvpa_gamp.report.facts import PREFERRED
from mvpa_gamp.results.files import number, read_json, read_tsv
from mvpa_gamp.results.names import ResultsFolder

_OF_CLASS = "Class"  # before what was done with maps of a class against the others


@dataclass(frozen=True)
class Group:
    """The tables of a group's folder: ``study`` is group_summary.json, cells of the others are texts."""

    folder: ResultsFolder
    study: Mapping[str, Any]
    summary: Sequence[dict[str, str]]
    accuracy: Sequence[dict[str, str]]
    designs: Sequence[dict[str, str]] = ()  # all classes together, and crosses
    design_accuracy: Sequence[dict[str, str]] = ()

    @property
    def unfolded(self) -> bool:
        """Whether there is so little to show that all of it may be open."""
        return len(self.study["comparisons"]) == 1

    @property
    def banner(self) -> str | None:
        """The line that marks everything made from a phantom as simulated."""
        return PHANTOM_BANNER if self.study["phantom"] else None

    @property
    def sides(self) -> Mapping[str, Sequence[str]]:
        """The positive and the negative category by contrast; folders of earlier versions do not say."""
        return self.study.get("sides", {})

    def side(self, contrast: str, positive: bool) -> str:
        """The category of positive or of negative values of a contrast's maps."""
        sides = self.sides.get(contrast, ("the first category", "the second category"))
        return sides[0] if positive else sides[1]

    @property
    def answering(self) -> str:
        """The method whose answers lead, settled before any result is seen."""
        methods = list(self.study["methods"])
        return next(name for name in (*PREFERRED, *methods) if name in methods)

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
            of = each.get("of", "Mean")  # folders of earlier versions have means alone
            asked = each["contrast"] == contrast and method in (None, each["method"])
            if asked and of.startswith(_OF_CLASS) == of_classes:
                path = self.folder.group_map(contrast, entity(each["method"]) + of, each["stat"])
                out[each["method"], of.removeprefix(_OF_CLASS), each["stat"]] = path
        return out

    def maps_of(self, contrast: str, method: str, of_classes: bool = False) -> dict[tuple[str, str], Path]:
        """The same of one method."""
        return {key[1:]: path for key, path in self.maps(contrast, method, of_classes).items()}

    def consistency(self, contrast: str, method: str) -> tuple[float, float]:
        """Mean over participants of the consistency of their folds, and of its level by chance (percent)."""
        names = ("consistency_percent", "chance_consistency_percent")
        found = []
        for subject in self.study["subjects"]:
            path = ResultsFolder(self.folder.root / f"sub-{subject}").summary
            for row in read_tsv(path) if path.is_file() else ():
                if (row["contrast"], row["method"]) == (contrast, method):
                    found.append([number(row[name]) for name in names])
        known = [pair for pair in found if not math.isnan(pair[0])]
        mean = np.mean(known, axis=0) if known else (math.nan, math.nan)
        return float(mean[0]), float(mean[1])


def read_group(root: Path) -> Group:
    """What the group level wrote."""
    folder = ResultsFolder(root)
    study = read_json(folder.group)
    paths = (folder.group_table(name) for name in ("summary", "accuracy", "designs", "designaccuracy"))
    tables = (read_tsv(path) if path.is_file() else [] for path in paths)  # not every group has designs
    return Group(ResultsFolder(root, study.get("entities", {})), study, *tables)
