"""The mesh and the maps that the viewer of surfaces turns in the page.

The drawn meshes of a subject are in the page once: corners of faces, and positions in steps of 1/32767 of the
mesh's reach. Values of vertices, one byte each, are the rows of a grey PNG, as volumes are.
"""

import base64
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.imaging.brainmaps import read_image
from mvpa_gamp.imaging.surface_files import stored_map

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
