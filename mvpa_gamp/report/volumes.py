"""Volumes as figures and viewer need them: axes to the right, front and top, cut to what can be seen."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import nibabel
import numpy as np
from matplotlib.colors import Normalize
from numpy.typing import NDArray

from mvpa_gamp.imaging.brainmaps import read_image
from mvpa_gamp.imaging.surface_names import is_surface_map

PLANES = {"sagittal": 0, "coronal": 1, "axial": 2}
AXES = "xyz"
SIDES = (("L", "R"), ("P", "A"), ("I", "S"))  # where the axes of the canonical orientation begin and end


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
