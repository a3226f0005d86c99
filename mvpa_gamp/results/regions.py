"""Where in the brain: clusters of selected voxels or vertices, strongest patterns, and tables of an atlas."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.decoding.localisation import FEWEST_VOXELS, RegionTest, exact_sums
from mvpa_gamp.decoding.scores import fold_errors
from mvpa_gamp.imaging.brainmaps import coordinates, sidecar_path, write_image
from mvpa_gamp.imaging.regions import OUTSIDE, Regions
from mvpa_gamp.imaging.spaces import Space
from mvpa_gamp.methods.fold_fits import FoldFits
from mvpa_gamp.results.files import write_json, write_tsv
from mvpa_gamp.results.ledger import Cell, Subject
from mvpa_gamp.results.names import ResultsFolder

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


EVERYTHING = "all voxels"
SUMS = ("voxels", "summed_inclusion", "summed_abs_weight", "selected_voxels")
REGION_COLUMNS = {
    "index": "Number of the region in the atlas.",
    "region": f"Its name; '{OUTSIDE}' are the voxels in none of its regions, '{EVERYTHING}' is the whole "
    "mask, of which the sums over all other rows are the value, to the last bit.",
    "voxels": "Voxels of the mask in the region.",
    "summed_inclusion": "Sum of the inclusion probabilities: how many of its voxels the classifier is "
    "expected to need. Large regions have more voxels to sum over.",
    "summed_abs_weight": "Sum of the absolute weights.",
    "weight_share_percent": "The same in percent of the sum over all voxels.",
    "selected_voxels": "Voxels selected by the refit on all runs.",
    "peak_x_mm": "Position of the voxel with the largest absolute weight.",
    "peak_y_mm": "As peak_x_mm.",
    "peak_z_mm": "As peak_x_mm.",
    "peak_weight": "Its weight; positive favours the first category.",
}
ACCURACY_COLUMNS = {
    "accuracy_percent": "Accuracy of a classifier of this region alone, mean over the runs held out.",
    "accuracy_se_percent": "Its standard error across runs; folds share training data, so it is approximate.",
    "fits_not_converged": "Fits of this region, those of permuted labels included, that did not meet their "
    "stopping rule.",
}
TEST_COLUMNS = {
    "p_value": "(1 + number of permutations at least as good) / (1 + permutations), of the region alone; "
    "equal accuracies are ordered by the area under the ROC curve.",
    "p_value_fwe": "The same corrected for all regions by step-down maxima: in each permutation the region "
    "is compared with the most accurate one of itself and the less accurate ones, all with the same labels.",
}
WITHOUT_COLUMNS = {
    "accuracy_without_percent": "Accuracy of a classifier of all voxels but those of this region, in the "
    "same folds, to be compared with that of all voxels. Little is lost where other regions carry the same.",
    "accuracy_without_se_percent": "Its standard error across runs.",
}
WITHOUT_TEST_COLUMNS = {
    "p_value_without": "As p_value, of the voxels without this region: whether the others decode at all.",
    "p_value_without_fwe": "The same corrected for all regions.",
}


def region_rows(
    regions: Regions, weight: NDArray, inclusion: NDArray | None, support: NDArray
) -> list[dict[str, Any]]:
    """A row per region in the order of the atlas, then the voxels outside it, then all voxels.

    ``weight``, ``inclusion`` and ``support`` are (N,); counts and sums over regions equal the last row's.

    Parameters
    ----------
    regions
        The regions of an atlas at the N voxels.
    weight, inclusion, support
        Weights, inclusion probabilities (None: the method has none) and selection, (N,) each.

    Returns
    -------
    list of dict
        The rows of the table, by column.
    """
    n = len(regions.names)
    sums = {
        "voxels": exact_sums(np.ones(weight.size), regions.of_voxel, n).astype(int),
        "summed_abs_weight": exact_sums(np.abs(weight), regions.of_voxel, n),
        "selected_voxels": exact_sums(support, regions.of_voxel, n).astype(int),
    }
    if inclusion is not None:
        sums["summed_inclusion"] = exact_sums(inclusion, regions.of_voxel, n)
    total = sums["summed_abs_weight"][-1]
    places = coordinates(regions.mask_img)
    members = [*(regions.voxels(k) for k in range(n)), regions.voxels(-1), np.arange(weight.size)]
    names = [*zip(regions.indices, regions.names, strict=True), (None, OUTSIDE), (None, EVERYTHING)]
    return [
        {
            "index": index,
            "region": name,
            **{column: values[k].item() for column, values in sums.items()},
            "weight_share_percent": 100 * float(sums["summed_abs_weight"][k] / total) if total else None,
            **_peak(members[k], weight, places),
        }
        for k, (index, name) in enumerate(names)
    ]


def _peak(members: NDArray, weight: NDArray, places: NDArray) -> dict[str, float]:
    """The voxel with the largest absolute weight; none where all weights are zero."""
    if not weight[members].any():
        return {}
    peak = members[int(np.argmax(np.abs(weight[members])))]
    where = (round(float(value), 3) + 0.0 for value in places[peak])
    axes = ("peak_x_mm", "peak_y_mm", "peak_z_mm")
    return {**dict(zip(axes, where, strict=True)), "peak_weight": float(weight[peak])}


def add_accuracies(rows: list[dict[str, Any]], test: RegionTest, tested: Sequence[int]) -> None:
    """Write the accuracies of the regions ``tested``, by their places, into their rows."""
    for k, place in enumerate(tested):
        rows[place] |= {
            "accuracy_percent": 100 * float(test.accuracy[k]),
            "accuracy_se_percent": 100 * float(test.standard_error[k]),
            "fits_not_converged": int(test.n_failed[k]),
        }
    if test.null is not None:
        for place, p, corrected in zip(tested, test.pvalue, test.family_wise, strict=True):
            rows[place] |= {"p_value": float(p), "p_value_fwe": float(corrected)}


def add_accuracies_without(rows: list[dict[str, Any]], test: RegionTest, tested: Sequence[int]) -> None:
    """The same of all voxels but those of each region."""
    for k, place in enumerate(tested):
        rows[place] |= {
            "accuracy_without_percent": 100 * float(test.accuracy[k]),
            "accuracy_without_se_percent": 100 * float(test.standard_error[k]),
        }
        if test.null is not None:
            p, corrected = float(test.pvalue[k]), float(test.family_wise[k])
            rows[place] |= {"p_value_without": p, "p_value_without_fwe": corrected}


def ranked(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The regions by accuracy, else by summed inclusion, else by weight; the two last rows stay last."""
    *regions, outside, whole = rows
    columns = ("accuracy_percent", "summed_inclusion", "summed_abs_weight")
    known = [name for name in columns if any(name in row for row in regions)]
    regions.sort(key=lambda row: [-row.get(name, -1.0) for name in known])
    return [*regions, outside, whole]


CLUSTER_COLUMNS = (
    "contrast", "method", "cluster", "voxels", "volume_mm3",
    "peak_x_mm", "peak_y_mm", "peak_z_mm", "peak_i", "peak_j", "peak_k",
    "peak_weight", "peak_selection_frequency", "mean_selection_frequency",
    "centre_x_mm", "centre_y_mm", "centre_z_mm",
)  # fmt: skip


def placed(columns: Sequence[str], space: Space, prefix: str = "peak_") -> tuple[str, ...]:
    """Columns of a table with the space's own names of places in place of i, j and k."""
    own = [f"{prefix}{name}" for name in space.place_names]
    usual = [f"{prefix}{axis}" for axis in "ijk"]
    start = columns.index(usual[0])
    return (*columns[:start], *own, *columns[start + len(usual) :])


def cluster_rows(support: NDArray, weight: NDArray, frequency: NDArray, space: Space) -> list[dict[str, Any]]:
    """Clusters of selected voxels, largest first (ties: strongest peak first).

    ``support``, ``weight``, ``frequency`` are (N,), in the order of the space. The peak of a cluster is its
    voxel with the largest absolute weight.
    """
    owner = space.clusters(support)
    if not owner.any():
        return []
    places = space.coordinates()
    found = [
        _cluster(np.flatnonzero(owner == k), places, weight, frequency, space)
        for k in range(1, int(owner.max()) + 1)
    ]
    found.sort(key=lambda one: (-one[1]["voxels"], -abs(one[1]["peak_weight"]), one[0]))
    return [{"cluster": i + 1, **row} for i, (_, row) in enumerate(found)]


def _cluster(
    members: NDArray, places: NDArray, weight: NDArray, frequency: NDArray, space: Space
) -> tuple[int, dict[str, Any]]:
    """The element of a cluster's peak, and its row without its number."""
    peak = int(members[int(np.argmax(np.abs(weight[members])))])
    size = space.element_mm3
    row = {"voxels": len(members), "volume_mm3": None if size is None else size * len(members)}
    row |= dict(zip(("peak_x_mm", "peak_y_mm", "peak_z_mm"), _rounded(places[peak]), strict=True))
    row |= {f"peak_{name}": value for name, value in space.place(peak).items()}
    row |= dict(
        zip(("centre_x_mm", "centre_y_mm", "centre_z_mm"), _rounded(space.centre(members)), strict=True)
    )
    row["peak_weight"] = float(weight[peak])
    row["peak_selection_frequency"] = float(frequency[peak])
    row["mean_selection_frequency"] = float(frequency[members].mean())
    return peak, row


def _rounded(place: NDArray) -> list[float]:
    """Coordinates in mm, rounded to a micrometre."""
    return [round(float(v), 3) + 0.0 for v in place]


PATTERN_CLUSTER_COLUMNS = (
    "contrast", "method", "cluster", "higher_for", "voxels", "volume_mm3",
    "peak_x_mm", "peak_y_mm", "peak_z_mm", "peak_i", "peak_j", "peak_k", "peak_pattern",
    "centre_x_mm", "centre_y_mm", "centre_z_mm",
)  # fmt: skip
_SHARE_OF_PEAK = 0.5  # a place reaches down to half of the strongest value, as a width at half height does
_MOST = 10  # places listed: further ones are weaker than noise makes them


def pattern_cluster_rows(pattern: NDArray, names: tuple[str, str], space: Space) -> list[dict[str, Any]]:
    """Clusters of voxels whose pattern is at least half as strong as the strongest, strongest first.

    ``pattern`` (N,) is in the order of the space; ``names`` are the categories for which positive
    and negative values stand. Voxels of different sign are never one cluster. This describes a map and tests
    nothing.
    """
    strength = np.abs(pattern)
    if not np.isfinite(strength).all() or not strength.max(initial=0.0) > 0:
        return []
    strong = strength >= _SHARE_OF_PEAK * strength.max()
    rows = [
        {**row, "higher_for": name, "peak_pattern": row["peak_weight"]}
        for name, sign in zip(names, (1, -1), strict=True)
        for row in cluster_rows(strong & (sign * pattern > 0), pattern, strength, space)
    ]
    at = [f"peak_{name}" for name in space.place_names]
    rows.sort(key=lambda row: (-abs(row["peak_pattern"]), *(row[name] for name in at)))
    kept = [
        name
        for name in placed(PATTERN_CLUSTER_COLUMNS, space)
        if name not in ("contrast", "method", "cluster")
    ]
    return [{"cluster": i + 1, **{name: row[name] for name in kept}} for i, row in enumerate(rows[:_MOST])]
