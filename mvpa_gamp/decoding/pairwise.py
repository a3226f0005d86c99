"""All pairs of classes, all folds and the refits as columns of one X, solved in chunks that bound memory."""

import time
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
    everything = np.ones((len(codes), 1), dtype=bool)
    train, targets = pair_columns(codes, pairs, np.hstack([folds.train, everything]))
    began = time.perf_counter()
    fits = solve_columns(method, X, targets, train, runs, n_jobs, connectivity)
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
    n_columns, most, graph = train.shape[1], columns_at_once(X), graph_for(method, connectivity)
    if not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise ValueError(f"n_jobs must be 1 or more processes, or -1 for one per core, got {n_jobs!r}.")
    if n_jobs == 1:
        chunks = [slice(at, at + most) for at in range(0, n_columns, most)]
        return FoldFits.join([method.fit_folds(X, targets[:, c], train[:, c], runs, **graph) for c in chunks])
    from joblib import Parallel, delayed, effective_n_jobs

    workers = min(effective_n_jobs(n_jobs), n_columns)
    parts = np.array_split(np.arange(n_columns), max(workers, -(-n_columns // most)))
    jobs = (delayed(method.fit_folds)(X, targets[:, part], train[:, part], runs, **graph) for part in parts)
    return FoldFits.join(list(Parallel(n_jobs=workers)(jobs)))


def graph_for(method: Method, connectivity: Any) -> dict[str, Any]:
    """The argument of ``fit_folds`` that tells a method which features are neighbours, if it asks for it."""
    return {"connectivity": connectivity} if getattr(method, "uses_connectivity", False) else {}
