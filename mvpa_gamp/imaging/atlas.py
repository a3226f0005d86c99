"""Atlases: labelled volumes with names, and which of their regions each voxel of a mask lies in."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.imaging.atlas_tables import find_table, names_of
from mvpa_gamp.imaging.brainmaps import coordinates, space_name
from mvpa_gamp.imaging.cortex import Cortex, cortex_of
from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.nilearn_atlases import NILEARN_ATLASES, SURFACE_ATLASES, open_nilearn, surface_file
from mvpa_gamp.imaging.phantom.atlas import PHANTOM_NAMES, phantom_regions
from mvpa_gamp.imaging.regions import Regions, listed, make_regions, unique_names
from mvpa_gamp.imaging.spaces import is_surface
from mvpa_gamp.imaging.surface_atlas import SurfaceAtlas, is_parcellation, open_parcellation
from mvpa_gamp.imaging.volumes import is_same_grid, name_of, open_image

PHANTOM = "phantom"  # the name of the phantom's own atlas


@dataclass(frozen=True, eq=False)
class Atlas:
    """A 3-D image whose voxels hold the number of their region, 0 outside, and a name for each number."""

    name: str
    image: Any
    names: Mapping[int, str]
    notes: tuple[str, ...] = ()

    def regions(self, mask_img: Any) -> Regions:
        """The regions at the voxels of a mask, by the voxel of the atlas that is nearest to each in mm."""
        self.check(cortex_of(mask_img) if is_surface(mask_img) else None)
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
                f"Atlas {self.name}: its table has no name for {listed(unnamed)}; these regions are "
                "identified by number."
            )
        names = unique_names({index: self.names.get(index, f"region {index}") for index in known})
        return make_regions(self.name, names, found, mask_img, tuple(notes))

    def check(self, cortex: Cortex | None) -> None:
        """Refuse data on meshes; None are volumes."""
        if cortex is not None:
            raise DataError(
                f"atlas {self.name} is a volume, but the data are on a surface. Give a parcellation of the "
                "surface (.label.gii, .annot or .dlabel.nii), or data in volumes."
            )

    def _values(self) -> NDArray:
        """The numbers of all voxels of the atlas."""
        return _whole_numbers(self.image, self.name)


def open_atlas(atlas: Any, labels: Any = "") -> Atlas | SurfaceAtlas:
    """An atlas from a file (or an image), or from the name of one that nilearn knows.

    Images are labelled volumes, or on surfaces (nilearn's SurfaceImage); files are NIfTI, one of a pair of
    GIFTI or FreeSurfer's annotation files, or CIFTI. ``labels`` is the file of its table, a mapping from
    number to name, a list of names from number 0 on, or a table with the columns index and name; without it
    names are looked for in the file and beside it. Names of nilearn's atlases are read from its data
    folders; nothing is downloaded.
    """
    if isinstance(atlas, Atlas | SurfaceAtlas):
        return atlas
    if isinstance(atlas, str) and not Path(atlas).expanduser().exists():
        return _named(atlas, labels)
    if is_parcellation(atlas):
        return open_parcellation(atlas, labels)
    image = open_image(atlas, "atlas")
    file = name_of(image)
    name = Path(file).name
    _whole_numbers(image, name)
    names = names_of(labels, find_table(Path(file)))
    if names is None:
        told = f"Atlas {name}: no table of names was found next to it, so regions are identified by number."
        return Atlas(name, image, {}, (told,))
    return Atlas(name, image, names)


def _named(name: str, labels: Any) -> Atlas | SurfaceAtlas:
    """An atlas that is not a file."""
    known = (*NILEARN_ATLASES, *SURFACE_ATLASES)
    if labels is not None and len(labels):
        raise DataError(
            f"atlas labels: {name!r} is not a file, and atlases given by name have their own labels. Leave "
            "the labels out, or correct the path of the atlas."
        )
    if name.partition(":")[0] not in known:
        raise DataError(
            f"atlas {name!r}: expected a file (a labelled volume, or a parcellation of the surface), or one "
            f"of {', '.join((*known, PHANTOM))}; there is no such file. Check the path or the name."
        )
    if name in SURFACE_ATLASES:
        return replace(open_parcellation(surface_file(name)), name=name)
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
