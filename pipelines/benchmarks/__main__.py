"""Measure the package's speed and memory next to its peers and next to what the machine allows.

Sections: peers (time and held-out error against liblinear, skglm, celer, nilearn), baseline (our l1-lr-cv
against skglm on one core), memory (peak of each), growth (in voxels, rows, columns), limits (an iteration
against its bare matrix products), precision (float64 beside float32), studies (permutations, all pairs, a
participant in a standard space, participants on a cluster), threads (cores of GAMP and of the L1 baseline, in
the commands and without), whole_brain (59 people at 2 mm: VAMP beside svm, lda, permutations), startup
(imports, --help, compilation, page). Everything is timed in turns within the same run; figures are medians.
Let nothing else run meanwhile: the load is stored with the figures.
A run that was interrupted goes on with --resume, which keeps the sections of the same commit and size.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from functools import cache
from time import perf_counter
from typing import Any

import numpy as np

from ..command import Options, parse
from ..output import write_record, write_table
from .baseline import baseline_rows
from .growth import growth_rows
from .limits import limit_rows
from .machine import commit, describe, machine
from .memory import memory_rows
from .peers import peer_rows
from .picture import draw
from .precision import precision_rows
from .problems import Problem, phantom_problem
from .sizes import FULL, QUICK, Sizes
from .startup import startup_rows
from .studies import study_rows
from .table import as_text
from .targets import target_rows
from .thread_use import thread_rows
from .whole_brain import whole_brain_rows

NAME = "benchmarks"
Rows = list[dict[str, Any]]

_PEER_COLUMNS = (
    "name",
    "seconds",
    "ratio",
    "cpu_ratio",
    "error",
    "error_of_first",
    "tested_rows",
    "selected",
    "measured",
    "what",
)
COLUMNS: dict[str, tuple[str, ...] | None] = {"peers": _PEER_COLUMNS, "baseline": _PEER_COLUMNS}


def sections(sizes: Sizes, seed: int, say: Callable[[str], None]) -> dict[str, Callable[[], Rows]]:
    """What can be measured, by name; the phantom is made when first needed."""

    @cache
    def problem() -> Problem:
        return phantom_problem(sizes.shape, seed)

    return {
        "startup": lambda: startup_rows(sizes.starts),
        "limits": lambda: limit_rows(sizes, np.random.default_rng(seed)),
        "growth": lambda: growth_rows(sizes, np.random.default_rng(seed)),
        "precision": lambda: precision_rows(problem(), sizes.rounds),
        "studies": lambda: study_rows(sizes, say),
        "threads": lambda: thread_rows(problem(), sizes.rounds),
        "whole_brain": lambda: whole_brain_rows(sizes, say),
        "memory": lambda: memory_rows(problem(), say),
        "baseline": lambda: baseline_rows(problem(), sizes.rounds, say),
        "peers": lambda: peer_rows(problem(), sizes.rounds, say),
    }


def measure(options: Options, own: argparse.Namespace, sizes: Sizes) -> dict[str, Rows]:
    """Run, print and store the chosen sections, then compare with the promises."""
    known = sections(sizes, options.seed, lambda sentence: print(f"  {sentence}", flush=True))
    print(describe(machine()))
    found = {name: rows for name in known if (rows := stored(name, options))}
    for name in own.only or known:
        if not (own.resume and name in found):
            found[name] = _measured(name, known[name], options, own)
    promises = target_rows(found)
    if promises:
        print(f"\npromises, at the sizes of --{options.size}\n{as_text(promises)}")
        _store("promises", promises, options, own, 0.0)
    draw(found, options.out / NAME)
    return found


def _measured(name: str, measure_rows: Callable[[], Rows], options: Options, own: argparse.Namespace) -> Rows:
    print(f"\n{name}", flush=True)
    began = perf_counter()
    rows = measure_rows()
    print(as_text(rows, COLUMNS.get(name)), flush=True)
    if rows:
        _store(name, rows, options, own, perf_counter() - began)
    return rows


def stored(name: str, options: Options) -> Rows:
    """The rows that an earlier run of the same commit and size left in the folder; [] without any."""
    path = options.out / f"{name}.json"
    if not path.is_file():
        return []
    record = json.loads(path.read_text(encoding="utf-8"))
    same = record["machine"]["commit"] == commit() and record["provenance"]["size"] == options.size
    return record["rows"] if same else []


def _store(name: str, rows: Rows, options: Options, own: argparse.Namespace, seconds: float) -> None:
    write_table(options.out / f"{name}.csv", rows)
    record = {"section": name, "machine": machine(), "rows": rows}
    write_record(
        options.out / f"{name}.json", record, pipeline=NAME, options=options, seconds=seconds, own=own
    )


def _own(parser: argparse.ArgumentParser) -> None:
    names = tuple(sections(QUICK, 0, print))
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME", help=f"any of {', '.join(names)}")
    parser.add_argument("--resume", action="store_true", help="keep sections of this commit and size")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    options, own = parse(__doc__ or "", argv, _own, name=NAME)
    measure(options, own, FULL if options.full else QUICK)
    return 0


if __name__ == "__main__":
    sys.exit(main())
