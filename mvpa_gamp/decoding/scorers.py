"""How well classes were told apart: scikit-learn's scorers, asked about answers that are already known."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import get_scorer

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
