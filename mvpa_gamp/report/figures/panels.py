"""Panels of brain figures: a slice or a projection of a map on the mean volume, outlines, colour bars."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Colormap, ListedColormap, Normalize
from matplotlib.figure import Figure
from numpy.typing import NDArray

from mvpa_gamp.imaging.names import entity
from mvpa_gamp.report.backdrops import AXES, FAMILY_WISE, PLANES, SIDES, Backdrop, at_least
from mvpa_gamp.report.style import INK, QUIET, SHARES, WEIGHTS
from mvpa_gamp.report.words import whole
from mvpa_gamp.results.reader import Results


@dataclass(frozen=True)
class Outline:
    """A map whose voxels from a level on are outlined, on panels of one kind of map (None: on all)."""

    path: Path
    level: float
    dash: str
    stat: str | None = None
    colour: str = INK

    def inside(self, values: NDArray) -> NDArray:
        """The voxels inside of the outline."""
        return at_least(values, self.level)


def cell_outlines(results: Results, subject: str, contrast: str, method: str) -> list[Outline]:
    """What inference found about a cell, and about its comparison."""
    folder, found = results.folder, results.inferred(subject, contrast, method)
    out = []
    if "logpfwe" in found:
        path = folder.statmap(subject, contrast, entity(method), "logpfwe")
        out.append(Outline(path, FAMILY_WISE, "-", "weight"))
    if "selection" in found:
        on = "pip" if "pip" in results.stats(subject, contrast, method) else "weight"
        out.append(Outline(folder.fdr_mask(subject, contrast, method), 1.0, ":", on))
    return out


def draw_outline(ax: Axes, inside: NDArray, outline: Outline) -> None:
    """Lines along the edges of voxels inside, on a narrow white halo; first axis to the right."""
    edges = voxel_edges(inside)
    if not len(edges):
        return
    for colour, width, dash in (("white", 1.2, "-"), (outline.colour, 0.7, outline.dash)):
        ax.add_collection(
            LineCollection(list(edges), colors=colour, linewidths=width, linestyles=dash), autolim=False
        )


def voxel_edges(inside: NDArray) -> NDArray:
    """The edges (n, 2, 2) around the True pixels of a plane; pixel i spans i - 0.5 to i + 0.5."""
    padded = np.pad(inside, 1)
    edges = []
    for axis in (0, 1):
        change = np.argwhere(np.diff(padded.astype(np.int8), axis=axis))  # between change and change + 1
        for first, second in change:
            at = [float(first), float(second)]
            at[axis] -= 0.5
            other = 1 - axis
            at[other] -= 1.0
            begin, end = at.copy(), at.copy()
            begin[other] -= 0.5
            end[other] += 0.5
            edges.append((begin, end))
    return np.array(edges).reshape(-1, 2, 2)


TITLES = {
    "information": "information",
    "logpfwe": "family-wise p",
    "weight": "weight",
    "pattern": "pattern",
    "pip": "inclusion probability",
    "selfreq": "selection frequency",
}
_SIGNED = ("weight", "pattern", "information")
_FADING = ("weight", "pattern")  # where the method selected nothing
_COMMON = ("information",)  # of the comparison, whatever the method: on its first line alone
_LEAST = {"logpfwe": FAMILY_WISE}  # values below are not shown
_SILHOUETTE = "#e3e7ea"
_FADED = 0.35  # opacity of what was not selected
_SMALLEST = 2.6  # points across a selected voxel, however fine the grid
# Values below this share of the scale stay transparent, so that the brain can be seen. A posterior is nowhere
# zero: where it hardly differs from the prior there is nothing to show.
_FAINT = {"weight": 0.05, "pip": 0.2}
_LETTERS = 8.0  # points, of sides and of numbers on colour bars
_LACKING = "this method\nhas none"


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


@dataclass(frozen=True)
class LoadedLine:
    """A line with its maps inside the box."""

    label: str
    maps: Mapping[str, NDArray]
    selected: NDArray | None
    outlines: Sequence[tuple[Outline, NDArray]]


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


def heading(panel: Panel, sheet: Sheet) -> tuple[str, str]:
    """The words above a column: which map, and where it is cut."""
    if panel.projection:
        return TITLES[panel.stat], "from above"
    at = whole((sheet.backdrop.mean.affine @ [*sheet.peak, 1])[panel.axis])
    return TITLES[panel.stat], f"{panel.plane}, {AXES[panel.axis]} = {at} mm"


def draw_panel(
    ax: Axes, sheet: Sheet, line: LoadedLine, panel: Panel, colours: Colormap, scale: Normalize
) -> None:
    """A slice of the mean volume, or the shadow of the analysed voxels, with the map above it."""
    backdrop, axis, at = sheet.backdrop, panel.axis, sheet.peak[panel.axis]

    def seen(volume: NDArray) -> NDArray:
        return _deepest(volume, axis) if panel.projection else np.take(volume, at, axis=axis)

    if panel.projection:
        shadow = np.ma.masked_equal(seen(backdrop.analysed), False)
        _show(ax, shadow, ListedColormap([_SILHOUETTE]), Normalize(0, 1))
    else:
        _show(ax, np.ma.masked_array(seen(backdrop.mean.data), ~seen(backdrop.inside)), "gray", backdrop.grey)
    values = seen(line.maps[panel.stat])
    faint = np.abs(values) <= _FAINT.get(panel.stat, 0.0) * (scale.vmax or 1.0)
    if panel.stat in _LEAST:
        faint = ~at_least(values, _LEAST[panel.stat])
    chosen = None if line.selected is None or panel.stat not in _FADING else seen(line.selected)
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


def _deepest(volume: NDArray, axis: int) -> NDArray:
    """The value of largest size along the line of sight."""
    if volume.dtype == bool:
        return np.asarray(volume.any(axis=axis))
    place = np.expand_dims(np.abs(volume).argmax(axis=axis), axis)
    return np.take_along_axis(volume, place, axis=axis).squeeze(axis)


def draw_lacking(ax: Axes, stat: str) -> None:
    """The place of a map that a method does not have."""
    if stat in _COMMON:
        return
    words = "no voxel at p ≤ 0.05" if stat in _LEAST else _LACKING
    ax.text(0.5, 0.5, words, transform=ax.transAxes, ha="center", va="center", fontsize=_LETTERS, color=QUIET)


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


def colours_and_scale(stat: str, values: NDArray) -> tuple[Colormap, Normalize]:
    """Signed maps are symmetric around zero, shares run from 0 to 1."""
    if stat in _LEAST:
        return SHARES, Normalize(_LEAST[stat], max(float(values.max()), 2.0))
    if stat not in _SIGNED:
        return SHARES, Normalize(0, 1)
    top = float(np.abs(values).max()) or 1.0
    return WEIGHTS, Normalize(-top, top)


def _annotate(ax: Axes, sheet: Sheet, panel: Panel) -> None:
    """Letters of the sides, and a ring at the peak."""
    if sheet.ring and not panel.projection:
        across, up = np.delete(sheet.peak, panel.axis)
        _draw_ring(ax, across, up, sheet.ring)
    _letter_sides(ax, sheet, panel)


def _letter_sides(ax: Axes, sheet: Sheet, panel: Panel) -> None:
    """Letters beside the brain, outside of what is seen of it."""
    axis, backdrop = panel.axis, sheet.backdrop
    seen = (
        backdrop.analysed.any(axis) if panel.projection else np.take(backdrop.inside, sheet.peak[axis], axis)
    )
    places = np.argwhere(seen) if seen.any() else np.argwhere(~seen)
    (x0, y0), (x1, y1) = places.min(axis=0) - 0.5, places.max(axis=0) + 0.5
    (left, right), (bottom, top) = (SIDES[side] for side in range(3) if side != axis)
    x, y = (x0 + x1) / 2, (y0 + y1) / 2
    for at, away, ha, va, letter in (
        ((x0, y), (-2, 0), "right", "center", left),
        ((x1, y), (2, 0), "left", "center", right),
        ((x, y0), (0, -2), "center", "top", bottom),
        ((x, y1), (0, 2), "center", "bottom", top),
    ):
        ax.annotate(letter, at, away, "data", "offset points", ha=ha, va=va, fontsize=_LETTERS, color=QUIET)


def _draw_ring(ax: Axes, across: int, up: int, size: float) -> None:
    """A dark ring with a white one around it, to be seen on dark and on pale voxels."""
    for colour, width in (("white", 2.2), (INK, 0.9)):
        ax.plot(across, up, "o", ms=size, mfc="none", mec=colour, mew=width)


def colour_bar(ax: Axes, colours: Colormap, scale: Normalize) -> None:
    """A bar with the numbers of its scale."""
    low, high = float(scale.vmin or 0.0), float(scale.vmax or 1.0)
    bar: Any = ax.figure.colorbar(ScalarMappable(scale, colours), cax=ax, orientation="horizontal")
    bar.set_ticks([low, (low + high) / 2, high], labels=[_tick(low), _tick((low + high) / 2), _tick(high)])
    bar.ax.tick_params(labelsize=_LETTERS, length=2, pad=1.5, colors=QUIET)
    bar.outline.set_visible(False)


def _tick(value: float) -> str:
    digits = f"{value:.0f}" if abs(value) >= 100 else f"{value:.2g}"
    return digits.replace("e-0", "e-").replace("-", "−")
