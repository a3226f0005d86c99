"""The clusters that selected voxels (or vertices) form in the brain, and where a pattern is strongest."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.imaging.spaces import Space

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
