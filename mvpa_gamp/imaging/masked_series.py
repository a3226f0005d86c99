"""Raw volumes inside a mask, read block by block: the series before anything is done to it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.imaging.volumes import check_same_grid, like, n_volumes, name_of, volume_blocks


@dataclass(frozen=True)
class Volumes:
    """Images on one grid, in order, and the mask whose voxels are read from them; a 3-D image is one volume.

    ``what`` is what messages call an image, ``names`` tell them apart. Other grids are refused.
    """

    images: Sequence[Any]
    mask_img: Any
    inside: NDArray  # (x, y, z) bool
    what: str = "BOLD file"
    given_names: tuple[str, ...] = ()  # where file names do not tell

    def __post_init__(self) -> None:
        for image, name in zip(self.images, self.names, strict=True):
            check_same_grid(image, self.images[0], self.what, name)
        check_same_grid(self.mask_img, self.images[0], "mask")

    @property
    def names(self) -> tuple[str, ...]:
        """What messages call each image."""
        return self.given_names or tuple(name_of(image) for image in self.images)

    @property
    def counts(self) -> tuple[int, ...]:
        """Volumes of each image."""
        return tuple(n_volumes(image) for image in self.images)


@dataclass(frozen=True)
class Series:
    """M raw volumes at the N voxels of a mask, and which of their values were missing."""

    values: NDArray  # (M, N) float32; NaN and infinity are 0
    inside: NDArray  # (x, y, z) bool
    mask_img: Any  # whose header the voxels' mask gets
    mean_img: Any
    finite: NDArray  # (N,) bool: no volume has NaN or infinity there
    lost: NDArray  # (M,) int: voxels that are NaN or infinite in each volume
    counts: tuple[int, ...]  # volumes of each image
    names: tuple[str, ...]  # of the images
    what: str = "BOLD file"

    def mask_of(self, kept: NDArray) -> Any:
        """The mask of some of the voxels (N,) bool."""
        mask = self.inside.copy()
        mask[self.inside] = kept
        return like(self.mask_img, mask.astype(np.uint8))


def read_series(volumes: Volumes, smoothing_fwhm: float | None = None) -> Series:
    """Read the voxels of the mask block by block, smoothed before masking."""
    first, total = volumes.images[0], sum(volumes.counts)
    blocks = (block for image in volumes.images for block in volume_blocks(image))
    inside, counts, names = volumes.inside, volumes.counts, volumes.names
    values, summed, lost, finite = collect_blocks(blocks, inside, first.affine, total, smoothing_fwhm)
    mean = like(first, (summed / total).astype(np.float32))
    return Series(values, inside, volumes.mask_img, mean, finite, lost, counts, names, volumes.what)


def collect_blocks(
    blocks: Iterator[NDArray], inside: NDArray, affine: NDArray, total: int, smoothing_fwhm: float | None
) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """Masked values (M, N) float32, the sum of all volumes (x, y, z), how many voxels of each volume are not
    finite (M,), and which voxels (N,) are finite throughout.

    Infinite and missing values count as 0 in the sum and in smoothing.
    """
    values = np.empty((total, int(inside.sum())), dtype=np.float32)
    summed = np.zeros(inside.shape)
    finite = np.ones(values.shape[1], dtype=bool)
    lost = np.zeros(total, dtype=int)
    row = 0
    for block in blocks:
        good = np.isfinite(block)
        if not good.all():
            finite &= good[inside].all(axis=1)
            lost[row : row + block.shape[3]] = (~good[inside]).sum(axis=0)
            block = np.where(good, block, np.float32(0))
        summed += block.sum(axis=3, dtype=np.float64)
        if smoothing_fwhm is not None:
            block = _smooth(block, affine, smoothing_fwhm)
        values[row : row + block.shape[3]] = block[inside].T
        row += block.shape[3]
    return values, summed, lost, finite


def _smooth(block: NDArray, affine: NDArray, fwhm: float) -> NDArray:
    """A block of volumes smoothed by nilearn with a Gaussian of ``fwhm`` mm."""
    import nibabel
    from nilearn.image import smooth_img

    return np.asarray(smooth_img(nibabel.Nifti1Image(block, affine), fwhm).dataobj, dtype=np.float32)
