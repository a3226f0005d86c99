"""Voxels that carry information about the labels of a comparison: maps, a mask and a table of the voxels."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mvpa_gamp.decoding.information import InformationMap
from mvpa_gamp.decoding.tasks import Task
from mvpa_gamp.results.cell import Subject
from mvpa_gamp.results.clusters import placed
from mvpa_gamp.results.files import write_tsv
from mvpa_gamp.results.ledger import NO_THRESHOLD, Ledger
from mvpa_gamp.results.names import ResultsFolder

LEVEL = 0.05  # family-wise
MAPS = ("stat-corr_statmap.nii.gz", "stat-logpfwe_statmap.nii.gz", "mask.nii.gz")
_COLUMNS = ("contrast", "comparison", "voxels", "permutations", "smallest_p_value", "peak_x_mm", "peak_y_mm",
            "peak_z_mm", "peak_correlation", "exchanged", "caution")  # fmt: skip
_VOXELS = ("x_mm", "y_mm", "z_mm", "i", "j", "k", "correlation", "p_value")


def write_information(
    folder: ResultsFolder, subject: Subject, found: Sequence[tuple[Task, InformationMap]]
) -> dict[str, Any]:
    """Write the files of every comparison; returns the ``information`` part of summary.json."""
    rows = []
    for task, each in found:
        _write_maps(folder, subject, task, each)
        rows.append(_write_voxels(folder, subject, task, each))
    Ledger(folder, subject).table("information", _COLUMNS, rows)
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
    columns = placed(_VOXELS, space, "")
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
