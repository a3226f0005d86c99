"""Scores of held-out rows: by fold, by class, by scikit-learn, and those that do not reward guessing."""

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import get_scorer

from ..coupling import Answers, class_pairs, classify
from ..methods.fold_fits import FoldFits

# More frequent over rarer class; above, always guessing the former is right in over 60 %, and balanced
# accuracy is what a comparison is read and tested by.
UNEQUAL = 1.5
TWO_CLASSES = ("roc_auc", "average_precision", "f1", "precision", "recall", "jaccard", "neg_brier_score")
_AVERAGED = tuple(
    f"{name}_{kind}" for name in ("f1", "precision", "recall", "jaccard")
    for kind in ("macro", "micro", "weighted")
)  # fmt: skip
ANY_CLASSES = (
    "accuracy", "balanced_accuracy", "matthews_corrcoef", "neg_log_loss",
    "roc_auc_ovr", "roc_auc_ovo", "roc_auc_ovr_weighted", "roc_auc_ovo_weighted", *_AVERAGED,
)  # fmt: skip
OF_PROBABILITIES = (
    "neg_log_loss", "neg_brier_score", *(name for name in ANY_CLASSES if name.startswith("roc_auc_ov")),
)  # fmt: skip
Scorer = Callable[[Any, Any, Any], float]


class HeldOut(NamedTuple):
    """What folds say about the T rows that they hold out; P pairs of classes side by side."""

    rows: NDArray  # (T,) row of X
    fold: NDArray  # (T,) number of the fold
    decision: NDArray  # (T, P) positive for the first class of the pair
    proba: NDArray  # (T, P) probability of the first class of the pair


def held_out_answers(fits: Sequence[FoldFits]) -> HeldOut:
    """The answers of every pair's own folds, fold after fold.

    Parameters
    ----------
    fits
        One per pair of classes.

    Returns
    -------
    HeldOut
        Decisions and probabilities (T, P) of the T held-out rows, the row and the fold (T,) of each.
    """
    tested = fits[0].tested
    assert tested is not None
    fold, rows = np.nonzero(tested.T)
    decision, proba = (
        np.stack([getattr(each, name)[rows, fold] for each in fits], axis=1) for name in ("decision", "proba")
    )
    return HeldOut(rows, fold, decision, proba)


def fold_errors(fits: FoldFits, y: Any) -> NDArray:
    """Share of held-out rows predicted wrongly in each fold.

    Parameters
    ----------
    fits
        The fits of a method on a comparison, from ``cross_validate``.
    y
        Labels (M,) in -1/+1.

    Returns
    -------
    ndarray
        Shares (F,) of wrong answers.

    Examples
    --------
    >>> import numpy as np
    >>> from mvpa_gamp.decoding import cross_validate, fold_errors
    >>> from mvpa_gamp.methods import METHODS
    >>> runs, y = np.repeat(np.arange(3), 4), np.tile([1.0, 1.0, -1.0, -1.0], 3)
    >>> fold_errors(cross_validate(METHODS["svm"], y[:, None] * [[1.0, 0.1]], y, runs), y).tolist()
    [0.0, 0.0, 0.0]
    """
    said = held_out_answers([fits])
    wrong = (said.decision[:, 0] > 0) != (np.asarray(y)[said.rows] > 0)
    return share_by_fold(wrong, said.fold, fits.n_folds)


def fold_balanced_accuracies(fits: FoldFits, y: Any) -> NDArray:
    """Balanced accuracy of each fold, (F,): the share predicted correctly, averaged over its classes.

    Parameters
    ----------
    fits
        The fits of a method on a comparison, from ``cross_validate``.
    y
        Labels (M,) in -1/+1.

    Returns
    -------
    ndarray
        One per fold, (F,).

    Examples
    --------
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


class KnownAnswers(ClassifierMixin, BaseEstimator):
    """A classifier that looks its answers up: its X are row numbers (m, 1) of the given answers.

    ``decision`` is (M,) for two classes, positive for the second, or (M, K); ``proba`` is (M, K).
    """

    def __init__(self, classes: NDArray, predicted: NDArray, decision: NDArray, proba: NDArray) -> None:
        self.classes, self.predicted, self.decision, self.proba = classes, predicted, decision, proba
        self.classes_ = classes

    def fit(self, X: Any, y: Any) -> "KnownAnswers":
        """There is nothing to fit."""
        return self

    def predict(self, X: NDArray) -> NDArray:
        """The predicted class of each row number."""
        return self.predicted[X[:, 0]]

    def decision_function(self, X: NDArray) -> NDArray:
        """The decision values of each row number."""
        return self.decision[X[:, 0]]

    def predict_proba(self, X: NDArray) -> NDArray:
        """The class probabilities of each row number."""
        return self.proba[X[:, 0]]


def check_scoring_name(scoring: Any, n_classes: int) -> Any:
    """``scoring`` as given, None as "accuracy"; raises where it cannot score that many classes."""
    if scoring is None:
        return "accuracy"
    if callable(scoring):
        return scoring
    if scoring in ANY_CLASSES or (scoring in TWO_CLASSES and n_classes == 2):
        return scoring
    if scoring in TWO_CLASSES:
        instead = {"roc_auc": "roc_auc_ovr", "average_precision": "roc_auc_ovr"}
        advice = instead.get(scoring, f"{scoring}_macro" if f"{scoring}_macro" in _AVERAGED else "accuracy")
        raise ValueError(
            f"scoring={scoring!r} compares two classes, but y has {n_classes}. "
            f"Use {advice!r}, or give images of two classes."
        )
    raise ValueError(
        f"scoring must be a scikit-learn scorer of classes or a callable(estimator, X, y), got {scoring!r}. "
        f"Choose among {', '.join((*ANY_CLASSES, *TWO_CLASSES))}."
    )


def score_rows(
    scoring: Any, classes: NDArray, true: NDArray, decision: NDArray, proba: NDArray, predicted: NDArray,
    groups: NDArray,
) -> NDArray:  # fmt: skip
    """The score of each part of some answered rows; ``true`` and ``predicted`` (M,) are class numbers.

    ``groups`` (M,) numbers the parts 0..F-1. Scorers by name see class numbers, so that "f1" and the like
    take the second class as positive whatever the classes are called; callables see the classes.
    A part in which the score is not defined, such as an area under the curve with a single class, is NaN.
    """
    if callable(scoring):
        scorer, names = scoring, classes
    else:
        scorer, names = get_scorer(scoring), np.arange(len(classes))
    answers = KnownAnswers(names, names[predicted], decision, proba)
    scores = []
    for part in range(int(groups.max()) + 1 if len(groups) else 0):
        rows = np.flatnonzero(groups == part)
        scores.append(_score(scorer, answers, rows, names[true[rows]]))
    return np.array(scores)


def mean_score(scores: NDArray) -> float:
    """The mean over folds in which the score is defined; NaN if there is none."""
    defined = scores[~np.isnan(scores)]
    return float(defined.mean()) if defined.size else float("nan")


def _score(scorer: Scorer, answers: KnownAnswers, rows: NDArray, true: NDArray) -> float:
    if not rows.size:
        return float("nan")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        # Classes that a fold does not test are no news: the score is of those it does.
        warnings.filterwarnings("ignore", message="y_pred contains classes not in y_true")
        warnings.filterwarnings("ignore", message="A single label was found")
        try:
            return float(scorer(answers, rows[:, None], true))
        except ValueError:
            if len(np.unique(true)) < len(answers.classes_):
                return float("nan")  # not defined without all classes
            raise


class ClassScores(NamedTuple):
    """What held-out rows say about K classes: answers, and scores with one entry per fold."""

    judged: Answers
    fold_scores: NDArray  # (F,) all classes together
    contrast_scores: dict[str, list[float]]  # by pair, "face-house"
    class_scores: dict[Any, list[float]]  # each class against all others
    confusion: NDArray  # (K, K) counts, rows are true classes
    auc: float  # mean over folds and pairs of the area under the ROC curve


def score_classes(scoring: Any, said: HeldOut, codes: NDArray, classes: NDArray) -> ClassScores:
    """Couple the pairs' answers ``said`` about held-out rows of classes ``codes`` (M,), and score them.

    ``scoring`` is a scikit-learn scorer by name, or a callable; ``classes`` (K,) are the names.
    """
    judged, true = classify(said.decision, said.proba, len(classes)), codes[said.rows]
    overall = score_rows(scoring, classes, true, *judged, said.fold)
    confusion = np.zeros((len(classes), len(classes)), dtype=int)
    np.add.at(confusion, (true, judged.predicted), 1)
    pairs = contrast_scores(scoring, said, codes, classes)
    each = class_scores(scoring, said, judged, codes, classes, overall)
    auc = float(pairwise_aucs(true[:, None], said.decision[:, None], said.fold, len(classes))[0])
    return ClassScores(judged, overall, pairs, each, confusion, auc)


def contrast_scores(scoring: Any, said: HeldOut, codes: NDArray, classes: NDArray) -> dict[str, list[float]]:
    """Scores per fold of every contrast, on the held-out rows of its two classes."""
    true = codes[said.rows]
    scores = {}
    for p, (i, j) in enumerate(class_pairs(len(classes))):
        mine = (true == i) | (true == j)
        judged = classify(said.decision[mine, p : p + 1], said.proba[mine, p : p + 1], 2)
        second = (true[mine] == j).astype(int)
        of_pair = score_rows(scoring, classes[[i, j]], second, *judged, said.fold[mine])
        missing = int(said.fold.max()) + 1 - len(of_pair)  # last folds without rows of the pair
        scores[f"{classes[i]}-{classes[j]}"] = [*of_pair.tolist(), *([math.nan] * missing)]
    return scores


def class_scores(
    scoring: Any, said: HeldOut, judged: Answers, codes: NDArray, classes: NDArray, overall: NDArray
) -> dict[Any, list[float]]:
    """Scores per fold of every class, as in nilearn.

    With two classes the score of their contrast; with more the class against all others by the coupled
    probabilities, which needs a scorer by name: a callable may not know what True and False stand for.
    """
    names = classes.tolist()
    if len(names) == 2:
        return {name: overall.tolist() for name in names}
    if callable(scoring):
        return {}
    true, scores = codes[said.rows], {}
    for k, name in enumerate(names):
        p_class = judged.proba[:, k]
        rest = np.clip(1 - p_class, np.finfo(float).tiny, 1)
        decision = judged.decision[:, k] - np.log(rest)
        answers = (decision, np.column_stack([rest, p_class]), (judged.predicted == k).astype(int))
        two = np.array([False, True])
        found = score_rows(scoring, two, (true == k).astype(int), *answers, said.fold)
        scores[name] = found.tolist()
    return scores


def class_maps(values: Sequence[NDArray], n_classes: int, signed: bool) -> NDArray:
    """Maps (N, K) of the classes: the mean of the maps (N,) of the K - 1 pairs that a class is part of.

    Pairs come in the order of ``class_pairs``. Signed maps (weights, patterns), positive for the first class
    of a pair, are turned where the class is the second one, so that positive values speak for the class.

    >>> import numpy as np
    >>> class_maps([np.array([1.0]), np.array([2.0]), np.array([4.0])], 3, signed=True).tolist()
    [[1.5, 1.5, -3.0]]
    """
    out = np.zeros((len(values[0]), n_classes))
    for (i, j), each in zip(class_pairs(n_classes), values, strict=True):
        out[:, i] += each
        out[:, j] += -each if signed else each
    return out / (n_classes - 1)
