"""The files of a cell, a method on a comparison: its maps, its tables, and its rows in those of a study."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.imaging.names import entity
from mvpa_gamp.methods.fold_fits import FoldFits
from mvpa_gamp.results.cell import Cell, CellRecord
from mvpa_gamp.results.clusters import cluster_rows, pattern_cluster_rows
from mvpa_gamp.results.files import write_json, write_tsv
from mvpa_gamp.results.ledger import NO_THRESHOLD, SELECTED, Ledger
from mvpa_gamp.results.measures import measures_of, overlap_rows


def write_cell(cell: Cell, fits: FoldFits) -> CellRecord:
    """Write the files of a finished cell and return its rows; ``fits`` answer the rows of its task."""
    stats = write_cell_maps(cell, fits)
    write_cell_tables(cell, fits)
    y, truth = cell.task.y, cell.subject.truth.get(cell.task.name)
    measures = measures_of(fits, y, truth)
    keys = cell.keys
    short = {name: keys[name] for name in ("contrast", "method")}
    return CellRecord(
        summary={**keys, **measures, "status": "ok"},
        timing={**keys, "seconds": fits.seconds},
        consistency={**keys, **measures},
        confusion=tuple({**short, **row} for row in confusion_rows(cell, fits)),
        clusters=tuple({**short, **row} for row in _clusters(cell, fits)),
        pattern_clusters=tuple({**short, **row} for row in _pattern_clusters(cell, fits)),
        stats=stats,
    )


def failed_cell(cell: Cell, reason: str) -> CellRecord:
    """The rows of a cell that has no result: no number, and the reason."""
    status = "failed: " + " ".join(reason.split())
    counts = {"folds": 0, "folds_converged": 0, "status": status}
    return CellRecord(summary={**cell.keys, **counts}, timing={**cell.keys, "seconds": None})


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


_PROBABLE, _NOT_ZERO = "posterior inclusion probability above 0.5", "weight other than 0"
_FIELDS = {"weight": "coef", "weightsd": "coef_std", "pip": "inclusion", "pattern": "pattern"}


def write_cell_maps(cell: Cell, fits: FoldFits) -> tuple[str, ...]:
    """Maps of the refit, their means over folds, the selection frequency; returns the kinds written."""
    desc, n_folds = entity(cell.method.name), fits.n_folds
    known = {stat: getattr(fits, name) for stat, name in _FIELDS.items() if getattr(fits, name) is not None}
    for stat, values in known.items():
        write_cell_map(cell, desc, stat, values[:, -1], "refit on all samples")
        mean = np.asarray(values[:, :n_folds].mean(axis=1, dtype=np.float64))
        write_cell_map(cell, f"{desc}FoldMean", stat, mean, f"mean over {n_folds} folds")
    _write_selection(cell, fits)
    selects = not fits.folds.support.all()  # of a method that weighs every voxel nothing is selected
    if selects:
        write_cell_map(cell, desc, "selfreq", fits.frequency, f"over {n_folds} folds")
    held_out = fits.held_out if cell.subject.fold_maps and fits.held_out is not None else ()
    for k, run in enumerate(held_out):
        for stat in known.keys() - {"pattern"}:
            which = f"fold {k + 1}, run {cell.subject.run_name(run)} held out"
            write_cell_map(cell, f"{desc}Fold{k + 1:02d}", stat, known[stat][:, k], which)
    return (*known, "selfreq") if selects else tuple(known)


def write_cell_map(
    cell: Cell, desc: str, stat: str, values: NDArray, which: str, threshold: str = NO_THRESHOLD
) -> None:
    """One map with its sidecar; ``which`` says what it was estimated from."""
    facts = {
        "Estimate": which,
        "Threshold": threshold,
        "Contrast": f"{cell.task.positive} (positive) versus {cell.task.negative} (negative)",
        "Method": cell.method.name,
        "MethodDescription": cell.method.description,
    }
    path = cell.folder.statmap(cell.subject.name, cell.task.name, desc, stat)
    Ledger.of(cell).map(path, values, stat, stat, cell.words(stat), facts)


def _write_selection(cell: Cell, fits: FoldFits) -> None:
    """The voxels that the refit selected as a mask, and the weights at these voxels, zero elsewhere."""
    support, weight = fits.refit.support[:, 0], fits.refit.coef[:, 0]
    threshold = _PROBABLE if fits.inclusion is not None else _NOT_ZERO
    folder, subject = cell.folder, cell.subject
    path = folder.selected_mask(subject.name, cell.task.name, cell.method.name)
    facts = {
        "Type": "ROI",
        "Threshold": threshold,
        "Contrast": f"{cell.task.positive} versus {cell.task.negative}",
        "Method": cell.method.name,
    }
    Ledger.of(cell).map(path, support.astype(np.uint8), "selected", "selected", cell.words("selected"), facts)
    kept = np.where(support, weight, 0.0)
    which = f"refit on all samples, zero outside of the selected voxels. {SELECTED}"
    write_cell_map(cell, f"{entity(cell.method.name)}Selected", "weight", kept, which, threshold)


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


def write_cell_tables(cell: Cell, fits: FoldFits) -> None:
    """folds.tsv, predictions.tsv and jaccard.tsv of a cell."""
    rows = _fold_rows(cell, fits)
    write_tsv(cell.table("folds"), list(rows[0]), rows)
    path = cell.table("predictions")
    rows = _prediction_rows(cell, fits)
    write_tsv(path, tuple(rows[0]), rows)
    write_json(path.with_suffix(".json"), cell.subject.marked({name: _COLUMNS[name] for name in rows[0]}))
    if fits.n_folds > 1 and fits.held_out is not None:
        write_tsv(cell.table("jaccard"), *overlap_rows(fits.folds.support, _held_out(cell, fits)))


def _held_out(cell: Cell, fits: FoldFits) -> list[Any]:
    """The names of the runs that the folds hold out."""
    assert fits.held_out is not None
    return [cell.subject.run_name(run) for run in fits.held_out]


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
            "held_out_run": None if refit else cell.subject.run_name(fits.held_out[k]),
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


def confusion_rows(cell: Cell, fits: FoldFits) -> list[dict[str, Any]]:
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
