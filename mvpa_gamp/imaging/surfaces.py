"""Series of images on surfaces: what :class:`~mvpa_gamp.imaging.matrix.Volumes` is for volumes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from nilearn.surface import SurfaceImage
from numpy.typing import NDArray

from mvpa_gamp.imaging.cortex import Cortex, check_same_mesh, cortex_of, packaged_cortex
from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.masks import thinned
from mvpa_gamp.imaging.matrix import Series
from mvpa_gamp.imaging.names import is_surface_file
from mvpa_gamp.imaging.surface_files import read_surface, seconds_between

NO_SMOOTHING = (
    "smoothing_fwhm: images on surfaces are not smoothed, got {:g} mm. Leave it out, or smooth along the "
    "surface before (mri_surf2surf, wb_command -cifti-smoothing)."
)


@dataclass(frozen=True)
class Surfaces:
    """Images on the same meshes, in order; one of a single column is one time point."""

    images: Sequence[SurfaceImage]
    what: str = "surface image"
    given_names: tuple[str, ...] = ()
    t_r: float | None = None  # s, as a CIFTI file tells
    elements: ClassVar[str] = "vertices"

    def __post_init__(self) -> None:
        for image, name in zip(self.images[1:], self.names[1:], strict=True):
            check_same_mesh(cortex_of(image), self.cortex, self.what, name)

    @property
    def cortex(self) -> Cortex:
        """The meshes of the first image."""
        return cortex_of(self.images[0])

    @property
    def names(self) -> tuple[str, ...]:
        """What messages call each image."""
        return self.given_names or tuple(f"{k} (counted from 1)" for k in range(1, len(self.images) + 1))

    @property
    def counts(self) -> tuple[int, ...]:
        """Time points of each image."""
        return tuple(image.shape[1] if len(image.shape) > 1 else 1 for image in self.images)

    @property
    def n_rows(self) -> int:
        """Time points of all images."""
        return sum(self.counts)

    def read(self, mask: Any, smoothing_fwhm: float | None = None) -> Series:
        """Raw values at the vertices of a mask, None all; infinite and missing values count as 0."""
        check_unsmoothed(smoothing_fwhm)
        cortex = self.cortex
        inside = np.ones(sum(cortex.sizes), bool) if mask is None else vertices_of(mask, cortex)
        whole = np.concatenate([_columns(cortex, image) for image in self.images], axis=1)
        good = np.isfinite(whole)
        whole = np.where(good, whole, np.float32(0))
        mean = cortex.image(whole.mean(axis=1, dtype=np.float64).astype(np.float32))
        values = np.ascontiguousarray(whole[inside].T)
        lost = (~good[inside]).sum(axis=0)
        border = np.ascontiguousarray(whole[touching(inside, cortex)].T)
        return Series(self, values, inside, mask, mean, good[inside].all(axis=1), lost, border=border)

    def mean_magnitude(self) -> Any:
        """The mean of the magnitudes of all columns; NaN and infinity count 0."""
        values = np.concatenate([_columns(self.cortex, image) for image in self.images], axis=1)
        known = np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)
        return self.cortex.image(np.abs(known).mean(axis=1, dtype=np.float64).astype(np.float32))

    def mask_image(self, inside: NDArray, mask_img: Any) -> Any:
        """A mask of some vertices (V,) bool."""
        return self.cortex.image(inside)


def touching(inside: NDArray, cortex: Cortex) -> NDArray:
    """Numbers of the vertices that an edge joins to a mask (V,) bool from outside, at most 2,000 of them."""
    return thinned(np.flatnonzero((cortex.edges @ inside.astype(np.int64) > 0) & ~inside))


def _columns(cortex: Cortex, image: SurfaceImage) -> NDArray:
    """The values (V, T) float32 of an image."""
    values = cortex.joined(image)
    with np.errstate(over="ignore"):  # beyond float32 is infinite: such vertices are dropped with a note
        return np.asarray(values if values.ndim > 1 else values[:, None], dtype=np.float32)


def vertices_of(mask: SurfaceImage, cortex: Cortex) -> NDArray:
    """The vertices (V,) bool of a mask, where it is finite and not 0 throughout."""
    check_same_mesh(cortex_of(mask), cortex, "mask")
    values = np.asarray(cortex.joined(mask), dtype=float).reshape(sum(cortex.sizes), -1)
    inside = (np.isfinite(values) & (values != 0)).all(axis=1)
    if not inside.any():
        raise DataError("mask is empty: no vertex differs from zero. Give another mask.")
    return inside


def read_surfaces(files: Sequence[str | Path], cortex: Cortex) -> Surfaces:
    """The series of BOLD files: CIFTI, or one file of each GIFTI pair."""
    images = [read_surface(file, cortex) for file in files]
    return Surfaces(images, "BOLD file", tuple(map(str, files)), seconds_between(Path(files[0])))


def surface_mask(mask: str, cortex: Cortex) -> Any:
    """A mask file, CIFTI or one of a GIFTI pair, as an image on the meshes; None without one."""
    if not mask:
        return None
    if not is_surface_file(mask):
        raise DataError(
            f"--mask {mask}: expected a mask on the surface, a CIFTI file (.dscalar.nii, .dlabel.nii) or one "
            "file of a GIFTI pair (hemi-L, hemi-R), because the runs are on a surface. Give one, or leave it "
            "out to use all vertices."
        )
    return read_surface(mask, cortex)


def check_mesh_files(files: Sequence[str]) -> None:
    """Refuse names of meshes other than those of two files."""
    if files and len(files) != 2:
        raise DataError(f"--surface-mesh: expected two files, LEFT and RIGHT, got {len(files)}. Give both.")
    missing = [name for name in files if not Path(name).expanduser().is_file()]
    if missing:
        raise DataError(f"--surface-mesh {missing[0]}: expected a file, found none there. Check the path.")


def check_unsmoothed(fwhm: float | None) -> None:
    """Refuse smoothing."""
    if fwhm is not None:
        raise DataError(NO_SMOOTHING.format(fwhm))


def is_on_surface(images: Any) -> bool:
    """Whether images are SurfaceImages, or names of surface files, or lists of them."""
    listed = isinstance(images, Iterable) and not isinstance(images, str)
    first = next(iter(images), None) if isinstance(images, Sequence) and listed else images
    return isinstance(first, SurfaceImage) or is_surface_file(first)


def open_surfaces(images: Any, mask: Any = None) -> Surfaces:
    """Surfaces from a SurfaceImage, the name of a CIFTI file or of one file of a GIFTI pair, or a list.

    Files are read on the meshes of the mask, where it has some, else on those of fsaverage5.

    Parameters
    ----------
    images
        An image, a file, or a list of them.
    mask
        A surface mask, or None.

    Returns
    -------
    Surfaces
        The series, read when asked for.
    """
    single = isinstance(images, str | Path | SurfaceImage)
    given = [images] if single else list(images)
    opened = [_opened(image, mask) for image in given]
    if not opened or any(0 in image.shape for image in opened):
        raise DataError("images: expected at least one image, got an empty one or an empty list.")
    wrong = [image.shape for image in opened if len(image.shape) > 2]
    if wrong:
        raise DataError(
            f"images: expected SurfaceImages of vertices x time points, got shape {wrong[0]}. Give one "
            "column per label."
        )
    names = [
        str(each) if is_surface_file(each) else f"{k} (counted from 1)" for k, each in enumerate(given, 1)
    ]
    return Surfaces(opened, given_names=tuple(names))


def _opened(image: Any, mask: Any) -> SurfaceImage:
    if isinstance(image, SurfaceImage):
        return image
    if not is_surface_file(image):
        raise TypeError(
            "Mask and input images must be of compatible types: expected SurfaceImages, or surface files, "
            f"throughout, got {type(image).__name__}. Give images of one kind."
        )
    on = getattr(mask, "mask_img_", getattr(mask, "mask_img", mask))  # of a masker
    return read_surface(image, cortex_of(on) if isinstance(on, SurfaceImage) else packaged_cortex())
