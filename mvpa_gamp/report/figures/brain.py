"""Brain maps on the mean volume, the same slices for all methods, and glass brains."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from numpy.typing import NDArray

from mvpa_gamp.imaging.names import entity, is_surface_map, is_there
from mvpa_gamp.report.backdrops import AXES, PLANES, Backdrop, Volume, peak_of, read_backdrop, read_volume
from mvpa_gamp.report.facts import answering, informative_voxels
from mvpa_gamp.report.figures.panels import (
    LoadedLine,
    Outline,
    Panel,
    Sheet,
    cell_outlines,
    colour_bar,
    colours_and_scale,
    draw_lacking,
    draw_panel,
    heading,
)
from mvpa_gamp.report.style import INK, QUIET, SHARES, WEIGHTS, Drawn, look, png_and_svg
from mvpa_gamp.results.reader import Results

_DRAWN = ("information", "logpfwe", "weight", "pattern", "pip", "selfreq")
_WIDTH = 9.2  # inches: letters of 8 points are 12 pixels on a page 1,000 pixels wide
_TALLEST = 2.1  # inches of a line: a single slice need not fill the page
_BAR = 0.09  # inches across a colour bar, ...
_LOWER = 0.2  # ... its upper edge below a line ...
_LONGEST = 1.5  # ... and its length at most
_BETWEEN = 0.24  # inches between panels
_LEFT, _RIGHT, _TOP, _BELOW = 0.4, 0.14, 0.76, 0.68  # inches for names, titles, and what is below a line
_NEXT = 0.16  # inches above a line that hold the letter of its upper side
_HEADING = 8.5  # points; less where panels are narrow
_LETTER = 0.6  # its width, as a share of its size
_RING = 12.0  # points, at least; around large voxels more


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
        Panel("information", "axial", projection=True),
        Panel("logpfwe", "axial", projection=True),
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
             for stat in results.stats(subject, contrast, method) if stat != "logpfwe"}
            | (_information(results, subject, contrast) if method == first else {}),
            results.folder.selected_mask(subject, contrast, method),
            cell_outlines(results, subject, contrast, method),
        )
        for method in sorted(results.finished(subject, contrast), key=lambda name: name != first)
    ]  # fmt: skip
    return map_figure(lines, results.folder.background(subject), results.folder.mask(subject), results.banner)


def _information(results: Results, subject: str, contrast: str) -> dict[str, Path]:
    """The tested information map, which is the comparison's, if any voxel passed."""
    path = results.folder.tested_information(subject, contrast)
    found = informative_voxels(results, subject, contrast) and is_there(path)
    return {"information": path} if found else {}


def map_figure(lines: Sequence[MapLine], background: Path, mask: Path, banner: str | None) -> Drawn:
    """Maps on a mean volume, a line each; slices pass through the peak of the first line.

    Where that one selected no voxel, it is the peak of its pattern, as in the answer.
    Columns are the kinds of map that the first line has: the answering method's, or what all methods have.
    """
    if is_surface_map(background):
        from mvpa_gamp.report.figures.surface import surface_figure

        return surface_figure(lines, background, banner)
    backdrop = read_backdrop(background, mask)
    shown = [stat for stat in _DRAWN if stat in lines[0].paths]
    panels = _panels(backdrop.mean.data.shape, shown)
    loaded = [_load(line, backdrop, shown) for line in lines]
    unselective = lines[0].selected is not None and loaded[0].selected is None
    lead = loaded[0].maps["pattern" if unselective and "pattern" in shown else _lead(shown)]
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
            _draw_line(sheet, line, panels, places, bottom, height)
        _write_headings(sheet, panels, places)
        end = _TOP + height + _BELOW - _NEXT
        return png_and_svg(figure, banner, (_TOP - _NEXT, end) if len(lines) > 1 else None)


def _load(line: MapLine, backdrop: Backdrop, shown: Sequence[str]) -> LoadedLine:
    maps = {stat: backdrop.read(line.paths[stat]).data for stat in shown if stat in line.paths}
    known = line.selected is not None and line.selected.is_file()
    selected = backdrop.read(line.selected).data > 0 if known and line.selected is not None else None
    selected = None if selected is None or not selected.any() else selected  # nothing to fade the rest for
    outlines = [(each, each.inside(backdrop.read(each.path).data)) for each in line.outlines]
    return LoadedLine(line.label, maps, selected, outlines)


def _layout(mean: Volume, panels: Sequence[Panel]) -> tuple[list[tuple[float, float, float]], float, float]:
    """Left side, width and height of each panel and the height of a line in inches, and inches per mm."""
    size = mean.zooms * mean.data.shape
    planes = [np.delete(size, panel.axis) for panel in panels]
    room = _WIDTH - _LEFT - _RIGHT - (len(panels) - 1) * _BETWEEN
    inches_per_mm = min(
        room / sum(float(plane[0]) for plane in planes), _TALLEST / max(float(p[1]) for p in planes)
    )
    spare = (room - inches_per_mm * sum(float(plane[0]) for plane in planes)) / len(panels)
    places, left = [], _LEFT + spare / 2
    for across, up in planes:
        width = inches_per_mm * float(across)
        places.append((left, width, inches_per_mm * float(up)))
        left += width + _BETWEEN + spare
    return places, max(height for _, _, height in places), inches_per_mm


def _draw_line(
    sheet: Sheet, line: LoadedLine, panels: Sequence[Panel], places: Sequence[tuple[float, float, float]],
    bottom: float, height: float,
) -> None:  # fmt: skip
    """All panels of one method, below each kind of map its colour bar."""
    across, up = sheet.figure.get_size_inches()
    middle = (bottom + height / 2) / up
    sheet.figure.text(
        0.1 / across, middle, line.label, rotation=90, ha="center", va="center", color=INK,
        fontsize=min(9.0, 72 * (height + _BELOW) / (0.62 * len(line.label))),
    )  # fmt: skip
    for panel, (left, width, tall) in zip(panels, places, strict=True):
        ax = sheet.axes(left, bottom + (height - tall) / 2, width, tall)
        if panel.stat in line.maps:
            draw_panel(ax, sheet, line, panel, *colours_and_scale(panel.stat, line.maps[panel.stat]))
        else:
            draw_lacking(ax, panel.stat)
    for stat in dict.fromkeys(panel.stat for panel in panels if panel.stat in line.maps):
        mine = [place for panel, place in zip(panels, places, strict=True) if panel.stat == stat]
        left, right = mine[0][0], mine[-1][0] + mine[-1][1]
        long = min(0.8 * (right - left), _LONGEST)
        bar = sheet.axes((left + right - long) / 2, bottom - _LOWER - _BAR, long, _BAR)
        colour_bar(bar, *colours_and_scale(stat, line.maps[stat]))


def _write_headings(
    sheet: Sheet, panels: Sequence[Panel], places: Sequence[tuple[float, float, float]]
) -> None:
    """What the columns show, all in the same size: in two lines, or in three where panels are narrow."""
    across, up = sheet.figure.get_size_inches()
    said = [heading(panel, sheet) for panel in panels]
    words = [f"{name}\n{place}" for name, place in said]
    if _fitting(words, places) < _HEADING:
        words = ["\n".join((name.replace(" ", "\n"), place.replace(", ", "\n"))) for name, place in said]
    for lines, (left, width, _) in zip(words, places, strict=True):
        x, y = (left + width / 2) / across, 1 - (_TOP - 0.2) / up
        size = min(_HEADING, _fitting(words, places))
        sheet.figure.text(x, y, lines, ha="center", va="bottom", fontsize=size, color=INK)


def _fitting(words: Sequence[str], places: Sequence[tuple[float, float, float]]) -> float:
    """The size in points at which no heading reaches its neighbour."""
    return min(
        72 * (width + _BETWEEN) / (_LETTER * max(map(len, said.splitlines())))
        for said, (_, width, _) in zip(words, places, strict=True)
    )


_LIMITS = ((-76, 76), (-112, 80), (-75, 86))  # mm, around nilearn's outlines
_VIEWS = {"sagittal": "from the side", "coronal": "from behind", "axial": "from above"}
_INCHES_PER_MM = 0.0165
_SMALLEST = 3.0  # points across a voxel
_FAINT = 0.2  # of a probability: a posterior is nowhere zero, and below this hardly differs from the prior


def in_standard_space(data: Mapping[str, Any]) -> bool:
    """Whether coordinates are those of MNI152, by BIDS's name of the space or by the header's code."""
    named = data.get("bids_space")
    return str(named).startswith("MNI") if named else data.get("space") == "MNI152"


def glass_figure(path: Path, signed: bool, banner: str | None) -> Drawn:
    """Seen from the left, from behind and from above; zeros and faint probabilities are left out."""
    volume = read_volume(path)
    if not signed:
        volume = replace(volume, data=np.where(volume.data >= _FAINT, volume.data, 0.0))
    top = (float(np.abs(volume.data).max()) or 1.0) if signed else 1.0
    scale, colours = Normalize(-top if signed else 0, top), WEIGHTS if signed else SHARES
    sides = [
        [limits for axis, limits in enumerate(_LIMITS) if axis != through] for through in PLANES.values()
    ]
    widths = [_INCHES_PER_MM * (across[1] - across[0]) for across, _ in sides]
    with look():
        figure = Figure(figsize=(sum(widths) + 1.3, 3.6))
        across, up = figure.get_size_inches()
        left = 0.1
        for (plane, through), (wide, tall), width in zip(PLANES.items(), sides, widths, strict=True):
            height = _INCHES_PER_MM * (tall[1] - tall[0])
            ax = figure.add_axes(
                (left / across, 0.08 / up, width / across, height / up), xlim=wide, ylim=tall
            )
            _draw_view(ax, volume, through, scale, colours)
            middle = (left + width / 2) / across
            figure.text(middle, 3.28 / up, _VIEWS[plane], ha="center", va="bottom", fontsize=13)
            left += width + 0.15
        bar: Any = figure.add_axes(((left + 0.1) / across, 0.25, 0.12 / across, 0.5))
        figure.colorbar(ScalarMappable(scale, colours), cax=bar).outline.set_visible(False)
        bar.tick_params(labelsize=12.5, length=2, colors=QUIET)
        return png_and_svg(figure, banner)


def _draw_view(ax: Axes, volume: Volume, through: int, scale: Normalize, colours: Any) -> None:
    """The voxels that are not zero as squares in mm, and the outline of the brain."""
    from nilearn.plotting.glass_brain import plot_brain_schematics

    plot_brain_schematics(ax, AXES[through], alpha=0.6)
    shown, values = projected(volume, through)
    size = float(np.delete(volume.zooms, through).mean()) * _INCHES_PER_MM * 72
    order = np.argsort(np.abs(values))  # the largest on top
    spot = max(_SMALLEST, size) ** 2
    across, up = shown[order].T
    ax.scatter(across, up, c=values[order], cmap=colours, norm=scale, s=spot, marker="s", lw=0)
    ax.axis("off")


def projected(volume: Volume, through: int) -> tuple[NDArray, NDArray]:
    """Places (n, 2) in mm and values (n,) of largest size along an axis, where they are not zero."""
    size = np.abs(volume.data)
    deepest = np.expand_dims(size.argmax(axis=through), through)
    values = np.take_along_axis(volume.data, deepest, axis=through)
    there = np.argwhere(values != 0)
    voxels = there.copy()
    voxels[:, through] = deepest[tuple(there.T)]
    places = voxels @ volume.affine[:3, :3].T + volume.affine[:3, 3]
    return np.delete(places, through, axis=1), values[tuple(there.T)]
