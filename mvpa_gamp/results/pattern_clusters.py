"""Where the pattern of a classifier is strongest, for cells in which no single voxel can be named."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.imaging.spaces import Space
from mvpa_gamp.results.clusters import cluster_rows, placed

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
