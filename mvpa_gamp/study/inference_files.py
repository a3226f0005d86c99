"""From inference about units to files: null accuracies, family-wise map, selection, curve, a table."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.decoding.discoveries import PlantedCheck, PlantedEffect, select_at_fdr
from mvpa_gamp.decoding.permutation import PermutationTest, holm
from mvpa_gamp.imaging.brainmaps import write_map
from mvpa_gamp.imaging.map_names import entity
from mvpa_gamp.report.files import write_tsv
from mvpa_gamp.report.folder import ResultsFolder
from mvpa_gamp.study.fits import load_fits
from mvpa_gamp.study.inference import UnitInference
from mvpa_gamp.study.settings import StudySettings
from mvpa_gamp.study.unit_files import Subject

_COLUMNS = (
    "contrast", "comparison", "method",
    "permutations", "accuracy_percent", "null_mean_percent", "p_value", "p_value_holm",
    "exchanged", "labellings", "fits_not_converged", "fdr_percent", "fdr_voxels", "fdr_holds", "fdr_verdict",
    "curve", "caution", "status",
)  # fmt: skip
_CURVE = (
    "n_train_runs", "accuracy", "standard_error", "splits", "predicted", "predicted_low", "predicted_high",
)  # fmt: skip


def write_inference(
    folder: ResultsFolder, subject: Subject, settings: StudySettings, found: Sequence[UnitInference]
) -> dict[str, Any]:
    """Write all files; returns what summary.json says about them."""
    if not settings.has_inference:
        return {}
    units, rows = {}, []
    for each in found:
        written, row = _write_unit(folder, subject, each)
        task, method = each.unit.task, each.unit.method
        units[f"sub-{subject.name}/{task.name}/{method.name}"] = written
        rows.append({"contrast": task.name, "comparison": task.label, "method": method.name, **row})
    write_tsv(folder.inference(subject.name), _COLUMNS, _corrected(rows))
    return {
        "permutations": settings.permutations,
        "max_inclusion": settings.max_inclusion,
        "fdr": settings.fdr,
        "learning_curve": settings.learning_curve,
        "units": units,
    }


def _corrected(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows with p-values corrected for the comparisons tested with the same method."""
    for method in {row["method"] for row in rows}:
        tested = [row for row in rows if row["method"] == method and "p_value" in row]
        for row, p in zip(tested, holm([row["p_value"] for row in tested]), strict=True):
            row["p_value_holm"] = float(p)
    return rows


def _write_unit(
    folder: ResultsFolder, subject: Subject, each: UnitInference
) -> tuple[list[str], dict[str, Any]]:
    """The files of one unit: what was written, and its row."""
    if each.trouble:
        return [], {"status": "failed: " + " ".join(each.trouble.split())}
    written: list[str] = []
    row: dict[str, Any] = {"status": "ok"}
    if each.permutation is not None:
        row |= _write_null(folder, subject, each, each.permutation)
        written += ["permutations", *(["logpfwe"] if each.permutation.max_inclusion is not None else [])]
    if each.planted is not None:
        row |= _write_selection(folder, subject, each, each.planted)
        written.append("planted")
    if each.curve is not None:
        row |= _write_curve(folder, subject, each)
        written.append("learningcurve")
    return written, row


def _write_null(
    folder: ResultsFolder, subject: Subject, each: UnitInference, test: PermutationTest
) -> dict[str, Any]:
    """permutations.tsv, and the map of family-wise p-values where the null of the maximum was kept."""
    largest = test.max_inclusion
    columns = ("permutation", "accuracy", *(() if largest is None else ("max_inclusion",)))
    rows = [
        {"permutation": i + 1, "accuracy": score, "max_inclusion": None if largest is None else largest[i]}
        for i, score in enumerate(test.null)
    ]
    write_tsv(_table(folder, subject, each, "permutations"), columns, rows)
    if largest is not None:
        _write_family_wise(folder, subject, each, test)
    return {
        "permutations": test.null.size,
        "accuracy_percent": 100 * test.score,
        "null_mean_percent": 100 * float(test.null.mean()),
        "p_value": test.pvalue,
        "exchanged": test.unit,
        "labellings": test.n_distinct,
        "fits_not_converged": test.n_failed,
        "caution": test.caution or None,
    }


def _write_family_wise(
    folder: ResultsFolder, subject: Subject, each: UnitInference, test: PermutationTest
) -> None:
    fits, _ = load_fits(each.unit.path)
    assert fits.inclusion is not None
    p = test.family_wise(fits.inclusion[:, : fits.n_folds].mean(axis=1, dtype=float))
    about = (
        "-log10 of the p-value of each voxel's mean inclusion probability over folds, corrected for all "
        f"voxels by the largest one in each of {test.null.size} permutations. 1.301 is p = 0.05."
    )
    _write_map(folder, subject, each, "logpfwe", -np.log10(p), about)


def _write_selection(
    folder: ResultsFolder, subject: Subject, each: UnitInference, check: PlantedCheck
) -> dict[str, Any]:
    """The voxels selected at the rate, and the check of that rate in the user's own X."""
    fits, _ = load_fits(each.unit.path)
    assert fits.inclusion is not None
    selected = select_at_fdr(fits.inclusion[:, -1], check.fdr)
    about = (
        f"Voxels selected at an expected false-discovery rate of {check.fdr:g} from the inclusion "
        f"probabilities of the refit on all runs. {check.verdict}"
    )
    path = folder.fdr_mask(subject.name, each.unit.task.name, each.unit.method.name)
    sidecar = {**_sidecar(subject, each, about), "Type": "ROI"}
    write_map(path, selected, subject.mask_img, sidecar)
    columns = ("nominal_rate", *PlantedEffect._fields)
    rows = [{"nominal_rate": check.fdr, **effect._asdict()} for effect in check.effects]
    write_tsv(_table(folder, subject, each, "planted"), columns, rows)
    return {
        "fdr_percent": 100 * check.fdr,
        "fdr_voxels": int(np.count_nonzero(selected)),
        "fdr_holds": check.holds,
        "fdr_verdict": check.verdict,
    }


def _write_curve(folder: ResultsFolder, subject: Subject, each: UnitInference) -> dict[str, Any]:
    """learningcurve.tsv: measured sizes, then those that theory is trusted for."""
    curve = each.curve
    assert curve is not None
    parts = (curve.n_train_runs, curve.accuracy, curve.standard_error, curve.n_splits, curve.predicted)
    rows = [dict(zip(_CURVE, values, strict=False)) for values in zip(*parts, strict=True)]
    rows += [
        {"n_train_runs": each.n_train_runs, "predicted": each.accuracy, "predicted_low": each.low,
         "predicted_high": each.high}
        for each in each.farther
    ]  # fmt: skip
    write_tsv(_table(folder, subject, each, "learningcurve"), _CURVE, rows)
    return {"curve": curve.refusal or "Measured and predicted accuracy agree; the curve is extrapolated."}


def _table(folder: ResultsFolder, subject: Subject, each: UnitInference, name: str) -> Any:
    return folder.unit_table(subject.name, each.unit.task.name, each.unit.method.name, name)


def _write_map(
    folder: ResultsFolder, subject: Subject, each: UnitInference, stat: str, values: NDArray, about: str
) -> None:
    path = folder.statmap(subject.name, each.unit.task.name, entity(each.unit.method.name), stat)
    write_map(path, values, subject.mask_img, _sidecar(subject, each, about))


def _sidecar(subject: Subject, each: UnitInference, about: str) -> dict[str, Any]:
    task, method = each.unit.task, each.unit.method
    banner = {} if subject.banner is None else {"Phantom": subject.banner}
    return {
        **banner,
        "Description": about,
        "Contrast": f"{task.positive} versus {task.negative}",
        "Method": method.name,
        "GeneratedBy": f"mvpa_gamp {subject.version}",
    }
