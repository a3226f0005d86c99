"""Cross-validation with noise whitening: one pass over folds serves all comparisons and methods."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..methods.fold_fits import FoldFits, Method
from .folds import Folds, leave_one_run_out
from .pattern import haufe_pattern
from .tasks import Task
from .whitening import Whitening, whitened_folds

Key = tuple[str, str]  # names of method and comparison


def fit_whitened(
    methods: Sequence[Method],
    X: Any,
    blocks: Any,
    tasks: Sequence[Task],
    runs: Any,
    folds: Folds | None = None,
    connectivity: Any = None,
    every_fold: bool = False,
) -> dict[Key, FoldFits]:
    """Fit every method to every comparison, on X whitened by the noise of each fold's own training rows.

    X (M, N), ``blocks`` and ``runs`` (M,) are those of the whole study, so that blocks of conditions outside
    of a comparison tell about the noise too. Folds leave one run of the study out unless given (M rows); a
    comparison goes without the folds that hold out none of its rows, unless ``every_fold``. The last column
    of each record is the refit, whitened on all rows. Records are found by the names of method and task.

    ``coef`` is mapped back to voxels, C^(-1/2) v, so that ``decision`` is X @ coef + intercept as ever, and
    ``pattern`` is that of the measured X. ``support`` and ``inclusion`` are those of whitened voxels, each a
    mixture of a voxel and those whose noise it shares. ``coef_std`` is None: the standard deviations of
    whitened weights do not map back without a matrix of voxels by voxels.

    >>> import numpy as np
    >>> from mvpa_gamp.decoding import blocks_of_volumes, fit_whitened, fold_errors, make_tasks
    >>> from mvpa_gamp.methods import METHODS
    >>> shown, runs = np.tile(np.repeat(["cat", "face", "shoe"], 5), 4), np.repeat(np.arange(4), 15)
    >>> X = np.random.default_rng(0).standard_normal((60, 20)) + 3 * (shown == "face")[:, None]
    >>> blocks, tasks = blocks_of_volumes(shown, runs, np.arange(60)), make_tasks(shown, [("face", "shoe")])
    >>> found = fit_whitened([METHODS["gamp-bg-lr"]], X, blocks, tasks, runs)
    >>> float(fold_errors(found["gamp-bg-lr", "faceMinusShoe"], tasks[0].y).mean())
    0.0
    """
    runs = np.asarray(runs)
    folds = leave_one_run_out(runs) if folds is None else folds
    used = [_columns_of(task, folds) | every_fold for task in tasks]
    needed = np.unique(np.concatenate([task.rows for task in tasks]))
    train = np.hstack([folds.train, np.ones((runs.size, 1), dtype=bool)])
    parts: dict[Key, list[FoldFits]] = {(m.name, task.name): [] for task in tasks for m in methods}
    began = time.perf_counter()
    for column, (whitening, white) in enumerate(whitened_folds(X, blocks, train, needed)):
        shared = (time.perf_counter() - began) / len(parts)
        for task, mine in zip(tasks, used, strict=True):
            if mine[column]:
                own = white[np.searchsorted(needed, task.rows)], task.y, train[task.rows, column, None]
                for method in methods:
                    fits = method.fit_folds(*own, runs[task.rows], connectivity)
                    parts[method.name, task.name].append(_mapped_back(fits, whitening, shared))
        began = time.perf_counter()
    return {
        (method.name, task.name): _joined(parts[method.name, task.name], np.asarray(X), task, folds, mine)
        for task, mine in zip(tasks, used, strict=True)
        for method in methods
    }


def _columns_of(task: Task, folds: Folds) -> NDArray:
    """Which folds, and the refit after them, concern a comparison: (F + 1,) bool."""
    return np.append(folds.tested[task.rows].any(axis=0), True)


def _mapped_back(fits: FoldFits, whitening: Whitening, seconds: float) -> FoldFits:
    """The same fit with the weights of voxels; its share of the time for whitening is added."""
    return replace(fits, coef=whitening.back(fits.coef), coef_std=None, seconds=fits.seconds + seconds)


def _joined(parts: list[FoldFits], X: NDArray, task: Task, folds: Folds, mine: NDArray) -> FoldFits:
    """The record of a comparison: its folds side by side, then the refit."""
    fits, kept = FoldFits.join(parts), mine[:-1]
    train = np.column_stack([folds.train[task.rows][:, kept], np.ones(task.rows.size, dtype=bool)])
    return replace(
        fits,
        pattern=haufe_pattern(X[task.rows], fits.coef, train),
        held_out=folds.held_out[kept],
        tested=folds.tested[task.rows][:, kept],
    )
