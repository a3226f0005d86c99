"""Scores of samples for every pair of classes, as a fit of GAMPClassifier gives them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..gamp import Design
from ..gamp.moments import floored


def pair_scores(
    X: Any, coef: NDArray, coef_std: NDArray, intercept: NDArray, centers: NDArray | None
) -> tuple[NDArray, NDArray]:
    """X @ coef.T + intercept and its variance, (n, n_pairs), each around its pair's center.

    ``coef`` and ``coef_std`` are (n_pairs, n_features), as ``centers`` where the features were centred.
    """
    if centers is None:
        score, variance, _ = Design(X).scores(coef.T, np.square(coef_std.T))
        return score + intercept, floored(variance)
    parts = [_around(X, *fit) for fit in zip(coef, coef_std, intercept, centers, strict=True)]
    score, variance = (np.concatenate(each, axis=1) for each in zip(*parts, strict=True))
    return score, floored(variance)


def _around(
    X: Any, coef: NDArray, coef_std: NDArray, intercept: float, center: NDArray
) -> tuple[NDArray, NDArray]:
    """The score of one pair and its variance, (n, 1) each; float32 X may have a large mean."""
    score, variance, _ = Design(X, center=center).scores(coef[:, None], np.square(coef_std[:, None]))
    return score + intercept + float(np.vdot(center.astype(float), coef)), variance
