"""How many runs are needed? Accuracy against training runs, beside what theory predicts for this model.

Measured: random subsets of runs train, the other runs test; all subsets of one size are columns of one
``fit_folds``. Predicted: state evolution with the parameters learnt from all rows. It holds for features that
are independent of each other, which voxels rarely are; where measurement and prediction disagree there is no
extrapolation, only a sentence that says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..gamp import state_evolution
from ..gamp.parameters import with_parameters
from ..gamp.starts import named_prior
from ..methods import GampMethod
from ..methods.fold_fits import Method, check_rows
from .fit import Scheme, graph_for

# Accuracy by which a right prediction may be off: on simulated i.i.d. data of 200 to 480 rows its root mean
# square error over data sets, learnt parameters and finite size together, was 0.03.
_ALLOWANCE = 0.03
_ERRORS = 2.0  # standard errors, for the comparison and for intervals
_FARTHEST = 3  # times the runs at hand: beyond, small errors of the learnt parameters decide
_ITERATIONS = 500  # to the fixed point at which parameters are read; more only where they run away
# Share of the effective dimensions of independent features below which features count as correlated: i.i.d.
# data scatter by 0.01 around 1, the Haxby slice has 0.3.
_INDEPENDENT = 0.9
_PREPARED = (
    "No extrapolation: here X is prepared again for every subset of runs, which state evolution does not "
    "model. Read the measured curve only."
)
_TRIES = 50  # draws of a subset per wanted one, before fewer have to do


class Extrapolation(NamedTuple):
    """Predicted accuracy with so many training runs, and an interval of two standard errors."""

    n_train_runs: int
    accuracy: float
    low: float
    high: float


@dataclass(frozen=True)
class IndependentFeatures:
    """The learnt model as state evolution sees it: N features of one variance, independent of each other."""

    likelihood: Any
    prior: Any  # of the weights of X as it is
    variance: float  # mean over features, of X
    n_features: int

    def accuracy(self, n_rows: float) -> float:
        """Predicted accuracy on new rows after training on ``n_rows``.

        State evolution wants entries of variance 1/M: scores stay the same when X is divided by
        sqrt(variance M) and the prior of the weights multiplied by it; the ratio is M / N.
        """
        scaled = self.prior.scaled(float(np.sqrt(self.variance * n_rows)))
        evolution = state_evolution(self.likelihood, scaled, n_rows / self.n_features)
        return float(1 - evolution.error_rate[-1]) if evolution.converged else float("nan")


@dataclass(frozen=True)
class LearningCurve:
    """Accuracy for K numbers of training runs; ``refusal`` is empty or says why it is not extrapolated.

    ``standard_error`` is taken over runs, the independent units, not over subsets, which overlap.
    """

    method: str
    n_train_runs: NDArray  # (K,) ascending
    accuracy: NDArray  # (K,) mean over test runs of the mean over the subsets that left the run out
    standard_error: NDArray  # (K,)
    n_splits: NDArray  # (K,) subsets fitted
    predicted: NDArray  # (K,) by state evolution, NaN without a prediction
    n_runs: int
    rows_per_run: float
    seed: int
    refusal: str
    model: IndependentFeatures | None

    def extrapolate(self, n_train_runs: int) -> Extrapolation:
        """Predict the accuracy with so many training runs, or raise a ValueError that says why not.

        The interval is two standard errors wide to either side: that of the measured curve at its end, and
        0.03 for what state evolution itself is off on i.i.d. data of this size.
        """
        if self.refusal or self.model is None:
            raise ValueError(self.refusal)
        if not 1 <= n_train_runs <= _FARTHEST * self.n_runs:
            raise ValueError(
                f"A curve measured on {self.n_runs} runs can be extrapolated to between 1 and "
                f"{_FARTHEST * self.n_runs} training runs, got {n_train_runs}. Measure more runs to go "
                "further."
            )
        accuracy = self.model.accuracy(n_train_runs * self.rows_per_run)
        half = _ERRORS * float(np.hypot(self.standard_error[-1], _ALLOWANCE))
        return Extrapolation(n_train_runs, accuracy, max(0.0, accuracy - half), min(1.0, accuracy + half))


def learning_curve(
    method: Method,
    X: Any,
    y: Any,
    runs: Any,
    scheme: Scheme | None = None,
    *,
    n_train_runs: Sequence[int] | None = None,
    n_splits: int = 20,
) -> LearningCurve:
    """Measure accuracy for several numbers of training runs, and predict it.

    X is (M, N), y (M,) in -1/+1, runs (M,). Each number k trains on up to ``n_splits`` distinct random
    subsets of k runs (all of them where there are fewer) and tests on the other runs. ``n_train_runs`` None
    takes about a quarter, half and three quarters of the runs, and all but one.

    A preparation is fitted to each subset of the runs. Of the ``scheme`` its folds are not used.

    Parameters
    ----------
    method
        One of ``METHODS``.
    X
        Samples (M, N).
    y
        Labels (M,) in -1/+1.
    runs
        The run (M,) of every sample.
    scheme
        Folds, rows, what folds do to X, and what is exchanged; None: leave one run out.
    n_train_runs
        The numbers of training runs.
    n_splits
        Subsets of each number.

    Returns
    -------
    LearningCurve
        Accuracies (K,) with standard errors, beside what state evolution predicts.
    """
    scheme, (every, study) = scheme or Scheme(), check_rows(X, runs)
    y, rows = np.asarray(y), scheme.rows_of(study)
    runs = study[rows]
    sizes = _checked_sizes(y, runs, n_train_runs, n_splits)
    rng = np.random.default_rng(scheme.seed)
    names, graph = np.unique(runs), graph_for(method, scheme.connectivity)
    points = []
    for size in sizes:
        train = _subsets(y, runs, names, size, n_splits, rng)
        whole = np.column_stack([np.isin(study, runs[column]) for column in train.T])
        said = [
            method.fit_folds(group.X, y, train[:, group.folds], runs, **graph).decision
            for group in scheme.preparation.groups(every, whole, rows)
        ]
        decision = np.hstack(said)
        points.append((*_by_run((decision > 0) == (y > 0)[:, None], train, runs, names), train.shape[1]))
    accuracy, error, n_fitted = (np.array(part) for part in zip(*points, strict=True))
    measured = LearningCurve(
        method=method.name,
        n_train_runs=np.array(sizes),
        accuracy=accuracy,
        standard_error=error,
        n_splits=n_fitted,
        predicted=np.full(len(sizes), np.nan),
        n_runs=names.size,
        rows_per_run=y.size / names.size,
        seed=scheme.seed,
        refusal=_no_theory(method, every) if scheme.preparation.shared else _PREPARED,
        model=None,
    )
    return measured if measured.refusal else _predicted(measured, method, every[rows], y, runs)


def _predicted(curve: LearningCurve, method: Any, X: NDArray, y: NDArray, runs: NDArray) -> LearningCurve:
    """The curve with the prediction beside it, and why it must not be extrapolated if so."""
    model, settled = _learnt_model(method, X, y, runs)
    predicted = np.array([model.accuracy(size * curve.rows_per_run) for size in curve.n_train_runs])
    differs = _disagreement(curve.n_train_runs, curve.accuracy, curve.standard_error, predicted)
    return replace(curve, model=model, predicted=predicted, refusal=differs or _broken_assumption(X, settled))


def _disagreement(sizes: NDArray, accuracy: NDArray, error: NDArray, predicted: NDArray) -> str:
    """Where measurement and prediction differ, or nothing.

    Judged on the upper half of the curve, from which extrapolation starts: with few rows a fit also pays for
    learning its parameters, which state evolution is given.
    """
    gap = np.abs(accuracy - predicted)
    allowed = _ERRORS * np.hypot(np.nan_to_num(error), _ALLOWANCE)
    off = np.flatnonzero((2 * sizes >= sizes[-1]) & ~(gap <= allowed))
    if not off.size:
        return ""
    worst = off[np.argmax(np.nan_to_num(gap[off], nan=np.inf))]
    return (
        f"No extrapolation: with {sizes[worst]} training runs the accuracy is {accuracy[worst]:.3f} "
        f"(standard error {error[worst]:.3f}), but state evolution, which assumes independent features, "
        f"predicts {predicted[worst]:.3f}. Read the measured curve only."
    )


def _broken_assumption(X: NDArray, settled: bool) -> str:
    """Why a prediction cannot be trusted even where it agrees, or nothing."""
    share = independent_share(X)
    if share < _INDEPENDENT:
        return (
            f"No extrapolation: state evolution assumes independent features, but these have {share:.0%} "
            "of the effective dimensions that independent ones would have. Read the measured curve only."
        )
    if not settled:
        return (
            "No extrapolation: the parameters learnt from all rows do not settle, as happens when rows are "
            "classified without error. Read the measured curve only."
        )
    return ""


def independent_share(X: NDArray) -> float:
    """Effective dimensions of X (M, N), relative to those of independent features: at most about 1.

    (tr K)^2 / tr K^2 of the Gram matrix K of the centred rows, over its expectation m N / (m + N + 1) with
    m = M - 1 for i.i.d. Gaussian entries.
    """
    centred = X - X.mean(axis=0, dtype=float).astype(X.dtype)
    gram = (centred @ centred.T).astype(float)
    m, n_features = X.shape[0] - 1, X.shape[1]
    expected = m * n_features / (m + n_features + 1)
    return float(np.trace(gram) ** 2 / np.square(gram).sum() / expected)


def _learnt_model(
    method: GampMethod, X: NDArray, y: NDArray, runs: NDArray
) -> tuple[IndependentFeatures, bool]:
    """The model that all rows teach, and whether its parameters settled.

    Parameters are read at the fixed point, whose likelihood they maximise: a fit that stops at its best
    cavity score leaves them on their way. Where they run away, those of the method as it is have to do.
    """
    everything = np.ones((y.size, 1), dtype=bool)
    at_rest = replace(method, settings=replace(method.settings, stop="fixed-point", max_iter=_ITERATIONS))
    fit = at_rest.fit_folds(X, y, everything, runs)
    settled = bool(fit.converged[0])
    if not settled:
        fit = method.fit_folds(X, y, everything, runs)
    learnt = {name.removeprefix("prior."): float(value[0]) for name, value in fit.parameters.items()}
    prior = with_parameters(named_prior(method.prior), learnt)
    variance = float(np.var(X, axis=0, dtype=float).mean())
    return IndependentFeatures(method.likelihood, prior, variance, X.shape[1]), settled


def _no_theory(method: Method, X: Any) -> str:
    """Why state evolution says nothing about this method, or nothing."""
    if getattr(method, "uses_connectivity", False):
        return (
            "No extrapolation: state evolution assumes independent features, but this prior assumes that "
            "neighbours are similar. Read the measured curve only."
        )
    if not (method.is_batched and method.has_posterior):
        return (
            f"No extrapolation: state evolution predicts sum-product GAMP, not {method.name!r}. "
            "Use 'gamp-bg-lr', for example."
        )
    return (
        "No extrapolation: state evolution is for dense X, and this is sparse." if sparse.issparse(X) else ""
    )


def _subsets(
    y: NDArray, runs: NDArray, names: NDArray, size: int, n_splits: int, rng: np.random.Generator
) -> NDArray:
    """Training rows (M, B) of distinct subsets of ``size`` runs that hold both classes."""
    candidates: Any = (
        combinations(range(names.size), size)
        if comb(names.size, size) <= n_splits
        else (tuple(np.sort(rng.choice(names.size, size, replace=False))) for _ in range(_TRIES * n_splits))
    )
    chosen: dict[tuple[int, ...], NDArray] = {}
    for subset in candidates:
        rows = np.isin(runs, names[list(subset)])
        if np.unique(y[rows]).size == 2:
            chosen[subset] = rows
        if len(chosen) == n_splits:
            break
    if not chosen:
        raise ValueError(
            f"No set of {size} runs contains both classes, so nothing can be trained. Use more training runs."
        )
    return np.column_stack(list(chosen.values()))


def _by_run(right: NDArray, train: NDArray, runs: NDArray, names: NDArray) -> tuple[float, float]:
    """Mean over runs of their accuracy as test runs, and its standard error over runs."""
    per_run = []
    for name in names:
        tested = (runs == name)[:, None] & ~train
        if tested.any():
            per_run.append(np.count_nonzero(right & tested) / np.count_nonzero(tested))
    spread = np.std(per_run, ddof=1) / np.sqrt(len(per_run)) if len(per_run) > 1 else np.nan
    return float(np.mean(per_run)), float(spread)


def _checked_sizes(y: NDArray, runs: NDArray, wanted: Sequence[int] | None, n_splits: int) -> list[int]:
    if y.ndim != 1 or y.shape != runs.shape or not np.isin(y, (-1, 1)).all():
        raise ValueError(
            f"y must be -1 or +1 and runs a run, one per row, got shapes {y.shape} and {runs.shape}. "
            "A learning curve takes one comparison at a time."
        )
    n_runs = np.unique(runs).size
    if n_runs < 3 or n_splits < 1:
        raise ValueError(
            f"A learning curve needs at least 3 runs and 1 split, got {n_runs} and {n_splits}. Give more."
        )
    if wanted is None:
        # At least two, which methods that tune by nested cross-validation need.
        return sorted({max(2, round(share * n_runs)) for share in (0.25, 0.5, 0.75)} | {n_runs - 1})
    sizes = sorted({int(size) for size in wanted})
    if not sizes or sizes[0] < 1 or sizes[-1] >= n_runs:
        raise ValueError(
            f"n_train_runs must be numbers from 1 to {n_runs - 1}, so that a run is left for testing, "
            f"got {list(wanted)}. Give numbers in this range, or None."
        )
    return sizes
