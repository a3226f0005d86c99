"""Scores that do not reward guessing the more frequent class: balanced accuracy, area under the ROC curve."""

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from ..coupling import classify
from .crossval import HeldOut

# More frequent over rarer class; above, always guessing the former is right in over 60 %, and balanced
# accuracy is what a comparison is read and tested by.
UNEQUAL = 1.5


def is_unequal(codes: NDArray) -> bool:
    """Whether the most frequent class has over 1.5 times as many rows as the rarest; codes or signs (M,).

    >>> from mvpa_gamp.decoding.balanced import is_unequal
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
    areas = []
    for number in np.unique(fold):
        mine = fold == number
        n_positive = int(positive[mine].sum())
        n_negative = int(mine.sum()) - n_positive
        if n_positive and n_negative:
            ranks = rankdata(decision[mine])[positive[mine]]
            areas.append((ranks.sum() - n_positive * (n_positive + 1) / 2) / (n_positive * n_negative))
    return np.array(areas)


def mean_balanced_accuracy(codes: NDArray, said: HeldOut) -> float:
    """Balanced accuracy as a ``score`` of permutation tests: codes (M,), the answers to held-out rows."""
    n_classes = int(codes.max()) + 1
    true = codes[said.rows]
    right = classify(said.decision, said.proba, n_classes).predicted == true
    return float(balanced_scores(right, true, said.fold, n_classes, int(said.fold.max()) + 1).mean())
