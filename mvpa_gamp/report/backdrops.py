"""What lies under maps: volumes cut to what can be seen, with axes to the right, front and top, or meshes."""

import base64
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import nibabel
import numpy as np
from matplotlib.colors import Normalize
from numpy.typing import NDArray

from mvpa_gamp.imaging.brainmaps import read_image
from mvpa_gamp.imaging.names import is_surface_map
from mvpa_gamp.imaging.surface_files import stored_map

PLANES = {"sagittal": 0, "coronal": 1, "axial": 2}
AXES = "xyz"
SIDES = (("L", "R"), ("P", "A"), ("I", "S"))  # where the axes of the canonical orientation begin and end
FAMILY_WISE = float(-np.log10(0.05))  # in maps of -log10 p
_ROUNDING = 1e-6  # maps are single precision


def at_least(values: NDArray, level: float) -> NDArray:
    """Where a map reaches a level, in single precision."""
    return values >= level - _ROUNDING


@dataclass(frozen=True)
class Volume:
    """A volume in the closest canonical (RAS) orientation."""

    data: NDArray
    affine: NDArray

    def cut(self, box: tuple[slice, ...]) -> "Volume":
        """The part inside a box of voxels; coordinates stay true."""
        affine = self.affine.copy()
        affine[:3, 3] += affine[:3, :3] @ [side.start for side in box]
        return Volume(self.data[box], affine)

    @property
    def zooms(self) -> NDArray:
        """Voxel sizes in mm."""
        return np.sqrt((self.affine[:3, :3] ** 2).sum(axis=0))

    def coordinates(self, at: tuple[int, ...]) -> NDArray:
        """Where a voxel is, x, y, z in mm."""
        return np.asarray((self.affine @ np.array([*at, 1.0]))[:3])


def read_volume(path: Path) -> Volume:
    """A map with its axes turned to right, anterior, superior."""
    image: Any = nibabel.as_closest_canonical(nibabel.load(path))
    return Volume(np.asarray(image.dataobj, dtype=float), image.affine)


@dataclass(frozen=True)
class Sheet:
    """A map on meshes, the left hemisphere's vertices first."""

    data: NDArray  # (V,)
    places: NDArray  # (V, 3), in mm

    def coordinates(self, at: tuple[int, ...]) -> NDArray:
        """Where a vertex is, x, y, z in mm."""
        return np.asarray(self.places[at], dtype=float)


def read_map(path: Path) -> Volume | Sheet:
    """A map as it is kept: on a grid, or on meshes."""
    if not is_surface_map(path):
        return read_volume(path)
    image = read_image(path)
    return Sheet(np.asarray(image.cortex.joined(image), dtype=float), image.cortex.coordinates)


@dataclass(frozen=True)
class Backdrop:
    """What lies under the maps: the mean volume inside a box, where it is not air, and its scale of grey.

    Under a projection lies the shadow of all analysed voxels, because a slice would not hold all of them.
    """

    box: tuple[slice, ...]
    mean: Volume
    inside: NDArray  # not air, or analysed
    analysed: NDArray
    grey: Normalize
    is_too_fine: ClassVar[bool] = False  # for a page

    def read(self, path: Path) -> Volume:
        """A map inside the box."""
        return read_volume(path).cut(self.box)

    def nearest(self, place: Sequence[float]) -> tuple[int, ...]:
        """The voxel of the box that is closest to a place in mm."""
        voxel = np.rint(np.linalg.solve(self.mean.affine, [*place, 1.0])[:3]).astype(int)
        return tuple(int(i) for i in np.clip(voxel, 0, np.array(self.shape) - 1))

    @property
    def shape(self) -> tuple[int, ...]:
        """Voxels of the box."""
        return tuple(self.mean.data.shape)

    def geometry(self, peak: tuple[int, ...]) -> dict[str, Any]:
        """What a view says of where it is: voxel sizes, and the way to mm."""
        zooms = [round(float(zoom), 4) for zoom in self.mean.zooms]
        return {"zooms": zooms, "affine": np.round(self.mean.affine[:3], 4).tolist()}

    def shade(self) -> NDArray:
        """Grey 1 to 255 of the mean volume; 0 is air."""
        shade = np.clip(255 * self.grey(np.nan_to_num(self.mean.data)).data, 1, 255)
        return np.where(self.inside, shade, 0)


def read_backdrop(background: Path, mask: Path) -> Backdrop:
    """The mean volume, cut to the voxels that can be seen or were analysed, with a margin of one."""
    whole = read_volume(background)
    values = np.nan_to_num(whole.data)
    analysed = read_volume(mask).data > 0
    inside = (values > 0.1 * np.percentile(values, 98)) | analysed
    seen = np.argwhere(inside)
    low, high = np.maximum(seen.min(axis=0) - 1, 0), np.minimum(seen.max(axis=0) + 2, values.shape)
    box = tuple(slice(int(a), int(b)) for a, b in zip(low, high, strict=True))
    dark, bright = np.percentile(values[inside], [1, 99.5]) if inside.any() else (0.0, 1.0)
    span = (bright - dark) or 1.0
    pale = Normalize(dark - 0.9 * span, bright + 0.15 * span)  # so that colour stands out
    return Backdrop(box, whole.cut(box), inside[box], analysed[box], pale)


def peak_of(weights: NDArray) -> tuple[int, ...]:
    """The voxel (or vertex) with the largest absolute value; the one in the middle if all are zero."""
    if not np.any(weights):
        return tuple(side // 2 for side in weights.shape)
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(np.abs(weights))), weights.shape))


# Vertices of both hemispheres: fsaverage6 and fsLR have about 80,000 and 65,000, two megabytes of a page.
MOST = 100_000
_GAP = 0.04  # between inflated hemispheres, which overlap as they are, as a share of their size
_DARK, _SPAN = 150, 85  # of grey, from sulci to gyri


class Values(NamedTuple):
    """The values of a map, a pixel per vertex."""

    data: NDArray  # (columns, rows, 1)


class MeshBackdrop:
    """What lies under maps on meshes; ``read`` gives maps in the form of volumes: (columns, rows, 1)."""

    def __init__(self, background: Path, mask: Path) -> None:
        self.ground = read_image(background)
        self.cortex = self.ground.cortex
        self.columns = math.ceil(math.sqrt(sum(self.cortex.sizes)))
        self.analysed = self.read(mask).data > 0

    @property
    def shape(self) -> tuple[int, ...]:
        """Columns, rows, 1."""
        return tuple(self.analysed.shape)

    def read(self, path: Path) -> Values:
        """A map of the folder."""
        return self._pixels(self.cortex.joined(stored_map(path, self.cortex)))

    def nearest(self, place: Sequence[float]) -> tuple[int, ...]:
        """The vertex that is closest to a place in mm."""
        away = np.linalg.norm(np.asarray(self.cortex.coordinates) - np.asarray(place), axis=1)
        row, column = divmod(int(away.argmin()), self.columns)
        return column, row, 0

    @property
    def is_too_fine(self) -> bool:
        """Whether the meshes would make a page too large."""
        return sum(self.cortex.sizes) > MOST

    def _pixels(self, values: NDArray) -> Values:
        """Vertices in rows, 0 behind the last one."""
        rows = math.ceil(len(values) / self.columns)
        sheet = np.zeros(rows * self.columns)
        sheet[: len(values)] = values
        return Values(sheet.reshape(rows, self.columns).T[..., None])

    def geometry(self, peak: tuple[int, ...]) -> dict[str, Any]:
        """What a view says of where it is: from which side the vertex with the largest value is seen."""
        on_left = peak[0] + self.columns * peak[1] < self.cortex.sizes[0]
        return {"first": "left" if on_left and "left" in self.cortex.parts else "right"}

    def shade(self) -> NDArray:
        """Grey 1 to 255 of every vertex: sulcal depth, or the mean image where it is not known."""
        depths = self.cortex.sulci
        known = depths and np.concatenate([depths[part] for part in self.cortex.parts])
        values = np.nan_to_num(self.cortex.joined(self.ground) if known is None else -np.asarray(known))
        low, high = np.percentile(values, [2, 98])
        share = np.clip((values - low) / ((high - low) or 1.0), 0, 1)
        return self._pixels(np.rint(_DARK + _SPAN * share)).data

    def mesh(self) -> dict[str, str]:
        """The meshes for the attributes of an element of the page."""
        points: list[NDArray] = []
        corners, parts, first = [], [], 0
        for part, size in zip(self.cortex.parts, self.cortex.sizes, strict=True):
            mesh = (self.cortex.drawn or self.cortex.mesh).parts[part]
            points.append(np.asarray(mesh.coordinates, dtype=float))
            corners.append(np.asarray(mesh.faces) + first)
            parts.append({"name": part, "vertices": size, "faces": len(mesh.faces)})
            first += size
        wide = sum(self.cortex.sizes) > np.iinfo(np.uint16).max
        faces = np.concatenate(corners).astype("<u4" if wide else "<u2")
        return {
            "points": _text(_fitted(_moved_apart(points))),
            "faces": _text(faces),
            "wide": "yes" if wide else "",
            "parts": json.dumps(parts),
        }


def _moved_apart(points: list[NDArray]) -> list[NDArray]:
    """Hemispheres (V, 3) that do not overlap from left to right; apart as they are if they do not."""
    if len(points) < 2:
        return points
    left, right = points
    gap = _GAP * float(np.ptp(left[:, 0]))
    overlap = max(0.0, float(left[:, 0].max() - right[:, 0].min()) + gap)
    away = np.array([overlap / 2, 0, 0])
    return [left - away, right + away]


def _fitted(points: list[NDArray]) -> NDArray:
    """Positions around their middle in whole steps, the farthest 32,767 away."""
    places = np.concatenate(points)
    places = places - (places.min(axis=0) + places.max(axis=0)) / 2
    return np.rint(32767 * places / np.linalg.norm(places, axis=1).max()).astype("<i2")


def _text(values: NDArray) -> str:
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode("ascii")
