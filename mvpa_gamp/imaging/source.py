"""Where data come from: what every source is told and does, own files, and the data of Haxby et al. (2001).

haxby2001/mask.nii.gz                 whole brain, of one grid
haxby2001/subjK/bold.nii.gz           1452 volumes, TR 2.5 s
haxby2001/subjK/labels.txt            `labels chunks`, a line per volume
haxby2001/subjK/mask4_vt.nii.gz       ventral temporal cortex
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.names import is_surface_file, one_of_each_pair
from mvpa_gamp.imaging.processing import Processing
from mvpa_gamp.imaging.samples import Samples, load_samples
from mvpa_gamp.imaging.volumes import computed_mask, is_same_grid, open_mask, open_series

_CLEANING = ("lag_trs", "detrend", "standardize", "smoothing_fwhm", "high_pass", "t_r")
_Same = TypeVar("_Same", bound="Source")
DATASET = "haxby2001"
PARTICIPANTS = (1, 2, 3, 4, 5, 6)
T_R = 2.5  # s; the published headers do not all say so
_REGIONS = {"brain": "whole brain", "vt": "ventral temporal cortex"}


@dataclass(frozen=True, kw_only=True)
class Source:
    """Settings of a source of data; an empty text or tuple was not given, None is not needed.

    ``resolve()`` fills in what was not given, makes paths absolute and refuses what contradicts itself;
    ``load()`` reads the samples. ``t_r`` is in seconds, None: as the files say.
    """

    detrend: bool = True
    standardize: bool = True
    smoothing_fwhm: float | None = None
    high_pass: float | None = None
    t_r: float | None = None

    name: ClassVar[str]  # for messages
    paths: ClassVar[tuple[str, ...]] = ("mask",)  # settings that name files or folders
    words: ClassVar[tuple[str, ...]] = ()  # what they may hold besides

    def resolve(self: _Same) -> _Same:
        """The same settings with nothing left open."""
        self.processing()  # refuses what has no meaning
        return self.absolute()

    def load(self) -> Samples:
        """Read the samples; DataError with one sentence where something is missing or unfit."""
        raise NotImplementedError

    def listed(self) -> Sequence[tuple[str, Path]]:
        """Files that a table of the source names, each with the option of the table."""
        return ()

    def absolute(self: _Same) -> _Same:
        """The same settings with paths that mean the same from every folder."""
        return replace(self, **{name: self._absolute(getattr(self, name)) for name in self.paths})

    def processing(self, **more: Any) -> Processing:
        """What is done to the time series."""
        given = {name: getattr(self, name) for name in _CLEANING}
        return Processing(**{name: value for name, value in given.items() if value is not None}, **more)

    def _absolute(self, value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(self._absolute, value))
        return str(Path(value).expanduser().absolute()) if value and value not in self.words else value


@dataclass(frozen=True, kw_only=True)
class OwnFiles(Source):
    """BOLD files in the order of the labels, their label file and a mask, all three needed.

    ``confounds`` is one TSV for all volumes, or one per BOLD file. On surfaces BOLD files are CIFTI series or
    GIFTI pairs (either file of each, or both), a mask is not needed, and ``surface_mesh`` are the meshes of
    the two hemispheres, by default those of fsaverage5.
    """

    bold: tuple[str, ...] = ()
    labels: str = ""
    mask: str = ""
    participant_label: str = "01"
    lag_trs: int = 0
    confounds: tuple[str, ...] = ()
    surface_mesh: tuple[str, ...] = ()

    name = "your own files"
    paths = ("bold", "labels", "mask", "confounds", "surface_mesh")

    @property
    def is_on_surface(self) -> bool:
        """Whether the BOLD files are on surfaces."""
        return any(map(is_surface_file, self.bold))

    def resolve(self) -> "OwnFiles":
        """The same with absolute paths; all three kinds of files are needed, on surfaces no mask."""
        needed = ("bold", "labels") if self.is_on_surface else ("bold", "labels", "mask")
        missing = [f"--{name}" for name in needed if not getattr(self, name)]
        if self.mask in ("vt", "brain"):
            missing.append(f"a file for --mask ({self.mask} belongs to Haxby's data)")
        if missing:
            raise DataError(
                f"Your own data need --bold, --labels and --mask FILE; missing: {', '.join(missing)}. Add it."
            )
        self._check_kind()
        label, bold = self.participant_label.removeprefix("sub-"), one_of_each_pair(self.bold)
        return replace(super().resolve(), participant_label=label, bold=bold).absolute()

    def _check_kind(self) -> None:
        """Refuse volumes beside surfaces, and what only one of them has a use for."""
        if self.surface_mesh and not self.is_on_surface:
            raise DataError("--surface-mesh is for runs on surfaces, got volumes. Leave it out.")
        volumes = [name for name in self.bold if not is_surface_file(name)]
        if volumes and self.is_on_surface:
            raise DataError(
                f"--bold {volumes[0]}: expected a surface file as the others are, GIFTI or CIFTI. Give "
                "files of one kind."
            )
        if self.is_on_surface:
            from mvpa_gamp.imaging.surfaces import check_mesh_files, check_unsmoothed

            check_mesh_files(self.surface_mesh)
            check_unsmoothed(self.smoothing_fwhm)

    def load(self) -> Samples:
        """Samples of the files."""
        ready = self.resolve()
        steps = ready.processing(confounds=ready.confounds)
        bold, mask = ready._surfaces() if ready.is_on_surface else (ready.bold, ready.mask)
        return load_samples(bold, ready.labels, mask, steps, ready.participant_label)

    def _surfaces(self) -> tuple[Any, Any]:
        """Series and mask on the meshes given, or on those of fsaverage5."""
        from mvpa_gamp.imaging.cortex import packaged_cortex, read_cortex
        from mvpa_gamp.imaging.surfaces import read_surfaces, surface_mask

        cortex = read_cortex(self.surface_mesh) if self.surface_mesh else packaged_cortex()
        mask = surface_mask(self.mask, cortex)
        return read_surfaces(self.bold, cortex), mask


@dataclass(frozen=True, kw_only=True)
class HaxbySource(Source):
    """One participant of Haxby's data, by default the first; ``mask`` is "brain", "vt" or a file.

    ``data_dir`` holds ``haxby2001`` or is that folder itself; without it nilearn's data folders are searched.
    The network is touched only with ``fetch`` and only for missing files.
    """

    participant_label: str = ""
    mask: str = "brain"
    data_dir: str = ""
    fetch: bool = False
    lag_trs: int = 0
    confounds: tuple[str, ...] = ()

    name = "Haxby's data"
    paths = ("mask", "data_dir", "confounds")
    words = ("brain", "vt")

    def resolve(self) -> "HaxbySource":
        """The same with the folder in which the files are, downloaded where asked for and missing."""
        ready, number = super().resolve(), participant_number(self.participant_label or 1)
        folder = find_haxby(number, self.data_dir)
        if folder is None and self.fetch:
            folder = _fetch(number, self.data_dir)
        if folder is None:
            raise DataError(
                f"Haxby data of participant {number}: expected {DATASET}/subj{number}/bold.nii.gz and "
                f"labels.txt in {_listed(self.data_dir)}, found none. Give --data-dir, or --fetch to "
                "download them."
            )
        return replace(ready, participant_label=str(number), data_dir=str(folder.absolute()))

    def load(self) -> Samples:
        """Samples of the participant."""
        ready = self.resolve()
        own = Path(ready.data_dir, f"subj{ready.participant_label}")
        steps = replace(ready.processing(confounds=ready.confounds), t_r=ready.t_r or T_R)
        bold = open_series(own / "bold.nii.gz")
        mask, notes = _choose_mask(own, ready.mask, bold)
        samples = load_samples(bold, own / "labels.txt", mask, steps, ready.participant_label)
        samples = replace(samples, notes=(*notes, *samples.notes))
        where = _REGIONS.get(ready.mask, f"mask {Path(ready.mask).name}")
        told = f"Data of Haxby et al. (2001), participant {ready.participant_label}, {where}."
        return samples.from_source("haxby", told)


def participant_number(participant: int | str) -> int:
    """1 to 6 from a number, "3", "subj3" or "sub-3"."""
    text = str(participant).strip().lower().removeprefix("subj").removeprefix("sub-").removeprefix("sub")
    if not text.isascii() or not text.isdigit() or int(text) not in PARTICIPANTS:
        raise DataError(
            f"participant: expected 1 to 6 for Haxby's data, got {participant!r}. Choose one of them."
        )
    return int(text)


def find_haxby(participant: int, data_dir: str | Path = "") -> Path | None:
    """The folder ``haxby2001`` with BOLD and labels of a participant, or None; never touches the network.

    Parameters
    ----------
    participant
        1 to 6.
    data_dir
        Where to look; empty: in nilearn's data folders.

    Returns
    -------
    Path or None
        The folder.
    """
    for folder in (folder for root in _roots(data_dir) for folder in (root / DATASET, root)):
        own = folder / f"subj{participant}"
        if (own / "bold.nii.gz").is_file() and (own / "labels.txt").is_file():
            return folder
    return None


def _roots(data_dir: str | Path) -> list[Path]:
    """Where to look: the folder given, or nilearn's data folders."""
    from nilearn.datasets import get_data_dirs

    return [Path(folder).expanduser() for folder in ([data_dir] if data_dir else get_data_dirs())]


def _fetch(participant: int, data_dir: str | Path) -> Path | None:
    """Let nilearn download a participant's files, about 300 MB, then look again."""
    from nilearn import datasets

    try:
        datasets.fetch_haxby(data_dir=str(data_dir) if data_dir else None, subjects=[participant])
    except Exception as error:  # nilearn passes on whatever the network, the archive or the disk raise
        raise DataError(
            f"Haxby data of participant {participant} could not be downloaded: {error}. Check the network, "
            f"or put the files into {_listed(data_dir)}."
        ) from error
    return find_haxby(participant, data_dir)


def _choose_mask(own: Path, mask: str, bold: Any) -> tuple[Any, tuple[str, ...]]:
    """The mask image or file, and a note where it had to be computed; ``own`` is the participant's folder."""
    ventral = own / "mask4_vt.nii.gz"
    if mask == "vt" and not ventral.is_file():
        raise DataError(f"mask vt: expected {ventral}, found none. Use --mask brain, or a file.")
    if mask != "brain":
        return ventral if mask == "vt" else mask, ()
    published, reason = own.parent / "mask.nii.gz", "is missing"
    if published.is_file():
        if is_same_grid(open_mask(published)[0], bold):
            return published, ()
        reason = "is on another participant's grid"
    computed, size = computed_mask([bold])
    told = f"The brain mask was computed from the mean volume, because haxby2001/mask.nii.gz {reason}"
    return computed, (f"{told}: {size:,} voxels.",)


def _listed(data_dir: str | Path) -> str:
    return " or ".join(map(str, _roots(data_dir)))
