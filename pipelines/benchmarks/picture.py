"""The picture of a run: time against voxels, columns and permutations, and beside the peers."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.ticker import LogLocator, NullFormatter

from ..output import COLOUR_OF, save_figure, style
from . import contenders, studies

Rows = Sequence[Mapping[str, Any]]
_OURS, _OTHER = COLOUR_OF[contenders.OURS], "#999999"


def draw(sections: Mapping[str, Rows], stem: Path) -> list[Path]:
    """Write the picture of the sections that were measured; nothing without growth and peers."""
    if not (sections.get("growth") and sections.get("peers")):
        return []
    import matplotlib.pyplot as plt

    with style():
        figure, axes = plt.subplots(2, 2, figsize=(9, 6.5), layout="constrained")
        _growth(axes[0, 0], sections["growth"], "voxels", "voxels (216 volumes, 12 folds)")
        _growth(axes[0, 1], sections["growth"], "columns", "fits at once (31,398 voxels, 216 volumes)")
        _permutations(axes[1, 0], sections.get("studies", ()))
        _peers(axes[1, 1], sections["peers"])
        written = save_figure(figure, stem)
        plt.close(figure)
    return written


def _growth(axis: Any, rows: Rows, along: str, label: str) -> None:
    chosen = [row for row in rows if row["along"] == along]
    axis.loglog([row[along] for row in chosen], [row["iteration_ms"] for row in chosen], "o-", color=_OURS)
    axis.set(xlabel=label, ylabel="one iteration of all fits, ms")
    for each in (axis.xaxis, axis.yaxis):
        each.set_major_locator(LogLocator(subs=(1, 2, 5) if each is axis.yaxis else (1,)))
        each.set_major_formatter("{x:,g}")
        each.set_minor_formatter(NullFormatter())


def _permutations(axis: Any, rows: Rows) -> None:
    names = (studies.PERMUTATIONS, studies.FEW_VOXELS)
    chosen = [row for row in rows if row["what"] in names]
    labels = [f"{row['voxels']:,} voxels,\n{row['fits']:,} fits" for row in chosen]
    axis.barh(labels, [row["seconds"] for row in chosen], color=_OURS)
    axis.set(xlabel="permutation test, seconds")


def _peers(axis: Any, rows: Rows) -> None:
    colors = [COLOUR_OF.get(row["name"], _OTHER) for row in rows]
    axis.barh([row["name"] for row in rows], [row["seconds"] for row in rows], color=colors)
    axis.set(xlabel="seconds for one comparison, twelve folds", xscale="log")
    axis.xaxis.set_major_formatter("{x:g}")
    axis.invert_yaxis()
