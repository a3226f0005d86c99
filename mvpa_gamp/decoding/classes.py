"""Many classes: the fits of all pairs as one answer, its scores, and maps of what speaks for a class."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..coupling import Answers, class_pairs, classify
from .scorers import score_rows
from .scores import HeldOut, pairwise_aucs


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
