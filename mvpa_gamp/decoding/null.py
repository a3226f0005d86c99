"""The score of cross-validation for many label vectors, X the same for all folds or prepared by each."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..methods.fold_fits import FoldFits, Method
from .balanced import pairwise_aucs
from .crossval import HeldOut, share_by_fold
from .folds import Folds, leave_one_run_out
from .multiclass import Pairs, class_pairs, classify
from .pairwise import solve_pairs
from .preparation import Preparation, folds_of_rows

# (class numbers (M,), held-out answers) -> score
Score = Callable[[NDArray, HeldOut], float]


class NullStatistics(NamedTuple):
    """What cross-validation of k label vectors gives."""

    score: NDArray  # (k,) by default the mean over folds of the share of held-out rows predicted rightly
    auc: NDArray  # (k,) mean over folds and pairs of classes of the area under the ROC curve: orders ties
    max_inclusion: NDArray | None  # (k,) largest mean-over-folds inclusion probability of any voxel
    n_failed: NDArray  # (k,) fits that did not meet their stopping rule


class LabelVectors(NamedTuple):
    """Label vectors of one comparison to be cross-validated by one method."""

    method: Method
    rows: NDArray  # (m,) of the study
    labels: NDArray  # (m, k) -1/+1 or class numbers
    max_inclusion: bool = False
    score: Score | None = None  # None: accuracy

    @property
    def codes(self) -> NDArray:
        """Class numbers (m, k): 0 for +1 and 1 for -1."""
        return (self.labels < 0).astype(int) if (self.labels < 0).any() else self.labels.astype(int)

    @property
    def pairs(self) -> Pairs:
        """All pairs of the classes."""
        return class_pairs(int(self.codes.max()) + 1)

    def fitted(self, X: Any, train: NDArray, runs: NDArray, n_jobs: int, connectivity: Any) -> FoldFits:
        """The fits to X (m, N): folds (m, F) within pairs within label vectors."""
        return solve_pairs(self.method, X, self.codes, self.pairs, train, runs, n_jobs, connectivity)


def null_statistics(
    method: Method,
    X: Any,
    labels: NDArray,
    runs: Any,
    *,
    folds: Folds | None = None,
    score: Score | None = None,
    max_inclusion: bool = False,
    n_jobs: int = 1,
    connectivity: Any = None,
) -> NullStatistics:
    """Cross-validate each of the label vectors (M, k): k times P pairs times F folds in one ``fit_folds``.

    >>> import numpy as np
    >>> from mvpa_gamp.decoding import null_statistics, permuted_labels
    >>> from mvpa_gamp.methods import METHODS
    >>> runs, y = np.repeat(np.arange(6), 8), np.tile(np.repeat([1, -1], 4), 6)
    >>> X = np.random.default_rng(0).standard_normal((48, 20)) + y[:, None] * (np.arange(20) == 5)
    >>> null_statistics(METHODS["onebit-cs"], X, permuted_labels(y, runs, n=3), runs).score.shape
    (3,)
    """
    folds = leave_one_run_out(runs) if folds is None else folds
    asked = LabelVectors(method, np.arange(len(labels)), labels, max_inclusion, score)
    fits = asked.fitted(X, folds.train, np.asarray(runs), n_jobs, connectivity)
    _check_inclusion(asked, fits)
    n_pairs = len(asked.pairs)
    fold, rows = np.nonzero(folds.tested.T)
    shape = (len(fits.decision), -1, n_pairs, len(folds.held_out))
    decision, proba = (each.reshape(shape)[rows, :, :, fold] for each in (fits.decision, fits.proba))
    return NullStatistics(
        score=_scores(asked, rows, fold, decision, proba),
        auc=_areas(asked, rows, fold, decision),
        max_inclusion=_largest_mean(fits.inclusion, n_pairs, folds) if max_inclusion else None,
        n_failed=failures(fits, labels.shape[1]),
    )


def prepared_null(
    asked: Sequence[LabelVectors],
    X: Any,
    runs: Any,
    preparation: Preparation,
    *,
    folds: Folds | None = None,
    n_jobs: int = 1,
    connectivity: Any = None,
    rows: Any = None,
) -> list[NullStatistics]:
    """Cross-validate label vectors of several comparisons and methods, on X as every fold prepares it.

    X (M, N), ``runs`` (M,) and ``folds`` are those of the whole study. Folds are the outer loop: one fold's X
    is held at a time and serves everything asked for. Labels change nothing in it, so this is exact. ``rows``
    are those to prepare, at least those asked for: with the same ones every call has the same digits.

    >>> import numpy as np
    >>> from mvpa_gamp.decoding import LabelVectors, NoiseWhitening, permuted_labels, prepared_null
    >>> from mvpa_gamp.methods import METHODS
    >>> runs, y = np.repeat(np.arange(6), 8), np.tile(np.repeat([1, -1], 4), 6)
    >>> X, whiten = np.random.default_rng(0).standard_normal((48, 20)), NoiseWhitening(np.arange(48) // 4)
    >>> asked = [LabelVectors(METHODS["onebit-cs"], np.arange(48), permuted_labels(y, runs, n=3))]
    >>> prepared_null(asked, X, runs, whiten)[0].score.shape
    (3,)
    """
    runs = np.asarray(runs)
    folds = leave_one_run_out(runs) if folds is None else folds
    sums = [_Sums(each, *folds_of_rows(folds, each.rows)) for each in asked]
    needed = np.unique(np.concatenate([each.rows for each in asked])) if rows is None else np.asarray(rows)
    used = np.any([each.mine for each in sums], axis=0)
    prepared = preparation.folds(X, folds.train[:, used], needed)
    for number, fold in zip(np.flatnonzero(used), prepared, strict=True):
        for each in sums:
            if each.mine[number]:
                each.add(fold.X[np.searchsorted(needed, each.asked.rows)], runs, n_jobs, connectivity)
    return [each.statistics() for each in sums]


class _Sums:
    """What is kept of the folds of one comparison and method: held-out answers, and the mean inclusion."""

    def __init__(self, asked: LabelVectors, folds: Folds, mine: NDArray) -> None:
        self.asked, self.folds, self.mine = asked, folds, mine
        self.answers: list[tuple[NDArray, NDArray]] = []
        self.inclusion: Any = 0.0  # (N, k P) summed over folds
        self.n_failed = np.zeros(asked.labels.shape[1], dtype=int)

    def add(self, X: NDArray, runs: NDArray, n_jobs: int, connectivity: Any) -> None:
        """Fit the next fold to its own X (m, N)."""
        column, asked = len(self.answers), self.asked
        fits = asked.fitted(X, self.folds.train[:, [column]], runs[asked.rows], n_jobs, connectivity)
        _check_inclusion(asked, fits)
        tested, shape = self.folds.tested[:, column], (-1, asked.labels.shape[1], len(asked.pairs))
        self.answers.append(
            (fits.decision[tested].reshape(shape), np.asarray(fits.proba)[tested].reshape(shape))
        )
        if asked.max_inclusion:
            self.inclusion = self.inclusion + np.asarray(fits.inclusion, dtype=float)
        self.n_failed += failures(fits, asked.labels.shape[1])

    def statistics(self) -> NullStatistics:
        """The statistics of all label vectors, when all folds are there."""
        fold, rows = np.nonzero(self.folds.tested.T)
        decision, proba = (np.concatenate(parts) for parts in zip(*self.answers, strict=True))
        largest = None
        if self.asked.max_inclusion:
            mean = (self.inclusion / len(self.answers)).max(axis=0)
            largest = mean.reshape(-1, len(self.asked.pairs)).max(axis=1)
        scores = _scores(self.asked, rows, fold, decision, proba)
        return NullStatistics(scores, _areas(self.asked, rows, fold, decision), largest, self.n_failed)


def failures(fits: FoldFits, n_vectors: int) -> NDArray:
    """Fits (k,) of every label vector that missed their stopping rule; columns of a vector are together."""
    return np.count_nonzero(~np.asarray(fits.converged).reshape(n_vectors, -1), axis=1)


def mean_accuracy(codes: NDArray, said: HeldOut) -> float:
    """Mean over folds of the share of held-out rows whose class (M,) is recognised."""
    predicted = classify(said.decision, said.proba, int(codes.max()) + 1).predicted
    right = predicted == codes[said.rows]
    return float(share_by_fold(right, said.fold, int(said.fold.max()) + 1).mean())


def _scores(asked: LabelVectors, rows: NDArray, fold: NDArray, decision: NDArray, proba: NDArray) -> NDArray:
    """The score (k,) of every label vector from its held-out answers (T, k, P)."""
    judge = asked.score or mean_accuracy
    said = (HeldOut(rows, fold, decision[:, k], proba[:, k]) for k in range(decision.shape[1]))
    return np.array([judge(each, answer) for each, answer in zip(asked.codes.T, said, strict=True)])


def _areas(asked: LabelVectors, rows: NDArray, fold: NDArray, decision: NDArray) -> NDArray:
    """The mean area (k,) under the ROC curves of the pairs' decisions (T, k, P)."""
    codes = asked.codes
    return pairwise_aucs(codes[rows], decision, fold, int(codes.max()) + 1)


def _check_inclusion(asked: LabelVectors, fits: FoldFits) -> None:
    if asked.max_inclusion and fits.inclusion is None:
        raise ValueError(
            f"max_inclusion needs inclusion probabilities, which {asked.method.name!r} does not have. "
            "Choose a Bernoulli method such as 'gamp-bg-lr', or max_inclusion=False."
        )


def _largest_mean(inclusion: Any, n_pairs: int, folds: Folds) -> NDArray:
    """Largest over voxels and pairs of the mean over folds, (k,); summed one by one to save memory."""
    n_folds = len(folds.held_out)
    starts = range(0, inclusion.shape[1], n_folds)
    means = [inclusion[:, at : at + n_folds].mean(axis=1, dtype=float).max() for at in starts]
    return np.array(means).reshape(-1, n_pairs).max(axis=1)
