"""Masks on another grid than the volumes, and what touches a mask from outside.

A mask is resampled where headers say how, and refused with the reason else. The leakage check needs voxels
that touch the mask, and digests of raw volumes.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation

from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.spaces import space_of
from mvpa_gamp.imaging.volumes import is_same_grid, like, name_of, open_mask

_WHOLE = 0.995  # a share of the mask that counts as all of it: grids cut a mask's edge at half a voxel
_MOST = 2000  # voxels kept: more would not sharpen the comparison
_BRIGHT = 0.5  # of the mask's median intensity: darker voxels are not brain
_SMALL = 0.5  # of the bright voxels: a larger mask is a brain mask, which no label has chosen


def mask_on_grid(mask: Any, reference: Any) -> tuple[Any, NDArray, tuple[str, ...]]:
    """A mask (image or file) on the grid of an image: the mask, its voxels (x, y, z) bool, and notes.

    On the same grid it comes back as it is. Otherwise every voxel of ``reference`` takes the value of the
    mask's nearest voxel (nilearn's ``resample_to_img``), and a note says how many voxels result. Refused are
    masks whose header gives no position, masks that lie outside the volumes, and masks of which no voxel is
    left. Limit: headers say where voxels are, not in which space; the note says so.

    Parameters
    ----------
    mask
        A file or an image.
    reference
        An image, whose grid is wanted.

    Returns
    -------
    tuple
        The mask, its voxels (x, y, z) bool, and notes.
    """
    opened, inside = open_mask(mask)
    if is_same_grid(opened, reference):
        return opened, inside, ()
    _check_positions(opened, reference)
    seen = _share_inside(opened, inside, reference)
    if not seen:
        raise DataError(
            f"mask {name_of(opened)} is on another grid, and its voxels lie outside the field of view of "
            f"{_called(reference)} ({_extent(opened, inside)} against {_extent(reference)}). Give a mask of "
            "the same space, or register it first."
        )
    moved = _nearest(opened, inside, reference)
    if not moved.any():
        raise DataError(
            f"mask {name_of(opened)} is on another grid ({_grids(opened, reference)}) and has no voxel "
            "left after resampling: no centre of the volumes' voxels lies in it. Give a mask that is larger "
            "than a voxel of the volumes."
        )
    note = _note(opened, inside, reference, moved, seen)
    return like(_volume(reference), moved.astype(np.uint8)), moved, (note,)


def _note(opened: Any, inside: NDArray, reference: Any, moved: NDArray, seen: float) -> str:
    """What was done to the mask, and what only the user can know."""
    lost = "" if seen > _WHOLE else f" {100 * (1 - seen):.0f} % of the mask lies outside the volumes."
    return (
        f"The mask {name_of(opened)} is on another grid ({_grids(opened, reference)}) and was resampled to "
        f"that of the volumes (nearest neighbour): {int(inside.sum()):,} voxels became {int(moved.sum()):,}."
        f"{lost} This is right if mask and volumes are in the same space: look at the figure of the maps."
    )


def _check_positions(opened: Any, reference: Any) -> None:
    """Refuse to resample where a header has no position: sform and qform codes of 0 leave a mere guess."""
    for what, image in ((f"mask {name_of(opened)}", opened), (_called(reference), reference)):
        codes = [image.header[name] for name in ("sform_code", "qform_code") if name in image.header]
        if len(codes) == 2 and not any(int(code) for code in codes):
            raise DataError(
                f"mask {name_of(opened)} is on another grid ({_grids(opened, reference)}) and cannot be "
                f"resampled: the header of {what} gives no position (sform and qform codes are 0). Give a "
                "mask on the grid of the volumes."
            )


def _share_inside(opened: Any, inside: NDArray, reference: Any) -> float:
    """The share of the mask's voxels whose centres lie in the reference's field of view."""
    to_reference = np.linalg.inv(np.asarray(reference.affine)) @ np.asarray(opened.affine)
    places = np.argwhere(inside) @ to_reference[:3, :3].T + to_reference[:3, 3]
    seen = ((places >= -0.5) & (places <= np.array(reference.shape[:3]) - 0.5)).all(axis=1)
    return float(seen.mean())


def _nearest(opened: Any, inside: NDArray, reference: Any) -> NDArray:
    """The mask's voxels on the grid of the reference, (x, y, z) bool."""
    import nibabel
    from nilearn.image import resample_to_img

    plain = nibabel.Nifti1Image(inside.astype(np.uint8), np.asarray(opened.affine))
    how: dict[str, Any] = {"interpolation": "nearest", "force_resample": True, "copy_header": True}
    try:
        moved = resample_to_img(plain, _volume(reference), **how)
    except ValueError:  # nilearn's way of saying that nothing is left
        return np.zeros(reference.shape[:3], dtype=bool)
    return np.asarray(moved.dataobj) > 0


def _volume(reference: Any) -> Any:
    """An empty volume on the grid of an image of three or four dimensions; nothing is read."""
    return like(reference, np.zeros(reference.shape[:3], dtype=np.uint8))


def _called(reference: Any) -> str:
    """The volumes, by file name where they have one."""
    name = name_of(reference)
    return "the volumes" if name == "in memory" else f"the volumes ({name})"


def _grids(opened: Any, reference: Any) -> str:
    """Both grids, or how their affines differ where shape and size of voxels agree."""
    own, other = _grid(opened), _grid(reference)
    if own != other:
        return f"{own}, the volumes {other}"
    gap = float(np.abs(np.asarray(opened.affine) - np.asarray(reference.affine)).max())
    return f"{own} as the volumes, but the affines differ by up to {gap:.3g}"


def _grid(image: Any) -> str:
    """Shape and size of voxels: ``40 x 64 x 64 voxels of 3.5 x 3.75 x 3.75 mm``."""
    sizes = np.linalg.norm(np.asarray(image.affine)[:3, :3], axis=0)
    shape = " x ".join(map(str, image.shape[:3]))
    return f"{shape} voxels of {' x '.join(f'{size:.3g}' for size in sizes)} mm"


def _extent(image: Any, inside: NDArray | None = None) -> str:
    """From where to where an image, or the voxels of a mask, reach along x, y and z, in mm."""
    corners = np.argwhere(inside) if inside is not None else _corners(image)
    world = corners @ np.asarray(image.affine)[:3, :3].T + np.asarray(image.affine)[:3, 3]
    ends = zip("xyz", world.min(axis=0), world.max(axis=0), strict=True)
    return ", ".join(f"{axis} {low:.0f} to {high:.0f} mm" for axis, low, high in ends)


def _corners(image: Any) -> NDArray:
    """The eight outermost voxels."""
    last = np.array(image.shape[:3]) - 1
    return np.array(list(np.ndindex(2, 2, 2))) * last


def border_of(inside: NDArray) -> tuple[NDArray, ...]:
    """Places of the voxels that touch the mask with a face, an edge or a corner, at most 2,000 of them."""
    return tuple(thinned(np.argwhere(binary_dilation(inside, np.ones((3, 3, 3))) & ~inside)).T)


def thinned(touching: NDArray) -> NDArray:
    """Places spread evenly over those that touch a mask, at most 2,000."""
    return touching[np.linspace(0, len(touching) - 1, min(_MOST, len(touching))).astype(int)]


def brain_border(series: Any, runs: Sequence[NDArray]) -> NDArray | None:
    """Raw values (M, S) at the voxels that touch a small mask and are brain; None for masks of most of it.

    ``series`` is a Series, ``runs`` are the rows of each run. Brain is what is at least half as bright as the
    mask's median voxel and varies in every run.
    """
    if series.border is None:
        return None
    mean = space_of(series.mean_img).whole(series.mean_img)
    bright = _BRIGHT * float(np.median(mean[series.inside]))
    if bright <= 0 or series.inside.sum() > _SMALL * np.count_nonzero(mean >= bright):
        return None
    usable = series.border.mean(axis=0) >= bright
    for members in runs:
        usable &= np.ptp(series.border[members], axis=0) > 0
    return np.ascontiguousarray(series.border[:, usable]) if usable.any() else None


def fingerprints_of(values: NDArray) -> NDArray:
    """A digest (M,) uint64 of every row."""
    rows = np.ascontiguousarray(values)
    digests = [hashlib.blake2b(row.data, digest_size=8).digest() for row in rows]
    return np.frombuffer(b"".join(digests), dtype=np.uint64)
