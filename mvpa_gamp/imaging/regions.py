"""Regions of the brain at the voxels or vertices of a mask, and the names of the regions of atlases.

Names come from the tables beside atlases, or from the atlases that nilearn knows, which are read from its
data folders; the network is never touched.
"""

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.spaces import Space, space_of

OUTSIDE = "outside the atlas"
_SHOWN = 5  # regions listed in a sentence
_ENDINGS = (".tsv", ".csv", ".txt", ".lut")
_INDEX, _NAME = ("index", "value", "id"), ("name", "label", "region")
_BACKGROUND = ("background", "unknown", "???", "0")
_LARGEST = 1 << 22  # bytes; a table of names is small
_FSL = "data/atlases/"
_TABLES = {"sub": "HarvardOxford-Subcortical.xml", "cortl": "HarvardOxford-Cortical-Lateralized.xml"}
# Atlases of the surface: fetcher, folder, and annotation files of fsaverage5, left and right.
SURFACE_ATLASES = {
    "destrieux_surface": (
        "fetch_atlas_surf_destrieux", "destrieux_surface",
        ("left.aparc.a2009s.annot", "right.aparc.a2009s.annot"),
    ),
}  # fmt: skip


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


def find_table(image: Path) -> Path | None:
    """The table beside an atlas: of the same name, or, as BIDS allows, without its ``res-`` or ``space-``.

    ``<name>.tsv``, ``.csv``, ``.txt`` and ``.lut`` are looked for in this order. Hemispheres share a table.
    """
    stem = re.sub(r"(\.d(label|scalar))?\.nii(\.gz)?$|(\.(label|func|shape))?\.gii$|\.annot$", "", image.name)
    stems = dict.fromkeys(
        re.sub(rf"_({dropped})-[^_]+", "", stem)
        for dropped in ("hemi", "hemi|res", "hemi|space", "hemi|res|space")
    )
    candidates = (image.with_name(name + ending) for name in stems for ending in _ENDINGS)
    return next((path for path in candidates if path.is_file()), None)


def read_table(path: Path) -> dict[int, str]:
    """Number to name, from one of three forms:

    a table with a header line that has the columns ``index`` and ``name`` (BIDS's ``_dseg.tsv``; tabs or
    commas); lines that begin with the number and the name (lookup tables of FreeSurfer and others; # begins a
    comment); or one name per line (nilearn's lists), where the first line names region 1, or 0 if it says
    Background.

    Parameters
    ----------
    path
        The table.

    Returns
    -------
    dict
        Name by number.
    """
    lines = _lines(path)
    separator = "\t" if "\t" in lines[0] else ","
    header = [part.strip().strip('"').lower() for part in lines[0].split(separator)]
    if {"index", "name"} <= set(header) or (_column(header, _INDEX) and _column(header, _NAME)):
        return _from_columns(path, lines, separator, header)
    body = [line for line in lines if not line.lstrip().startswith("#")]
    numbered = [re.fullmatch(r"\s*(\d+)[\s,;:]+(\S.*)", line) for line in body]
    if body and all(numbered):
        return _checked(path, [(found[1], _first_name(found[2])) for found in numbered if found])
    if any(numbered) or len(header) > 1:
        raise DataError(
            f"atlas labels {path}: expected the columns index and name, or a number and a name on every "
            f"line, or one name per line, got {lines[0][:80]!r}. Write a TSV with the columns index and name."
        )
    first = 0 if body[0].strip().lower() in _BACKGROUND else 1
    return _checked(path, [(str(first + k), name) for k, name in enumerate(body)])


def names_of(labels: Any, beside: Path | None = None) -> dict[int, str] | None:
    """Number to name from whatever tells them; None where nothing does.

    ``labels`` is the file of a table, a mapping, a list of names from number 0 on, or a data frame with the
    columns index and name, as nilearn's ``lut``; without them the table ``beside`` the atlas is read.
    """
    if isinstance(labels, str | Path):
        table = Path(labels).expanduser() if str(labels) else beside
        return None if table is None else read_table(table)
    if hasattr(labels, "columns"):
        labels = dict(zip(labels["index"], labels["name"], strict=True))
    pairs = labels.items() if isinstance(labels, Mapping) else enumerate(labels)
    return {int(index): plain(_decoded(text)) for index, text in pairs}


def _decoded(name: Any) -> Any:
    """Old tables hold bytes."""
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else name


def plain(text: object) -> str:
    """A name on one line, without control characters."""
    letters = (letter if letter.isprintable() else " " for letter in str(text))
    return " ".join("".join(letters).split())


def _column(header: Sequence[str], names: Sequence[str]) -> str | None:
    return next((name for name in names if name in header), None)


def _from_columns(path: Path, lines: list[str], separator: str, header: list[str]) -> dict[int, str]:
    """The two columns of a table."""
    index, name = _column(header, _INDEX), _column(header, _NAME)
    assert index is not None and name is not None
    try:
        rows = list(csv.reader(lines[1:], delimiter=separator))
    except csv.Error as error:  # such as a cell that never ends
        raise DataError(f"atlas labels {path} cannot be read as a table ({error}). Correct it.") from error
    short = next((k for k, row in enumerate(rows) if len(row) < len(header)), None)
    if short is not None:
        raise DataError(
            f"atlas labels {path}: line {short + 2} has {len(rows[short])} of {len(header)} columns. "
            "Correct that line."
        )
    return _checked(path, [(row[header.index(index)], row[header.index(name)]) for row in rows])


def _first_name(rest: str) -> str:
    """The name of a line of a lookup table, without the colours behind it."""
    parts = re.split(r"\t", rest) if "\t" in rest else [re.sub(r"(\s+\d+){3,}\s*$", "", rest)]
    return parts[0]


def _checked(path: Path, pairs: Sequence[tuple[str, str]]) -> dict[int, str]:
    """Whole numbers, each once, with names that are safe to print."""
    found: dict[int, str] = {}
    for text, name in pairs:
        number = text.strip()
        if not re.fullmatch(r"[0-9]{1,15}(\.0+)?", number):
            raise DataError(
                f"atlas labels {path}: expected the number of a region, 0 or more, got {text[:40]!r}. "
                "Correct it."
            )
        index = int(float(number))
        if index in found:
            raise DataError(f"atlas labels {path}: region {index} has two names. Keep one of them.")
        found[index] = plain(name) or f"region {index}"
    return found


def _lines(path: Path) -> list[str]:
    """The lines of a text file that are not empty."""
    try:
        if path.stat().st_size > _LARGEST:
            raise DataError(f"atlas labels {path}: expected a table of names, got a file of "
                            f"{path.stat().st_size:,} bytes. Give the table.")  # fmt: skip
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DataError(f"atlas labels {path} cannot be read: {error.strerror}. Check the path.") from error
    except UnicodeDecodeError as error:
        raise DataError(
            f"atlas labels {path}: expected text in UTF-8, got other bytes. Give the table."
        ) from error
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        raise DataError(f"atlas labels {path} is empty. Give the table of the atlas.")
    return lines


@dataclass(frozen=True)
class NilearnAtlas:
    """A fetcher of nilearn.datasets, its one choice, and the files it keeps.

    A name such as ``schaefer_2018:100`` makes the choice; ``files`` are below ``folder``, with {} for it.
    """

    fetcher: str
    choice: str  # the argument of the fetcher
    usual: str
    allowed: str  # a pattern
    folder: str
    files: tuple[str, ...]
    given: Mapping[str, Any] | None = None  # further arguments

    def arguments(self, chosen: str) -> dict[str, Any]:
        """The arguments of the fetcher."""
        value: Any = int(chosen) if chosen.isdigit() else chosen == "True" if self.usual == "True" else chosen
        return {self.choice: value, **(self.given or {})}

    def call(self, chosen: str) -> str:
        """The call that downloads it, for messages."""
        inside = ", ".join(f"{name}={value!r}" for name, value in self.arguments(chosen).items())
        return f"nilearn.datasets.{self.fetcher}({inside})"


NILEARN_ATLASES = {
    "harvard_oxford": NilearnAtlas(
        "fetch_atlas_harvard_oxford", "atlas_name", "cort-maxprob-thr25-2mm",
        r"(cort|cortl|sub)-maxprob-thr(0|25|50)-[12]mm", "fsl",
        (_FSL + "HarvardOxford/HarvardOxford-{}.nii.gz", _FSL + "HarvardOxford-Cortical.xml"),
    ),
    "juelich": NilearnAtlas(
        "fetch_atlas_juelich", "atlas_name", "maxprob-thr25-2mm", r"maxprob-thr(0|25|50)-[12]mm", "fsl",
        (_FSL + "Juelich/Juelich-{}.nii.gz", _FSL + "Juelich.xml"),
    ),
    "aal": NilearnAtlas(
        "fetch_atlas_aal", "version", "3v2", "3v2|SPM12", "aal_{}", ("AAL3/AAL3v1.nii", "AAL3/AAL3v1.xml")
    ),
    "schaefer_2018": NilearnAtlas(
        "fetch_atlas_schaefer_2018", "n_rois", "400", "[1-9]00|1000", "schaefer_2018",
        (
            "Schaefer2018_{}Parcels_7Networks_order.txt",
            "Schaefer2018_{}Parcels_7Networks_order_FSLMNI152_2mm.nii.gz",
        ),
        {"resolution_mm": 2},
    ),
    "destrieux_2009": NilearnAtlas(
        "fetch_atlas_destrieux_2009", "lateralized", "True", "True", "destrieux_2009",
        (
            "destrieux2009_rois_labels_lateralized.csv",
            "destrieux2009_rois_lateralized.nii.gz",
            "destrieux2009.rst",
        ),
    ),
}  # fmt: skip


def open_nilearn(name: str) -> tuple[Any, dict[int, str]]:
    """Image and names of an atlas whose files are in one of nilearn's data folders."""
    from nilearn import datasets
    from nilearn.image import load_img

    known, _, chosen = name.partition(":")
    atlas = NILEARN_ATLASES[known]
    chosen = chosen or atlas.usual
    if not re.fullmatch(atlas.allowed, chosen):
        raise DataError(
            f"atlas {name}: expected {known}, or {known}:CHOICE with the {atlas.choice} of "
            f"nilearn.datasets.{atlas.fetcher} (a labelled volume, such as {atlas.usual}), got {chosen!r}. "
            "Correct it."
        )
    root = _root_of(atlas, known, chosen)
    try:
        found = getattr(datasets, atlas.fetcher)(**atlas.arguments(chosen), data_dir=str(root), verbose=0)
        image = load_img(found.maps)
        rows = zip(found.lut["index"].tolist(), found.lut["name"].tolist(), strict=True)
    except Exception as error:  # nilearn passes on whatever a damaged file raises
        raise DataError(
            f"atlas {name}: its files in {root} cannot be used ({' '.join(str(error).split())}). Download it "
            f"again: {atlas.call(chosen)}."
        ) from error
    return image, names_of(dict(rows)) or {}


def _root_of(atlas: NilearnAtlas, known: str, chosen: str) -> Path:
    """The data folder that holds all files of an atlas; a sentence on how to get it where none does."""
    return _holding(_files(atlas, known, chosen), known, atlas.call(chosen))


def _holding(files: Sequence[Path], known: str, call: str) -> Path:
    """The data folder that holds all of some files."""
    from nilearn.datasets import get_data_dirs

    roots = [Path(folder).expanduser() for folder in get_data_dirs()]
    for root in roots:
        if all((root / file).is_file() for file in files):
            return root
    raise DataError(
        f"atlas {known}: {files[0]} is in none of nilearn's data folders ({', '.join(map(str, roots))}), and "
        f"nothing is downloaded here. Download it once, in Python: {call}."
    )


def surface_file(name: str) -> Path:
    """The left hemisphere's file of an atlas of the surface."""
    fetcher, folder, files = SURFACE_ATLASES[name]
    here = [Path(folder, file) for file in files]
    return _holding(here, name, f"nilearn.datasets.{fetcher}()") / here[0]


def _files(atlas: NilearnAtlas, known: str, chosen: str) -> list[Path]:
    """The files of an atlas below a data folder."""
    files = [file.format(chosen) for file in atlas.files]
    if known == "harvard_oxford":
        kind = chosen.partition("-")[0]
        files[1] = _FSL + _TABLES.get(kind, "HarvardOxford-Cortical.xml")
    if chosen == "SPM12":
        files = ["aal/atlas/AAL.nii", "aal/atlas/AAL.xml"]
    return [Path(atlas.folder.format(chosen)) / file for file in files]
