"""Whether several BOLD files stand in the order that their labels and their names suggest."""

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from mvpa_gamp.imaging.labels import Labels


def order_notes(names: Sequence[str], volumes: Sequence[int], labels: Labels) -> tuple[str, ...]:
    """Sentences about what looks like a wrong order of files; ``volumes`` counts those of each file."""
    assert labels.runs is not None
    borders = np.cumsum(volumes)[:-1]
    crossing = [int(labels.runs[b]) for b in borders if labels.runs[b - 1] == labels.runs[b]]
    notes = []
    if crossing:
        runs = ", ".join(map(str, dict.fromkeys(crossing)))
        notes.append(
            f"Labels: run {runs} goes on across the border of two BOLD files. "
            "Check that files and labels are in the same order."
        )
    files = [Path(name).name for name in names]
    for before, after in pairwise(files):
        if _swapped(before, after):
            notes.append(
                f"BOLD files are not in the order of their numbers: {before} comes before {after}. "
                "Check that files and labels are in the same order."
            )
            break
    return tuple(notes)


def _swapped(before: str, after: str) -> bool:
    """Whether two names that differ in their numbers alone stand in falling order."""
    same = re.sub(r"\d+", "0", before) == re.sub(r"\d+", "0", after)
    return same and _numbers(before) > _numbers(after)


def _numbers(name: str) -> list[int]:
    return [int(digits) for digits in re.findall(r"\d+", name)]
