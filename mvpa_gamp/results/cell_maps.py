"""The maps of a cell, a method on a comparison: of the refit, of folds, of what was selected."""

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.imaging.map_names import entity
from mvpa_gamp.methods.fold_fits import FoldFits
from mvpa_gamp.results.cell import Cell
from mvpa_gamp.results.ledger import NO_THRESHOLD, SELECTED, Ledger

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
