"""Objective, dual point and duality gap of L1-penalised logistic regression, many fits at once.

One row per fit: labels (U, M) are -1 or +1 on training rows and 0 elsewhere, or these times the weight c_m of
the row; decision values (U, M).

    primal(w, b) = sum_m c_m log(1 + exp(-y_m z_m)) + lambda |w|_1,   z = X w + b 1
    dual(a)      = sum_m c_m H(a_m),   H(a) = -a log a - (1 - a) log(1 - a),
                   over 0 <= a <= 1 with |X' (c a y)|_inf <= lambda and, if b is free, sum_m c_m a_m y_m = 0.

For every w, b and every feasible a the dual is at most the optimum and the primal at least, so their
difference bounds how far w, b is from optimal.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, expit

_TINY = 1e-300


def residual(labels: NDArray, decision: NDArray) -> NDArray:
    """Return c y / (1 + exp(y z)), minus the derivative of the loss with respect to z; 0 on other rows."""
    return labels * expit(-np.sign(labels) * decision)


def primal(labels: NDArray, decision: NDArray, penalty: NDArray) -> NDArray:
    """Return the objective per fit; penalty (U,) is lambda |w|_1."""
    losses = np.abs(labels) * np.logaddexp(0.0, -np.sign(labels) * decision)
    return losses.sum(axis=1) + penalty


def dual(labels: NDArray, dual_residual: NDArray) -> NDArray:
    """Return the dual value per fit at the feasible c a y = ``dual_residual`` (U, M)."""
    weights = np.abs(labels)
    a = np.abs(dual_residual) / np.maximum(weights, _TINY)
    return (weights * (entr(a) + entr(1.0 - a))).sum(axis=1)


def balance(labels: NDArray, dual_residual: NDArray) -> NDArray:
    """Shrink the heavier class of ``dual_residual`` so that every fit sums to zero, as a free b demands."""
    a = np.abs(dual_residual)
    positive = np.where(labels > 0, a, 0.0).sum(axis=1, keepdims=True)
    negative = a.sum(axis=1, keepdims=True) - positive
    total = np.minimum(positive, negative)
    return dual_residual * np.where(labels > 0, total / (positive + _TINY), total / (negative + _TINY))


def gap(
    labels: NDArray, decision: NDArray, penalty: NDArray, dual_residual: NDArray, shrink: NDArray
) -> NDArray:
    """Return primal minus dual per fit, where shrink (U,) <= 1 makes ``dual_residual`` feasible."""
    return primal(labels, decision, penalty) - dual(labels, dual_residual * shrink[:, None])


def null_objective(labels: NDArray, fit_intercept: bool) -> NDArray:
    """Return the objective per fit at w = 0 with its best b: the scale on which gaps are stated."""
    total = np.abs(labels).sum(axis=1)
    if not fit_intercept:
        return total * np.log(2.0)
    share = np.where(labels > 0, labels, 0.0).sum(axis=1) / total
    return total * (entr(share) + entr(1.0 - share))
