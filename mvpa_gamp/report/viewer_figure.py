"""The interactive viewer as part of any page: volumes as small images, which its script draws on demand.

A volume is an 8-bit grey PNG, a mosaic of its axial slices: signed maps have 128 for zero and 127 steps to
either side up to the largest value, others run from 0 to 255. Colours and threshold are the script's.
"""

import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from matplotlib.colors import Colormap
from numpy.typing import NDArray
from PIL import Image

from mvpa_gamp.imaging.surface_names import in_vertices, is_surface_map
from mvpa_gamp.report.html import data_url
from mvpa_gamp.report.style import SHARES, WEIGHTS
from mvpa_gamp.report.surface_viewer import MeshBackdrop
from mvpa_gamp.report.volumes import Backdrop, peak_of, read_backdrop

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
