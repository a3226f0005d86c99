"""What is fitted on the training rows of a fold and changes X: nothing, whitening, covariates, or both.

A preparation yields groups of columns that share an X: all folds where nothing is done, each fold by itself
where something is fitted. A fold's X depends on the fold's training rows, on block boundaries and on
covariates, never on labels: so a fold's X serves all comparisons, methods and permutations of that fold, and
a permutation test that prepares X once per fold is the same, to the bit, as one that prepares it for every
permutation.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..feature_scale import LARGEST
from ..gamp.design import checked_matrix
from .folds import Folds
from .whitening import whitened_folds


class FittedPreparation(Protocol):
    """A preparation as the training rows of one fold decide it."""

    @property
    def mixes(self) -> bool:
        """Whether a prepared column is a mixture of voxels rather than one voxel."""

    def apply(self, X: Any, covariates: Any = None) -> NDArray:
        """Prepared rows (m, N) of any X (m, N), of X's type; ``covariates`` (m, C) are those of its rows."""

    def back(self, coef: Any) -> NDArray:
        """Weights (N,) or (N, B) of voxels, from weights of prepared columns."""


class Prepared(NamedTuple):
    """Some rows of X as the training rows of some folds prepare them."""

    X: Any  # (m, N) what methods are fitted to
    voxels: Any  # (m, N) the same while each column is still one voxel: patterns are of these
    fitted: FittedPreparation
    folds: NDArray  # (b,) columns of the training rows whose X this is

    def at(self, rows: NDArray) -> "Prepared":
        """Some of the rows, by place."""
        if rows.size == self.X.shape[0] and (rows == np.arange(rows.size)).all():
            return self
        X = self.X[rows]
        return self._replace(X=X, voxels=X if self.voxels is self.X else self.voxels[rows])


class Preparation(Protocol):
    """A preparation of X, fitted in every fold; it is given all rows of the study, of all conditions."""

    @property
    def shared(self) -> bool:
        """Whether all folds have the same X."""

    @property
    def mixes(self) -> bool:
        """Whether a prepared column is a mixture of voxels rather than one voxel."""

    def groups(self, X: Any, train: NDArray, rows: Any = None) -> Iterator[Prepared]:
        """One X after the other that columns of ``train`` (M, F) share, in ascending order of these.

        ``rows`` (m,) of X are prepared, None: all M. Rows that do not train have no influence on the fit.
        """


@dataclass(frozen=True)
class Unchanged:
    """X as it is, for all folds together.

    >>> import numpy as np
    >>> from mvpa_gamp.decoding import Unchanged
    >>> [group.folds.tolist() for group in Unchanged().groups(np.ones((6, 2)), np.ones((6, 3), bool))]
    [[0, 1, 2]]
    """

    shared: ClassVar[bool] = True
    mixes: ClassVar[bool] = False

    def groups(self, X: Any, train: NDArray, rows: Any = None) -> Iterator[Prepared]:
        """The rows themselves."""
        whole = Prepared(X, X, self, np.arange(train.shape[1]))
        yield whole if rows is None else whole.at(np.asarray(rows))

    def apply(self, X: Any, covariates: Any = None) -> NDArray:
        """The rows themselves."""
        return X

    def back(self, coef: Any) -> NDArray:
        """The weights themselves."""
        return np.asarray(coef)


@dataclass(frozen=True, eq=False)
class NoiseWhitening:
    """Noise whitening (``fit_whitening``) as a preparation; ``blocks`` (M,) names the block of every row."""

    blocks: Any
    shared: ClassVar[bool] = False
    mixes: ClassVar[bool] = True

    def groups(self, X: Any, train: NDArray, rows: Any = None) -> Iterator[Prepared]:
        """Whitened rows, fold by fold; the Gram matrix of X is computed once."""
        measured = np.asarray(X) if rows is None else np.asarray(X)[rows]
        for fold, (whitening, white) in enumerate(whitened_folds(X, self.blocks, train, rows)):
            yield Prepared(white, measured, whitening, np.array([fold]))


@dataclass(frozen=True, eq=False)
class InSequence:
    """Preparations one after the other, each fitted to what the ones before it leave of the training rows.

    >>> import numpy as np
    >>> from mvpa_gamp.decoding import FoldConfounds, InSequence, NoiseWhitening
    >>> rng, train = np.random.default_rng(0), np.arange(60)[:, None] < 50
    >>> both = InSequence(FoldConfounds(rng.standard_normal((60, 2))), NoiseWhitening(np.arange(60) // 5))
    >>> next(both.groups(rng.standard_normal((60, 8)), train)).X.shape
    (60, 8)
    """

    first: Preparation
    then: Preparation

    @property
    def shared(self) -> bool:
        """Where both are."""
        return self.first.shared and self.then.shared

    @property
    def mixes(self) -> bool:
        """Where one of them does."""
        return self.first.mixes or self.then.mixes

    def groups(self, X: Any, train: NDArray, rows: Any = None) -> Iterator[Prepared]:
        """Rows prepared by both; two matrices of the size of X are held at a time."""
        for one in self.first.groups(X, train):
            for two in self.then.groups(one.X, train[:, one.folds], rows):
                yield two._replace(fitted=_Both(one.fitted, two.fitted), folds=one.folds[two.folds])


class _Both(NamedTuple):
    first: FittedPreparation
    then: FittedPreparation

    @property
    def mixes(self) -> bool:
        return self.first.mixes or self.then.mixes

    def apply(self, X: Any, covariates: Any = None) -> NDArray:
        return self.then.apply(self.first.apply(X, covariates), covariates)

    def back(self, coef: Any) -> NDArray:
        return self.first.back(self.then.back(coef))


def in_sequence(steps: Sequence[Preparation | None]) -> Preparation:
    """All preparations that are not None, in their order."""
    asked = [step for step in steps if step is not None]
    return reduce(InSequence, asked) if asked else Unchanged()


def prepared_by_all(preparation: Preparation, X: Any, rows: Any = None) -> Prepared:
    """Rows of X (M, N) prepared by all M rows, as for the refit: nothing is held out.

    Parameters
    ----------
    preparation
        What is fitted, such as ``NoiseWhitening`` or ``FoldConfounds``.
    X
        Samples (M, N).
    rows
        Numbers (m,) of the rows to prepare; None: all.

    Returns
    -------
    Prepared
        X (m, N) of these rows, and what was fitted.

    Examples
    --------
    >>> import numpy as np
    >>> from mvpa_gamp.decoding import NoiseWhitening, prepared_by_all
    >>> X = np.random.default_rng(0).standard_normal((60, 4)) * [1, 2, 5, 10]
    >>> prepared = prepared_by_all(NoiseWhitening(np.arange(60) // 5), X, rows=np.arange(6))
    >>> prepared.X.shape, np.allclose(prepared.X, prepared.fitted.apply(X[:6]))
    ((6, 4), True)
    """
    return next(preparation.groups(X, np.ones((len(X), 1), dtype=bool), rows))


def folds_of_rows(folds: Folds, rows: NDArray, every_fold: bool = False) -> tuple[Folds, NDArray]:
    """The folds of a comparison on ``rows`` (m,), and which folds of the study (F,) bool hold some of it out.

    ``every_fold`` keeps those that hold out nothing of it as well.

    >>> from mvpa_gamp.decoding import leave_one_run_out
    >>> own, mine = folds_of_rows(leave_one_run_out([1, 1, 2, 2, 3]), np.array([0, 1, 2]))
    >>> own.held_out.tolist(), mine.tolist()
    ([1, 2], [True, True, False])
    """
    mine = folds.tested[rows].any(axis=0) | every_fold
    return Folds(folds.train[rows][:, mine], folds.tested[rows][:, mine], folds.held_out[mine]), mine


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

    Parameters
    ----------
    X
        Samples (M, N).
    covariates
        Values (M, C).
    train
        Rows (M,) bool that are fitted; None: all.

    Returns
    -------
    ConfoundRegression
        Its ``apply(X, covariates)`` takes away what the covariates explain.

    Examples
    --------
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
