"""Nested leave-one-run-out: which fits tuning needs, each once, and which candidate they choose.

To tune outer column b, one fit is made per training run, without that run, and scored on it. Leaving
out run i and then j trains on the same rows as j and then i, so 12 leave-one-run-out folds plus a refit
on everything need 66 + 12 + 1 different fits, not 12 x 11 + 12 + 12 + 1.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_TIE = 1e-9  # error rates closer than this are equal: they are small fractions added in some order


class InnerFold(NamedTuple):
    """One tuning step of a column: the fit to score and the training rows that fit has not seen."""

    fit: int
    rows: NDArray  # (M,) bool


@dataclass(frozen=True)
class NestedPlan:
    """The different fits that nested tuning of B columns needs.

    A fit is known by its labels: -1 or +1 on the rows it trains on, 0 elsewhere. So columns with the same
    training rows and labels share their fits.
    """

    labels: NDArray  # (U, M) float64, one row per different fit
    outer: NDArray  # (B,) the fit of each column on all its training rows
    inner: tuple[tuple[InnerFold, ...], ...]  # per column


class Choice(NamedTuple):
    """Per column, the chosen candidate and its mean error over the inner folds."""

    candidate: NDArray  # (B,) its number
    error: NDArray  # (B,)


def nested_plan(Y: NDArray, runs: NDArray) -> NestedPlan:
    """List the fits for labels Y (M, B), 0 outside training, and runs (M,).

    An inner fold whose remaining rows hold one class only cannot be fitted and is left out. A column with
    fewer than two usable inner folds is an error.
    """
    signed = np.asarray(Y, dtype=np.int8)
    numbers: dict[bytes, int] = {}

    def number(labels: NDArray) -> int:
        return numbers.setdefault(labels.tobytes(), len(numbers))

    inner = []
    for b, labels in enumerate(signed.T):
        folds = []
        for run in np.unique(runs[labels != 0]):
            rows = (runs == run) & (labels != 0)
            rest = np.where(rows, np.int8(0), labels)
            if (rest > 0).any() and (rest < 0).any():
                folds.append(InnerFold(number(rest), rows))
        if len(folds) < 2:
            raise ValueError(
                "Tuning by nested leave-one-run-out needs at least two training runs, each leaving both "
                f"classes behind, but fold {b} has {len(folds)}. Give at least three runs in all, or use a "
                "method that needs no nested cross-validation (a GAMP method, svm or lda)."
            )
        inner.append(tuple(folds))
    outer = np.array([number(np.ascontiguousarray(labels)) for labels in signed.T])
    fits = np.frombuffer(b"".join(numbers), dtype=np.int8).reshape(len(numbers), -1)
    return NestedPlan(fits.astype(np.float64), outer, tuple(inner))


def choose(plan: NestedPlan, scores: NDArray, weights: NDArray | None = None) -> Choice:
    """Pick, per column, the candidate with the least mean error over its inner folds; ties go to the first.

    scores is (G, U, M): the decision value of every row under every fit and candidate, candidates sorted
    from the sparsest. Only rows held out by an inner fold are read; the others may be NaN. A value of 0
    counts as -1. ``weights`` (U, M) say how much a row of a fit counts; None: all alike.
    """
    weights = np.abs(plan.labels) if weights is None else weights
    index, error = [], []
    for b, folds in enumerate(plan.inner):
        truth, counts = plan.labels[plan.outer[b]], weights[plan.outer[b]]
        rates = np.mean(
            [_error_rates(scores[:, f.fit, f.rows], truth[f.rows], counts[f.rows]) for f in folds], axis=0
        )
        index.append(int(np.flatnonzero(rates <= rates.min() + _TIE)[0]))
        error.append(rates[index[-1]])
    return Choice(np.array(index), np.array(error))


def _error_rates(scores: NDArray, truth: NDArray, weights: NDArray) -> NDArray:
    return np.average((scores > 0) != (truth > 0), axis=1, weights=weights)
