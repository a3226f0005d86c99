"""The files of a cell, a method on a comparison: measures, maps, tables, and its rows in those of a study."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.decoding.scores import HeldOut, balanced_scores, fold_aucs, held_out_answers
from mvpa_gamp.imaging.names import entity
from mvpa_gamp.methods.fold_fits import FoldFits
from mvpa_gamp.results.files import write_json, write_tsv
from mvpa_gamp.results.ledger import NO_THRESHOLD, SELECTED, Cell, CellRecord, Ledger
from mvpa_gamp.results.regions import cluster_rows, pattern_cluster_rows
from mvpa_gamp.stability import jaccard, jaccard_chance, jaccard_matrix, kuncheva, nogueira


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
    usual = _PROBABLE if fits.inclusion is not None else _NOT_ZERO
    threshold = getattr(cell.method, "selected_if", usual)
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


CONSISTENCY_COLUMNS = (
    "contrast", "comparison", "method", "folds", "folds_selecting", "voxels", "sparsity_percent",
    "consistency_percent", "chance_consistency_percent", "kuncheva",
    "nogueira", "nogueira_variance", "nogueira_low", "nogueira_high",
    "voxels_in_every_fold", "voxels_in_any_fold", "note",
)  # fmt: skip

NO_SELECTION = "Every voxel has a weight: nothing was selected, so folds have no selection to agree on."


def consistency(support: NDArray) -> dict[str, Any]:
    """All measures of a boolean (N, B) support matrix, one column per fold (the refit left out), B >= 2.

    ``consistency_percent`` is the paper's: the mean Jaccard index over ordered pairs of folds, where two
    empty selections count as equal. ``folds_selecting`` counts the folds that selected something, but not
    every voxel: without most of them consistency says nothing. Where all folds use every voxel nothing was
    selected: overlaps are NaN, and ``note`` says why.

    Parameters
    ----------
    support
        Boolean (N, B), one column per fold, B >= 2.

    Returns
    -------
    dict
        Columns of consistency.tsv.
    """
    stability = nogueira(support)
    times, sizes = support.sum(axis=1), support.sum(axis=0)
    overlap = math.nan if support.all() else 100 * jaccard(support)
    by_chance = math.nan if support.all() else 100 * jaccard_chance(support)
    return {
        "folds": support.shape[1],
        "folds_selecting": int(((sizes > 0) & (sizes < len(support))).sum()),
        "voxels": float(sizes.mean()),
        "sparsity_percent": 100 * float(support.mean()),
        "consistency_percent": overlap,
        "chance_consistency_percent": by_chance,
        "kuncheva": kuncheva(support),
        "nogueira": stability.estimate,
        "nogueira_variance": stability.variance,
        "nogueira_low": stability.low,
        "nogueira_high": stability.high,
        "voxels_in_every_fold": int((times == support.shape[1]).sum()),
        "voxels_in_any_fold": int((times > 0).sum()),
        "note": NO_SELECTION if support.all() else None,
    }


def overlap_rows(support: NDArray, held_out: Sequence[Any]) -> tuple[list[str], list[dict[str, Any]]]:
    """Columns and rows of the Jaccard matrix, named by the run held out; NaN where nothing is selected.

    Parameters
    ----------
    support
        Boolean (N, B), one column per fold, B >= 2.
    held_out
        The run (B,) that each fold holds out.

    Returns
    -------
    tuple
        Names of columns, and a row per fold.
    """
    names = [f"run_{run}" for run in held_out]
    matrix = np.asarray(jaccard_matrix(support))
    matrix = np.full_like(matrix, np.nan) if support.all() else matrix
    rows = [
        {"held_out_run": run, **dict(zip(names, line, strict=True))}
        for run, line in zip(held_out, matrix, strict=True)
    ]
    return ["held_out_run", *names], rows


def error_summary(wrong: NDArray, fold: NDArray, y: NDArray) -> dict[str, float]:
    """Error rate over held-out rows with two standard errors, in percent.

    ``wrong`` (T,) bool; ``fold`` (T,) what held each row out; ``y`` (T,) in -1/+1. ``error_se_percent`` is
    the standard deviation of the fold-wise errors over sqrt(folds): it respects that rows of one block are
    correlated. ``error_binomial_se_percent`` treats all T rows as independent and is usually too small.
    Folds share training rows, so neither is exact.
    """
    rates = np.array([wrong[fold == number].mean() for number in np.unique(fold)])
    error = float(rates.mean())
    spread = _standard_error(rates)
    majority = max(float((y > 0).mean()), float((y < 0).mean()))
    return {
        "error_percent": 100 * error,
        "error_se_percent": 100 * spread,
        "error_binomial_se_percent": 100 * math.sqrt(error * (1 - error) / len(wrong)),
        "chance_error_percent": 100 * (1 - majority),
        "accuracy_percent": 100 * (1 - error),
        "accuracy_se_percent": 100 * spread,
        "chance_accuracy_percent": 100 * majority,
    }


def balanced_summary(said: HeldOut, y: NDArray, n_folds: int) -> dict[str, float]:
    """Balanced accuracy (percent) and area under the ROC curve, means over folds that test both classes.

    ``said`` are the answers to held-out rows, y (M,) in -1/+1. Where no fold tests both classes, balanced
    accuracy is that of all held-out rows together, without a standard error, and there is no area: decision
    values of different folds do not share a scale.
    """
    positive, decision = y[said.rows] > 0, said.decision[:, 0]
    right = (decision > 0) == positive
    balanced = balanced_scores(right, (~positive).astype(int), said.fold, 2, n_folds)
    areas = fold_aucs(decision, positive, said.fold)
    return {
        "balanced_accuracy_percent": 100 * float(balanced.mean()),
        "balanced_accuracy_se_percent": 100 * _standard_error(balanced),
        "chance_balanced_accuracy_percent": 50.0,
        "auc": float(areas.mean()) if areas.size else math.nan,
        "auc_se": _standard_error(areas),
        "chance_auc": 0.5,
    }


def _standard_error(values: NDArray) -> float:
    """Standard deviation of fold-wise values over the root of their number; NaN of one fold."""
    return float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan


def planted_ranking(truth: NDArray, refit: FoldFits) -> dict[str, float]:
    """Area under the precision-recall curve of the planted voxels (N,) bool, for a phantom.

    Voxels are ranked by the refit's inclusion probability where a method has it, else by |weight|.
    """
    from sklearn.metrics import average_precision_score

    scores = np.abs(refit.coef[:, 0]) if refit.inclusion is None else refit.inclusion[:, 0]
    return {
        "average_precision": float(average_precision_score(truth, scores)),
        "chance_average_precision": float(np.mean(truth)),
    }


def measures_of(fits: FoldFits, y: NDArray, truth: NDArray | None = None) -> dict[str, Any]:
    """All measures of a cell, the fits of a method on a comparison with labels y (M,) in -1/+1.

    Parameters
    ----------
    fits
        The fits of a method on a comparison, from ``cross_validate``.
    y
        Labels (M,) in -1/+1.
    truth
        Planted voxels (N,) bool of a phantom.

    Returns
    -------
    dict
        Columns of summary.tsv: errors, accuracies, voxels, consistency.
    """
    said = held_out_answers([fits])
    wrong = (said.decision[:, 0] > 0) != (y[said.rows] > 0)
    support = fits.folds.support
    return {
        **(consistency(support) if fits.n_folds > 1 else {"folds": fits.n_folds}),
        **error_summary(wrong, said.fold, y[said.rows]),
        **balanced_summary(said, y, fits.n_folds),
        **({} if truth is None or not truth.any() else planted_ranking(truth, fits.refit)),
        "folds_converged": int(fits.folds.converged.sum()),
    }
