"""The counts of finished seeds in a file of JSON lines, all of one commit, and the table made from them."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from mvpa_gamp.results.files import write_json

from ..benchmarks.machine import commit, cpu_model, usable_cores
from ..output import write_table
from .campaigns import Seed
from .outcomes import ELSE, NAMED, RIGHT, Counts, added

_NAMES = {
    "python": "all calls",
    "command": "all `decode` commands",
    "bids": "all BIDS commands",
    "folders": "all damaged files",
    "foreign": "all folders of others",
    "interruptions": "all interruptions",
}


class Kept:
    """Finished seeds of one campaign; ``parts`` are the counts of all campaigns in the file."""

    def __init__(self, path: Path | None, what: str, n: int) -> None:
        self.path, self.what, self.n = path, what, n
        self.seeds: set[int] = set()
        self.parts: list[Counts] = []
        self.by_kind: dict[str, list[Counts]] = {}
        self.tried: Counter[str] = Counter()
        self.seconds = 0.0  # of one process, all seeds together
        self.now = 0  # seeds that were not in the file
        self.commit = commit() if path else ""
        for line in path.read_text().splitlines() if path and path.is_file() else ():
            self._take(json.loads(line))

    def add(self, seed: int, found: Seed) -> None:
        """Keep a seed, in the file too."""
        rows = [[*key, dict(counted)] for key, counted in found.counted.items()]
        about = {"commit": self.commit, "what": self.what, "n": self.n, "seed": seed, "counts": rows}
        about |= {"seconds": round(found.seconds, 1)}
        if self.path:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a") as stream:
                stream.write(json.dumps(about) + "\n")
        self._take(about)
        self.now += 1

    def _take(self, about: dict[str, Any]) -> None:
        if about["commit"] != self.commit:
            raise SystemExit(
                f"{self.path} has counts of commit {about['commit']}, but this is {self.commit}. The counts "
                "of one table come from one commit: give another file to --counts, or remove this one."
            )
        part = {(target, kind): Counter(found) for target, kind, found in about["counts"]}
        self.parts.append(part)
        self.by_kind.setdefault(about["what"], []).append(part)
        self.tried[about["what"]] += about["n"]
        self.seconds += about["seconds"]
        if (about["what"], about["n"]) == (self.what, self.n):
            self.seeds.add(about["seed"])


def write_results(out: Path, kept: Kept, share: float) -> None:
    """The table, a line per target and kind and one for all of a campaign, and its record."""
    rows = []
    for what, name in _NAMES.items():
        found = sorted(added(kept.by_kind.get(what, [])).items())
        rows += [_row(target, kind, how) for (target, kind), how in found]
        rows += [_row(name, "", sum((how for _, how in found), Counter()))] if found else []
    write_table(out / "faults.csv", rows)
    command = "python -m pipelines.faults all" + (f" --share {share:g}" if share != 1 else "")
    about = {"command": command, "commit": kept.commit, "cpu": cpu_model(), "cores": usable_cores()}
    record = {"tried": dict(kept.tried), "provenance": about | {"seconds": round(kept.seconds)}}
    write_json(out / "faults.json", record)


def _row(target: str, kind: str, how: Counter[str]) -> dict[str, Any]:
    told = {"given_to": target.replace("`", ""), "fault": kind, "tried": how.total()}
    return told | {"named": how[NAMED], "right": how[RIGHT], "else": how[ELSE]}
