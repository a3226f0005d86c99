"""Cross-validation where every fold prepares X by itself: one pass over folds serves all that is fitted."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..methods.fold_fits import FoldFits, Method
from .folds import Folds, leave_one_run_out
from .multiclass import class_pairs
from .pairwise import pair_columns, solve_pairs
from .pattern import haufe_pattern
from .preparation import FittedPreparation, Preparation, PreparedFold, folds_of_rows
from .tasks import Task

Key = tuple[str, str]  # names of method and comparison


def fit_prepared(
    methods: Sequence[Method],
    X: Any,
    preparation: Preparation,
    tasks: Sequence[Task],
    runs: Any,
    folds: Folds | None = None,
    connectivity: Any = None,
    every_fold: bool = False,
) -> dict[Key, FoldFits]:
    """Fit every method to every comparison, on X as each fold's own training rows prepare it.

    X (M, N) and ``runs`` (M,) are those of the whole study: rows of conditions outside of a comparison help
    to fit the preparation. Folds leave one run of the study out unless given (M rows); a comparison goes
    without the folds that hold out none of its rows, unless ``every_fold`` is asked for. The last column of
    each record is the refit, prepared by all rows. Records are found by the names of method and task.

    ``coef`` is mapped back to voxels and ``pattern`` is that of voxels. Where columns are mixtures of voxels
    (whitening), ``support`` and ``inclusion`` are those of the mixtures, and ``coef_std`` is None: standard
    deviations do not map back without a matrix of voxels by voxels.

    >>> import numpy as np
    >>> from mvpa_gamp.decoding import FoldConfounds, fit_prepared, fold_errors, make_tasks
    >>> from mvpa_gamp.methods import METHODS
    >>> shown, runs = np.tile(np.repeat(["cat", "face"], 5), 4), np.repeat(np.arange(4), 10)
    >>> slow = 1.0 * (shown == "face")[:, None] + 0.1 * np.random.default_rng(1).standard_normal((40, 1))
    >>> X = np.random.default_rng(0).standard_normal((40, 20)) + 5 * slow
    >>> tasks = make_tasks(shown, [("face", "cat")])
    >>> found = fit_prepared([METHODS["gamp-bg-lr"]], X, FoldConfounds(slow), tasks, runs)
    >>> bool(fold_errors(found["gamp-bg-lr", "faceMinusCat"], tasks[0].y).mean() > 0.3)
    True
    """
    runs = np.asarray(runs)
    folds = leave_one_run_out(runs) if folds is None else folds
    own = [folds_of_rows(folds, task.rows, every_fold) for task in tasks]
    needed = np.unique(np.concatenate([task.rows for task in tasks]))
    train = _with_refit(folds)
    parts: dict[Key, list[FoldFits]] = {(m.name, task.name): [] for task in tasks for m in methods}
    for column, fold, seconds in timed(preparation.folds(X, train, needed)):
        for task, (_, mine) in zip(tasks, own, strict=True):
            if np.append(mine, True)[column]:
                rows, trains = np.searchsorted(needed, task.rows), train[task.rows, column, None]
                for method in methods:
                    fits = method.fit_folds(fold.X[rows], task.y, trains, runs[task.rows], connectivity)
                    done = of_voxels(fits, fold, rows, trains, seconds / len(parts))
                    parts[method.name, task.name].append(done)
    return {
        (method.name, task.name): replace(
            FoldFits.join(parts[method.name, task.name]), held_out=known.held_out, tested=known.tested
        )
        for task, (known, _) in zip(tasks, own, strict=True)
        for method in methods
    }


class PreparedRefits(NamedTuple):
    """The refits of all pairs of classes as they were fitted, for answers about new rows."""

    fitted: FittedPreparation
    fits: FoldFits  # one column per pair, of prepared columns
    center: NDArray  # (N,) mean of the prepared training rows


def fit_prepared_pairs(
    method: Method,
    X: Any,
    preparation: Preparation,
    codes: NDArray,
    runs: NDArray,
    folds: Folds,
    n_jobs: int = 1,
    connectivity: Any = None,
) -> tuple[tuple[FoldFits, ...], PreparedRefits]:
    """All pairs of the classes in ``codes`` (M,) on every fold and on all rows, a record per pair.

    The counterpart of ``fit_pairs``: answers are about all M rows, as coupling the pairs needs them.
    """
    pairs = class_pairs(int(codes.max()) + 1)
    train, every = _with_refit(folds), np.arange(len(codes))
    parts: list[FoldFits] = []
    for column, fold, seconds in timed(preparation.folds(X, train)):
        used = pair_columns(codes, pairs, train[:, [column]])[0]
        fits = solve_pairs(
            method, fold.X, codes[:, None], pairs, train[:, [column]], runs, n_jobs, connectivity
        )
        parts.append(of_voxels(fits, fold, every, used, seconds))
        if column == train.shape[1] - 1:
            center = fold.X.mean(axis=0, dtype=float).astype(fold.X.dtype)
            refits = PreparedRefits(fold.fitted, fits, center)
    joined = FoldFits.join(parts)  # fold by fold, pairs within
    own = [joined.take(slice(pair, None, len(pairs))) for pair in range(len(pairs))]
    known: dict[str, Any] = {
        "held_out": folds.held_out,
        "tested": folds.tested,
        "seconds": joined.seconds / len(pairs),
    }
    return tuple(replace(fits, **known) for fits in own), refits


def _with_refit(folds: Folds) -> NDArray:
    """Training rows (M, F + 1) of the folds and of the refit."""
    return np.hstack([folds.train, np.ones((len(folds.train), 1), dtype=bool)])


def timed(prepared: Iterator[PreparedFold]) -> Iterator[tuple[int, PreparedFold, float]]:
    """Prepared folds with their number and the seconds that preparing them took."""
    began = time.perf_counter()
    for column, fold in enumerate(prepared):
        yield column, fold, time.perf_counter() - began
        began = time.perf_counter()


def of_voxels(fits: FoldFits, fold: PreparedFold, rows: NDArray, train: NDArray, seconds: float) -> FoldFits:
    """The same fits with weights and patterns of voxels; their share of the time for preparing is added."""
    coef = fold.fitted.back(fits.coef)
    return replace(
        fits,
        coef=coef,
        coef_std=None if fold.fitted.mixes else fits.coef_std,
        pattern=haufe_pattern(fold.voxels[rows], coef, train),
        seconds=fits.seconds + seconds,
    )
