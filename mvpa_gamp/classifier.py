"""scikit-learn's door to the engine: GAMPClassifier."""

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from .gamp import Design, EmResult, SolverSettings, fit_em, solve
from .gamp.likelihoods import LIKELIHOODS, Likelihood
from .gamp.moments import floored
from .gamp.parameters import parameters
from .gamp.priors import Prior
from .gamp.starts import start


class GAMPClassifier(ClassifierMixin, BaseEstimator):
    """Binary linear classifier and feature selector by generalized approximate message passing.

    Parameters are learnt from the training data by expectation maximisation, so there is no grid to
    search; ``predict_proba`` averages over the posterior of the score.

    Parameters
    ----------
    likelihood : "logistic", "probit", "hinge", or a likelihood of ``mvpa_gamp.gamp`` such as
        ``Robust(Logistic(), flip=0.05)`` for wrong labels.
    prior : name in ``mvpa_gamp.gamp.priors.PRIORS`` (the start is then chosen for the data at hand), or a
        prior object, whose parameters are the start.
    mode : "sum-product" (posterior means and inclusion probabilities) or "max-sum" (penalised loss; use it
        with "laplace", "gaussian" or "elastic-net").
    em : learn the parameters; False keeps the start.
    learn_prior, learn_likelihood : names of the parameters to learn; None means each model's default.
    fit_intercept : learn an offset of the score; also what makes unbalanced classes work.
    center : subtract the feature means; "auto" does so for dense X only.
    stop, max_iter, tol, damping, variance : see ``mvpa_gamp.gamp.SolverSettings``.
    connectivity : sparse (n_features, n_features) adjacency, such as ``grid_to_graph`` of scikit-learn makes
        for a mask: features with selected neighbours are then selected more readily. Needs a Bernoulli prior,
        sum-product mode and the cavity stop, which are the defaults.

    Attributes
    ----------
    coef_, coef_std_ : (1, n_features) posterior mean and standard deviation of the weights.
    intercept_ : (1,)
    inclusion_prob_ : (n_features,) posterior probability that a weight is not zero.
    loo_score_ : mean leave-one-out log-likelihood of the training samples, by which the iterate was chosen
        (NaN in max-sum mode). Choosing and tuning make it optimistic: report held-out scores instead.
    converged_, status_, n_iter_ : how the run ended.
    hyperparameters_ : dict of the parameters in use, such as ``prior.slab.var``.

    Examples
    --------
    >>> import numpy as np
    >>> from mvpa_gamp import GAMPClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 1000))
    >>> y = X[:, 3] - X[:, 7] + 0.3 * rng.standard_normal(200) > 0
    >>> np.flatnonzero(GAMPClassifier().fit(X, y).get_support())
    array([3, 7])
    """

    def __init__(
        self,
        likelihood: Any = "logistic",
        prior: Any = "bernoulli-gaussian",
        mode: str = "sum-product",
        em: bool = True,
        *,
        learn_prior: Iterable[str] | None = None,
        learn_likelihood: Iterable[str] | None = None,
        fit_intercept: bool = True,
        center: bool | str = "auto",
        stop: str | None = None,
        max_iter: int | None = None,
        tol: float | None = None,
        damping: float | None = None,
        variance: str = "full",
        connectivity: Any = None,
    ) -> None:
        self.likelihood = likelihood
        self.prior = prior
        self.mode = mode
        self.em = em
        self.learn_prior = learn_prior
        self.learn_likelihood = learn_likelihood
        self.fit_intercept = fit_intercept
        self.center = center
        self.stop = stop
        self.max_iter = max_iter
        self.tol = tol
        self.damping = damping
        self.variance = variance
        self.connectivity = connectivity

    def fit(self, X: Any, y: Any) -> "GAMPClassifier":
        """Fit to samples X (n_samples, n_features), dense or sparse, and two classes y."""
        settings, likelihood = self._settings(), _likelihood(self.likelihood)
        X, y = validate_data(
            self, X, y, accept_sparse=("csr", "csc"), dtype=(np.float64, np.float32), order="C"
        )
        self.classes_, labels = _two_classes(y)
        centered = self._is_centered(X)
        design = Design(X, center="train" if centered else None, connectivity=self.connectivity)
        if not design.row_energy().any():
            raise ValueError(
                "No feature of X varies, so nothing tells the classes apart. Check how X was built or masked."
            )
        self._center_ = np.asarray(X.mean(axis=0, dtype=float)).ravel().astype(X.dtype) if centered else None
        self._keep(self._tuned(design, labels, likelihood, settings))
        return self

    def decision_function(self, X: Any) -> NDArray:
        """Log-odds of the second class, averaged over the posterior of the score X @ coef_ + intercept_.

        In max-sum mode, which has no posterior, it is the score itself.
        """
        score, variance = self._score(self._checked(X))
        return score if self.mode == "max-sum" else self.likelihood_.log_odds(score, variance)

    def predict(self, X: Any) -> NDArray:
        """The class with the higher probability."""
        check_is_fitted(self)
        return self.classes_[(self.decision_function(X) > 0).astype(int)]

    def predict_proba(self, X: Any) -> NDArray:
        """Class probabilities (n_samples, 2), averaged over the posterior of the score."""
        log_odds = self.decision_function(X)
        if self.mode == "max-sum":
            positive = self.likelihood_.predict_proba(log_odds, floored(np.zeros_like(log_odds)))
        else:
            positive = expit(log_odds)
        return np.column_stack([1 - positive, positive])

    def predict_log_proba(self, X: Any) -> NDArray:
        """Logarithm of ``predict_proba``; -inf where a probability is zero."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def get_support(self, indices: bool = False) -> NDArray:
        """Selected features: inclusion probability above 1/2; without a Bernoulli prior, non-zero weights."""
        check_is_fitted(self)
        chosen = self.inclusion_prob_ > 0.5 if self.prior_.has_atom else self.coef_[0] != 0
        return np.flatnonzero(chosen) if indices else chosen

    def _settings(self) -> SolverSettings:
        return SolverSettings(
            mode=self.mode,
            stop=self.stop,
            max_iter=self.max_iter,
            tol=self.tol,
            damping=self.damping,
            variance=self.variance,
            intercept=self.fit_intercept,
        )

    def _is_centered(self, X: Any) -> bool:
        wanted = self.center
        if isinstance(wanted, str) and wanted == "auto":
            wanted = self.fit_intercept and not sparse.issparse(X)
        if not isinstance(wanted, (bool, np.bool_)):
            raise ValueError(f"center must be True, False or 'auto', got {wanted!r}.")
        return bool(wanted)

    def _tuned(self, design: Design, labels: NDArray, likelihood: Any, settings: SolverSettings) -> EmResult:
        prior = self._start(design, labels, likelihood)
        if not self.em:
            return EmResult(solve(design, labels, likelihood, prior, settings), likelihood, prior, {})
        return fit_em(
            design,
            labels,
            likelihood,
            prior,
            settings,
            learn_prior=self.learn_prior,
            learn_likelihood=self.learn_likelihood,
        )

    def _start(self, design: Design, labels: NDArray, likelihood: Any) -> Any:
        if isinstance(self.prior, Prior):
            return self.prior
        if not isinstance(self.prior, str):
            raise ValueError(
                f"prior must be a name or a prior object of mvpa_gamp.gamp, got {type(self.prior).__name__}."
            )
        return start(self.prior, design, labels, likelihood, self.mode)

    def _keep(self, tuned: EmResult) -> None:
        result = tuned.result
        self.likelihood_, self.prior_ = tuned.likelihood, tuned.prior
        self.coef_ = np.ascontiguousarray(result.coef.T)
        self.coef_std_ = np.sqrt(result.coef_var).T
        self.intercept_ = result.plain_intercept
        self.inclusion_prob_ = (
            (result.coef[:, 0] != 0).astype(float)
            if self.mode == "max-sum"
            else tuned.inclusion()[:, 0].astype(float)
        )
        self.loo_score_ = float(result.cavity_score[0])
        self.n_iter_ = int(result.n_iter[0])
        self.converged_ = bool(result.converged[0])
        self.status_ = str(result.status[0])
        self.hyperparameters_ = {
            f"{part}.{name}": np.squeeze(value)[()]
            for part, model in (("likelihood", tuned.likelihood), ("prior", tuned.prior))
            for name, value in parameters(model).items()
        }
        if not self.converged_:
            warnings.warn(f"1 of 1 fits did not converge. {self.status_}", ConvergenceWarning, stacklevel=3)

    def _score(self, X: Any) -> tuple[NDArray, NDArray]:
        """X @ coef_ + intercept_ and its variance, around the center: float32 X may have a large mean."""
        design = Design(X, center=self._center_)
        score, variance, _ = design.scores(self.coef_.T, np.square(self.coef_std_.T))
        shift = 0.0 if self._center_ is None else float(np.vdot(self._center_.astype(float), self.coef_))
        return score[:, 0] + self.intercept_[0] + shift, floored(variance[:, 0])

    def _checked(self, X: Any) -> Any:
        check_is_fitted(self)
        return validate_data(
            self, X, accept_sparse=("csr", "csc"), dtype=(np.float64, np.float32), order="C", reset=False
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        return tags


def _likelihood(given: Any) -> Any:
    if isinstance(given, str):
        if given not in LIKELIHOODS:
            raise ValueError(f"Unknown likelihood {given!r}. Known likelihoods: {', '.join(LIKELIHOODS)}.")
        return LIKELIHOODS[given]()
    if not isinstance(given, Likelihood):
        raise ValueError(
            f"likelihood must be a name or a likelihood of mvpa_gamp.gamp, got {type(given).__name__}."
        )
    return given


def _two_classes(y: Any) -> tuple[NDArray, NDArray]:
    """Sorted classes and labels in -1/+1."""
    check_classification_targets(y)
    kind = type_of_target(y, input_name="y")
    if kind not in ("binary", "multiclass"):
        raise ValueError(f"y must hold one class per sample, got a target of type {kind}.")
    classes, codes = np.unique(y, return_inverse=True)
    if classes.size > 2:
        raise ValueError(
            "Only binary classification is supported. The type of the target is multiclass: "
            f"got {classes.size} classes. Compare classes in pairs, for example with OneVsOneClassifier."
        )
    if classes.size < 2:
        raise ValueError(
            f"y must hold two classes, got one class: {classes.tolist()}. Add samples of another."
        )
    return classes, 2.0 * codes - 1.0
