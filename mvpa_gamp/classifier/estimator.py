"""GAMPClassifier: the engine as a classifier and selector of scikit-learn."""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit, log_expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from ..coupling import Answers, check_none_missing, check_sortable, class_pairs, classify
from ..feature_scale import rescaled, rescaled_prior, scale_factor, warn_of_unequal
from ..gamp import (
    Bernoulli,
    Design,
    EmResult,
    RowSpace,
    SolverSettings,
    VampSettings,
    fit_em,
    solve,
    solve_vamp,
    training_sets,
)
from ..gamp.moments import floored
from ..gamp.neighbours import Neighbours
from ..gamp.parameters import parameters
from ..gamp.starts import named_prior
from ..gamp.vamp_classes import class_targets, noise_levels, pair_turns, rank_matched, runs_or_rows
from .inputs import (
    NUMPY_ERRORS,
    check_column_names,
    chosen_likelihood,
    chosen_prior,
    encode_classes,
    explain_not_numbers,
    feature_graph,
    pair_labels,
    sample_weights,
    training_means,
)

# Settings of GAMPClassifier that belong to message passing over elements, with their defaults.
_OTHERS: dict[str, Any] = {
    "likelihood": "logistic", "mode": "sum-product", "em": True, "learn_prior": None,
    "learn_likelihood": None, "fit_intercept": True, "center": "auto", "stop": None,
    "tol": None, "variance": "full",
}  # fmt: skip
_ALL = " Every feature is selected: no weight of this prior is exactly zero."
_NONE = (
    " No feature is selected: no inclusion probability is above 0.5. Predictions use the weights of all "
    "features."
)
_NO_WEIGHT = " No feature is selected: all weights are zero."


@dataclass(frozen=True)
class RowSpaceFit:
    """One fit; P pairs of classes, positive scores for the second class of a pair."""

    coef: NDArray  # (P, N)
    coef_std: NDArray  # (P, N)
    intercept: NDArray  # (P,)
    inclusion: NDArray  # (P, N)
    support: NDArray  # (N,) bool
    prior: Any
    noise: float
    gap: float
    left_out_score: NDArray  # (P,) mean log-likelihood of left-out samples of the two classes
    n_iter: int
    status: str
    converged: bool


def selected_features(prior: Any, inclusion: NDArray, coef: NDArray) -> NDArray:
    """Inclusion probability above 1/2; non-zero weights where the prior has no probability of zero."""
    return inclusion > 0.5 if prior.has_atom else coef != 0


def selection_notes(selected: NDArray, prior: Any, mode: str) -> list[str]:
    """What to say of what every pair selects, (n_pairs, n_features); nothing of an ordinary selection."""
    if not prior.has_atom and mode == "sum-product":
        return [_ALL] * len(selected)
    nothing = _NONE if prior.has_atom else _NO_WEIGHT
    return ["" if some else nothing for some in np.any(selected, axis=1)]


def pair_scores(
    X: Any, coef: NDArray, coef_std: NDArray, intercept: NDArray, centers: NDArray | None
) -> tuple[NDArray, NDArray]:
    """X @ coef.T + intercept and its variance, (n, n_pairs), each around its pair's center.

    ``coef`` and ``coef_std`` are (n_pairs, n_features), as ``centers`` where the features were centred.
    """
    if centers is None:
        score, variance, _ = Design(X).scores(coef.T, np.square(coef_std.T))
        return score + intercept, floored(variance)
    parts = [_around(X, *fit) for fit in zip(coef, coef_std, intercept, centers, strict=True)]
    score, variance = (np.concatenate(each, axis=1) for each in zip(*parts, strict=True))
    return score, floored(variance)


def _around(
    X: Any, coef: NDArray, coef_std: NDArray, intercept: float, center: NDArray
) -> tuple[NDArray, NDArray]:
    """The score of one pair and its variance, (n, 1) each; float32 X may have a large mean."""
    score, variance, _ = Design(X, center=center).scores(coef[:, None], np.square(coef_std[:, None]))
    return score + intercept + float(np.vdot(center.astype(float), coef)), variance


class GAMPClassifier(ClassifierMixin, SelectorMixin, BaseEstimator):
    """Linear classifier and feature selector by generalized approximate message passing.

    Parameters are learnt from the training data by expectation maximisation, so there is no grid to
    search; ``predict_proba`` averages over the posterior of the score. More than two classes are compared in
    pairs, all of them columns of one solve, whose probabilities are coupled (Hastie & Tibshirani, 1998).

    Standardise the features first (``StandardScaler`` in a pipeline): all weights share one prior, so the
    scale of a feature decides how readily it is used. ``transform`` keeps the selected features, those of
    ``get_support()``; ``predict`` uses the weights of all.

    Parameters
    ----------
    likelihood : name in ``mvpa_gamp.gamp.likelihoods.LIKELIHOODS``, or a likelihood object such as
        ``Robust(Logistic(), flip=0.05)`` for wrong labels.
    prior : "bernoulli-gaussian", "bernoulli-laplace", "bernoulli-elastic-net" or
        "bernoulli-gaussian-mixture", whose weights are zero with some probability; "gaussian", "laplace",
        "elastic-net" or "gaussian-mixture", whose weights are not (the start of a named prior is chosen from
        the data); or a prior object, whose parameters are the start.
    mode : "sum-product" (posterior means and inclusion probabilities) or "max-sum" (penalised loss; use it
        with "laplace", "gaussian" or "elastic-net").
    em : learn the parameters; False keeps the start.
    learn_prior, learn_likelihood : names of the parameters to learn; None means each model's default.
    fit_intercept : learn an offset of the score; also what makes unbalanced classes work.
    center : subtract the feature means; "auto" does so for dense X only.
    stop : "cavity", where the leave-one-out score is best, or "fixed-point", where nothing changes any more.
        None: "cavity" for sum-product, "fixed-point" for max-sum.
    max_iter : iterations at most. None: 500 for "cavity", 2000 for "fixed-point".
    tol : relative change that ends a fit at a fixed point. None: 1e-5 for sum-product, 1e-7 for max-sum.
    damping : step in (0, 1]; 1 is undamped. None: 0.1 for "cavity", 0.2 with a connectivity, 0.5 for
        "fixed-point". Smaller steps usually select more features, most of all where many features carry a
        little: compare selections, with and without a graph for example, only at equal damping.
    variance : "full" (one per feature and sample) or "uniform" (one per fit; cheaper).
    connectivity : features that are neighbours; those with selected neighbours are selected more readily.
        A (n_features, n_features) matrix, best sparse, such as ``grid_to_graph`` of scikit-learn makes for a
        mask. Every entry that is not zero is an edge, in both directions, whatever its value (negative ones
        are refused): cut a matrix of correlations at a threshold first. An array is taken in the order of X.
        A DataFrame is matched to the columns of X by name; features that are not in it have no neighbours. A
        callable is given the X of ``fit`` (samples of weight zero included) and returns one of these, so that
        cross-validation makes the graph of each fold from its training samples; one made from all samples
        has seen the test samples. Needs a Bernoulli prior, sum-product mode and the cavity stop, which are
        the defaults. An empty graph is the plain prior at equal ``damping``, whose default differs.
    class_weight : None, "balanced" or {class: weight}, as in scikit-learn: multiplies the weights of the
        samples of a class. "balanced" is n_samples / (n_classes * samples of the class).
    solver : "gamp", or "vamp": vector approximate message passing in row space, for features that are smooth
        or correlated, such as whole brains. Labels then have a Gaussian likelihood, nothing is learnt but the
        weights, and ``likelihood``, ``mode``, ``em``, ``learn_*``, ``fit_intercept``, ``center``, ``stop``,
        ``tol`` and ``variance`` stay at their defaults. Groups of samples, ``fit(X, y, groups=...)``, have
        weights that deviate from the common ones; a sample of weight 2 is two copies in one group. Three or
        more classes are fitted together: pairs share ``inclusion_prob_``. Probabilities are calibrated, and
        ``loo_score_`` is computed, on samples whose group was left out. The features of largest inclusion
        probability are selected, as many as the probabilities sum up to.

    Attributes
    ----------
    classes_ : (n_classes,) sorted.
    pairs_ : the two classes that each row of ``coef_`` compares, for classes "a", "b" and "c" for example
        [("a", "b"), ("a", "c"), ("b", "c")]; n_pairs is 1 for two classes.
    coef_, coef_std_ : (n_pairs, n_features) posterior mean and standard deviation (max-sum: 0) of the
        weights; a positive score ``X @ coef_[p] + intercept_[p]`` counts towards the second class of the
        pair.
    intercept_ : (n_pairs,)
    inclusion_prob_ : (n_features,) posterior probability that a weight is not zero; of more than two classes
        (n_pairs, n_features). Max-sum mode has no probabilities: 1 where a weight is not zero, else 0.
    connectivity_ : the graph in use, a sparse (n_features, n_features) matrix of ones in the order of X; None
        without one.
    n_features_in_, feature_names_in_ : number of columns of X, and their names where X is a DataFrame whose
        columns have names that are strings.
    loo_score_ : mean leave-one-out log-likelihood of the training samples, by which the iterate was chosen
        (NaN in max-sum mode). Choosing and tuning make it optimistic, and with ``solver="gamp"`` so do
        samples that resemble one another, such as those of a run: report held-out scores instead.
    status_, n_iter_ : how the run ended, with a sentence if no feature or every feature is selected; of more
        than two classes, like ``loo_score_``, one for every pair.
    converged_ : whether all fits met their stopping rule, and none diverged, found nothing or learnt a
        parameter at the end of its range (``status_``).
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
        solver: str = "gamp",
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
        self.solver = solver

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> "GAMPClassifier":
        """Fit to samples X (n_samples, n_features), dense or sparse, and their classes y.

        ``groups`` (n_samples,), for ``solver="vamp"``, name samples that belong together, such as those of a
        run or a participant.
        ``sample_weight`` (n_samples,) multiplies the log-likelihood of each sample: one of weight 2 counts
        like two copies of it, one of weight 0 is left out.
        """
        for name in ("em", "fit_intercept"):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                raise ValueError(f"{name} must be True or False, got {getattr(self, name)!r}.")
        check_settings(self, groups)
        settings, likelihood, given = self._settings(), chosen_likelihood(self.likelihood), X
        if y is not None:
            check_none_missing("y", y)
        X, y = self._checked(X, y, reset=True)
        self.classes_, codes = encode_classes(y)
        weights = sample_weights(X, y, self.classes_, sample_weight, self.class_weight)
        labels = pair_labels(codes, len(self.classes_))
        centered = self._is_centered(X)
        factor = scale_factor(X)
        warn_of_unequal(X)
        seen, names = given if hasattr(given, "columns") else X, getattr(self, "feature_names_in_", None)
        self.connectivity_ = feature_graph(self.connectivity, seen, X.shape[1], names)
        if self.solver == "vamp":
            self._keep_row_space(fit_row_space(self, X, codes, groups, weights, self.connectivity_))
            return self
        design = Design(
            rescaled(X, factor), labels != 0, center="train" if centered else None,
            connectivity=self.connectivity_, **({} if weights is None else {"weights": weights}),
        )  # fmt: skip
        if not design.row_energy().any(axis=0).all():
            raise ValueError(
                "No feature of X varies, so nothing can be learnt from it. Check how X was built or masked."
            )
        self._center_ = training_means(X, design.train, weights) if centered else None
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
        X = self._checked(X)
        if self.solver == "vamp":
            return np.asarray(X @ self.coef_.T.astype(float)) + self.intercept_
        score, variance = pair_scores(X, self.coef_, self.coef_std_, self.intercept_, self._center_)
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

        Predictions use the weights of all features, selected or not. Of more than two classes, features that
        any pair selects; ``inclusion_prob_`` tells the pairs apart. Priors without a probability of zero
        ("gaussian", "laplace", "elastic-net" in sum-product mode) select every feature.
        """
        support: NDArray = super().get_support(indices)
        return support

    def _get_support_mask(self) -> NDArray:
        check_is_fitted(self)
        return np.asarray(self._selected().any(axis=0))

    def _selected(self) -> NDArray:
        """What each pair selects, (n_pairs, n_features)."""
        if self.solver == "vamp":
            return np.atleast_2d(self._support_)
        return selected_features(self.prior_, np.atleast_2d(self.inclusion_prob_), self.coef_)

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

    def _tuned(
        self, design: Design, labels: NDArray, likelihood: Any, settings: SolverSettings, factor: float
    ) -> EmResult:
        """The fit to X times ``factor``, in the units of that."""
        prior = chosen_prior(self.prior, design, labels, likelihood, self.mode, factor)
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
        notes = selection_notes(self._selected(), self.prior_, self.mode)
        self.status_ = _one_or_all([f"{end}{note}" for end, note in zip(result.status, notes, strict=True)])
        self.converged_ = bool(np.all(result.converged))
        self.hyperparameters_ = {
            f"{part}.{name}": np.squeeze(value)[()]
            for part, model in (("likelihood", self.likelihood_), ("prior", self.prior_))
            for name, value in parameters(model).items()
        }
        failed = np.flatnonzero(result.failed)
        if failed.size:
            warnings.warn(
                f"{failed.size} of {len(result.status)} fits did not converge. {result.status[failed[0]]}",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _keep_row_space(self, fit: RowSpaceFit) -> None:
        names = self.classes_.tolist()
        self.pairs_ = [(names[i], names[j]) for i, j in class_pairs(len(names))]
        self.prior_, self._support_ = fit.prior, fit.support
        self.coef_, self.coef_std_, self.intercept_ = fit.coef, fit.coef_std, fit.intercept
        self.inclusion_prob_ = _one_or_all(fit.inclusion.astype(float))
        self.loo_score_ = _one_or_all(fit.left_out_score)
        self.n_iter_ = _one_or_all(np.full(len(fit.coef), fit.n_iter))
        self.status_ = _one_or_all([fit.status] * len(fit.coef))
        self.converged_ = fit.converged
        self.hyperparameters_ = {"noise": fit.noise, "gap": fit.gap} | {
            f"prior.{name}": np.squeeze(value)[()] for name, value in parameters(fit.prior).items()
        }
        if not self.converged_:
            warnings.warn(fit.status, ConvergenceWarning, stacklevel=3)

    def _checked(self, X: Any, y: Any = "no_validation", reset: bool = False) -> Any:
        """X, and y where it is given, as scikit-learn checks them; ``reset`` at the start of a fit."""
        if not reset:
            check_is_fitted(self)
        check_column_names(X)
        how = {"accept_sparse": ("csr", "csc"), "dtype": (np.float64, np.float32), "order": "C"}
        try:
            return validate_data(self, X, y, reset=reset, **how)
        except ValueError as error:
            if not str(error).startswith(NUMPY_ERRORS):
                raise
            raise ValueError(explain_not_numbers(X, error)) from error

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _one_or_all(values: Any) -> Any:
    """What two classes have as a single value, and more classes once for every pair."""
    one = values[0] if len(values) == 1 else values
    return one.item() if isinstance(one, np.generic) else one


def check_settings(estimator: Any, groups: Any) -> None:
    """Refuse settings that the chosen solver has no use for."""
    if estimator.solver not in ("gamp", "vamp"):
        raise ValueError(f"solver must be 'gamp' or 'vamp', got {estimator.solver!r}.")
    if estimator.solver == "gamp":
        if groups is not None:
            raise ValueError(
                "groups are samples that deviate together, which solver='vamp' knows of, not "
                "solver='gamp'. Use GAMPClassifier(solver='vamp'), or leave groups out."
            )
        return
    for name, default in _OTHERS.items():
        given = getattr(estimator, name)
        if not (given is default or (isinstance(given, type(default)) and given == default)):
            raise ValueError(
                f"{name}={given!r} is for solver='gamp': with solver='vamp' labels have a Gaussian "
                f"likelihood and nothing is learnt. Leave {name} out."
            )
    if not isinstance(estimator.prior, (str, Bernoulli)) or (
        isinstance(estimator.prior, str) and not named_prior(estimator.prior).has_atom
    ):
        raise ValueError(
            f"solver='vamp' needs a Bernoulli prior, got {estimator.prior!r}. Use 'bernoulli-gaussian', or "
            "Bernoulli(rate, slab) with a slab of variance one."
        )


def fit_row_space(
    estimator: Any, X: Any, codes: NDArray, groups: Any, weights: NDArray | None, graph: Any
) -> RowSpaceFit:
    """Fit samples of class numbers ``codes`` (n,); ``groups`` (n,) name what belongs together."""
    names = _numbers(groups, len(codes))
    if weights is not None:
        kept = weights > 0
        X, codes, names, weights = X[kept], codes[kept], names[kept], weights[kept]
    n_classes, labels = int(codes.max()) + 1, codes[:, None]
    train = np.ones(labels.shape, dtype=bool)
    counts = train.astype(float) if weights is None else weights[:, None]
    names = runs_or_rows(names, train)
    space = RowSpace(X)
    neighbours = None if graph is None else Neighbours(graph, space.shape[1], space.dtype)
    given = named_prior(estimator.prior) if isinstance(estimator.prior, str) else estimator.prior
    steps = {"damping": estimator.damping, "max_iter": estimator.max_iter}
    chosen: dict[str, Any] = {name: value for name, value in steps.items() if value is not None}
    if "max_iter" in chosen:
        chosen["least_iter"] = min(VampSettings.least_iter, chosen["max_iter"])
    rate = None if isinstance(estimator.prior, str) else float(given.rate)
    settings = VampSettings(rate=rate, **chosen)
    targets = class_targets(labels, train, n_classes)
    rho, white = noise_levels(settings, names, targets, train)
    sets = training_sets(space, train, names, rho, white, counts)
    found = solve_vamp(space, sets, targets, settings, given.slab, neighbours)
    turns = pair_turns(found.left_out, labels, counts, n_classes)
    coef, coef_std, intercept = (np.asarray(each) for each in turns.weights(found))
    n_pairs = turns.offsets.shape[1]
    scores = turns.decision(found.left_out)[:, 0]
    return RowSpaceFit(
        coef=-np.ascontiguousarray(coef[:, 0].T),
        coef_std=np.ascontiguousarray(coef_std[:, 0].T),
        intercept=-intercept[0],
        inclusion=np.repeat(found.inclusion.T, n_pairs, axis=0),
        support=rank_matched(found.inclusion)[:, 0],
        prior=Bernoulli(float(found.rate[0]), found.slab),
        noise=float(found.noise[0]),
        gap=float(found.gap[0]),
        left_out_score=_left_out_score(scores, codes, counts[:, 0], n_classes),
        n_iter=int(found.n_iter[0]),
        status=str(found.status[0]),
        converged=bool(found.converged[0]),
    )


def _numbers(groups: Any, n_samples: int) -> NDArray:
    """The groups; every sample by itself where there are none."""
    if groups is None:
        return np.arange(n_samples)
    names = np.asarray(groups)
    if names.shape != (n_samples,):
        raise ValueError(
            f"groups must name the group of each of the {n_samples} samples, got shape {names.shape}. "
            "Give one per sample, such as its run or participant."
        )
    check_sortable("groups", names)
    return names


def _left_out_score(scores: NDArray, codes: NDArray, counts: NDArray, n_classes: int) -> NDArray:
    """The mean log-likelihood (P,) of log-odds (n, P) of the first class of every pair."""
    out = []
    for (i, j), column in zip(class_pairs(n_classes), scores.T, strict=True):
        mine = ((codes == i) | (codes == j)) & (counts > 0)
        signed = np.where(codes[mine] == i, column[mine], -column[mine])
        out.append(np.average(log_expit(signed), weights=counts[mine]))
    return np.array(out)
