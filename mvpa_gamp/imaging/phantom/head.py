"""What a phantom is made of, and its head.

Grid, runs, categories and seed; a brain mask with an exact number of voxels, and a mean volume with tissue
contrast.
"""

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

CATEGORIES = ("bottle", "cat", "chair", "face", "house", "scissors", "scrambledpix", "shoe")
HAXBY_SHAPE = (40, 64, 64)
HAXBY_VOXELS = 31_398
FIELD_OF_VIEW = (140.0, 240.0, 240.0)  # mm; 3.5 x 3.75 x 3.75 mm voxels on Haxby's grid
# Labelled volumes of the real runs: 6 of rest, then blocks of 9 with these gaps between them, then 6 of rest.
LEAD_REST = 6
GAP_REST = (6, 5, 5, 5, 6, 5, 5)
FINAL_REST = 6
FOLDS, SURFACE = 1, 2  # parts for Phantom.generator
# Typical echo-planar intensities of the real slice (median about 1,450, from 170 to 2,470).
GREY, WHITE, FLUID = 1500.0, 1150.0, 2100.0


@dataclass(frozen=True)
class Phantom:
    """A seeded simulation in Haxby's form; smaller shapes keep the field of view and the anatomy.

    ``n_voxels`` defaults to the share of the grid that 31,398 voxels take on Haxby's grid. ``signal``
    scales all category patterns: 0 gives a phantom without information.
    """

    shape: tuple[int, int, int] = HAXBY_SHAPE
    n_voxels: int | None = None
    n_runs: int = 12
    categories: tuple[str, ...] = CATEGORIES
    block_volumes: int = 9
    t_r: float = 2.5
    signal: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        grid = len(self.shape) == 3 and min(self.shape) >= 3
        _check(grid, "shape", "three sides of at least 3", self.shape)
        _check(
            1 <= self.voxels <= math.prod(self.shape), "n_voxels", "1 to the size of the grid", self.voxels
        )
        _check(self.n_runs >= 1, "n_runs", "at least 1", self.n_runs)
        _check(self.block_volumes >= 1, "block_volumes", "at least 1", self.block_volumes)
        _check(self.t_r > 0, "t_r", "a positive time in seconds", self.t_r)
        _check(self.signal >= 0, "signal", "0 or more", self.signal)
        _check(self.seed >= 0, "seed", "0 or more", self.seed)
        known = bool(self.categories) and set(self.categories) <= set(CATEGORIES)
        known &= len(set(self.categories)) == len(self.categories)
        _check(known, "categories", f"some of {', '.join(CATEGORIES)}", self.categories)

    @property
    def voxels(self) -> int:
        """Number of voxels inside the brain mask."""
        if self.n_voxels is not None:
            return self.n_voxels
        return max(1, round(HAXBY_VOXELS / math.prod(HAXBY_SHAPE) * math.prod(self.shape)))

    @property
    def block_starts(self) -> tuple[int, ...]:
        """Index of the first labelled volume of each block within a run."""
        gaps = [GAP_REST[k % len(GAP_REST)] for k in range(len(self.categories) - 1)]
        steps = np.cumsum([LEAD_REST] + [self.block_volumes + gap for gap in gaps])
        return tuple(int(step) for step in steps)

    @property
    def volumes_per_run(self) -> int:
        """Number of volumes of a run: 121 with Haxby's eight blocks of nine."""
        return self.block_starts[-1] + self.block_volumes + FINAL_REST

    @property
    def affine(self) -> NDArray:
        """Voxel to mm (4, 4): centred, x decreasing with its index as in the real data."""
        zooms = np.array(FIELD_OF_VIEW) / self.shape * [-1, 1, 1]
        affine = np.diag([*zooms, 1.0])
        affine[:3, 3] = -zooms * (np.array(self.shape) - 1) / 2
        return affine

    def generator(self, part: int, index: int = 0) -> np.random.Generator:
        """Random numbers for one part of the phantom, independent of how much the other parts drew."""
        return np.random.default_rng([self.seed, part, index])

    def description(self) -> dict[str, Any]:
        """All settings as plain values, for provenance and for the key of the cache."""
        return asdict(self) | {"n_voxels": self.voxels}


def _check(holds: bool, name: str, expected: str, came: object) -> None:
    """Refuse a setting that no phantom can have."""
    if not holds:
        raise ValueError(f"Phantom {name}: expected {expected}, got {came!r}. Change {name}.")


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
