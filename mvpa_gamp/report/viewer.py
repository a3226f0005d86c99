"""The interactive viewers of pages: volumes as small images, which a script draws on demand."""

import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from matplotlib.colors import Colormap
from numpy.typing import NDArray
from PIL import Image

from mvpa_gamp.imaging.names import entity, in_vertices, is_surface_map, is_there
from mvpa_gamp.report.backdrops import FAMILY_WISE, Backdrop, MeshBackdrop, at_least, peak_of, read_backdrop
from mvpa_gamp.report.facts import Facts, Page
from mvpa_gamp.report.group_facts import Group, GroupFacts, Maps, ordered
from mvpa_gamp.report.html import data_url
from mvpa_gamp.report.style import SHARES, WEIGHTS
from mvpa_gamp.results.reader import Results

_THUMB = 56  # pixels
_SHADOW = (0.55, 0.6, 0.64, 0.35)  # red, green, blue and opacity: seen on light and on dark pages


@dataclass(frozen=True)
class MapWords:
    """What the menu and the line below it say of a map, and how it is shown.

    ``start`` is the threshold at the start in percent of the scale, ``sign`` stands before the name of a
    category; a map that ``fades`` is pale where the method selected nothing.
    """

    name: str
    about: str
    start: int
    signed: bool = False
    sign: str = "signal is higher for"
    fades: bool = False


@dataclass(frozen=True)
class ViewerMap:
    """A map of a viewer; ``top`` is the end of its scale, by default the largest value."""

    words: MapWords
    volume: NDArray
    top: float | None = None

    def view(self, on_surface: bool) -> dict[str, Any]:
        """What the script is told: words, scale, image."""
        words = self.words
        top = (float(np.abs(self.volume).max()) or 1.0) if self.top is None else self.top
        steps = 128 + np.rint(127 * self.volume / top) if words.signed else np.rint(255 * self.volume / top)
        return {
            "name": words.name, "about": in_vertices(words.about) if on_surface else words.about,
            "sign": words.sign, "signed": words.signed, "fades": words.fades, "top": top,
            "start": words.start, "image": mosaic(steps),
        }  # fmt: skip


def viewer_figure(
    ground: str, backdrop: Backdrop | MeshBackdrop, maps: Sequence[ViewerMap], sides: tuple[str, str],
    label: str, banner: str | None, place: Sequence[float] | None = None, selected: NDArray | None = None,
) -> dict[str, Any]:  # fmt: skip
    """The place of a viewer, with its volumes; empty (the static figure stays) until the script opens it.

    It opens at ``place`` (mm) on ``ground`` (an :func:`ground_of`), or at the largest value of its first map.
    ``sides`` are the categories of positive and negative values.
    """
    peak = peak_of(maps[0].volume) if place is None else backdrop.nearest(place)
    view = {
        "ground": ground,
        "shape": backdrop.shape,
        "at": peak,
        **backdrop.geometry(peak),
        "positive": sides[0],
        "negative": sides[1],
        "maps": [each.view(isinstance(backdrop, MeshBackdrop)) for each in maps],
        "selected": None if selected is None else mosaic(np.where(selected, 255, 0)),
    }
    return {"label": label, "data": json.dumps(view), "banner": banner}


def backdrop_of(background: Path, mask: Path) -> Backdrop | MeshBackdrop:
    """What lies under the maps of a viewer."""
    return MeshBackdrop(background, mask) if is_surface_map(mask) else read_backdrop(background, mask)


def shared_grounds(backdrops: Mapping[str, Backdrop | MeshBackdrop]) -> dict[str, Any]:
    """Mean volumes or meshes by name, and the two scales of colour, once for all viewers of a page."""
    both = {"weights": colours(WEIGHTS), "shares": colours(SHARES)}
    known = [
        {"name": name, "image": mosaic(each.shade()),
         "mesh": each.mesh() if isinstance(each, MeshBackdrop) else None}
        for name, each in backdrops.items() if not each.is_too_fine
    ]  # fmt: skip
    return {"grounds": known, "scales": json.dumps(both)}


def seen_from_above(backdrop: Backdrop, weights: NDArray, words: str, signed: bool = True) -> Markup:
    """A small picture of the values that are not zero; signed ones around zero, others from 0 to 1."""
    axis = int(np.argmin(weights.shape)) if min(weights.shape) == 1 else 2
    deepest = np.expand_dims(np.abs(weights).argmax(axis=axis), axis)
    seen = np.take_along_axis(weights, deepest, axis=axis).squeeze(axis)
    top = float(np.abs(seen).max()) or 1.0
    shades = WEIGHTS(0.5 + 0.5 * seen / top) if signed else SHARES(seen)
    picture = np.where(seen[..., None] != 0, shades, 0.0)
    shadow = backdrop.analysed.any(axis=axis) & (seen == 0)
    picture[shadow] = _SHADOW
    width, height = np.delete(backdrop.mean.zooms, axis) * seen.shape
    size = (max(1, round(_THUMB * width / height)), _THUMB)
    pixels = Image.fromarray(np.rint(255 * picture.transpose(1, 0, 2)[::-1]).astype(np.uint8), "RGBA")
    buffer = io.BytesIO()
    pixels.resize(size, Image.Resampling.NEAREST).save(buffer, format="PNG", optimize=True)
    source = data_url(buffer.getvalue(), "image/png")
    image = Markup('<img class="thumb" src="{}" alt="{}" width="{}" height="{}">')
    return image.format(source, words, size[0], _THUMB)


def mosaic(volume: NDArray) -> str:
    """A volume of values 0..255 as a PNG of its axial slices, side by side in as many rows as columns."""
    nx, ny, nz = volume.shape
    columns = math.ceil(math.sqrt(nz))
    rows = math.ceil(nz / columns)
    sheet = np.zeros((rows * ny, columns * nx), dtype=np.uint8)
    for z in range(nz):
        row, column = divmod(z, columns)
        sheet[row * ny : (row + 1) * ny, column * nx : (column + 1) * nx] = volume[:, :, z].T
    buffer = io.BytesIO()
    Image.fromarray(sheet).save(buffer, format="PNG", optimize=True)
    return data_url(buffer.getvalue(), "image/png")


def colours(scale: Colormap) -> list[list[int]]:
    """256 colours of a scale as red, green, blue."""
    return [[round(255 * part) for part in colour[:3]] for colour in scale(np.linspace(0, 1, 256)).tolist()]


# Maps in the order of the menu (before all of them the recommended one).
_MAPS = {
    "information": MapWords(
        "information", "Correlation of a voxel's signal with the labels, where family-wise p ≤ 0.05.", 1, True
    ),
    "pip": MapWords(
        "inclusion probability",
        "Probability that the classifier needs a voxel, 0 (yellow) to 1 (dark).",
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
    said = {stat: _MAPS[stat] for stat in known}
    if selected is not None and "pip" in said:  # so low that all that is selected is seen
        least = math.floor(100 * float(volumes["pip"][selected].min()))
        said["pip"] = replace(said["pip"], start=min(said["pip"].start, least))
    maps = [ViewerMap(said[stat], volumes[stat], None if said[stat].signed else 1.0) for stat in known]
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


GROUND = "ground-group"
_PATTERN = MapWords(
    "mean pattern", "Mean over participants of how a voxel's signal changes with the decision.", 35, True
)
_TESTED = MapWords(
    "t where p ≤ 0.05", "t value of the patterns of participants, where their family-wise p ≤ 0.05.", 1, True
)
_GROUP_MAPS = {
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
    shown = [_shown(backdrop, paths[key], _GROUP_MAPS[key], key) for key in kept]
    shown = [each for each in shown if np.any(each.volume)] or shown[:1]
    sides = group.side(contrast, True), group.side(contrast, False)
    label = f"Viewer of {group.study['comparisons'].get(contrast, contrast)}, maps of the group"
    place = facts.peak.at if facts.peak.voxels else None  # else where the map shown is largest
    return viewer_figure(GROUND, backdrop, shown, sides, label, group.banner, place)


def group_class_viewer(group: Group, backdrop: Ground, maps: Mapping[str, Maps]) -> dict[str, Any] | None:
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


def group_thumbnail(group: Group, backdrop: Ground, facts: GroupFacts) -> Markup | None:
    """The share of participants that select a voxel, from above, where there are several comparisons."""
    path = facts.maps.get(("Share", "selfreq"))
    if path is None or group.unfolded or not isinstance(backdrop, Backdrop) or not path.is_file():
        return None
    said = "Share of participants that select a voxel, from above"
    return seen_from_above(backdrop, backdrop.read(path).data, said, signed=False)
