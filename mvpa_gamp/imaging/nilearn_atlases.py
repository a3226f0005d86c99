"""Atlases that nilearn knows by name, read from its data folders; the network is never touched."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mvpa_gamp.imaging.atlas_tables import names_of
from mvpa_gamp.imaging.errors import DataError


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


_FSL = "data/atlases/"
_TABLES = {"sub": "HarvardOxford-Subcortical.xml", "cortl": "HarvardOxford-Cortical-Lateralized.xml"}

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

# Atlases of the surface: fetcher, folder, and annotation files of fsaverage5, left and right.
SURFACE_ATLASES = {
    "destrieux_surface": (
        "fetch_atlas_surf_destrieux", "destrieux_surface",
        ("left.aparc.a2009s.annot", "right.aparc.a2009s.annot"),
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
