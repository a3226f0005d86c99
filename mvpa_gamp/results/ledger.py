"""The ledger of a results folder: what every map means, in one table, and how maps and tables get there.

A cell is a method on a comparison of a subject: here is what its files share and where they go.
What is written is noted first (``imaging/disk.py``): the manifest is what was noted, and only that
is ever removed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import NDArray

from mvpa_gamp._version import __version__
from mvpa_gamp.decoding.tasks import Task
from mvpa_gamp.imaging.brainmaps import Display, write_map
from mvpa_gamp.imaging.names import PEOPLE, in_maps
from mvpa_gamp.imaging.regions import Regions
from mvpa_gamp.imaging.spaces import Space, space_of
from mvpa_gamp.methods.fold_fits import Method
from mvpa_gamp.results.files import write_tsv
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
    counted: str = "run"  # what the numbers of runs count: runs, or participants, each with maps

    @cached_property
    def space(self) -> Space:
        """Where the analysed voxels (or vertices) are."""
        return space_of(self.mask_img)

    def run_name(self, run: Any) -> Any:
        """What a run that is held out is called."""
        return self.run_names.get(run, run)

    def marked(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """The content of a JSON file, under the phantom's banner if there is one."""
        content = dict(content) if self.counted not in PEOPLE else self._in_maps(content)
        return content if self.banner is None else {"Phantom": self.banner, **content}

    def _in_maps(self, content: Any) -> Any:
        """Descriptions of runs and volumes, said of participants and maps; names of files stay."""
        if isinstance(content, Mapping):
            return {
                key: in_maps(value, self.counted)
                if str(key).endswith("Description")
                else self._in_maps(value)
                for key, value in content.items()
            }
        return content

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


NO_THRESHOLD = "none"  # every voxel of the mask has its value


class MapKind(NamedTuple):
    """What the values of a map mean, with places for what is known when it is written."""

    meaning: str
    unit: str = ""
    whitened: str = ""  # what changes where noise was whitened


SELECTED = (
    "Selected: inclusion probability above one half (VAMP methods: the largest ones, as many as they sum "
    "to), or for methods without one a weight that is not zero."
)
_MIXTURES = "those of whitened voxels, mixtures of a voxel and those whose noise it shares."
_CORRELATION = "Correlation of each voxel with the labels, both centred within runs"

# By name: of a comparison's classifier; "trained", of a cross; "information", of single voxels; "group".
MAPS = {
    "mask": MapKind("Voxels that entered the analysis."),
    "truth": MapKind("Planted voxels: those whose signal differs between the two categories."),
    "weight": MapKind(
        "Weight of each voxel in the linear classifier; positive favours the first category. "
        "A weight is not activation.", "arbitrary", "Noise was whitened; weights are mapped back to voxels."),
    "weightsd": MapKind("Posterior standard deviation of each weight under the model.", "arbitrary"),
    "pip": MapKind("Posterior probability that a voxel's weight is not zero under the model.", "1",
                   f"Noise was whitened; probabilities are {_MIXTURES}"),
    "selfreq": MapKind(
        "Share of cross-validation folds in which a voxel was selected; folds share training data.", "1",
        f"Noise was whitened; selections are {_MIXTURES}"),
    "pattern": MapKind(
        "Activation pattern of the classifier (Haufe et al., 2014): covariance of each voxel with the "
        "decision value over training volumes, divided by the decision's variance.", "arbitrary",
        "Noise was whitened for fitting; the pattern is that of the measured volumes."),
    "selected": MapKind(f"Voxels selected by the refit on all samples. {SELECTED}"),
    "class": MapKind("Mean over the {pairs} pairs with {name} of their refits on all samples. Positive "
                     "weights and patterns favour it."),
    "trained weight": MapKind("Weight of each voxel in the classifier trained on some runs; positive favours "
                              "the first category."),
    "trained weightsd": MapKind("Posterior standard deviation of each weight under the model."),
    "trained pip": MapKind("Posterior probability that a voxel's weight is not zero under the model."),
    "trained pattern": MapKind("Activation pattern of the classifier (Haufe et al., 2014)."),
    "logpfwe": MapKind(
        "-log10 of the p-value of each voxel's mean inclusion probability over folds, corrected for all "
        "voxels by the largest one in each of {n} permutations. 1.301 is p = 0.05."),
    "fdr": MapKind(
        "Voxels selected at a false-discovery rate of {rate:g}, calibrated by {n} permutations of "
        "the labels, from inclusion probability times squared correlation with the labels within runs. "
        "{verdict}"),
    "information corr": MapKind(f"{_CORRELATION}."),
    "information corr passed": MapKind(f"{_CORRELATION}, where its family-wise p <= {{level}}; 0 elsewhere."),
    "information logpfwe": MapKind(
        "-log10 of the p-value of that correlation, corrected for all voxels by step-down maxima over {n} "
        "permutations of the labels. 1.301 is p = 0.05."),
    "information mask": MapKind(
        "Voxels that carry information about the labels, family-wise p <= {level}."),
    "group mask": MapKind("Voxels analysed in all participants."),
    "group pip": MapKind("Mean over participants of the posterior probability that a voxel's weight is not "
                         "zero."),
    "group pattern": MapKind(
        "Mean over participants of activation patterns (Haufe et al., 2014), each divided by its root "
        "mean square over the common voxels, so that no participant outweighs another."),
    "group selfreq": MapKind(
        "Share of participants whose refit on all runs selects the voxel. " + SELECTED),
    "group t": MapKind(
        "T values over participants of activation patterns (Haufe et al., 2014), each divided by its root "
        "mean square over the common voxels."),
    "group t passed": MapKind(
        "T values over participants of activation patterns (Haufe et al., 2014), each divided by its root "
        "mean square over the common voxels. Where their two-sided family-wise p-value by sign flips is at "
        "most 0.05, 0 elsewhere."),
    "group logpfwe": MapKind(
        "-log10 of the two-sided family-wise p-value of the t value, by flipping the signs of whole "
        "participants' patterns (largest |t| over voxels; Nichols & Holmes, 2002), for this comparison and "
        "method alone: not corrected over comparisons or methods."),
}  # fmt: skip


@dataclass(frozen=True)
class Ledger:
    """Writes the maps and tables of one subject into a results folder."""

    folder: ResultsFolder
    subject: Subject

    @classmethod
    def of(cls, cell: Cell) -> "Ledger":
        """That of a method on a comparison."""
        return cls(cell.folder, cell.subject)

    def map(
        self, path: Path, values: NDArray, kind: str, stat: str, words: str, facts: Mapping[str, Any],
        **known: Any,
    ) -> None:  # fmt: skip
        """Write values (N,) and what they mean: ``kind`` is one of ``MAPS``, ``known`` fills its places.

        ``stat`` and ``words`` are what the header tells viewers, ``facts`` stand in the sidecar besides.
        """
        subject, what = self.subject, MAPS[kind]
        about = {"Description": what.meaning.format(**known), **facts}
        if what.unit:
            about["Units"] = what.unit
        if subject.whitened and what.whitened:
            about["NoiseWhitening"] = what.whitened
        write_map(path, values, subject.mask_img, subject.sidecar(about), subject.display(stat, words))

    def table(self, name: str, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> Path:
        """Write one of the subject's tables."""
        return write_tsv(self.folder.subject_table(self.subject.name, name), columns, rows)
