"""Atlases: a labelled volume with names, and which of its regions each voxel of a mask lies in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.imaging.atlas_tables import find_table, plain, read_table
from mvpa_gamp.imaging.brainmaps import coordinates, space_name
from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.nilearn_atlases import NILEARN_ATLASES, open_nilearn
from mvpa_gamp.imaging.phantom.atlas import PHANTOM_NAMES, phantom_regions
from mvpa_gamp.imaging.volumes import is_same_grid, like, name_of, open_image

PHANTOM = "phantom"  # the name of the phantom's own atlas
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
        """The name of the region at a position in mm (x, y, z), by the voxel of the mask that holds it.

        >>> import nibabel, numpy as np
        >>> from mvpa_gamp.imaging.atlas import open_atlas
        >>> halves = np.repeat([[[1]], [[2]]], 3, axis=0)
        >>> image = nibabel.Nifti1Image(halves.astype(np.int16), np.eye(4))
        >>> mask = nibabel.Nifti1Image(np.ones((6, 1, 1), dtype=np.uint8), np.eye(4))
        >>> open_atlas(image, {1: "left", 2: "right"}).regions(mask).region_at([4, 0, 0])
        'right'
        """
        inverse = np.linalg.inv(np.asarray(self.mask_img.affine, dtype=float))
        index = np.rint(inverse[:3, :3] @ np.asarray(millimetres, dtype=float) + inverse[:3, 3]).astype(int)
        shape = self.mask_img.shape[:3]
        if (index < 0).any() or (index >= shape).any():
            return OUTSIDE
        value = int(np.asarray(self.image.dataobj)[tuple(index)])
        return self.names[self.indices.index(value)] if value else OUTSIDE

    @cached_property
    def image(self) -> Any:
        """The atlas on the grid of the mask, int32, 0 outside mask and atlas."""
        inside = np.asarray(self.mask_img.dataobj) != 0
        volume = np.zeros(inside.shape, dtype=np.int32)
        volume[inside] = np.array([*self.indices, 0], dtype=np.int32)[self.of_voxel]
        return like(self.mask_img, volume)


@dataclass(frozen=True, eq=False)
class Atlas:
    """A 3-D image whose voxels hold the number of their region, 0 outside, and a name for each number."""

    name: str
    image: Any
    names: Mapping[int, str]
    notes: tuple[str, ...] = ()

    def regions(self, mask_img: Any) -> Regions:
        """The regions at the voxels of a mask, by the voxel of the atlas that is nearest to each in mm."""
        values = self._values()
        found, notes = _nearest(values, self.image, mask_img), list(self.notes)
        if not is_same_grid(self.image, mask_img):
            notes.append(
                f"Atlas {self.name}: resampled to the grid of the data; each voxel has the region of the "
                "nearest voxel of the atlas."
            )
        if told := _other_space(self.name, self.image, mask_img):
            notes.append(told)
        known = [index for index in np.unique(values).tolist() if index != 0]
        known += [index for index in self.names if index != 0 and index not in known]
        unnamed = [index for index in known if index not in self.names]
        if unnamed and self.names:
            notes.append(
                f"Atlas {self.name}: its table has no name for {_listed(unnamed)}; these regions are "
                "identified by number."
            )
        names = _unique_names({index: self.names.get(index, f"region {index}") for index in known})
        return make_regions(self.name, names, found, mask_img, tuple(notes))

    def _values(self) -> NDArray:
        """The numbers of all voxels of the atlas."""
        return _whole_numbers(self.image, self.name)


def make_regions(
    atlas: str, names: Mapping[int, str], values: NDArray, mask_img: Any, notes: tuple[str, ...] = ()
) -> Regions:
    """Regions from the value (N,) of the atlas at each voxel of the mask."""
    present = [index for index in names if (values == index).any()]
    if not present:
        raise DataError(
            f"atlas {atlas}: none of the {values.size} voxels of the mask lies in one of its regions. Give "
            "an atlas in the space of the data (for MNI atlases, data in MNI space)."
        )
    missing = tuple(names[index] for index in names if index not in present)
    if missing:
        notes += (
            f"Atlas {atlas}: {len(missing)} of its {len(names)} regions have no voxel in the mask "
            f"({_listed(missing)}).",
        )
    of_voxel = np.full(values.size, -1)
    for place, index in enumerate(present):
        of_voxel[values == index] = place
    return Regions(
        atlas, tuple(names[index] for index in present), tuple(present), of_voxel, mask_img, missing, notes
    )


def open_atlas(atlas: Any, labels: Any = "") -> Atlas:
    """An atlas from a file (or an image), or from the name of one that nilearn knows.

    ``labels`` is the file of its table, or a mapping from number to name; without it the table is looked for
    beside the file. Names of nilearn's atlases are read from its data folders; nothing is downloaded.
    """
    if isinstance(atlas, Atlas):
        return atlas
    if isinstance(atlas, str) and not Path(atlas).expanduser().exists():
        return _named(atlas, labels)
    image = open_image(atlas, "atlas")
    file = name_of(image)
    name = Path(file).name
    _whole_numbers(image, name)
    if isinstance(labels, Mapping):
        return Atlas(name, image, {int(index): plain(text) for index, text in labels.items()})
    table = Path(labels).expanduser() if labels else find_table(Path(file))
    if table is None:
        told = f"Atlas {name}: no table of names was found next to it, so regions are identified by number."
        return Atlas(name, image, {}, (told,))
    return Atlas(name, image, read_table(table))


def _named(name: str, labels: Any) -> Atlas:
    """An atlas that is not a file."""
    if labels:
        raise DataError(
            f"atlas labels: {name!r} is not a file, and atlases given by name have their own labels. Leave "
            "the labels out, or correct the path of the atlas."
        )
    if name.partition(":")[0] not in NILEARN_ATLASES:
        raise DataError(
            f"atlas {name!r}: expected a NIfTI file, or one of {', '.join((*NILEARN_ATLASES, PHANTOM))}; "
            "there is no such file. Check the path or the name."
        )
    return Atlas(name, *open_nilearn(name))


def phantom_atlas(mask_img: Any) -> Regions:
    """The phantom's own atlas at the voxels of a mask: five planted regions and seven others.

    >>> from mvpa_gamp.imaging.atlas import phantom_atlas
    >>> from mvpa_gamp.imaging.phantom import Phantom, phantom_images
    >>> _, mask, _, _ = phantom_images(Phantom(shape=(12, 14, 10), n_runs=2))
    >>> phantom_atlas(mask).names[0]
    'lateral fusiform'
    """
    values = phantom_regions(coordinates(mask_img))
    return make_regions(PHANTOM, PHANTOM_NAMES, values, mask_img)


def _whole_numbers(image: Any, name: str) -> NDArray:
    """The labels of an atlas, checked."""
    shape = tuple(image.shape)
    if len(shape) < 3 or int(np.prod(shape[3:])) != 1:
        raise DataError(
            f"atlas {name}: expected a 3-D image with a number per region, got shape {shape}. "
            "Give a labelled volume; probabilistic atlases have one per region."
        )
    values = np.asarray(image.dataobj).reshape(shape[:3])
    with np.errstate(invalid="ignore"):
        whole = np.isfinite(values).all() and (values == np.rint(values)).all() and values.min() >= 0
    if not whole or values.max() > np.iinfo(np.int32).max:
        raise DataError(
            f"atlas {name}: expected whole numbers, 0 outside and the number of the region inside, got "
            "other values. Give a labelled volume, resampled with nearest neighbours if at all."
        )
    if not values.any():
        raise DataError(f"atlas {name} is empty: no voxel differs from zero. Give another atlas.")
    return values.astype(np.int64)


def _nearest(values: NDArray, image: Any, mask_img: Any) -> NDArray:
    """The value (N,) at the voxel nearest to each voxel of the mask, 0 beyond the image."""
    inverse = np.linalg.inv(np.asarray(image.affine, dtype=float))
    places = coordinates(mask_img) @ inverse[:3, :3].T + inverse[:3, 3]
    index = np.rint(places).astype(int)
    there = ((index >= 0) & (index < values.shape)).all(axis=1)
    found = np.zeros(len(index), dtype=np.int64)
    found[there] = values[tuple(index[there].T)]
    return found


def _other_space(name: str, image: Any, mask_img: Any) -> str:
    """A sentence where the headers name two spaces, of which one is that of a template."""
    spaces = [space_name(each) if hasattr(each.header, "get") else "unknown" for each in (image, mask_img)]
    standard = [space in ("Talairach", "MNI152") for space in spaces]
    if spaces[0] == spaces[1] or not any(standard) or "unknown" in spaces:
        return ""
    return (
        f"Atlas {name}: its header says {spaces[0]} space, but that of the data says {spaces[1]} space. "
        "Regions are correct only if the data were normalised to the space of the atlas."
    )


def _unique_names(names: Mapping[int, str]) -> dict[int, str]:
    """Names that several regions share get their number."""
    texts = list(names.values())
    return {index: f"{text} ({index})" if texts.count(text) > 1 else text for index, text in names.items()}


def _listed(items: Sequence[object]) -> str:
    """The first few of many."""
    more = f" and {len(items) - _SHOWN} more" if len(items) > _SHOWN else ""
    return ", ".join(map(str, items[:_SHOWN])) + more
