"""Peak memory of every contender on top of the data, each in a fresh process."""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import contenders
from .peers import PEERS
from .problems import Problem, save_problem
from .solvers import find_C
from .startup import fresh_python

MEGABYTE = 1 << 20
_ARRAYS = 8  # arrays of N x B that our engine may hold beside X
_TIMES = 5  # fresh processes for ours, whose peak is small enough for chance to show; the median counts


def memory_rows(problem: Problem, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """Peak above the memory held when the data and the libraries were loaded, in MB."""
    C, _ = find_C(problem.X, problem.y)
    absent = contenders.missing(PEERS)
    for name in absent:
        say(f"{name}: skipped, its library is not installed (pip install '.[bench]' in the clone)")
    everyone = [contenders.OURS, contenders.ONE_FIT, contenders.BASELINE, *PEERS]
    with tempfile.TemporaryDirectory() as folder:
        save_problem(problem, Path(folder))
        return [_row(name, problem, _peak(name, folder, C)) for name in everyone if name not in absent]


def allowance(problem: Problem) -> float:
    """MB of 8 arrays of N x B in the precision of X, B being the number of runs."""
    n_columns = len(problem.run_numbers())
    return _ARRAYS * problem.X.shape[1] * n_columns * problem.X.itemsize / MEGABYTE


def _row(name: str, problem: Problem, found: dict[str, float]) -> dict[str, Any]:
    data = problem.X.nbytes / MEGABYTE
    ours = name == contenders.OURS
    return {
        "name": name,
        "peak_mb": found["extra"] / MEGABYTE,
        "data_mb": data,
        "peak_over_data": found["extra"] / MEGABYTE / data,
        "allowed_mb": allowance(problem) if ours else None,
        "before_mb": found["before"] / MEGABYTE,
    }


def _peak(name: str, folder: str, C: float) -> dict[str, float]:
    found = [_measure(name, folder, C) for _ in range(_TIMES if name == contenders.OURS else 1)]
    return sorted(found, key=lambda each: each["extra"])[len(found) // 2]


def _measure(name: str, folder: str, C: float) -> dict[str, float]:
    # glibc then gives arrays back as soon as they are freed, so that the peak is what was needed at once.
    given_back = {"MALLOC_MMAP_THRESHOLD_": "65536"}
    arguments = ("-m", "pipelines.benchmarks.memory_worker", name, folder, repr(C))
    printed = fresh_python(arguments, **given_back)
    return json.loads(printed.splitlines()[-1])
