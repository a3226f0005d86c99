"""Methods that see X through inner products of its rows: linear SVM (C = 1), and LDA with shrinkage."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.special import expit

from ..parallel import block_threads
from .fold_fits import (
    CORTES_1995,
    LEDOIT_2004,
    ClassWeight,
    FoldFits,
    check_class_weight,
    check_fold_input,
    row_weights,
)

FEATURES_AT_ONCE = 4096  # turned into float64 together: a copy of 216 rows is 7 MB
_LARGEST_OFFSET = 1e6  # values over their range: beyond, inner products have four digits left for the range


def check_offset(X: Any) -> None:
    """Refuse a dense X that hardly varies around a large value: its inner products would be rounding."""
    if sparse.issparse(X):
        return
    largest, extent = float(np.abs(X).max()), float(np.ptp(X, axis=0).max())
    if 0 < extent < largest / _LARGEST_OFFSET:
        raise ValueError(
            f"Values of X are as large as {largest:.3g}, but no feature varies by more than {extent:.3g}. "
            "Inner products cannot resolve that. Subtract the mean of every feature, or standardise."
        )


def gram_matrix(X: Any) -> NDArray:
    """X X' (M, M) in float64 of a dense or sparse X; an entry depends on its two rows alone."""
    if sparse.issparse(X):
        wide = X.astype(np.float64)
        return (wide @ wide.T).toarray()
    gram = np.zeros((len(X), len(X)))
    for features in feature_blocks(X):
        part = X[:, features].astype(np.float64, copy=False)
        gram += part @ part.T
    return gram


def weights_of_rows(X: Any, dual: NDArray) -> NDArray:
    """X' dual (N, B) in float64: the weights that are mixtures of rows with coefficients dual (M, B)."""
    if sparse.issparse(X):
        return np.asarray(X.T @ dual)
    weights = np.empty((X.shape[1], dual.shape[1]))
    for features in feature_blocks(X):
        weights[features] = X[:, features].astype(np.float64, copy=False).T @ dual
    return weights


def feature_blocks(X: NDArray) -> Iterator[slice]:
    """Some features of X at a time, so that copies of them stay small."""
    for start in range(0, X.shape[1], FEATURES_AT_ONCE):
        yield slice(start, min(start + FEATURES_AT_ONCE, X.shape[1]))


class _SvmFit(NamedTuple):
    dual: NDArray  # (M,) a_m y_m, 0 off the support vectors
    intercept: float
    n_iter: int
    n_vectors: int


@dataclass(frozen=True)
class LinearSVM:
    """Linear support vector machine: |w|^2 / 2 + C sum_m c_m max(0, 1 - y_m (x_m' w + b)) is minimised.

    c are the class weights, and b is not penalised.
    Solved in the dual by LIBSVM (scikit-learn's ``SVC``) to a violation of the optimality conditions below
    ``tol``. Features enter through their Gram matrix, computed once for all columns and centred on the
    training rows of each, which leaves w as it is and keeps digits where features have large means. Nothing
    is tuned and nothing is random. Every weight is non-zero, so nothing is selected; there is no probability
    model.

    >>> import numpy as np
    >>> from mvpa_gamp.methods import LinearSVM
    >>> runs, y = np.repeat(np.arange(6), 8), np.tile(np.repeat([1, -1], 4), 6)
    >>> X = np.random.default_rng(0).standard_normal((48, 20)) + y[:, None] * (np.arange(20) == 5)
    >>> fits = LinearSVM().fit_folds(X, y, runs[:, None] != np.unique(runs), runs)
    >>> bool(fits.support.all()), int(np.abs(fits.coef[:, 0]).argmax())
    (True, 5)
    """

    C: float = 1.0
    tol: float = 1e-5
    max_iter: int = 10_000_000  # of two multipliers each: LIBSVM's own limit
    class_weight: ClassWeight = None

    name: ClassVar[str] = "svm"
    label: ClassVar[str] = "SVM"
    reference: ClassVar[str] = CORTES_1995
    short_reference: ClassVar[str] = "Cortes and Vapnik, 1995"
    intercept: ClassVar[str] = "free"
    has_posterior: ClassVar[bool] = False
    is_batched: ClassVar[bool] = True
    uses_connectivity: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not (self.C > 0 and self.tol > 0 and self.max_iter >= 1):
            raise ValueError(f"LinearSVM needs C, tol and max_iter above 0, got {self}. Correct them.")
        check_class_weight(self.class_weight)

    @property
    def description(self) -> str:
        """A sentence for the methods text."""
        return (
            f"A linear support vector machine with hinge loss and C = {self.C:g}, which was not tuned; every "
            "voxel has a weight and none is selected."
        )

    def fit_folds(
        self, X: Any, y: NDArray, train: NDArray, runs: NDArray, connectivity: Any = None
    ) -> FoldFits:
        """Fit one classifier per column of ``train``; see ``Method.fit_folds``."""
        start = perf_counter()
        data = check_fold_input(X, y, train, runs)
        check_offset(data.X)
        gram, weights = gram_matrix(data.X), row_weights(data.Y, self.class_weight)
        fits = [self._fit(gram, labels, mine) for labels, mine in zip(data.Y.T, weights.T, strict=True)]
        dual = np.column_stack([fit.dual for fit in fits])
        intercept = np.array([fit.intercept for fit in fits])
        n_iter = np.array([fit.n_iter for fit in fits])
        coef = weights_of_rows(data.X, dual)
        decision = gram @ dual + intercept
        return FoldFits(
            coef=coef,
            intercept=intercept,
            support=coef != 0,
            status=tuple(self._status(fit) for fit in fits),
            converged=n_iter < self.max_iter,
            n_iter=n_iter,
            seconds=perf_counter() - start,
            parameters={"support_vectors": np.array([float(fit.n_vectors) for fit in fits])},
            decision=decision,
            proba=np.full(decision.shape, np.nan),
        )

    def _fit(self, gram: NDArray, labels: NDArray, weights: NDArray) -> _SvmFit:
        # Imported here: scikit-learn is slow to load and the other methods do not need it.
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.svm import SVC

        rows = np.flatnonzero(labels)
        inner = gram[np.ix_(rows, rows)]
        mean = inner.mean(axis=0)
        model = SVC(C=self.C, kernel="precomputed", tol=self.tol, max_iter=self.max_iter)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # told by n_iter_, and so by the status
            model.fit(inner - mean - mean[:, None] + mean.mean(), labels[rows], sample_weight=weights[rows])
        dual = np.zeros(len(labels))
        dual[rows[model.support_]] = model.dual_coef_[0]
        intercept = float(model.intercept_[0]) - float(mean @ dual[rows])
        return _SvmFit(dual, intercept, int(np.sum(model.n_iter_)), len(model.support_))

    def _status(self, fit: _SvmFit) -> str:
        if fit.n_iter < self.max_iter:
            return (
                f"converged: optimal to {self.tol:.0e} after {fit.n_iter} iterations, "
                f"{fit.n_vectors} support vectors"
            )
        return f"not converged: LIBSVM reached max_iter={self.max_iter}; standardise the features"


class _Fit(NamedTuple):
    coef: NDArray  # (N,)
    intercept: float
    shrinkage: tuple[float, float]  # of the classes -1 and +1
    has_noise: bool


class _Class(NamedTuple):
    """The rows of one class: their mean, and their covariance as R'R / n shrunk to a diagonal."""

    rows: NDArray  # (n,) numbers
    prior: float
    mean: NDArray  # (N,)
    diagonal: NDArray  # (N,) shrinkage times the mean scaled variance, times the variances
    shrinkage: float
    varies: bool  # whether its rows differ

    @property
    def share(self) -> float:
        """What R'R is multiplied by."""
        return self.prior * (1 - self.shrinkage) / len(self.rows)


@dataclass(frozen=True)
class ShrinkageLDA:
    """Linear discriminant analysis: w = C^-1 (m_1 - m_0), b = log(p_1 / p_0) - w'(m_1 + m_0) / 2.

    The m_k are the means and the p_k the priors of the classes.
    C is the mean of the classes' covariances, weighted by their priors; each is that of scaled features,
    shrunk to a multiple of the identity with Ledoit and Wolf's weight, and scaled back, as in scikit-learn's
    ``LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")``. So C is a diagonal D plus the scatter of
    the rows, and where features outnumber rows it is inverted by an (M, M) system, (D + R'R)^-1 =
    D^-1 - D^-1 R'(I + R D^-1 R')^-1 R D^-1, and never formed. Priors are the classes' shares of the training
    rows; class weights multiply them, so "balanced" makes them equal. Nothing is selected.

    >>> import numpy as np
    >>> from mvpa_gamp.methods import ShrinkageLDA
    >>> runs, y = np.repeat(np.arange(6), 8), np.tile(np.repeat([1, -1], 4), 6)
    >>> X = np.random.default_rng(0).standard_normal((48, 20)) + y[:, None] * (np.arange(20) == 5)
    >>> fits = ShrinkageLDA().fit_folds(X, y, runs[:, None] != np.unique(runs), runs)
    >>> bool(fits.support.all()), int(np.abs(fits.coef[:, 0]).argmax())
    (True, 5)
    """

    class_weight: ClassWeight = None

    name: ClassVar[str] = "lda"
    label: ClassVar[str] = "LDA"
    description: ClassVar[str] = (
        "Linear discriminant analysis with a covariance shrunk by Ledoit and Wolf's formula, within classes; "
        "nothing was tuned, every voxel has a weight and none is selected."
    )
    reference: ClassVar[str] = LEDOIT_2004
    short_reference: ClassVar[str] = "Ledoit and Wolf, 2004"
    intercept: ClassVar[str] = "free"
    has_posterior: ClassVar[bool] = False
    is_batched: ClassVar[bool] = True
    uses_connectivity: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_class_weight(self.class_weight)

    def fit_folds(
        self, X: Any, y: NDArray, train: NDArray, runs: NDArray, connectivity: Any = None
    ) -> FoldFits:
        """Fit one classifier per column of ``train``; see ``Method.fit_folds``. Sparse X is made dense."""
        start = perf_counter()
        data = check_fold_input(X, y, train, runs)
        dense = data.X.toarray() if sparse.issparse(data.X) else data.X
        weights = row_weights(data.Y, self.class_weight)
        with block_threads(data.Y.shape[1], per_thread=1) as over_columns:
            columns = zip(data.Y.T, weights.T, strict=True)
            fits = list(over_columns(lambda column: _fit(dense, *column), columns))
        coef = np.column_stack([fit.coef for fit in fits])
        intercept = np.array([fit.intercept for fit in fits])
        decision = np.zeros((len(dense), len(fits))) + intercept
        for features in feature_blocks(dense):
            decision += dense[:, features].astype(np.float64, copy=False) @ coef[features]
        shrinkage = np.array([fit.shrinkage for fit in fits])
        return FoldFits(
            coef=coef,
            intercept=intercept,
            support=coef != 0,
            status=tuple(_status(fit) for fit in fits),
            converged=np.array([fit.has_noise for fit in fits]),
            n_iter=np.ones(len(fits), dtype=int),
            seconds=perf_counter() - start,
            parameters={"shrinkage.negative": shrinkage[:, 0], "shrinkage.positive": shrinkage[:, 1]},
            decision=decision,
            proba=expit(decision),
        )


def _fit(X: NDArray, labels: NDArray, weights: NDArray) -> _Fit:
    """One column: labels (M,) are -1, +1 or 0, weights (M,) those of its rows."""
    classes = [
        _class(X, np.flatnonzero(labels == sign), weights[labels == sign].sum() / weights.sum())
        for sign in (-1, 1)
    ]
    first, second = classes
    difference, diagonal = second.mean - first.mean, first.diagonal + second.diagonal
    has_noise = any(each.varies for each in classes)
    if not has_noise:
        coef = difference  # rows of a class do not differ: there is no noise to weigh voxels by
    elif not diagonal.any():
        coef = _unshrunk_solution(X, classes, difference)
    elif X.shape[1] > np.count_nonzero(labels):
        coef = _dual_solution(X, classes, diagonal, difference)
    else:
        coef = _primal_solution(X, classes, diagonal, difference)
    middle = float(coef @ (first.mean + second.mean)) / 2
    intercept = float(np.log(second.prior / first.prior)) - middle
    return _Fit(coef, intercept, (first.shrinkage, second.shrinkage), has_noise)


def _class(X: NDArray, rows: NDArray, prior: float) -> _Class:
    """Moments of one class; its scaled features have unit variance, constant ones stay zero."""
    n, n_features = len(rows), X.shape[1]
    mean, variance = np.empty(n_features), np.empty(n_features)
    inner = np.zeros((n, n))
    for features in feature_blocks(X):
        R = X[rows, features]
        mean[features] = R.mean(axis=0, dtype=np.float64)
        R -= mean[features].astype(X.dtype)
        spread = np.einsum("mn,mn->n", R, R) / n
        variance[features] = _without_rounding(spread, mean[features], n)
        R /= np.sqrt(np.where(variance[features] > 0, variance[features], np.inf)).astype(X.dtype)
        inner += R @ R.T
    shrinkage, level = _ledoit_wolf(inner, n_features, float(np.finfo(X.dtype).eps))
    scale = np.where(variance > 0, variance, 1.0)
    return _Class(rows, float(prior), mean, prior * shrinkage * level * scale, shrinkage, level > 0)


def _without_rounding(variance: NDArray, mean: NDArray, n: int) -> NDArray:
    """Variances (N,), 0 where rounding of the mean explains them (scikit-learn's rule)."""
    eps = np.finfo(variance.dtype).eps
    return np.where(variance <= n * eps * variance + np.square(n * mean * eps), 0.0, variance)


def _ledoit_wolf(inner: NDArray, n_features: int, eps: float) -> tuple[float, float]:
    """Weight of the identity and its multiple, from the Gram matrix R R' (n, n) of centred rows.

    Two rows have no weight but for rounding: ``eps`` is that of the inner products.
    """
    n, norms = len(inner), np.diag(inner)
    level = float(norms.sum()) / (n * n_features)
    spread = float(np.vdot(inner, inner)) / n**2
    distance = spread / n_features - level**2
    noise = (float(norms @ norms) / n - spread) / (n * n_features)
    bounded = min(noise, distance)
    nothing = bounded <= n * eps * spread / n_features or n_features == 1
    return (0.0 if nothing else bounded / distance), level


def _scaled_rows(X: NDArray, classes: list[_Class], features: slice) -> NDArray:
    """The centred rows (n, ...) of both classes, scaled so that their scatter adds to the diagonal."""
    parts = []
    for each in classes:
        R = X[each.rows, features]
        R -= each.mean[features].astype(X.dtype)
        R *= X.dtype.type(np.sqrt(each.share))
        parts.append(R)
    return np.concatenate(parts)


def _dual_solution(X: NDArray, classes: list[_Class], diagonal: NDArray, difference: NDArray) -> NDArray:
    """(D + R'R)^-1 m by an (n, n) system."""
    n = sum(len(each.rows) for each in classes)
    inner, right = np.eye(n), np.zeros(n)
    for features in feature_blocks(X):
        R = _scaled_rows(X, classes, features)
        right += R @ (difference[features] / diagonal[features]).astype(X.dtype)
        R /= np.sqrt(diagonal[features]).astype(X.dtype)
        inner += R @ R.T  # of one matrix and its transpose BLAS computes one half
    solved = linalg.solve(inner, right, assume_a="pos")
    coef = np.empty_like(difference)
    for features in feature_blocks(X):
        R = _scaled_rows(X, classes, features)
        coef[features] = (difference[features] - R.T @ solved) / diagonal[features]
    return coef


def _unshrunk_solution(X: NDArray, classes: list[_Class], difference: NDArray) -> NDArray:
    """(R'R)^+ m = R'(R R')^+ (R R')^+ R m, of least norm, where nothing is shrunk (two rows per class)."""
    R = _scaled_rows(X.astype(np.float64), classes, slice(None))
    inverse = linalg.pinvh(R @ R.T)
    return np.asarray(R.T @ (inverse @ (inverse @ (R @ difference))))


def _primal_solution(X: NDArray, classes: list[_Class], diagonal: NDArray, difference: NDArray) -> NDArray:
    """The same by an (N, N) system; least squares, as features may repeat where shrinkage is tiny."""
    R = _scaled_rows(X.astype(np.float64), classes, slice(None))
    return np.asarray(linalg.lstsq(R.T @ R + np.diag(diagonal), difference)[0])


def _status(fit: _Fit) -> str:
    if fit.has_noise:
        return "closed form, covariances shrunk by {:.2f} and {:.2f}".format(*fit.shrinkage)
    return (
        "failed: rows of a class do not differ, so there is no covariance; weights are the difference of the "
        "means. Give more rows per class"
    )
