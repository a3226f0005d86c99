"""Give the package faults of one kind after the other, and count how they ended."""

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence

from . import bids_input, command_input, folders, python_input
from .outcomes import ELSE, Outcome, counts, table

CAMPAIGNS: dict[str, Callable[[int, int], Iterator[Outcome]]] = {
    "folders": folders.campaign,
    "python": python_input.campaign,
    "command": command_input.campaign,
    "bids": bids_input.campaign,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Try faults and print the table; 1 when one of them ended in a way it must not."""
    parser = argparse.ArgumentParser(prog="python -m pipelines.faults", description=__doc__)
    parser.add_argument(
        "what", choices=CAMPAIGNS, help="damaged results, or bad input to Python or a command"
    )
    parser.add_argument("--full", type=int, metavar="N", default=100, help="so many faults (default: 100)")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(argv)
    began, outcomes = time.monotonic(), []
    for outcome in CAMPAIGNS[given.what](given.full, given.seed):
        outcomes.append(outcome)
        if outcome.verdict == ELSE:
            print(outcome, file=sys.stderr, flush=True)
    print(table(counts(outcomes)))
    print(f"seed {given.seed}, {time.monotonic() - began:.0f} s")
    return int(any(outcome.verdict == ELSE for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
