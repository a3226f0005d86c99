"""What a worker does: some work on X. It stores nothing; a failure is an answer, not an end."""

import traceback
from typing import Any, NamedTuple, Protocol

from numpy.typing import NDArray

from mvpa_gamp.decoding.fit import Scheme, fit_tasks
from mvpa_gamp.decoding.preparation import Preparation
from mvpa_gamp.decoding.tasks import Task
from mvpa_gamp.methods.fold_fits import FoldFits, Method
from mvpa_gamp.threads import block_threads


class Work(Protocol):
    """Anything that a worker can do with the X of a study; small, because it is sent to the worker."""

    def answer(self, X: NDArray, runs: NDArray, connectivity: Any) -> Any:
        """Do it, given X, the run of each row, and which voxels are neighbours."""
        ...


class FitWork(NamedTuple):
    """Every fold and the refit of some methods on some comparisons."""

    methods: tuple[Method, ...]
    tasks: tuple[Task, ...]
    preparation: Preparation

    def answer(self, X: NDArray, runs: NDArray, connectivity: Any) -> dict[tuple[str, str], FoldFits]:
        """The fits by names of method and comparison."""
        scheme = Scheme(preparation=self.preparation, connectivity=connectivity)
        return fit_tasks(self.methods, X, self.tasks, runs, scheme)


def answered(work: Work, X: NDArray, runs: NDArray, connectivity: Any) -> Any:
    """The answer, or the traceback as text."""
    try:
        with block_threads(1):  # one thread for the BLAS: the same digits however many cores a worker has
            return work.answer(X, runs, connectivity)
    except Exception:
        return traceback.format_exc()
