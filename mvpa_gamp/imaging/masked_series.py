"""Raw volumes inside a mask, read block by block: the series before processing, and its unusable voxels."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.volumes import like, name_of, repetition_time, volume_blocks

BROKEN = 0.5  # a volume without values in more than this share of the mask is itself to blame


@dataclass(frozen=True)
class Series:
    """Raw volumes inside a mask, before processing: values (M, N), the mask (grid, bool), the mean volume."""

    values: NDArray
    mask: NDArray
    mean_img: Any
    t_r: float | None
    finite: NDArray  # (N,) bool: no volume has NaN or infinity there
    volumes: tuple[int, ...]  # per BOLD file
    lost: NDArray | None = (
        None  # (M,) int: voxels that are NaN or infinite in each volume; None: none anywhere
    )
    names: tuple[str, ...] = ()  # of the BOLD files


def read_series(images: Sequence[Any], inside: NDArray, smoothing_fwhm: float | None) -> Series:
    """Read the voxels of a mask from 4-D images on its grid, block by block, smoothed before masking."""
    volumes = tuple(image.shape[3] for image in images)
    blocks = (block for image in images for block in volume_blocks(image))
    values, total, lost, finite = collect_blocks(
        blocks, inside, images[0].affine, sum(volumes), smoothing_fwhm
    )
    mean = like(images[0], (total / sum(volumes)).astype(np.float32))
    names = tuple(name_of(image) for image in images)
    return Series(values, inside, mean, repetition_time(images[0]), finite, volumes, lost, names)


def collect_blocks(
    blocks: Iterator[NDArray], inside: NDArray, affine: NDArray, n_volumes: int, smoothing_fwhm: float | None
) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """Masked values (M, N) float32, the sum of all volumes (x, y, z), how many voxels of each volume are not
    finite (M,), and which voxels (N,) are finite throughout.

    Infinite and missing values count as 0 in the sum and in smoothing.
    """
    values = np.empty((n_volumes, int(inside.sum())), dtype=np.float32)
    total = np.zeros(inside.shape)
    finite = np.ones(values.shape[1], dtype=bool)
    lost = np.zeros(n_volumes, dtype=int)
    row = 0
    for block in blocks:
        good = np.isfinite(block)
        if not good.all():
            finite &= good[inside].all(axis=1)
            lost[row : row + block.shape[3]] = (~good[inside]).sum(axis=0)
            block = np.where(good, block, np.float32(0))
        total += block.sum(axis=3, dtype=np.float64)
        if smoothing_fwhm is not None:
            block = _smooth(block, affine, smoothing_fwhm)
        values[row : row + block.shape[3]] = block[inside].T
        row += block.shape[3]
    return values, total, lost, finite


def usable_voxels(series: Series, stretches: list[tuple[int, slice]]) -> tuple[NDArray, tuple[str, ...]]:
    """Voxels (N,) that are finite and vary in every run, and a sentence about each kind left out."""
    varying = np.ones(series.values.shape[1], dtype=bool)
    for _, span in stretches:
        run = series.values[span]
        varying &= (run != run[0]).any(axis=0)
    kept = series.finite & varying
    broken = _broken_volumes(series)
    dropped = int((~series.finite).sum()), int((series.finite & ~varying).sum())
    if not kept.any() and broken:
        raise DataError(
            f"{broken}, so that no voxel is finite throughout. Repair the file, or leave out such volumes "
            "together with their labels."
        )
    if not kept.any():
        raise DataError(
            f"mask: none of its {len(kept)} voxels can be used ({dropped[0]} with NaN or infinity, "
            f"{dropped[1]} constant within a run). Check that mask and BOLD file belong together."
        )
    notes = []
    if dropped[0]:
        notes.append(
            f"{dropped[0]} of {len(kept)} voxels of the mask have NaN or infinite values and were dropped."
            + (f" {broken}: without such volumes more voxels would be left." if broken else "")
        )
    if dropped[1]:
        notes.append(
            f"{dropped[1]} of {len(kept)} voxels of the mask are constant within a run and were dropped."
        )
    return kept, tuple(notes)


def _broken_volumes(series: Series) -> str:
    """Which volumes are NaN or infinite in most of the mask, by file and number from 1.

    Empty where none is, and where most volumes are: then the mask does not fit.
    """
    size, starts = series.values.shape[1], np.cumsum((0, *series.volumes[:-1]))
    if series.lost is None or np.mean(series.lost > BROKEN * size) > BROKEN:
        return ""
    said = []
    for name, start, length in zip(series.names, starts, series.volumes, strict=True):
        lost = series.lost[start : start + length]
        bad = np.flatnonzero(lost > BROKEN * size)
        if bad.size:
            share = "all" if (lost[bad] == size).all() else "most"
            what = f"NaN or infinite in {share} voxels of the mask"
            said.append(f"BOLD file {name}: {_volume_numbers(bad)} {what}")
    return "; ".join(said)


def _volume_numbers(places: NDArray) -> str:
    """``volume 6 is``, ``volumes 6, 7, 8 are``: places from 0 as numbers from 1, at most five of them."""
    shown = ", ".join(str(place + 1) for place in places[:5])
    if len(places) == 1:
        return f"volume {shown} (counted from 1) is"
    more = f" and {len(places) - 5} more" if len(places) > 5 else ""
    return f"volumes {shown}{more} (counted from 1) are"


def _smooth(block: NDArray, affine: NDArray, fwhm: float) -> NDArray:
    """A block of volumes smoothed by nilearn with a Gaussian of ``fwhm`` mm."""
    import nibabel
    from nilearn.image import smooth_img

    return np.asarray(smooth_img(nibabel.Nifti1Image(block, affine), fwhm).dataobj, dtype=np.float32)
