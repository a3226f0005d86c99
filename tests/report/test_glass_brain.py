"""The glass brain: every view shows the largest values at their places, and only standard space has one."""

import nibabel
import numpy as np
import pytest

from mvpa_gamp.report.backdrops import read_volume
from mvpa_gamp.report.figures.brain import glass_figure, in_standard_space, projected

AFFINE = np.array([[-4.0, 0, 0, 40], [0, 4, 0, -60], [0, 0, 4, -30], [0, 0, 0, 1]])  # left is stored last


@pytest.fixture
def path(tmp_path):
    values = np.zeros((20, 26, 18), dtype=np.float32)
    values[3, 5, 7], values[3, 5, 9] = 1.0, -2.0  # one above the other
    nibabel.save(nibabel.Nifti1Image(values, AFFINE), tmp_path / "weight.nii.gz")
    return tmp_path / "weight.nii.gz"


@pytest.mark.parametrize(
    ("through", "places"),
    [
        (0, {(-40.0, -2.0): 1.0, (-40.0, 6.0): -2.0}),
        (1, {(28.0, -2.0): 1.0, (28.0, 6.0): -2.0}),
        (2, {(28.0, -40.0): -2.0}),
    ],
)
def test_a_view_has_the_largest_value_along_its_line_of_sight(path, through, places):
    shown, values = projected(read_volume(path), through)
    assert dict(zip(map(tuple, shown.tolist()), values.tolist(), strict=True)) == places


def test_it_is_drawn_with_its_banner(path):
    drawn = glass_figure(path, True, "SIMULATED PHANTOM")
    assert drawn.png.startswith(b"\x89PNG") and b"SIMULATED PHANTOM" in drawn.svg


@pytest.mark.parametrize(
    ("data", "standard"),
    [
        ({"space": "MNI152"}, True),
        ({"space": "unknown", "bids_space": "MNI152NLin2009cAsym"}, True),
        ({"space": "MNI152", "bids_space": "T1w"}, False),
        ({"space": "scanner"}, False),
    ],
)
def test_only_standard_space_has_one(data, standard):
    assert in_standard_space(data) is standard
