"""Opening NIfTI files with suspicion, and reading them in blocks of volumes.

Everything that can be wrong with a file is found before memory is asked for: a missing file, a header
that promises more than the file can hold, the wrong number of dimensions, values that are not numbers, and a
grid that differs from the other images'. A cut or damaged gzip stream is found by unpacking it: of a series,
which is long, while its volumes are read; of any other image before.
"""

import gzip
import math
import os
import warnings
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.imaging.errors import DataError, reason

GZIP_MAX_RATIO = 1032  # deflate cannot shrink further: 258 bytes from 2 bits
MAX_BYTES = 256 * 2**30  # more than 7 h of 1 mm whole-brain volumes in float32 at one per second
BLOCK_BYTES = 64 * 2**20
_AT_ONCE = 2**22  # bytes of a gzip file that are only looked at
_IN_MEMORY = "in memory"
AFFINE_TOLERANCE = 1e-3  # mm; headers written by different programs differ in the last digits

_UNREADABLE = (OSError, EOFError, ValueError, OverflowError, KeyError, TypeError, zlib.error)


def open_image(image: Any, what: str, unpack: bool = True) -> Any:
    """A nibabel image from a path or an image in memory, its data not yet read but known to be there.

    ``what`` names the image in messages, for example "BOLD file". Without ``unpack`` a gzip file is taken at
    its word until ``volume_blocks`` has read it. Limits: at most 256 GiB.
    """
    import nibabel

    if hasattr(image, "affine") and hasattr(image, "shape"):
        _check_values(image, f"{what} in memory")
        return image
    path = Path(image).expanduser()
    if not path.is_file():
        found = "a folder" if path.is_dir() else "nothing there"
        raise DataError(f"{what} {path}: expected a NIfTI file, found {found}. Check the path.")
    if not os.access(path, os.R_OK):
        raise DataError(f"{what} {path}: you have no permission to read it. Change its permissions.")
    try:
        opened: Any = nibabel.load(path, keep_file_open=True)  # a gzip stream is then read once, forwards
        _promised_bytes(opened)
    except (
        nibabel.filebasedimages.ImageFileError,
        nibabel.spatialimages.HeaderDataError,
        *_UNREADABLE,
    ) as error:
        raise _damaged(path, what, error) from error
    _check_values(opened, f"{what} {path}")
    _check_size(opened, path, what, unpack)
    return opened


def open_series(image: Any) -> Any:
    """A BOLD image with four dimensions, x, y, z and time, to be read by ``volume_blocks``."""
    opened = open_image(image, "BOLD file", unpack=False)
    if len(opened.shape) != 4:
        raise DataError(
            f"BOLD file {name_of(opened)}: expected a 4-D series (x, y, z, time), got shape {opened.shape}. "
            "Give the series of volumes; contrast and beta maps are given to decode --maps."
        )
    return opened


def open_mask(image: Any) -> tuple[Any, NDArray]:
    """A mask image and its voxels (x, y, z) bool: finite and not zero."""
    opened = open_image(image, "mask")
    shape = opened.shape
    if len(shape) < 3 or math.prod(shape[3:]) != 1:
        raise DataError(f"mask {name_of(opened)}: expected a 3-D image, got shape {shape}. Give one volume.")
    values = _read(opened, Ellipsis).reshape(shape[:3])
    inside = np.isfinite(values) & (values != 0)
    if not inside.any():
        raise DataError(f"mask {name_of(opened)} is empty: no voxel differs from zero. Give another mask.")
    return opened, inside


def check_same_grid(image: Any, reference: Any, what: str, name: str | None = None) -> None:
    """Refuse an image whose shape or affine differs from the reference's (first three dimensions).

    ``name`` is what the message calls it, None its file name.
    """
    if difference := _grid_difference(image, reference):
        advice = _how_to_resample(reference, what)
        raise DataError(f"{what} {name or name_of(image)} is on another grid: {difference}. {advice}")


def is_same_grid(image: Any, reference: Any) -> bool:
    """Whether shape and affine of two images agree."""
    return not _grid_difference(image, reference)


def _grid_difference(image: Any, reference: Any) -> str:
    """How the grids of two images differ, empty where they do not."""
    if tuple(image.shape[:3]) != tuple(reference.shape[:3]):
        return f"expected shape {tuple(reference.shape[:3])}, got {tuple(image.shape[:3])}"
    difference = float(np.abs(np.asarray(image.affine) - np.asarray(reference.affine)).max())
    if difference <= AFFINE_TOLERANCE:
        return ""
    came = f"(expected {_rows(reference.affine)}, got {_rows(image.affine)})"
    return f"the shapes agree, but the affines differ by up to {difference:.3g} {came}"


def _how_to_resample(reference: Any, what: str) -> str:
    """What to do about an image on another grid; a mask must keep its zeros and ones."""
    target = name_of(reference) if name_of(reference) != _IN_MEMORY else "the images"
    how = '(mask, bold, interpolation="nearest")' if what == "mask" else ""
    return f"Resample it to the grid of {target}, for example with nilearn.image.resample_to_img{how}."


def n_volumes(image: Any) -> int:
    """How many volumes an image has; a 3-D one has one."""
    return int(image.shape[3]) if len(image.shape) > 3 else 1


def volume_blocks(image: Any, what: str = "image") -> Iterator[NDArray]:
    """The volumes of an image in order, in blocks (x, y, z, b) float32 of at most 64 MiB.

    After the last one a gzip file is known to be whole.
    """
    step = max(1, BLOCK_BYTES // (4 * math.prod(image.shape[:3])))
    for start in range(0, n_volumes(image), step):
        where = (Ellipsis, slice(start, start + step)) if len(image.shape) > 3 else (Ellipsis, None)
        with np.errstate(over="ignore"):  # beyond float32 is infinite: such voxels are dropped with a note
            yield np.asarray(_read(image, where, what), dtype=np.float32)
    _check_end(image, what)


def mean_volume(images: Sequence[Any], magnitude: bool = False, what: str = "BOLD file") -> Any:
    """The mean of all volumes (or of their magnitudes) as a float32 image; NaN and infinity count 0."""
    total = np.zeros(images[0].shape[:3])
    for image in images:
        for block in volume_blocks(image, what):
            values = np.nan_to_num(block, nan=0.0, posinf=0.0, neginf=0.0)
            total += (np.abs(values) if magnitude else values).sum(axis=3, dtype=np.float64)
    return like(images[0], (total / sum(map(n_volumes, images))).astype(np.float32))


def computed_mask(images: Sequence[Any]) -> tuple[Any, int]:
    """A brain mask from the mean of raw volumes, by nilearn, and its number of voxels."""
    from nilearn.masking import compute_epi_mask

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an empty mask is said by its number of voxels
        mask = compute_epi_mask(mean_volume(images))
    return mask, int(np.count_nonzero(np.asarray(mask.dataobj)))


def like(reference: Any, values: NDArray) -> Any:
    """A NIfTI image of ``values`` (x, y, z) with the grid, affine, codes and units of a reference image."""
    import nibabel

    header = nibabel.Nifti1Image.header_class.from_header(reference.header, check=False)
    header.set_data_dtype(values.dtype)
    header["descrip"] = b""
    header.set_intent("none")
    header["cal_max"] = header["cal_min"] = 0
    image = nibabel.Nifti1Image(values, np.asarray(reference.affine), header)
    image.header.set_xyzt_units("mm", "sec")
    return image


def repetition_time(image: Any) -> float | None:
    """Seconds between volumes according to the header, None where it does not say."""
    zooms = image.header.get_zooms()
    units = getattr(image.header, "get_xyzt_units", lambda: ("mm", "sec"))()[1]
    scale = {"msec": 1e-3, "usec": 1e-6}.get(units, 1.0)
    seconds = float(zooms[3]) * scale if len(zooms) > 3 else 0.0
    return seconds if math.isfinite(seconds) and seconds > 0 else None


def name_of(image: Any) -> str:
    """The file name of an image (or of a file given by name), or a word for one in memory."""
    filename = image if isinstance(image, str | Path) else getattr(image, "get_filename", lambda: None)()
    return str(filename) if filename else _IN_MEMORY


def _read(image: Any, index: Any, what: str = "image") -> NDArray:
    """Values of an image; whatever goes wrong becomes one sentence."""
    try:
        return np.asanyarray(image.dataobj[index])
    except _UNREADABLE as error:
        path = Path(name_of(image))
        if path.is_file():
            _check_size(image, path, what)  # knows best what is missing
        raise _damaged(path, what, error) from error


def _check_end(image: Any, what: str) -> None:
    """Read what follows the volumes of a gzip file: only at its end its checksum is compared."""
    data = getattr(image.dataobj, "file_like", None)
    if not isinstance(data, str | Path) or not _is_zipped(Path(data)):
        return
    opened = getattr(image.dataobj, "_get_fileobj", None)  # the stream that was read from
    if opened is None:  # in another nibabel: from the beginning once more
        _unzipped_bytes(Path(data), what)
        return
    try:
        with opened() as stream:
            while stream.read(_AT_ONCE):
                pass
    except _UNREADABLE as error:
        raise _damaged(Path(data), what, error) from error


def _promised_bytes(image: Any) -> int:
    """Bytes of data that the header announces."""
    if len(image.shape) < 1 or min(image.shape) < 1:
        raise ValueError(f"its header gives the dimensions {image.shape}")
    return math.prod(int(side) for side in image.shape) * image.get_data_dtype().itemsize


def _check_values(image: Any, name: str) -> None:
    """Refuse colours, complex numbers and affines that are not finite or not invertible."""
    if image.get_data_dtype().kind not in "biuf":
        raise DataError(f"{name}: expected real numbers, got {image.get_data_dtype()}. Convert the image.")
    if image.affine is None or not np.isfinite(np.asarray(image.affine)).all():
        raise DataError(f"{name}: its affine is missing or not finite. Repair the header.")
    if np.linalg.matrix_rank(np.asarray(image.affine, dtype=float)[:3, :3]) < 3:
        raise DataError(
            f"{name}: its affine {_rows(image.affine)} is singular: different voxels lie at one place "
            "(an axis has no length, or two point the same way). Repair the header."
        )


def _is_zipped(path: Path) -> bool:
    return path.suffix in (".gz", ".mgz")


def _check_size(image: Any, path: Path, what: str, unpack: bool = True) -> None:
    """Compare what the header promises with what the file holds, before any memory is asked for.

    What a gzip file holds is known when it is unpacked, and without that only what it cannot hold.
    """
    expected = _promised_bytes(image)
    data = Path(getattr(image.dataobj, "file_like", None) or path)  # of a .hdr/.img pair the second
    on_disk = data.stat().st_size
    zipped = _is_zipped(data)
    possible = min(MAX_BYTES, on_disk * GZIP_MAX_RATIO) if zipped else MAX_BYTES
    if expected > possible:
        raise DataError(
            f"{what} {path}: the header claims dimensions {image.shape}, {expected:,} bytes, which a file of "
            f"{on_disk:,} bytes cannot hold. The header is wrong or the file is damaged: get it again."
        )
    if (not zipped and data.suffix not in (".nii", ".img")) or (zipped and not unpack):
        return  # reading will tell
    needed = int(getattr(image.dataobj, "offset", 0)) + expected
    held = _unzipped_bytes(data, what) if zipped else on_disk
    if held < needed:
        raise DataError(
            f"{what} {path} is truncated: the header promises dimensions {image.shape}, {needed:,} bytes, "
            f"the file holds {held:,}. Copy or download it again."
        )


def _unzipped_bytes(path: Path, what: str) -> int:
    """Length of a gzip file's content; reading it to the end also verifies its checksum."""
    total = 0
    try:
        with gzip.open(path, "rb") as stream:
            while chunk := stream.read(_AT_ONCE):
                total += len(chunk)
                if total > MAX_BYTES:
                    break
    except _UNREADABLE as error:
        raise _damaged(path, what, error) from error
    return total


def _damaged(path: Path, what: str, error: Exception) -> DataError:
    return DataError(
        f"{what} {path} cannot be read as an image ({reason(error)}). It is corrupt, truncated or of another "
        "format: copy or download it again."
    )


def _rows(affine: NDArray) -> str:
    return str(np.round(np.asarray(affine)[:3], 4).tolist())
