"""Images in nilearn's many forms, and a masker of its kind that makes rows of them as all sources do."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from nilearn.image import concat_imgs, index_img, load_img, new_img_like
from nilearn.maskers import NiftiMasker
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_memory

from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.masked_series import Volumes
from mvpa_gamp.imaging.matrix import ALL, Matrix, volumes_to_matrix
from mvpa_gamp.imaging.processing import MIN_VOLUMES, Processing
from mvpa_gamp.imaging.volumes import check_same_grid, is_same_grid, n_volumes, name_of, open_image

CLEANING = ("smoothing_fwhm", "standardize", "detrend", "high_pass", "low_pass", "t_r")
# Settings of a masker that change no row once mask and runs are known.
_SILENT = (
    "mask_img", "mask_strategy", "mask_args", "runs", "memory", "memory_level", "verbose", "reports", "cmap",
)  # fmt: skip


@dataclass(frozen=True)
class Images:
    """The images given to a decoder, in order, all on one grid; shape and affine are those of a series."""

    listed: tuple[Any, ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, images: Any) -> "Images":
        """From a 4-D image, a list of 3-D (or 4-D) images, or paths of them."""
        single = isinstance(images, str) or hasattr(images, "affine") or not isinstance(images, Iterable)
        opened = tuple(_opened(image) for image in ([images] if single else images))
        if not opened or any(0 in image.shape for image in opened):
            came = "an empty image or list"
            raise DataError(f"images: expected at least one volume, got {came}. Check the input.")
        wrong = next((image for image in opened if len(image.shape) not in (3, 4)), None)
        if wrong is not None:
            raise DataError(
                f"images: expected a 4-D image or a list of 3-D images, got shape {wrong.shape}. "
                "Give one volume per label."
            )
        found = cls(opened, (name_of(opened[0]),) if single else _names(opened))
        for image, name in zip(opened, found.names, strict=True):
            check_same_grid(image, opened[0], "image", name)
        return found

    @property
    def shape(self) -> tuple[int, ...]:
        """(x, y, z, M), M being the number of volumes of all images."""
        return (*self.listed[0].shape[:3], sum(map(n_volumes, self.listed)))

    @property
    def affine(self) -> NDArray:
        """Voxel to mm."""
        return np.asarray(self.listed[0].affine)

    def series(self) -> Any:
        """One 4-D image in memory; NaN and infinity are 0."""
        whole = concat_imgs(list(self.listed))
        values = np.asarray(whole.dataobj)
        if np.isfinite(values).all():
            return whole
        return new_img_like(whole, np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0))

    def inside(self, mask_img: Any) -> Volumes:
        """The voxels of a mask on the same grid."""
        voxels = np.asarray(mask_img.dataobj).reshape(self.shape[:3]) != 0
        return Volumes(self.listed, mask_img, voxels, "image", self.names)


class VolumeMasker(NiftiMasker):
    """nilearn's masker with the rows that every other source of this package gives.

    Volumes are read in blocks and cleaned in double precision, each run by itself and in the order given
    (nilearn returns rows sorted by run). What the package does not do, such as resampling, nilearn does.
    """

    def rows(self, images: Images, runs: NDArray | None = None) -> NDArray:
        """Rows (M, N) of images, each run cleaned by itself; None: the masker's own runs, or one for all.

        One or two images are left to nilearn, which says what cannot be done to so few.
        """
        steps = self.known_steps(images)
        if steps is None or images.shape[3] < MIN_VOLUMES:
            return self.rows_by_nilearn(images, runs)
        return self.read(images, steps, runs, ALL).X

    def read(self, images: Images, steps: Processing, runs: NDArray | None, voxels: str) -> Matrix:
        """The matrix of images on the mask's grid, kept in the masker's memory."""
        if self.verbose:
            print(f"[{type(self).__name__}] Extracting region signals")
        runs = self.runs if runs is None else runs
        kept = check_memory(self.memory_).cache(volumes_to_matrix)
        return cast(Matrix, kept(images.inside(self.mask_img_), steps, runs, voxels))

    def transform_single_imgs(
        self, imgs: Any, confounds: Any = None, sample_mask: Any = None, copy: bool = True
    ) -> NDArray:
        """Rows (M, N) of images, (N,) of a single volume, as nilearn's ``transform`` asks for them."""
        if confounds is not None or sample_mask is not None:
            return np.asarray(super().transform_single_imgs(imgs, confounds, sample_mask, copy))
        images = Images.of(imgs)
        rows = self.rows(images)
        return rows[0] if len(images.listed) == 1 and len(images.listed[0].shape) == 3 else rows

    def rows_by_nilearn(self, images: Images, runs: NDArray | None) -> NDArray:
        """Rows (M, N) by nilearn's own transform."""
        runs = self.runs if runs is None else runs
        settings = self.get_params(deep=False) | {"mask_img": self.mask_img_, "runs": None}
        if runs is None:
            return np.asarray(NiftiMasker(**settings).fit().transform(images.series()))
        numbers = np.unique(runs, return_inverse=True)[1]
        order = np.argsort(numbers, kind="stable")
        settings["runs"] = numbers[order]
        found = NiftiMasker(**settings).fit().transform(index_img(images.series(), order))
        return np.asarray(found)[np.argsort(order)]

    def known_steps(self, images: Images) -> Processing | None:
        """What the masker does as the processing of other sources; None where it does more, or resamples."""
        settings, usual = self.get_params(deep=False), NiftiMasker().get_params(deep=False)
        silent = (*CLEANING, *_SILENT)
        more = [name for name in usual if name not in silent and settings[name] is not usual[name]]
        fwhm = settings["smoothing_fwhm"]
        if more or not (fwhm is None or (isinstance(fwhm, (int, float)) and fwhm > 0)):
            return None
        if not is_same_grid(self.mask_img_, images):
            return None
        return Processing(**{name: settings[name] for name in CLEANING})

    def narrowed(self, mask_img: Any) -> "VolumeMasker":
        """The masker itself, or one like it where the mask has lost voxels."""
        if np.count_nonzero(mask_img.dataobj) == np.count_nonzero(self.mask_img_.dataobj):
            return self
        return clone(self).set_params(mask_img=mask_img).fit()


def _names(images: Sequence[Any]) -> tuple[str, ...]:
    """Names of listed images: those of their files, else their number in the list."""
    numbered = enumerate(images, start=1)
    return tuple(image.get_filename() or f"{number} (counted from 1)" for number, image in numbered)


def _opened(image: Any) -> Any:
    """An image; patterns of names and whatever else nilearn reads as images are read by nilearn."""
    is_file = isinstance(image, (str, Path)) and Path(image).expanduser().is_file()
    return open_image(image if is_file else load_img(image), "image")
