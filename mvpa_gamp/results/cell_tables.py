"""The tables of a cell, a method on a comparison: folds, predictions, overlaps, confusion."""

from typing import Any

import numpy as np

from mvpa_gamp.methods.fold_fits import FoldFits
from mvpa_gamp.results.cell import Cell
from mvpa_gamp.results.files import write_json, write_tsv
from mvpa_gamp.results.measures import overlap_rows

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
