"""What a worker does: some work on some rows of X. It stores nothing; a failure is an answer, not an end."""

import traceback
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.decoding.crossval import cross_validate
from mvpa_gamp.decoding.tasks import Task
from mvpa_gamp.decoding.whitened import fit_whitened
from mvpa_gamp.methods.fold_fits import FoldFits, Method
from mvpa_gamp.threads import block_threads


class Work(Protocol):
    """Anything that a worker can do with rows of X; small, because it is sent to the worker."""

    @property
    def rows(self) -> NDArray:
        """The rows of X that it needs."""
        ...

    def answer(self, X: NDArray, runs: NDArray, connectivity: Any) -> Any:
        """Do it, given these rows, their runs, and which voxels are neighbours."""
        ...


class FitWork(NamedTuple):
    """Every fold and the refit of one method on one comparison."""

    method: Method
    rows: NDArray
    y: NDArray

    def answer(self, X: NDArray, runs: NDArray, connectivity: Any) -> FoldFits:
        """The fits."""
        return cross_validate(self.method, X, self.y, runs, connectivity=connectivity)


class WhitenedWork(NamedTuple):
    """Every fold and the refit of some methods on some comparisons, with whitened noise."""

    methods: tuple[Method, ...]
    tasks: tuple[Task, ...]
    blocks: NDArray  # (M,) of all samples of the study

    @property
    def rows(self) -> NDArray:
        """All samples: blocks of every condition tell about the noise."""
        return np.arange(len(self.blocks))

    def answer(self, X: NDArray, runs: NDArray, connectivity: Any) -> dict[tuple[str, str], FoldFits]:
        """The fits by names of method and comparison."""
        return fit_whitened(self.methods, X, self.blocks, self.tasks, runs, connectivity=connectivity)


def answered(work: Work, X: NDArray, runs: NDArray, connectivity: Any) -> Any:
    """The answer, or the traceback as text."""
    try:
        with block_threads(1):  # one thread for the BLAS: the same digits however many cores a worker has
            return work.answer(X[work.rows], runs[work.rows], connectivity)
    except Exception:
        return traceback.format_exc()
