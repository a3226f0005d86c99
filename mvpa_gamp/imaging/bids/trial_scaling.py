"""The scale of single-trial effects: every run by itself, however few trials it has.

Effects are z-scored over the compared trials of their run. A run of a block design may have only two: then
the other events of the run count, too, and where even these are too few, effects are only centred. What is
possible in every run is done to all, so that runs have one unit.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.processing import MIN_VOLUMES, Processing, clean_run

_Z_SCORES = Processing(detrend=False, standardize=True)


class TrialScaling(NamedTuple):
    """What is done to the effects of every run, in words for the methods text and for a note."""

    words: str = ""
    note: str = ""
    over_all: bool = False  # events of conditions that are not compared count
    divides: bool = False


RAW = TrialScaling()
OVER_COMPARED = TrialScaling("z-scored within each run", divides=True)
OVER_ALL = TrialScaling(
    "z-scored within each run over all of its events",
    f"A run has fewer than {MIN_VOLUMES} trials of the conditions compared: trials were z-scored over all "
    "events of their run.",
    over_all=True,
    divides=True,
)
CENTRED = TrialScaling(
    "centred within each run",
    f"A run has fewer than {MIN_VOLUMES} trials, too few for z-scores: trials were centred within their run.",
)


def scaling_for(compared: Sequence[int], events: Sequence[int], standardize: bool) -> TrialScaling:
    """What numbers of compared trials and of all events allow in run 1, 2, ...; no trial is 0 by itself."""
    used = [(own, total) for own, total in zip(compared, events, strict=True) if own]
    if not standardize or not used:
        return RAW
    if min(own for own, _ in used) >= MIN_VOLUMES:
        return OVER_COMPARED
    if min(total for _, total in used) >= MIN_VOLUMES:
        return OVER_ALL
    if 1 in compared:
        raise DataError(
            f"--standardize: run {list(compared).index(1) + 1} has a single trial of the conditions compared "
            f"and fewer than {MIN_VOLUMES} events, so that nothing is left of it. Give --no-standardize, or "
            "leave the run out (--run-label)."
        )
    return CENTRED


def scale_run(effects: NDArray, others: NDArray, scaling: TrialScaling, run: int) -> NDArray:
    """The effects (n, N) of a run's compared trials, scaled; ``others`` (m, N) are those of other events."""
    if scaling is RAW or not len(effects):
        return effects
    if not scaling.divides:
        return np.asarray(effects - effects.mean(axis=0))
    together = np.concatenate([effects, others]) if scaling.over_all else effects
    return clean_run(together, _Z_SCORES, None, None, run)[: len(effects)]
