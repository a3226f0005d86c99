"""From the fits of a cell, a method on a comparison, to its files: maps with sidecars, tables, clusters."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp._version import __version__
from mvpa_gamp.decoding.tasks import Task
from mvpa_gamp.imaging.brainmaps import Display, write_map
from mvpa_gamp.imaging.map_names import entity
from mvpa_gamp.imaging.regions import Regions
from mvpa_gamp.imaging.spaces import Space, space_of
from mvpa_gamp.methods.fold_fits import FoldFits, Method
from mvpa_gamp.results.clusters import cluster_rows
from mvpa_gamp.results.files import write_json, write_tsv
from mvpa_gamp.results.measures import measures_of, overlap_rows
from mvpa_gamp.results.names import ResultsFolder
from mvpa_gamp.results.pattern_clusters import pattern_cluster_rows

_MEANING = {
    "weight": "Weight of each voxel in the linear classifier; positive favours the first category. "
    "A weight is not activation.",
    "weightsd": "Posterior standard deviation of each weight under the model.",
    "pip": "Posterior probability that a voxel's weight is not zero under the model.",
    "selfreq": "Share of cross-validation folds in which a voxel was selected; folds share training data.",
    "pattern": "Activation pattern of the classifier (Haufe et al., 2014): covariance of each voxel with the "
    "decision value over training volumes, divided by the decision's variance.",
}
_WHITENED = {
    "weight": "Noise was whitened; weights are mapped back to voxels.",
    "pip": "Noise was whitened; probabilities are those of whitened voxels, mixtures of a voxel and those "
    "whose noise it shares.",
    "selfreq": "Noise was whitened; selections are those of whitened voxels, mixtures of a voxel and those "
    "whose noise it shares.",
    "pattern": "Noise was whitened for fitting; the pattern is that of the measured volumes.",
}
_UNITS = {"weight": "arbitrary", "weightsd": "arbitrary", "pattern": "arbitrary", "pip": "1", "selfreq": "1"}
_SELECTED = (
    "Selected: inclusion probability above one half where the method has one, else a weight that is not zero."
)
NO_THRESHOLD = "none"  # every voxel of the mask has its value
_PROBABLE, _NOT_ZERO = "posterior inclusion probability above 0.5", "weight other than 0"
_FIELDS = {"weight": "coef", "weightsd": "coef_std", "pip": "inclusion", "pattern": "pattern"}
_PREDICTIONS = {
    "sample": "Row among the labelled volumes of the study (rest left out), from 0.",
    "volume": "Place of the volume in the BOLD series (files in the given order), from 0. With a label lag "
    "it is the volume whose values were used, not the one that carries the label in the label file. Of a "
    "mean over an event it is the first volume.",
    "onset": "Onset of the event in seconds, as in its events.tsv.",
    "duration": "Duration of the event in seconds, as in its events.tsv.",
    "event_line": "Line of the event in the events.tsv of its run, the header being line 1.",
    "run": "Run of the volume, as in the label file.",
    "fold": "Fold that held the volume out, from 1.",
    "true": "Category shown.",
    "predicted": "Category predicted by the fold that held the volume out.",
    "correct": "Whether the two are the same.",
    "probability_positive": "Probability of the first category of the contrast under the model; n/a for "
    "methods without one.",
    "decision": "Decision value of the classifier; positive favours the first category of the contrast.",
}
_COLUMNS = {name: {"Description": meaning} for name, meaning in _PREDICTIONS.items()}
CONFUSION_COLUMNS = ("contrast", "method", "true", "predicted", "count")


@dataclass(frozen=True)
class Subject:
    """What the files of all cells of a subject share; ``banner`` is the phantom's, or None."""

    name: str
    mask_img: Any
    banner: str | None
    runs: NDArray | None  # (M,) run of each sample, None where it is not known
    volumes: NDArray | None = None  # (M,) place of each sample in the BOLD series
    truth: Mapping[str, NDArray] = field(default_factory=dict)  # contrast to planted voxels (N,) of a phantom
    fold_maps: bool = False  # whether maps of every fold are written
    whitened: bool = False  # whether noise was whitened before fitting
    events: Mapping[str, NDArray] = field(default_factory=dict)  # (M,) facts on the event behind each sample
    regions: Regions | None = None  # of an atlas, at the voxels of the mask
    about: Mapping[str, Any] = field(default_factory=dict)  # what every sidecar says: Sources, Software, ...
    links: Mapping[str, str] = field(default_factory=dict)  # datasets that Sources name

    @cached_property
    def space(self) -> Space:
        """Where the analysed voxels (or vertices) are."""
        return space_of(self.mask_img)

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

    def write_map(
        self, desc: str, stat: str, values: NDArray, which: str, threshold: str = NO_THRESHOLD
    ) -> None:
        """One map with its sidecar; ``which`` says what it was estimated from."""
        about = {
            "Description": _MEANING[stat],
            "Estimate": which,
            "Units": _UNITS[stat],
            "Threshold": threshold,
            "Contrast": f"{self.task.positive} (positive) versus {self.task.negative} (negative)",
            "Method": self.method.name,
            "MethodDescription": self.method.description,
        }
        if self.subject.whitened:
            about["NoiseWhitening"] = _WHITENED[stat]
        path = self.folder.statmap(self.subject.name, self.task.name, desc, stat)
        display = self.display(stat)
        write_map(path, values, self.subject.mask_img, self.subject.sidecar(about), display)

    def display(self, stat: str, what: str = "") -> Display:
        """What the header of a map says: the map, the method and the comparison."""
        return self.subject.display(stat, f"{what or stat} {self.method.name} {self.task.label}")

    def write_selection(self, fits: FoldFits) -> None:
        """The voxels that the refit selected as a mask, and the weights at these voxels, zero elsewhere."""
        support, weight = fits.refit.support[:, 0], fits.refit.coef[:, 0]
        threshold = _PROBABLE if fits.inclusion is not None else _NOT_ZERO
        folder, subject = self.folder, self.subject
        path = folder.selected_mask(subject.name, self.task.name, self.method.name)
        about = {
            "Description": f"Voxels selected by the refit on all samples. {_SELECTED}",
            "Type": "ROI",
            "Threshold": threshold,
            "Contrast": f"{self.task.positive} versus {self.task.negative}",
            "Method": self.method.name,
        }
        sidecar = subject.sidecar(about)
        write_map(path, support.astype(np.uint8), subject.mask_img, sidecar, self.display("selected"))
        kept = np.where(support, weight, 0.0)
        which = f"refit on all samples, zero outside of the selected voxels. {_SELECTED}"
        self.write_map(f"{entity(self.method.name)}Selected", "weight", kept, which, threshold)

    def table(self, name: str) -> Any:
        """The path of one of its tables."""
        return self.folder.cell_table(self.subject.name, self.task.name, self.method.name, name)


def write_cell(cell: Cell, fits: FoldFits) -> CellRecord:
    """Write the files of a finished cell and return its rows; ``fits`` answer the rows of its task."""
    stats = _write_maps(cell, fits)
    _write_tables(cell, fits)
    y, truth = cell.task.y, cell.subject.truth.get(cell.task.name)
    measures = measures_of(fits, y, truth)
    keys = cell.keys
    short = {name: keys[name] for name in ("contrast", "method")}
    return CellRecord(
        summary={**keys, **measures, "status": "ok"},
        timing={**keys, "seconds": fits.seconds},
        consistency={**keys, **measures},
        confusion=tuple({**short, **row} for row in _confusion_rows(cell, fits)),
        clusters=tuple({**short, **row} for row in _clusters(cell, fits)),
        pattern_clusters=tuple({**short, **row} for row in _pattern_clusters(cell, fits)),
        stats=stats,
    )


def failed_cell(cell: Cell, reason: str) -> CellRecord:
    """The rows of a cell that has no result: no number, and the reason."""
    status = "failed: " + " ".join(reason.split())
    counts = {"folds": 0, "folds_converged": 0, "status": status}
    return CellRecord(summary={**cell.keys, **counts}, timing={**cell.keys, "seconds": None})


def _write_maps(cell: Cell, fits: FoldFits) -> tuple[str, ...]:
    """Maps of the refit, their means over folds, the selection frequency; returns the kinds written."""
    desc, n_folds = entity(cell.method.name), fits.n_folds
    known = {stat: getattr(fits, name) for stat, name in _FIELDS.items() if getattr(fits, name) is not None}
    for stat, values in known.items():
        cell.write_map(desc, stat, values[:, -1], "refit on all samples")
        mean = np.asarray(values[:, :n_folds].mean(axis=1, dtype=np.float64))
        cell.write_map(f"{desc}FoldMean", stat, mean, f"mean over {n_folds} folds")
    cell.write_selection(fits)
    selects = not fits.folds.support.all()  # of a method that weighs every voxel nothing is selected
    if selects:
        cell.write_map(desc, "selfreq", fits.frequency, f"over {n_folds} folds")
    held_out = fits.held_out if cell.subject.fold_maps and fits.held_out is not None else ()
    for k, run in enumerate(held_out):
        for stat in known.keys() - {"pattern"}:
            which = f"fold {k + 1}, run {run} held out"
            cell.write_map(f"{desc}Fold{k + 1:02d}", stat, known[stat][:, k], which)
    return (*known, "selfreq") if selects else tuple(known)


def _write_tables(cell: Cell, fits: FoldFits) -> None:
    """folds.tsv, predictions.tsv and jaccard.tsv of a cell."""
    rows = _fold_rows(cell, fits)
    write_tsv(cell.table("folds"), list(rows[0]), rows)
    path = cell.table("predictions")
    rows = _prediction_rows(cell, fits)
    write_tsv(path, tuple(rows[0]), rows)
    write_json(path.with_suffix(".json"), cell.subject.marked({name: _COLUMNS[name] for name in rows[0]}))
    if fits.n_folds > 1 and fits.held_out is not None:
        write_tsv(cell.table("jaccard"), *overlap_rows(fits.folds.support, fits.held_out))


def _fold_rows(cell: Cell, fits: FoldFits) -> list[dict[str, Any]]:
    """A row per fold, then the refit."""
    assert fits.tested is not None and fits.held_out is not None
    wrong = (fits.decision > 0) != (cell.task.y > 0)[:, None]
    rows = []
    for k in range(fits.n_folds + 1):
        refit = k == fits.n_folds
        test = np.zeros(len(wrong), dtype=bool) if refit else fits.tested[:, k]
        rows.append({
            "fold": "refit" if refit else k + 1,
            "held_out_run": None if refit else fits.held_out[k],
            "test_volumes": int(test.sum()),
            "wrong": None if refit else int(wrong[test, k].sum()),
            "error_percent": None if refit else 100 * float(wrong[test, k].mean()),
            "voxels": int(fits.support[:, k].sum()),
            "intercept": fits.intercept[k],
            "n_iter": fits.n_iter[k],
            "converged": fits.converged[k],
            **{name: values[k] for name, values in fits.parameters.items()},
            "status": fits.status[k],
        })  # fmt: skip
    return rows


def _prediction_rows(cell: Cell, fits: FoldFits) -> list[dict[str, Any]]:
    """A row per held-out volume and the fold that held it out, in the order of the volumes."""
    assert fits.tested is not None
    task, subject = cell.task, cell.subject
    names = {True: task.positive, False: task.negative}
    return [
        {
            "sample": task.rows[m],
            "volume": None if subject.volumes is None else subject.volumes[task.rows[m]],
            **{name: values[task.rows[m]] for name, values in subject.events.items()},
            "run": None if subject.runs is None else subject.runs[task.rows[m]],
            "fold": fold + 1,
            "true": names[bool(task.y[m] > 0)],
            "predicted": names[bool(fits.decision[m, fold] > 0)],
            "correct": (fits.decision[m, fold] > 0) == (task.y[m] > 0),
            "probability_positive": fits.proba[m, fold],
            "decision": fits.decision[m, fold],
        }
        for m, fold in np.argwhere(fits.tested)
    ]


def _confusion_rows(cell: Cell, fits: FoldFits) -> list[dict[str, Any]]:
    """Counts of held-out volumes by true and predicted category."""
    assert fits.tested is not None
    rows, fold = np.nonzero(fits.tested)
    true, said = cell.task.y[rows] > 0, fits.decision[rows, fold] > 0
    names = {True: cell.task.positive, False: cell.task.negative}
    return [
        {"true": names[a], "predicted": names[b], "count": int(((true == a) & (said == b)).sum())}
        for a in (True, False)
        for b in (True, False)
    ]


def _clusters(cell: Cell, fits: FoldFits) -> list[dict[str, Any]]:
    """Clusters that the refit's selected voxels form; none where every voxel has a weight."""
    refit, subject = fits.refit, cell.subject
    if refit.support.all():
        return []
    rows = cluster_rows(refit.support[:, 0], refit.coef[:, 0], fits.frequency, subject.space)
    if subject.regions is None:
        return rows
    peaks = [[row[f"peak_{axis}_mm"] for axis in "xyz"] for row in rows]
    return [{**row, "region": subject.regions.region_at(at)} for row, at in zip(rows, peaks, strict=True)]


def _pattern_clusters(cell: Cell, fits: FoldFits) -> list[dict[str, Any]]:
    """Where the refit's pattern is strongest, if it selected no voxel."""
    if fits.pattern is None or fits.refit.support.any():
        return []
    names, subject = (cell.task.positive, cell.task.negative), cell.subject
    return pattern_cluster_rows(np.asarray(fits.pattern[:, -1], float), names, subject.space)
