"""Covariates regressed out of X inside folds: coefficients of the training rows alone, applied to all rows.

Regressing a covariate out of all rows at once lets the held-out rows shape the X that trains, which drives
accuracies below chance level (Snoek, Miletic & Scholte, NeuroImage 184, 2019). Here nothing of a held-out row
reaches the coefficients; its own covariates are used, as those of a new row would be.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..feature_scale import LARGEST
from ..gamp.design import checked_matrix
from .preparation import Prepared

_VOXELS_AT_ONCE = 4096  # in float64
_DEPENDENT = 1e-10  # singular values of standardised covariates below this share of the largest are rounding


@dataclass(frozen=True, eq=False)
class ConfoundRegression:
    """A fitted regression on covariates; X - (covariates - center) slopes is what they do not explain."""

    center: NDArray  # (C,) mean of the training rows' covariates
    slopes: NDArray  # (C, N) least-squares coefficients, with an intercept, of the training rows

    mixes: ClassVar[bool] = False

    def apply(self, X: Any, covariates: Any = None) -> NDArray:
        """Rows (m, N) without what their ``covariates`` (m, C) explain."""
        if covariates is None:
            raise ValueError(
                "Covariates were regressed out before the fit, so new rows need them too. Give the "
                f"{self.center.size} covariates of every row."
            )
        X, values = np.asarray(X), np.asarray(covariates, dtype=np.float64)
        X = X if X.dtype.kind == "f" else X.astype(np.float64)
        if values.shape != (len(X), self.center.size):
            raise ValueError(
                f"Expected {self.center.size} covariates for each of {len(X)} rows, got shape "
                f"{values.shape}. Give the same columns as for the fit."
            )
        explained = (values - self.center).astype(X.dtype) @ self.slopes.astype(X.dtype)
        return np.subtract(X, explained, out=explained)

    def back(self, coef: Any) -> NDArray:
        """The weights themselves: columns stay voxels."""
        return np.asarray(coef)


def fit_confounds(X: Any, covariates: Any, train: Any = None) -> ConfoundRegression:
    """Least squares of every voxel of X (M, N) on an intercept and the covariates (M, C), on training rows.

    ``train`` (M,) bool, None for all rows. Covariates that depend on each other are no problem: of all
    coefficients that explain as much, the smallest are taken.

    >>> import numpy as np
    >>> from mvpa_gamp.decoding import fit_confounds
    >>> seconds = np.array([[0.4], [0.9], [0.5], [0.7]])
    >>> X = 3 + seconds @ [[2.0, -1.0]]
    >>> fit_confounds(X, seconds).slopes.round(6).tolist()
    [[2.0, -1.0]]
    """
    X, values = _checked(X, covariates)
    return _fit(X, values, np.arange(len(X)) if train is None else np.flatnonzero(train))


def _fit(X: NDArray, values: NDArray, rows: NDArray) -> ConfoundRegression:
    center = values[rows].mean(axis=0)
    centred = values[rows] - center
    scale = np.linalg.norm(centred, axis=0)
    scale[scale <= _DEPENDENT * np.abs(values[rows]).max(axis=0)] = np.inf  # constant: explains nothing
    inverse = np.linalg.pinv(centred / scale, rcond=_DEPENDENT) / scale[:, None]
    slopes = np.empty((values.shape[1], X.shape[1]))
    for at in range(0, X.shape[1], _VOXELS_AT_ONCE):
        part = X[:, at : at + _VOXELS_AT_ONCE][rows].astype(np.float64)
        slopes[:, at : at + _VOXELS_AT_ONCE] = inverse @ (part - part.mean(axis=0))
    return ConfoundRegression(center, slopes)


@dataclass(frozen=True, eq=False)
class FoldConfounds:
    """Confound regression as a preparation: covariates (M, C) of all rows of the study, and their names."""

    values: Any
    names: tuple[str, ...] = ()

    shared: ClassVar[bool] = False
    mixes: ClassVar[bool] = False

    def groups(self, X: Any, train: NDArray, rows: Any = None) -> Iterator[Prepared]:
        """Rows without what covariates explain, with the coefficients of every fold's training rows."""
        X, values = _checked(X, self.values)
        wanted = slice(None) if rows is None else rows
        for fold, column in enumerate(train.T):
            fitted = _fit(X, values, np.flatnonzero(column))
            clean = fitted.apply(X[wanted], values[wanted])
            yield Prepared(clean, clean, fitted, np.array([fold]))


def _checked(X: Any, covariates: Any) -> tuple[NDArray, NDArray]:
    if sparse.issparse(X):
        raise ValueError("Covariates are regressed out of a dense X, got a sparse one. Use X.toarray().")
    X = checked_matrix(X)
    if X.size and (top := max(float(X.max()), -float(X.min()))) > LARGEST:
        raise ValueError(
            f"X must be at most {LARGEST:g} in size, so that float32 can hold it, got {top:g}. Rescale it."
        )
    try:
        values = np.asarray(covariates, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"Covariates must be numbers ({error}). Give one column per covariate.") from error
    if values.ndim != 2 or len(values) != len(X) or not values.shape[1]:
        raise ValueError(
            f"Confounds need X (rows x voxels) and covariates (rows x columns), got shapes {X.shape} and "
            f"{values.shape}. Give a line of covariates for every row of X."
        )
    if not np.isfinite(values).all():
        row, column = np.argwhere(~np.isfinite(values))[0]
        raise ValueError(
            f"Covariates must be finite numbers, got {values[row, column]} in row {row + 1}, column "
            f"{column + 1}. Fill in missing values, for example with the mean of the run."
        )
    if (top := np.abs(values).max(initial=0)) > LARGEST:
        raise ValueError(
            f"Covariates must be at most {LARGEST:g} in size, so that float32 can hold them, got {top:g}. "
            "Divide that column by a number."
        )
    return X, values
