"""Our tuned folds against one fit and against tuned folds of the peers, all in the same rounds."""

from collections.abc import Callable
from typing import Any

import numpy as np

from . import contenders
from .contenders import Contender
from .nested import Outcome, joined
from .problems import Grids, Problem
from .solvers import find_C
from .timing import Extrapolated, in_turns

Rows = list[dict[str, Any]]

_OF_THE_PACKAGE = (contenders.OURS, contenders.SPATIAL, contenders.RECOMMENDED)
PEERS = (contenders.SKGLM, contenders.CELER, contenders.LIBLINEAR, contenders.DECODER)


def peer_rows(problem: Problem, rounds: int, say: Callable[[str], None]) -> Rows:
    """Time and held-out error of everyone on one comparison, with all cores allowed to everyone."""
    C, found = find_C(problem.X, problem.y)
    say(f"liblinear's C = {C:.4g} gives {found} non-zeros on all rows")
    absent = contenders.missing(PEERS)
    for name in absent:
        say(f"{name}: skipped, its library is not installed (pip install '.[bench]' in the clone)")
    names = tuple(name for name in PEERS if name not in absent)
    return compare(lambda data: everyone(data, C, names), problem, rounds)


def everyone(problem: Problem, C: float, peers: tuple[str, ...]) -> list[Contender]:
    """Ours first, then a single fit, our own baseline and the peers."""
    grids = Grids(problem)
    ours = [contenders.ours(problem, name) for name in _OF_THE_PACKAGE]
    return [*ours, contenders.one_fit(problem, C), contenders.baseline(problem)] + [
        contenders.nilearn_decoder(problem)
        if name == contenders.DECODER
        else contenders.nested_peer(name, problem, grids)
        for name in peers
    ]


def compare(gather: Callable[[Problem], list[Contender]], problem: Problem, rounds: int) -> Rows:
    """Run all contenders in turns; the first is what the others are compared with.

    Before that each runs once, not counted, on few features: libraries load and compile.
    """
    contestants = gather(problem)
    for size in sorted({contender.warm_features for contender in contestants}):
        few = gather(problem.small(size))
        in_turns({contender.name: contender.run for contender in few if contender.warm_features == size}, 1)
    timed = in_turns({contender.name: contender.run for contender in contestants}, rounds)
    times = {c.name: Extrapolated(timed[c.name], c.parts) for c in contestants}
    outcomes = {c.name: joined(timed[c.name].results) if c.score is None else c.score() for c in contestants}
    first = contestants[0].name
    return [
        _time_columns(c, times[c.name], times[first]) | _error_columns(outcomes[c.name], outcomes[first])
        for c in contestants
    ]


def _time_columns(contender: Contender, time: Extrapolated, first: Extrapolated) -> dict[str, Any]:
    return {
        "name": contender.name,
        "what": contender.what,
        "seconds": time.seconds,
        "ratio": time.ratio_to(first),
        "cpu_seconds": time.parts * float(np.median(time.timed.cpu_seconds)),
        "cpu_ratio": time.cpu_ratio_to(first),
        "extrapolated": not time.is_measured,
        "measured": measured(contender, len(time.timed.seconds)),
        "part_seconds": time.timed.median,
        "part_fastest": min(time.timed.seconds),
        "part_slowest": max(time.timed.seconds),
    }


def _error_columns(outcome: Outcome, first: Outcome) -> dict[str, Any]:
    """Held-out error, that of the first contender on the same runs if it tested them, and features used."""
    runs = list(outcome.tested)
    return {
        "error": outcome.error(),
        "error_of_first": first.error(runs) if set(runs) <= set(first.tested) else None,
        "tested_rows": sum(outcome.tested.values()),
        "selected": outcome.selected,
    }


def measured(contender: Contender, rounds: int) -> str:
    """Which part was measured, in words."""
    if contender.parts == 1:
        return f"whole, {rounds} times ({contender.fits_per_part:,} fits each)"
    seen = min(rounds, contender.parts)
    fits = contender.fits_per_part
    return f"{seen} of {contender.parts} folds ({seen * fits:,} of {contender.parts * fits:,} fits)"
