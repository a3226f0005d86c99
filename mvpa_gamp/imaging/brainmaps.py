"""From a vector of voxels back into the brain: NIfTI images, and files that are the same bytes every time."""

import gzip
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.imaging.disk import write_atomic
from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.names import is_surface_map
from mvpa_gamp.imaging.spaces import is_surface, space_of

_INTENTS = {"logpfwe": "log10 p value", "t": "t test"}  # NIfTI's names; all others are estimates
_SHARES = ("pip", "selfreq")


def to_image(values: NDArray, mask_img: Any) -> Any:
    """A vector (N,) as an image on the mask's grid and affine, exactly 0 outside the mask.

    Voxels are in the mask's C order. Booleans and uint8 become uint8, everything else float32.

    Parameters
    ----------
    values
        One per voxel, (N,).
    mask_img
        The mask of N voxels, or of N vertices.

    Returns
    -------
    image
        Of the kind of the mask.
    """
    space, values = space_of(mask_img), np.asarray(values)
    if values.shape != (space.size,):
        raise DataError(
            f"brain map: expected a vector of {space.size} {space.elements}, one for each in the mask, got "
            f"shape {values.shape}. Use the mask of the samples."
        )
    if not np.isfinite(values).all():
        raise DataError(
            f"brain map: expected finite values, got {int((~np.isfinite(values)).sum())} that are not."
        )
    return space.image(values.astype(np.uint8 if values.dtype in (bool, np.uint8) else np.float32))


def from_image(image: Any, mask_img: Any) -> NDArray:
    """The values (N,) of an image at the mask's voxels, in C order: the inverse of :func:`to_image`.

    Parameters
    ----------
    image
        On the mask's grid.
    mask_img
        The mask of N voxels, or of N vertices.

    Returns
    -------
    ndarray
        Values (N,).
    """
    return space_of(mask_img).values(image)


def write_map(
    path: Path, values: NDArray, mask_img: Any, about: Mapping[str, Any], display: "Display | None" = None
) -> Path:
    """Write a vector (N,) as ``.nii.gz`` with a JSON sidecar; both appear whole or not at all.

    ``display`` is what the header tells viewers, by default from the values alone.

    Parameters
    ----------
    path
        Where to; it ends in .nii.gz.
    values
        One per voxel, (N,).
    mask_img
        The mask of N voxels, or of N vertices.
    about
        The content of the sidecar.
    display
        What the header tells viewers.

    Returns
    -------
    Path
        The file written.
    """
    image, display = to_image(values, mask_img), display or Display()
    if not is_surface(image):
        display.mark(image.header, np.asarray(values))
    return write_image(path, image, about, display.text)


@dataclass(frozen=True)
class Display:
    """What a NIfTI header says about a map: its kind, one line of text, and the window to show it in."""

    text: str = ""  # ASCII, the first 79 characters are kept
    intent: str = "estimate"  # NIfTI's name of the kind of value
    share: bool = False  # whether values run from 0 to 1
    params: tuple[float, ...] = ()  # of the intent, such as degrees of freedom

    @classmethod
    def of(cls, stat: str, text: str, *params: float) -> "Display":
        """What fits a kind of map by its name in files: pip, selfreq, logpfwe, t, ...."""
        return cls(text, _INTENTS.get(stat, "estimate"), stat in _SHARES, params)

    def mark(self, header: Any, values: NDArray) -> None:
        """Write intent, descrip, cal_min and cal_max; the window of signed values is symmetric."""
        boolean = values.dtype in (bool, np.uint8)
        header.set_intent(*(("label",) if boolean else (self.intent, self.params)))
        header["descrip"] = self.text.encode("ascii", "replace")[:79]
        top = 1.0 if self.share or boolean else float(np.abs(values).max(initial=0.0))
        header["cal_max"] = top
        header["cal_min"] = -top if not (self.share or boolean) and (values < 0).any() else 0.0


def write_image(
    path: Path, image: Any, about: Mapping[str, Any], name: str = "", labels: Mapping[int, str] | None = None
) -> Path:
    """Write an image and its sidecar; equal images give equal bytes. The sidecar comes first.

    Images on surfaces become GIFTI pairs or CIFTI files of the same name, in which ``name`` is a map's and
    ``labels`` are the names of an atlas's regions.
    """
    path = Path(path)
    text = json.dumps(dict(about), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    write_atomic(sidecar_path(path), text.encode("utf-8"))
    if is_surface(image):
        from mvpa_gamp.imaging.cortex import cortex_of
        from mvpa_gamp.imaging.surface_files import write_surface_map

        cortex = cortex_of(image)
        write_surface_map(path, cortex.joined(image), cortex, name, labels)
        return path
    return write_atomic(path, _gzip(image.to_bytes()) if path.suffix == ".gz" else image.to_bytes())


def write_meshes(mask_path: Path, mask_img: Any) -> None:
    """Write the meshes that maps on surfaces belong to beside their mask; volumes need none."""
    if is_surface(mask_img):
        from mvpa_gamp.imaging.cortex import cortex_of
        from mvpa_gamp.imaging.surface_files import write_ground

        write_ground(mask_path, cortex_of(mask_img))


def sidecar_path(path: Path) -> Path:
    """The JSON file that belongs to a NIfTI file."""
    return path.with_name(path.name.removesuffix(".gz").removesuffix(".nii") + ".json")


def read_image(path: Path) -> Any:
    """An image that :func:`write_image` wrote: a NIfTI image, or one on the meshes beside it."""
    if is_surface_map(path):
        from mvpa_gamp.imaging.surface_files import read_stored

        return read_stored(path)
    import nibabel

    return nibabel.load(path)


def coordinates(mask_img: Any) -> NDArray:
    """Position of every voxel (or vertex) of the mask in mm, (N, 3), in the space of :func:`space_name`.

    Parameters
    ----------
    mask_img
        The mask of N voxels, or of N vertices.

    Returns
    -------
    ndarray
        Positions (N, 3) in mm.
    """
    return space_of(mask_img).coordinates()


def space_name(image: Any) -> str:
    """Which space a mask is in, as far as it tells."""
    return space_of(image).name


def _gzip(content: bytes) -> bytes:
    """Compressed without time stamp and file name, so that equal content gives equal bytes."""
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=buffer, mtime=0) as stream:
        stream.write(content)
    return buffer.getvalue()
