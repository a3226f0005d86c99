"""What a worker does: some work on some rows of X. It stores nothing; a failure is an answer, not an end."""

import traceback
from typing import Any, NamedTuple, Protocol

from numpy.typing import NDArray

from mvpa_gamp.decoding.crossval import cross_validate
from mvpa_gamp.decoding.preparation import Preparation
from mvpa_gamp.decoding.prepared import fit_prepared
from mvpa_gamp.decoding.tasks import Task
from mvpa_gamp.methods.fold_fits import FoldFits, Method
from mvpa_gamp.threads import block_threads


class Work(Protocol):
    """Anything that a worker can do with rows of X; small, because it is sent to the worker."""

    @property
    def rows(self) -> NDArray | slice:
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


class PreparedWork(NamedTuple):
    """Every fold and the refit of some methods on some comparisons, on X as each fold prepares it."""

    methods: tuple[Method, ...]
    tasks: tuple[Task, ...]
    preparation: Preparation

    @property
    def rows(self) -> slice:
        """All samples: those of every condition help to prepare X."""
        return slice(None)

    def answer(self, X: NDArray, runs: NDArray, connectivity: Any) -> dict[tuple[str, str], FoldFits]:
        """The fits by names of method and comparison."""
        return fit_prepared(self.methods, X, self.preparation, self.tasks, runs, connectivity=connectivity)


def answered(work: Work, X: NDArray, runs: NDArray, connectivity: Any) -> Any:
    """The answer, or the traceback as text."""
    try:
        with block_threads(1):  # one thread for the BLAS: the same digits however many cores a worker has
            return work.answer(X[work.rows], runs[work.rows], connectivity)
    except Exception:
        return traceback.format_exc()
