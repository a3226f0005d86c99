"""What a phantom is made of: grid, runs, categories and seed, with Haxby's sizes as defaults."""

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

CATEGORIES = ("bottle", "cat", "chair", "face", "house", "scissors", "scrambledpix", "shoe")

HAXBY_SHAPE = (40, 64, 64)
HAXBY_VOXELS = 31_398
FIELD_OF_VIEW = (140.0, 240.0, 240.0)  # mm; 3.5 x 3.75 x 3.75 mm voxels on Haxby's grid

# Labelled volumes of the real runs: 6 of rest, then blocks of 9 with these gaps between them, then 6 of rest.
LEAD_REST = 6
GAP_REST = (6, 5, 5, 5, 6, 5, 5)
FINAL_REST = 6


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
