"""Leave-one-run-out cross-validation of a method, with a refit on all runs in the same batch."""

from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..methods.fold_fits import FoldFits, Method
from .folds import Folds, leave_one_run_out
from .tasks import check_signs


class Prediction(NamedTuple):
    """What the fold that did not train on a row says about it."""

    row: int  # in the X given to cross_validate
    run: Any
    label: int  # -1 or +1
    score: float  # decision value
    probability: float  # P(label = +1), NaN for methods without a probability model
    predicted: int  # +1 when score > 0, else -1


@dataclass(frozen=True)
class CrossValidation:
    """Result of leave-one-run-out: B folds and a refit.

    ``seconds`` is the time of the whole batch, B folds and the refit together.
    """

    method: str
    folds: Folds
    fits: FoldFits  # B columns, one per held-out run
    refit: FoldFits  # one column, trained on all rows
    error: NDArray  # (B,) share of held-out rows predicted wrongly
    balanced_accuracy: NDArray  # (B,) mean over the held-out run's classes of the share predicted rightly
    predictions: tuple[Prediction, ...]  # one per row of X, in its order
    seconds: float


def cross_validate(method: Method, X: Any, y: Any, runs: Any) -> CrossValidation:
    """Fit ``method`` once per held-out run and once on all rows, and score each fold on its own run.

    X is (M, N), y (M,) in -1/+1, runs (M,). The B folds and the refit are the B + 1 columns of one call of
    ``fit_folds``; columns do not influence one another, so labels of a run never reach the fold that holds it
    out.
    """
    runs = np.asarray(runs)
    folds = leave_one_run_out(runs)
    labels = _check_labels(y, folds)
    everything = np.ones((len(labels), 1), dtype=bool)
    both = method.fit_folds(X, labels, np.hstack([folds.train, everything]), runs)
    n_folds = len(folds.held_out)
    fits = take_columns(both, np.arange(n_folds))
    predicted = np.where(fits.decision > 0, 1, -1)  # (M, B)
    right = predicted == labels[:, None].astype(int)
    tested = ~folds.train
    return CrossValidation(
        method=method.name,
        folds=folds,
        fits=fits,
        refit=take_columns(both, np.array([n_folds])),
        error=1.0 - _share(right, tested),
        balanced_accuracy=_balanced_accuracy(right, tested, labels),
        predictions=_predictions(fits, labels, folds, predicted),
        seconds=both.seconds,
    )


def take_columns(fits: FoldFits, columns: NDArray) -> FoldFits:
    """Select columns of every field; ``seconds`` stays that of the whole batch."""
    changes: dict[str, Any] = {}
    for field in fields(fits):
        value = getattr(fits, field.name)
        if isinstance(value, np.ndarray):
            changes[field.name] = value[..., columns]
    changes["status"] = tuple(fits.status[column] for column in columns)
    changes["parameters"] = {name: value[..., columns] for name, value in fits.parameters.items()}
    return replace(fits, **changes)


def _check_labels(y: Any, folds: Folds) -> NDArray:
    labels = np.asarray(y)
    if labels.shape != folds.train.shape[:1]:
        raise ValueError(
            f"y must have one label per row ({folds.train.shape[0]} rows), got shape {labels.shape}. "
            "Cross-validation takes one comparison at a time."
        )
    check_signs(labels)
    return labels.astype(np.float64)


def _balanced_accuracy(right: NDArray, tested: NDArray, labels: NDArray) -> NDArray:
    of_class = [tested & (labels == sign)[:, None] for sign in (1, -1)]
    shares = np.array([_share(right, rows) for rows in of_class])
    present = np.array([rows.any(axis=0) for rows in of_class])
    return np.where(present, shares, 0.0).sum(axis=0) / present.sum(axis=0)


def _share(right: NDArray, rows: NDArray) -> NDArray:
    """Share of the given rows (M, B) that are right, per fold; 0 where there is no row."""
    return np.count_nonzero(right & rows, axis=0) / np.maximum(np.count_nonzero(rows, axis=0), 1)


def _predictions(fits: FoldFits, labels: NDArray, folds: Folds, predicted: NDArray) -> tuple[Prediction, ...]:
    fold_of_row = np.argmin(folds.train, axis=1)  # each row is held out by exactly one fold
    return tuple(
        Prediction(
            row,
            folds.held_out[fold].item(),
            int(labels[row]),
            float(fits.decision[row, fold]),
            float(fits.proba[row, fold]),
            int(predicted[row, fold]),
        )
        for row, fold in enumerate(fold_of_row)
    )
