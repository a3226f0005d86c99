"""Brain maps on the mean volume: slices through the peak, also for data of a single slice."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import nibabel
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, ListedColormap, Normalize
from matplotlib.figure import Figure
from numpy.typing import NDArray

from mvpa_gamp.imaging.map_names import entity
from mvpa_gamp.report.style import INK, QUIET, SHARES, WEIGHTS, look, png
from mvpa_gamp.results.reader import Results

_PLANES = {"sagittal": 0, "coronal": 1, "axial": 2}
_AXIS_NAMES = "xyz"
_SIDES = (("L", "R"), ("P", "A"), ("I", "S"))  # where the axes of the canonical orientation begin and end
_DRAWN = ("weight", "pattern", "pip", "selfreq")
_WIDTH = 11.5  # inches: the page's width at a readable size of letters
_BELOW = 0.52  # inches below a line, for letters
_SILHOUETTE = "#e3e7ea"
_RING = 12.0  # points, at least; around large voxels more
# Values below this share of the scale stay transparent, so that the brain can be seen. A posterior is nowhere
# zero: where it hardly differs from the prior there is nothing to show.
_FAINT = {"weight": 0.05, "pip": 0.2, "selfreq": 0.0, "pattern": 0.0}


@dataclass(frozen=True)
class Panel:
    """One column of the figure: which map, through which plane, and whether as a maximum projection."""

    stat: str
    plane: str
    title: str
    projection: bool = False


@dataclass(frozen=True)
class MapLine:
    """One line of a figure: its label, and the files of its maps by kind."""

    label: str
    paths: Mapping[str, Path]


def _panels(shape: tuple[int, ...], shown: Collection[str]) -> list[Panel]:
    """The columns of the figure; a volume of one slice has no other planes to show.

    Patterns take the place of weights where there are none (means over subjects).
    """
    lead = _lead(shown)
    if min(shape) == 1:
        plane = next(name for name, axis in _PLANES.items() if shape[axis] == 1)
        titles = {
            "weight": "weight",
            "pattern": "pattern",
            "pip": "inclusion prob.",
            "selfreq": "selection freq.",
        }
        return [Panel(stat, plane, title) for stat, title in titles.items() if stat in shown]
    panels = [
        *(Panel(lead, plane, f"{lead}, {plane}") for plane in _PLANES),
        *([] if lead == "pattern" else [Panel("pattern", "axial", "pattern, axial")]),
        Panel("pip", "axial", "inclusion, from above", projection=True),
        Panel("selfreq", "axial", "selection, from above", projection=True),
    ]
    return [panel for panel in panels if panel.stat in shown]


def _lead(shown: Collection[str]) -> str:
    """The map whose peak decides on the slices."""
    return "weight" if "weight" in shown else "pattern"


def comparison_maps(results: Results, subject: str, contrast: str) -> bytes:
    """All maps of one comparison, a line per method (refit on all runs)."""
    lines = [
        MapLine(results.labels[method], {
            stat: results.folder.statmap(subject, contrast, entity(method), stat)
            for stat in results.stats(subject, contrast, method)
        })
        for method in results.finished(subject, contrast)
    ]  # fmt: skip
    return map_figure(lines, results.folder.background(subject), results.folder.mask(subject), results.banner)


def map_figure(lines: Sequence[MapLine], background: Path, mask: Path, banner: str | None) -> bytes:
    """Maps on a mean volume, a line each; the box is cut to what can be seen or is inside the mask."""
    backdrop = _backdrop(background, mask)
    shown = {stat for line in lines for stat in line.paths}
    panels = _panels(backdrop.mean.data.shape, shown)
    with look():
        widths, height, inches_per_mm = _sizes(backdrop.mean, panels)
        figure = Figure(figsize=(_WIDTH, len(lines) * (height + _BELOW)))
        axes = figure.subplots(len(lines), len(panels), squeeze=False, width_ratios=widths)
        figure.subplots_adjust(left=0.04, right=1, bottom=0, top=1, wspace=0.1, hspace=_BELOW / height)
        for row, line in zip(axes, lines, strict=True):
            _draw_line(list(row), line, backdrop, panels, _ring_size(backdrop.mean, inches_per_mm))
        for ax, panel in zip(axes[0], panels, strict=True):
            place = ax.get_position(original=True)
            above = place.y1 + 0.15 / figure.get_figheight()
            figure.text((place.x0 + place.x1) / 2, above, panel.title, ha="center", fontsize=8.5)
        _colour_bars(figure)
        return png(figure, banner)


@dataclass(frozen=True)
class Volume:
    """A volume in the closest canonical (RAS) orientation."""

    data: NDArray
    affine: NDArray

    def cut(self, box: tuple[slice, ...]) -> "Volume":
        """The part inside a box of voxels; coordinates stay true."""
        affine = self.affine.copy()
        affine[:3, 3] += affine[:3, :3] @ [side.start for side in box]
        return Volume(self.data[box], affine)

    @property
    def zooms(self) -> NDArray:
        """Voxel sizes in mm."""
        return np.sqrt((self.affine[:3, :3] ** 2).sum(axis=0))


def _volume(path: Path) -> Volume:
    """A map with its axes turned to right, anterior, superior."""
    image = nibabel.as_closest_canonical(nibabel.load(path))
    return Volume(np.asarray(image.dataobj, dtype=float), image.affine)


@dataclass(frozen=True)
class Backdrop:
    """What lies under the maps: the mean volume inside a box, where it is not air, and its scale of grey.

    Under a projection lies the shadow of all analysed voxels, because a slice would not hold all of them.
    """

    box: tuple[slice, ...]
    mean: Volume
    inside: NDArray  # not air, or analysed
    analysed: NDArray
    grey: Normalize


def _backdrop(background: Path, mask: Path) -> Backdrop:
    """The mean volume, cut to the voxels that can be seen or were analysed, with a margin of one."""
    whole = _volume(background)
    values = np.nan_to_num(whole.data)
    analysed = _volume(mask).data > 0
    inside = (values > 0.1 * np.percentile(values, 98)) | analysed
    seen = np.argwhere(inside)
    low, high = np.maximum(seen.min(axis=0) - 1, 0), np.minimum(seen.max(axis=0) + 2, values.shape)
    box = tuple(slice(int(a), int(b)) for a, b in zip(low, high, strict=True))
    dark, bright = np.percentile(values[inside], [1, 99.5]) if inside.any() else (0.0, 1.0)
    span = (bright - dark) or 1.0
    pale = Normalize(dark - 0.9 * span, bright + 0.15 * span)  # so that colour stands out
    return Backdrop(box, whole.cut(box), inside[box], analysed[box], pale)


def _sizes(background: Volume, panels: list[Panel]) -> tuple[list[float], float, float]:
    """Width of each panel in mm, height of a line in inches, and inches per mm, the same for all."""
    size = background.zooms * background.data.shape
    planes = [np.delete(size, _PLANES[panel.plane]) for panel in panels]
    widths = [float(plane[0]) for plane in planes]
    inches_per_mm = 0.92 * _WIDTH / sum(widths)
    return widths, inches_per_mm * max(float(plane[1]) for plane in planes), inches_per_mm


def _ring_size(background: Volume, inches_per_mm: float) -> float:
    """Points across a ring that leaves the voxel inside it free."""
    return max(_RING, 1.8 * float(background.zooms.mean()) * inches_per_mm * 72)


def _draw_line(axes: list[Axes], line: MapLine, backdrop: Backdrop, panels: list[Panel], ring: float) -> None:
    """All panels of one method; ``ring`` is the size of the ring around the peak."""
    maps = {stat: _volume(path).cut(backdrop.box) for stat, path in line.paths.items() if stat in _DRAWN}
    lead = maps[_lead(maps)].data
    peak, ring = _peak(lead), ring if np.any(lead) else 0.0
    axes[0].set_ylabel(line.label, fontsize=9, color=INK, labelpad=8)
    for ax, panel in zip(axes, panels, strict=True):
        ax.set_xticks([])
        ax.set_yticks([])
        ax.set_anchor("S")
        for spine in ax.spines.values():
            spine.set_visible(False)
        if panel.stat not in maps:
            _draw_nothing(ax, backdrop.mean, panel)
            continue
        _draw_panel(ax, maps[panel.stat], backdrop, panel, peak, ring)


def _draw_nothing(ax: Axes, background: Volume, panel: Panel) -> None:
    """An empty panel of the right shape, for a map that the method does not have."""
    axis = _PLANES[panel.plane]
    width, height = np.delete(background.zooms, axis)
    nothing = np.ma.masked_array(np.zeros(tuple(np.delete(background.data.shape, axis))), mask=True)
    _show(ax, nothing, float(height / width), "gray", Normalize(0, 1))
    said = "no selection" if panel.stat == "selfreq" else "no posterior"
    ax.text(0.5, 0.5, said, transform=ax.transAxes, ha="center", va="center", color=QUIET, fontsize=7.5)


def _peak(weights: NDArray) -> tuple[int, ...]:
    """The voxel with the largest absolute weight; the centre of the volume if all weights are zero."""
    if not np.any(weights):
        return tuple(side // 2 for side in weights.shape)
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(np.abs(weights))), weights.shape))


def _draw_panel(
    ax: Axes, volume: Volume, backdrop: Backdrop, panel: Panel, peak: tuple[int, ...], ring: float
) -> None:
    """A slice of the mean volume with the map above it; no ring (0) if all weights are zero."""
    axis = _PLANES[panel.plane]
    width, height = np.delete(volume.zooms, axis)
    aspect = float(height / width)
    if panel.projection:
        above = volume.data.max(axis=axis)
        shadow = backdrop.analysed.any(axis=axis)
        _show(ax, np.ma.masked_equal(shadow, False), aspect, ListedColormap([_SILHOUETTE]), Normalize(0, 1))
    else:
        above = np.take(volume.data, peak[axis], axis=axis)
        below = np.take(backdrop.mean.data, peak[axis], axis=axis)
        outside = ~np.take(backdrop.inside, peak[axis], axis=axis)
        _show(ax, np.ma.masked_array(below, outside), aspect, "gray", backdrop.grey)
    colours, scale = _scale(panel.stat, volume.data)
    faint = np.abs(above) <= _FAINT[panel.stat] * (scale.vmax or 1.0)
    _show(ax, np.ma.masked_array(above, faint), aspect, colours, scale)
    _annotate(ax, volume, panel, peak, ring)


def _show(ax: Axes, plane: NDArray, aspect: float, colours: str | Colormap, scale: Normalize) -> None:
    """An image with the first axis to the right and the second upwards."""
    ax.imshow(plane.T, origin="lower", aspect=aspect, cmap=colours, norm=scale, interpolation="nearest")


def _scale(stat: str, values: NDArray) -> tuple[Colormap, Normalize]:
    """Signed maps are symmetric around zero, shares run from 0 to 1."""
    if stat in ("pip", "selfreq"):
        return SHARES, Normalize(0, 1)
    top = float(np.abs(values).max()) or 1.0
    return WEIGHTS, Normalize(-top, top)


def _annotate(ax: Axes, volume: Volume, panel: Panel, peak: tuple[int, ...], ring: float) -> None:
    """Letters at the four sides, the slice's coordinate below, a ring around the peak."""
    axis = _PLANES[panel.plane]
    if panel.projection:
        text = "largest value of all slices"
    elif not np.any(volume.data):
        text = "nothing selected"
    else:
        place = (volume.affine @ [*peak, 1])[axis]
        text = f"{_AXIS_NAMES[axis]} = {place:.0f} mm"
        if ring:
            across, up = np.delete(peak, axis)
            _draw_ring(ax, across, up, ring)
    (left, right), (bottom, top) = (_SIDES[side] for side in range(3) if side != axis)
    for x, y, ha, va, letter in (
        (0.0, 0.0, "left", "top", left),
        (1.0, 0.0, "right", "top", right),
        (0.5, 0.0, "center", "top", bottom),
        (0.5, 1.0, "center", "bottom", top),
    ):
        ax.text(x, y, letter, transform=ax.transAxes, ha=ha, va=va, fontsize=7, color=QUIET)
    ax.annotate(
        text, (0.5, 0), (0, -11), "axes fraction", "offset points", ha="center", va="top",
        fontsize=7, color=QUIET,
    )  # fmt: skip


def _draw_ring(ax: Axes, across: int, up: int, size: float) -> None:
    """A dark ring with a white one around it, to be seen on dark and on pale voxels."""
    for colour, width in (("white", 2.2), (INK, 0.9)):
        ax.plot(across, up, "o", ms=size, mfc="none", mec=colour, mew=width)


def _colour_bars(figure: Figure) -> None:
    """One bar for signed maps (each scaled to its own largest value), one for shares."""
    bottom, height = -0.65 / figure.get_figheight(), 0.09 / figure.get_figheight()
    signed = figure.add_axes((0.16, bottom, 0.24, height))
    share = figure.add_axes((0.60, bottom, 0.24, height))
    for ax, colours, limits, ticks, names, title in (
        (signed, WEIGHTS, (-1, 1), (-1, 0, 1), ("−max", "0", "max"), "weight, pattern"),
        (share, SHARES, (0, 1), (0, 0.5, 1), ("0", "0.5", "1"), "inclusion probability, selection frequency"),
    ):
        bar = figure.colorbar(ScalarMappable(Normalize(*limits), colours), cax=ax, orientation="horizontal")
        bar.set_ticks(ticks, labels=names)
        bar.ax.tick_params(labelsize=7, length=2)
        bar.outline.set_visible(False)
        ax.set_title(title, fontsize=7.5, pad=3, color=QUIET)
