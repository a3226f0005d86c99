"""Campaigns of faults: what there is to damage or to give, seed by seed, several of them side by side."""

import functools
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import NamedTuple

from . import bids_input, command_input, folders, foreign, interruptions, python_input
from .outcomes import ELSE, Counts, Outcome, counts

CAMPAIGNS: dict[str, Callable[[int, int], Iterator[Outcome]]] = {
    "folders": folders.campaign,
    "python": python_input.campaign,
    "command": command_input.campaign,
    "bids": bids_input.campaign,
    "foreign": foreign.campaign,
    "interruptions": interruptions.campaign,
}

# The campaign of the documentation: faults of a seed, and how many seeds.
PLAN = {
    "python": (250, 40),
    "command": (125, 40),
    "bids": (25, 20),
    "folders": (25, 8),
    "foreign": (25, 8),
    "interruptions": (5, 10),
}


class Seed(NamedTuple):
    """A finished seed: its counts, what ended as it must not, and the seconds it took."""

    counted: Counts
    wrong: list[str]
    seconds: float


def run(what: str, n: int, seed: int) -> Seed:
    """One campaign."""
    began, outcomes = time.monotonic(), list(CAMPAIGNS[what](n, seed))
    wrong = [str(each) for each in outcomes if each.verdict == ELSE]
    return Seed(counts(outcomes), wrong, time.monotonic() - began)


def seeds(text: str) -> list[int]:
    """The numbers of "3", or of "0-39".

    >>> seeds("3"), seeds("0-2")
    ([3], [0, 1, 2])
    """
    first, _, last = text.partition("-")
    return list(range(int(first), int(last or first) + 1))


def campaigns(what: str, n: int, wanted: Sequence[int], jobs: int) -> Iterator[tuple[int, Seed]]:
    """Every seed with what came of it, in the order in which they end."""
    one = functools.partial(run, what, n)
    if jobs == 1 or len(wanted) == 1:
        yield from ((seed, one(seed)) for seed in wanted)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_end_with_parent) as pool:
        running = {pool.submit(one, seed): seed for seed in wanted}
        for done in as_completed(running):
            yield running[done], done.result()


def _end_with_parent() -> None:
    """A killed campaign leaves no process behind."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
