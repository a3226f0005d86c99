"""From the stored fits of a unit to its files: maps with sidecars, folds, predictions, overlap."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.decoding.tasks import Task
from mvpa_gamp.imaging.brainmaps import write_map
from mvpa_gamp.imaging.map_names import entity
from mvpa_gamp.methods.fold_fits import Method
from mvpa_gamp.report.clusters import cluster_rows
from mvpa_gamp.report.consistency import consistency, overlap_rows
from mvpa_gamp.report.files import write_json, write_tsv
from mvpa_gamp.report.folder import ResultsFolder
from mvpa_gamp.report.tables import error_summary
from mvpa_gamp.study.fits import UnitFits

_MEANING = {
    "weight": "Weight of each voxel in the linear classifier; positive speaks for the first category. "
    "A weight is not activation.",
    "weightsd": "Posterior standard deviation of each weight under the model.",
    "pip": "Posterior probability that a voxel's weight is not zero under the model.",
    "selfreq": "Share of cross-validation folds in which a voxel was selected; folds share training data.",
    "pattern": "Activation pattern of the classifier (Haufe et al., 2014): covariance of each voxel with the "
    "decision value over training volumes, divided by the decision's variance.",
}
_PREDICTIONS = {
    "sample": "Row among the labelled volumes of the study (rest left out), from 0.",
    "volume": "Place of the volume in the BOLD series (files in the given order), from 0. With a label lag "
    "it is the volume whose values were used, not the one that carries the label in the label file. Of a "
    "mean over an event it is the first volume.",
    "run": "Run of the volume, as in the label file.",
    "true": "Category shown.",
    "predicted": "Category predicted by the fold that held the run out.",
    "correct": "Whether the two are the same.",
    "probability_positive": "Probability of the first category of the contrast under the model; n/a for "
    "methods without one.",
    "decision": "Decision value of the classifier; positive speaks for the first category of the contrast.",
}
_UNITS = {"weight": "arbitrary", "weightsd": "arbitrary", "pattern": "arbitrary", "pip": "1", "selfreq": "1"}


@dataclass(frozen=True)
class Subject:
    """What the files of all units of a subject share; ``banner`` is the phantom's, or None."""

    name: str
    mask_img: Any
    banner: str | None
    truth: Mapping[str, NDArray]  # contrast to planted voxels (N,), for a phantom
    version: str
    volumes: NDArray | None = None  # (M,) place of each sample in the BOLD series

    @property
    def mask(self) -> NDArray:
        """The analysed voxels as a 3-d bool array."""
        return np.asarray(self.mask_img.dataobj) > 0


@dataclass(frozen=True)
class UnitRecord:
    """The rows that a unit adds to the tables of the subject and of the study."""

    summary: dict[str, Any]
    timing: dict[str, Any]
    consistency: dict[str, Any] | None = None
    confusion: tuple[dict[str, Any], ...] = ()
    clusters: tuple[dict[str, Any], ...] = ()
    stats: tuple[str, ...] = ()


def write_unit(
    folder: ResultsFolder, subject: Subject, task: Task, method: Method, fits: UnitFits, fold_maps: bool
) -> UnitRecord:
    """Write the files of a finished unit and return its rows."""
    maps = _refit_maps(fits)
    _write_maps(folder, subject, task, method, entity(method.name), maps, "refit on all runs")
    frequency = {"selfreq": fits.frequency}
    _write_maps(folder, subject, task, method, entity(method.name), frequency, f"over {fits.n_folds} folds")
    _write_maps(
        folder, subject, task, method, f"{entity(method.name)}FoldMean", _mean_maps(fits),
        f"mean over {fits.n_folds} folds",
    )  # fmt: skip
    if fold_maps:
        for k, run in enumerate(fits.held_out):
            desc = f"{entity(method.name)}Fold{k + 1:02d}"
            _write_maps(
                folder, subject, task, method, desc, _fold_maps(fits, k), f"fold {k + 1}, run {run} held out"
            )
    _write_tables(folder, subject, task, method, fits)
    return _record(subject, task, method, fits, (*maps, "selfreq"))


def failed_unit(subject: Subject, task: Task, method: Method, reason: str) -> UnitRecord:
    """The rows of a unit that has no result: no number, and the reason."""
    keys = _keys(subject, task, method)
    status = "failed: " + " ".join(reason.split())
    return UnitRecord(
        summary={**keys, "folds": 0, "folds_converged": 0, "status": status}, timing={**keys, "seconds": None}
    )


def _keys(subject: Subject, task: Task, method: Method) -> dict[str, str]:
    """What names a unit in every table."""
    return {"subject": subject.name, "contrast": task.name, "comparison": task.label, "method": method.name}


def _refit_maps(fits: UnitFits) -> dict[str, NDArray]:
    """Maps of the refit."""
    return {**_fold_maps(fits, fits.n_folds), "pattern": fits.pattern[:, 0]}


def _mean_maps(fits: UnitFits) -> dict[str, NDArray]:
    """Every map averaged over folds."""
    each = [_fold_maps(fits, k) for k in range(fits.n_folds)]
    means = {
        stat: np.asarray(np.mean([maps[stat] for maps in each], axis=0, dtype=np.float64)) for stat in each[0]
    }
    return {**means, "pattern": fits.pattern[:, 1]}


def _fold_maps(fits: UnitFits, column: int) -> dict[str, NDArray]:
    """Weight, and where the method has a posterior its deviation and inclusion, of one column."""
    maps = {"weight": fits.coef[:, column]}
    if fits.coef_std is not None:
        maps["weightsd"] = fits.coef_std[:, column]
    if fits.inclusion is not None:
        maps["pip"] = fits.inclusion[:, column]
    return maps


def _write_maps(
    folder: ResultsFolder, subject: Subject, task: Task, method: Method,
    desc: str, maps: Mapping[str, NDArray], which: str,
) -> None:  # fmt: skip
    """Write maps that share a ``desc-`` entity, each with its sidecar."""
    for stat, values in maps.items():
        about = {
            "Description": _MEANING[stat],
            "Estimate": which,
            "Units": _UNITS[stat],
            "Contrast": f"{task.positive} (positive) versus {task.negative} (negative)",
            "Method": method.name,
            "MethodDescription": method.description,
            "GeneratedBy": f"mvpa_gamp {subject.version}",
        }
        if subject.banner is not None:
            about = {"Phantom": subject.banner, **about}
        write_map(folder.statmap(subject.name, task.name, desc, stat), values, subject.mask_img, about)


def _write_tables(
    folder: ResultsFolder, subject: Subject, task: Task, method: Method, fits: UnitFits
) -> None:
    """folds.tsv, predictions.tsv and jaccard.tsv of a unit."""
    path = folder.unit_table(subject.name, task.name, method.name, "folds")
    names = list(fits.parameters)
    columns = ("fold", "held_out_run", "test_volumes", "wrong", "error_percent", "voxels", "intercept",
               "n_iter", "converged", *names, "status")  # fmt: skip
    write_tsv(path, columns, _fold_rows(fits))
    path = folder.unit_table(subject.name, task.name, method.name, "predictions")
    write_tsv(path, tuple(_PREDICTIONS), _prediction_rows(subject, task, fits))
    about: dict[str, Any] = {name: {"Description": meaning} for name, meaning in _PREDICTIONS.items()}
    write_json(path.with_suffix(".json"), {"Phantom": subject.banner, **about} if subject.banner else about)
    runs, rows = overlap_rows(fits.support[:, : fits.n_folds], fits.held_out)
    write_tsv(folder.unit_table(subject.name, task.name, method.name, "jaccard"), runs, rows)


def _fold_rows(fits: UnitFits) -> list[dict[str, Any]]:
    """A row per fold, then the refit."""
    rows = []
    wrong = fits.predicted != fits.y
    for k in range(fits.n_folds + 1):
        refit = k == fits.n_folds
        test = np.zeros(len(wrong), dtype=bool) if refit else fits.runs == fits.held_out[k]
        rows.append({
            "fold": "refit" if refit else k + 1,
            "held_out_run": None if refit else fits.held_out[k],
            "test_volumes": int(test.sum()),
            "wrong": None if refit else int(wrong[test].sum()),
            "error_percent": None if refit else 100 * float(wrong[test].mean()),
            "voxels": int(fits.support[:, k].sum()),
            "intercept": fits.intercept[k],
            "n_iter": fits.n_iter[k],
            "converged": fits.converged[k],
            "status": fits.status[k],
            **{name: values[k] for name, values in fits.parameters.items()},
        })  # fmt: skip
    return rows


def _prediction_rows(subject: Subject, task: Task, fits: UnitFits) -> list[dict[str, Any]]:
    """A row per volume, predicted by the fold that held its run out."""
    names = {1: task.positive, -1: task.negative}
    return [
        {
            "sample": fits.rows[m],
            "volume": None if subject.volumes is None else subject.volumes[fits.rows[m]],
            "run": fits.runs[m],
            "true": names[int(fits.y[m])],
            "predicted": names[int(fits.predicted[m])],
            "correct": fits.predicted[m] == fits.y[m],
            "probability_positive": fits.proba[m],
            "decision": fits.decision[m],
        }
        for m in range(len(fits.y))
    ]


def _record(
    subject: Subject, task: Task, method: Method, fits: UnitFits, stats: tuple[str, ...]
) -> UnitRecord:
    """The rows of a finished unit."""
    keys = _keys(subject, task, method)
    measures = consistency(fits.support[:, : fits.n_folds])
    errors = error_summary(fits.predicted != fits.y, fits.runs, fits.y)
    converged = int(fits.converged[: fits.n_folds].sum())
    clusters = cluster_rows(
        fits.support[:, -1],
        fits.coef[:, -1],
        fits.frequency,
        subject.mask,
        np.asarray(subject.mask_img.affine),
    )
    short = {key: keys[key] for key in ("contrast", "comparison", "method")}
    return UnitRecord(
        summary={**keys, **measures, **errors, **_against_truth(subject, task, fits),
                 "folds_converged": converged, "status": "ok"},
        timing={**keys, "seconds": fits.seconds},
        consistency={**short, **measures},
        confusion=tuple(_confusion_rows(task, method, fits)),
        clusters=tuple({"contrast": task.name, "method": method.name, **row} for row in clusters),
        stats=stats,
    )  # fmt: skip


def _against_truth(subject: Subject, task: Task, fits: UnitFits) -> dict[str, float]:
    """Area under the precision-recall curve of the planted voxels, for a phantom."""
    truth = subject.truth.get(task.name)
    if truth is None or not np.any(truth):
        return {}
    from sklearn.metrics import average_precision_score

    scores = np.abs(fits.coef[:, -1]) if fits.inclusion is None else fits.inclusion[:, -1]
    return {
        "average_precision": float(average_precision_score(truth, scores)),
        "chance_average_precision": float(np.mean(truth)),
    }


def _confusion_rows(task: Task, method: Method, fits: UnitFits) -> list[dict[str, Any]]:
    """Counts of held-out volumes by true and predicted category."""
    names = {1: task.positive, -1: task.negative}
    return [
        {
            "contrast": task.name,
            "method": method.name,
            "true": names[true],
            "predicted": names[said],
            "count": int(((fits.y == true) & (fits.predicted == said)).sum()),
        }
        for true in (1, -1)
        for said in (1, -1)
    ]


CONFUSION_COLUMNS = ("contrast", "method", "true", "predicted", "count")
