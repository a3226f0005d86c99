"""A small scan for tests of a decoder: six runs of two blocks of face and house with rest around them."""

from typing import NamedTuple

import nibabel
import numpy as np
import pytest
from nilearn.image import index_img

AFFINE = np.diag([3.0, 3.0, 3.0, 1.0])
FACE, HOUSE = (2, 3, 1), (4, 5, 3)  # voxels that are larger for one of them


class Planted(NamedTuple):
    bold: nibabel.Nifti1Image  # (7, 8, 6, 120), raw values about 100
    mask: nibabel.Nifti1Image
    y: np.ndarray  # (120,) face, house or rest
    runs: np.ndarray  # (120,)

    def rows(self, rows):
        """The images, labels and runs of some rows."""
        return index_img(self.bold, rows), self.y[rows], self.runs[rows]

    @property
    def shown(self):
        return self.y != "rest"


def planted_scan(levels=0.0, seed=3):
    """Runs whose mean differs by ``levels`` and which drift along a line."""
    rng = np.random.default_rng(seed)
    block = ["rest"] * 2 + ["face"] * 4 + ["rest"] * 2 + ["house"] * 4
    y = np.tile(np.array(block + block[::-1])[:20], 6)
    runs = np.repeat(np.arange(1, 7), 20)
    values = 100 + rng.normal(0, 1, (7, 8, 6, len(y)))
    values += levels * rng.standard_normal((7, 8, 6, 6))[..., runs - 1] + np.tile(np.linspace(0, 2, 20), 6)
    values[FACE][y == "face"] += 3
    values[HOUSE][y == "house"] += 3
    inside = np.zeros((7, 8, 6), dtype=np.uint8)
    inside[1:6, 1:7, 1:5] = 1
    image = nibabel.Nifti1Image(values.astype(np.float32), AFFINE)
    return Planted(image, nibabel.Nifti1Image(inside, AFFINE), y, runs)


@pytest.fixture(scope="session")
def planted():
    return planted_scan()


@pytest.fixture(scope="session")
def make_planted():
    return planted_scan
