"""The phantom's head: a brain mask with an exact number of voxels, a mean volume with tissue contrast."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from mvpa_gamp.imaging.phantom.spec import Phantom

FOLDS, SURFACE = 1, 2  # parts for Phantom.generator

# Typical echo-planar intensities of the real slice (median about 1,450, from 170 to 2,470).
GREY, WHITE, FLUID = 1500.0, 1150.0, 2100.0


@dataclass(frozen=True)
class Anatomy:
    """Mask (grid, bool), and of its voxels in C order the position in mm (N, 3) and mean intensity (N,)."""

    mask: NDArray
    coordinates: NDArray
    baseline: NDArray


def build_anatomy(spec: Phantom) -> Anatomy:
    """The head of a phantom; the same seed gives the same head."""
    grid = grid_coordinates(spec)
    mask = _top_voxels(_brain_field(spec, grid), spec.voxels)
    coordinates = grid[:, mask].T
    return Anatomy(mask, coordinates, _intensity(spec, mask, coordinates))


def grid_coordinates(spec: Phantom) -> NDArray:
    """Position of every voxel of the grid in mm, (3, *shape)."""
    indices = np.indices(spec.shape).reshape(3, -1)
    positions = spec.affine[:3, :3] @ indices + spec.affine[:3, 3:]
    return positions.reshape(3, *spec.shape)


def smooth_noise(spec: Phantom, rng: np.random.Generator, sigma_mm: float) -> NDArray:
    """Gaussian noise on the whole grid, smoothed to sigma mm and scaled to unit deviation."""
    sigma = sigma_mm / np.abs(np.diag(spec.affine)[:3])
    field = ndimage.gaussian_filter(rng.standard_normal(spec.shape), sigma, mode="wrap")
    return (field - field.mean()) / field.std()


def ellipsoid(
    points: NDArray, centre: tuple[float, float, float], radii: tuple[float, float, float]
) -> NDArray:
    """1 at the centre, 0 on the surface, negative outside; points are (3, ...) in mm."""
    along_axes = [((p - c) / r) ** 2 for p, c, r in zip(points, centre, radii, strict=True)]
    return 1.0 - np.sum(along_axes, axis=0)


def mirrored(
    points: NDArray, centre: tuple[float, float, float], radii: tuple[float, float, float]
) -> NDArray:
    """An ellipsoid in each hemisphere."""
    return ellipsoid(np.stack([np.abs(points[0]), points[1], points[2]]), centre, radii)


def _brain_field(spec: Phantom, grid: NDArray) -> NDArray:
    """Large inside a head-like shape: cerebrum, temporal lobes, cerebellum, brain stem, a midline fissure."""
    x, y, z = grid
    narrowing = 1.0 + 0.12 * np.clip(y / 85.0, -0.5, 1.0)  # the frontal pole is slimmer
    flattened = np.where(z < 0, z * 1.75, z)
    cerebrum = ellipsoid(np.stack([x * narrowing, y, flattened]), (0, 0, 0), (67, 86, 70))
    parts = [
        cerebrum,
        mirrored(grid, (44, 2, -28), (23, 46, 24)),
        mirrored(grid, (25, -52, -38), (33, 31, 26)),
        ellipsoid(grid, (0, -22, -52), (14, 15, 38)),
    ]
    union = 0.08 * np.logaddexp.reduce(np.stack(parts) / 0.08, axis=0)
    fissure = np.exp(-((x / 3.5) ** 2)) * np.clip((z - 20) / 40, 0, 1)
    return union - 0.5 * fissure + 0.05 * smooth_noise(spec, spec.generator(SURFACE), 5.0)


def _top_voxels(field: NDArray, count: int) -> NDArray:
    """The ``count`` voxels where the field is largest; ties go to the first voxel."""
    order = np.argsort(-field, axis=None, kind="stable")
    mask = np.zeros(field.size, dtype=bool)
    mask[order[:count]] = True
    return mask.reshape(field.shape)


def _intensity(spec: Phantom, mask: NDArray, coordinates: NDArray) -> NDArray:
    """Mean echo-planar intensity (N,): folded grey ribbon, white core, bright ventricles, frontal dropout."""
    zooms = np.abs(np.diag(spec.affine)[:3])
    padded = ndimage.distance_transform_edt(np.pad(mask, 1), sampling=zooms)
    depth = padded[1:-1, 1:-1, 1:-1][mask]
    folds = smooth_noise(spec, spec.generator(FOLDS), 4.5)[mask]
    ribbon = 1 / (1 + np.exp((depth - 10.0 - 9.0 * folds) / 1.5))
    sulci = np.exp(-depth / 5.0) * np.clip(folds, 0, None)
    points = coordinates.T
    ventricles = np.clip(3 * mirrored(points, (9, -8, 14), (8, 30, 12)), 0, 1)
    nuclei = np.clip(2 * mirrored(points, (16, -4, 0), (15, 24, 12)), 0, 1)
    value = WHITE + (GREY - WHITE) * np.maximum(ribbon, 0.7 * nuclei) + 0.5 * (FLUID - GREY) * sulci
    value += (FLUID - value) * ventricles
    air = 0.55 * np.clip(ellipsoid(points, (0, 58, -32), (34, 30, 26)), 0, 1)  # above the nasal cavities
    coil = 1.0 + 0.1 * smooth_noise(spec, spec.generator(FOLDS, 1), 40.0)[mask]
    return value * (1 - air) * coil
