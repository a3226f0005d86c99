"""The interactive viewer of a participant's comparison: which maps it offers, and which one first."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from mvpa_gamp.imaging.map_names import entity
from mvpa_gamp.imaging.surface_names import is_there
from mvpa_gamp.report.facts import Facts, Page
from mvpa_gamp.report.surface_viewer import MeshBackdrop
from mvpa_gamp.report.viewer_figure import (
    MapWords,
    ViewerMap,
    backdrop_of,
    seen_from_above,
    shared_grounds,
    viewer_figure,
)
from mvpa_gamp.report.volumes import Backdrop, read_backdrop
from mvpa_gamp.results.reader import Results

# Maps in the order of the menu (before all of them the recommended one).
_MAPS = {
    "information": MapWords(
        "information", "Correlation of a voxel's signal with the labels, where family-wise p ≤ 0.05.", 1, True
    ),
    "pip": MapWords(
        "inclusion probability",
        "Probability that the classifier needs a voxel, 0 (yellow) to 1 (dark); selected above 0.5.",
        50,
    ),
    "pattern": MapWords(
        "pattern",
        "How a voxel's signal changes with the decision of the classifier.",
        35,
        signed=True,
        fades=True,
    ),
    "selfreq": MapWords(
        "selection frequency",
        "Share of the folds in which a voxel was selected, from 0 (yellow) to 1 (dark).",
        1,
    ),
    "weight": MapWords(
        "weight",
        "Weight of a voxel in the classifier, which is not its activation.",
        5,
        signed=True,
        sign="counts in favour of",
        fades=True,
    ),
}
_CLASS_MAPS = ("pattern", "pip")
# Voxels of all viewers of a page together, about a byte each; above, maps that are nowhere zero are left to
# the files, so that the page of 28 comparisons stays below 15 MB.
BUDGET = 6_000_000


def viewer(results: Results, subject: str, task: Mapping[str, Any], facts: Facts) -> dict[str, Any] | None:
    """The viewer of a comparison; it opens at the place which the answer names."""
    method = facts.method
    backdrop = _backdrop(results, subject)
    if backdrop.is_too_fine:
        return None  # the figure below shows the maps
    stats = results.stats(subject, task["contrast"], method)
    mask = results.folder.selected_mask(subject, task["contrast"], method)
    selected = backdrop.read(mask).data > 0 if is_there(mask) else None
    room = _room(results, backdrop)
    volumes = {
        stat: backdrop.read(results.folder.statmap(subject, task["contrast"], entity(method), stat)).data
        for stat in _MAPS
        if stat in stats and room.get(stat, True)
    } | _information(results, subject, task["contrast"], backdrop)
    known = [stat for stat in _MAPS if stat in volumes]
    known.sort(key=lambda stat: stat != facts.files.stat)
    if selected is not None and not selected.any():  # nothing is faded
        selected = None
    maps = [ViewerMap(_MAPS[stat], volumes[stat], None if _MAPS[stat].signed else 1.0) for stat in known]
    label = f"Viewer of {task['label']}, {results.labels[method]}"
    sides = task["positive"], task["negative"]
    place = facts.places[0].at if facts.places and facts.places[0].listed else None
    return viewer_figure(f"ground-{subject}", backdrop, maps, sides, label, results.banner, place, selected)


def class_viewer(results: Results, method: str) -> dict[str, Any] | None:
    """The maps of each class against the others, patterns before what the classifiers need."""
    subject, maps = results.subjects[0], results.classes.get("maps") or {}
    backdrop = _backdrop(results, subject)
    if backdrop.is_too_fine or not maps:
        return None
    shown, room = [], BUDGET
    for stat in (stat for stat in _CLASS_MAPS if stat in maps["stats"]):
        for name, contrast in zip(results.classes["names"], maps["contrasts"], strict=True):
            path = results.folder.statmap(subject, contrast, f"{entity(method)}Class", stat)
            room -= int(backdrop.analysed.sum())
            if room > 0 and is_there(path):
                words = replace(_MAPS[stat], name=f"{name}: {_MAPS[stat].name}", fades=False)
                shown.append(ViewerMap(words, backdrop.read(path).data, None if words.signed else 1.0))
    if not shown:
        return None
    label, sides = f"Viewer of all classes, {results.labels[method]}", ("that class", "the others")
    return viewer_figure(f"ground-{subject}", backdrop, shown, sides, label, results.banner)


def thumbnail(results: Results, subject: str, facts: Facts) -> Markup | None:
    """The selected voxels from above on the outline of the analysed ones: where, at a glance."""
    path = results.folder.statmap(subject, facts.name, f"{entity(facts.method)}Selected", "weight")
    if not path.is_file():
        return None
    backdrop = read_backdrop(results.folder.background(subject), results.folder.mask(subject))
    return seen_from_above(backdrop, backdrop.read(path).data, "Selected voxels from above")


def _room(results: Results, backdrop: Backdrop | MeshBackdrop) -> dict[str, bool]:
    """Whether the page has room for the maps that are nowhere zero, the inclusion probability first."""
    voxels = int(backdrop.analysed.sum()) * len(results.shown.tasks)
    return {"pip": voxels <= BUDGET, "pattern": 2 * voxels <= BUDGET}


def grounds(page: Page) -> dict[str, Any]:
    """What all viewers of a page share: the mean volume of every subject, and the scales of colour."""
    known = {f"ground-{subject}": _backdrop(page.results, subject) for subject in page.results.subjects}
    return shared_grounds(known)


def _backdrop(results: Results, subject: str) -> Backdrop | MeshBackdrop:
    return backdrop_of(results.folder.background(subject), results.folder.mask(subject))


def _information(
    results: Results, subject: str, contrast: str, backdrop: Backdrop | MeshBackdrop
) -> dict[str, NDArray]:
    """Correlation with the labels where its family-wise p is at most 0.05, if that was tested."""
    if contrast not in results.summary.information.get("contrasts", ()):
        return {}
    values, inside = (
        backdrop.read(results.folder.information(subject, contrast, ending)).data
        for ending in ("stat-corr_statmap.nii.gz", "mask.nii.gz")
    )
    return {"information": np.where(inside > 0, values, 0.0)}
