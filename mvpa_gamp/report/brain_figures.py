"""Brain maps on the mean volume: the same slices for all methods, also for data of a single slice."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, ListedColormap, Normalize
from matplotlib.figure import Figure
from numpy.typing import NDArray

from mvpa_gamp.imaging.map_names import entity
from mvpa_gamp.imaging.surface_names import is_surface_map
from mvpa_gamp.report.answers import answering, whole
from mvpa_gamp.report.outlines import Outline, cell_outlines, draw_outline
from mvpa_gamp.report.style import INK, QUIET, SHARES, WEIGHTS, Drawn, look, png_and_svg
from mvpa_gamp.report.volumes import AXES, PLANES, SIDES, Backdrop, Volume, peak_of, read_backdrop
from mvpa_gamp.results.reader import Results

_DRAWN = ("weight", "pattern", "pip", "selfreq")
_TITLES = {
    "weight": "weight",
    "pattern": "pattern",
    "pip": "inclusion probability",
    "selfreq": "selection frequency",
}
_SIGNED = ("weight", "pattern")
_WIDTH = 11.5  # inches: the page's width at a readable size of letters
_TALLEST = 2.6  # inches of a line: a single slice need not fill the page
_BAR = 0.12  # inches across a colour bar ...
_BESIDE = 0.62  # ... and the room for it and its numbers
_BETWEEN = 0.18  # inches between panels
_LEFT, _TOP, _BELOW = 0.35, 0.50, 0.40  # inches for the method's name, titles above, letters below a line
_SILHOUETTE = "#e3e7ea"
_RING = 12.0  # points, at least; around large voxels more
_FADED = 0.35  # opacity of what was not selected
_SMALLEST = 2.6  # points across a selected voxel, however fine the grid
# Values below this share of the scale stay transparent, so that the brain can be seen. A posterior is nowhere
# zero: where it hardly differs from the prior there is nothing to show.
_FAINT = {"weight": 0.05, "pip": 0.2, "selfreq": 0.0, "pattern": 0.0}


@dataclass(frozen=True)
class Panel:
    """One column of the figure: which map, through which plane, and whether as a maximum projection."""

    stat: str
    plane: str
    projection: bool = False

    @property
    def axis(self) -> int:
        """The axis that the plane cuts."""
        return PLANES[self.plane]

    @property
    def title(self) -> str:
        """The words above the column."""
        return f"{_TITLES[self.stat]}, {'from above' if self.projection else self.plane}"


@dataclass(frozen=True)
class MapLine:
    """One line of a figure: its label, the files of its maps by kind, its selection and its outlines."""

    label: str
    paths: Mapping[str, Path]
    selected: Path | None = None
    outlines: Sequence[Outline] = field(default_factory=tuple)


def _panels(shape: tuple[int, ...], shown: Collection[str]) -> list[Panel]:
    """The columns of the figure; a volume of one slice has no other planes to show.

    Patterns take the place of weights where there are none (means over subjects).
    """
    lead = _lead(shown)
    if min(shape) == 1:
        plane = next(name for name, axis in PLANES.items() if shape[axis] == 1)
        return [Panel(stat, plane) for stat in _DRAWN if stat in shown]
    panels = [
        *(Panel(lead, plane) for plane in PLANES),
        *([] if lead == "pattern" else [Panel("pattern", "axial")]),
        Panel("pip", "axial", projection=True),
        Panel("selfreq", "axial", projection=True),
    ]
    return [panel for panel in panels if panel.stat in shown]


def _lead(shown: Collection[str]) -> str:
    """The map whose peak decides on the slices."""
    return "weight" if "weight" in shown else "pattern"


def comparison_maps(results: Results, subject: str, contrast: str) -> Drawn:
    """Maps of the fit to all runs, a line per method; slices pass through the peak of the answering one."""
    first = answering(results, subject, contrast)
    lines = [
        MapLine(
            results.labels[method],
            {stat: results.folder.statmap(subject, contrast, entity(method), stat)
             for stat in results.stats(subject, contrast, method)},
            results.folder.selected_mask(subject, contrast, method),
            cell_outlines(results, subject, contrast, method),
        )
        for method in sorted(results.finished(subject, contrast), key=lambda name: name != first)
    ]  # fmt: skip
    return map_figure(lines, results.folder.background(subject), results.folder.mask(subject), results.banner)


def map_figure(lines: Sequence[MapLine], background: Path, mask: Path, banner: str | None) -> Drawn:
    """Maps on a mean volume, a line each; slices pass through the peak of the first line.

    Columns are the kinds of map that every line has, so that none is empty.
    """
    if is_surface_map(background):
        from mvpa_gamp.report.surface_figures import surface_figure

        return surface_figure(lines, background, banner)
    backdrop = read_backdrop(background, mask)
    shown = [stat for stat in _DRAWN if all(stat in line.paths for line in lines)]
    panels = _panels(backdrop.mean.data.shape, shown)
    loaded = [_load(line, backdrop, shown) for line in lines]
    lead = loaded[0].maps[_lead(shown)]
    peak = peak_of(lead)
    with look():
        places, height, inches_per_mm = _layout(backdrop.mean, panels)
        tall = _TOP + len(lines) * (height + _BELOW)
        figure = Figure(figsize=(_WIDTH, tall))
        ring = (
            max(_RING, 1.8 * float(backdrop.mean.zooms.mean()) * inches_per_mm * 72) if np.any(lead) else 0.0
        )
        for number, line in enumerate(loaded):
            bottom = tall - _TOP - (number + 1) * height - number * _BELOW
            sheet = Sheet(figure, backdrop, peak, ring, inches_per_mm)
            _draw_line(sheet, line, panels, places, bottom, height, titled=number == 0)
        return png_and_svg(figure, banner)


@dataclass(frozen=True)
class LoadedLine:
    """A line with its maps inside the box."""

    label: str
    maps: Mapping[str, NDArray]
    selected: NDArray | None
    outlines: Sequence[tuple[Outline, NDArray]]


def _load(line: MapLine, backdrop: Backdrop, shown: Sequence[str]) -> LoadedLine:
    maps = {stat: backdrop.read(line.paths[stat]).data for stat in shown}
    known = line.selected is not None and line.selected.is_file()
    selected = backdrop.read(line.selected).data > 0 if known and line.selected is not None else None
    selected = None if selected is None or not selected.any() else selected  # nothing to fade the rest for
    outlines = [(each, each.inside(backdrop.read(each.path).data)) for each in line.outlines]
    return LoadedLine(line.label, maps, selected, outlines)


@dataclass(frozen=True)
class Sheet:
    """What all panels of a figure share: where slices are cut, and the size of things."""

    figure: Figure
    backdrop: Backdrop
    peak: tuple[int, ...]
    ring: float  # points, 0 if all weights are zero
    inches_per_mm: float

    def axes(self, left: float, bottom: float, width: float, height: float) -> Axes:
        """Axes at a place in inches, without ticks and frame."""
        across, up = self.figure.get_size_inches()
        ax: Axes = self.figure.add_axes((left / across, bottom / up, width / across, height / up))
        ax.set_xticks([])
        ax.set_yticks([])
        ax.spines[:].set_visible(False)
        return ax


def _layout(mean: Volume, panels: Sequence[Panel]) -> tuple[list[tuple[float, float, float]], float, float]:
    """Left side, width and height of each panel and the height of a line in inches, and inches per mm.

    A colour bar stands behind the last panel of each kind of map.
    """
    size = mean.zooms * mean.data.shape
    planes = [np.delete(size, panel.axis) for panel in panels]
    bars = sum(_ends_kind(panels, i) for i in range(len(panels)))
    room = _WIDTH - _LEFT - bars * _BESIDE - (len(panels) - 1) * _BETWEEN
    inches_per_mm = min(
        room / sum(float(plane[0]) for plane in planes), _TALLEST / max(float(p[1]) for p in planes)
    )
    places, left = [], _LEFT
    for i, (across, up) in enumerate(planes):
        width = inches_per_mm * float(across)
        places.append((left, width, inches_per_mm * float(up)))
        left += width + _BETWEEN + (_BESIDE if _ends_kind(panels, i) else 0)
    return places, max(height for _, _, height in places), inches_per_mm


def _ends_kind(panels: Sequence[Panel], i: int) -> bool:
    """Whether a panel is the last one of its kind of map."""
    return i + 1 == len(panels) or panels[i + 1].stat != panels[i].stat


def _draw_line(
    sheet: Sheet, line: LoadedLine, panels: Sequence[Panel], places: Sequence[tuple[float, float, float]],
    bottom: float, height: float, titled: bool,
) -> None:  # fmt: skip
    """All panels of one method with their colour bars."""
    across, up = sheet.figure.get_size_inches()
    middle = (bottom + height / 2) / up
    sheet.figure.text(
        0.1 / across, middle, line.label, rotation=90, ha="center", va="center", fontsize=9, color=INK
    )
    for i, (panel, (left, width, tall)) in enumerate(zip(panels, places, strict=True)):
        ax = sheet.axes(left, bottom, width, tall)
        colours, scale = _scale(panel.stat, line.maps[panel.stat])
        _draw_panel(ax, sheet, line, panel, colours, scale)
        if titled:
            ax.set_title(panel.title, fontsize=8.5, pad=13)
        if _ends_kind(panels, i):
            _colour_bar(
                sheet.axes(left + width + 0.14, bottom + 0.15 * tall, _BAR, 0.7 * tall), colours, scale
            )


def _draw_panel(
    ax: Axes, sheet: Sheet, line: LoadedLine, panel: Panel, colours: Colormap, scale: Normalize
) -> None:
    """A slice of the mean volume, or the shadow of the analysed voxels, with the map above it."""
    backdrop, axis, at = sheet.backdrop, panel.axis, sheet.peak[panel.axis]

    def seen(volume: NDArray) -> NDArray:
        return volume.max(axis=axis) if panel.projection else np.take(volume, at, axis=axis)

    if panel.projection:
        shadow = np.ma.masked_equal(seen(backdrop.analysed), False)
        _show(ax, shadow, ListedColormap([_SILHOUETTE]), Normalize(0, 1))
    else:
        _show(ax, np.ma.masked_array(seen(backdrop.mean.data), ~seen(backdrop.inside)), "gray", backdrop.grey)
    values = seen(line.maps[panel.stat])
    faint = np.abs(values) <= _FAINT[panel.stat] * (scale.vmax or 1.0)
    chosen = None if line.selected is None or panel.stat not in _SIGNED else seen(line.selected)
    _show(
        ax,
        np.ma.masked_array(values, faint),
        colours,
        scale,
        1.0 if chosen is None else np.where(chosen, 1.0, _FADED),
    )
    _enlarge(
        ax, sheet, panel, np.where(faint if chosen is None else ~chosen | faint, 0, values), colours, scale
    )
    for outline, voxels in line.outlines:
        if outline.stat in (None, panel.stat):
            draw_outline(ax, seen(voxels), outline)
    _annotate(ax, sheet, panel)


def _show(
    ax: Axes, plane: NDArray, colours: str | Colormap, scale: Normalize, opacity: float | NDArray = 1.0
) -> None:
    """An image with the first axis to the right and the second upwards."""
    alpha = opacity if isinstance(opacity, float) else opacity.T
    ax.imshow(
        plane.T, origin="lower", aspect="auto", cmap=colours, norm=scale, interpolation="none", alpha=alpha
    )


def _enlarge(
    ax: Axes, sheet: Sheet, panel: Panel, values: NDArray, colours: Colormap, scale: Normalize
) -> None:
    """Squares on sparse voxels that a fine grid would make too small to be seen."""
    size = 72 * sheet.inches_per_mm * float(np.delete(sheet.backdrop.mean.zooms, panel.axis).min())
    there = np.argwhere(values != 0)
    if size >= _SMALLEST or not 0 < len(there) < 0.02 * values.size:
        return
    across, up = there.T
    shade = values[across, up]
    ax.scatter(across, up, c=shade, s=_SMALLEST**2, marker="s", lw=0, cmap=colours, norm=scale)


def _scale(stat: str, values: NDArray) -> tuple[Colormap, Normalize]:
    """Signed maps are symmetric around zero, shares run from 0 to 1."""
    if stat not in _SIGNED:
        return SHARES, Normalize(0, 1)
    top = float(np.abs(values).max()) or 1.0
    return WEIGHTS, Normalize(-top, top)


def _annotate(ax: Axes, sheet: Sheet, panel: Panel) -> None:
    """Letters at the four sides, the slice's coordinate below, a ring around the peak."""
    axis, mean = panel.axis, sheet.backdrop.mean
    words = "largest value of all slices"
    if not panel.projection:
        words = f"{AXES[axis]} = {whole((mean.affine @ [*sheet.peak, 1])[axis])} mm"
        if sheet.ring:
            across, up = np.delete(sheet.peak, axis)
            _draw_ring(ax, across, up, sheet.ring)
    (left, right), (bottom, top) = (SIDES[side] for side in range(3) if side != axis)
    for x, y, ha, va, letter in (
        (0.0, 0.0, "left", "top", left),
        (1.0, 0.0, "right", "top", right),
        (0.5, 0.0, "center", "top", bottom),
        (0.5, 1.0, "center", "bottom", top),
    ):
        ax.text(x, y, letter, transform=ax.transAxes, ha=ha, va=va, fontsize=7, color=QUIET)
    ax.annotate(
        words, (0.5, 0), (0, -10), "axes fraction", "offset points", ha="center", va="top",
        fontsize=7, color=QUIET,
    )  # fmt: skip


def _draw_ring(ax: Axes, across: int, up: int, size: float) -> None:
    """A dark ring with a white one around it, to be seen on dark and on pale voxels."""
    for colour, width in (("white", 2.2), (INK, 0.9)):
        ax.plot(across, up, "o", ms=size, mfc="none", mec=colour, mew=width)


def _colour_bar(ax: Axes, colours: Colormap, scale: Normalize) -> None:
    """A bar with the numbers of its scale."""
    low, high = float(scale.vmin or 0.0), float(scale.vmax or 1.0)
    bar: Any = ax.figure.colorbar(ScalarMappable(scale, colours), cax=ax)
    bar.set_ticks([low, (low + high) / 2, high], labels=[_tick(low), _tick((low + high) / 2), _tick(high)])
    bar.ax.tick_params(labelsize=7, length=2, pad=1.5, colors=QUIET)
    bar.outline.set_visible(False)


def _tick(value: float) -> str:
    digits = f"{value:.0f}" if abs(value) >= 100 else f"{value:.2g}"
    return digits.replace("-", "−")
