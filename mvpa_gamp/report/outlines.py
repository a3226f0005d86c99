"""Outlines of voxels on brain maps: family-wise significant, selected at an FDR, informative."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from numpy.typing import NDArray

from mvpa_gamp.imaging.map_names import entity
from mvpa_gamp.report.style import INK
from mvpa_gamp.results.reader import Results

FAMILY_WISE = float(-np.log10(0.05))  # in maps of -log10 p
_ROUNDING = 1e-6  # maps are single precision


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


def at_least(values: NDArray, level: float) -> NDArray:
    """Where a map reaches a level, in single precision."""
    return values >= level - _ROUNDING


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
