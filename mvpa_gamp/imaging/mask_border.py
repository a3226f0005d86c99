"""What the leakage check needs of raw volumes: voxels that touch the mask from outside, and digests."""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation

from mvpa_gamp.imaging.spaces import space_of

_MOST = 2000  # voxels kept: more would not sharpen the comparison
_BRIGHT = 0.5  # of the mask's median intensity: darker voxels are not brain
_SMALL = 0.5  # of the bright voxels: a larger mask is a brain mask, which no label has chosen


def border_of(inside: NDArray) -> tuple[NDArray, ...]:
    """Places of the voxels that touch the mask with a face, an edge or a corner, at most 2,000 of them."""
    return tuple(thinned(np.argwhere(binary_dilation(inside, np.ones((3, 3, 3))) & ~inside)).T)


def thinned(touching: NDArray) -> NDArray:
    """Places spread evenly over those that touch a mask, at most 2,000."""
    return touching[np.linspace(0, len(touching) - 1, min(_MOST, len(touching))).astype(int)]


def brain_border(series: Any, runs: Sequence[NDArray]) -> NDArray | None:
    """Raw values (M, S) at the voxels that touch a small mask and are brain; None for masks of most of it.

    ``series`` is a Series, ``runs`` are the rows of each run. Brain is what is at least half as bright as the
    mask's median voxel and varies in every run.
    """
    if series.border is None:
        return None
    mean = space_of(series.mean_img).whole(series.mean_img)
    bright = _BRIGHT * float(np.median(mean[series.inside]))
    if bright <= 0 or series.inside.sum() > _SMALL * np.count_nonzero(mean >= bright):
        return None
    usable = series.border.mean(axis=0) >= bright
    for members in runs:
        usable &= np.ptp(series.border[members], axis=0) > 0
    return np.ascontiguousarray(series.border[:, usable]) if usable.any() else None


def fingerprints_of(values: NDArray) -> NDArray:
    """A digest (M,) uint64 of every row."""
    rows = np.ascontiguousarray(values)
    digests = [hashlib.blake2b(row.data, digest_size=8).digest() for row in rows]
    return np.frombuffer(b"".join(digests), dtype=np.uint64)
