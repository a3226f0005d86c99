"""Brain figures: what is drawn lies on what is shown below it, and every side has its letter."""

import nibabel
import numpy as np
import pytest
from matplotlib.figure import Figure

from mvpa_gamp.report import brain_figures

SHAPE = (8, 9, 7)
AFFINE = np.diag([3.0, 3.0, 4.0, 1.0])
SIDES = {"sagittal": "PAIS", "coronal": "LRIS", "axial": "LRPA"}


@pytest.fixture
def drawn(tmp_path):
    """The axes of a line of panels by title; the mask widens towards the top, the peak is at its bottom."""
    mask = np.zeros(SHAPE, dtype=np.uint8)
    for k in range(1, 6):
        mask[4 - k // 2 : 5 + k // 2, 4 - k // 2 : 5 + k // 2, k] = 1
    weight = np.zeros(SHAPE, dtype=np.float32)
    weight[4, 4, 1] = -2
    share = np.zeros(SHAPE, dtype=np.float32)
    share[2, 2, 5] = 0.9  # in no slice through the peak
    maps = {"weight": weight, "pattern": weight + mask, "pip": share, "selfreq": share}
    images = maps | {"mask": mask, "mean": 100.0 * mask}
    for name, values in images.items():
        nibabel.save(nibabel.Nifti1Image(values, AFFINE), tmp_path / f"{name}.nii.gz")
    backdrop = brain_figures._backdrop(tmp_path / "mean.nii.gz", tmp_path / "mask.nii.gz")
    panels = brain_figures._panels(backdrop.mean.data.shape, maps)
    axes = Figure().subplots(1, len(panels))
    line = brain_figures.MapLine("method", {name: tmp_path / f"{name}.nii.gz" for name in maps})
    brain_figures._draw_line(list(axes), line, backdrop, panels, 12.0)
    return dict(zip(panels, axes, strict=True))


def seen(image):
    return ~np.ma.getmaskarray(image.get_array())


def test_no_voxel_lies_outside_what_is_shown_below(drawn):
    for panel, ax in drawn.items():
        below, above = map(seen, ax.images)
        assert not (above & ~below).any(), panel.title
        if panel.projection:
            assert above.sum() == 1 and below.sum() == 25  # the widest slice
        else:
            assert above.any()


def test_every_side_has_its_letter(drawn):
    for panel, ax in drawn.items():
        places = {text.get_text(): text.get_position() for text in ax.texts}
        left, right, bottom, top = SIDES[panel.plane]
        assert places[left] == (0, 0) and places[right] == (1, 0)
        assert places[bottom] == (0.5, 0) and places[top] == (0.5, 1)
        words = [name for name in places if len(name) > 1]
        assert words == ["largest value of all slices"] if panel.projection else " mm" in words[0]


def test_the_ring_is_seen_on_dark_and_on_pale_voxels(drawn):
    for panel, ax in drawn.items():
        rings = [ax_line.get_markeredgecolor() for ax_line in ax.lines]
        assert rings == ([] if panel.projection else ["white", brain_figures.INK])
        widths = [ax_line.get_markeredgewidth() for ax_line in ax.lines]
        assert widths == sorted(widths, reverse=True)  # the white one shows on both sides of the dark one
