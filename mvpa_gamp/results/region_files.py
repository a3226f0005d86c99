"""Regions of an atlas as files: the atlas on the grid of the data, and a table per method and comparison."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mvpa_gamp.decoding.regions import FEWEST_VOXELS, RegionTest
from mvpa_gamp.decoding.scores import fold_errors
from mvpa_gamp.imaging.brainmaps import sidecar_path, write_image
from mvpa_gamp.imaging.regions import OUTSIDE, Regions
from mvpa_gamp.methods.fold_fits import FoldFits
from mvpa_gamp.results.cell import Cell, Subject
from mvpa_gamp.results.files import write_json, write_tsv
from mvpa_gamp.results.names import ResultsFolder
from mvpa_gamp.results.region_rows import (
    ACCURACY_COLUMNS,
    REGION_COLUMNS,
    TEST_COLUMNS,
    WITHOUT_COLUMNS,
    WITHOUT_TEST_COLUMNS,
    add_accuracies,
    add_accuracies_without,
    ranked,
    region_rows,
)

_EXACT = ("summed_inclusion", "summed_abs_weight")  # written with all digits, so that they still add up
_WHITENED = (
    "Noise was whitened: weights are mapped back to voxels, but inclusion probabilities and selections are "
    "those of whitened voxels, mixtures of a voxel and those whose noise it shares."
)


@dataclass(frozen=True)
class CellRegions:
    """The accuracies of some regions, by their places; None where not asked for, or failed (``trouble``)."""

    test: RegionTest | None = None
    tested: tuple[int, ...] = ()
    trouble: str = ""
    without: RegionTest | None = None  # of all voxels but those of each


def write_regions(
    folder: ResultsFolder,
    subject: Subject,
    regions: Regions,
    found: Sequence[tuple[Cell, FoldFits, CellRegions]],
    asked: Mapping[str, Any],
) -> dict[str, Any]:
    """Write the atlas and the tables of all cells; returns the ``regions`` part of summary.json.

    ``asked`` are atlas, by_region, without_region and permutations.
    """
    _write_atlas(folder, subject, regions)
    tables, troubles, cautions = [], {}, []
    for cell, fits, each in found:
        keys = cell.keys
        name = f"sub-{keys['subject']}/{keys['contrast']}/{keys['method']}"
        tables.append(name)
        _write_table(cell, fits, regions, each)
        if each.trouble:
            troubles[name] = "failed: " + " ".join(each.trouble.split())
        if each.test is not None and each.test.caution:
            cautions.append(each.test.caution)
    tests = [each.test for *_, each in found if each.test is not None]
    used = {(test.null.shape[1], test.is_exact) for test in tests if test.null is not None}
    small = regions.sizes < FEWEST_VOXELS
    return {
        **asked,
        "compared_with": sorted(used),
        "n_regions": len(regions.names),
        "missing": list(regions.missing),
        "outside": int((regions.of_voxel < 0).sum()),
        "fewest_voxels": FEWEST_VOXELS,
        "too_small": [name for name, few in zip(regions.names, small, strict=True) if few],
        "notes": list(regions.notes),
        "cautions": list(dict.fromkeys(cautions)),
        "tables": tables,
        "troubles": troubles,
    }


def _write_atlas(folder: ResultsFolder, subject: Subject, regions: Regions) -> None:
    """The atlas at the voxels of the mask, and its table in BIDS's form."""
    path = folder.atlas(subject.name)
    about = f"Regions of the atlas {regions.atlas} at the analysed voxels; 0 outside the atlas."
    labels = {0: OUTSIDE, **dict(zip(regions.indices, regions.names, strict=True))}
    write_image(path, regions.image, subject.sidecar({"Description": about}), regions.atlas, labels)
    rows = [
        {"index": index, "name": name, "voxels": size}
        for index, name, size in zip(regions.indices, regions.names, regions.sizes, strict=True)
    ]
    write_tsv(sidecar_path(path).with_suffix(".tsv"), ("index", "name", "voxels"), rows)


def _write_table(cell: Cell, fits: FoldFits, regions: Regions, each: CellRegions) -> None:
    """regions.tsv of a cell, from the maps of its refit, with its sidecar."""
    refit = fits.refit
    inclusion = None if refit.inclusion is None else refit.inclusion[:, 0]
    rows = region_rows(regions, refit.coef[:, 0], inclusion, refit.support[:, 0])
    columns = dict(REGION_COLUMNS)
    if each.test is not None:
        add_accuracies(rows, each.test, each.tested)
        rows[-1] |= _of_all_voxels(fits, cell)
        columns |= ACCURACY_COLUMNS | (TEST_COLUMNS if each.test.null is not None else {})
    if each.without is not None:
        add_accuracies_without(rows, each.without, each.tested)
        columns |= WITHOUT_COLUMNS | (WITHOUT_TEST_COLUMNS if each.without.null is not None else {})
    path = cell.table("regions")
    write_tsv(path, tuple(columns), (_written(row) for row in ranked(rows)))
    about: dict[str, Any] = {name: {"Description": text} for name, text in columns.items()}
    about |= {"Atlas": regions.atlas, "Estimate": "refit on all samples"}
    if each.test is not None and each.test.null is not None:
        about |= {"Permutations": each.test.null.shape[1], "Labellings": str(each.test.n_distinct)}
    if cell.subject.whitened:
        about["NoiseWhitening"] = _WHITENED
    write_json(path.with_suffix(".json"), cell.subject.sidecar(about))


def _of_all_voxels(fits: FoldFits, cell: Cell) -> dict[str, float]:
    """The accuracy of the classifier of all voxels, to compare with."""
    right = 100 * (1 - fold_errors(fits, cell.task.y))
    error = float(right.std(ddof=1) / np.sqrt(right.size))
    return {"accuracy_percent": float(right.mean()), "accuracy_se_percent": error}


def _written(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with all digits where sums must add up."""
    return {**row, **{name: repr(row[name]) for name in _EXACT if row.get(name) is not None}}
