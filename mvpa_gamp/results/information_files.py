"""Voxels that carry information about the labels of a comparison: maps, a mask and a table of the voxels."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mvpa_gamp.decoding.information import InformationMap
from mvpa_gamp.decoding.tasks import Task
from mvpa_gamp.imaging.brainmaps import write_map
from mvpa_gamp.results.cell import NO_THRESHOLD, Subject
from mvpa_gamp.results.clusters import placed
from mvpa_gamp.results.files import write_tsv
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
    rows = [_write_comparison(folder, subject, task, each) for task, each in found]
    write_tsv(folder.subject_table(subject.name, "information"), _COLUMNS, rows)
    return {"level": LEVEL, "contrasts": [task.name for task, _ in found]}


def _write_comparison(
    folder: ResultsFolder, subject: Subject, task: Task, each: InformationMap
) -> dict[str, Any]:
    """Maps, mask and table of one comparison; returns its row."""
    what = f"{task.positive} (positive) versus {task.negative} (negative)"
    selected = each.selected(LEVEL)
    maps = {
        "corr": (each.correlation, "Correlation of each voxel with the labels, both centred within runs."),
        "logpfwe": (-np.log10(each.pvalue), f"-log10 of the p-value of that correlation, corrected for all "
                  f"voxels by step-down maxima over {each.n} permutations of the labels. 1.301 is p = 0.05."),
        "mask": (selected, f"Voxels that carry information about the labels, family-wise p <= {LEVEL}."),
    }  # fmt: skip
    for ending, (stat, (values, about)) in zip(MAPS, maps.items(), strict=True):
        threshold = f"family-wise p of {LEVEL} or less" if values is selected else NO_THRESHOLD
        sidecar = subject.sidecar({"Description": about, "Contrast": what, "Threshold": threshold})
        path = folder.information(subject.name, task.name, ending)
        display = subject.display(stat, f"information {stat} {task.label}")
        write_map(path, values, subject.mask_img, sidecar, display)
    space = subject.space
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
