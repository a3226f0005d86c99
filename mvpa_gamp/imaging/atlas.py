"""Atlases: labelled volumes and parcellations of the surface, with names, and their regions in a mask.

Volumes are NIfTI. Parcellations are GIFTI label files in pairs (``.label.gii``), annotation files of
FreeSurfer in pairs (``lh.aparc.annot``), CIFTI (``.dlabel.nii``), or a SurfaceImage of whole numbers.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from nilearn.surface import SurfaceImage
from numpy.typing import NDArray

from mvpa_gamp.imaging.brainmaps import coordinates, space_name
from mvpa_gamp.imaging.cortex import Cortex, cortex_of
from mvpa_gamp.imaging.errors import DataError, reason
from mvpa_gamp.imaging.names import HEMISPHERES, STRUCTURES, is_cifti, is_surface_file, pair_of
from mvpa_gamp.imaging.phantom.series import PHANTOM_NAMES, phantom_regions
from mvpa_gamp.imaging.regions import (
    NILEARN_ATLASES,
    SURFACE_ATLASES,
    Regions,
    find_table,
    listed,
    make_regions,
    names_of,
    open_nilearn,
    plain,
    surface_file,
    unique_names,
)
from mvpa_gamp.imaging.spaces import is_surface
from mvpa_gamp.imaging.volumes import is_same_grid, name_of, open_image

ANNOT = ".annot"
# Regions that are none: what annotation and label files call the medial wall, and what belongs to nothing.
_NONE = ("unknown", "???", "background", "none", "0", "medial_wall", "medial wall", "corpuscallosum")
PHANTOM = "phantom"  # the name of the phantom's own atlas


class _Hemisphere(NamedTuple):
    """The numbers (V,) of its vertices' regions, 0 for none, and names by number as far as they are known."""

    values: NDArray
    names: Mapping[int, str]


@dataclass(frozen=True, eq=False)
class SurfaceAtlas:
    """The number (V,) of every vertex's region, 0 for none, by hemisphere, and a name for each number."""

    name: str
    values: Mapping[str, NDArray]
    names: Mapping[int, str]
    notes: tuple[str, ...] = ()

    def regions(self, mask_img: Any) -> Regions:
        """The regions at the vertices of a mask on meshes with as many vertices."""
        self.check(cortex_of(mask_img) if is_surface(mask_img) else None)
        cortex = cortex_of(mask_img)
        inside = np.asarray(cortex.joined(mask_img)).reshape(-1) != 0
        found = np.concatenate([self.values[part] for part in cortex.parts])[inside]
        known = {
            index for part in cortex.parts for index in np.unique(self.values[part]).tolist() if index != 0
        }
        names = {index: self.names.get(index, f"region {index}") for index in sorted(known)}
        return make_regions(self.name, unique_names(names), found, mask_img, self.notes)

    def check(self, cortex: Cortex | None) -> None:
        """Refuse meshes of other sizes, and volumes (None)."""
        if cortex is None:
            raise DataError(
                f"atlas {self.name} is on a surface, but the data are volumes. Give a labelled volume, or "
                "data on a surface."
            )
        for part, size in zip(cortex.parts, cortex.sizes, strict=True):
            self._check(part, size)

    def _check(self, part: str, size: int) -> None:
        if part not in self.values:
            raise DataError(
                f"atlas {self.name} has no {part} hemisphere, and the data have one. Give one of both."
            )
        if len(self.values[part]) != size:
            raise DataError(
                f"atlas {self.name}: expected {size:,} vertices in the {part} hemisphere, as the data have, "
                f"got {len(self.values[part]):,}. Give a parcellation of the same surface and density."
            )


def is_parcellation(atlas: Any) -> bool:
    """Whether an atlas is of the surface: a SurfaceImage, or the name of a file of such a kind."""
    named = isinstance(atlas, str | Path) and (is_surface_file(atlas) or str(atlas).endswith(ANNOT))
    return named or isinstance(atlas, SurfaceImage)


def open_parcellation(atlas: Any, labels: Any = "") -> SurfaceAtlas:
    """A parcellation from an image or the name of a file; ``labels`` as for ``open_atlas``, over its own."""
    if isinstance(atlas, SurfaceImage):
        name, parts, beside = "SurfaceImage", _of_image(atlas), None
    else:
        path = Path(atlas).expanduser()
        parts = _of_cifti(path) if is_cifti(path) else _of_pair(path)
        name, named = path.name, any(each.names for each in parts.values())
        beside = None if named else find_table(path)
    given = names_of(labels, beside)
    parts = {
        part: _without_none(each if given is None else each._replace(names=given))
        for part, each in parts.items()
    }
    if not any(each.values.any() for each in parts.values()):
        raise DataError(f"atlas {name} is empty: no vertex belongs to a region. Give another atlas.")
    unnamed = not any(each.names for each in parts.values())
    told = f"Atlas {name}: it has no table of names, so regions are called by their numbers."
    return _apart(name, parts, (told,) if unnamed else ())


def _of_image(image: SurfaceImage) -> dict[str, _Hemisphere]:
    parts = {part: np.asarray(values) for part, values in image.data.parts.items()}
    return {part: _Hemisphere(_whole(values, "SurfaceImage"), {}) for part, values in parts.items()}


def _of_pair(path: Path) -> dict[str, _Hemisphere]:
    read = _of_annotation if path.name.endswith(ANNOT) else _of_gifti
    return {part: read(each) for part, each in zip(HEMISPHERES, pair_of(path), strict=True)}


def _of_annotation(path: Path) -> _Hemisphere:
    """FreeSurfer's: numbers are places in its table, from 0 if that is no region, else from 1."""
    from nibabel.freesurfer import read_annot

    try:
        places, _, texts = read_annot(path)
    except Exception as error:  # parsers of damaged files fail in many ways
        raise _unreadable(path, error) from error
    names = names_of(list(texts)) or {}
    first = 0 if _is_none(names.get(0, "")) else 1
    values = np.where(places < 0, 0, places + first)
    return _Hemisphere(_whole(values, path.name), {index + first: name for index, name in names.items()})


def _of_gifti(path: Path) -> _Hemisphere:
    import nibabel

    try:
        image: Any = nibabel.load(path)
        arrays = [np.asarray(each.data) for each in image.darrays]
        table = image.labeltable.get_labels_as_dict()
    except Exception as error:
        raise _unreadable(path, error) from error
    if len(arrays) != 1:
        raise _several(path, len(arrays))
    return _Hemisphere(_whole(arrays[0], path.name), {int(k): plain(text) for k, text in table.items()})


def _of_cifti(path: Path) -> dict[str, _Hemisphere]:
    import nibabel

    try:
        image: Any = nibabel.load(path)
        maps, models = (image.header.get_axis(axis) for axis in (0, 1))
        data = np.asarray(image.dataobj)
        structures = {name: (columns, model) for name, columns, model in models.iter_structures()}
    except Exception as error:
        raise _unreadable(path, error) from error
    if len(data) != 1:
        raise _several(path, len(data))
    table = {int(k): plain(text) for k, (text, _) in getattr(maps, "label", [{}])[0].items()}
    parts = {}
    for part, structure in STRUCTURES.items():
        if structure in structures:
            columns, model = structures[structure]
            values = np.zeros(int(model.nvertices[structure]))
            values[model.vertex] = data[0, columns]
            parts[part] = _Hemisphere(_whole(values, path.name), table)
    return parts


def _unreadable(path: Path, error: Exception) -> DataError:
    return DataError(
        f"atlas {path} cannot be read ({reason(error)}). Give a parcellation: a pair of .label.gii or .annot "
        "files, or a .dlabel.nii."
    )


def _several(path: Path, count: int) -> DataError:
    return DataError(
        f"atlas {path}: expected one map, the number of each vertex's region, got {count}. Give a file with "
        "one."
    )


def _whole(values: NDArray, name: str) -> NDArray:
    """Whole numbers (V,); those below 0 belong to no region."""
    values = values.reshape(len(values), -1)
    with np.errstate(invalid="ignore"):
        whole = np.isfinite(values).all() and (values == np.rint(values)).all()
    if values.shape[1] != 1 or not whole or values.max() > np.iinfo(np.int32).max:
        raise DataError(
            f"atlas {name}: expected one whole number per vertex, that of its region, got others. Give a "
            "parcellation."
        )
    return np.maximum(values[:, 0].astype(np.int64), 0)


def _is_none(name: str) -> bool:
    return name.lower() in _NONE or "medial_wall" in name.lower()


def _without_none(part: _Hemisphere) -> _Hemisphere:
    """The same with 0 where the name says that it is no region."""
    none = [index for index, name in part.names.items() if _is_none(name)]
    names = {index: name for index, name in part.names.items() if index not in none and index != 0}
    return _Hemisphere(np.where(np.isin(part.values, none), 0, part.values), names)


def _apart(name: str, parts: Mapping[str, _Hemisphere], notes: tuple[str, ...]) -> SurfaceAtlas:
    """Regions of one hemisphere each: numbers that both use are raised on the right, names get L or R."""
    present = {part: set(np.unique(each.values).tolist()) - {0} for part, each in parts.items()}
    shared = set.intersection(*present.values()) if len(present) > 1 else set()
    raised = 10 ** len(str(max(present["left"]))) if shared else 0  # 1 to 75: 101 to 175
    texts = [{parts[part].names.get(index) for index in found} for part, found in present.items()]
    twice = set.intersection(*texts) if len(texts) > 1 else set()
    values, names = {}, {}
    for part, each in parts.items():
        more = raised if part == "right" else 0
        values[part] = np.where(each.values > 0, each.values + more, 0)
        for index in sorted(present[part]):
            text = each.names.get(index) or f"region {index}"
            both = each.names.get(index) in twice
            names[index + more] = f"{HEMISPHERES[part]} {text}" if both else text
    if shared:
        notes += (
            f"Atlas {name}: the hemispheres use the same numbers, so those of the right one are raised by "
            f"{raised:,}.",
        )
    return SurfaceAtlas(name, values, names, notes)


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

    Parameters
    ----------
    atlas
        A file, an image, or a name.
    labels
        Names of the regions.

    Returns
    -------
    Atlas or SurfaceAtlas
        Its ``regions(mask_img)`` are those at the voxels of a mask.
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

    Parameters
    ----------
    mask_img
        The mask of N voxels, or of N vertices.

    Returns
    -------
    Regions
        Their names, and the region (N,) of every voxel.

    Examples
    --------
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
