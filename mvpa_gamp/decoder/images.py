"""The decoder's door: images in nilearn's many forms and a mask in, a matrix out, cleaned run by run."""

import warnings
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from nilearn.image import concat_imgs, load_img, new_img_like
from nilearn.maskers import NiftiMasker
from numpy.typing import NDArray
from sklearn.base import clone

from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.volumes import AFFINE_TOLERANCE, check_same_grid

CLEANING = ("smoothing_fwhm", "standardize", "detrend", "high_pass", "low_pass", "t_r")


class Extracted(NamedTuple):
    """What fit works on: the fitted masker, the masked rows, and the mean volume on the mask's grid."""

    masker: NiftiMasker
    X: NDArray  # (M, N) float32, C order
    mean_img: Any
    notes: tuple[str, ...]


def build_masker(mask: Any, settings: dict[str, Any]) -> NiftiMasker:
    """A masker from a mask image, a path, None, or a masker, whose settings then win over ``settings``.

    ``settings`` holds the names of ``CLEANING`` and memory, memory_level and verbose. A fitted masker lends
    its mask.
    """
    cleaning = {name: settings[name] for name in CLEANING}
    system = {name: settings[name] for name in ("memory", "memory_level", "verbose")}
    if isinstance(mask, NiftiMasker):
        known = NiftiMasker().get_params(deep=False)
        own = {name: value for name, value in mask.get_params(deep=False).items() if name in known}
        masker = NiftiMasker(**{**own, **system, "mask_img": getattr(mask, "mask_img_", mask.mask_img)})
        _warn_overridden(cleaning, own)
    else:
        _check_kind(mask, "mask")
        masker = NiftiMasker(mask_img=mask, **cleaning, **system)
    # nilearn announces an end of True and False here; these are what they mean.
    words = {True: "zscore_sample", False: None}
    if isinstance(masker.standardize, bool):
        masker.standardize = words[masker.standardize]
    return masker.set_params(reports=False)


def check_mask_grid(mask: Any, series: Any) -> None:
    """Refuse a mask image or file on another grid than the images, which nilearn would resample to it.

    A masker says by itself what is to be resampled, and a mask that nilearn computes fits.
    """
    if mask is not None and not isinstance(mask, NiftiMasker):
        check_same_grid(load_img(mask), series, "mask")


def open_images(images: Any) -> Any:
    """One 4-D image from a 4-D image, a list of 3-D (or 4-D) images, or paths of them, all on one grid."""
    _check_kind(images, "images")
    listed = isinstance(images, Iterable) and not isinstance(images, str) and not hasattr(images, "affine")
    if listed:
        images = [load_img(image) for image in images]
        _check_grids(images)
        series = concat_imgs(images) if images else None
    else:
        series = load_img(images)
    if series is None or 0 in series.shape:
        raise DataError("images: expected at least one volume, got an empty image or list. Check the input.")
    if len(series.shape) == 3:
        series = new_img_like(series, np.asarray(series.dataobj)[..., None])
    if len(series.shape) != 4:
        raise DataError(
            f"images: expected a 4-D image or a list of 3-D images, got shape {series.shape}. "
            "Give one volume per label."
        )
    return series


def extract(masker: NiftiMasker, series: Any, groups: NDArray | None, given: Any = None) -> Extracted:
    """Fit the masker and read its voxels; with ``groups`` (M,) every group is cleaned by itself.

    Voxels that are NaN or infinite in some volume leave the mask, with a sentence. A volume without any value
    is refused, by its place in ``given``, from which the series was made.
    """
    values = np.asarray(series.dataobj)
    wrong = None if values.dtype.kind != "f" or np.isfinite(values).all() else ~np.isfinite(values)
    if wrong is not None:
        series = new_img_like(series, np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0))
    masker = _fitted(masker, series)
    notes: tuple[str, ...] = ()
    if wrong is not None:
        masker, notes = _without(masker, series, wrong, given)
    X = np.ascontiguousarray(transform(masker, series, groups), dtype=np.float32)
    mean = new_img_like(series, np.asarray(series.dataobj).mean(axis=3, dtype=np.float64).astype(np.float32))
    return Extracted(masker, X, _on_grid(mean, masker.mask_img_), notes)


def transform(masker: NiftiMasker, series: Any, groups: NDArray | None = None) -> NDArray:
    """Rows (M, N) of the masker's voxels; with ``groups`` (M,) every group is cleaned by itself."""
    if groups is not None:
        fitted = masker.mask_img_
        masker = clone(masker).set_params(mask_img=fitted, runs=groups)
        masker.fit()
    return np.asarray(masker.transform(series))


def _fitted(masker: NiftiMasker, series: Any) -> NiftiMasker:
    try:
        if masker.mask_img is None:
            masker.fit(series)
        else:
            masker.fit()
    except ValueError as error:
        if "empty" not in str(error):
            raise
        raise DataError(f"mask: it has no voxels ({str(error).strip()}). Give another mask.") from error
    if not np.asarray(masker.mask_img_.dataobj).any():
        raise DataError("mask: it has no voxels, nothing is left to decode from. Give another mask.")
    return masker


def _without(
    masker: NiftiMasker, series: Any, wrong: NDArray, given: Any
) -> tuple[NiftiMasker, tuple[str, ...]]:
    """The masker less the voxels that are ``wrong`` (x, y, z, M), where mask and images share a grid."""
    shared = _same_grid(masker.mask_img_, series)
    mask = np.asarray(masker.mask_img_.dataobj) != 0 if shared else np.ones(wrong.shape[:3], dtype=bool)
    _check_no_empty_volume(wrong[mask], given)
    bad = wrong.any(axis=3)
    lost, size = int((mask & bad).sum()), int(mask.sum())
    if not shared or not lost:
        return masker, ()
    if lost == size:
        raise DataError(
            f"images: each of the mask's {size} voxels is NaN or infinite in some volume. Check the images."
        )
    kept = new_img_like(masker.mask_img_, (mask & ~bad).astype(np.int8))
    note = f"{lost} of {size} voxels of the mask have NaN or infinite values and were dropped."
    return clone(masker).set_params(mask_img=kept).fit(), (note,)


def _check_no_empty_volume(wrong: NDArray, given: Any) -> None:
    """Refuse volumes that are NaN or infinite at every voxel (N, M); most of them: the mask is to blame."""
    empty = np.flatnonzero(wrong.all(axis=0))
    if 0 < empty.size <= wrong.shape[1] / 2:
        names = ", ".join(_image_names(given, empty[:5].tolist()))
        names += f" and {empty.size - 5} more" if empty.size > 5 else ""
        be = "is" if empty.size == 1 else "are"
        raise DataError(
            f"images: expected numbers, but {names} (counted from 0) {be} NaN or infinite in every voxel of "
            "the mask. Leave out such images, their labels and groups, or repair the file."
        )


def _image_names(given: Any, places: list[int]) -> list[str]:
    """``image 5``, and the file where it came from one; in a list of series also its number there."""
    listed = list(given) if isinstance(given, (list, tuple)) else [given]
    opened = [load_img(image) for image in listed]
    lengths = [image.shape[3] if len(image.shape) > 3 else 1 for image in opened]
    starts = np.cumsum([0, *lengths])
    names = []
    for place in places:
        k = int(np.searchsorted(starts, place, side="right")) - 1
        file = opened[k].get_filename()
        number = f"volume {place - starts[k]} of " if len(opened) > 1 and lengths[k] > 1 else ""
        source = f"{number}{file}" if file else f"{number}image {k} of the list" if number else ""
        names.append(f"image {place}" + (f" ({source})" if source else ""))
    return names


def _check_kind(given: Any, what: str) -> None:
    """Refuse surfaces and other things that are neither volumes nor paths."""
    first = given[0] if isinstance(given, (list, tuple)) and given else given
    if hasattr(first, "mesh") or "Surface" in type(first).__name__:
        raise TypeError(
            "Mask and input images must be of compatible types: GAMPDecoder takes volumes (NIfTI images or "
            f"their paths), got {type(first).__name__} as {what}. Decode surfaces with GAMPClassifier on the "
            "output of nilearn.maskers.SurfaceMasker."
        )


def _check_grids(images: list[Any]) -> None:
    for place, image in enumerate(images[1:], 1):
        if not _same_grid(image, images[0]):
            raise DataError(
                f"images: image {place} is on another grid than image 0: expected shape "
                f"{tuple(images[0].shape[:3])} with its affine, got {tuple(image.shape[:3])}. "
                "Resample it with nilearn.image.resample_to_img."
            )


def _same_grid(image: Any, reference: Any) -> bool:
    return tuple(image.shape[:3]) == tuple(reference.shape[:3]) and bool(
        np.abs(np.asarray(image.affine) - np.asarray(reference.affine)).max() <= AFFINE_TOLERANCE
    )


def _on_grid(image: Any, reference: Any) -> Any:
    if _same_grid(image, reference):
        return image
    from nilearn.image import resample_to_img

    return resample_to_img(image, reference, force_resample=True, copy_header=True)


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
