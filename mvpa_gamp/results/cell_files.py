"""From the fits of a cell, a method on a comparison, to its files and its rows in the tables of a study."""

from typing import Any

import numpy as np

from mvpa_gamp.methods.fold_fits import FoldFits
from mvpa_gamp.results.cell import Cell, CellRecord
from mvpa_gamp.results.cell_maps import write_cell_maps
from mvpa_gamp.results.cell_tables import confusion_rows, write_cell_tables
from mvpa_gamp.results.clusters import cluster_rows
from mvpa_gamp.results.measures import measures_of
from mvpa_gamp.results.pattern_clusters import pattern_cluster_rows


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
