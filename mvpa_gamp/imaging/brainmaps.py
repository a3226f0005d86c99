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

from mvpa_gamp.imaging.atomic_files import write_atomic
from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.volumes import check_same_grid, like

_INTENTS = {"logpfwe": "log10 p value", "t": "t test"}  # NIfTI's names; all others are estimates
_SHARES = ("pip", "selfreq")


def to_image(values: NDArray, mask_img: Any) -> Any:
    """A vector (N,) as an image on the mask's grid and affine, exactly 0 outside the mask.

    Voxels are in the mask's C order. Booleans and uint8 become uint8, everything else float32.
    """
    mask = np.asarray(mask_img.dataobj) != 0
    values = np.asarray(values)
    if values.shape != (int(mask.sum()),):
        raise DataError(
            f"brain map: expected a vector of {int(mask.sum())} voxels, one per voxel of the mask, got shape "
            f"{values.shape}. Use the mask of the samples."
        )
    if not np.isfinite(values).all():
        raise DataError(
            f"brain map: expected finite values, got {int((~np.isfinite(values)).sum())} that are not."
        )
    volume = np.zeros(mask.shape, dtype=np.uint8 if values.dtype in (bool, np.uint8) else np.float32)
    volume[mask] = values
    return like(mask_img, volume)


def from_image(image: Any, mask_img: Any) -> NDArray:
    """The values (N,) of an image at the mask's voxels, in C order: the inverse of :func:`to_image`."""
    check_same_grid(image, mask_img, "brain map")
    return np.asarray(image.dataobj)[np.asarray(mask_img.dataobj) != 0]


def write_map(
    path: Path, values: NDArray, mask_img: Any, about: Mapping[str, Any], display: "Display | None" = None
) -> Path:
    """Write a vector (N,) as ``.nii.gz`` with a JSON sidecar; both appear whole or not at all.

    ``display`` is what the header tells viewers, by default from the values alone.
    """
    image = to_image(values, mask_img)
    (display or Display()).mark(image.header, np.asarray(values))
    return write_image(path, image, about)


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


def write_image(path: Path, image: Any, about: Mapping[str, Any]) -> Path:
    """Write an image and its sidecar; equal images give equal bytes. The sidecar comes first."""
    path = Path(path)
    text = json.dumps(dict(about), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    write_atomic(sidecar_path(path), text.encode("utf-8"))
    return write_atomic(path, _gzip(image.to_bytes()) if path.suffix == ".gz" else image.to_bytes())


def sidecar_path(path: Path) -> Path:
    """The JSON file that belongs to a NIfTI file."""
    return path.with_name(path.name.removesuffix(".gz").removesuffix(".nii") + ".json")


def coordinates(mask_img: Any) -> NDArray:
    """Position of every voxel of the mask in mm, (N, 3), in the space of :func:`space_name`."""
    indices = np.argwhere(np.asarray(mask_img.dataobj) != 0)
    affine = np.asarray(mask_img.affine)
    return indices @ affine[:3, :3].T + affine[:3, 3]


def space_name(image: Any) -> str:
    """Which space the affine leads to, by the header's sform or else qform code."""
    names = {1: "scanner", 2: "aligned", 3: "Talairach", 4: "MNI152"}
    codes = [int(image.header[key]) for key in ("sform_code", "qform_code")]
    return next((names[code] for code in codes if code in names), "unknown")


def _gzip(content: bytes) -> bytes:
    """Compressed without time stamp and file name, so that equal content gives equal bytes."""
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=buffer, mtime=0) as stream:
        stream.write(content)
    return buffer.getvalue()
