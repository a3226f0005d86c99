"""Do GAMP and the L1 baseline get the same cores? Processor time over time, in the commands and without.

In the commands means through the work that ``study`` hands to a worker, which holds the BLAS to one thread;
without means straight through ``METHODS``. Other processes on the machine lower the cores in use, but not
the number of threads that a method is given.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest.mock import patch

import numpy as np

from mvpa_gamp import parallel
from mvpa_gamp.decoding.fit import Scheme, cross_validate
from mvpa_gamp.decoding.preparation import Unchanged
from mvpa_gamp.decoding.tasks import Task
from mvpa_gamp.methods import METHODS
from mvpa_gamp.study.analyses.pairs import FitWork
from mvpa_gamp.study.jobs import answered

from . import contenders
from .problems import Problem
from .timing import in_turns

METHODS_TIMED = (contenders.SPATIAL, contenders.BASELINE)
COMMAND, DIRECT = "command", "METHODS"


def thread_rows(problem: Problem, rounds: int) -> list[dict[str, Any]]:
    """Cores in use, all folds and the refit of one comparison, for both methods in both ways."""
    graph = problem.connectivity()
    jobs = {
        (name, where): _job(problem, graph, name, where)
        for where in (COMMAND, DIRECT)
        for name in METHODS_TIMED
    }
    named = {f"{name} {where}": job for (name, where), job in jobs.items()}
    given = [_threads_given(job) for job in jobs.values()]  # loads and compiles on the way
    times = in_turns(named, rounds).values()
    return [
        {
            "name": name,
            "where": where,
            "voxels": problem.X.shape[1],
            "allowed": parallel.allowed_threads(),
            "threads": n_threads,
            "seconds": time.median,
            "cpu_seconds": float(np.median(time.cpu_seconds)),
            "cores": float(np.median(np.array(time.cpu_seconds) / np.array(time.seconds))),
        }
        for (name, where), time, n_threads in zip(jobs, times, given, strict=True)
    ]


def _job(problem: Problem, graph: Any, name: str, where: str) -> Callable[[int], Any]:
    method, (X, y, runs) = METHODS[name], problem[:3]
    if where == DIRECT:
        return lambda _: cross_validate(method, X, y, runs, scheme=Scheme(connectivity=graph))
    task = Task("first", "second", np.arange(len(y)), y)
    work = FitWork((method,), (task,), ((name, task.name),), Unchanged())
    return lambda _: _checked(answered(work, X, runs, graph))


def _threads_given(job: Callable[[int], Any]) -> int:
    """The most threads that any loop over blocks gets while a job is done."""
    given = [1]

    class Noted(ThreadPoolExecutor):
        def __init__(self, workers: int) -> None:
            given.append(workers)
            super().__init__(workers)

    with patch.object(parallel, "ThreadPoolExecutor", Noted):
        job(0)
    return max(given)


def _checked(answer: Any) -> Any:
    """The answer, which is the text of a traceback where the work failed."""
    if isinstance(answer, str):
        raise RuntimeError(answer.strip().splitlines()[-1])
    return answer
