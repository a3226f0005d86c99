"""Any classifier of scikit-learn behind the contract of all methods, one clone per column."""

import warnings
from dataclasses import dataclass
from time import perf_counter
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from .fold_fits import PEDREGOSA_2011, FoldFits, check_fold_input, check_number_input

_EXACT = 1e-6  # of the largest decision: rounding of float32 features
_LINEAR = "fitted"
_FOLLOWED = "fitted; not linear: its weights are those of the linear function that follows it"


class _Fit(NamedTuple):
    model: Any
    coef: NDArray  # (N,)
    intercept: float
    is_linear: bool
    decision: NDArray  # (M,)
    proba: NDArray  # (M,) of +1
    n_iter: int
    complaint: str  # that it did not converge


@dataclass(frozen=True)
class _Cloned:
    """What methods have in common that fit a clone of an estimator for every column."""

    estimator: Any

    reference: ClassVar[str] = PEDREGOSA_2011
    short_reference: ClassVar[str] = "Pedregosa et al., 2011"
    intercept: ClassVar[str] = "free"
    has_posterior: ClassVar[bool] = False
    is_batched: ClassVar[bool] = True
    uses_connectivity: ClassVar[bool] = False
    kind: ClassVar[str]

    @property
    def name(self) -> str:
        """The class of the estimator; of a pipeline or a search, that of the estimator inside."""
        return type(_innermost(self.estimator)).__name__

    @property
    def label(self) -> str:
        """The same."""
        return self.name

    @property
    def description(self) -> str:
        """A sentence for the methods text."""
        shown = " ".join(repr(self.estimator).split())
        return f"The {self.kind} {shown} of scikit-learn, fitted to the training data of each fold alone."


@dataclass(frozen=True)
class ScikitClassifier(_Cloned):
    """A classifier of scikit-learn, cloned for every column and fitted to its training rows.

    Its weights are those of a linear classifier, also behind scalers, selectors and principal components of
    a pipeline. Of others they are the linear function of least norm that gives the classifier's decisions
    on the training rows: what a map can show of them; ``FoldFits.models`` then keeps the classifiers, whose
    answers new rows get. A search over a grid splits the training rows by ``runs`` where it has a splitter
    of groups. A classifier without a seed gets one. Weights that are not zero count as selected.

    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from mvpa_gamp.methods import find_method
    >>> runs, y = np.repeat(np.arange(6), 8), np.tile(np.repeat([1, -1], 4), 6)
    >>> X = np.random.default_rng(0).standard_normal((48, 20)) + y[:, None] * (np.arange(20) == 5)
    >>> method = find_method(LogisticRegression(C=0.1))
    >>> fits = method.fit_folds(X, y, runs[:, None] != np.unique(runs), runs)
    >>> method.name, int(np.abs(fits.coef[:, 0]).argmax())
    ('LogisticRegression', 5)
    """

    kind: ClassVar[str] = "classifier"

    def fit_folds(
        self, X: Any, y: NDArray, train: NDArray, runs: NDArray, connectivity: Any = None
    ) -> FoldFits:
        """Fit one clone per column of ``train``; see ``Method.fit_folds``."""
        start = perf_counter()
        data = check_fold_input(X, y, train, runs)
        fits = [
            _cloned_fit(self.estimator, data.X, np.flatnonzero(labels), labels.astype(int), data.runs)
            for labels in data.Y.T
        ]
        keeps = not all(fit.is_linear and _is_logistic(fit) for fit in fits)
        return _joined(fits, perf_counter() - start, keeps)


def _joined(fits: list[_Fit], seconds: float, keeps: bool) -> FoldFits:
    """The fits of all columns; the models are kept where weights do not give their answers."""
    models = np.empty(len(fits), dtype=object)
    models[:] = [fit.model for fit in fits]
    coef = np.column_stack([fit.coef for fit in fits])
    return FoldFits(
        coef=coef,
        intercept=np.array([fit.intercept for fit in fits]),
        support=coef != 0,
        status=tuple(fit.complaint or (_LINEAR if fit.is_linear else _FOLLOWED) for fit in fits),
        converged=np.array([not fit.complaint for fit in fits]),
        n_iter=np.array([fit.n_iter for fit in fits]),
        seconds=seconds,
        parameters={},
        decision=np.column_stack([fit.decision for fit in fits]),
        proba=np.column_stack([fit.proba for fit in fits]),
        models=models if keeps else None,
    )


def _cloned_fit(estimator: Any, X: Any, rows: NDArray, targets: NDArray, runs: NDArray) -> _Fit:
    """A clone fitted to some rows, and its answers about all."""
    # Imported here: scikit-learn is slow to load and other methods do not need it.
    from sklearn.base import clone
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.model_selection._search import BaseSearchCV

    model = _seeded(clone(estimator))
    of_groups = {"groups": runs[rows]} if isinstance(model, BaseSearchCV) else {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X[rows], targets[rows], **of_groups)
    complaint = ""
    for each in caught:
        if issubclass(each.category, ConvergenceWarning):
            complaint = f"Not converged: {' '.join(str(each.message).split())}"
        else:
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
    decision, proba = model_answers(model, X)
    coef, intercept, is_linear = _weights(model, X, rows, decision)
    counted = getattr(_innermost(model), "n_iter_", None)
    n_iter = 1 if counted is None else int(np.max(counted))
    return _Fit(model, coef, intercept, is_linear, decision, proba, n_iter, complaint)


def _seeded(model: Any) -> Any:
    """The same with a seed wherever none was given, so that a fit can be repeated."""
    known = model.get_params(deep=True).items()
    return model.set_params(
        **{name: 0 for name, value in known if value is None and name.split("__")[-1] == "random_state"}
    )


def model_answers(model: Any, X: Any) -> tuple[NDArray, NDArray]:
    """Decisions and probabilities of +1 (M,) of a fitted classifier of -1 and +1; NaN where it has none.

    Of a regressor decisions are its predictions. A classifier without a decision function decides by its
    probability above one half, or by its class.
    """
    proba = np.full(X.shape[0], np.nan)
    if hasattr(model, "predict_proba"):
        proba = np.asarray(model.predict_proba(X)[:, list(model.classes_).index(1)], dtype=float)
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(X), dtype=float).ravel(), proba
    return (np.asarray(model.predict(X), dtype=float) if np.isnan(proba).any() else proba - 0.5), proba


def _weights(model: Any, X: Any, rows: NDArray, decision: NDArray) -> tuple[NDArray, float, bool]:
    """Weights and intercept of X whose scores are the decisions, and whether they are in all rows."""
    coef = _chained_weights(model, X.shape[1])
    if coef is not None:
        rest = decision - X @ coef
        if np.ptp(rest) <= _EXACT * max(1.0, float(np.abs(decision).max())):
            return coef, float(rest.mean()), True
    mine = X[rows].toarray() if hasattr(X, "toarray") else X[rows]
    mean = mine.mean(axis=0, dtype=float)
    centred = mine - mean
    dual = np.linalg.lstsq(centred @ centred.T, decision[rows] - decision[rows].mean(), rcond=1e-10)[0]
    coef = np.asarray(centred.T @ dual, dtype=float)
    return coef, float(decision[rows].mean() - mean @ coef), False


def _chained_weights(model: Any, n_features: int) -> NDArray | None:
    """Weights (N,) of a linear classifier behind linear steps, None where that is not what it is."""
    steps = getattr(model, "best_estimator_", model)
    *before, last = [step for _, step in getattr(steps, "steps", [("", steps)])]
    coef = np.asarray(getattr(last, "coef_", np.empty(0)), dtype=float).ravel()
    for step in reversed(before):
        if step is None or step == "passthrough":
            continue
        if hasattr(step, "get_support"):
            chosen = np.asarray(step.get_support())
            wide = np.zeros(chosen.size)
            if coef.size != chosen.sum():
                return None
            wide[chosen] = coef
            coef = wide
        elif hasattr(step, "components_") and coef.size == len(step.components_):
            scale = np.sqrt(step.explained_variance_) if getattr(step, "whiten", False) else 1.0
            coef = (coef / scale) @ step.components_
        elif getattr(step, "scale_", None) is not None and coef.size == np.size(step.scale_):
            by = step.scale_
            coef = coef * by if hasattr(step, "min_") else coef / by  # MinMaxScaler multiplies
    return coef if coef.size == n_features else None


def _is_logistic(fit: _Fit) -> bool:
    """Whether decisions tell the probabilities, or there are none."""
    return bool(np.isnan(fit.proba).all() or np.allclose(fit.proba, expit(fit.decision), atol=_EXACT))


def _innermost(model: Any) -> Any:
    """The classifier of a pipeline or search."""
    for name in ("best_estimator_", "estimator"):
        if hasattr(model, name) and type(model).__name__.endswith("SearchCV"):
            return _innermost(getattr(model, name))
    steps = getattr(model, "steps", None)
    return _innermost(steps[-1][1]) if steps else model


@dataclass(frozen=True)
class ScikitRegressor(_Cloned):
    """A regressor of scikit-learn, cloned for every column; as ``ScikitClassifier``, of numbers."""

    kind: ClassVar[str] = "regressor"

    def fit_folds(
        self, X: Any, y: NDArray, train: NDArray, runs: NDArray, connectivity: Any = None
    ) -> FoldFits:
        """Fit one clone per column of ``train``; y is (M,) or (M, B), any numbers."""
        start = perf_counter()
        data = check_number_input(X, y, train, runs)
        fits = [
            _cloned_fit(self.estimator, data.X, np.flatnonzero(mine), values, data.runs)
            for mine, values in zip(data.train.T, data.Y.T, strict=True)
        ]
        return _joined(fits, perf_counter() - start, keeps=not all(fit.is_linear for fit in fits))
