"""The score of cross-validation for many label vectors: the null of permutation tests."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..coupling import Pairs, class_pairs, classify
from ..methods.fold_fits import FoldFits, Method
from ..stability import jaccard
from .fit import Columns, Scheme, Solved, pair_columns, solve
from .folds import Folds
from .preparation import folds_of_rows
from .scores import HeldOut, pairwise_aucs, share_by_fold

# (class numbers (M,), held-out answers) -> score
Score = Callable[[NDArray, HeldOut], float]


class NullStatistics(NamedTuple):
    """What cross-validation of k label vectors gives."""

    score: NDArray  # (k,) by default the mean over folds of the share of held-out rows predicted rightly
    auc: NDArray  # (k,) mean over folds and pairs of classes of the area under the ROC curve: orders ties
    max_inclusion: NDArray | None  # (k,) largest mean-over-folds inclusion probability of any voxel
    n_failed: NDArray  # (k,) fits that did not meet their stopping rule
    consistency: NDArray | None = None  # (k,) mean Jaccard index of the folds' selections, of two classes


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


def null_statistics(
    method: Method,
    X: Any,
    labels: NDArray,
    runs: Any,
    scheme: Scheme | None = None,
    *,
    score: Score | None = None,
    max_inclusion: bool = False,
    n_jobs: int = 1,
) -> NullStatistics:
    """Cross-validate each of the label vectors (m, k) of one comparison by one method.

    Parameters
    ----------
    method
        One of ``METHODS``.
    X
        Samples (M, N).
    labels
        Label vectors (m, k).
    runs
        The run (M,) of every sample.
    scheme
        Folds, rows, what folds do to X, and what is exchanged; None: leave one run out.
    score
        Replaces the accuracy.
    max_inclusion
        Whether largest inclusion probabilities are kept.
    n_jobs
        Processes.

    Returns
    -------
    NullStatistics
        Scores and areas under the curve (k,), largest inclusions (k,) or None.

    Examples
    --------
    >>> import numpy as np
    >>> from mvpa_gamp.decoding import null_statistics, permuted_labels
    >>> from mvpa_gamp.methods import METHODS
    >>> runs, y = np.repeat(np.arange(6), 8), np.tile(np.repeat([1, -1], 4), 6)
    >>> X = np.random.default_rng(0).standard_normal((48, 20)) + y[:, None] * (np.arange(20) == 5)
    >>> null_statistics(METHODS["onebit-cs"], X, permuted_labels(y, runs, n=3), runs).score.shape
    (3,)
    """
    scheme, runs = scheme or Scheme(), np.asarray(runs)
    asked = LabelVectors(method, scheme.rows_of(runs), labels, max_inclusion, score)
    return joint_null([asked], X, runs, scheme, n_jobs=n_jobs)[0]


def joint_null(
    asked: Sequence[LabelVectors],
    X: Any,
    runs: Any,
    scheme: Scheme | None = None,
    *,
    rows: Any = None,
    n_jobs: int = 1,
) -> list[NullStatistics]:
    """Cross-validate label vectors of several comparisons and methods.

    k label vectors times P pairs times F folds are columns of as few ``fit_folds`` as folds prepare an X. X
    (M, N), ``runs`` (M,) and folds are those of the whole study. One X is held at a time and serves
    everything asked for; labels change nothing in it, so this is exact. ``rows`` are those to prepare, at
    least those asked for: with the same ones every call has the same digits.

    Parameters
    ----------
    asked
        Label vectors, each with its method and rows.
    X
        Samples (M, N).
    runs
        The run (M,) of every sample.
    scheme
        Folds, rows, what folds do to X, and what is exchanged; None: leave one run out.
    rows
        Numbers of the rows to prepare; None: all.
    n_jobs
        Processes.

    Returns
    -------
    list of NullStatistics
        One per entry of ``asked``: scores and areas under the curve (k,).

    Examples
    --------
    >>> import numpy as np
    >>> from mvpa_gamp.decoding import LabelVectors, NoiseWhitening, Scheme, joint_null, permuted_labels
    >>> from mvpa_gamp.methods import METHODS
    >>> runs, y = np.repeat(np.arange(6), 8), np.tile(np.repeat([1, -1], 4), 6)
    >>> X = np.random.default_rng(0).standard_normal((48, 20))
    >>> whitened = Scheme(preparation=NoiseWhitening(np.arange(48) // 4))
    >>> asked = [LabelVectors(METHODS["onebit-cs"], np.arange(48), permuted_labels(y, runs, n=3))]
    >>> joint_null(asked, X, runs, whitened)[0].score.shape
    (3,)
    """
    scheme, runs = scheme or Scheme(), np.asarray(runs)
    folds = scheme.folds_of(runs)
    sums = [_Sums(each, *folds_of_rows(folds, each.rows)) for each in asked]
    used = np.any([each.mine for each in sums], axis=0)
    number = np.cumsum(used) - 1  # of a fold among those used
    columns = [each.columns(number) for each in sums]
    for solved in solve(columns, X, runs, folds.train[:, used], scheme, rows, n_jobs):
        sums[solved.place].add(solved)
    return [each.statistics() for each in sums]


class _Sums:
    """What is kept of the folds of one comparison and method: held-out answers, and the mean inclusion.

    ``mine`` (F,) are the folds of the study that are its own ``folds``.
    """

    def __init__(self, asked: LabelVectors, folds: Folds, mine: NDArray) -> None:
        self.asked, self.folds, self.mine = asked, folds, mine
        self.answers: list[tuple[NDArray, NDArray]] = []
        self.inclusion: Any = 0.0  # (N, k P) summed over folds
        self.n_failed = np.zeros(asked.labels.shape[1], dtype=int)
        self.selected: list[NDArray] = []  # (k, F', N / 8) bits, of two classes

    def columns(self, number: NDArray) -> Columns:
        """What is to be fitted: folds within pairs within label vectors."""
        asked = self.asked
        signs = [pair_columns(each, asked.pairs, self.folds.train) for each in asked.codes.T]
        fold = np.tile(number[self.mine], asked.labels.shape[1] * len(asked.pairs))
        return Columns(asked.method, asked.rows, np.concatenate(signs, axis=1), fold, len(asked.pairs))

    def add(self, solved: Solved) -> None:
        """Keep what the next folds say."""
        asked, fits = self.asked, solved.fits
        n_vectors, n_folds = asked.labels.shape[1], len(self.folds.held_out)
        if asked.max_inclusion and fits.inclusion is None:
            raise ValueError(
                f"max_inclusion needs inclusion probabilities, which {asked.method.name!r} does not have. "
                "Choose a Bernoulli method such as 'gamp-bg-lr', or max_inclusion=False."
            )
        now = np.unique(solved.columns % n_folds)
        fold, rows = np.nonzero(self.folds.tested[:, now].T)
        shape = (len(fits.decision), n_vectors, len(asked.pairs), now.size)
        said = (np.asarray(each).reshape(shape) for each in (fits.decision, fits.proba))
        decision, proba = (each[rows, :, :, fold] for each in said)
        self.answers.append((decision, proba))
        if asked.max_inclusion:
            self.inclusion = self.inclusion + _summed(fits.inclusion, now.size)
        self.n_failed += failures(fits, n_vectors)
        if len(asked.pairs) == 1 and not fits.support.all():
            self.selected.append(np.packbits(fits.support.T, axis=1).reshape(n_vectors, now.size, -1))

    def statistics(self) -> NullStatistics:
        """The statistics of all label vectors, when all folds are there."""
        fold, rows = np.nonzero(self.folds.tested.T)
        decision, proba = (np.concatenate(parts) for parts in zip(*self.answers, strict=True))
        largest = None
        if self.asked.max_inclusion:
            mean = (self.inclusion / len(self.folds.held_out)).max(axis=0)
            largest = mean.reshape(-1, len(self.asked.pairs)).max(axis=1)
        scores = _scores(self.asked, rows, fold, decision, proba)
        areas = _areas(self.asked, rows, fold, decision)
        return NullStatistics(scores, areas, largest, self.n_failed, self._consistency())

    def _consistency(self) -> NDArray | None:
        """The mean Jaccard index over pairs of folds of every label vector; None without a selection."""
        n_folds = sum(part.shape[1] for part in self.selected)
        if n_folds < 2 or n_folds < len(self.folds.held_out):
            return None
        every = np.concatenate(self.selected, axis=1)
        return np.array([jaccard(np.unpackbits(bits, axis=1).T) for bits in every])


def _summed(inclusion: Any, n_folds: int) -> NDArray:
    """Sums (N, k P) over the folds of every label vector and pair."""
    starts = range(0, inclusion.shape[1], n_folds)
    return np.column_stack([inclusion[:, at : at + n_folds].sum(axis=1, dtype=float) for at in starts])


def failures(fits: FoldFits, n_vectors: int) -> NDArray:
    """Fits (k,) of every label vector that missed their stopping rule; columns of a vector are together."""
    return np.count_nonzero(fits.failed.reshape(n_vectors, -1), axis=1)


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
