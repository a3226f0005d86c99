"""Ridge regression of the labels, its penalty chosen by leaving groups out within the training rows."""

import numpy as np
from numpy.typing import NDArray

PENALTIES = np.logspace(-4, 2, 13)  # in units of the mean eigenvalue of the training rows' Gram matrix


def ridge_decisions(gram: NDArray, y: NDArray, groups: NDArray, train: NDArray) -> NDArray:
    """Decision values (M,) of all rows by a fit to the rows of ``train`` (M,) bool.

    ``gram`` is X X' (M, M). What a group's rows are told by the others has a closed form: with residuals
    a = Q y and Q = (K + penalty)^-1 of the centred Gram matrix K, y_g - Q_gg^-1 a_g. The penalty with the
    smallest squared error of these is taken.
    """
    rows = np.flatnonzero(train)
    own = gram[np.ix_(rows, rows)].astype(float)
    means = own.mean(axis=0)
    values, vectors = np.linalg.eigh(own - means - means[:, None] + means.mean())
    values = np.maximum(values, 0)
    mean = y[rows].mean()
    target, best, chosen = y[rows] - mean, np.inf, np.zeros(len(rows))
    parts = [np.flatnonzero(groups[rows] == group) for group in np.unique(groups[rows])]
    for penalty in PENALTIES * values.mean():
        Q = (vectors / (values + penalty)) @ vectors.T
        a = Q @ target
        error = sum(float(np.square(np.linalg.solve(Q[np.ix_(part, part)], a[part])).sum()) for part in parts)
        if error < best:
            best, chosen = error, a - a.mean()
    return np.asarray((gram[:, rows].astype(float) - means) @ chosen + mean)


def ridge_fold_errors(X: NDArray, y: NDArray, groups: NDArray) -> NDArray:
    """Share of wrong rows of each group when it is left out, (G,), groups in ascending order."""
    gram = X @ X.T
    errors = []
    for group in np.unique(groups):
        out = groups == group
        errors.append(np.mean((ridge_decisions(gram, y, groups, ~out)[out] > 0) != (y[out] > 0)))
    return np.array(errors)
