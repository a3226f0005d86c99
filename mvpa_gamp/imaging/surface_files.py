"""Surface files: GIFTI pairs and CIFTI dense files, read and written, with the meshes they belong to."""

from collections.abc import Mapping
from colorsys import hsv_to_rgb
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from nilearn.surface import PolyMesh
from numpy.typing import NDArray

from mvpa_gamp.imaging.cortex import Cortex, CortexImage
from mvpa_gamp.imaging.disk import write_atomic
from mvpa_gamp.imaging.errors import DataError, reason
from mvpa_gamp.imaging.names import (
    HEMISPHERES,
    STRUCTURES,
    cifti_path,
    hemisphere_path,
    is_cifti,
    map_files,
    pair_of,
    surface_path,
)

Labels = Mapping[int, str]
_MASK: Labels = {0: "outside", 1: "inside"}
_ANATOMICAL = {"left": "CortexLeft", "right": "CortexRight"}  # what Connectome Workbench reads


def read_surface(path: str | Path, cortex: Cortex) -> CortexImage:
    """A CIFTI file, or the GIFTI pair of which one file is named, as an image (V, T) float32.

    ``cortex`` has the meshes. Of CIFTI files the cortex is read; vertices that the file leaves out are 0.

    Parameters
    ----------
    path
        The file.
    cortex
        The meshes.

    Returns
    -------
    CortexImage
        Values (V, T) of both hemispheres.
    """
    path = Path(path).expanduser()
    if not path.is_file():
        raise DataError(f"surface file {path}: expected a file, found none there. Check the path.")
    return _read_cifti(path, cortex) if is_cifti(path) else _read_pair(path, cortex)


def _read_pair(path: Path, cortex: Cortex) -> CortexImage:
    parts = dict(zip(HEMISPHERES, (gifti_values(each) for each in pair_of(path)), strict=True))
    times = {part: values.shape[1] for part, values in parts.items()}
    if len(set(times.values())) > 1:
        raise DataError(
            f"surface file {path}: expected as many time points in both hemispheres, got {times['left']} "
            f"(left) and {times['right']} (right). Give files of one run."
        )
    for part, size in zip(cortex.parts, cortex.sizes, strict=True):
        _check_size(path, part, len(parts[part]), size)
    return cortex.image(np.concatenate([parts[part] for part in cortex.parts]))


def _check_size(path: Path, part: str, got: int, expected: int) -> None:
    if got != expected:
        raise DataError(
            f"surface file {path}: expected {expected:,} vertices in the {part} hemisphere, as the mesh has, "
            f"got {got:,}. Give the mesh that belongs to the file: --surface-mesh LEFT RIGHT to the command, "
            "a mask on it to the decoder."
        )


def gifti_values(path: Path) -> NDArray:
    """The values (V, T) float32 of a GIFTI file, an array per time point or one for all."""
    image = _loaded(path)
    arrays = getattr(image, "darrays", [])
    try:
        columns = [np.asarray(each.data, dtype=np.float32) for each in arrays]
        columns = [each[:, None] if each.ndim == 1 else each for each in columns]
        return np.concatenate(columns, axis=1)
    except ValueError as error:
        raise DataError(
            f"surface file {path}: expected arrays of values, a column per time point ({error}). Give a "
            "*_bold.func.gii or a map."
        ) from error


def _read_cifti(path: Path, cortex: Cortex) -> CortexImage:
    image: Any = _loaded(path)
    try:
        models = image.header.get_axis(image.ndim - 1)
        names = [name for name, _, _ in models.iter_structures()]
    except (AttributeError, ValueError, IndexError) as error:
        raise DataError(
            f"surface file {path}: expected a CIFTI dense file with brain models ({error})."
        ) from error
    data = np.asarray(image.dataobj, dtype=np.float32)
    sizes = dict(zip(cortex.parts, cortex.sizes, strict=True))
    out = {part: np.zeros((size, len(data)), dtype=np.float32) for part, size in sizes.items()}
    kept = []
    for part in cortex.parts:
        if STRUCTURES[part] not in names:
            raise DataError(
                f"surface file {path}: it has no {STRUCTURES[part]}. Give one with both hemispheres."
            )
    for name, columns, model in models.iter_structures():
        part = next((each for each in cortex.parts if STRUCTURES[each] == name), "")
        if not part:
            continue  # below the cortex
        _check_size(path, part, int(model.nvertices[name]), len(out[part]))
        out[part][model.vertex] = data[:, columns].T
        kept.append(model)
    cortical = kept[0] if len(kept) == 1 else kept[0] + kept[1]
    return replace(cortex, models=cortical).image(np.concatenate([out[part] for part in cortex.parts]))


def seconds_between(path: Path) -> float | None:
    """The time between the columns of a CIFTI series, None where a file does not tell."""
    if not is_cifti(path):
        return None
    axis = _loaded(path).header.get_axis(0)
    return float(axis.step) if getattr(axis, "unit", "") == "SECOND" and axis.step > 0 else None


def _loaded(path: Path) -> Any:
    import nibabel

    try:
        return nibabel.load(path)
    except Exception as error:  # parsers of damaged files fail in many ways
        raise DataError(
            f"surface file {path} cannot be read ({reason(error)}). It is damaged or of another format: "
            "copy it again."
        ) from error


def write_surface_map(
    path: Path, values: NDArray, cortex: Cortex, name: str = "", labels: Labels | None = None
) -> list[Path]:
    """Write a map (V,) under the names that belong to a volume's: a CIFTI file, or a GIFTI pair.

    ``labels`` are the names of an atlas's numbers.
    """
    if cortex.models is not None:
        target = cifti_path(path)
        write_atomic(target, _cifti_bytes(values, cortex.models, cortex, name or path.name, labels))
        return [target]
    targets = []
    for part, own in cortex.split(values).items():
        targets.append(write_atomic(hemisphere_path(path, part), _gifti_bytes(own, part, name, labels)))
    return targets


def write_mesh(path: Path, cortex: Cortex, which: str = "mesh") -> list[Path]:
    """Write the meshes (or the ``drawn`` ones) as a pair ``.surf.gii``."""
    from nilearn.surface.surface import mesh_to_gifti

    out = []
    for part in cortex.parts:
        mesh = getattr(cortex, which).parts[part]
        image = mesh_to_gifti(np.asarray(mesh.coordinates, np.float32), np.asarray(mesh.faces, np.int32))
        image.darrays[0].meta["AnatomicalStructurePrimary"] = _ANATOMICAL[part]
        out.append(write_atomic(hemisphere_path(path, part, ".surf.gii"), image.to_bytes()))
    return out


def _gifti_bytes(values: NDArray, part: str, name: str, labels: Labels | None = None) -> bytes:
    from nibabel.gifti import GiftiDataArray, GiftiImage, GiftiMetaData

    whole = labels is not None or values.dtype in (bool, np.uint8)
    array = GiftiDataArray(
        values.astype(np.int32 if whole else np.float32),
        intent="NIFTI_INTENT_LABEL" if whole else "NIFTI_INTENT_ESTIMATE",
        datatype="NIFTI_TYPE_INT32" if whole else "NIFTI_TYPE_FLOAT32",
        meta=GiftiMetaData({"Name": name}),
    )
    meta = GiftiMetaData({"AnatomicalStructurePrimary": _ANATOMICAL[part]})
    image = GiftiImage(
        meta=meta, darrays=[array], labeltable=_label_table(labels or _MASK) if whole else None
    )
    return bytes(image.to_bytes())


def _label_table(labels: Labels) -> Any:
    from nibabel.gifti import GiftiLabel, GiftiLabelTable

    table = GiftiLabelTable()
    for key, label in labels.items():
        entry = GiftiLabel(key, *_colour(key))
        entry.label = label  # type: ignore[attr-defined]
        table.labels.append(entry)
    return table


def _colour(key: int) -> tuple[float, float, float, float]:
    """Red, green, blue and opacity of a number: far apart for numbers that follow each other."""
    if key == 0:
        return 0.0, 0.0, 0.0, 0.0
    return (*hsv_to_rgb(0.618034 * (key - 1) % 1.0, 0.75, 0.9), 1.0)


def _cifti_bytes(
    values: NDArray, models: Any, cortex: Cortex, name: str, labels: Labels | None = None
) -> bytes:
    from nibabel import Cifti2Image
    from nibabel.cifti2 import LabelAxis, ScalarAxis

    parts = cortex.split(values)
    row = np.empty(len(models), dtype=np.float32)
    for structure, columns, model in models.iter_structures():
        part = next(each for each in HEMISPHERES if STRUCTURES[each] == structure)
        row[columns] = parts[part][model.vertex]
    table = {key: (text, _colour(key)) for key, text in (labels or {}).items()}
    maps = LabelAxis([name], [table]) if labels else ScalarAxis([name])
    image = Cifti2Image(row[None], (maps, models))
    image.update_headers()
    image.nifti_header.set_intent("ConnDenseLabel" if labels else "ConnDenseScalar")
    return bytes(image.to_bytes())


def write_ground(mask_path: Path, cortex: Cortex) -> None:
    """Write what maps of a folder are drawn on beside its mask: meshes, and sulcal depth where known."""
    write_mesh(surface_path(mask_path, "analysed"), cortex)
    if cortex.drawn is not None:
        write_mesh(surface_path(mask_path, "drawn"), cortex, "drawn")
    for part, depth in (cortex.sulci or {}).items():
        path = hemisphere_path(surface_path(mask_path, "sulci"), part, ".shape.gii")
        write_atomic(path, _gifti_bytes(np.asarray(depth, np.float32), part, "sulcal depth"))


def read_stored(path: Path) -> CortexImage:
    """A map of a results folder, named as a volume, on the meshes beside it."""
    return stored_map(path, stored_cortex(path.parent))


def stored_map(path: Path, cortex: Cortex) -> CortexImage:
    """The same on meshes that are read already."""
    files = map_files(path)
    if is_cifti(files[0]):
        image = read_surface(files[0], cortex)
        return image.cortex.image(cortex.joined(image)[:, 0])  # type: ignore[union-attr]
    return cortex.image(np.concatenate([gifti_values(each)[:, 0] for each in files]))


def stored_cortex(folder: Path) -> Cortex:
    """The meshes in a results folder."""
    found = {name: _stored(folder, name, ".surf.gii") for name in ("analysed", "drawn")}
    if not found["analysed"]:
        raise DataError(f"{folder}: expected *_desc-analysed_surface.surf.gii, found none. Run it again.")
    meshes = {name: PolyMesh(**files) if files else None for name, files in found.items()}
    depths = {part: gifti_values(path)[:, 0] for part, path in _stored(folder, "sulci", ".shape.gii").items()}
    assert meshes["analysed"] is not None
    return Cortex(meshes["analysed"], meshes["drawn"], depths or None)


def _stored(folder: Path, name: str, ending: str) -> dict[str, Path]:
    """A file for each hemisphere there is."""
    found = {
        part: sorted(folder.glob(f"*hemi-{letter}_*desc-{name}_surface{ending}"))
        for part, letter in HEMISPHERES.items()
    }
    return {part: paths[0] for part, paths in found.items() if paths}
