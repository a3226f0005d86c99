"""The phantom's own atlas: the planted patches, and parts of the head in which nothing was planted."""

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.imaging.phantom.anatomy import ellipsoid, mirrored
from mvpa_gamp.imaging.phantom.patterns import LATERAL, PATCHES, VENTRAL

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
