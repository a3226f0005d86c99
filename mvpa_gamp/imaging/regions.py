"""Regions of the brain at the voxels of a mask, or at its vertices: whatever kind of atlas they are from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.spaces import Space, space_of

OUTSIDE = "outside the atlas"
_SHOWN = 5  # regions listed in a sentence


@dataclass(frozen=True, eq=False)
class Regions:
    """The regions of an atlas at the N voxels of a mask.

    ``of_voxel`` holds the place of each voxel's region in ``names`` and ``indices``, -1 outside the atlas.
    Every region has at least one voxel; those of the atlas that have none are in ``missing``.
    """

    atlas: str
    names: tuple[str, ...]  # (R,)
    indices: tuple[int, ...]  # (R,) their values in the atlas
    of_voxel: NDArray  # (N,)
    mask_img: Any
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def voxels(self, region: int) -> NDArray:
        """Numbers of the voxels of a region, by its place; -1: of those outside the atlas."""
        return np.flatnonzero(self.of_voxel == region)

    @property
    def sizes(self) -> NDArray:
        """Voxels of each region, (R,)."""
        return np.bincount(self.of_voxel[self.of_voxel >= 0], minlength=len(self.names))

    @property
    def voxel_names(self) -> NDArray:
        """Name of the region of every voxel, (N,) str."""
        return np.array([*self.names, OUTSIDE])[self.of_voxel]

    def region_at(self, millimetres: Sequence[float]) -> str:
        """The name of the region at a position in mm (x, y, z): of the voxel of the mask that holds it, or of
        the nearest vertex.

        >>> import nibabel, numpy as np
        >>> from mvpa_gamp.imaging.atlas import open_atlas
        >>> halves = np.repeat([[[1]], [[2]]], 3, axis=0)
        >>> image = nibabel.Nifti1Image(halves.astype(np.int16), np.eye(4))
        >>> mask = nibabel.Nifti1Image(np.ones((6, 1, 1), dtype=np.uint8), np.eye(4))
        >>> open_atlas(image, {1: "left", 2: "right"}).regions(mask).region_at([4, 0, 0])
        'right'
        """
        number = self._space.nearest(np.asarray(millimetres, dtype=float))
        place = -1 if number is None else int(self.of_voxel[number])
        return OUTSIDE if place < 0 else self.names[place]

    @cached_property
    def image(self) -> Any:
        """The atlas on the grid (or the meshes) of the mask, int32, 0 outside mask and atlas."""
        values = np.array([*self.indices, 0], dtype=np.int32)[self.of_voxel]
        return self._space.image(values)

    @cached_property
    def _space(self) -> Space:
        return space_of(self.mask_img)


def make_regions(
    atlas: str, names: Mapping[int, str], values: NDArray, mask_img: Any, notes: tuple[str, ...] = ()
) -> Regions:
    """Regions from the value (N,) of the atlas at each voxel of the mask."""
    present = [index for index in names if (values == index).any()]
    if not present:
        raise DataError(
            f"atlas {atlas}: none of the {values.size} {space_of(mask_img).elements} of the mask lies in one "
            "of its regions. Give an atlas in the space of the data (for MNI atlases, data in MNI space)."
        )
    missing = tuple(names[index] for index in names if index not in present)
    if missing:
        told = f"Atlas {atlas}: {len(missing)} of its {len(names)} regions have no voxel in the mask"
        notes += (f"{space_of(mask_img).said(told)} ({listed(missing)}).",)
    of_voxel = np.full(values.size, -1)
    for place, index in enumerate(present):
        of_voxel[values == index] = place
    return Regions(
        atlas, tuple(names[index] for index in present), tuple(present), of_voxel, mask_img, missing, notes
    )


def unique_names(names: Mapping[int, str]) -> dict[int, str]:
    """Names that several regions share get their number."""
    texts = list(names.values())
    return {index: f"{text} ({index})" if texts.count(text) > 1 else text for index, text in names.items()}


def listed(items: Sequence[object]) -> str:
    """The first few of many."""
    more = f" and {len(items) - _SHOWN} more" if len(items) > _SHOWN else ""
    return ", ".join(map(str, items[:_SHOWN])) + more
