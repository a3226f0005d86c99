"""The table of regions: what of the maps of a method on a comparison lies in each region of an atlas."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.decoding.regions import RegionTest, exact_sums
from mvpa_gamp.imaging.brainmaps import coordinates
from mvpa_gamp.imaging.regions import OUTSIDE, Regions

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
