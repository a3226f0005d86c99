"""Brain figures: what is drawn lies on what is shown below it, and every side has its letter."""

import nibabel
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from mvpa_gamp.report.figures import brain
from mvpa_gamp.report.figures import panels as panels_of
from mvpa_gamp.report.figures.panels import Outline, voxel_edges

SHAPE = (8, 9, 7)
AFFINE = np.diag([3.0, 3.0, 4.0, 1.0])
SIDES = {"sagittal": "PAIS", "coronal": "LRIS", "axial": "LRPA"}


@pytest.fixture(scope="module", params=[1, 2])
def drawn(tmp_path_factory, request):
    """Panels and axes of one or two lines; the mask widens towards the top, the peak is at its bottom."""
    tmp_path = tmp_path_factory.mktemp("maps")
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
    paths = {name: tmp_path / f"{name}.nii.gz" for name in images}
    lines = [
        brain.MapLine("method", {name: paths[name] for name in maps}, outlines=outlined(paths)),
        brain.MapLine("other", {name: paths[name] for name in ("weight", "pattern", "selfreq")}),
    ][: request.param]
    kept = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(brain, "png_and_svg", lambda figure, *_: kept.append(figure))
        brain.map_figure(lines, paths["mean"], paths["mask"], None)
    axes = [ax for ax in kept[0].axes if ax.images]  # without colour bars
    panels = brain._panels(SHAPE, maps)
    second = [panel for panel in panels if panel.stat != "pip"] if request.param == 2 else []
    said = [text.get_text() for ax in kept[0].axes if not ax.images for text in ax.texts]
    assert said == ["this method\nhas none"] * (request.param - 1)  # where the second line lacks a map
    return list(zip([*panels, *second], axes, strict=True))


def outlined(paths):
    return [Outline(paths["pip"], 0.5, "-", "weight"), Outline(paths["mask"], 1.0, ":", "pattern")]


def seen(image):
    return ~np.ma.getmaskarray(image.get_array())


def test_no_voxel_lies_outside_what_is_shown_below(drawn):
    for panel, ax in drawn:
        below, above = map(seen, ax.images)
        assert not (above & ~below).any(), panel
        if panel.projection:
            assert above.sum() == 1 and below.sum() == 25  # the widest slice
        else:
            assert above.any()


def test_every_side_has_its_letter(drawn):
    for panel, ax in drawn:
        places = {text.get_text(): text.xy for text in ax.texts}
        left, right, bottom, top = SIDES[panel.plane]
        (x0, y), (x1, _) = places[left], places[right]
        (x, y0), (_, y1) = places[bottom], places[top]
        assert x0 < x == (x0 + x1) / 2 < x1 and y0 < y == (y0 + y1) / 2 < y1
        there = ax.images[0].get_array()  # the mean volume, or the shadow: letters stand at its edges
        rows, columns = np.nonzero(~np.ma.getmaskarray(there))
        assert (columns.min() - 0.5, columns.max() + 0.5) == (x0, x1)
        assert (rows.min() - 0.5, rows.max() + 0.5) == (y0, y1)
        assert len(places) == 4


def test_the_ring_is_seen_on_dark_and_on_pale_voxels(drawn):
    for panel, ax in drawn:
        rings = [ax_line.get_markeredgecolor() for ax_line in ax.lines]
        assert rings == ([] if panel.projection else ["white", brain.INK])
        widths = [ax_line.get_markeredgewidth() for ax_line in ax.lines]
        assert widths == sorted(widths, reverse=True)  # the white one shows on both sides of the dark one


def test_columns_say_where_they_are_cut_and_bars_have_numbers(drawn):
    figure = drawn[0][1].figure
    lines = [text.get_text() for text in figure.texts if "\n" not in text.get_text()]
    headings = [text.get_text() for text in figure.texts if "\n" in text.get_text()]
    assert lines == ["method", "other"][: len(lines)]
    assert [" ".join(said.split()) for said in headings] == [  # once, above the first line
        "weight sagittal x = 12 mm", "weight coronal y = 12 mm", "weight axial z = 4 mm",
        "pattern axial z = 4 mm", "inclusion probability from above", "selection frequency from above",
    ]  # fmt: skip
    bars = [ax for ax in figure.axes if ax not in [ax for _, ax in drawn] and not ax.texts]
    assert {tuple(label.get_text() for label in bar.get_xticklabels()) for bar in bars} == {
        ("−2", "0", "2"), ("−1", "0", "1"), ("0", "0.5", "1"),
    }  # fmt: skip


def test_nothing_of_a_figure_overlaps_or_leaves_it(drawn):
    """Letters, headings, numbers of colour bars: each has its own space, inside the figure."""
    figure = drawn[0][1].figure
    pen = FigureCanvasAgg(figure).get_renderer()
    bars = [ax for ax in figure.axes if ax.get_xticklabels() and not ax.images and not ax.texts]
    texts = [*figure.texts, *(text for ax in figure.axes for text in ax.texts)]
    texts += [label for ax in bars for label in ax.get_xticklabels()]
    boxes = [text.get_window_extent(pen) for text in texts if text.get_text()]
    assert len(boxes) > 30
    width, height = figure.bbox.size
    assert all(b.x0 >= 0 and b.y0 >= 0 and b.x1 <= width and b.y1 <= height for b in boxes)
    touching = [(a, b) for i, a in enumerate(boxes) for b in boxes[:i] if a.overlaps(b)]
    assert touching == []


@pytest.mark.parametrize(
    ("value", "shown"),
    [(-0.000082, "−8.2e−5"), (203.4, "203"), (-0.88, "−0.88"), (0.0, "0"), (1e-12, "1e−12")],
)
def test_numbers_of_a_colour_bar_are_short(value, shown):
    assert panels_of._tick(value) == shown


def test_outlines_are_drawn_where_they_belong(drawn):
    for panel, ax in drawn[: len(drawn) // 2 or 1]:
        edges = [len(lines.get_segments()) for lines in ax.collections]
        if panel.stat == "pattern":
            assert edges == [4, 4]  # one voxel of the mask in the lowest slice, a halo and a line
        elif panel.stat == "weight":
            assert edges == []  # the voxel with probability 0.9 is in no slice through the peak


def test_edges_run_between_inside_and_outside():
    inside = np.zeros((4, 5), dtype=bool)
    inside[1, 2] = inside[2, 2] = True
    edges = {tuple(map(tuple, edge)) for edge in voxel_edges(inside)}
    assert edges == {
        ((0.5, 1.5), (0.5, 2.5)), ((2.5, 1.5), (2.5, 2.5)),
        ((0.5, 1.5), (1.5, 1.5)), ((0.5, 2.5), (1.5, 2.5)),
        ((1.5, 1.5), (2.5, 1.5)), ((1.5, 2.5), (2.5, 2.5)),
    }  # fmt: skip


def test_single_voxels_of_a_fine_grid_are_enlarged(tmp_path, monkeypatch):
    shape = (120, 120, 90)
    mask = np.ones(shape, dtype=np.uint8)
    weight = np.zeros(shape, dtype=np.float32)
    weight[60, 61, 45] = 1
    for name, values in {"mask": mask, "mean": mask * 9.0, "weight": weight, "selfreq": weight}.items():
        nibabel.save(nibabel.Nifti1Image(values, np.eye(4)), tmp_path / f"{name}.nii.gz")
    kept = []
    monkeypatch.setattr(brain, "png_and_svg", lambda figure, *_: kept.append(figure))
    maps = {name: tmp_path / f"{name}.nii.gz" for name in ("weight", "selfreq")}
    line = brain.MapLine("method", maps, tmp_path / "weight.nii.gz")
    brain.map_figure([line], tmp_path / "mean.nii.gz", tmp_path / "mask.nii.gz", None)
    panels = [ax for ax in kept[0].axes if ax.images]
    assert [len(ax.collections) for ax in panels] == [1, 1, 1, 1]
    assert all(ax.collections[0].get_sizes()[0] == panels_of._SMALLEST**2 for ax in panels)
