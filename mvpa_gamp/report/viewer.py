"""The interactive viewer of a comparison: volumes as small images, which the page's script draws on demand.

A volume is an 8-bit grey PNG, a mosaic of its axial slices: signed maps have 128 for zero and 127 steps to
either side up to the largest value, shares run from 0 to 255. Colours and threshold are the script's.
"""

import io
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.colors import Colormap
from numpy.typing import NDArray
from PIL import Image

from mvpa_gamp.imaging.map_names import entity
from mvpa_gamp.imaging.surface_names import in_vertices, is_there
from mvpa_gamp.report.markup import data_url, text
from mvpa_gamp.report.recommended import recommended_map
from mvpa_gamp.report.style import SHARES, WEIGHTS
from mvpa_gamp.report.surface_viewer import MeshBackdrop
from mvpa_gamp.report.volumes import Backdrop, peak_of, read_backdrop
from mvpa_gamp.results.reader import Results

# Maps in the order of the menu (before all of them the recommended one): their names, and the threshold at
# the start in percent of the scale.
_MAPS = {
    "information": ("information", 1),
    "pip": ("inclusion probability", 50),
    "pattern": ("pattern", 35),
    "selfreq": ("selection frequency", 1),
    "weight": ("weight", 5),
}
_ABOUT = {
    "information": "Correlation of a voxel's signal with the labels, where family-wise p ≤ 0.05.",
    "pip": "Probability that the classifier needs a voxel, 0 (yellow) to 1 (dark); selected above 0.5.",
    "pattern": "How a voxel's signal changes with the decision of the classifier.",
    "selfreq": "Share of the folds in which a voxel was selected, from 0 (yellow) to 1 (dark).",
    "weight": "Weight of a voxel in the classifier, which is not its activation.",
}
_SIGNS = {"weight": "counts in favour of"}  # of signed maps, before the name of a category
_HIGHER = "signal is higher for"
_SIGNED = ("weight", "information", "pattern")
_FADED = ("weight", "pattern")  # where the method selected nothing
_THUMB = 56  # pixels
_SHADOW = (0.55, 0.6, 0.64, 0.35)  # red, green, blue and opacity: seen on light and on dark pages
# Voxels of all viewers of a page together, about a byte each; above, maps that are nowhere zero are left to
# the files, so that the page of 28 comparisons stays below 15 MB.
_BUDGET = 6_000_000


def viewer(
    results: Results, subject: str, task: Mapping[str, Any], method: str, place: Sequence[float] | None = None
) -> str:
    """The place of a viewer, with its volumes; empty (the static figure stays) until the script opens it.

    It opens at ``place`` (mm), which the answer names, or at the largest value of its first map.
    """
    backdrop = _backdrop(results, subject)
    if backdrop.is_too_fine:
        return ""  # the figure below shows the maps
    stats = results.stats(subject, task["contrast"], method)
    mask = results.folder.selected_mask(subject, task["contrast"], method)
    selected = backdrop.read(mask).data > 0 if is_there(mask) else None
    room = _room(results, backdrop)
    volumes = {
        stat: backdrop.read(results.folder.statmap(subject, task["contrast"], entity(method), stat)).data
        for stat in _MAPS
        if stat in stats and room.get(stat, True)
    } | _information(results, subject, task["contrast"], backdrop)
    first = recommended_map(results, subject, task["contrast"], method)
    known = [stat for stat in _MAPS if stat in volumes]
    known.sort(key=lambda stat: first is None or stat != first.stat)
    if selected is not None and not selected.any():  # nothing is faded
        selected = None
    view = {
        "ground": f"ground-{subject}",
        "shape": backdrop.shape,
        "at": (peak := peak_of(volumes[known[0]]) if place is None else backdrop.nearest(place)),
        **backdrop.geometry(peak),
        "positive": task["positive"],
        "negative": task["negative"],
        "maps": [_map(stat, volumes[stat], results.on_surface) for stat in known],
        "selected": None if selected is None else mosaic(np.where(selected, 255, 0)),
    }
    label = f"Viewer of {task['label']}, {results.labels[method]}"
    banner = f'<p class="stamp">{text(results.banner)}</p>' if results.banner else ""
    return (
        f'<figure class="viewer" data-label="{text(label)}" data-view="{text(json.dumps(view))}">'
        f'<p class="quiet">The viewer needs JavaScript; the figure below does not.</p>{banner}</figure>'
    )


def thumbnail(results: Results, subject: str, contrast: str, method: str) -> str:
    """The selected voxels from above on the outline of the analysed ones: where, at a glance."""
    path = results.folder.statmap(subject, contrast, f"{entity(method)}Selected", "weight")
    if not path.is_file():
        return ""
    backdrop = read_backdrop(results.folder.background(subject), results.folder.mask(subject))
    return seen_from_above(backdrop, backdrop.read(path).data, "Selected voxels from above")


def seen_from_above(backdrop: Backdrop, weights: NDArray, words: str, signed: bool = True) -> str:
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
    size_of = f'width="{size[0]}" height="{_THUMB}"'
    return f'<img class="thumb" src="{source}" alt="{text(words)}" {size_of}>'


def _room(results: Results, backdrop: Backdrop | MeshBackdrop) -> dict[str, bool]:
    """Whether the page has room for the maps that are nowhere zero, the inclusion probability first."""
    voxels = int(backdrop.analysed.sum()) * len(results.shown.tasks)
    return {"pip": voxels <= _BUDGET, "pattern": 2 * voxels <= _BUDGET}


def grounds(results: Results) -> str:
    """What all viewers of a page share: the mean volume of every subject, and the two scales of colour."""
    parts = []
    for subject in results.subjects:
        backdrop = _backdrop(results, subject)
        if backdrop.is_too_fine:
            continue
        mesh = backdrop.mesh() if isinstance(backdrop, MeshBackdrop) else ""
        image = mosaic(backdrop.shade())
        parts.append(f'<div hidden id="ground-{text(subject)}" data-image="{image}" {mesh}></div>')
    scales = {"weights": colours(WEIGHTS), "shares": colours(SHARES)}
    parts.append(f'<div hidden id="scales" data-scales="{text(json.dumps(scales))}"></div>')
    return "\n".join(parts)


def _backdrop(results: Results, subject: str) -> Backdrop | MeshBackdrop:
    files = results.folder.background(subject), results.folder.mask(subject)
    return MeshBackdrop(*files) if results.on_surface else read_backdrop(*files)


def _information(
    results: Results, subject: str, contrast: str, backdrop: Backdrop | MeshBackdrop
) -> dict[str, NDArray]:
    """Correlation with the labels where its family-wise p is at most 0.05, if that was tested."""
    if contrast not in results.study.get("information", {}).get("contrasts", ()):
        return {}
    values, inside = (
        backdrop.read(results.folder.information(subject, contrast, ending)).data
        for ending in ("stat-corr_statmap.nii.gz", "mask.nii.gz")
    )
    return {"information": np.where(inside > 0, values, 0.0)}


def _map(stat: str, volume: NDArray, on_surface: bool = False) -> dict[str, Any]:
    """One map: its words, its scale, its image."""
    name, start = _MAPS[stat]
    about = in_vertices(_ABOUT[stat]) if on_surface else _ABOUT[stat]
    signed = stat in _SIGNED
    top = (float(np.abs(volume).max()) or 1.0) if signed else 1.0
    steps = 128 + np.rint(127 * volume / top) if signed else np.rint(255 * volume)
    fades = stat in _FADED
    return {
        "name": name, "about": about, "sign": _SIGNS.get(stat, _HIGHER), "signed": signed,
        "fades": fades, "top": top, "start": start, "image": mosaic(steps),
    }  # fmt: skip


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
