"""Samples, classes, weights and models, as GAMPClassifier is given them: checked, ready for the engine."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight

from ..coupling import class_pairs
from ..feature_scale import rescaled_prior
from ..gamp import Design
from ..gamp.held import check_sizes
from ..gamp.likelihoods import LIKELIHOODS, Likelihood
from ..gamp.priors import Prior
from ..gamp.starts import start
from ..sortable import check_sortable

# How numpy's own errors begin, of arrays that cannot be made.
NUMPY_ERRORS = ("could not convert", "setting an array element")


def encode_classes(y: Any) -> tuple[NDArray, NDArray]:
    """Sorted classes and the number of each sample's class."""
    check_sortable("y", y)
    check_classification_targets(y)
    kind = type_of_target(y, input_name="y")
    if kind not in ("binary", "multiclass"):
        raise ValueError(f"y must hold one class per sample, got a target of type {kind}.")
    classes, codes = np.unique(y, return_inverse=True)
    if classes.size < 2:
        raise ValueError(
            f"y must hold two classes or more, got one class: {classes.tolist()}. Add samples of another "
            "class."
        )
    return classes, codes


def pair_labels(codes: NDArray, n_classes: int) -> NDArray:
    """Labels (n_samples, n_pairs): -1 for the first class of a pair, +1 for the second, 0 for others."""
    pairs = class_pairs(n_classes)
    return np.stack([1.0 * (codes == j) - 1.0 * (codes == i) for i, j in pairs], axis=1)


def sample_weights(X: Any, y: NDArray, classes: NDArray, sample_weight: Any, class_weight: Any) -> Any:
    """The weight of every sample (n_samples,), those of classes multiplied in; None where all are 1."""
    if sample_weight is None and class_weight is None:
        return None
    try:
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    except ValueError as error:
        if not str(error).startswith(NUMPY_ERRORS):
            raise
        raise ValueError(f"sample_weight must hold numbers ({error}). Give one per sample.") from error
    codes = np.searchsorted(classes, y)
    weights = weights * _class_weights(class_weight, classes, y)[codes]
    empty = np.bincount(codes, weights, len(classes)) == 0
    if empty.any():
        raise ValueError(
            "Every class needs at least one sample with a positive weight, but all weights are zero for "
            f"{classes[empty].tolist()}. Leave the class out, or raise its weights."
        )
    return weights


def _class_weights(class_weight: Any, classes: NDArray, y: NDArray) -> NDArray:
    """The weight of every class."""
    by_class = compute_class_weight(class_weight, classes=classes, y=y)
    wrong = ~(np.isfinite(by_class) & (by_class >= 0))
    if wrong.any():
        raise ValueError(
            f"class_weight must be a number of 0 or more for every class, got {by_class[wrong][0]:g} for "
            f"{classes[wrong].tolist()[0]!r}. 'balanced' weights classes by how rare they are."
        )
    return by_class


def training_means(X: Any, train: NDArray, weights: NDArray | None) -> NDArray:
    """Mean of the training samples of every pair, (n_pairs, n_features), in the precision of X."""
    counts = train if weights is None else train * weights[:, None]
    shares = counts / counts.sum(axis=0)
    return np.asarray(shares.T @ X).astype(X.dtype)


def explain_not_numbers(X: Any, error: ValueError) -> str:
    """What in X is no number, where it can be found."""
    expected = "X must be a numeric matrix (samples x features), "
    names = list(X.columns) if hasattr(X, "columns") else None
    try:
        cells = np.asarray(X, dtype=object)
    except ValueError:
        cells = np.empty((0, 0), dtype=object)
    for row, column in np.ndindex(cells.shape if cells.ndim == 2 else (0, 0)):
        if not _is_number(cells[row, column]):
            name = column if names is None else names[column]
            return (
                f"{expected}got {cells[row, column]!r} in column {name!r}, row {row}. Convert this column to "
                "numbers, or leave it out."
            )
    return f"{expected}got something else ({error}). Convert it to numbers."


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def chosen_likelihood(given: Any) -> Any:
    """The likelihood of a name, or the one that was given."""
    if isinstance(given, str):
        if given not in LIKELIHOODS:
            raise ValueError(
                f"Unknown likelihood {given!r}. Known likelihoods: {', '.join(LIKELIHOODS)}."
                f"{_of_tables(given)}"
            )
        return LIKELIHOODS[given]()
    if isinstance(given, type) or not isinstance(given, Likelihood):
        raise ValueError(f"likelihood must be a name or a likelihood of mvpa_gamp.gamp, got {_kind(given)}.")
    check_sizes(given)
    return given


def chosen_prior(
    given: Any, design: Design, labels: NDArray, likelihood: Any, mode: str, factor: float
) -> Any:
    """The prior of a name with its start, or the one that was given, for X times ``factor``."""
    if isinstance(given, Prior):
        rescaled = rescaled_prior(given, 1 / factor)
        check_sizes(rescaled)
        return rescaled
    if not isinstance(given, str):
        raise ValueError(f"prior must be a name or a prior object of mvpa_gamp.gamp, got {_kind(given)}.")
    return start(given, design, labels, likelihood, mode)


def _of_tables(name: str) -> str:
    """What to write for a method of the commands, whose names begin alike."""
    if not name.startswith("gamp-"):
        return ""
    return (
        " Names such as 'gamp-bg-lr' are methods of the commands and GAMPDecoder: write GAMPClassifier() for "
        "'gamp-bg-lr', GAMPClassifier(connectivity=graph) for 'gamp-sbg-lr'."
    )


def _kind(value: Any) -> str:
    """What came in place of a model; of a class, how to make one."""
    if isinstance(value, type):
        return f"the class {value.__name__}: write {value.__name__}()"
    return type(value).__name__
