"""How a fault ended, and how many ended in which way."""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

NAMED, RIGHT, ELSE = "named errors", "accepted and right", "anything else"
# What must never reach a user: the words of libraries, and names of temporary files.
RAW = ("Traceback", "BadZipFile", "Error -", "ImageFileError", "Errno", ".writing-", "--verbose shows where")


LONGEST = 1500  # characters of a sentence: a whole cell of a table is none


class Outcome(NamedTuple):
    """What was given the fault, its kinds, one of NAMED, RIGHT and ELSE, and what was said."""

    target: str
    kinds: tuple[str, ...]
    verdict: str
    said: str


# Faults by target and kind: how many ended in which way.
Counts = dict[tuple[str, str], Counter[str]]


def counts(outcomes: Iterable[Outcome]) -> Counts:
    """Outcomes, counted; a run on several faults counts for each."""
    out: Counts = {}
    for outcome in outcomes:
        for kind in outcome.kinds:
            out.setdefault((outcome.target, kind), Counter())[outcome.verdict] += 1
    return out


def added(parts: Iterable[Counts]) -> Counts:
    """The sum of several counts."""
    out: Counts = {}
    for part in parts:
        for key, found in part.items():
            out[key] = out.get(key, Counter()) + found
    return out


def table(counted: Counts) -> str:
    """The counts as a table of the documentation."""
    lines = [f"| given to | fault | tried | {NAMED} | {RIGHT} | {ELSE} |", "|---|---|--:|--:|--:|--:|"]
    for (target, kind), found in sorted(counted.items()):
        lines.append(f"| {target} | {kind} | {_row(found)} |")
    return "\n".join([*lines, f"| all | | {_row(sum(counted.values(), Counter()))} |"])


def _row(found: Counter[str]) -> str:
    return " | ".join(f"{number:,}" for number in (found.total(), found[NAMED], found[RIGHT], found[ELSE]))
