"""Weights of training rows by class, computed on the training rows of each column alone."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .fold_fits import Method

# None, "balanced", or the weights of the classes -1 and +1.
ClassWeight = str | Mapping[int, float] | None


def check_class_weight(class_weight: Any) -> None:
    """Raise unless it is None, "balanced" or a positive weight for -1 and for +1."""
    if class_weight is None or (isinstance(class_weight, str) and class_weight == "balanced"):
        return
    known = isinstance(class_weight, Mapping) and set(class_weight) == {-1, 1}
    if not known or not all(0 < float(weight) < np.inf for weight in class_weight.values()):
        raise ValueError(
            "class_weight must be None, 'balanced' or {-1: weight, 1: weight} with positive weights, got "
            f"{class_weight!r}. 'balanced' gives both classes the same total weight."
        )


def row_weights(Y: NDArray, class_weight: ClassWeight) -> NDArray:
    """The weight of every row in every column, (M, B), from labels Y (M, B): -1, +1, or 0 off training.

    Without a class weight it is 1 on training rows; "balanced" is scikit-learn's n / (2 n_k) with n training
    rows, n_k of them in the row's class. Rows that do not train have weight 0.

    >>> import numpy as np
    >>> from mvpa_gamp.methods.class_weights import row_weights
    >>> row_weights(np.array([[1.0], [-1.0], [-1.0], [-1.0], [0.0]]), "balanced")[:, 0].round(3).tolist()
    [2.0, 0.667, 0.667, 0.667, 0.0]
    """
    check_class_weight(class_weight)
    positive, negative = Y > 0, Y < 0
    if class_weight is None:
        return (positive | negative).astype(np.float64)
    if isinstance(class_weight, Mapping):
        return positive * float(class_weight[1]) + negative * float(class_weight[-1])
    counts = [np.maximum(side.sum(axis=0), 1) for side in (positive, negative)]
    half = (positive | negative).sum(axis=0) / 2
    return positive * (half / counts[0]) + negative * (half / counts[1])


def weights_classes(method: Method) -> bool:
    """Whether a method can weigh the classes."""
    return is_dataclass(method) and any(field.name == "class_weight" for field in fields(method))


def with_class_weight(method: Method, class_weight: ClassWeight) -> Method:
    """The same method with weighted classes; raises for one that has no such setting.

    >>> from mvpa_gamp.methods import METHODS
    >>> from mvpa_gamp.methods.class_weights import with_class_weight
    >>> with_class_weight(METHODS["svm"], "balanced").class_weight
    'balanced'
    """
    check_class_weight(class_weight)
    if class_weight is None:
        return method
    if not weights_classes(method):
        raise ValueError(
            f"{method.name!r} does not support class weights. Leave out the method or the class weight."
        )
    return replace(method, class_weight=class_weight)  # type: ignore[type-var]
