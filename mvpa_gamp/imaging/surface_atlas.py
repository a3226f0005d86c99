"""Parcellations of the surface: the region of every vertex, with names.

GIFTI label files in pairs (``.label.gii``), FreeSurfer's annotation files in pairs (``lh.aparc.annot``),
CIFTI (``.dlabel.nii``), or nilearn's SurfaceImage of whole numbers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from nilearn.surface import SurfaceImage
from numpy.typing import NDArray

from mvpa_gamp.imaging.atlas_tables import find_table, names_of, plain
from mvpa_gamp.imaging.cortex import Cortex, cortex_of
from mvpa_gamp.imaging.errors import DataError, reason
from mvpa_gamp.imaging.regions import Regions, make_regions, unique_names
from mvpa_gamp.imaging.spaces import is_surface
from mvpa_gamp.imaging.surface_names import HEMISPHERES, STRUCTURES, is_cifti, is_surface_file, pair_of

ANNOT = ".annot"
# Regions that are none: what annotation and label files call the medial wall, and what belongs to nothing.
_NONE = ("unknown", "???", "background", "none", "0", "medial_wall", "medial wall", "corpuscallosum")


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
