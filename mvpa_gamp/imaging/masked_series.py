"""Raw volumes inside a mask, read block by block: the series before anything is done to it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.imaging.volumes import check_same_grid, like, n_volumes, name_of, open_mask, volume_blocks


@dataclass(frozen=True)
class Volumes:
    """Images on one grid, in order; a 3-D image is one volume. Messages call an image ``what`` and its name.

    ``shape`` (x, y, z, M) and ``affine`` are those of the whole series.
    """

    images: Sequence[Any]
    what: str = "BOLD file"
    given_names: tuple[str, ...] = ()  # where file names do not tell them apart

    def __post_init__(self) -> None:
        for image, name in zip(self.images, self.names, strict=True):
            check_same_grid(image, self.images[0], self.what, name)

    @property
    def names(self) -> tuple[str, ...]:
        """What messages call each image."""
        return self.given_names or tuple(map(name_of, self.images))

    @property
    def counts(self) -> tuple[int, ...]:
        """Volumes of each image."""
        return tuple(map(n_volumes, self.images))

    @property
    def shape(self) -> tuple[int, ...]:
        """Grid and number of volumes."""
        return (*self.images[0].shape[:3], sum(self.counts))

    @property
    def affine(self) -> NDArray:
        """Voxel to mm."""
        return np.asarray(self.images[0].affine)


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


def read_series(volumes: Volumes, mask: Any, smoothing_fwhm: float | None = None) -> Series:
    """Read the voxels of a mask (image or file, on the same grid) block by block, smoothed before masking."""
    first, total, (mask_img, inside) = volumes.images[0], volumes.shape[3], open_mask(mask)
    check_same_grid(mask_img, first, "mask")
    blocks = (block for image in volumes.images for block in volume_blocks(image))
    values, summed, lost, finite = collect_blocks(blocks, inside, first.affine, total, smoothing_fwhm)
    mean = like(first, (summed / total).astype(np.float32))
    counts, names = volumes.counts, volumes.names
    return Series(values, inside, mask_img, mean, finite, lost, counts, names, volumes.what)


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
