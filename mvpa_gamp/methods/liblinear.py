"""LIBLINEAR's logistic regressions, tuned like the other baselines: CDN (L1) and TRON (L2)."""

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ..feature_scale import rescaled
from .fold_fits import FAN_2008, ClassWeight, FoldFits, check_class_weight, check_fold_input, row_weights
from .nested import NestedPlan, choose, nested_plan


@dataclass(frozen=True)
class _Liblinear(ABC):
    """Minimise penalty(w, b) + C sum_m log(1 + exp(-y_m (x_m' w + b))) through scikit-learn.

    LIBLINEAR penalises the intercept b like a weight. C comes from ``n_values`` log-spaced candidates by
    nested leave-one-run-out error, ties to the smallest. They depend on the training rows of X only. X of an
    unusual scale gets a usual one first: beside features of 1e-12 the intercept hardly settles.
    """

    n_values: int = 10
    tol: float = 1e-4
    max_iter: int = 1000
    seed: int = 0  # of LIBLINEAR's coordinate order
    class_weight: ClassWeight = None  # multiplies the losses of the rows, and the errors of the inner folds

    name: ClassVar[str]
    label: ClassVar[str]
    solves: ClassVar[str]
    l1: ClassVar[bool]
    c_power: ClassVar[int]  # of X in 1/C
    reference: ClassVar[str] = FAN_2008
    short_reference: ClassVar[str] = "Fan et al., 2008"
    intercept: ClassVar[str] = "penalised"
    has_posterior: ClassVar[bool] = False
    is_batched: ClassVar[bool] = False
    uses_connectivity: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_class_weight(self.class_weight)

    @property
    def description(self) -> str:
        """A sentence for the methods text."""
        return (
            f"{self.label} is LIBLINEAR's {self.solves} logistic regression; C was chosen from "
            f"{self.n_values} log-spaced values by nested leave-one-run-out cross-validation."
        )

    def fit_folds(
        self, X: Any, y: NDArray, train: NDArray, runs: NDArray, connectivity: Any = None
    ) -> FoldFits:
        """Fit one classifier per column of ``train``; see ``Method.fit_folds``."""
        start = perf_counter()
        data = check_fold_input(X, y, train, runs)
        data = data._replace(X=rescaled(data.X, data.factor))
        plan = nested_plan(data.Y, data.runs)
        weights = row_weights(plan.labels.T, self.class_weight).T
        labels = plan.labels * weights
        choice = choose(plan, self._scores(data.X, plan, labels), weights)
        outer = labels[plan.outer]
        chosen = [
            self.candidates(data.X, labels)[g] for g, labels in zip(choice.candidate, outer, strict=True)
        ]
        models = [self._fit(data.X, labels, C) for labels, C in zip(outer, chosen, strict=True)]
        coef = np.column_stack([model.coef_[0] for model in models])
        decision = np.column_stack([model.decision_function(data.X) for model in models])
        n_iter = np.array([int(np.max(model.n_iter_)) for model in models])
        return FoldFits(
            coef=rescaled(coef, data.factor),
            intercept=np.array([float(model.intercept_[0]) for model in models]),
            support=coef != 0,
            status=tuple(self._status(n) for n in n_iter),
            converged=n_iter < self.max_iter,
            n_iter=n_iter,
            seconds=perf_counter() - start,
            parameters={"C": np.array(chosen) * data.factor**self.c_power, "inner_error": choice.error},
            decision=decision,
            proba=expit(decision),
        )

    def _scores(self, X: Any, plan: NestedPlan, labels: NDArray) -> NDArray:
        """Decision values (G, U, M) of every candidate and fit that tuning needs, NaN for the other fits."""
        scores = np.full((self.n_values, *plan.labels.shape), np.nan)
        for fit in {fold.fit for folds in plan.inner for fold in folds}:
            for g, C in enumerate(self.candidates(X, labels[fit])):
                scores[g, fit] = self._fit(X, labels[fit], C).decision_function(X)
        return scores

    @abstractmethod
    def candidates(self, X: Any, labels: NDArray) -> NDArray:
        """Return the values of C, ascending, for labels (M,): -1/+1 times the weight of the row, or 0."""

    def _fit(self, X: Any, labels: NDArray, C: float) -> Any:
        # Imported here: scikit-learn is slow to load and the other methods do not need it.
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression

        rows = labels != 0
        model = LogisticRegression(
            C=C, solver="liblinear", tol=self.tol, max_iter=self.max_iter, random_state=self.seed
        )
        model.set_params(**_penalty(model, self.l1))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # told by n_iter_, and so by the status
            return model.fit(X[rows], np.sign(labels[rows]), sample_weight=np.abs(labels[rows]))

    def _status(self, n_iter: int) -> str:
        if n_iter < self.max_iter:
            return f"converged: LIBLINEAR stopped after {n_iter} iterations"
        return f"not converged: LIBLINEAR reached max_iter={self.max_iter}; raise max_iter or tol"


@dataclass(frozen=True)
class CDN(_Liblinear):
    """LIBLINEAR's coordinate descent with Newton directions for the L1 penalty |w|_1 + |b|.

    1/C runs over the same label-free range as the penalties of ``l1-lr-cv``.

    >>> import numpy as np
    >>> from mvpa_gamp.methods import CDN
    >>> runs, y = np.repeat(np.arange(6), 8), np.tile(np.repeat([1, -1], 4), 6)
    >>> X = np.random.default_rng(0).standard_normal((48, 20)) + y[:, None] * (np.arange(20) == 5)
    >>> fits = CDN(n_values=5).fit_folds(X, y, runs[:, None] != np.unique(runs), runs)
    >>> fits.parameters["C"].shape, bool(fits.support[5].all())
    ((6,), True)
    """

    top: float = 0.5
    bottom: float = 0.0025

    name: ClassVar[str] = "cdn"
    label: ClassVar[str] = "CDN"
    solves: ClassVar[str] = "coordinate descent for L1-penalised"
    l1: ClassVar[bool] = True
    c_power: ClassVar[int] = 1

    def candidates(self, X: Any, labels: NDArray) -> NDArray:
        """Return 1 / lambda, lambda log-spaced from ``top`` to ``bottom`` times 1/2 max_n sum_m |x_mn|."""
        rows = labels != 0
        largest = 0.5 * float(np.max(np.abs(labels[rows]) @ abs(X[rows])))
        return 1.0 / (_positive(largest) * np.geomspace(self.top, self.bottom, self.n_values))


@dataclass(frozen=True)
class TRON(_Liblinear):
    """LIBLINEAR's trust-region Newton method for the L2 penalty (|w|^2 + b^2) / 2.

    C times the mean squared norm of a row runs from ``bottom`` to ``top``: from weights close to a scaled
    X'y to fits that separate the training data. Every weight is non-zero, so nothing is selected.

    >>> import numpy as np
    >>> from mvpa_gamp.methods import TRON
    >>> runs, y = np.repeat(np.arange(6), 8), np.tile(np.repeat([1, -1], 4), 6)
    >>> X = np.random.default_rng(0).standard_normal((48, 20)) + y[:, None] * (np.arange(20) == 5)
    >>> fits = TRON(n_values=5).fit_folds(X, y, runs[:, None] != np.unique(runs), runs)
    >>> bool(fits.support.all())  # nothing is selected
    True
    """

    bottom: float = 0.1
    top: float = 1000.0

    name: ClassVar[str] = "tron"
    label: ClassVar[str] = "TRON"
    solves: ClassVar[str] = "trust-region Newton method for L2-penalised"
    l1: ClassVar[bool] = False
    c_power: ClassVar[int] = 2

    def candidates(self, X: Any, labels: NDArray) -> NDArray:
        """Return C log-spaced from ``bottom`` to ``top`` over the mean squared norm of the training rows."""
        rows, weights = X[labels != 0], np.abs(labels[labels != 0])
        squared = float(weights @ (rows * rows).sum(axis=1)) / float(weights.sum())
        return np.geomspace(self.bottom, self.top, self.n_values) / _positive(squared)


def _positive(scale: float) -> float:
    if not scale > 0:
        raise ValueError("X is zero on all training rows of a fold: nothing to learn. Check the data.")
    return scale


def _penalty(model: Any, l1: bool) -> dict[str, Any]:
    """The argument that asks for the penalty: scikit-learn 1.8 replaced ``penalty`` by ``l1_ratio``."""
    if model.get_params().get("penalty") in ("l1", "l2"):
        return {"penalty": "l1" if l1 else "l2"}
    return {"l1_ratio": 1.0 if l1 else 0.0}
