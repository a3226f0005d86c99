"""The leakage check of a decoder: what its images and folds tell, warned of or refused."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.decoder.images import Extracted
from mvpa_gamp.decoding.leakage import Checked, Evidence, find_leakage
from mvpa_gamp.decoding.multiclass import class_pairs
from mvpa_gamp.decoding.splits import Splits

_OF_SERIES = ("detrend", "high_pass", "low_pass", "t_r")  # settings that only a time series has


def check_leakage(
    decoder: Any, found: Extracted, y: NDArray, groups: NDArray | None, places: NDArray, splits: Splits,
    are_maps: bool,
) -> Checked:  # fmt: skip
    """What could make the scores too good: a warning each, or with ``strict`` an error.

    The order of images counts as that of a scan where a setting says so, and never that of single maps,
    which are often sorted by class. The decoder does not know by how much labels were shifted. Without groups
    only images and mask are looked at; that neighbours may be on both sides of a fold is said elsewhere.
    """
    series = any(getattr(found.masker, name) for name in _OF_SERIES) or decoder.ignore is not None
    series = series and not are_maps
    names = np.unique(y).tolist()
    rows = np.zeros(len(y), dtype=int) if groups is None else groups
    checked = find_leakage(
        Evidence(
            X=found.X[places],
            conditions=y,
            runs=rows,
            pairs=[(names[i], names[j]) for i, j in class_pairs(len(names))],
            places=places if series and groups is not None else None,
            kind="beta" if are_maps else "volume",
            folds=None if groups is None or splits.leave_one_group_out else splits.folds,
            around=None if found.around is None else found.around[places],
            fingerprints=None if found.fingerprints is None else found.fingerprints[places],
            word="group",
        )
    )
    if decoder.strict and checked.findings:
        raise ValueError(f"strict=True: {checked.sentences[0]}")
    for sentence in checked.sentences:
        warnings.warn(sentence, stacklevel=4)
    return checked
