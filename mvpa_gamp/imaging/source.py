"""Where data come from: what every source of samples is told and does, and the plainest: own files."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.processing import Processing
from mvpa_gamp.imaging.samples import Samples, load_samples

_CLEANING = ("lag_trs", "detrend", "standardize", "smoothing_fwhm", "high_pass", "t_r")
_Same = TypeVar("_Same", bound="Source")


@dataclass(frozen=True, kw_only=True)
class Source:
    """Settings of a source; an empty text or tuple is one not given, None what need not be there.

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

    ``confounds`` is one TSV for all volumes, or one per BOLD file.
    """

    bold: tuple[str, ...] = ()
    labels: str = ""
    mask: str = ""
    participant_label: str = "01"
    lag_trs: int = 0
    confounds: tuple[str, ...] = ()

    name = "your own files"
    paths = ("bold", "labels", "mask", "confounds")

    def resolve(self) -> "OwnFiles":
        """The same with absolute paths; all three kinds of files are needed."""
        missing = [f"--{name}" for name in ("bold", "labels", "mask") if not getattr(self, name)]
        if self.mask in ("vt", "brain"):
            missing.append(f"a file for --mask ({self.mask} belongs to Haxby's data)")
        if missing:
            raise DataError(
                f"Your own data need --bold, --labels and --mask FILE; missing: {', '.join(missing)}. Add it."
            )
        return replace(super().resolve(), participant_label=self.participant_label.removeprefix("sub-"))

    def load(self) -> Samples:
        """Samples of the files."""
        ready = self.resolve()
        steps = ready.processing(confounds=ready.confounds)
        return load_samples(ready.bold, ready.labels, ready.mask, steps, ready.participant_label)
