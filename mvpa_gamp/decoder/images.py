"""Images in nilearn's many forms and a mask in, the decoder's matrix and its masker out."""

import warnings
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from nilearn.image import load_img
from nilearn.maskers import NiftiMasker, SurfaceMasker
from numpy.typing import NDArray

from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.maskers import CLEANING, Confounds, VertexMasker, VolumeMasker, one_image, open_volumes
from mvpa_gamp.imaging.masks import mask_on_grid
from mvpa_gamp.imaging.matrix import FINITE, Scaling, Volumes
from mvpa_gamp.imaging.surface_files import read_surface
from mvpa_gamp.imaging.surfaces import NO_SMOOTHING, Surfaces, is_on_surface, open_surfaces

GRID = ("target_affine", "target_shape", "mask_strategy")  # of a mask that no masker brings

RowMasker = VolumeMasker | VertexMasker
ImageSeries = Volumes | Surfaces


class Extracted(NamedTuple):
    """What fit works on: the fitted masker, the masked rows, and the mean volume on the mask's grid."""

    masker: RowMasker
    X: NDArray  # (M, N) float32, C order
    mean_img: Any
    notes: tuple[str, ...]
    around: NDArray | None = None  # (M, S) at voxels that touch a small mask from outside
    fingerprints: NDArray | None = None  # (M,) digests of the raw volumes
    scaling: Scaling | None = None  # what cleaning did to the runs


def build_masker(mask: Any, settings: dict[str, Any], series: ImageSeries) -> RowMasker:
    """A masker from a mask image, a path, None, or a masker, whose settings then win over ``settings``.

    ``settings`` holds the names of ``CLEANING`` and ``GRID``, and memory, memory_level and verbose;
    ``series`` are the images, volumes or surfaces, which have no grid. A fitted masker lends its mask.
    """
    kind, theirs = _kinds(series)
    _check_compatible(mask, series)
    cleaning = {name: settings[name] for name in CLEANING}
    system = {name: settings[name] for name in ("memory", "memory_level", "verbose")}
    if isinstance(mask, theirs):
        known = theirs().get_params(deep=False)
        own = {name: value for name, value in mask.get_params(deep=False).items() if name in known}
        masker = kind(**{**own, **system, "mask_img": getattr(mask, "mask_img_", mask.mask_img)})
        _warn_overridden(cleaning, own)
    else:
        grid = {} if isinstance(series, Surfaces) else {name: settings[name] for name in GRID}
        masker = kind(mask_img=_opened_mask(mask, series), **cleaning, **system, **grid)
    # nilearn announces an end of True and False here; these are what they mean.
    words = {True: "zscore_sample", False: None}
    if isinstance(masker.standardize, bool):
        masker.standardize = words[masker.standardize]
    if isinstance(series, Surfaces) and masker.smoothing_fwhm is not None:
        raise DataError(NO_SMOOTHING.format(masker.smoothing_fwhm))
    shaped = getattr(masker, "target_shape", None) is not None  # nilearn 0.14 has an error else
    return masker.set_params(reports=shaped)


def _kinds(series: ImageSeries) -> tuple[Any, Any]:
    """This package's masker for the images, and nilearn's."""
    return (VertexMasker, SurfaceMasker) if isinstance(series, Surfaces) else (VolumeMasker, NiftiMasker)


def _opened_mask(mask: Any, series: ImageSeries) -> Any:
    """The mask; the name of a surface file is read on the meshes of the images."""
    if isinstance(series, Surfaces) and isinstance(mask, (str, Path)):
        return read_surface(mask, series.cortex)
    return mask


def fit_mask_grid(masker: RowMasker, mask: Any, volumes: ImageSeries) -> tuple[str, ...]:
    """Bring a mask image or file to the grid of the images, with a note (nilearn resamples the images).

    Changes the masker's mask where it is on another grid. A masker given as mask says by itself what is to be
    resampled, as a ``target_affine`` does, and a mask that nilearn computes fits.
    """
    if mask is None or isinstance(mask, NiftiMasker) or isinstance(volumes, Surfaces):
        return ()
    if masker.target_affine is not None:
        return ()
    is_file = isinstance(mask, (str, Path)) and Path(mask).expanduser().is_file()
    moved, _, notes = mask_on_grid(mask if is_file else load_img(mask), volumes.images[0])
    if notes:
        masker.set_params(mask_img=moved)
    return notes


def open_images(images: Any, mask: Any = None) -> ImageSeries:
    """Volumes from a 4-D image, a list of 3-D (or 4-D) images, or paths of them, all on one grid.

    SurfaceImages, or names of GIFTI and CIFTI files, give surfaces; files are read on the mask's meshes.
    """
    return open_surfaces(images, mask) if is_on_surface(images) else open_volumes(images)


def extract(
    masker: RowMasker, volumes: ImageSeries, groups: NDArray | None, confounds: Confounds = None
) -> Extracted:
    """Fit the masker and read its voxels; with ``groups`` (M,) every group is cleaned by itself.

    Voxels that are NaN or infinite in some volume leave the mask, with a sentence. A volume without any value
    is refused by name.
    """
    masker = _fitted(masker, volumes)
    found = masker.read(cast(Any, volumes), groups, FINITE, confounds)
    seen = found.around, found.fingerprints, found.scaling
    return Extracted(masker.narrowed(found.mask_img), found.X, found.mean_img, found.notes, *seen)


def transform(
    masker: RowMasker, volumes: ImageSeries, groups: NDArray | None = None, confounds: Confounds = None
) -> NDArray:
    """Rows (M, N) of the masker's voxels; with ``groups`` (M,) every group is cleaned by itself."""
    _check_compatible(masker.mask_img_, volumes)
    return masker.read(cast(Any, volumes), groups, nuisance=confounds).X


def _fitted(masker: RowMasker, volumes: ImageSeries) -> RowMasker:
    if isinstance(volumes, Surfaces):
        return cast(VertexMasker, masker).fit_to(volumes)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Computed an empty mask")  # which is told below
            masker.fit(one_image(volumes)) if masker.mask_img is None else masker.fit()
    except ValueError as error:
        if "empty" not in str(error):
            raise
        raise DataError(f"mask: it contains no voxels ({str(error).strip()}). Give another mask.") from error
    if not np.asarray(masker.mask_img_.dataobj).any():
        raise DataError("mask: it contains no voxels, so there is nothing to decode. Give another mask.")
    return masker


def _check_compatible(mask: Any, series: ImageSeries) -> None:
    """Refuse a mask of volumes for surfaces, and the other way round."""
    on_surface = isinstance(mask, SurfaceMasker) or is_on_surface(mask)
    if mask is None or on_surface == isinstance(series, Surfaces):
        return
    got, needed = ("volumes", "volumes") if not on_surface else ("a surface", "surfaces")
    raise TypeError(
        f"Mask and input images must be of compatible types: the mask is of {got} ({type(mask).__name__}), "
        f"the images are not. Give {needed} as images, or a mask of their kind."
    )


def _warn_overridden(asked: dict[str, Any], own: dict[str, Any]) -> None:
    """Say so where the decoder was asked for something that its masker decides otherwise."""
    default = {"smoothing_fwhm": None, "detrend": False, "high_pass": None, "low_pass": None, "t_r": None}
    lost = [name for name, usual in default.items() if asked[name] != usual and asked[name] != own[name]]
    if lost:
        warnings.warn(
            f"Images are cleaned by the masker given as mask, so {', '.join(lost)} of the decoder is "
            "ignored. Set it in the masker.",
            stacklevel=4,
        )
