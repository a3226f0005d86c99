"""The voxels of a participant: a mask given, what all runs' brain masks have in common, or one computed."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mvpa_gamp.imaging.bids.layout import RunFiles
from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.volumes import check_same_grid, computed_mask, like, open_mask


def mask_of(runs: Sequence[RunFiles], images: Sequence[Any], given: str) -> tuple[Any, tuple[str, ...]]:
    """The mask given, the common part of the runs' brain masks, or one computed from raw volumes."""
    if given:
        return given, ()
    files = [run.mask for run in runs if run.mask is not None]
    if len(files) == len(runs):
        return common_mask(files), ()
    if files or "desc-preproc" in runs[0].bold.name:
        without = next(run.bold.name for run in runs if run.mask is None)
        raise DataError(
            f"mask: expected a desc-brain_mask next to every run, found none for {without}. Add it, or "
            "give --mask."
        )
    for image in images[1:]:
        check_same_grid(image, images[0], "BOLD file")
    mask, size = computed_mask(images)
    if not size:
        raise DataError("mask: none could be computed from the raw volumes. Give one with --mask.")
    return mask, (f"The brain mask was computed from the mean volume: {size:,} voxels.",)


def common_mask(files: Sequence[Path]) -> Any:
    """The voxels that are in every mask, as an image on the first one's grid."""
    first, inside = open_mask(files[0])
    for path in files[1:]:
        image, other = open_mask(path)
        check_same_grid(image, first, "mask")
        inside = inside & other
    if not inside.any():
        raise DataError(
            f"mask: the brain masks of the {len(files)} runs have no voxel in common. Give one with --mask."
        )
    return like(first, inside.astype(np.uint8))
