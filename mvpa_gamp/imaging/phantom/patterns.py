"""Which voxel answers to which category, and the atlas of it.

Overlapping patches and fine patterns in ventral-temporal cortex; the atlas has the patches, and parts of the
head in which nothing was planted.
"""

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.imaging.phantom.head import CATEGORIES, Anatomy, Phantom, ellipsoid, mirrored, smooth_noise

PATTERN, SHARED = 3, 4  # parts for Phantom.generator
Point = tuple[float, float, float]
VENTRAL: tuple[Point, Point] = ((34, -46, -20), (17, 30, 12))
LATERAL: tuple[Point, Point] = ((46, -64, 0), (13, 14, 14))
# Patches (centre and radii in mm, right hemisphere mirrored to the left) and the response of each category
# in per cent of the baseline; categories not named share the last value. A caricature of the literature:
# lateral fusiform for faces and animals, medial fusiform and parahippocampal for houses, lateral occipital
# for objects, early cortex for high-contrast patterns.
PATCHES: tuple[tuple[Point, Point, dict[str, float], float], ...] = (
    ((42, -46, -20), (9, 13, 9), {"face": 3.2, "cat": 2.4}, 0.4),
    ((24, -40, -14), (10, 15, 9), {"house": 3.2, "chair": 0.8}, 0.4),
    (
        (33, -54, -18),
        (7, 9, 7),
        {"chair": 1.7, "house": 1.2, "scissors": 0.9, "bottle": 0.9, "shoe": 0.9},
        0.1,
    ),
    ((46, -64, 0), (9, 10, 10), {"scissors": 0.9, "scrambledpix": 0.1, "face": 0.5, "cat": 0.7}, 0.6),
    ((8, -76, 4), (10, 12, 12), {"scrambledpix": 1.6, "house": 1.2}, 0.9),
)
# Peak of the fine pattern that only this category has, and of the one its kin share.
FINE = {
    "bottle": 1.6, "cat": 2.0, "chair": 2.0, "face": 2.4, "house": 2.4,
    "scissors": 1.7, "scrambledpix": 2.2, "shoe": 1.7,
}  # fmt: skip
KIN = {"face": 0, "cat": 0, "house": 1, "chair": 1, "bottle": 2, "shoe": 2, "scissors": 2, "scrambledpix": 3}
KIN_PEAK = 1.0
STRENGTH = 0.91  # set with the default seed: L1 logistic regression then errs about as in the paper's table
FINE_SIGMA = 5.0  # mm, patches of a few voxels
FINE_CUT = 1.2  # only the upper 12 % of the smooth field carry the fine pattern: compact, not everywhere
# The five planted regions are the patches of patterns.py, in their order.
PHANTOM_NAMES = {
    1: "lateral fusiform",
    2: "parahippocampal",
    3: "mid fusiform",
    4: "lateral occipital",
    5: "early visual",
    6: "cerebellum",
    7: "brain stem",
    8: "anterior temporal",
    9: "frontal",
    10: "central",
    11: "parietal",
    12: "other occipital",
}
PLANTED = (1, 2, 3, 4, 5)


def category_patterns(spec: Phantom, anatomy: Anatomy) -> NDArray:
    """Response of every voxel to every category in per cent of the baseline, (K, N), zero where none."""
    rows = [_category_pattern(spec, anatomy, category) for category in spec.categories]
    return np.stack(rows) * (STRENGTH * spec.signal)


def visual_cortex(anatomy: Anatomy) -> NDArray:
    """Ventral-temporal and lateral occipital voxels (N,) bool, where categories may differ finely."""
    points = anatomy.coordinates.T
    inside = (mirrored(points, *VENTRAL) > 0) | (mirrored(points, *LATERAL) > 0)
    if not inside.any():  # a very coarse grid: the nearest voxel stands for the region
        inside[np.argmax(mirrored(points, *VENTRAL))] = True
    return inside


def ventral_temporal(anatomy: Anatomy) -> NDArray:
    """The ventral-temporal region (N,) bool, as the real data's mask4_vt."""
    closeness = mirrored(anatomy.coordinates.T, *VENTRAL)
    return closeness > min(0.0, closeness.max() - 1e-9)


def _category_pattern(spec: Phantom, anatomy: Anatomy, category: str) -> NDArray:
    points = anatomy.coordinates.T
    pattern = np.zeros(len(anatomy.coordinates))
    for centre, radii, peaks, otherwise in PATCHES:
        pattern += peaks.get(category, otherwise) * _bump(mirrored(points, centre, radii))
    cortex = visual_cortex(anatomy)
    fine = spec.generator(PATTERN, CATEGORIES.index(category))
    kin = spec.generator(SHARED, KIN[category])
    pattern += FINE[category] * _islands(spec, anatomy, cortex, fine)
    pattern += KIN_PEAK * _islands(spec, anatomy, cortex, kin)
    return pattern


def _bump(closeness: NDArray) -> NDArray:
    """Closeness to a centre (1 there, 0 on the border) as a patch; at least one voxel."""
    bump = np.clip(closeness, 0, 1)
    if not bump.any():
        bump[np.argmax(closeness)] = 1.0
    return bump


def _islands(spec: Phantom, anatomy: Anatomy, cortex: NDArray, rng: np.random.Generator) -> NDArray:
    """Tops of a smooth random field inside the cortex, scaled to a peak of 1: compact islands."""
    field = np.where(cortex, smooth_noise(spec, rng, FINE_SIGMA)[anatomy.mask], -np.inf)
    tops = np.clip(field - min(FINE_CUT, field.max() - 0.1), 0, None)
    return tops / tops.max()


def phantom_regions(points: NDArray) -> NDArray:
    """The region (N,) of positions (N, 3) in mm, 0 in the deep white matter, which the atlas leaves out.

    Voxels of patches and of the cortex with fine patterns belong to the nearest patch.
    """
    axes = points.T
    _, y, z = axes
    region = np.select(
        [
            mirrored(axes, (25, -52, -38), (33, 31, 26)) > 0,
            ellipsoid(axes, (0, -22, -52), (14, 15, 38)) > 0,
            (z < -8) & (y > -20),
            y > 30,
            y > -10,
            z > 10,
        ],
        [6, 7, 8, 9, 10, 11],
        12,
    )
    region[mirrored(axes, (22, -5, 18), (12, 40, 12)) > 0] = 0
    closeness = np.stack([mirrored(axes, centre, radii) for centre, radii, *_ in PATCHES])
    planted = (closeness.max(axis=0) > 0) | (mirrored(axes, *VENTRAL) > 0) | (mirrored(axes, *LATERAL) > 0)
    region[planted] = 1 + closeness[:, planted].argmax(axis=0)
    for patch, place in enumerate(closeness.argmax(axis=1)):  # a patch has a voxel on the coarsest grid
        if closeness[patch, place] <= 0:
            region[place] = 1 + patch
    return region
