"""scikit-learn's interface to the engine: GAMPClassifier."""

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, compute_class_weight
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from .coupling import Answers, class_pairs, classify
from .feature_scale import rescaled, rescaled_prior, scale_factor, warn_of_unequal
from .gamp import Design, EmResult, SolverSettings, fit_em, solve
from .gamp.likelihoods import LIKELIHOODS, Likelihood
from .gamp.moments import floored
from .gamp.parameters import parameters
from .gamp.priors import Prior
from .gamp.starts import start
from .sortable import check_sortable

# How numpy's own errors begin, of arrays that cannot be made.
_FEW_FEATURES, _MOST_EDGES = 20, 0.5  # below, and up to which, a dense graph may be meant
_NUMPY = ("could not convert", "setting an array element")


class GAMPClassifier(ClassifierMixin, BaseEstimator):
    """Linear classifier and feature selector by generalized approximate message passing.

    Parameters are learnt from the training data by expectation maximisation, so there is no grid to
    search; ``predict_proba`` averages over the posterior of the score. More than two classes are compared in
    pairs, all of them columns of one solve, whose probabilities are coupled (Hastie & Tibshirani, 1998).

    Parameters
    ----------
    likelihood : "logistic", "probit", "hinge", or a likelihood of ``mvpa_gamp.gamp`` such as
        ``Robust(Logistic(), flip=0.05)`` for wrong labels.
    prior : name in ``mvpa_gamp.gamp.priors.PRIORS`` (the start is then chosen from the data), or a
        prior object, whose parameters are the start.
    mode : "sum-product" (posterior means and inclusion probabilities) or "max-sum" (penalised loss; use it
        with "laplace", "gaussian" or "elastic-net").
    em : learn the parameters; False keeps the start.
    learn_prior, learn_likelihood : names of the parameters to learn; None means each model's default.
    fit_intercept : learn an offset of the score; also what makes unbalanced classes work.
    center : subtract the feature means; "auto" does so for dense X only.
    stop, max_iter, tol, damping, variance : see ``mvpa_gamp.gamp.SolverSettings``.
    connectivity : sparse (n_features, n_features) adjacency, such as ``grid_to_graph`` of scikit-learn makes
        for a mask: features with selected neighbours are then selected more readily. Every entry that is not
        zero is an edge, in both directions, whatever its weight or sign: cut a matrix of correlations at a
        threshold first. A DataFrame is matched to the columns of X by name, also after a step that selects
        features (``Pipeline(...).set_output(transform="pandas")``). Needs a Bernoulli prior,
        sum-product mode and the cavity stop, which are the defaults.
    class_weight : None, "balanced" or {class: weight}, as in scikit-learn: multiplies the weights of the
        samples of a class. "balanced" is n_samples / (n_classes * samples of the class).

    Attributes
    ----------
    classes_ : (n_classes,) sorted.
    pairs_ : list of the two classes that a row of ``coef_`` compares, (0, 1), (0, 2), ..., (1, 2), ... in the
        order of ``classes_``; n_pairs is 1 for two classes.
    coef_, coef_std_ : (n_pairs, n_features) posterior mean and standard deviation of the weights; a positive
        score ``X @ coef_[p] + intercept_[p]`` speaks for the second class of the pair.
    intercept_ : (n_pairs,)
    inclusion_prob_ : (n_features,) posterior probability that a weight is not zero; of more than two classes
        (n_pairs, n_features).
    loo_score_ : mean leave-one-out log-likelihood of the training samples, by which the iterate was chosen
        (NaN in max-sum mode). Choosing and tuning make it optimistic: report held-out scores instead.
    status_, n_iter_ : how the run ended; of more than two classes, like ``loo_score_``, one for every pair.
    converged_ : whether all fits met their stopping rule.
    hyperparameters_ : dict of the parameters in use, such as ``prior.slab.var``; of more than two classes
        with one value for every pair.

    Examples
    --------
    >>> import numpy as np
    >>> from mvpa_gamp import GAMPClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 1000))
    >>> y = X[:, 3] - X[:, 7] + 0.3 * rng.standard_normal(200) > 0
    >>> np.flatnonzero(GAMPClassifier().fit(X, y).get_support())
    array([3, 7])
    >>> three = np.where(X[:, 3] > 0.5, "c", np.where(X[:, 7] > 0, "a", "b"))
    >>> model = GAMPClassifier().fit(X, three)
    >>> model.pairs_, model.coef_.shape, model.predict_proba(X).shape
    ([('a', 'b'), ('a', 'c'), ('b', 'c')], (3, 1000), (200, 3))
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
        class_weight: Any = None,
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
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "GAMPClassifier":
        """Fit to samples X (n_samples, n_features), dense or sparse, and their classes y.

        ``sample_weight`` (n_samples,) multiplies the log-likelihood of each sample: one of weight 2 counts
        like two copies of it, one of weight 0 is left out.
        """
        for name in ("em", "fit_intercept"):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                raise ValueError(f"{name} must be True or False, got {getattr(self, name)!r}.")
        settings, likelihood = self._settings(), _likelihood(self.likelihood)
        X, y = self._checked(X, y, reset=True)
        self.classes_, codes = _classes(y)
        weights = self._weights(X, y, codes, sample_weight)
        labels = _pair_labels(codes, len(self.classes_))
        centered = self._is_centered(X)
        factor = scale_factor(X)
        warn_of_unequal(X)
        design = Design(
            rescaled(X, factor), labels != 0, center="train" if centered else None,
            connectivity=self._graph(), **({} if weights is None else {"weights": weights}),
        )  # fmt: skip
        if not design.row_energy().any(axis=0).all():
            raise ValueError(
                "No feature of X varies, so there is nothing to classify by. Check how X was built or masked."
            )
        self._center_ = _training_means(X, design.train, weights) if centered else None
        self._keep(self._tuned(design, labels, likelihood, settings, factor), factor)
        return self

    def decision_function(self, X: Any) -> NDArray:
        """Two classes: log-odds of the second (n,), averaged over the posterior of the score.

        The score is ``X @ coef_.T + intercept_``; max-sum mode, without a posterior, gives it as it is. More
        than two classes: the logarithm of the coupled probability of every class, (n, n_classes).
        """
        odds = self._log_odds(X)
        return odds[:, 0] if len(self.classes_) == 2 else self._coupled(odds).decision

    def predict(self, X: Any) -> NDArray:
        """The class with the highest probability."""
        odds = self._log_odds(X)
        if len(self.classes_) == 2:
            return self.classes_[(odds[:, 0] > 0).astype(int)]
        return self.classes_[self._coupled(odds).predicted]

    def predict_proba(self, X: Any) -> NDArray:
        """Class probabilities (n_samples, n_classes), averaged over the posterior of the scores."""
        odds = self._log_odds(X)
        if len(self.classes_) > 2:
            return self._coupled(odds).proba
        second = self._second(odds)[:, 0]
        return np.column_stack([1 - second, second])

    def _log_odds(self, X: Any) -> NDArray:
        """What each pair says, (n, n_pairs): log-odds of its second class, or scores in max-sum mode."""
        score, variance = self._score(self._checked(X))
        return score if self.mode == "max-sum" else self.likelihood_.log_odds(score, variance)

    def _second(self, odds: NDArray) -> NDArray:
        """The probability of the second class of each pair."""
        if self.mode == "max-sum":
            return self.likelihood_.predict_proba(odds, floored(np.zeros_like(odds)))
        return expit(odds)

    def _coupled(self, odds: NDArray) -> Answers:
        """One answer from those of all pairs."""
        return classify(-odds, 1 - self._second(odds), len(self.classes_))

    def predict_log_proba(self, X: Any) -> NDArray:
        """Logarithm of ``predict_proba``; -inf where a probability is zero."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def get_support(self, indices: bool = False) -> NDArray:
        """Selected features: inclusion probability above 1/2; without a Bernoulli prior, non-zero weights.

        Of more than two classes those that any pair selects; ``inclusion_prob_`` tells the pairs apart.
        """
        check_is_fitted(self)
        inclusion = np.atleast_2d(self.inclusion_prob_)
        chosen: NDArray = np.any(inclusion > 0.5 if self.prior_.has_atom else self.coef_ != 0, axis=0)
        return np.flatnonzero(chosen) if indices else chosen

    def _weights(self, X: Any, y: NDArray, codes: NDArray, sample_weight: Any) -> NDArray | None:
        """The weight of every sample (n_samples,), None where all are 1."""
        if sample_weight is None and self.class_weight is None:
            return None
        try:
            weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        except ValueError as error:
            if not str(error).startswith(_NUMPY):
                raise
            raise ValueError(f"sample_weight must hold numbers ({error}). Give one per sample.") from error
        by_class = compute_class_weight(self.class_weight, classes=self.classes_, y=y)
        weights = weights * by_class[codes]
        empty = np.bincount(codes, weights, len(self.classes_)) == 0
        if empty.any():
            raise ValueError(
                "Every class needs at least one sample with a positive weight, but all weights are zero "
                f"for {self.classes_[empty].tolist()}. Leave the class out, or raise its weights."
            )
        return weights

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

    def _graph(self) -> Any:
        """The connectivity, in the order of the columns of X where both have names."""
        graph = self.connectivity
        if graph is None:
            return None
        if hasattr(graph, "loc") and hasattr(self, "feature_names_in_"):
            graph = _in_order(graph, list(self.feature_names_in_))
        _check_selected(graph, self.n_features_in_)
        _warn_of_dense(graph)
        return graph

    def _is_centered(self, X: Any) -> bool:
        wanted = self.center
        if isinstance(wanted, str) and wanted == "auto":
            wanted = self.fit_intercept and not sparse.issparse(X)
        if not isinstance(wanted, (bool, np.bool_)):
            raise ValueError(f"center must be True, False or 'auto', got {wanted!r}.")
        return bool(wanted)

    def _tuned(
        self, design: Design, labels: NDArray, likelihood: Any, settings: SolverSettings, factor: float
    ) -> EmResult:
        """The fit to X times ``factor``, in the units of that."""
        prior = self._start(design, labels, likelihood, factor)
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

    def _start(self, design: Design, labels: NDArray, likelihood: Any, factor: float) -> Any:
        if isinstance(self.prior, Prior):
            return rescaled_prior(self.prior, 1 / factor)
        if not isinstance(self.prior, str):
            raise ValueError(
                f"prior must be a name or a prior object of mvpa_gamp.gamp, got {_given(self.prior)}."
            )
        return start(self.prior, design, labels, likelihood, self.mode)

    def _keep(self, tuned: EmResult, factor: float) -> None:
        """Keep a fit to X times ``factor`` in the units of X."""
        result = tuned.result
        names = self.classes_.tolist()
        self.pairs_ = [(names[i], names[j]) for i, j in class_pairs(len(names))]
        self.likelihood_ = tuned.likelihood
        self.prior_ = rescaled_prior(tuned.prior, factor)
        self.coef_ = rescaled(np.ascontiguousarray(result.coef.T), factor)
        self.coef_std_ = rescaled(np.sqrt(result.coef_var).T, factor)
        self.intercept_ = result.plain_intercept
        inclusion = result.coef != 0 if self.mode == "max-sum" else tuned.inclusion()
        self.inclusion_prob_ = _one_or_all(inclusion.T.astype(float))
        self.loo_score_ = _one_or_all(np.asarray(result.cavity_score, dtype=float))
        self.n_iter_ = _one_or_all(np.asarray(result.n_iter, dtype=int))
        self.status_ = _one_or_all([str(sentence) for sentence in result.status])
        self.converged_ = bool(np.all(result.converged))
        self.hyperparameters_ = {
            f"{part}.{name}": np.squeeze(value)[()]
            for part, model in (("likelihood", self.likelihood_), ("prior", self.prior_))
            for name, value in parameters(model).items()
        }
        if not self.converged_:
            failed = np.flatnonzero(~np.asarray(result.converged))
            warnings.warn(
                f"{failed.size} of {len(result.status)} fits did not converge. {result.status[failed[0]]}",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _score(self, X: Any) -> tuple[NDArray, NDArray]:
        """X @ coef_.T + intercept_ and its variance, (n, n_pairs), each around its pair's center.

        float32 X may have a large mean.
        """
        if self._center_ is None:
            score, variance, _ = Design(X).scores(self.coef_.T, np.square(self.coef_std_.T))
            return score + self.intercept_, floored(variance)
        parts = [self._score_around(X, center, p) for p, center in enumerate(self._center_)]
        score, variance = (np.concatenate(each, axis=1) for each in zip(*parts, strict=True))
        return score, floored(variance)

    def _score_around(self, X: Any, center: NDArray, p: int) -> tuple[NDArray, NDArray]:
        """The score of pair p and its variance, (n, 1) each."""
        coef, coef_std = self.coef_[p, :, None], self.coef_std_[p, :, None]
        score, variance, _ = Design(X, center=center).scores(coef, np.square(coef_std))
        return score + self.intercept_[p] + float(np.vdot(center.astype(float), coef)), variance

    def _checked(self, X: Any, y: Any = "no_validation", reset: bool = False) -> Any:
        """X, and y where it is given, as scikit-learn checks them; ``reset`` at the start of a fit."""
        if not reset:
            check_is_fitted(self)
        how = {"accept_sparse": ("csr", "csc"), "dtype": (np.float64, np.float32), "order": "C"}
        try:
            return validate_data(self, X, y, reset=reset, **how)
        except ValueError as error:
            if not str(error).startswith(_NUMPY):
                raise
            raise ValueError(
                f"X must be a numeric matrix (samples x features), got something else ({error}). Convert "
                "it to numbers."
            ) from error

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _likelihood(given: Any) -> Any:
    if isinstance(given, str):
        if given not in LIKELIHOODS:
            raise ValueError(f"Unknown likelihood {given!r}. Known likelihoods: {', '.join(LIKELIHOODS)}.")
        return LIKELIHOODS[given]()
    if isinstance(given, type) or not isinstance(given, Likelihood):
        raise ValueError(f"likelihood must be a name or a likelihood of mvpa_gamp.gamp, got {_given(given)}.")
    return given


def _given(value: Any) -> str:
    """What came in place of a model; of a class, how to make one."""
    if isinstance(value, type):
        return f"the class {value.__name__}: write {value.__name__}()"
    return type(value).__name__


def _in_order(graph: Any, names: list[str]) -> Any:
    """The rows and columns of a DataFrame of neighbours that X has, in its order."""
    for axis, what in ((graph.index, "row"), (graph.columns, "column")):
        missing = [name for name in names if name not in set(axis)]
        if missing or not axis.is_unique:
            raise ValueError(
                f"connectivity is a DataFrame in which {len(missing)} of {len(names)} features of X have no "
                f"{what}, or names occur twice. Give one row and one column per feature, or an array in the "
                "order of X."
            )
    return graph.loc[names, names].to_numpy()


def _check_selected(graph: Any, n_features: int) -> None:
    """Say what to do where an earlier step has dropped features that the graph still has."""
    shape: tuple[int, ...] = getattr(graph, "shape", ())
    if len(shape) == 2 and shape[0] == shape[1] > n_features:
        raise ValueError(
            f"connectivity has {shape[0]} rows and columns, but X has {n_features} features. If a step of a "
            "Pipeline selects features, give connectivity as a DataFrame with the names of all features and "
            'call set_output(transform="pandas") on the Pipeline; otherwise make it for the columns of X.'
        )


def _warn_of_dense(graph: Any) -> None:
    """A graph in which almost everything is joined says nothing about where features are."""
    if not (sparse.issparse(graph) or (isinstance(graph, np.ndarray) and graph.ndim == 2)):
        return
    n = graph.shape[0]
    edges = graph.count_nonzero() if sparse.issparse(graph) else np.count_nonzero(graph)
    if n >= _FEW_FEATURES and edges > _MOST_EDGES * n * n:
        warnings.warn(
            f"connectivity links {edges / (n * n):.0%} of all pairs of features, so neighbours carry no "
            "information. Every non-zero entry is an edge: apply a threshold to correlations first.",
            stacklevel=4,
        )


def _classes(y: Any) -> tuple[NDArray, NDArray]:
    """Sorted classes and the number of each sample's class."""
    check_sortable("y", y)
    check_classification_targets(y)
    kind = type_of_target(y, input_name="y")
    if kind not in ("binary", "multiclass"):
        raise ValueError(f"y must hold one class per sample, got a target of type {kind}.")
    classes, codes = np.unique(y, return_inverse=True)
    if classes.size < 2:
        raise ValueError(
            f"y must hold two classes or more, got one class: {classes.tolist()}. Add samples of another "
            "class."
        )
    return classes, codes


def _pair_labels(codes: NDArray, n_classes: int) -> NDArray:
    """Labels (n_samples, n_pairs): -1 for the first class of a pair, +1 for the second, 0 for others."""
    pairs = class_pairs(n_classes)
    return np.stack([1.0 * (codes == j) - 1.0 * (codes == i) for i, j in pairs], axis=1)


def _training_means(X: Any, train: NDArray, weights: NDArray | None) -> NDArray:
    """Mean of the training samples of every pair, (n_pairs, n_features), in the precision of X."""
    counts = train if weights is None else train * weights[:, None]
    shares = counts / counts.sum(axis=0)
    return np.asarray(shares.T @ X).astype(X.dtype)


def _one_or_all(values: Any) -> Any:
    """What two classes have as a single value, and more classes once for every pair."""
    one = values[0] if len(values) == 1 else values
    return one.item() if isinstance(one, np.generic) else one
