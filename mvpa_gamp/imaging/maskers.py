"""Maskers in the manner of nilearn, for volumes and for surfaces: rows of images as all sources make them."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
from nilearn.image import concat_imgs, index_img, load_img, new_img_like, resample_to_img
from nilearn.maskers import NiftiMasker, SurfaceMasker
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_memory

from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.matrix import (
    ALL,
    Matrix,
    Volumes,
    pooled_scaling,
    read_series,
    rows_of_runs,
    run_sums,
    usable_voxels,
    volumes_to_matrix,
)
from mvpa_gamp.imaging.processing import MIN_VOLUMES, Nuisance, Processing
from mvpa_gamp.imaging.surfaces import Surfaces, open_surfaces, vertices_of
from mvpa_gamp.imaging.volumes import is_same_grid, like, name_of, open_image

CLEANING = ("smoothing_fwhm", "standardize", "detrend", "high_pass", "low_pass", "t_r")
# Settings of a masker that change no row once mask and runs are known.
_SILENT = (
    "mask_img", "mask_strategy", "mask_args", "runs", "memory", "memory_level", "verbose", "reports", "cmap",
)  # fmt: skip
Confounds = Mapping[Any, Nuisance] | None  # of each run, by its name
_STEPS = ("smoothing_fwhm", "standardize", "detrend", "high_pass", "low_pass", "t_r")
# Settings of a masker that leave cleaning to nilearn.
_MORE = ("high_variance_confounds", "dtype", "clean_args")


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

    def read(
        self, volumes: Volumes, runs: NDArray | None = None, voxels: str = ALL, nuisance: Confounds = None
    ) -> Matrix:
        """Rows of the mask's voxels; runs None: the masker's own, or one for all volumes.

        Voxels that are not finite leave the mask where ``voxels`` is FINITE. ``nuisance`` holds the confounds
        of each run. One or two volumes are left to nilearn, which says what cannot be done to so few.
        """
        if self.verbose:
            print(f"[{type(self).__name__}] Extracting region signals")
        runs, steps = self.runs if runs is None else runs, self.known_steps(volumes)
        if steps is None or (steps.cleans and volumes.shape[3] < MIN_VOLUMES):
            return self._read_by_nilearn(volumes, runs, voxels, nuisance or {})
        cached = check_memory(self.memory_).cache(volumes_to_matrix)
        return cast(Matrix, cached(volumes, self.mask_img_, steps, runs, voxels=voxels, nuisance=nuisance))

    def uncleaned(self) -> "VolumeMasker":
        """A masker of the same voxels that reads volumes as they are, smoothed where this one smooths."""
        plain = {"standardize": None, "detrend": False, "high_pass": None, "low_pass": None, "runs": None}
        return clone(self).set_params(mask_img=self.mask_img_, **plain).fit()

    def transform_single_imgs(
        self, imgs: Any, confounds: Any = None, sample_mask: Any = None, copy: bool = True
    ) -> NDArray:
        """Rows (M, N) of images, (N,) of a single volume, as nilearn's ``transform`` asks for them."""
        if confounds is not None or sample_mask is not None:
            return np.asarray(super().transform_single_imgs(imgs, confounds, sample_mask, copy))
        volumes = open_volumes(imgs)
        rows = self.read(volumes).X
        return rows[0] if len(volumes.images) == 1 and len(volumes.images[0].shape) == 3 else rows

    @property
    def cleans(self) -> bool:
        """Whether anything is done to the series of a voxel."""
        return bool(self.standardize or self.detrend or self.low_pass or self.high_pass)

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

    def _read_by_nilearn(
        self, volumes: Volumes, runs: NDArray | None, voxels: str, nuisance: Mapping[Any, Nuisance]
    ) -> Matrix:
        """The same by nilearn's own transform; a volume without any value is refused all the same."""
        shared = is_same_grid(self.mask_img_, volumes.images[0])
        everywhere = like(volumes.images[0], np.ones(volumes.shape[:3], dtype=np.uint8))
        raw = read_series(volumes, self.mask_img_ if shared else everywhere)
        usable, notes = usable_voxels(raw, [], voxels)
        mask, mean = raw.mask_of(usable), raw.mean_img
        if not shared:
            mask, notes = self.mask_img_, ()
            mean = resample_to_img(mean, mask, force_resample=True, copy_header=True)
        members = rows_of_runs(runs, volumes.shape[3])
        X = self._rows_by_nilearn(volumes, members, mask, nuisance)
        if not self.cleans:
            return Matrix(X, mask, mean, notes)
        as_they_are = self.uncleaned()._rows_by_nilearn(volumes, {1: np.arange(len(X))}, mask, {})
        sums = [run_sums(as_they_are[rows], X[rows]) for rows in members.values()]
        return Matrix(X, mask, mean, notes, scaling=pooled_scaling(sums))

    def _rows_by_nilearn(
        self,
        volumes: Volumes,
        members: Mapping[Any, NDArray],
        mask_img: Any,
        nuisance: Mapping[Any, Nuisance],
    ) -> NDArray:
        """Rows (M, N) float32 by nilearn, each run by itself (nilearn would return them sorted by run)."""
        series = one_image(volumes)
        settings = self.get_params(deep=False) | {"mask_img": mask_img, "runs": None}
        masker, parts = NiftiMasker(**settings).fit(), []
        for run, rows in members.items():
            confounds = nuisance[run].filled()[0] if run in nuisance else None
            parts.append(masker.transform(index_img(series, rows), confounds=confounds))
        found = np.concatenate(parts).astype(np.float32)
        return np.ascontiguousarray(found[np.argsort(np.concatenate(list(members.values())))])


class VertexMasker(SurfaceMasker):
    """nilearn's masker with the rows that every other source of this package gives.

    Each run is cleaned by itself, in double precision and in the order given. What the package does not do,
    such as ``clean_args``, nilearn does. Without a mask, vertices that are finite and vary are used.
    """

    def fit_to(self, series: Surfaces) -> "VertexMasker":
        """Fit to images on the same meshes; the mask given, or one of the vertices that vary."""
        cortex = series.cortex
        if self.mask_img is not None:
            inside = vertices_of(self.mask_img, cortex)
        else:
            raw = series.read(None)
            inside = raw.finite & (raw.values != raw.values[0]).any(axis=0)
            if not inside.any():
                raise DataError("mask: no vertex is finite and varies over the images. Check the images.")
        self.set_params(mask_img=cortex.image(inside)).fit()
        self.mask_img_ = cortex.image(inside)  # with what its files need
        return self

    def read(
        self, series: Surfaces, runs: NDArray | None = None, voxels: str = ALL, nuisance: Confounds = None
    ) -> Matrix:
        """Rows of the mask's vertices; vertices that are not finite leave it where ``voxels`` is FINITE.

        ``nuisance`` holds the confounds of each run.
        """
        if self.verbose:
            print(f"[{type(self).__name__}] Extracting region signals")
        steps = Processing(**{name: getattr(self, name) for name in _STEPS})
        few = steps.cleans and series.n_rows < MIN_VOLUMES
        if few or any(getattr(self, name) for name in _MORE):
            return self._read_by_nilearn(series, runs, voxels, nuisance or {})
        kept = check_memory(self.memory_).cache(volumes_to_matrix)
        return cast(Matrix, kept(series, self.mask_img_, steps, runs, voxels=voxels, nuisance=nuisance))

    @property
    def cleans(self) -> bool:
        """Whether anything is done to the series of a vertex."""
        return bool(self.standardize or self.detrend or self.low_pass or self.high_pass)

    def uncleaned(self) -> "VertexMasker":
        """A masker of the same vertices that reads images as they are."""
        plain = {"standardize": None, "detrend": False, "high_pass": None, "low_pass": None}
        masker = clone(self).set_params(mask_img=self.mask_img_, **plain).fit()
        masker.mask_img_ = self.mask_img_
        return masker

    def transform_single_imgs(self, imgs: Any, confounds: Any = None, sample_mask: Any = None) -> NDArray:
        """Rows (M, N) of images, as nilearn's ``transform`` asks for them."""
        if confounds is not None or sample_mask is not None:
            return np.asarray(super().transform_single_imgs(imgs, confounds, sample_mask))
        return self.read(open_surfaces(imgs)).X

    def narrowed(self, mask_img: Any) -> "VertexMasker":
        """The masker itself, or one like it where the mask has lost vertices."""
        cortex = mask_img.cortex
        if cortex.joined(mask_img).sum() == cortex.joined(self.mask_img_).sum():
            return self
        masker = clone(self).set_params(mask_img=mask_img).fit()
        masker.mask_img_ = mask_img
        return masker

    def _read_by_nilearn(
        self, series: Surfaces, runs: NDArray | None, voxels: str, nuisance: Mapping[Any, Nuisance]
    ) -> Matrix:
        """The same by nilearn's own transform, run by run."""
        raw = series.read(self.mask_img_)
        kept, notes = usable_voxels(raw, [], voxels)
        mask = raw.mask_of(kept)
        whole = concat_imgs(list(series.images))
        settings = self.get_params(deep=False) | {"mask_img": mask}
        masker = SurfaceMasker(**settings).fit()
        X, sums = np.empty((series.n_rows, int(kept.sum())), dtype=np.float32), []
        for run, members in rows_of_runs(runs, series.n_rows).items():
            confounds = nuisance[run].filled()[0] if run in nuisance else None
            X[members] = masker.transform(index_img(whole, members), confounds=confounds)
            sums.append(run_sums(raw.values[np.ix_(members, kept)], X[members]))
        return Matrix(X, mask, raw.mean_img, notes, scaling=pooled_scaling(sums) if self.cleans else None)
