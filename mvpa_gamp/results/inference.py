"""Inference as files: nulls, family-wise maps, selections, curves, and voxels that carry information."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mvpa_gamp.decoding.calibration import FdrSelection, fdr_refusal
from mvpa_gamp.decoding.discoveries import PlantedCheck, PlantedEffect
from mvpa_gamp.decoding.learning_curve import Extrapolation, LearningCurve
from mvpa_gamp.decoding.localisation import InformationMap
from mvpa_gamp.decoding.permutation import PermutationTest, holm
from mvpa_gamp.decoding.scores import is_unequal
from mvpa_gamp.decoding.tasks import Task
from mvpa_gamp.imaging.names import entity
from mvpa_gamp.methods.fold_fits import FoldFits
from mvpa_gamp.results.files import write_tsv
from mvpa_gamp.results.ledger import NO_THRESHOLD, Cell, Ledger, Subject
from mvpa_gamp.results.names import ResultsFolder
from mvpa_gamp.results.regions import placed

_COLUMNS = (
    "contrast", "comparison", "method",
    "permutations", "measure", "accuracy_percent", "auc", "null_mean_percent", "p_value", "p_value_holm",
    "smallest_p_value", "null_consistency_percent", "exchanged", "labellings", "fits_not_converged",
    "fdr_percent", "fdr_voxels",
    "fdr_estimate_percent", "fdr_p_value", "fdr_selection", "fdr_holds", "fdr_verdict", "curve",
    "caution", "status",
)  # fmt: skip
_VOXELS = ("x_mm", "y_mm", "z_mm", "i", "j", "k", "strength", "inclusion", "weight")
_CURVE = (
    "n_train_runs", "accuracy", "standard_error", "splits", "predicted", "predicted_low", "predicted_high",
)  # fmt: skip

_BALANCED = "{} has unequal categories: the accuracy tested is the balanced one."


@dataclass(frozen=True)
class CellInference:
    """What was asked for about one cell; None what was not, or what ``trouble`` kept from being there."""

    permutation: PermutationTest | None = None
    selection: FdrSelection | None = None
    planted: PlantedCheck | None = None  # None too where no labelling allows to select anything
    curve: LearningCurve | None = None
    farther: tuple[Extrapolation, ...] = ()
    trouble: str = ""


def write_inference(
    folder: ResultsFolder, asked: Mapping[str, Any], found: Sequence[tuple[Cell, FoldFits, CellInference]]
) -> dict[str, Any]:
    """Write all files of one subject; returns what summary.json says about them.

    ``asked`` are permutations, max_inclusion, fdr and learning_curve.
    """
    files, rows = {}, []
    for cell, fits, each in found:
        written, row = _write_cell(cell, fits, each, asked)
        keys = cell.keys
        files[f"sub-{keys['subject']}/{keys['contrast']}/{keys['method']}"] = written
        rows.append({**keys, **row})
    for subject in dict.fromkeys(cell.subject.name for cell, *_ in found):
        write_tsv(folder.inference(subject), _COLUMNS, _corrected(rows))
    return {**asked, "units": files}


def _corrected(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows with p-values corrected for the comparisons tested with the same method."""
    for method in {row["method"] for row in rows}:
        tested = [row for row in rows if row["method"] == method and "p_value" in row]
        for row, p in zip(tested, holm([row["p_value"] for row in tested]), strict=True):
            row["p_value_holm"] = float(p)
    return rows


def _write_cell(
    cell: Cell, fits: FoldFits, each: CellInference, asked: Mapping[str, Any]
) -> tuple[list[str], dict[str, Any]]:
    """The files of one cell: what was written, and its row."""
    if each.trouble:
        return [], {"status": "failed: " + " ".join(each.trouble.split())}
    written: list[str] = []
    row: dict[str, Any] = {"status": "ok"}
    if each.permutation is not None:
        row |= _write_null(cell, fits, each.permutation)
        written += ["permutations", *(["logpfwe"] if each.permutation.max_inclusion is not None else [])]
    if each.selection is not None:
        row |= write_selection(cell, fits, each.selection, each.planted)
        written += ["selection", *(["planted"] if each.planted is not None else [])]
    elif refusal := fdr_refusal(cell.method) if asked.get("fdr") else "":
        row["fdr_verdict"] = refusal
    if each.curve is not None:
        row |= _write_curve(cell, each.curve, each.farther)
        written.append("learningcurve")
    return written, row


def null_rows(test: PermutationTest) -> tuple[tuple[str, ...], list[dict[str, Any]]]:
    """Columns and rows of permutations.tsv."""
    known = {
        "accuracy": test.null, "auc": test.null_auc, "max_inclusion": test.max_inclusion,
        "consistency": test.null_consistency,
    }  # fmt: skip
    columns = {name: values for name, values in known.items() if values is not None}
    rows = [
        {"permutation": i + 1, **{name: values[i] for name, values in columns.items()}}
        for i in range(test.null.size)
    ]
    return ("permutation", *columns), rows


def _write_null(cell: Cell, fits: FoldFits, test: PermutationTest) -> dict[str, Any]:
    """permutations.tsv, and the map of family-wise p-values where the null of the maximum was kept."""
    write_tsv(cell.table("permutations"), *null_rows(test))
    if test.max_inclusion is not None:
        _write_family_wise(cell, fits, test)
    unequal = is_unequal(cell.task.y)
    cautions = (_BALANCED.format(cell.task.label) if unequal else "", test.caution)
    return {
        "permutations": test.null.size,
        "measure": "balanced accuracy" if unequal else "accuracy",
        "accuracy_percent": 100 * test.score,
        "auc": test.auc,
        "null_mean_percent": 100 * float(test.null.mean()),
        "null_consistency_percent": None
        if test.null_consistency is None
        else 100 * float(test.null_consistency.mean()),
        "p_value": test.pvalue,
        "smallest_p_value": test.smallest,
        "exchanged": test.exchange,
        "labellings": test.n_distinct,
        "fits_not_converged": test.n_failed,
        "caution": " ".join(filter(None, cautions)) or None,
    }


def _write_family_wise(cell: Cell, fits: FoldFits, test: PermutationTest) -> None:
    assert fits.inclusion is not None
    p = test.family_wise(fits.inclusion[:, : fits.n_folds].mean(axis=1, dtype=float))
    path = cell.folder.statmap(cell.subject.name, cell.task.name, entity(cell.method.name), "logpfwe")
    words, known = cell.words("-log10 family-wise p"), {"n": test.null.size}
    Ledger.of(cell).map(path, -np.log10(p), "logpfwe", "logpfwe", words, _facts(cell), **known)


def write_selection(
    cell: Cell, fits: FoldFits, chosen: FdrSelection, check: PlantedCheck | None
) -> dict[str, Any]:
    """Mask and table of the voxels selected at the rate, and the check of that rate; returns its columns."""
    verdict = chosen.verdict if check is None else check.verdict
    both = chosen.verdict if check is None else f"{chosen.verdict} {verdict}"
    known = {"rate": chosen.fdr, "n": chosen.n, "verdict": both}
    path = cell.folder.fdr_mask(cell.subject.name, cell.task.name, cell.method.name)
    stat = f"selected at FDR {chosen.fdr:g}"
    facts = {**_facts(cell), "Type": "ROI", "Threshold": f"false-discovery rate of {chosen.fdr:g}"}
    Ledger.of(cell).map(path, chosen.selected, "fdr", stat, cell.words(stat), facts, **known)
    path = cell.folder.fdr_voxels(cell.subject.name, cell.task.name, cell.method.name)
    write_tsv(path, placed(_VOXELS, cell.subject.space, ""), _voxel_rows(cell, fits, chosen))
    if check is not None:
        rows = [{"nominal_rate": check.fdr, **effect._asdict()} for effect in check.effects]
        write_tsv(cell.table("planted"), ("nominal_rate", *PlantedEffect._fields), rows)
    return {
        "fdr_percent": 100 * chosen.fdr,
        "fdr_voxels": int(np.count_nonzero(chosen.selected)),
        "fdr_estimate_percent": 100 * chosen.estimate,
        "fdr_p_value": chosen.pvalue,
        "fdr_selection": chosen.verdict,
        "fdr_holds": None if check is None else check.holds,
        "fdr_verdict": verdict,
    }


def _voxel_rows(cell: Cell, fits: FoldFits, chosen: FdrSelection) -> list[dict[str, Any]]:
    """The selected voxels with coordinates, the strongest first."""
    assert fits.inclusion is not None
    space = cell.subject.space
    places = space.coordinates()
    order = np.argsort(-chosen.strength, kind="stable")
    values = (chosen.strength, fits.inclusion[:, -1], fits.coef[:, -1])
    names = ("x_mm", "y_mm", "z_mm", "strength", "inclusion", "weight")
    return [
        {**dict(zip(names, (*places[n], *(each[n] for each in values)), strict=True)), **space.place(n)}
        for n in order[chosen.selected[order]]
    ]


def _write_curve(cell: Cell, curve: LearningCurve, farther: Sequence[Extrapolation]) -> dict[str, Any]:
    """learningcurve.tsv: measured sizes, then those that theory is trusted for."""
    parts = (curve.n_train_runs, curve.accuracy, curve.standard_error, curve.n_splits, curve.predicted)
    rows = [dict(zip(_CURVE, values, strict=False)) for values in zip(*parts, strict=True)]
    ahead = ("n_train_runs", "predicted", "predicted_low", "predicted_high")
    rows += [dict(zip(ahead, point, strict=True)) for point in farther]
    write_tsv(cell.table("learningcurve"), _CURVE, rows)
    return {"curve": curve.refusal or "Measured and predicted accuracy agree; the curve is extrapolated."}


def _facts(cell: Cell) -> dict[str, Any]:
    contrast = f"{cell.task.positive} versus {cell.task.negative}"
    return {"Contrast": contrast, "Method": cell.method.name, "Threshold": NO_THRESHOLD}


LEVEL = 0.05  # family-wise
MAPS = ("stat-corr_statmap.nii.gz", "stat-logpfwe_statmap.nii.gz", "mask.nii.gz")
_INFORMATION = (
    "contrast", "comparison", "voxels", "permutations", "smallest_p_value", "peak_x_mm", "peak_y_mm",
    "peak_z_mm", "peak_correlation", "exchanged", "caution",
)  # fmt: skip
_INFORMED = ("x_mm", "y_mm", "z_mm", "i", "j", "k", "correlation", "p_value")


def write_information(
    folder: ResultsFolder, subject: Subject, found: Sequence[tuple[Task, InformationMap]]
) -> dict[str, Any]:
    """Write the files of every comparison; returns the ``information`` part of summary.json."""
    rows = []
    for task, each in found:
        _write_maps(folder, subject, task, each)
        rows.append(_write_voxels(folder, subject, task, each))
    Ledger(folder, subject).table("information", _INFORMATION, rows)
    return {"level": LEVEL, "contrasts": [task.name for task, _ in found], "thresholded": True}


def _write_maps(folder: ResultsFolder, subject: Subject, task: Task, each: InformationMap) -> None:
    """The maps of one comparison: everywhere, its mask, and where the test was passed."""
    what = f"{task.positive} (positive) versus {task.negative} (negative)"
    selected, tested = each.selected(LEVEL), f"family-wise p of {LEVEL} or less"
    maps = (
        ("corr", "corr", each.correlation, NO_THRESHOLD),
        ("logpfwe", "logpfwe", -np.log10(each.pvalue), NO_THRESHOLD),
        ("mask", "mask", selected, tested),
        ("corr passed", "corr", np.where(selected, each.correlation, 0.0), tested),
    )
    paths = [folder.information(subject.name, task.name, ending) for ending in MAPS]
    paths.append(folder.tested_information(subject.name, task.name))
    known = {"level": LEVEL, "n": each.n}
    for path, (kind, stat, values, threshold) in zip(paths, maps, strict=True):
        facts, words = {"Contrast": what, "Threshold": threshold}, f"information {stat} {task.label}"
        Ledger(folder, subject).map(path, values, f"information {kind}", stat, words, facts, **known)


def _write_voxels(
    folder: ResultsFolder, subject: Subject, task: Task, each: InformationMap
) -> dict[str, Any]:
    """The table of the voxels that passed the test; returns the row that sums up the comparison."""
    selected, space = each.selected(LEVEL), subject.space
    places = space.coordinates()
    order = np.lexsort((-np.abs(each.correlation), each.pvalue))
    order = order[selected[order]]
    names = ("x_mm", "y_mm", "z_mm", "correlation", "p_value")
    table = [
        {**dict(zip(names, (*places[n], each.correlation[n], each.pvalue[n]), strict=True)), **space.place(n)}
        for n in order
    ]
    columns = placed(_INFORMED, space, "")
    write_tsv(folder.information(subject.name, task.name, "voxels.tsv"), columns, table)
    peak = int(np.argmax(np.abs(each.correlation)))
    return {
        "contrast": task.name,
        "comparison": task.label,
        "voxels": int(selected.sum()),
        "permutations": each.n,
        "smallest_p_value": float(each.pvalue.min()),
        **dict(zip(("peak_x_mm", "peak_y_mm", "peak_z_mm"), places[peak].tolist(), strict=True)),
        "peak_correlation": float(each.correlation[peak]),
        "exchanged": each.exchange,
        "caution": each.caution or None,
    }
