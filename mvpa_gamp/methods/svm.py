"""The linear support vector machine with C = 1, the habit of the field: all folds share one Gram matrix."""

import warnings
from dataclasses import dataclass
from time import perf_counter
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .class_weights import ClassWeight, check_class_weight, row_weights
from .fold_fits import FoldFits
from .fold_input import check_fold_input
from .gram import check_offset, gram_matrix, weights_of_rows
from .references import CORTES_1995


class _Fit(NamedTuple):
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

    def _fit(self, gram: NDArray, labels: NDArray, weights: NDArray) -> _Fit:
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
        return _Fit(dual, intercept, int(np.sum(model.n_iter_)), len(model.support_))

    def _status(self, fit: _Fit) -> str:
        if fit.n_iter < self.max_iter:
            return (
                f"converged: optimal to {self.tol:.0e} after {fit.n_iter} iterations, "
                f"{fit.n_vectors} support vectors"
            )
        return f"not converged: LIBSVM reached max_iter={self.max_iter}; standardise the features"
