"""Which rows each fold trains on."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Folds(NamedTuple):
    """One column per held-out run."""

    train: NDArray[np.bool_]  # (M, B) True where the row is used for training
    held_out: NDArray  # (B,) the run that is held out


def leave_one_run_out(runs: Any) -> Folds:
    """Hold out each run once, in sorted order; runs is (M,), one run label per row.

    >>> from mvpa_gamp.decoding import leave_one_run_out
    >>> folds = leave_one_run_out([1, 1, 2, 2, 3, 3])
    >>> folds.held_out, folds.train[:, 0]
    (array([1, 2, 3]), array([False, False,  True,  True,  True,  True]))
    """
    runs = np.asarray(runs)
    if runs.ndim != 1:
        raise ValueError(f"runs must be a vector with one run per row, got shape {runs.shape}. Flatten it.")
    if runs.dtype.kind == "f" and np.isnan(runs).any():
        raise ValueError("runs must name a run for every row, got NaN. Number the runs.")
    held_out = np.unique(runs)
    if len(held_out) < 2:
        raise ValueError(
            f"Leave-one-run-out needs at least two runs, got {len(held_out)}. "
            "Give data of more runs, or number independent parts of one run."
        )
    return Folds(runs[:, None] != held_out[None, :], held_out)
