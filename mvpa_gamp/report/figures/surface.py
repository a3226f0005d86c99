"""Maps on surfaces: both hemispheres from outside and from inside, by nilearn's surface plotting."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, Normalize
from matplotlib.figure import Figure
from numpy.typing import NDArray

from mvpa_gamp.imaging.brainmaps import read_image
from mvpa_gamp.imaging.cortex import Cortex
from mvpa_gamp.report.figures.brain import MapLine
from mvpa_gamp.report.figures.panels import TITLES, Outline, colours_and_scale
from mvpa_gamp.report.style import INK, QUIET, Drawn, look, png_and_svg

# Rows of a method, in order, at most three; the share of folds where there is no inclusion probability.
# Before them the map that was tested.
_TESTED = ("information", "logpfwe")
_ROWS = ("weight", "pattern", "pip", "selfreq")
_SIGNED = ("weight", "pattern", "information")
_VIEWS = (("left", "lateral"), ("left", "medial"), ("right", "medial"), ("right", "lateral"))
# Shares of the scale that are not drawn.
_FAINT = {"weight": 0.05, "pattern": 0.25, "pip": 0.2, "selfreq": 0.01, "information": 0.01}
_WIDTH, _TALL = 9.2, 1.6  # inches of the figure and of a row
_LEFT, _TOP, _BAR = 0.45, 0.35, 0.75  # inches for names, titles and colour bars
_PALE = (0.08, 0.42)  # of nilearn's grey scale, from white to black
_DPI = 110  # of a hemisphere


def surface_figure(lines: Sequence["MapLine"], background: Path, banner: str | None) -> Drawn:
    """A row of four views per map and line: left and right hemisphere from outside and from inside.

    Meshes are inflated where they are known, grey is sulcal depth where it is known, else the mean image.
    """
    ground = read_image(background)
    rows = [(line, stat) for line in lines for stat in _shown(line)]
    views = [view for view in _VIEWS if view[0] in ground.cortex.parts]
    with look():
        tall = _TOP + _TALL * len(rows)
        figure = Figure(figsize=(_WIDTH, tall))
        width = (_WIDTH - _LEFT - _BAR) / len(views)
        for number, (line, stat) in enumerate(rows):
            values = read_image(line.paths[stat])
            bottom = tall - _TOP - (number + 1) * _TALL
            colours, scale = colours_and_scale(stat, ground.cortex.joined(values))
            outlines = [(o, read_image(o.path)) for o in line.outlines if o.stat in (None, stat)]
            for k, (part, view) in enumerate(views):
                box = (_LEFT + k * width, bottom, width, _TALL)
                picture = hemisphere(ground, values, (part, view), stat, colours, scale, outlines)
                _place(figure, box, picture, f"{part}, {_WORDS[view]}" if number == 0 else "")
            _name(figure, bottom, line.label, TITLES[stat])
            _colour_bar(figure, bottom, colours, scale)
        end = _TOP + _TALL * len(_shown(lines[0]))
        return png_and_svg(figure, banner, (_TOP, end) if len(lines) > 1 else None)


_WORDS = {"lateral": "from outside", "medial": "from inside"}


def _shown(line: "MapLine") -> list[str]:
    """The kinds of map that are drawn of a line: what was tested, and at most three others."""
    tested = [stat for stat in _TESTED if stat in line.paths]
    return tested + [stat for stat in _ROWS if stat in line.paths][:3]


def hemisphere(
    ground: Any, values: Any, seen: tuple[str, str], stat: str, colours: Colormap, scale: Normalize,
    outlines: Sequence[tuple["Outline", Any]] = (),
) -> NDArray:  # fmt: skip
    """One view as an image (height, width, 4), cut to the hemisphere; outlines come with their maps."""
    from nilearn.plotting import plot_surf_stat_map

    cortex, (part, view) = ground.cortex, seen
    sheet = Figure(figsize=(4, 4), dpi=_DPI)
    canvas = FigureCanvasAgg(sheet)
    axes = sheet.add_axes((0, 0, 1, 1), projection="3d")
    top = float(scale.vmax or 1.0)
    mesh = seen_mesh((cortex.drawn or cortex.mesh).parts[part], part, view)
    plot_surf_stat_map(
        mesh,
        _of_part(values, part),
        bg_map=_grey(cortex, ground, part),
        hemi=part,
        view=view,
        cmap=colours,
        colorbar=False,
        threshold=float(scale.vmin or 0.0) if stat == "logpfwe" else _FAINT[stat] * top,
        vmin=scale.vmin,
        vmax=top,
        symmetric_cbar=stat in _SIGNED,
        axes=axes,
        figure=sheet,
        engine="matplotlib",
    )
    for outline, image in outlines:
        _draw_outline(axes, mesh, outline.inside(_of_part(image, part)), outline)
    canvas.draw()
    return _cut(np.asarray(canvas.buffer_rgba()).copy())


def seen_mesh(mesh: Any, part: str, view: str) -> Any:
    """The same vertices with the faces that look towards the viewer: the others cost time and are hidden."""
    from nilearn.surface import InMemoryMesh

    places, faces = np.asarray(mesh.coordinates, dtype=float), np.asarray(mesh.faces)
    corners = places[faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    outwards = np.sign(np.sum(normals * (corners.mean(axis=1) - places.mean(axis=0)))) or 1.0
    side = -1.0 if (part == "left") == (view == "lateral") else 1.0  # where the viewer is along x
    return InMemoryMesh(mesh.coordinates, faces[side * outwards * normals[:, 0] > 0])


def _draw_outline(axes: Any, mesh: Any, inside: NDArray, outline: "Outline") -> None:
    """Lines around the vertices inside, on a white halo."""
    from mpl_toolkits.mplot3d.art3d import Line3DCollection

    lines = vertex_edges(mesh, inside)
    axes.computed_zorder = False  # above the surface, whose hidden side is not drawn
    strokes = (("white", 2.0, "-", 10), (outline.colour, 0.9, outline.dash, 11))
    for colour, width, dash, layer in strokes if len(lines) else ():
        drawn = Line3DCollection(lines, colors=colour, linewidths=width, linestyles=dash, zorder=layer)
        axes.add_collection3d(drawn, autolim=False)


def vertex_edges(mesh: Any, inside: NDArray) -> NDArray:
    """Lines (n, 2, 3) between vertices (V,) inside and outside, through the middle of the edges they cut."""
    faces, places = np.asarray(mesh.faces), np.asarray(mesh.coordinates, dtype=float)
    of_corners = inside[faces]
    mixed = of_corners.any(axis=1) & ~of_corners.all(axis=1)
    faces, of_corners = faces[mixed], of_corners[mixed]
    lone = np.where(of_corners.sum(axis=1) == 1, of_corners.argmax(axis=1), of_corners.argmin(axis=1))
    rows = np.arange(len(faces))
    alone = places[faces[rows, lone]]
    others = [places[faces[rows, (lone + step) % 3]] for step in (1, 2)]
    return np.stack([(alone + other) / 2 for other in others], axis=1).reshape(-1, 2, 3)


def _of_part(image: Any, part: str) -> NDArray:
    return np.asarray(image.data.parts[part], dtype=float)


def _grey(cortex: "Cortex", ground: Any, part: str) -> NDArray:
    """What is drawn below a map: sulcal depth, or the mean image, in pale grey, so that colour stands out."""
    depth = (cortex.sulci or {}).get(part)
    values = np.asarray(_of_part(ground, part) if depth is None else depth, dtype=float)
    low, high = np.percentile(values, [2, 98])
    return _PALE[0] + (_PALE[1] - _PALE[0]) * np.clip((values - low) / ((high - low) or 1.0), 0, 1)


def _cut(picture: NDArray) -> NDArray:
    """An image without its white border."""
    there = np.argwhere((picture[..., :3] < 250).any(axis=2))
    if not len(there):
        return picture
    (top, left), (bottom, right) = there.min(axis=0), there.max(axis=0) + 1
    return picture[top:bottom, left:right]


def _place(figure: Figure, box: tuple[float, float, float, float], picture: NDArray, title: str) -> None:
    across, up = figure.get_size_inches()
    left, bottom, width, height = box
    ax = figure.add_axes((left / across, bottom / up, 0.96 * width / across, 0.94 * height / up))
    ax.imshow(picture, interpolation="antialiased")
    ax.axis("off")
    if title:
        ax.set_title(title, fontsize=8.5, pad=4)


def _name(figure: Figure, bottom: float, label: str, title: str) -> None:
    across, up = figure.get_size_inches()
    at = (bottom + _TALL / 2) / up
    for x, words, colour in ((0.1, label, INK), (0.3, title, QUIET)):
        size = min(8.5, 72 * _TALL / (0.6 * len(words)))
        figure.text(x / across, at, words, rotation=90, ha="center", va="center", fontsize=size, color=colour)


def _colour_bar(figure: Figure, bottom: float, colours: Colormap, scale: Normalize) -> None:
    across, up = figure.get_size_inches()
    ax = figure.add_axes(((_WIDTH - 0.65) / across, (bottom + 0.3) / up, 0.1 / across, (_TALL - 0.6) / up))
    bar: Any = figure.colorbar(ScalarMappable(scale, colours), cax=ax)
    bar.ax.tick_params(labelsize=8, length=2, pad=1.5, colors=QUIET)
    bar.outline.set_visible(False)
