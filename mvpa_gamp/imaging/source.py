"""Where data come from: what every source of samples is told, and what it does with it."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from mvpa_gamp.imaging.processing import Processing
from mvpa_gamp.imaging.samples import Samples

_Any = TypeVar("_Any", bound="Source")


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

    def resolve(self: _Any) -> _Any:
        """The same settings with nothing left open."""
        raise NotImplementedError

    def load(self) -> Samples:
        """Read the samples; DataError with one sentence where something is missing or unfit."""
        raise NotImplementedError

    def absolute(self: _Any) -> _Any:
        """The same settings with paths that mean the same from every folder."""
        return replace(self, **{name: self._absolute(getattr(self, name)) for name in self.paths})

    def processing(self, lag_trs: int = 0, **more: Any) -> Processing:
        """What is done to the time series."""
        names = ("detrend", "standardize", "smoothing_fwhm", "high_pass", "t_r")
        return Processing(lag_trs=lag_trs, **{name: getattr(self, name) for name in names}, **more)

    def _absolute(self, value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(self._absolute(each) for each in value)
        return str(Path(value).expanduser().absolute()) if value and value not in self.words else value
