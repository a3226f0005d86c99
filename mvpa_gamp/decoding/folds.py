"""Which rows each fold trains on, and which it holds out."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Folds(NamedTuple):
    """F folds of M rows; a row may be held out by several folds, or by none."""

    train: NDArray[np.bool_]  # (M, F) True where the row is used for training
    tested: NDArray[np.bool_]  # (M, F) True where the row is held out
    held_out: NDArray  # (F,) the run that is held out, or the number of the fold

    def rows(self) -> list[tuple[NDArray, NDArray]]:
        """Numbers of the training and of the held-out rows of every fold, as scikit-learn gives them."""
        pairs = zip(self.train.T, self.tested.T, strict=True)
        return [(np.flatnonzero(train), np.flatnonzero(tested)) for train, tested in pairs]


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
    tested = runs[:, None] == held_out[None, :]
    return Folds(~tested, tested, held_out)


def deal_folds(owners: Any, kinds: Any, n: int, seed: int = 0) -> NDArray:
    """The fold (M,), 1 to n, of each row: all rows of an owner (a participant) are in one fold.

    ``kinds`` (M,) are what rows are (a condition, a group): owners with rows of the same kinds are dealt out
    in turn, in random order, so that folds have as equal a share of each as can be.

    >>> from mvpa_gamp.decoding.folds import deal_folds
    >>> deal_folds([1, 1, 2, 2, 3, 4], ["a", "b", "a", "b", "c", "c"], n=2).tolist()
    [1, 1, 2, 2, 1, 2]
    """
    owners, kinds = np.asarray(owners), np.asarray(kinds)
    names, rng = np.unique(owners), np.random.default_rng(seed)
    shuffled = names[rng.permutation(names.size)]
    ordered = sorted(shuffled.tolist(), key=lambda one: sorted(map(str, kinds[owners == one].tolist())))
    fold = {one: place % n + 1 for place, one in enumerate(ordered)}
    return np.array([fold[one] for one in owners.tolist()])
