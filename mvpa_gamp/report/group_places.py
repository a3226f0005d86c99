"""Where the maps of a group are largest, what passed the test, and which of them to use first."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from numpy.typing import NDArray

from mvpa_gamp.report.outlines import FAMILY_WISE, at_least
from mvpa_gamp.report.volumes import peak_of, read_map
from mvpa_gamp.report.words import place_words

# What maps show, by what was done over participants and their kind, in the order in which they are offered.
WORDS = {
    ("SignFlipFwe", "t"): "t values where the family-wise p ≤ 0.05: where the patterns of participants agree",
    ("SignFlip", "logpfwe"): "−log10 of the family-wise p of the pattern over participants: 1.3 is p = 0.05",
    ("SignFlip", "t"): "t values",
    ("Mean", "pip"): "mean inclusion probability: how likely the classifiers need a voxel",
    ("Mean", "pattern"): "mean pattern over participants: where the signals of the two categories differ",
    ("Share", "selfreq"): "share of participants",
}
Maps = Mapping[tuple[str, str], Path]  # of a comparison and method, by the keys of WORDS


@dataclass(frozen=True)
class Places:
    """What the group's maps come to; ``peak`` is "" where there are none."""

    peak: str = ""  # x y z in mm of the largest |t| if it passed the test, else of the largest mean pattern
    at: tuple[float, ...] | None = None  # the same as numbers
    higher: bool = True  # whether the pattern is positive there
    p: float = math.nan  # the smallest family-wise p
    voxels: int = 0  # with a family-wise p of at most 0.05
    most: float = math.nan  # largest share of participants that select one voxel


def places_of(paths: Maps) -> Places:
    """Read a comparison's maps."""
    maps = {key: read_map(path) for key, path in paths.items()}
    tested, t = maps.get(("SignFlip", "logpfwe")), maps.get(("SignFlip", "t"))
    voxels = 0 if tested is None else passed(tested.data)
    lead = t if t is not None and voxels else maps.get(("Mean", "pattern"))
    if lead is None:
        return Places()
    at = peak_of(lead.data)
    place = lead.coordinates(at)
    share = maps.get(("Share", "selfreq"))
    return Places(
        place_words(place),
        tuple(float(value) for value in place),
        bool(lead.data[at] >= 0),
        math.nan if tested is None else float(10 ** -tested.data.max()),
        voxels,
        math.nan if share is None else float(share.data.max()),
    )


def passed(tested: NDArray) -> int:
    """How many voxels of a map of -log10 p have a family-wise p of at most 0.05."""
    return int(at_least(tested, FAMILY_WISE).sum())


def ordered(paths: Maps, places: Places) -> dict[tuple[str, str], Path]:
    """The maps, the one to use first.

    As for a participant: what was tested if a voxel passed, else what classifiers need if participants
    selected voxels, else the pattern.
    """
    first = ("Mean", "pip") if places.most > 0 else ("Mean", "pattern")
    if places.voxels:  # folders of earlier versions have no map of t where it passed
        first = next(key for key in (("SignFlipFwe", "t"), ("SignFlip", "logpfwe")) if key in paths)
    return {key: paths[key] for key in sorted(WORDS, key=lambda key: key != first) if key in paths}
