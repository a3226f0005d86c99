"""Cross-validation of a method on one comparison, with a refit on all rows in the same batch."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..methods.fold_fits import FoldFits, Method
from .folds import Folds, leave_one_run_out
from .pairwise import fit_pairs
from .tasks import check_signs


def cross_validate(
    method: Method, X: Any, y: Any, runs: Any, folds: Folds | None = None, connectivity: Any = None
) -> FoldFits:
    """Fit ``method`` once per fold and once on all rows; folds leave one run out unless given.

    X is (M, N), y (M,) in -1/+1, runs (M,). The F folds and the refit are the F + 1 columns of one call of
    ``fit_folds``; columns do not influence one another, so labels of a run never reach the fold that holds it
    out. ``connectivity`` (N, N) says which features are neighbours, for methods that ask for it.
    """
    runs = np.asarray(runs)
    folds = leave_one_run_out(runs) if folds is None else folds
    labels = _check_labels(y, folds)
    X = X if sparse.issparse(X) else np.asarray(X)
    codes = (labels < 0).astype(int)
    return fit_pairs(method, X, codes, runs, folds, n_classes=2, connectivity=connectivity)[0]


class HeldOut(NamedTuple):
    """What folds say about the T rows that they hold out; P pairs of classes side by side."""

    rows: NDArray  # (T,) row of X
    fold: NDArray  # (T,) number of the fold
    decision: NDArray  # (T, P) positive for the first class of the pair
    proba: NDArray  # (T, P) probability of the first class of the pair


def held_out_answers(fits: Sequence[FoldFits]) -> HeldOut:
    """The answers of every pair's own folds, fold after fold."""
    tested = fits[0].tested
    assert tested is not None
    fold, rows = np.nonzero(tested.T)
    decision, proba = (
        np.stack([getattr(each, name)[rows, fold] for each in fits], axis=1) for name in ("decision", "proba")
    )
    return HeldOut(rows, fold, decision, proba)


def fold_errors(fits: FoldFits, y: Any) -> NDArray:
    """Share of held-out rows predicted wrongly in each fold, (F,); y is (M,) in -1/+1."""
    said = held_out_answers([fits])
    wrong = (said.decision[:, 0] > 0) != (np.asarray(y)[said.rows] > 0)
    return share_by_fold(wrong, said.fold, fits.n_folds)


def fold_balanced_accuracies(fits: FoldFits, y: Any) -> NDArray:
    """Balanced accuracy of each fold, (F,): the share predicted correctly, averaged over its classes.

    >>> import numpy as np
    >>> from mvpa_gamp.decoding import cross_validate, fold_balanced_accuracies, held_out_answers
    >>> from mvpa_gamp.methods import METHODS
    >>> runs, y = np.repeat(np.arange(3), 4), np.tile([1.0, 1.0, -1.0, -1.0], 3)
    >>> fits = cross_validate(METHODS["gamp-bg-lr"], y[:, None] * [[1.0, 0.1]], y, runs)
    >>> fold_balanced_accuracies(fits, y).tolist(), held_out_answers([fits]).fold.tolist()
    ([1.0, 1.0, 1.0], [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2])
    """
    said = held_out_answers([fits])
    positive = np.asarray(y)[said.rows] > 0
    right = (said.decision[:, 0] > 0) == positive
    shares = []
    for mine in (positive, ~positive):
        counts = np.bincount(said.fold[mine], minlength=fits.n_folds)
        hits = np.bincount(said.fold[mine], right[mine], fits.n_folds)
        shares.append(np.where(counts > 0, hits / np.maximum(counts, 1), np.nan))
    return np.nanmean(shares, axis=0)


def share_by_fold(values: NDArray, fold: NDArray, n_folds: int) -> NDArray:
    """Mean of ``values`` (T,) in each fold, (F,)."""
    return np.bincount(fold, values, n_folds) / np.bincount(fold, minlength=n_folds)


def _check_labels(y: Any, folds: Folds) -> NDArray:
    labels = np.asarray(y)
    if labels.shape != folds.train.shape[:1]:
        raise ValueError(
            f"y must have one label per row ({folds.train.shape[0]} rows), got shape {labels.shape}. "
            "Cross-validation takes one comparison at a time."
        )
    check_signs(labels)
    return labels.astype(np.float64)
