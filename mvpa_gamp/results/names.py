"""Where everything in a results folder lives: one place that knows the names."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.names import entities_text, entity

CELL_TABLES = ("folds", "predictions", "jaccard")
SUBJECT_TABLES = ("consistency", "confusion", "clusters")
FITS = "_fits.npz"  # how names of stored fits end
_OWN = ("dataset_description.json", "index.html", "summary.tsv", "summary.json", "timings.tsv", "config.toml",
        "cobidas_multivariate.tsv", "README.md", ".bidsignore")  # fmt: skip
_OWN_FOLDERS = ("figures", "logs", "work", "group")
_OWN_PATTERNS = ("sub-", "group_", ".running.json", ".writing-")  # how other names begin

STATS = ("weight", "weightsd", "pip", "selfreq", "pattern", "truth", "logpfwe", "corr", "t")
ALL_CLASSES = "all"  # the contrast name of tables about all classes together


def is_own_name(name: str) -> bool:
    """Whether an entry of a results folder has the name of a file or folder of results."""
    return name in (*_OWN, *_OWN_FOLDERS) or name.startswith(_OWN_PATTERNS)


def statmap_ending(contrast: str, desc: str, stat: str) -> str:
    """``contrast-<contrast>_desc-<desc>_stat-<stat>_statmap.nii.gz``, all parts sanitised."""
    if stat not in STATS:
        raise DataError(f"stat: expected one of {', '.join(STATS)}, got {stat!r}. Change it.")
    return f"contrast-{entity(contrast)}_desc-{entity(desc)}_stat-{stat}_statmap.nii.gz"


def _name(name: str) -> str:
    """The name of a file, which leads to no other folder."""
    if "/" in name or "\\" in name or "\0" in name:
        raise ValueError(f"{name!r} is no name of a file")
    return name


def _file(name: str, about: str) -> Any:
    """A path below the folder's root, as a property."""
    return property(lambda folder: folder.root / name, doc=about)


def _of_group(ending: str, about: str) -> Any:
    """A file of all participants, named by the entities that they share, as a property."""
    return property(
        lambda folder: folder.root / "group" / (entities_text(folder.entities) + ending), doc=about
    )


@dataclass(frozen=True)
class ResultsFolder:
    """The paths of a results folder; it creates nothing.

    Names follow BIDS derivatives and nilearn's ``contrast-``/``stat-`` form. ``desc-<method>`` is the
    refit on all runs, ``desc-<method>Selected`` the same at its selected voxels alone,
    ``desc-<method>FoldMean`` the mean over folds, ``desc-<method>Fold<k>`` one fold.
    A folder that is itself called ``sub-<id>``, one of a study of several subjects, holds that subject's
    files without a further folder of that name. ``entities`` are those of the input that all runs share
    (``ses``, ``task``, ``space``, ``res``, ...): they stand in every name behind ``sub-``. Fits are stored in
    ``work``, by default the folder of that name.
    """

    root: Path
    entities: Mapping[str, str] = field(default_factory=dict, hash=False)
    work: Path | None = None

    description = _file("dataset_description.json", "BIDS's description of the folder.")
    readme = _file("README.md", "What the folder is; written where there is none.")
    ignored = _file(".bidsignore", "What BIDS has no names for.")
    page = _file("index.html", "The one self-contained page.")
    summary = _file("summary.tsv", "The headline table, without run times: equal runs give equal bytes.")
    study = _file("summary.json", "What was done, and the headline table once more, for programs.")
    cobidas = _file("cobidas_multivariate.tsv", "What a paper should report on multivariate modelling.")
    timings = _file("timings.tsv", "Run times, the only numbers that differ between two equal runs.")
    config = _file("config.toml", "The settings, ready for ``--config``.")
    environment = _file("logs/environment.json", "Versions of Python and packages, and the machine.")
    manifest = _file("logs/manifest.tsv", "Digest of every table and map.")
    log = _file("logs/run.log", "What happened when, appended to by each start.")
    work_note = _file("logs/work_dir.txt", "Where fits are stored, if it is not in the folder.")
    lock = _file(".running.json", "Which process writes here, while one does.")
    group = _file("group_summary.json", "What was brought together at the group level.")
    group_mask = _of_group("desc-common_mask.nii.gz", "The voxels that all participants have in common.")
    group_background = _of_group("desc-mean_boldref.nii.gz", "The mean of the participants' mean volumes.")

    def skipped(self, subject: str) -> Path:
        """Why a participant of a study of several has no results."""
        return self.root / "logs" / f"sub-{subject}_skipped.json"

    def figure(self, name: str) -> Path:
        """A figure; ``name`` includes its ending."""
        return self.root / "figures" / _name(name)

    def fits(self, subject: str, contrast: str, method: str) -> Path:
        """The stored fits of one (method, task), from which ``--resume`` goes on."""
        place = self.work or self.root / "work"
        return place / f"sub-{subject}_contrast-{contrast}_desc-{entity(method)}{FITS}"

    def subject_file(self, subject: str, ending: str) -> Path:
        """``sub-<id>/sub-<id>_[<entities>_]<ending>``."""
        name = _name(f"sub-{subject}_{entities_text(self.entities)}{ending}")
        return self._home(subject) / name

    def subject_table(self, subject: str, name: str) -> Path:
        """One of ``SUBJECT_TABLES``."""
        return self.subject_file(subject, f"{name}.tsv")

    def cell_table(self, subject: str, contrast: str, method: str, name: str) -> Path:
        """One of ``CELL_TABLES`` of a method on a task."""
        return self.subject_file(subject, f"contrast-{contrast}_desc-{entity(method)}_{name}.tsv")

    def statmap(self, subject: str, contrast: str, desc: str, stat: str) -> Path:
        """A brain map; its sidecar has the same name with ``.json``."""
        return self.subject_file(entity(subject), statmap_ending(contrast, desc, stat))

    def selected_mask(self, subject: str, contrast: str, method: str) -> Path:
        """The voxels that the refit on all runs selected."""
        return self.subject_file(subject, f"contrast-{contrast}_desc-{entity(method)}Selected_mask.nii.gz")

    def fdr_mask(self, subject: str, contrast: str, method: str) -> Path:
        """The voxels selected at a false-discovery rate."""
        return self.subject_file(subject, f"contrast-{contrast}_desc-{entity(method)}Fdr_mask.nii.gz")

    def fdr_voxels(self, subject: str, contrast: str, method: str) -> Path:
        """The same voxels with their coordinates."""
        return self.subject_file(subject, f"contrast-{contrast}_desc-{entity(method)}Fdr_voxels.tsv")

    def information(self, subject: str, contrast: str, ending: str) -> Path:
        """Which voxels carry information about a comparison's labels: maps, mask and table."""
        return self.subject_file(subject, f"contrast-{contrast}_desc-information_{ending}")

    def tested_information(self, subject: str, contrast: str) -> Path:
        """The same map where it passed its family-wise test, 0 elsewhere."""
        ending = f"contrast-{contrast}_desc-informationFwe_stat-corr_statmap.nii.gz"
        return self.subject_file(subject, ending)

    def atlas(self, subject: str) -> Path:
        """The regions of an atlas on the grid of the data; its table has the same name with ``.tsv``."""
        return self.subject_file(subject, "desc-regions_dseg.nii.gz")

    def inference(self, subject: str) -> Path:
        """P-values, selections at a false-discovery rate and learning curves, a row per cell."""
        return self.subject_table(subject, "inference")

    def _home(self, subject: str) -> Path:
        """The folder of a subject's maps and tables."""
        name = f"sub-{subject}"
        return self.root if self.root.name == name else self.root / name

    def mask(self, subject: str) -> Path:
        """The voxels that were analysed."""
        return self.subject_file(subject, "desc-analysed_mask.nii.gz")

    def background(self, subject: str) -> Path:
        """The mean volume, on which maps are drawn."""
        return self.subject_file(subject, "desc-mean_boldref.nii.gz")

    def truth(self, subject: str, contrast: str) -> Path:
        """The planted voxels of a phantom."""
        return self.subject_file(subject, f"contrast-{contrast}_desc-plantedTruth_mask.nii.gz")

    def group_table(self, name: str) -> Path:
        """A table over the participants of a study of several: ``summary``, ``accuracy``, ...."""
        return self.root / f"group_{name}.tsv"

    def group_map(self, contrast: str, desc: str, stat: str) -> Path:
        """The mean of a map over participants."""
        return self.root / "group" / (entities_text(self.entities) + statmap_ending(contrast, desc, stat))
