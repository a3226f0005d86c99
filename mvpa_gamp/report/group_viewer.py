"""The interactive viewer on a group's page: the maps of a comparison, or those of every class."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from mvpa_gamp.report.backdrops import Backdrop, MeshBackdrop
from mvpa_gamp.report.figures.panels import FAMILY_WISE, at_least
from mvpa_gamp.report.group_facts import Group, GroupFacts, Maps, ordered
from mvpa_gamp.report.viewer import BUDGET, MapWords, ViewerMap, backdrop_of, seen_from_above, viewer_figure

GROUND = "ground-group"
_PATTERN = MapWords(
    "mean pattern", "Mean over participants of how a voxel's signal changes with the decision.", 35, True
)
_TESTED = MapWords(
    "t where p ≤ 0.05", "t value of the patterns of participants, where their family-wise p ≤ 0.05.", 1, True
)
_MAPS = {
    ("SignFlipFwe", "t"): _TESTED,
    ("SignFlip", "logpfwe"): MapWords(
        "−log10 p",
        "−log10 of the family-wise p over participants, where p ≤ 0.05: 1.3 is 0.05, 2 is 0.01.",
        1,
    ),
    ("SignFlip", "t"): MapWords("t value", "t value of the pattern over participants.", 50, True),
    ("Mean", "pip"): MapWords(
        "mean inclusion probability", "How likely the classifiers need a voxel, mean over participants.", 20
    ),
    ("Mean", "pattern"): _PATTERN,
    ("Share", "selfreq"): MapWords(
        "share of participants", "Share of participants whose classifier selects the voxel.", 1
    ),
}
_SHARES = (("Mean", "pip"), ("Share", "selfreq"))  # whose scale ends at 1
_DENSE = (("SignFlip", "t"), ("Mean", "pattern"), ("Mean", "pip"))  # nowhere zero
Ground = Backdrop | MeshBackdrop | None


def backdrop_of_group(group: Group) -> Ground:
    """What lies under the maps of a group, if it has any."""
    if not group.study["maps"]:
        return None
    return backdrop_of(group.folder.group_background, group.folder.group_mask)


def comparison_viewer(group: Group, backdrop: Ground, facts: GroupFacts) -> dict[str, Any] | None:
    """The maps of the answering method, the one to use first; nothing where there are none."""
    contrast = facts.contrast
    if backdrop is None or backdrop.is_too_fine or not facts.maps:
        return None
    paths = ordered(facts.maps, facts.peak)
    roomy = int(backdrop.analysed.sum()) * len(group.study["comparisons"]) * len(_DENSE) <= BUDGET
    kept = [key for i, key in enumerate(paths) if i == 0 or roomy or key not in _DENSE]
    shown = [_shown(backdrop, paths[key], _MAPS[key], key) for key in kept]
    shown = [each for each in shown if np.any(each.volume)] or shown[:1]
    sides = group.side(contrast, True), group.side(contrast, False)
    label = f"Viewer of {group.study['comparisons'].get(contrast, contrast)}, maps of the group"
    place = facts.peak.at if facts.peak.voxels else None  # else where the map shown is largest
    return viewer_figure(GROUND, backdrop, shown, sides, label, group.banner, place)


def class_viewer(group: Group, backdrop: Ground, maps: Mapping[str, Maps]) -> dict[str, Any] | None:
    """The pattern of every class, before it the places that passed the test."""
    if backdrop is None or backdrop.is_too_fine:
        return None
    shown = []
    for name, paths in maps.items():
        for key, words in ((("SignFlipFwe", "t"), _TESTED), (("Mean", "pattern"), _PATTERN)):
            if key in paths:
                named = replace(words, name=f"{name}: {words.name}")
                shown.append(_shown(backdrop, paths[key], named, key))
    shown = [each for each in shown if np.any(each.volume)]
    if not shown:
        return None
    sides = "that class", "the others"
    label = "Viewer of all classes, maps of the group"
    return viewer_figure(GROUND, backdrop, shown, sides, label, group.banner)


def _shown(backdrop: Backdrop | MeshBackdrop, path: Path, words: MapWords, key: tuple[str, str]) -> ViewerMap:
    values = backdrop.read(path).data
    if key == ("SignFlip", "logpfwe"):
        values = np.where(at_least(values, FAMILY_WISE), values, 0.0)
    return ViewerMap(words, values, 1.0 if key in _SHARES else None)


def thumbnail(group: Group, backdrop: Ground, facts: GroupFacts) -> Markup | None:
    """The share of participants that select a voxel, from above, where there are several comparisons."""
    path = facts.maps.get(("Share", "selfreq"))
    if path is None or group.unfolded or not isinstance(backdrop, Backdrop) or not path.is_file():
        return None
    said = "Share of participants that select a voxel, from above"
    return seen_from_above(backdrop, backdrop.read(path).data, said, signed=False)
