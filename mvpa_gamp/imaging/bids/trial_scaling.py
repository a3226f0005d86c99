"""The scale of single-trial effects: every run by itself, however few trials it has.

Effects are z-scored over the compared trials of their run. A run of a block design may have only two: then
effects are centred. What is possible in every run is done to all, so that runs have one unit. Other events
do not count: effects of short ones (buttons) can be a hundred times as large.
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


RAW = TrialScaling()
Z_SCORED = TrialScaling("z-scored within each run")
CENTRED = TrialScaling(
    "centred within each run",
    f"A run has fewer than {MIN_VOLUMES} trials, too few for z-scores: trials were centred within their run.",
)


def scaling_for(counts: Sequence[int], standardize: bool) -> TrialScaling:
    """What numbers of compared trials allow in run 1, 2, ...; a run without any has none to scale."""
    used = [count for count in counts if count]
    if not standardize or not used:
        return RAW
    if min(used) >= MIN_VOLUMES:
        return Z_SCORED
    if 1 in used:
        raise DataError(
            "--standardize: expected at least 2 trials of the compared conditions in every run, got 1 in run "
            f"{list(counts).index(1) + 1}, of which centring leaves nothing. Give --no-standardize, or leave "
            "the run out (--run-label)."
        )
    return CENTRED


def scale_run(effects: NDArray, scaling: TrialScaling, run: int) -> NDArray:
    """The effects (n, N) of a run's trials, scaled."""
    if scaling is RAW or not len(effects):
        return effects
    if scaling is CENTRED:
        return np.asarray(effects - effects.mean(axis=0))
    return clean_run(effects, _Z_SCORES, None, None, run)
