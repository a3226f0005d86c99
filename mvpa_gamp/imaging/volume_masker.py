"""Images in nilearn's many forms, and a masker of its kind that makes rows of them as all sources do."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import numpy as np
from nilearn.image import concat_imgs, index_img, load_img, new_img_like, resample_to_img
from nilearn.maskers import NiftiMasker
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_memory

from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.matrix import ALL, Matrix, Volumes, read_series, usable_voxels, volumes_to_matrix
from mvpa_gamp.imaging.processing import MIN_VOLUMES, Processing
from mvpa_gamp.imaging.volumes import is_same_grid, like, name_of, open_image

CLEANING = ("smoothing_fwhm", "standardize", "detrend", "high_pass", "low_pass", "t_r")
# Settings of a masker that change no row once mask and runs are known.
_SILENT = (
    "mask_img", "mask_strategy", "mask_args", "runs", "memory", "memory_level", "verbose", "reports", "cmap",
)  # fmt: skip


def open_volumes(images: Any) -> Volumes:
    """Volumes from a 4-D image, a list of 3-D (or 4-D) images, or paths of them, all on one grid."""
    single = isinstance(images, str) or hasattr(images, "affine") or not isinstance(images, Iterable)
    opened = [_opened(image) for image in ([images] if single else images)]
    if not opened or any(0 in image.shape for image in opened):
        raise DataError("images: expected at least one volume, got an empty image or list. Check the input.")
    wrong = [image.shape for image in opened if len(image.shape) not in (3, 4)]
    if wrong:
        raise DataError(
            f"images: expected a 4-D image or a list of 3-D images, got shape {wrong[0]}. "
            "Give one volume per label."
        )
    names = [image.get_filename() or f"{k} (counted from 1)" for k, image in enumerate(opened, start=1)]
    return Volumes(opened, "image", (name_of(opened[0]),) if single else tuple(names))


def _opened(image: Any) -> Any:
    """An image; patterns of names and whatever else nilearn reads as images are read by nilearn."""
    is_file = isinstance(image, (str, Path)) and Path(image).expanduser().is_file()
    return open_image(image if is_file else load_img(image), "image")


def one_image(volumes: Volumes) -> Any:
    """All volumes as a 4-D image in memory; NaN and infinity are 0."""
    whole = concat_imgs(list(volumes.images))
    return new_img_like(whole, np.nan_to_num(whole.dataobj, nan=0.0, posinf=0.0, neginf=0.0))


class VolumeMasker(NiftiMasker):
    """nilearn's masker with the rows that every other source of this package gives.

    Volumes are read in blocks and cleaned in double precision, each run by itself and in the order given
    (nilearn returns rows sorted by run). What the package does not do, such as resampling, nilearn does.
    """

    def read(self, volumes: Volumes, runs: NDArray | None = None, voxels: str = ALL) -> Matrix:
        """Rows of the mask's voxels; runs None: the masker's own, or one for all volumes.

        Voxels that are not finite leave the mask where ``voxels`` is FINITE. One or two volumes are left to
        nilearn, which says what cannot be done to so few.
        """
        if self.verbose:
            print(f"[{type(self).__name__}] Extracting region signals")
        runs, steps = self.runs if runs is None else runs, self.known_steps(volumes)
        if steps is None or volumes.shape[3] < MIN_VOLUMES:
            return self._read_by_nilearn(volumes, runs, voxels)
        kept = check_memory(self.memory_).cache(volumes_to_matrix)
        return cast(Matrix, kept(volumes, self.mask_img_, steps, runs, voxels=voxels))

    def transform_single_imgs(
        self, imgs: Any, confounds: Any = None, sample_mask: Any = None, copy: bool = True
    ) -> NDArray:
        """Rows (M, N) of images, (N,) of a single volume, as nilearn's ``transform`` asks for them."""
        if confounds is not None or sample_mask is not None:
            return np.asarray(super().transform_single_imgs(imgs, confounds, sample_mask, copy))
        volumes = open_volumes(imgs)
        rows = self.read(volumes).X
        return rows[0] if len(volumes.images) == 1 and len(volumes.images[0].shape) == 3 else rows

    def known_steps(self, volumes: Volumes) -> Processing | None:
        """What the masker does as the processing of other sources; None where it does more, or resamples."""
        settings, usual = self.get_params(deep=False), NiftiMasker().get_params(deep=False)
        silent = (*CLEANING, *_SILENT)
        more = [name for name in usual if name not in silent and settings[name] is not usual[name]]
        fwhm = settings["smoothing_fwhm"]
        plain = fwhm is None or (isinstance(fwhm, (int, float)) and fwhm > 0)
        if more or not plain or not is_same_grid(self.mask_img_, volumes.images[0]):
            return None
        return Processing(**{name: settings[name] for name in CLEANING})

    def narrowed(self, mask_img: Any) -> "VolumeMasker":
        """The masker itself, or one like it where the mask has lost voxels."""
        if np.count_nonzero(mask_img.dataobj) == np.count_nonzero(self.mask_img_.dataobj):
            return self
        return clone(self).set_params(mask_img=mask_img).fit()

    def _read_by_nilearn(self, volumes: Volumes, runs: NDArray | None, voxels: str) -> Matrix:
        """The same by nilearn's own transform; a volume without any value is refused all the same."""
        shared = is_same_grid(self.mask_img_, volumes.images[0])
        everywhere = like(volumes.images[0], np.ones(volumes.shape[:3], dtype=np.uint8))
        raw = read_series(volumes, self.mask_img_ if shared else everywhere)
        kept, notes = usable_voxels(raw, [], voxels)
        if shared:
            mask = raw.mask_of(kept)
            return Matrix(self._rows_by_nilearn(volumes, runs, mask), mask, raw.mean_img, notes)
        mean = resample_to_img(raw.mean_img, self.mask_img_, force_resample=True, copy_header=True)
        return Matrix(self._rows_by_nilearn(volumes, runs, self.mask_img_), self.mask_img_, mean, ())

    def _rows_by_nilearn(self, volumes: Volumes, runs: NDArray | None, mask_img: Any) -> NDArray:
        """Rows (M, N) float32 by nilearn, which returns them sorted by run: they are sorted before."""
        series, order = one_image(volumes), np.arange(volumes.shape[3])
        settings = self.get_params(deep=False) | {"mask_img": mask_img, "runs": None}
        if runs is not None:
            numbers = np.unique(runs, return_inverse=True)[1]
            order = np.argsort(numbers, kind="stable")
            settings["runs"], series = numbers[order], index_img(series, order)
        found = np.asarray(NiftiMasker(**settings).fit().transform(series), dtype=np.float32)
        return np.ascontiguousarray(found[np.argsort(order)])
