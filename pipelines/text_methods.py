"""The eight classifiers of the paper's two RCV1 tables, on sparse X that is never made dense.

Cross-validated ones choose among ten log-spaced values by two-fold accuracy on the training rows; ties go
to the stronger regularisation. A ``Trained`` tells the seconds of everything (tuning included) and those of
one fit at the tuned parameters.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.gamp import (
    Bernoulli,
    Design,
    GampResult,
    Gaussian,
    Hinge,
    Laplace,
    Logistic,
    Probit,
    SolverSettings,
    fit_em,
)
from mvpa_gamp.gamp.starts import (
    FEATURES_PER_ROW,
    LARGEST_RATE,
    SCORE_VARIANCE,
    solve_screened,
    start_laplace,
)
from mvpa_gamp.methods.gamp import LOGISTIC_LIKE_VARIANCE
from mvpa_gamp.methods.l1_logistic import solve_path
from mvpa_gamp.methods.l1_solver import Settings, null_fits, solve_block

N_VALUES, N_FOLDS = 10, 2
TOL = 1e-3  # the paper gave it to every algorithm, each of which takes it in its own way
# C of LIBLINEAR and 1 / lambda of the L1 methods, for rows of norm one: from nearly empty to separating.
STRENGTHS = np.geomspace(0.1, 100.0, N_VALUES)
ONEBIT_RATES = np.geomspace(0.001, 0.15, N_VALUES)
# Most words are too rare to say anything about the rate, which hardly moves from its start. So sum-product
# GAMP begins at several, log-spaced from the start of the package to 1 (every word counts), and the fit with
# the best leave-one-out score of the training documents is kept. No accuracy is looked at.
N_STARTS = 5
EM_UPDATES = 5
_LARGEST_FACTOR = 5.0  # of one update of the Laplace rate
_GAP = 1e-4  # duality gap of the accelerated solver, relative to the null objective


class Trained(NamedTuple):
    """A linear classifier, what it selected, and what it took."""

    coef: NDArray  # (N,)
    intercept: float
    support: NDArray  # (N,) bool
    seconds: float
    final_seconds: float
    cpu_seconds: float
    chosen: str
    status: str

    def accuracy(self, X: Any, y: NDArray, selected_only: bool = False) -> float:
        """Share of rows on the right side; a score of 0 counts as -1.

        Posterior means are small but not zero for words that are not selected: ``selected_only`` drops them.
        """
        coef = np.where(self.support, self.coef, 0) if selected_only else self.coef
        return float(np.mean((X @ coef + self.intercept > 0) == (y > 0)))


class Fit(NamedTuple):
    """One fit at known parameters."""

    coef: NDArray
    intercept: float
    status: str = "converged"


@dataclass(frozen=True)
class Classifier:
    """A line of the table; ``colour_of`` names the method whose colour and marker it shares."""

    label: str
    tuning: str
    train: Callable[[Any, NDArray, NDArray], Trained]  # (X, y, fold number of each row)
    colour_of: str
    high_accuracy: bool = True


def two_folds(n_rows: int, rng: np.random.Generator) -> NDArray:
    """Fold number of each row, as even as possible."""
    return rng.permutation(np.arange(n_rows) % N_FOLDS)


# --- GAMP ---------------------------------------------------------------------------------------------


def sum_product(likelihood: Any) -> Callable[[Any, NDArray, NDArray], Trained]:
    """spGAMP with a Bernoulli-Gaussian prior, tuned once per iteration; selected means inclusion > 1/2.

    The starts are columns of one solve.
    """

    def train(X: Any, y: NDArray, folds: NDArray) -> Trained:
        began = perf_counter(), process_time()
        rates = start_rates(*X.shape)
        design = Design(X, np.ones((X.shape[0], N_STARTS), dtype=bool))
        energy = float(design.row_energy().mean())
        prior = Bernoulli(rates, Gaussian(0.0, SCORE_VARIANCE / (rates * energy)))
        tuned = fit_em(design, y, likelihood, prior, SolverSettings(intercept=True))
        result, learnt = tuned.result, tuned.prior
        best = int(np.argmax(result.cavity_score))
        seconds, cpu = _since(began)
        return Trained(
            result.coef[:, best],
            float(result.intercept[best]),
            learnt.inclusion(result.r, result.tau_r)[:, best] > 0.5,
            seconds,
            seconds,
            cpu,
            f"start {rates[best]:.3g} by leave-one-out score, then rate {float(learnt.rate[best]):.3g}, slab "
            f"variance {float(learnt.slab.var[best]):.3g}",
            f"{result.status[best]} ({result.n_iter[best]} iterations)",
        )

    return train


def start_rates(n_rows: int, n_features: int) -> NDArray:
    """Where sum-product GAMP begins: log-spaced from the package's own start to 1."""
    return np.geomspace(min(LARGEST_RATE, FEATURES_PER_ROW * n_rows / n_features), 1.0, N_STARTS)


_MAX_SUM = SolverSettings(mode="max-sum", intercept=True, tol=TOL, max_iter=300)
_TUNING = replace(_MAX_SUM, max_iter=60)  # each starts from the one before, so it need not go all the way


def max_sum_em(X: Any, y: NDArray, folds: NDArray) -> Trained:
    """msGAMP for L1-LR; the penalty learnt by five EM updates, each after a solve from the last one."""
    began = perf_counter(), process_time()
    design, result = _precise(X), None
    prior = start_laplace(design, y, Logistic())
    for _ in range(EM_UPDATES):
        result = solve_screened(design, y, Logistic(), prior, _TUNING, warm=result)
        prior = informed_update(prior, result)
    return _max_sum_trained(design, y, prior, began)


def informed_update(prior: Laplace, result: GampResult) -> Laplace:
    """An EM update of the rate that leaves out what the prior itself contributes.

    EM sets rate = N / sum E|w|. A word that says nothing has E|w| = 1/rate and holds the rate where it is.
    With u_n in [0, 1] the share of the prior in word n (posterior over prior variance),
    rate = sum(1 - u) / (sum E|w| - sum u / rate) has the same fixed points and gets there in a few updates.
    """
    rate = np.asarray(prior.rate, dtype=float)
    moments, sums = prior.expect(result.r.astype(float), result.tau_r.astype(float))
    share = np.clip(moments.var * np.square(rate) / 2, 0.0, 1.0).sum(axis=0)
    size = np.maximum(sums["abs"] - share / rate, 1e-300)
    factor = np.maximum(sums["count"] - share, 1e-300) / (rate * size)
    return replace(prior, rate=rate * np.clip(factor, 1 / _LARGEST_FACTOR, _LARGEST_FACTOR))


def max_sum_cv(X: Any, y: NDArray, folds: NDArray) -> Trained:
    """msGAMP for L1-LR, the penalty by cross-validation; the folds are columns of one solve."""
    began = perf_counter(), process_time()
    train = folds[:, None] != np.arange(N_FOLDS)
    design, result, rates = _precise(X, train), None, []
    for strength in STRENGTHS:
        prior = Laplace(np.full(N_FOLDS, 1.0 / strength))
        result = solve_screened(design, y, Logistic(), prior, _TUNING, warm=result)
        right = (design.scores(result.coef, result.coef_var)[0] + result.intercept > 0) == (y[:, None] > 0)
        rates.append(np.mean([right[~train[:, b], b].mean() for b in range(N_FOLDS)]))
    best = Laplace(np.array([1.0 / STRENGTHS[int(np.argmax(rates))]]))
    return _max_sum_trained(_precise(X), y, best, began)


def _precise(X: Any, train: NDArray | None = None) -> Design:
    """X in float64: where the training rows are almost separated, pseudo-variances exceed float32."""
    return Design(X.astype(np.float64), train)


def _max_sum_trained(design: Design, y: NDArray, prior: Laplace, began: tuple[float, float]) -> Trained:
    """The last fit, from the start: its time is the post-tuning time."""
    final_began = perf_counter()
    result = solve_screened(design, y, Logistic(), prior, _MAX_SUM)
    final = perf_counter() - final_began
    coef = result.coef[:, 0]
    chosen = f"lambda {float(np.squeeze(prior.rate)):.3g}"
    status = f"{result.status[0]} ({result.n_iter[0]} iterations)"
    seconds, cpu = _since(began)
    return Trained(coef, float(result.intercept[0]), coef != 0, seconds, final, cpu, chosen, status)


# --- the others ---------------------------------------------------------------------------------------


def cross_validated(
    name: str, values: NDArray, fit: Callable[[Any, NDArray, float], Fit]
) -> Callable[[Any, NDArray, NDArray], Trained]:
    """Any fit at a given value, the value chosen by two-fold accuracy."""

    def train(X: Any, y: NDArray, folds: NDArray) -> Trained:
        began = perf_counter(), process_time()
        rates = np.zeros(len(values))
        for fold in range(N_FOLDS):
            inside = folds != fold
            X_in, X_out, truth = X[inside], X[~inside], y[~inside] > 0
            for g, value in enumerate(values):
                found = fit(X_in, y[inside], value)
                rates[g] += np.mean((X_out @ found.coef + found.intercept > 0) == truth)
        best = values[int(np.argmax(rates))]
        final_began = perf_counter()
        found = fit(X, y, best)
        final = perf_counter() - final_began
        seconds, cpu = _since(began)
        chosen = f"{name} {best:.3g}"
        support = found.coef != 0
        return Trained(found.coef, found.intercept, support, seconds, final, cpu, chosen, found.status)

    return train


def liblinear(l1: bool) -> Callable[[Any, NDArray, float], Fit]:
    """LIBLINEAR's logistic regression through scikit-learn: CDN for the L1 penalty, TRON for L2."""

    def fit(X: Any, y: NDArray, C: float) -> Fit:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(C=C, solver="liblinear", tol=TOL, random_state=0)
        if model.get_params().get("penalty") in ("l1", "l2"):
            model.set_params(penalty="l1" if l1 else "l2")
        else:  # scikit-learn 1.8
            model.set_params(l1_ratio=1.0 if l1 else 0.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, y)
        n_iter = int(np.max(model.n_iter_))
        status = "converged" if n_iter < model.max_iter else f"stopped after {n_iter} iterations"
        return Fit(model.coef_[0], float(model.intercept_[0]), status)

    return fit


def accelerated_l1_cv(X: Any, y: NDArray, folds: NDArray) -> Trained:
    """L1-LR by accelerated proximal gradient (TFOCS); both folds along a path of falling penalties."""
    began = perf_counter(), process_time()
    settings = Settings(_GAP, 10_000, True)
    labels = np.where(folds != np.arange(N_FOLDS)[:, None], y, 0.0)
    lambdas = np.repeat(1.0 / STRENGTHS[:, None], N_FOLDS, axis=1)
    rates = []
    for fits in solve_path(X, labels, lambdas, settings):
        right = (fits.decision > 0) == (y > 0)
        rates.append(np.mean([right[b, folds == b].mean() for b in range(N_FOLDS)]))
    best = 1.0 / STRENGTHS[int(np.argmax(rates))]
    final_began = perf_counter()
    start = null_fits(y[None], X.shape[1], settings.fit_intercept)
    found = solve_block(X, y[None], np.array([best]), start, settings)
    final = perf_counter() - final_began
    coef = np.zeros(X.shape[1])
    coef[found.coef.indices] = found.coef.data
    seconds, cpu = _since(began)
    status = f"duality gap {found.gap[0]:.0e} after {found.n_iter[0]} iterations"
    intercept = float(found.intercept[0])
    return Trained(coef, intercept, coef != 0, seconds, final, cpu, f"lambda {best:.3g}", status)


def onebit(X: Any, y: NDArray, rate: float) -> Fit:
    """OneBitCS, w = thresh_K(X'y) with K = rate N."""
    correlation = np.asarray(X.T @ y.astype(X.dtype), dtype=float)
    kept = np.argsort(-np.abs(correlation), kind="stable")[: max(1, round(rate * X.shape[1]))]
    coef = np.zeros_like(correlation)
    coef[kept] = correlation[kept]
    return Fit(coef, 0.0, "closed form")


def _since(began: tuple[float, float]) -> tuple[float, float]:
    return perf_counter() - began[0], process_time() - began[1]


CLASSIFIERS: dict[str, Classifier] = {
    "spgamp-bg-pr": Classifier(
        "spGAMP BG-PR", "EM", sum_product(Probit(LOGISTIC_LIKE_VARIANCE)), "gamp-bg-pr"
    ),
    "spgamp-bg-hl": Classifier("spGAMP BG-HL", "EM", sum_product(Hinge()), "gamp-bg-hl"),
    "msgamp-l1-lr-em": Classifier("msGAMP L1-LR", "EM", max_sum_em, "gamp-l1-lr"),
    "msgamp-l1-lr-cv": Classifier("msGAMP L1-LR", "xval", max_sum_cv, "gamp-l1-lr-cv"),
    "cdn": Classifier("CDN", "xval", cross_validated("C", STRENGTHS, liblinear(True)), "cdn"),
    "tron": Classifier("TRON", "xval", cross_validated("C", STRENGTHS, liblinear(False)), "tron"),
    "tfocs": Classifier("TFOCS L1-LR", "xval", accelerated_l1_cv, "l1-lr-cv"),
    "onebit-cs": Classifier(
        "OneBitCS", "xval", cross_validated("rate", ONEBIT_RATES, onebit), "onebit-cs", high_accuracy=False
    ),
}
