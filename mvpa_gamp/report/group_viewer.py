"""The interactive viewer on a group's page: the maps of a comparison, or those of every class."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mvpa_gamp.report.group_places import Maps, Places, ordered
from mvpa_gamp.report.group_results import Group
from mvpa_gamp.report.html import Renderer
from mvpa_gamp.report.outlines import FAMILY_WISE, at_least
from mvpa_gamp.report.surface_viewer import MeshBackdrop
from mvpa_gamp.report.viewer import BUDGET
from mvpa_gamp.report.viewer_figure import (
    MapWords,
    ViewerMap,
    backdrop_of,
    seen_from_above,
    shared_grounds,
)
from mvpa_gamp.report.viewer_figure import (
    viewer_figure as viewer_data,
)
from mvpa_gamp.report.volumes import Backdrop

_GROUND = "ground-group"
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


def backdrop_of_group(group: Group) -> Backdrop | MeshBackdrop | None:
    """What lies under the maps of a group, if it has any."""
    if not group.study["maps"]:
        return None
    return backdrop_of(group.folder.group_background, group.folder.group_mask)


def comparison_viewer(
    group: Group, backdrop: Backdrop | MeshBackdrop | None, contrast: str, maps: Maps, places: Places
) -> str:
    """The maps of the answering method, the one to use first; nothing where there are none."""
    if backdrop is None or backdrop.is_too_fine or not maps:
        return ""
    paths = ordered(maps, places)
    roomy = int(backdrop.analysed.sum()) * len(group.study["comparisons"]) * len(_DENSE) <= BUDGET
    kept = [key for i, key in enumerate(paths) if i == 0 or roomy or key not in _DENSE]
    shown = [_shown(backdrop, paths[key], _MAPS[key], key) for key in kept]
    shown = [each for each in shown if np.any(each.volume)] or shown[:1]
    sides = group.side(contrast, True), group.side(contrast, False)
    label = f"Viewer of {group.study['comparisons'].get(contrast, contrast)}, maps of the group"
    place = places.at if places.voxels else None  # else where the map shown is largest
    return viewer_figure(_GROUND, backdrop, shown, sides, label, group.banner, place)


def class_viewer(group: Group, backdrop: Backdrop | MeshBackdrop | None, maps: Mapping[str, Maps]) -> str:
    """The pattern of every class, before it the places that passed the test."""
    if backdrop is None or backdrop.is_too_fine:
        return ""
    shown = []
    for name, paths in maps.items():
        for key, words in ((("SignFlipFwe", "t"), _TESTED), (("Mean", "pattern"), _PATTERN)):
            if key in paths:
                named = replace(words, name=f"{name}: {words.name}")
                shown.append(_shown(backdrop, paths[key], named, key))
    shown = [each for each in shown if np.any(each.volume)]
    if not shown:
        return ""
    sides = "that class", "the others"
    return viewer_figure(
        _GROUND, backdrop, shown, sides, "Viewer of all classes, maps of the group", group.banner
    )


def _shown(backdrop: Backdrop | MeshBackdrop, path: Path, words: MapWords, key: tuple[str, str]) -> ViewerMap:
    values = backdrop.read(path).data
    if key == ("SignFlip", "logpfwe"):
        values = np.where(at_least(values, FAMILY_WISE), values, 0.0)
    return ViewerMap(words, values, 1.0 if key in _SHARES else None)


def thumbnail(group: Group, backdrop: Backdrop | MeshBackdrop | None, maps: Maps) -> str:
    """The share of participants that select a voxel, from above, where there are several comparisons."""
    path = maps.get(("Share", "selfreq"))
    if path is None or group.unfolded or not isinstance(backdrop, Backdrop) or not path.is_file():
        return ""
    said = "Share of participants that select a voxel, from above"
    return seen_from_above(backdrop, backdrop.read(path).data, said, signed=False)


def group_grounds(group: Group) -> str:
    """What the viewers of the page share."""
    backdrop = backdrop_of_group(group)
    if backdrop is None:
        return ""
    return Renderer(group.folder.root, True).section("grounds", shared_grounds({_GROUND: backdrop}))


def viewer_figure(*given: Any) -> str:
    """The viewer as HTML."""
    from html import escape as text

    view = viewer_data(*given)
    stamp = f'<p class="stamp">{text(view["banner"])}</p>' if view["banner"] else ""
    return (
        f'<figure class="viewer" data-label="{text(view["label"])}" data-view="{text(view["data"])}">'
        f'<p class="quiet">The viewer needs JavaScript; the figure below does not.</p>{stamp}</figure>'
    )
