"""Give the package faults of one kind after the other, and count how they ended.

Every seed is a campaign of its own; several run side by side and are added up. With ``--counts`` finished
seeds are kept in a file: a stopped campaign goes on where it was, and the table is that of the whole file.
"""

import argparse
import functools
import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

from . import bids_input, command_input, folders, python_input
from .kept import Kept
from .outcomes import ELSE, Counts, Outcome, added, counts, table

CAMPAIGNS: dict[str, Callable[[int, int], Iterator[Outcome]]] = {
    "folders": folders.campaign,
    "python": python_input.campaign,
    "command": command_input.campaign,
    "bids": bids_input.campaign,
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
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        running = {pool.submit(one, seed): seed for seed in wanted}
        for done in as_completed(running):
            yield running[done], done.result()


def main(argv: Sequence[str] | None = None) -> int:
    """Try faults and print the table; 1 when one of them ended in a way it must not."""
    parser = argparse.ArgumentParser(prog="python -m pipelines.faults", description=__doc__)
    parser.add_argument(
        "what", choices=CAMPAIGNS, help="damaged results, or bad input to Python or a command"
    )
    parser.add_argument(
        "--full", type=int, metavar="N", default=100, help="so many faults of every seed (100)"
    )
    parser.add_argument("--seeds", type=seeds, default=[0], metavar="S", help="one seed, or several: 0-39")
    parser.add_argument("--jobs", type=int, default=1, help="seeds at a time (default: 1)")
    parser.add_argument(
        "--counts", type=Path, metavar="FILE", help="keep finished seeds here, and go on from it"
    )
    given = parser.parse_args(argv)
    began, kept = time.monotonic(), Kept(given.counts, given.what, given.full)
    missing = [seed for seed in given.seeds if seed not in kept.seeds]
    for seed, found in campaigns(given.what, given.full, missing, given.jobs):
        for each in found.wrong:
            print(each, file=sys.stderr, flush=True)
        print(f"seed {seed}: {found.seconds:.0f} s, {len(found.wrong)} else", file=sys.stderr, flush=True)
        kept.add(seed, found.counted)
    whole = added(kept.parts)
    print(table(whole))
    seconds = time.monotonic() - began
    print(f"{len(kept.seeds)} seeds of {given.what}, {seconds:.0f} s for {len(missing)} of them")
    return int(any(found[ELSE] for found in whole.values()))


if __name__ == "__main__":
    sys.exit(main())
