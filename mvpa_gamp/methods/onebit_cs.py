"""OneBitCS: the largest entries of X'y, as many as nested leave-one-run-out asks for."""

from dataclasses import dataclass
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .fold_fits import PLAN_2013, ClassWeight, FoldFits, check_class_weight, check_fold_input, row_weights
from .nested import choose, nested_plan

_ROWS_AT_ONCE = 1024  # rows scored together: a dense part of X with 15 % of the features stays small


@dataclass(frozen=True)
class OneBitCS:
    """One-bit compressed sensing of Plan & Vershynin in its closed form, w = thresh_K(X'y).

    thresh_K keeps the K entries of largest magnitude and zeroes the rest (paper, text-classification
    section). K comes from ``n_rates`` log-spaced fractions of N between ``lowest_rate`` and
    ``highest_rate``, by nested leave-one-run-out error, ties to the smaller K. There is no intercept:
    the rule assumes centred features and balanced classes. Class weights c make it X'(c y), which for
    "balanced" is a multiple of the difference of the class means.

    >>> import numpy as np
    >>> from mvpa_gamp.methods import OneBitCS
    >>> runs, y = np.repeat(np.arange(6), 8), np.tile(np.repeat([1, -1], 4), 6)
    >>> X = np.random.default_rng(0).standard_normal((48, 20)) + y[:, None] * (np.arange(20) == 5)
    >>> OneBitCS().fit_folds(X, y, runs[:, None] != np.unique(runs), runs).status[0]
    'closed form, 1 of 20 features kept'
    """

    n_rates: int = 50
    lowest_rate: float = 0.001
    highest_rate: float = 0.15
    class_weight: ClassWeight = None

    name: ClassVar[str] = "onebit-cs"
    label: ClassVar[str] = "OneBitCS"
    reference: ClassVar[str] = PLAN_2013
    short_reference: ClassVar[str] = "Plan and Vershynin, 2013"
    intercept: ClassVar[str] = "none"
    has_posterior: ClassVar[bool] = False
    is_batched: ClassVar[bool] = False
    uses_connectivity: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_class_weight(self.class_weight)
        if not (0 < self.lowest_rate <= self.highest_rate <= 1 and self.n_rates >= 1):
            raise ValueError(
                f"OneBitCS needs 0 < lowest_rate <= highest_rate <= 1 and at least one rate, got {self}. "
                "Correct them."
            )

    @property
    def description(self) -> str:
        """A sentence for the methods text."""
        return (
            "OneBitCS keeps the K voxels with the largest |X'y| as weights; K was chosen from "
            f"{self.n_rates} log-spaced fractions between {100 * self.lowest_rate:g} % and "
            f"{100 * self.highest_rate:g} % of the voxels by nested leave-one-run-out cross-validation."
        )

    def fit_folds(
        self, X: Any, y: NDArray, train: NDArray, runs: NDArray, connectivity: Any = None
    ) -> FoldFits:
        """Fit one classifier per column of ``train``; see ``Method.fit_folds``."""
        start = perf_counter()
        data = check_fold_input(X, y, train, runs)
        n_features = data.X.shape[1]
        plan = nested_plan(data.Y, data.runs)
        sizes = self.sizes(n_features)
        weights = row_weights(plan.labels.T, self.class_weight).T
        correlations = _correlate(plan.labels * weights, data.X)  # (U, N)
        held_out = plan.labels == 0
        scores = [_score_sizes(data.X, *each, sizes) for each in zip(correlations, held_out, strict=True)]
        choice = choose(plan, np.stack(scores, axis=1), weights)
        kept = sizes[choice.candidate]
        coef = np.column_stack(
            [threshold(correlations[fit], k) for fit, k in zip(plan.outer, kept, strict=True)]
        )
        decision = np.asarray(data.X @ coef)
        return FoldFits(
            coef=coef,
            intercept=np.zeros(len(kept)),
            support=coef != 0,
            status=tuple(f"closed form, {k} of {n_features} features kept" for k in kept),
            converged=np.ones(len(kept), dtype=bool),
            n_iter=np.ones(len(kept), dtype=int),
            seconds=perf_counter() - start,
            parameters={"n_kept": kept.astype(float), "inner_error": choice.error},
            decision=decision,
            proba=np.full(decision.shape, np.nan),
        )

    def sizes(self, n_features: int) -> NDArray:
        """Return the candidate numbers of features K, ascending, each at least 1 and at most N."""
        rates = np.geomspace(self.lowest_rate, self.highest_rate, self.n_rates)
        return np.unique(np.clip(np.round(rates * n_features), 1, n_features).astype(int))


def threshold(w: NDArray, size: int) -> NDArray:
    """Keep the ``size`` entries of largest magnitude of w (N,), zero the rest; ties go to the first entry."""
    kept = largest(w, size)
    thresholded = np.zeros_like(w)
    thresholded[kept] = w[kept]
    return thresholded


def largest(w: NDArray, size: int) -> NDArray:
    """Return the positions of the ``size`` largest magnitudes of w, in descending order."""
    return np.argsort(-np.abs(w), kind="stable")[:size]


def _correlate(labels: NDArray, X: Any) -> NDArray:
    """X'y of every fit, (U, N) in float64, so that the order of near ties does not hang on the batch."""
    return np.asarray(labels @ X.astype(np.float64, copy=False))


def _score_sizes(X: Any, w: NDArray, rows: NDArray, sizes: NDArray) -> NDArray:
    """X thresh_K(w) for every K in sizes (G,), on the given rows; (G, M), NaN on the others.

    The supports are nested, so the scores of all K are running sums over the sorted features.
    """
    scores = np.full((len(sizes), X.shape[0]), np.nan)
    order = largest(w, sizes[-1])
    numbers = np.flatnonzero(rows)
    for start in range(0, len(numbers), _ROWS_AT_ONCE):
        some = numbers[start : start + _ROWS_AT_ONCE]
        terms = _dense(X[some][:, order]) * w[order]
        chunks = np.add.reduceat(terms, np.r_[0, sizes[:-1]], axis=1)
        scores[:, some] = np.cumsum(chunks, axis=1).T
    return scores


def _dense(part: Any) -> NDArray:
    return part.toarray() if sparse.issparse(part) else part
