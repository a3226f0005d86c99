"""Give the package faults of one kind after the other, and count how they ended.

Every seed is a campaign of its own; several run side by side and are added up. With ``--counts`` finished
seeds are kept in a file: a stopped campaign goes on where it was, and the table is that of the whole file.
``all`` is the campaign of the documentation, every kind in its usual number; its table and record are
written into ``--out``, from which the documentation shows them.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from .campaigns import CAMPAIGNS, PLAN, campaigns, seeds
from .kept import Kept, write_results
from .outcomes import ELSE, added, table

_ALL = "all"
_FIRST = 34_000  # seed of the campaign of the documentation


def main(argv: Sequence[str] | None = None) -> int:
    """Try faults and print the table; 1 when one of them ended in a way it must not."""
    parser = argparse.ArgumentParser(prog="python -m pipelines.faults", description=__doc__)
    parser.add_argument(
        "what", choices=[*CAMPAIGNS, _ALL], help="damaged results, or bad input to Python or a command"
    )
    parser.add_argument("--full", type=int, metavar="N", help="so many faults of every seed (100)")
    parser.add_argument("--seeds", type=seeds, metavar="S", help="one seed, or several: 0-39 (0)")
    parser.add_argument("--jobs", type=int, default=1, help="seeds at a time (default: 1)")
    parser.add_argument(
        "--counts", type=Path, metavar="FILE", help="keep finished seeds here, and go on from it"
    )
    parser.add_argument("--out", type=Path, default=Path("figures/faults"), help="of all: %(default)s")
    parser.add_argument("--share", type=float, default=1, help="of all: so much of every kind (default: 1)")
    given = parser.parse_args(argv)
    began = time.monotonic()
    if given.what != _ALL:
        wanted = given.seeds or [0]
        kept = _run(given.what, given.full or 100, wanted, given.jobs, given.counts)
        whole = added(kept.parts)
        print(table(whole))
        seconds = time.monotonic() - began
        print(f"{len(kept.seeds)} seeds of {given.what}, {kept.now} of them in {seconds:.0f} s now")
        return int(any(found[ELSE] for found in whole.values()))
    counts = given.counts or given.out / "counts.jsonl"
    for what, (n, count) in PLAN.items():
        last = _FIRST + max(1, round(given.share * count))
        kept = _run(what, n, list(range(_FIRST, last)), given.jobs, counts)
    whole = added(kept.parts)
    print(table(whole))
    write_results(given.out, kept, given.share)
    now = time.monotonic() - began
    print(f"{kept.seconds:,.0f} s of one process, {now:,.0f} s now; the table is in {given.out}")
    return int(any(found[ELSE] for found in whole.values()))


def _run(what: str, n: int, wanted: Sequence[int], jobs: int, counts: Path | None) -> Kept:
    """The seeds of one kind that are not in the file yet."""
    kept = Kept(counts, what, n)
    missing = [seed for seed in wanted if seed not in kept.seeds]
    for seed, found in campaigns(what, n, missing, jobs):
        for each in found.wrong:
            print(each, file=sys.stderr, flush=True)
        told = f"{what}, seed {seed}: {found.seconds:.0f} s, {len(found.wrong)} else"
        print(told, file=sys.stderr, flush=True)
        kept.add(seed, found)
    return kept


if __name__ == "__main__":
    sys.exit(main())
