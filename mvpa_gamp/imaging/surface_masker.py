"""A masker of nilearn's kind for surfaces that makes rows of them as all sources do."""

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from nilearn.image import concat_imgs, index_img
from nilearn.maskers import SurfaceMasker
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_memory

from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.matrix import ALL, Matrix, rows_of_runs, usable_voxels, volumes_to_matrix
from mvpa_gamp.imaging.processing import MIN_VOLUMES, Nuisance, Processing
from mvpa_gamp.imaging.scaling import pooled_scaling, run_sums
from mvpa_gamp.imaging.surfaces import Surfaces, open_surfaces, vertices_of
from mvpa_gamp.imaging.volume_masker import Confounds

_STEPS = ("smoothing_fwhm", "standardize", "detrend", "high_pass", "low_pass", "t_r")
# Settings of a masker that leave cleaning to nilearn.
_MORE = ("high_variance_confounds", "dtype", "clean_args")


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
