"""Where data come from: what every source of samples is told and does, and the plainest: own files."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.processing import Processing
from mvpa_gamp.imaging.samples import Samples, load_samples
from mvpa_gamp.imaging.surface_names import is_surface_file, one_of_each_pair

_CLEANING = ("lag_trs", "detrend", "standardize", "smoothing_fwhm", "high_pass", "t_r")
_Same = TypeVar("_Same", bound="Source")


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
