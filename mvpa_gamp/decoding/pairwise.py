"""All pairs of classes, all folds and the refits as columns of one X, solved in chunks that bound memory."""

import time
from collections.abc import Callable
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..methods.fold_fits import FoldFits, Method
from .folds import Folds
from .multiclass import Pairs, class_pairs
from .pattern import haufe_pattern

_CHUNK_BYTES = 1 << 30
_ARRAYS = 16  # of the size of the weights, and of the scores, that a solve holds at a time


def fit_pairs(
    method: Method,
    X: Any,
    codes: NDArray,
    runs: NDArray,
    folds: Folds,
    *,
    n_classes: int = 0,
    n_jobs: int = 1,
    connectivity: Any = None,
) -> tuple[FoldFits, ...]:
    """Fit every pair of the classes 0..K-1 in ``codes`` (M,) on every fold and on all rows, a record each.

    The P (F + 1) columns go to ``fit_folds`` in as few calls as memory (about 1 GiB of work space) and
    ``n_jobs`` processes ask for; columns do not influence one another. Decisions and probabilities are of all
    M rows, those of other classes included; positive decisions speak for the first class of the pair.
    """
    pairs = class_pairs(n_classes or int(codes.max()) + 1)
    train = np.hstack([folds.train, np.ones((len(codes), 1), dtype=bool)])
    began = time.perf_counter()
    fits = solve_pairs(method, X, codes[:, None], pairs, train, runs, n_jobs, connectivity)
    train = pair_columns(codes, pairs, train)[0]
    seconds = (time.perf_counter() - began) / len(pairs)
    fits = replace(fits, pattern=haufe_pattern(X, fits.coef, train))
    n_columns = folds.train.shape[1] + 1
    return tuple(
        replace(
            fits.take(slice(at, at + n_columns)),
            seconds=seconds,
            held_out=folds.held_out,
            tested=folds.tested,
        )
        for at in range(0, train.shape[1], n_columns)
    )


def pair_columns(codes: NDArray, pairs: Pairs, train: NDArray) -> tuple[NDArray, NDArray]:
    """Training rows and labels (M, P F) of every pair on every fold, fold by fold within a pair.

    ``train`` (M, F) are the training rows of the folds. Labels are +1 for the first class of a pair, -1 for
    the second and 0 on rows of others, which train none of its columns.
    """
    labels = np.stack([np.where(codes == i, 1.0, np.where(codes == j, -1.0, 0.0)) for i, j in pairs], axis=1)
    used = (labels != 0)[:, :, None] & train[:, None, :]
    targets = np.broadcast_to(labels[:, :, None], used.shape)
    return used.reshape(len(codes), -1), targets.reshape(len(codes), -1)


def solve_pairs(
    method: Method,
    X: Any,
    codes: NDArray,
    pairs: Pairs,
    train: NDArray,
    runs: NDArray,
    n_jobs: int = 1,
    connectivity: Any = None,
) -> FoldFits:
    """Fit all pairs of classes of label vectors ``codes`` (M, k) on every fold (M, F).

    The k P F columns are folds within pairs within label vectors. A method with ``joins_classes`` fits three
    or more classes together, and pairs by themselves elsewhere. Rows of class -1 train nothing.
    """
    if len(pairs) < 2 or not getattr(method, "joins_classes", False):
        parts = [pair_columns(each, pairs, train) for each in codes.T]
        used, targets = (np.concatenate(arrays, axis=1) for arrays in zip(*parts, strict=True))
        return solve_columns(method, X, targets, used, runs, n_jobs, connectivity)
    n_folds = train.shape[1]
    labels = np.repeat(codes, n_folds, axis=1)
    used = np.tile(train, codes.shape[1]) & (labels >= 0)

    def solve(columns: NDArray) -> FoldFits:
        graph = graph_for(method, connectivity)
        return method.fit_classes(X, labels[:, columns], used[:, columns], runs, **graph)  # type: ignore[attr-defined]

    fits = _in_chunks(solve, labels.shape[1], max(1, columns_at_once(X) // len(pairs)), n_jobs)
    order = np.arange(labels.shape[1] * len(pairs)).reshape(-1, n_folds, len(pairs))
    return fits.take(order.transpose(0, 2, 1).ravel())


def columns_at_once(X: Any) -> int:
    """How many columns a solve may take for about 1 GiB of work space."""
    n_rows, n_features = X.shape
    return max(16, _CHUNK_BYTES // (_ARRAYS * (X.dtype.itemsize * n_features + 8 * n_rows)))


def solve_columns(
    method: Method,
    X: Any,
    targets: NDArray,
    train: NDArray,
    runs: NDArray,
    n_jobs: int = 1,
    connectivity: Any = None,
) -> FoldFits:
    """The fits of all columns of ``train`` (M, B), chunk by chunk or in ``n_jobs`` processes."""
    graph = graph_for(method, connectivity)

    def solve(columns: NDArray) -> FoldFits:
        return method.fit_folds(X, targets[:, columns], train[:, columns], runs, **graph)

    return _in_chunks(solve, train.shape[1], columns_at_once(X), n_jobs)


def _in_chunks(solve: Callable[[NDArray], FoldFits], n_columns: int, most: int, n_jobs: int) -> FoldFits:
    """The fits of all columns, at most so many at a time, here or in ``n_jobs`` processes."""
    if not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise ValueError(f"n_jobs must be 1 or more processes, or -1 for one per core, got {n_jobs!r}.")
    if n_jobs == 1:
        every = np.arange(n_columns)
        return FoldFits.join([solve(every[at : at + most]) for at in range(0, n_columns, most)])
    from joblib import Parallel, delayed, effective_n_jobs

    workers = min(effective_n_jobs(n_jobs), n_columns)
    parts = np.array_split(np.arange(n_columns), max(workers, -(-n_columns // most)))
    return FoldFits.join(list(Parallel(n_jobs=workers)(delayed(solve)(part) for part in parts)))


def graph_for(method: Method, connectivity: Any) -> dict[str, Any]:
    """The argument of ``fit_folds`` that tells a method which features are neighbours, if it asks for it."""
    return {"connectivity": connectivity} if getattr(method, "uses_connectivity", False) else {}
