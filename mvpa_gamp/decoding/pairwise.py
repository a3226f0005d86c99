"""All pairs of classes, all folds and the refits as columns of one X, solved in chunks that bound memory."""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..methods.fold_fits import FoldFits, Method
from .crossval import take_columns
from .multiclass import Pairs, class_pairs

Split = tuple[NDArray, NDArray]  # training rows and test rows of a fold

_CHUNK_BYTES = 1 << 30
_ARRAYS = 16  # of the size of the weights, and of the scores, that a solve holds at a time


@dataclass(frozen=True)
class PairFits:
    """What P pairs of classes learnt in F folds and in a refit on all rows, of N features.

    T counts the held-out rows of all folds, fold after fold. Column p of ``decision`` and ``proba`` is what
    pair p says about each of them, rows of other classes included; positive decisions speak for the first
    class of the pair.
    """

    pairs: Pairs
    rows: NDArray  # (T,) row of X
    fold: NDArray  # (T,) fold that holds it out
    decision: NDArray  # (T, P)
    proba: NDArray  # (T, P) P(first class of the pair)
    support: NDArray  # (N, P, F) bool, what each fold selected
    status: NDArray  # (P, F + 1) sentences, the refit last
    converged: NDArray  # (P, F + 1) bool
    n_iter: NDArray  # (P, F + 1)
    voxels: NDArray  # (P, F + 1) number of selected features
    fold_intercept: NDArray  # (P, F + 1)
    parameters: dict[str, NDArray]  # each (P, F + 1)
    refit: FoldFits  # P columns
    seconds: float

    @property
    def n_folds(self) -> int:
        """F, without the refit."""
        return self.support.shape[2]


def fit_pairs(
    method: Method, X: NDArray, codes: NDArray, runs: NDArray, splits: Sequence[Split], n_jobs: int = 1
) -> PairFits:
    """Fit every pair of the classes 0..K-1 in ``codes`` (M,) on every split and on all rows.

    The P (F + 1) columns go to ``fit_folds`` in as few calls as memory (about 1 GiB of work space) and
    ``n_jobs`` processes ask for; columns do not influence one another.
    """
    began = time.perf_counter()
    pairs = class_pairs(int(codes.max()) + 1)
    everything = np.arange(len(codes))
    train, targets = pair_columns(codes, pairs, [*splits, (everything, everything[:0])])
    n_folds = len(splits)
    last = np.arange(n_folds, train.shape[1], n_folds + 1)
    parts, refit = _parted(_solved(method, X, targets, train, runs, n_jobs), last)
    tested = np.concatenate([test for _, test in splits])
    fold = np.repeat(np.arange(n_folds), [len(test) for _, test in splits])
    shape = (len(pairs), n_folds + 1)
    return PairFits(
        pairs=pairs,
        rows=tested,
        fold=fold,
        decision=_of_own_fold([part.decision for part in parts], shape, tested, fold),
        proba=_of_own_fold([part.proba for part in parts], shape, tested, fold),
        support=np.concatenate([part.support for part in parts], axis=1).reshape(-1, *shape)[:, :, :-1],
        status=np.array([text for part in parts for text in part.status], dtype=object).reshape(shape),
        converged=_joined(parts, "converged").reshape(shape),
        n_iter=_joined(parts, "n_iter").reshape(shape),
        voxels=np.concatenate([part.support.sum(axis=0) for part in parts]).reshape(shape),
        fold_intercept=_joined(parts, "intercept").reshape(shape),
        parameters={
            name: np.concatenate([part.parameters[name] for part in parts]).reshape(shape)
            for name in parts[0].parameters
        },
        refit=refit,
        seconds=time.perf_counter() - began,
    )


def pair_columns(codes: NDArray, pairs: Pairs, splits: Sequence[Split]) -> tuple[NDArray, NDArray]:
    """Training rows and labels (M, P F) of every pair on every split, split by split within a pair.

    Labels are +1 for the first class of a pair, -1 for the second and 0 on rows of others, which train none
    of its columns.
    """
    in_split = np.zeros((len(codes), len(splits)), dtype=bool)
    for column, (rows, _) in enumerate(splits):
        in_split[rows, column] = True
    labels = np.stack([np.where(codes == i, 1.0, np.where(codes == j, -1.0, 0.0)) for i, j in pairs], axis=1)
    train = (labels != 0)[:, :, None] & in_split[:, None, :]
    targets = np.broadcast_to(labels[:, :, None], train.shape)
    return train.reshape(len(codes), -1), targets.reshape(len(codes), -1)


class HeldOutAnswers(NamedTuple):
    """What the pairs say about held-out rows under one labelling."""

    decision: NDArray  # (T, P)
    proba: NDArray  # (T, P)
    n_failed: int  # fits that did not meet their stopping rule


def held_out_answers(
    method: Method, X: NDArray, labelings: Sequence[NDArray], runs: NDArray, splits: Sequence[Split],
    n_jobs: int = 1,
) -> list[HeldOutAnswers]:  # fmt: skip
    """The cross-validation of :func:`fit_pairs`, without refits, of several labellings (M,) in one batch."""
    pairs = class_pairs(int(labelings[0].max()) + 1)
    columns = [pair_columns(codes, pairs, splits) for codes in labelings]
    train, targets = (np.concatenate(arrays, axis=1) for arrays in zip(*columns, strict=True))
    tested = np.concatenate([test for _, test in splits])
    fold = np.repeat(np.arange(len(splits)), [len(test) for _, test in splits])
    parts = list(_solved(method, X, targets, train, runs, n_jobs))
    shape = (len(labelings) * len(pairs), len(splits))
    decision = _of_own_fold([part.decision for part in parts], shape, tested, fold)
    proba = _of_own_fold([part.proba for part in parts], shape, tested, fold)
    cuts = len(pairs) * np.arange(1, len(labelings))
    failed = (~_joined(parts, "converged")).reshape(len(labelings), -1).sum(axis=1)
    each = (np.split(decision, cuts, axis=1), np.split(proba, cuts, axis=1), failed.tolist())
    return [HeldOutAnswers(*one) for one in zip(*each, strict=True)]


def columns_at_once(X: NDArray) -> int:
    """How many columns a solve may take for about 1 GiB of work space."""
    n_rows, n_features = X.shape
    return max(16, _CHUNK_BYTES // (_ARRAYS * (X.dtype.itemsize * n_features + 8 * n_rows)))


def _solved(
    method: Method, X: NDArray, targets: NDArray, train: NDArray, runs: NDArray, n_jobs: int
) -> Iterator[FoldFits]:
    """The fits of all columns, chunk by chunk."""
    n_columns = train.shape[1]
    most = columns_at_once(X)
    if n_jobs == 1:
        for start in range(0, n_columns, most):
            part = slice(start, start + most)
            yield method.fit_folds(X, targets[:, part], train[:, part], runs)
        return
    from joblib import Parallel, delayed, effective_n_jobs

    workers = min(effective_n_jobs(n_jobs), n_columns)
    chunks = np.array_split(np.arange(n_columns), max(workers, -(-n_columns // most)))
    jobs = (delayed(method.fit_folds)(X, targets[:, part], train[:, part], runs) for part in chunks)
    yield from Parallel(n_jobs=workers, return_as="generator")(jobs)


def _of_own_fold(parts: Sequence[NDArray], shape: tuple[int, int], rows: NDArray, fold: NDArray) -> NDArray:
    """(T, P): what each pair's fit of the fold that holds a row out says about it."""
    columns = shape[1] * np.arange(shape[0])[None, :] + fold[:, None]
    return np.concatenate(parts, axis=1)[rows[:, None], columns]


def _joined(parts: Sequence[FoldFits], name: str) -> NDArray:
    return np.concatenate([getattr(part, name) for part in parts])


def _parted(fits: Iterable[FoldFits], columns: NDArray) -> tuple[list[FoldFits], FoldFits]:
    """What must be known of every column, without weights, and some columns whole, as one record.

    Weights of the others are let go chunk by chunk; of the whole columns the predictions of rows are.
    """
    light, whole, first = [], [], 0
    for part in fits:
        size = part.coef.shape[1]
        mine = columns[(columns >= first) & (columns < first + size)] - first
        whole.append(take_columns(part, mine))
        light.append(replace(part, coef=np.empty((0, size)), coef_std=None, inclusion=None))
        first += size
    return light, _side_by_side(whole)


def _side_by_side(parts: Sequence[FoldFits]) -> FoldFits:
    def joined(name: str) -> NDArray:
        return np.concatenate([getattr(part, name) for part in parts], axis=-1)

    posterior = parts[0].coef_std is not None
    parameters = {k: np.concatenate([part.parameters[k] for part in parts]) for k in parts[0].parameters}
    return FoldFits(
        coef=joined("coef"),
        intercept=joined("intercept"),
        support=joined("support"),
        status=tuple(text for part in parts for text in part.status),
        converged=joined("converged"),
        n_iter=joined("n_iter"),
        seconds=sum(part.seconds for part in parts),
        parameters=parameters,
        decision=joined("decision")[:0].copy(),
        proba=joined("proba")[:0].copy(),
        coef_std=joined("coef_std") if posterior else None,
        inclusion=joined("inclusion") if posterior else None,
    )
