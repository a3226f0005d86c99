"""The clusters that selected voxels form in the brain, with coordinates."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

CLUSTER_COLUMNS = (
    "contrast", "method", "cluster", "voxels", "volume_mm3",
    "peak_x_mm", "peak_y_mm", "peak_z_mm", "peak_i", "peak_j", "peak_k",
    "peak_weight", "peak_selection_frequency", "mean_selection_frequency",
    "centre_x_mm", "centre_y_mm", "centre_z_mm",
)  # fmt: skip
_NEIGHBOURS = np.ones((3, 3, 3))  # faces, edges and corners: sparse selections often touch diagonally


def cluster_rows(
    support: NDArray, weight: NDArray, frequency: NDArray, mask: NDArray, affine: NDArray
) -> list[dict[str, Any]]:
    """Clusters of selected voxels, largest first (ties: strongest peak first).

    ``support``, ``weight``, ``frequency`` are (N,), in the order of ``mask.nonzero()`` (C order);
    ``mask`` is a 3-d bool array, ``affine`` (4, 4) takes voxel indices to millimetres. The peak of a
    cluster is its voxel with the largest absolute weight.
    """
    selected = np.zeros(mask.shape, dtype=bool)
    selected[mask] = support
    labelled, count = ndimage.label(selected, structure=_NEIGHBOURS)
    if count == 0:
        return []
    owner = labelled[mask]
    voxels = np.argwhere(mask)
    volume = float(abs(np.linalg.det(affine[:3, :3])))
    rows = [
        _cluster(np.flatnonzero(owner == k), voxels, weight, frequency, affine, volume)
        for k in range(1, count + 1)
    ]
    rows.sort(
        key=lambda row: (
            -row["voxels"],
            -abs(row["peak_weight"]),
            row["peak_i"],
            row["peak_j"],
            row["peak_k"],
        )
    )
    return [{"cluster": i + 1, **row} for i, row in enumerate(rows)]


def _cluster(
    members: NDArray, voxels: NDArray, weight: NDArray, frequency: NDArray, affine: NDArray, volume: float
) -> dict[str, Any]:
    """The row of one cluster, without its number."""
    peak = members[int(np.argmax(np.abs(weight[members])))]
    centre = voxels[members].mean(axis=0)
    row = {"voxels": len(members), "volume_mm3": volume * len(members)}
    row |= dict(zip(("peak_x_mm", "peak_y_mm", "peak_z_mm"), _world(affine, voxels[peak]), strict=True))
    row |= dict(zip(("peak_i", "peak_j", "peak_k"), (int(v) for v in voxels[peak]), strict=True))
    row |= dict(zip(("centre_x_mm", "centre_y_mm", "centre_z_mm"), _world(affine, centre), strict=True))
    row["peak_weight"] = float(weight[peak])
    row["peak_selection_frequency"] = float(frequency[peak])
    row["mean_selection_frequency"] = float(frequency[members].mean())
    return row


def _world(affine: NDArray, index: NDArray) -> list[float]:
    """Millimetre coordinates of a voxel index, rounded to a micrometre."""
    return [round(float(v), 3) + 0.0 for v in affine[:3, :3] @ index + affine[:3, 3]]
