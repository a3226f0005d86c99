"""Which rows each fold trains on and holds out: by runs, by owners, or in the forms of scikit-learn."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import (
    LeaveOneGroupOut,
    PredefinedSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    check_cv,
)

Split = tuple[NDArray, NDArray]  # training rows and test rows of a fold
DEFAULT_FOLDS = 5
_USUAL = range(10, 4, -1)  # folds of owners that have one class each


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

    Parameters
    ----------
    runs
        The run (M,) of every sample.

    Returns
    -------
    Folds
        ``train`` and ``test`` (M, F) bool, and the run ``held_out`` (F,) by each fold.

    Examples
    --------
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


def one_class_each(groups: NDArray, codes: NDArray) -> bool:
    """Whether every group has rows of a single class, as people of two groups have."""
    return all(np.ptp(codes[groups == one]) == 0 for one in np.unique(groups))


def usual_folds(counts: Sequence[int]) -> int:
    """How many folds of owners that have one class each, ``counts`` of every class.

    The most, from ten to five, that have equal shares of all classes, so that no training set has more of
    one, which would speak against the class that is tested; else ten, or as many as the rarest class.

    >>> usual_folds([15, 15]), usual_folds([20, 20]), usual_folds([17, 20]), usual_folds([3, 9])
    (5, 10, 10, 3)
    """
    return next((n for n in _USUAL if all(count % n == 0 for count in counts)), min(10, *counts))


class Splits(NamedTuple):
    """Folds, what they hold out (a group, or else their number from 1), and a sentence about them."""

    folds: Folds
    leave_one_group_out: bool
    sentence: str


def make_splits(cv: Any, codes: NDArray, classes: NDArray, groups: NDArray | None) -> Splits:
    """Splits of rows with class numbers ``codes`` (M,) from None, a number, a splitter or an iterable.

    With groups None means leave-one-group-out (where every group has one class: ``usual_folds``), and a
    number that many folds of whole groups, with as even a share of the classes as these allow; without, that
    many stratified folds (None: five, or as many as the rarest class has rows). Every training set must hold
    every class.
    """
    by_number = cv is None or (isinstance(cv, (int, np.integer)) and not isinstance(cv, bool))
    if by_number and groups is not None:
        if len(np.unique(groups)) < 2:
            raise ValueError(
                "Leave-one-group-out needs at least two groups, got 1. Give images of more runs, or leave "
                "groups out for stratified folds."
            )
        splitter: Any = _of_groups(cv, groups, codes)
    elif by_number:
        splitter = StratifiedKFold(_number_of_folds(cv, codes, classes))
    else:
        splitter = check_cv(cv, y=codes, classifier=True)
    rows = np.zeros((len(codes), 1))
    asked = None if isinstance(splitter, PredefinedSplit) else groups
    folds = [_as_rows(fold, len(codes)) for fold in splitter.split(rows, codes, asked)]
    if not folds:
        raise ValueError("cv: expected at least one split into training and test rows, got none. Change cv.")
    for number, (train, test) in enumerate(folds, 1):
        _check_fold(number, train, test, codes, classes)
    held_out, one_group = _held_out(folds, groups)
    sentence = _sentence(splitter, len(folds), one_group)
    train, tested = _masks(folds, len(codes))
    return Splits(Folds(train, tested, held_out), one_group, sentence)


def _of_groups(cv: Any, groups: NDArray, codes: NDArray) -> Any:
    """The splitter of None or a number of folds of whole groups."""
    count = len(np.unique(groups))
    if cv is None and one_class_each(groups, codes):
        counts = [len(np.unique(groups[codes == code])) for code in np.unique(codes)]
        if min(counts) > 1:
            return PredefinedSplit(deal_folds(groups, codes, usual_folds(counts)) - 1)
    if cv is None or cv == count:
        return LeaveOneGroupOut()
    if not 2 <= cv <= count:
        raise ValueError(f"cv: expected 2 to {count} folds of whole groups, got {cv}. Change cv.")
    return StratifiedGroupKFold(int(cv))


def _masks(folds: list[Split], n_rows: int) -> NDArray:
    """Training and test rows as (2, M, F) bool."""
    masks = np.zeros((2, n_rows, len(folds)), dtype=bool)
    for number, parts in enumerate(folds):
        for which, rows in enumerate(parts):
            masks[which, rows, number] = True
    return masks


def _number_of_folds(cv: Any, codes: NDArray, classes: NDArray) -> int:
    counts = np.bincount(codes)
    rarest = int(counts.min())
    if rarest < 2:
        raise ValueError(
            f"Stratified folds need at least two images of every class, got {rarest} of "
            f"{str(classes[counts.argmin()])!r}. Give more images, or leave that class out."
        )
    asked = min(DEFAULT_FOLDS, rarest) if cv is None else int(cv)
    if not 2 <= asked <= rarest:
        raise ValueError(
            f"cv: expected 2 to {rarest} folds, the number of images of the rarest class "
            f"{str(classes[counts.argmin()])!r}, got {asked}. Change cv."
        )
    return asked


def _as_rows(fold: Any, n_rows: int) -> Split:
    """Row numbers of a fold that may also be given as masks."""
    train, test = (np.asarray(part) for part in fold)
    numbers = [part for part in (train, test) if part.dtype != bool]
    if any(part.size and not -n_rows <= part.min() <= part.max() < n_rows for part in numbers):
        raise ValueError(f"cv: expected row numbers below {n_rows}, the number of images used. Change cv.")
    return np.arange(n_rows)[train], np.arange(n_rows)[test]


def _check_fold(number: int, train: NDArray, test: NDArray, codes: NDArray, classes: NDArray) -> None:
    if not test.size:
        raise ValueError(f"cv: fold {number} holds no image out. Change cv.")
    if np.intersect1d(train, test).size:
        raise ValueError(f"cv: fold {number} tests images that it trains on. Keep the two apart.")
    missing = np.setdiff1d(np.arange(len(classes)), codes[train])
    if missing.size:
        raise ValueError(
            f"cv: every fold must train on every class, but fold {number} trains on no image of "
            f"{', '.join(repr(str(name)) for name in classes[missing])}. Use other groups, another cv, or "
            "leave that class out."
        )


def _held_out(folds: list[Split], groups: NDArray | None) -> tuple[NDArray, bool]:
    """The group that each fold holds out, and whether every group is held out once, alone and whole."""
    numbers = np.arange(1, len(folds) + 1)
    if groups is None:
        return numbers, False
    tested = [np.unique(groups[test]) for _, test in folds]
    if any(len(names) != 1 for names in tested):
        return numbers, False
    held_out = np.concatenate(tested)
    whole = all(
        np.array_equal(np.sort(test), np.flatnonzero(groups == name))
        and np.array_equal(np.sort(train), np.flatnonzero(groups != name))
        for (train, test), name in zip(folds, held_out, strict=True)
    )
    return held_out, whole and np.array_equal(held_out, np.unique(groups))


def _sentence(splitter: Any, n_folds: int, one_group: bool) -> str:
    if one_group:
        return f"Cross-validation leaves one of {n_folds} groups out at a time."
    if isinstance(splitter, (StratifiedGroupKFold, PredefinedSplit)):
        return f"Cross-validation leaves whole groups out, in {n_folds} folds."
    if isinstance(splitter, StratifiedKFold):
        return (
            f"Cross-validation uses {n_folds} stratified folds; give groups (such as runs) to leave one "
            "group out at a time, because neighbouring volumes of one run are not independent."
        )
    return f"Cross-validation uses {n_folds} given splits."
