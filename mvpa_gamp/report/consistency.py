"""The consistency report of one method on one task: how alike the folds' selections are."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.stability import jaccard, jaccard_chance, jaccard_matrix, kuncheva, nogueira

CONSISTENCY_COLUMNS = (
    "contrast", "comparison", "method", "folds", "folds_selecting", "voxels", "sparsity_percent",
    "consistency_percent", "chance_consistency_percent", "kuncheva",
    "nogueira", "nogueira_variance", "nogueira_low", "nogueira_high",
    "voxels_in_every_fold", "voxels_in_any_fold",
)  # fmt: skip


def consistency(support: NDArray) -> dict[str, Any]:
    """All measures of a boolean (N, B) support matrix, one column per fold (the refit left out), B >= 2.

    ``consistency_percent`` is the paper's: the mean Jaccard index over ordered pairs of folds, where two
    empty selections count as equal. ``folds_selecting`` counts the folds that selected something, but not
    every voxel: without most of them consistency says nothing.
    """
    stability = nogueira(support)
    times, sizes = support.sum(axis=1), support.sum(axis=0)
    return {
        "folds": support.shape[1],
        "folds_selecting": int(((sizes > 0) & (sizes < len(support))).sum()),
        "voxels": float(sizes.mean()),
        "sparsity_percent": 100 * float(support.mean()),
        "consistency_percent": 100 * jaccard(support),
        "chance_consistency_percent": 100 * jaccard_chance(support),
        "kuncheva": kuncheva(support),
        "nogueira": stability.estimate,
        "nogueira_variance": stability.variance,
        "nogueira_low": stability.low,
        "nogueira_high": stability.high,
        "voxels_in_every_fold": int((times == support.shape[1]).sum()),
        "voxels_in_any_fold": int((times > 0).sum()),
    }


def overlap_rows(support: NDArray, held_out: NDArray) -> tuple[list[str], list[dict[str, Any]]]:
    """Columns and rows of the Jaccard matrix; rows and columns are named by the run held out."""
    names = [f"run_{run}" for run in held_out]
    matrix = np.asarray(jaccard_matrix(support))
    rows = [
        {"held_out_run": run, **dict(zip(names, line, strict=True))}
        for run, line in zip(held_out, matrix, strict=True)
    ]
    return ["held_out_run", *names], rows
