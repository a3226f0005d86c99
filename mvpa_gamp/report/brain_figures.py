"""Brain maps on the mean volume: the same slices for all methods, also for data of a single slice."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from mvpa_gamp.imaging.map_names import entity
from mvpa_gamp.imaging.surface_names import is_surface_map, is_there
from mvpa_gamp.report.answers import answering
from mvpa_gamp.report.brain_panels import (
    LoadedLine,
    Panel,
    Sheet,
    colour_bar,
    colours_and_scale,
    draw_lacking,
    draw_panel,
)
from mvpa_gamp.report.outlines import Outline, cell_outlines
from mvpa_gamp.report.recommended import informative_voxels
from mvpa_gamp.report.style import INK, Drawn, look, png_and_svg
from mvpa_gamp.report.volumes import PLANES, Backdrop, Volume, peak_of, read_backdrop
from mvpa_gamp.results.reader import Results

_DRAWN = ("information", "logpfwe", "weight", "pattern", "pip", "selfreq")
_WIDTH = 11.5  # inches: the page's width at a readable size of letters
_TALLEST = 2.6  # inches of a line: a single slice need not fill the page
_BAR = 0.12  # inches across a colour bar ...
_BESIDE = 0.52  # ... and the room for it and its numbers
_BETWEEN = 0.24  # inches between panels
_LEFT, _TOP, _BELOW = 0.42, 0.62, 0.48  # inches for the method's name, titles above, letters below a line
_NEXT = 0.15  # inches above a line that hold the letter of its upper side
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


def first_line_share(lines: int, inches: float) -> float:
    """The share of a figure of so many lines, ``inches`` tall, that its titles and first line take."""
    return (_TOP + (inches - _TOP) / lines - _NEXT) / inches


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
        from mvpa_gamp.report.surface_figures import surface_figure

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
            _draw_line(sheet, line, panels, places, bottom, height, titled=number == 0)
        return png_and_svg(figure, banner)


def _load(line: MapLine, backdrop: Backdrop, shown: Sequence[str]) -> LoadedLine:
    maps = {stat: backdrop.read(line.paths[stat]).data for stat in shown if stat in line.paths}
    known = line.selected is not None and line.selected.is_file()
    selected = backdrop.read(line.selected).data > 0 if known and line.selected is not None else None
    selected = None if selected is None or not selected.any() else selected  # nothing to fade the rest for
    outlines = [(each, each.inside(backdrop.read(each.path).data)) for each in line.outlines]
    return LoadedLine(line.label, maps, selected, outlines)


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
        0.1 / across, middle, line.label, rotation=90, ha="center", va="center", color=INK,
        fontsize=min(9.0, 72 * (height + _BELOW) / (0.62 * len(line.label))),
    )  # fmt: skip
    for i, (panel, (left, width, tall)) in enumerate(zip(panels, places, strict=True)):
        low = bottom + (height - tall) / 2
        ax = sheet.axes(left, low, width, tall)
        if panel.stat not in line.maps:
            draw_lacking(ax, panel.stat)
            continue
        colours, scale = colours_and_scale(panel.stat, line.maps[panel.stat])
        draw_panel(ax, sheet, line, panel, colours, scale)
        if titled:
            x, y = (left + width / 2) / across, (bottom + height + 0.18) / up
            sheet.figure.text(x, y, panel.title, ha="center", va="bottom", fontsize=8.5, color=INK)
        if _ends_kind(panels, i):
            bar = sheet.axes(left + width + 0.14, low + 0.15 * tall, _BAR, 0.7 * tall)
            colour_bar(bar, colours, scale)
