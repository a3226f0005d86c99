"""Cross-validation with noise whitening: one pass over folds serves all comparisons and methods."""

from collections.abc import Sequence
from typing import Any

from ..methods.fold_fits import FoldFits, Method
from .folds import Folds
from .preparation import NoiseWhitening
from .prepared import Key, fit_prepared
from .tasks import Task


def fit_whitened(
    methods: Sequence[Method],
    X: Any,
    blocks: Any,
    tasks: Sequence[Task],
    runs: Any,
    folds: Folds | None = None,
    connectivity: Any = None,
) -> dict[Key, FoldFits]:
    """Fit every method to every comparison, on X whitened by the noise of each fold's own training rows.

    ``fit_prepared`` with ``NoiseWhitening(blocks)``. X (M, N), ``blocks`` and ``runs`` (M,) are those of the
    whole study, so that blocks of conditions outside of a comparison tell about the noise too. ``coef`` is
    mapped back to voxels, C^(-1/2) v, so that ``decision`` is X @ coef + intercept as ever, and ``pattern``
    is that of the measured X. ``support`` and ``inclusion`` are those of whitened voxels, each a mixture of a
    voxel and those whose noise it shares.

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
    return fit_prepared(methods, X, NoiseWhitening(blocks), tasks, runs, folds, connectivity)
