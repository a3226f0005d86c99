"""A glass brain for maps in MNI space: largest values along three lines of sight, in nilearn's outlines."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from numpy.typing import NDArray

from mvpa_gamp.report.style import QUIET, SHARES, WEIGHTS, Drawn, look, png_and_svg
from mvpa_gamp.report.volumes import AXES, PLANES, Volume, read_volume

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
