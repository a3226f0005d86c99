"""Give the package faults of one kind after the other, and count how they ended.

Every seed is a campaign of its own; several run side by side and are added up. With ``--counts`` finished
seeds are kept in a file: a stopped campaign goes on where it was, and the table is that of the whole file.
``--table`` writes it too, as CSV with a record of commit, processor and command beside it.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from mvpa_gamp.results.files import write_json

from ..benchmarks.machine import commit, cpu_model, usable_cores
from ..output import write_table
from .campaigns import CAMPAIGNS, campaigns, seeds
from .kept import Kept
from .outcomes import ELSE, Counts, added, rows, table


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
    parser.add_argument("--table", type=Path, metavar="FILE", help="write the table, such as faults.csv")
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
    if given.table:
        write_counts(given.table, whole, given.what, given.full, sorted(kept.seeds))
    seconds = time.monotonic() - began
    print(f"{len(kept.seeds)} seeds of {given.what}, {seconds:.0f} s for {len(missing)} of them")
    return int(any(found[ELSE] for found in whole.values()))


def write_counts(path: Path, counted: Counts, what: str, n: int, done: Sequence[int]) -> None:
    """The table, and the record of its last campaign beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_table(path, rows(counted))
    command = (
        f"python -m pipelines.faults {what} --full {n} --seeds {done[0]}-{done[-1]} --counts counts.jsonl"
    )
    made = {"command": command, "commit": commit(), "cpu": cpu_model(), "cores": usable_cores()}
    tried = sum(found.total() for found in counted.values())
    write_json(path.with_suffix(".json"), {"tried": tried, "provenance": made})


if __name__ == "__main__":
    sys.exit(main())
