"""Scores of held-out rows: by fold, by class, and those that do not reward guessing the more frequent one."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from ..coupling import class_pairs, classify
from ..methods.fold_fits import FoldFits

# More frequent over rarer class; above, always guessing the former is right in over 60 %, and balanced
# accuracy is what a comparison is read and tested by.
UNEQUAL = 1.5


class HeldOut(NamedTuple):
    """What folds say about the T rows that they hold out; P pairs of classes side by side."""

    rows: NDArray  # (T,) row of X
    fold: NDArray  # (T,) number of the fold
    decision: NDArray  # (T, P) positive for the first class of the pair
    proba: NDArray  # (T, P) probability of the first class of the pair


def held_out_answers(fits: Sequence[FoldFits]) -> HeldOut:
    """The answers of every pair's own folds, fold after fold."""
    tested = fits[0].tested
    assert tested is not None
    fold, rows = np.nonzero(tested.T)
    decision, proba = (
        np.stack([getattr(each, name)[rows, fold] for each in fits], axis=1) for name in ("decision", "proba")
    )
    return HeldOut(rows, fold, decision, proba)


def fold_errors(fits: FoldFits, y: Any) -> NDArray:
    """Share of held-out rows predicted wrongly in each fold, (F,); y is (M,) in -1/+1."""
    said = held_out_answers([fits])
    wrong = (said.decision[:, 0] > 0) != (np.asarray(y)[said.rows] > 0)
    return share_by_fold(wrong, said.fold, fits.n_folds)


def fold_balanced_accuracies(fits: FoldFits, y: Any) -> NDArray:
    """Balanced accuracy of each fold, (F,): the share predicted correctly, averaged over its classes.

    >>> import numpy as np
    >>> from mvpa_gamp.decoding import cross_validate, fold_balanced_accuracies, held_out_answers
    >>> from mvpa_gamp.methods import METHODS
    >>> runs, y = np.repeat(np.arange(3), 4), np.tile([1.0, 1.0, -1.0, -1.0], 3)
    >>> fits = cross_validate(METHODS["gamp-bg-lr"], y[:, None] * [[1.0, 0.1]], y, runs)
    >>> fold_balanced_accuracies(fits, y).tolist(), held_out_answers([fits]).fold.tolist()
    ([1.0, 1.0, 1.0], [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2])
    """
    said = held_out_answers([fits])
    positive = np.asarray(y)[said.rows] > 0
    right = (said.decision[:, 0] > 0) == positive
    shares = []
    for mine in (positive, ~positive):
        counts = np.bincount(said.fold[mine], minlength=fits.n_folds)
        hits = np.bincount(said.fold[mine], right[mine], fits.n_folds)
        shares.append(np.where(counts > 0, hits / np.maximum(counts, 1), np.nan))
    return np.nanmean(shares, axis=0)


def share_by_fold(values: NDArray, fold: NDArray, n_folds: int) -> NDArray:
    """Mean of ``values`` (T,) in each fold, (F,)."""
    return np.bincount(fold, values, n_folds) / np.bincount(fold, minlength=n_folds)


def is_unequal(codes: NDArray) -> bool:
    """Whether the most frequent class has over 1.5 times as many rows as the rarest; codes or signs (M,).

    >>> from mvpa_gamp.decoding.scores import is_unequal
    >>> is_unequal([1, 1, 1, -1, -1]), is_unequal([1, 1, -1])
    (False, True)
    """
    counts = np.unique(np.asarray(codes), return_counts=True)[1]
    return bool(counts.max() > UNEQUAL * counts.min())


def fold_recalls(right: NDArray, codes: NDArray, fold: NDArray, n_classes: int, n_folds: int) -> NDArray:
    """Share of the held-out rows of each class that a fold recognises, (F, K); NaN of a class it lacks.

    ``right`` (T,) bool, ``codes`` (T,) class numbers and ``fold`` (T,) of the held-out rows.
    """
    place = fold * n_classes + codes
    counts = np.bincount(place, minlength=n_folds * n_classes)
    hits = np.bincount(place, right, n_folds * n_classes)
    shares = np.where(counts > 0, hits / np.maximum(counts, 1), np.nan)
    return shares.reshape(n_folds, n_classes)


def balanced_scores(right: NDArray, codes: NDArray, fold: NDArray, n_classes: int, n_folds: int) -> NDArray:
    """Mean recall over classes of every fold that tests all of them; chance is 1 / K.

    Where no fold tests all classes, as when a fold holds out a single row, the one number of all held-out
    rows together. Arguments as for :func:`fold_recalls`.
    """
    by_fold = fold_recalls(right, codes, fold, n_classes, n_folds).mean(axis=1)
    defined = by_fold[~np.isnan(by_fold)]
    together = np.zeros_like(fold)
    return defined if defined.size else fold_recalls(right, codes, together, n_classes, 1).mean(axis=1)


def fold_aucs(decision: NDArray, positive: NDArray, fold: NDArray) -> NDArray:
    """Area under the ROC curve of every fold that tests both classes: P(decision ranks a pair rightly).

    Ties count half; ``decision`` (T,) is larger for rows that are ``positive`` (T,) bool. A fold with one
    class is left out. Chance is 0.5 whatever the frequencies.
    """
    each = [roc_areas(decision[mine], positive[mine], ~positive[mine]) for mine in _rows_by_fold(fold)]
    areas = np.array(each).reshape(-1)
    return areas[~np.isnan(areas)]


def mean_aucs(decision: NDArray, first: NDArray, second: NDArray, fold: NDArray) -> NDArray:
    """Mean area (k,) over the folds and pairs with rows of both classes; NaN where a decision is, or none.

    ``decision`` (T, k, P) is larger for rows of the ``first`` class of a pair than for those of its
    ``second`` (T, k, P) bool; ``fold`` (T,) holds them out.
    """
    by_fold = np.array([roc_areas(decision[t], first[t], second[t]) for t in _rows_by_fold(fold)])
    tested = np.array([first[t].any(axis=0) & second[t].any(axis=0) for t in _rows_by_fold(fold)])
    count = tested.sum(axis=(0, 2))
    total = np.where(tested, by_fold, 0.0).sum(axis=(0, 2))
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def pairwise_aucs(codes: NDArray, decision: NDArray, fold: NDArray, n_classes: int) -> NDArray:
    """Mean area (k,) over folds and pairs of K classes, on held-out rows of the pair's two classes.

    ``codes`` (T, k) are the classes of held-out rows by each label vector, ``decision`` (T, k, P) is positive
    for the first class of a pair.
    """
    sides = zip(*class_pairs(n_classes), strict=True)
    first, second = (codes[:, :, None] == np.array(side) for side in sides)
    return mean_aucs(decision, first, second, fold)


def roc_areas(decision: NDArray, first: NDArray, second: NDArray) -> NDArray:
    """P(a row of the first class has the larger decision than one of the second), ties half, (...).

    ``decision``, ``first`` and ``second`` are (t, ...); rows of neither class do not count. NaN without rows
    of both classes.
    """
    ranks = rankdata(np.where(first | second, decision, np.inf), axis=0)
    n_first, n_second = first.sum(axis=0), second.sum(axis=0)
    above = np.where(first, ranks, 0.0).sum(axis=0) - n_first * (n_first + 1) / 2
    pairs = n_first * n_second
    return np.where(pairs > 0, above / np.maximum(pairs, 1), np.nan)


def _rows_by_fold(fold: NDArray) -> list[NDArray]:
    """The rows of every fold."""
    return [np.flatnonzero(fold == number) for number in np.unique(fold)]


def mean_balanced_accuracy(codes: NDArray, said: HeldOut) -> float:
    """Balanced accuracy as a ``score`` of permutation tests: codes (M,), the answers to held-out rows."""
    n_classes = int(codes.max()) + 1
    true = codes[said.rows]
    right = classify(said.decision, said.proba, n_classes).predicted == true
    return float(balanced_scores(right, true, said.fold, n_classes, int(said.fold.max()) + 1).mean())
