"""A cell, a method on a comparison of a subject: what its files share and where they go."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from mvpa_gamp._version import __version__
from mvpa_gamp.decoding.tasks import Task
from mvpa_gamp.imaging.brainmaps import Display
from mvpa_gamp.imaging.regions import Regions
from mvpa_gamp.imaging.spaces import Space, space_of
from mvpa_gamp.methods.fold_fits import Method
from mvpa_gamp.results.names import ResultsFolder


@dataclass(frozen=True)
class Subject:
    """What the files of all cells of a subject share; ``banner`` is the phantom's, or None."""

    name: str
    mask_img: Any
    banner: str | None
    runs: NDArray | None  # (M,) name of each sample's run, None where it is not known
    volumes: NDArray | None = None  # (M,) place of each sample in the BOLD series
    truth: Mapping[str, NDArray] = field(default_factory=dict)  # contrast to planted voxels (N,) of a phantom
    fold_maps: bool = False  # whether maps of every fold are written
    whitened: bool = False  # whether noise was whitened before fitting
    events: Mapping[str, NDArray] = field(default_factory=dict)  # (M,) facts on the event behind each sample
    regions: Regions | None = None  # of an atlas, at the voxels of the mask
    about: Mapping[str, Any] = field(default_factory=dict)  # what every sidecar says: Sources, Software, ...
    run_names: Mapping[int, str] = field(default_factory=dict)  # of runs that are not called by a number
    links: Mapping[str, str] = field(default_factory=dict)  # datasets that Sources name

    @cached_property
    def space(self) -> Space:
        """Where the analysed voxels (or vertices) are."""
        return space_of(self.mask_img)

    def run_name(self, run: Any) -> Any:
        """What a run that is held out is called."""
        return self.run_names.get(run, run)

    def marked(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """The content of a JSON file, under the phantom's banner if there is one."""
        return dict(content) if self.banner is None else {"Phantom": self.banner, **content}

    def sidecar(self, about: Mapping[str, Any]) -> dict[str, Any]:
        """The content of a map's sidecar: what it is, what it was made from, and by which program."""
        told = {
            key: self.space.said(value) if isinstance(value, str) else value for key, value in about.items()
        }
        made = {"GeneratedBy": [{"Name": "mvpa_gamp", "Version": __version__}]}
        return self.marked({**told, **self.about, **made})

    def display(self, stat: str, words: str) -> Display:
        """What the header of a map says: its kind, and a line under the phantom's word."""
        phantom = "" if self.banner is None else "PHANTOM "
        return Display.of(stat, f"{phantom}{words} mvpa_gamp")


@dataclass(frozen=True)
class CellRecord:
    """The rows that a cell adds to the tables of the subject and of the study."""

    summary: dict[str, Any]
    timing: dict[str, Any]
    consistency: dict[str, Any] | None = None
    confusion: tuple[dict[str, Any], ...] = ()
    clusters: tuple[dict[str, Any], ...] = ()
    pattern_clusters: tuple[dict[str, Any], ...] = ()  # where no voxel was selected
    stats: tuple[str, ...] = ()


@dataclass(frozen=True)
class Cell:
    """A method on a comparison of a subject, and the folder its files go to."""

    folder: ResultsFolder
    subject: Subject
    task: Task
    method: Method

    @property
    def keys(self) -> dict[str, str]:
        """What names the cell in every table."""
        task = self.task
        names = (self.subject.name, task.name, task.label, self.method.name)
        return dict(zip(("subject", "contrast", "comparison", "method"), names, strict=True))

    def words(self, what: str) -> str:
        """For the header of a map: the map, the method and the comparison."""
        return f"{what} {self.method.name} {self.task.label}"

    def table(self, name: str) -> Path:
        """The path of one of its tables."""
        return self.folder.cell_table(self.subject.name, self.task.name, self.method.name, name)
