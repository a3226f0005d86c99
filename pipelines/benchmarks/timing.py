"""Times that can be compared: everything in turns, medians, and parts scaled up to a whole."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits


@dataclass(frozen=True)
class Timed:
    """One job's seconds, seconds of CPU over all its threads, and results, one of each per round."""

    seconds: tuple[float, ...]
    cpu_seconds: tuple[float, ...]
    results: tuple[Any, ...]

    @property
    def median(self) -> float:
        """Median of the seconds."""
        return float(np.median(self.seconds))


@dataclass(frozen=True)
class Extrapolated:
    """Seconds of a whole of ``parts`` equal parts, of which each round measured one.

    whole = parts * median(seconds of a part). With parts = 1 nothing is extrapolated.
    """

    timed: Timed
    parts: int

    @property
    def seconds(self) -> float:
        """The whole, from the median part."""
        return self.parts * self.timed.median

    @property
    def is_measured(self) -> bool:
        """Whether every round measured the whole."""
        return self.parts == 1

    def ratio_to(self, other: "Extrapolated") -> float:
        """Median over rounds of this whole over the other's in the same round: common disturbances cancel."""
        return self._ratio(self.timed.seconds, other, other.timed.seconds)

    def cpu_ratio_to(self, other: "Extrapolated") -> float:
        """The same in CPU seconds, which other processes on the machine hardly change."""
        return self._ratio(self.timed.cpu_seconds, other, other.timed.cpu_seconds)

    def _ratio(self, mine: tuple[float, ...], other: "Extrapolated", theirs: tuple[float, ...]) -> float:
        return float(np.median(np.array(mine) * self.parts / (np.array(theirs) * other.parts)))


def in_turns(jobs: Mapping[str, Callable[[int], Any]], rounds: int) -> dict[str, Timed]:
    """Call every job once per round with the number of the round, one after the other."""
    rounds_of: dict[str, list[tuple[float, float, Any]]] = {name: [] for name in jobs}
    for number in range(rounds):
        for name, job in jobs.items():
            began, cpu_began = perf_counter(), process_time()
            result = job(number)
            rounds_of[name].append((perf_counter() - began, process_time() - cpu_began, result))
    return {name: Timed(*zip(*each, strict=True)) for name, each in rounds_of.items()}


class Steps(NamedTuple):
    """Seconds, and seconds of CPU over all threads, of equal steps of one job."""

    seconds: NDArray
    cpu_seconds: NDArray


class Clock:
    """Notes the ends of steps; the first tick is the start of the first step."""

    def __init__(self) -> None:
        self._ticks: list[tuple[float, float]] = []

    def tick(self) -> None:
        """A step ends here."""
        self._ticks.append((perf_counter(), process_time()))

    def steps(self) -> Steps:
        """Time between ticks."""
        return Steps(*np.diff(np.array(self._ticks), axis=0).T)


def together(parts: Iterable[Steps]) -> Steps:
    """The steps of several jobs as one series."""
    return Steps(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def columns_of(steps: Steps) -> dict[str, float]:
    """Median and fastest time of a step and its median CPU time, in milliseconds.

    Other processes can only slow a step down, so the fastest is the least disturbed; they hardly change the
    CPU time.
    """
    return {
        "iteration_ms": 1e3 * float(np.median(steps.seconds)),
        "fastest_ms": 1e3 * float(steps.seconds.min()),
        "cpu_ms": 1e3 * float(np.median(steps.cpu_seconds)),
    }


@contextmanager
def one_core() -> Iterator[None]:
    """One BLAS thread and, where the system lets a process choose, one core."""
    choosy = hasattr(os, "sched_setaffinity")
    before = os.sched_getaffinity(0) if choosy else set()
    try:
        if choosy:
            os.sched_setaffinity(0, {min(before)})
        with threadpool_limits(1):
            yield
    finally:
        if choosy:
            os.sched_setaffinity(0, before)
