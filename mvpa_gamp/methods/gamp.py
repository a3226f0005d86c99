"""EM-tuned GAMP as a method of the tables: all folds are columns of one solve, without cross-validation."""

import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..feature_scale import rescaled, rescaled_prior
from ..gamp import Design, EmResult, Hinge, Logistic, Probit, SolverSettings, fit_em
from ..gamp.em import identifiable_names
from ..gamp.moments import floored
from ..gamp.neighbours import check_neighbours
from ..gamp.parameters import check_sizes, learnt_names, parameters
from ..gamp.result import DIVERGED
from ..gamp.starts import named_prior, start
from .fold_fits import (
    MENG_2016,
    ZINIEL_2015,
    ClassWeight,
    FoldFits,
    check_class_weight,
    check_fold_input,
    row_weights,
)
from .l1_logistic import L1LogisticCV
from .vamp import VampMethod

# A probit of this variance is the closest to a logistic of scale 1 (Bishop 2006, sec. 4.5: 8 / pi is the
# slope match; 2.9 matches the curve), so both share one start of the prior.
LOGISTIC_LIKE_VARIANCE = 2.9
_BY_SEARCH = "cross-validation"
FELL_BACK = (
    "Not converged: GAMP diverged, with smaller steps too; the weights are those of {name}, which does not. "
    "Use it for all folds (docs/choosing.md)."
)


@dataclass(frozen=True)
class GampMethod:
    """One likelihood and one prior, tuned by expectation maximisation on each fold's training rows.

    A feature counts as selected when its posterior inclusion probability exceeds one half (Bernoulli
    priors, as in the paper) or when its weight is not zero (max-sum). ``learn_likelihood`` names parameters
    of the likelihood to learn too; None means its default. Where that is a scale, the scale of the prior
    keeps its start: the data tell only their product. With ``uses_connectivity`` the inclusion rate of a
    feature follows its neighbours. ``penalty="cross-validation"`` takes the rate of a Laplace prior from
    ``L1LogisticCV`` instead of expectation maximisation, which shrinks too much where features outnumber rows
    by far: it sees a Laplace distribution in weights most of which are exactly zero. ``class_weight``
    multiplies the log-likelihood of a row by the weight of its class: None, "balanced", or {-1: , 1: }.

    >>> import numpy as np
    >>> from mvpa_gamp.gamp import Logistic, Robust
    >>> from mvpa_gamp.methods import GampMethod
    >>> runs, y = np.repeat(np.arange(6), 8), np.tile(np.repeat([1, -1], 4), 6)
    >>> X = np.random.default_rng(0).standard_normal((48, 20)) + y[:, None] * (np.arange(20) == 5)
    >>> robust = Robust(Logistic(), flip=0.05)
    >>> method = GampMethod("gamp-bg-rlr", "GAMP, wrong labels", "", robust, "bernoulli-gaussian")
    >>> fits = method.fit_folds(X, y, runs[:, None] != np.unique(runs), runs)
    >>> fits.support.shape, bool(fits.support[5].all()), fits.parameters["likelihood.flip"].shape
    ((20, 6), True, (6,))
    """

    name: str
    label: str
    description: str
    likelihood: Any
    prior: str
    settings: SolverSettings = field(default_factory=lambda: SolverSettings(intercept=True))
    learn_likelihood: tuple[str, ...] | None = None
    uses_connectivity: bool = False
    reference: str = ZINIEL_2015
    short_reference: str = "Ziniel et al., 2015"
    penalty: str = "em"
    class_weight: ClassWeight = None

    @property
    def is_batched(self) -> bool:
        """Unless the penalty needs a nested search."""
        return self.penalty == "em"

    def __post_init__(self) -> None:
        for model in (self.likelihood, named_prior(self.prior)):
            model.require_mode(self.settings.mode)
        check_sizes(self.likelihood)
        learnt_names(self.likelihood, self.learn_likelihood)
        if self.penalty not in ("em", _BY_SEARCH) or (self.penalty == _BY_SEARCH and self.prior != "laplace"):
            raise ValueError(
                f"penalty must be 'em', or {_BY_SEARCH!r} for a Laplace prior, got {self.penalty!r} for "
                f"{self.prior!r}. Change one of them."
            )
        check_class_weight(self.class_weight)
        if self.uses_connectivity:
            check_neighbours(named_prior(self.prior), self.settings.resolved(neighbours=True))

    @property
    def has_posterior(self) -> bool:
        """In sum-product mode."""
        return self.settings.mode == "sum-product"

    @property
    def intercept(self) -> str:
        """Not penalised, where there is one."""
        return "free" if self.settings.intercept else "none"

    def fit_folds(
        self,
        X: Any,
        y: NDArray,
        train: NDArray,
        runs: NDArray,
        connectivity: Any = None,
        weights: Any = None,
    ) -> FoldFits:
        """Fit one classifier per column of ``train``; see ``FoldFits`` for the contract.

        ``weights`` (M,) or (M, B) are how often each training row counts; None: once. Class weights
        multiply them.
        """
        began = time.perf_counter()
        given, Y, train, _, factor = check_fold_input(X, y, train, runs)
        X = rescaled(given, factor)
        graph, counts = self._graph(connectivity), self._counts(Y, weights)
        design = Design(X, train, center="train", connectivity=graph, weights=counts)
        prior = start(self.prior, design, Y, self.likelihood, self.settings.mode)
        learn_prior = self._of_prior(prior)
        if self.penalty == _BY_SEARCH:
            self._refuse_weights(weights)
            search = L1LogisticCV(fit_intercept=self.settings.intercept, class_weight=self.class_weight)
            searched = search.fit_folds(X, Y, train, runs)
            prior, learn_prior = replace(prior, rate=searched.parameters["lambda"]), ()
        learn: dict[str, Any] = {"learn_prior": learn_prior, "learn_likelihood": self.learn_likelihood}
        tuned = fit_em(design, Y, self.likelihood, prior, self.settings, **learn)
        fits = self._fold_fits(tuned, time.perf_counter() - began, factor)
        lost = np.flatnonzero(np.asarray(fits.status) == DIVERGED)
        if not lost.size or not prior.has_atom:
            return fits
        own = weights if np.ndim(weights) < 2 else np.asarray(weights)[:, lost]
        return fits.replaced(lost, self._fallback(given, Y[:, lost], train[:, lost], runs, graph, own))

    def _fallback(
        self, X: Any, Y: NDArray, train: NDArray, runs: NDArray, graph: Any, weights: Any
    ) -> FoldFits:
        """The fits of VAMP, which bears what the columns of X have in common; their status says so."""
        method = VampMethod(
            self.name, self.label, self.description, self.prior, uses_connectivity=graph is not None,
            class_weight=self.class_weight,
        )  # fmt: skip
        fits = method.fit_folds(X, Y, train, runs, connectivity=graph, weights=weights)
        status = FELL_BACK.format(name="VAMP BG" if graph is None else "VAMP sBG")
        n_columns = train.shape[1]
        return replace(fits, status=(status,) * n_columns, converged=np.zeros(n_columns, dtype=bool))

    def _of_prior(self, prior: Any) -> tuple[str, ...]:
        """Parameters of the prior that are learnt beside those of the likelihood."""
        of_likelihood = learnt_names(self.likelihood, self.learn_likelihood)
        return identifiable_names(self.likelihood, prior, of_likelihood, prior.default_learn)

    def _counts(self, Y: NDArray, weights: Any) -> Any:
        """How often each row counts: the weights given, times those of its class."""
        if self.class_weight is None:
            return weights
        of_class = row_weights(Y, self.class_weight)
        return of_class if weights is None else of_class * np.asarray(weights).reshape(len(Y), -1)

    def _refuse_weights(self, weights: Any) -> None:
        if weights is not None:
            raise ValueError(
                f"{self.name} chooses its penalty by a search in which every row counts once, got weights. "
                "Use gamp-l1-lr, which learns it from the weighted rows, or leave the weights out."
            )

    def _graph(self, connectivity: Any) -> Any:
        """The connectivity, if this method wants one."""
        if not self.uses_connectivity:
            return None
        if connectivity is None:
            raise ValueError(
                f"{self.name} needs to know which features are neighbours, got connectivity=None. Give a "
                "sparse (N, N) adjacency: Samples.connectivity, or that of a mask by "
                "sklearn.feature_extraction.image.grid_to_graph. For data that are not images, "
                "GAMPClassifier(connectivity=...) also takes a table with names or a function; without a "
                "graph use gamp-bg-lr."
            )
        return connectivity

    def _fold_fits(self, tuned: EmResult, seconds: float, factor: float) -> FoldFits:
        """The fits in the units of the X that was given; ``factor`` is what it was multiplied by."""
        result = tuned.result
        inclusion = tuned.inclusion() if self.has_posterior else None
        return FoldFits(
            coef=rescaled(result.coef, factor),
            intercept=result.plain_intercept,
            support=result.coef != 0 if inclusion is None else inclusion > 0.5,
            status=tuple(str(sentence) for sentence in result.status),
            converged=result.converged,
            n_iter=result.n_iter,
            seconds=seconds,
            parameters=self._parameters(replace(tuned, prior=rescaled_prior(tuned.prior, factor))),
            decision=result.z,
            proba=tuned.likelihood.predict_proba(result.z, floored(result.tau_z)),
            coef_std=rescaled(np.sqrt(result.coef_var), factor) if self.has_posterior else None,
            inclusion=inclusion,
        )

    def _parameters(self, tuned: EmResult) -> dict[str, NDArray]:
        """The prior's, and those of the likelihood that were learnt, where there is one per column."""
        of_likelihood = parameters(tuned.likelihood)
        learnt = learnt_names(self.likelihood, self.learn_likelihood)
        named = {f"prior.{name}": np.asarray(value) for name, value in parameters(tuned.prior).items()}
        named |= {f"likelihood.{name}": np.asarray(of_likelihood[name]) for name in learnt}
        return {name: value for name, value in named.items() if value.ndim == 1}


_TUNED = (
    "its parameters were learnt on the training data by expectation maximisation, without cross-validation"
)

GAMP_METHODS = (
    GampMethod(
        "gamp-bg-lr",
        "GAMP BG-LR",
        f"Sum-product GAMP with a Bernoulli-Gaussian prior and a logistic likelihood; {_TUNED}.",
        Logistic(),
        "bernoulli-gaussian",
    ),
    GampMethod(
        "gamp-sbg-lr",
        "GAMP sBG-LR",
        "Sum-product GAMP (Ziniel et al., 2015) with a spatial Bernoulli-Gaussian prior, whose inclusion "
        f"rate follows the neighbours of each voxel, and a logistic likelihood; {_TUNED}.",
        Logistic(),
        "bernoulli-gaussian",
        uses_connectivity=True,
        reference=MENG_2016,
        short_reference="Meng et al., 2016",
    ),
    GampMethod(
        "gamp-bl-lr",
        "GAMP BL-LR",
        f"Sum-product GAMP with a Bernoulli-Laplace prior and a logistic likelihood; {_TUNED}.",
        Logistic(),
        "bernoulli-laplace",
    ),
    GampMethod(
        "gamp-bg-pr",
        "GAMP BG-PR",
        f"Sum-product GAMP with a Bernoulli-Gaussian prior and a probit likelihood; {_TUNED}.",
        Probit(LOGISTIC_LIKE_VARIANCE),
        "bernoulli-gaussian",
    ),
    GampMethod(
        "gamp-bg-hl",
        "GAMP BG-HL",
        f"Sum-product GAMP with a Bernoulli-Gaussian prior and a hinge-loss likelihood; {_TUNED}.",
        Hinge(),
        "bernoulli-gaussian",
    ),
    GampMethod(
        "gamp-l1-lr",
        "GAMP L1-LR",
        f"Max-sum GAMP for L1-penalised logistic regression; {_TUNED}.",
        Logistic(),
        "laplace",
        # The objective is then within about 1e-8 of its minimum: its gap is quadratic in this change.
        SolverSettings(mode="max-sum", intercept=True, tol=1e-4),
    ),
    GampMethod(
        "gamp-l1-lr-cv",
        "GAMP L1-LR (CV)",
        "Max-sum GAMP for L1-penalised logistic regression; its penalty was chosen by nested "
        "leave-one-run-out cross-validation.",
        Logistic(),
        "laplace",
        SolverSettings(mode="max-sum", intercept=True, tol=1e-4),
        penalty=_BY_SEARCH,
    ),
)
