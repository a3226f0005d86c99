"""Images in nilearn's many forms and a mask in, the decoder's matrix and its masker out."""

import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from nilearn.image import load_img
from nilearn.maskers import NiftiMasker
from numpy.typing import NDArray

from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.mask_grid import mask_on_grid
from mvpa_gamp.imaging.matrix import FINITE, Volumes
from mvpa_gamp.imaging.scaling import Scaling
from mvpa_gamp.imaging.volume_masker import CLEANING, Confounds, VolumeMasker, one_image, open_volumes

GRID = ("target_affine", "target_shape", "mask_strategy")  # of a mask that no masker brings


class Extracted(NamedTuple):
    """What fit works on: the fitted masker, the masked rows, and the mean volume on the mask's grid."""

    masker: VolumeMasker
    X: NDArray  # (M, N) float32, C order
    mean_img: Any
    notes: tuple[str, ...]
    around: NDArray | None = None  # (M, S) at voxels that touch a small mask from outside
    fingerprints: NDArray | None = None  # (M,) digests of the raw volumes
    scaling: Scaling | None = None  # what cleaning did to the runs


def build_masker(mask: Any, settings: dict[str, Any]) -> VolumeMasker:
    """A masker from a mask image, a path, None, or a masker, whose settings then win over ``settings``.

    ``settings`` holds the names of ``CLEANING`` and ``GRID``, and memory, memory_level and verbose. A fitted
    masker lends its mask.
    """
    cleaning = {name: settings[name] for name in CLEANING}
    system = {name: settings[name] for name in ("memory", "memory_level", "verbose")}
    if isinstance(mask, NiftiMasker):
        known = NiftiMasker().get_params(deep=False)
        own = {name: value for name, value in mask.get_params(deep=False).items() if name in known}
        masker = VolumeMasker(**{**own, **system, "mask_img": getattr(mask, "mask_img_", mask.mask_img)})
        _warn_overridden(cleaning, own)
    else:
        _check_kind(mask, "mask")
        masker = VolumeMasker(mask_img=mask, **cleaning, **system, **{name: settings[name] for name in GRID})
    # nilearn announces an end of True and False here; these are what they mean.
    words = {True: "zscore_sample", False: None}
    if isinstance(masker.standardize, bool):
        masker.standardize = words[masker.standardize]
    return masker.set_params(reports=masker.target_shape is not None)  # nilearn 0.14 has an error else


def fit_mask_grid(masker: VolumeMasker, mask: Any, volumes: Volumes) -> tuple[str, ...]:
    """Bring a mask image or file to the grid of the images, with a note (nilearn resamples the images).

    Changes the masker's mask where it is on another grid. A masker given as mask says by itself what is to be
    resampled, as a ``target_affine`` does, and a mask that nilearn computes fits.
    """
    if mask is None or isinstance(mask, NiftiMasker) or masker.target_affine is not None:
        return ()
    is_file = isinstance(mask, (str, Path)) and Path(mask).expanduser().is_file()
    moved, _, notes = mask_on_grid(mask if is_file else load_img(mask), volumes.images[0])
    if notes:
        masker.set_params(mask_img=moved)
    return notes


def open_images(images: Any) -> Volumes:
    """Volumes from a 4-D image, a list of 3-D (or 4-D) images, or paths of them, all on one grid."""
    _check_kind(images, "images")
    return open_volumes(images)


def extract(
    masker: VolumeMasker, volumes: Volumes, groups: NDArray | None, confounds: Confounds = None
) -> Extracted:
    """Fit the masker and read its voxels; with ``groups`` (M,) every group is cleaned by itself.

    Voxels that are NaN or infinite in some volume leave the mask, with a sentence. A volume without any value
    is refused by name.
    """
    masker = _fitted(masker, volumes)
    found = masker.read(volumes, groups, FINITE, confounds)
    seen = found.around, found.fingerprints, found.scaling
    return Extracted(masker.narrowed(found.mask_img), found.X, found.mean_img, found.notes, *seen)


def transform(
    masker: VolumeMasker, volumes: Volumes, groups: NDArray | None = None, confounds: Confounds = None
) -> NDArray:
    """Rows (M, N) of the masker's voxels; with ``groups`` (M,) every group is cleaned by itself."""
    return masker.read(volumes, groups, nuisance=confounds).X


def _fitted(masker: VolumeMasker, volumes: Volumes) -> VolumeMasker:
    try:
        masker.fit(one_image(volumes)) if masker.mask_img is None else masker.fit()
    except ValueError as error:
        if "empty" not in str(error):
            raise
        raise DataError(f"mask: it has no voxels ({str(error).strip()}). Give another mask.") from error
    if not np.asarray(masker.mask_img_.dataobj).any():
        raise DataError("mask: it has no voxels, nothing is left to decode from. Give another mask.")
    return masker


def _check_kind(given: Any, what: str) -> None:
    """Refuse surfaces and other things that are neither volumes nor paths."""
    first = given[0] if isinstance(given, (list, tuple)) and given else given
    if hasattr(first, "mesh") or "Surface" in type(first).__name__:
        raise TypeError(
            "Mask and input images must be of compatible types: GAMPDecoder takes volumes (NIfTI images or "
            f"their paths), got {type(first).__name__} as {what}. Decode surfaces with GAMPClassifier on the "
            "output of nilearn.maskers.SurfaceMasker."
        )


def _warn_overridden(asked: dict[str, Any], own: dict[str, Any]) -> None:
    """Say so where the decoder was asked for something that its masker decides otherwise."""
    default = {"smoothing_fwhm": None, "detrend": False, "high_pass": None, "low_pass": None, "t_r": None}
    lost = [name for name, usual in default.items() if asked[name] != usual and asked[name] != own[name]]
    if lost:
        warnings.warn(
            f"The masker given as mask decides how images are cleaned; {', '.join(lost)} of the decoder "
            "is not used. Set it in the masker.",
            stacklevel=4,
        )
