"""Long experiments that can be interrupted: every trial is kept as soon as it is done, and never done again.

The trials of an unfinished run are lines of JSON beside its results, in ``NAME_unfinished.jsonl``; a finished
run takes the file away. Random numbers of a trial depend on its key alone, so an interrupted run ends with
the rows of an uninterrupted one.
"""

import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from .benchmarks.machine import commit

Row = dict[str, Any]
Key = Sequence[Any]


class TrialStore:
    """The trials of one experiment, done by this run or by an earlier one of the same settings and commit."""

    def __init__(self, folder: Path, name: str, settings: Mapping[str, Any]) -> None:
        self.path = folder / f"{name}_unfinished.jsonl"
        self._header = json.dumps({"settings": settings, "commit": commit()}, sort_keys=True)
        self._done = self._read()

    def rows(self, keys: Iterable[Key], compute: Callable[..., list[Row]]) -> list[Row]:
        """The rows of ``compute(*key)`` for every key, in their order."""
        keys = [tuple(key) for key in keys]
        bar = tqdm(keys, unit="trial", disable=not sys.stderr.isatty())
        for key in bar:
            if _name(key) not in self._done:
                self._do(key, compute)
        return [row for key in keys for row in self._done[_name(key)]["rows"]]

    @property
    def seconds(self) -> float:
        """What all trials took together, in this run and before."""
        return sum(trial["seconds"] for trial in self._done.values())

    def finish(self) -> None:
        """Take the unfinished trials away: their rows are in the results."""
        self.path.unlink(missing_ok=True)

    def _do(self, key: tuple, compute: Callable[..., list[Row]]) -> None:
        began = time.perf_counter()
        rows = compute(*key)
        trial = {"key": _name(key), "seconds": round(time.perf_counter() - began, 3), "rows": rows}
        self._done[_name(key)] = trial
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if not self.path.exists():
            self.path.write_text(self._header + "\n", encoding="utf-8")
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(trial) + "\n")

    def _read(self) -> dict[str, Any]:
        """Trials of an earlier run; those of other settings, or of another commit, are put aside."""
        lines = self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else []
        if not lines or lines[0] != self._header:
            self.path.unlink(missing_ok=True)
            return {}
        whole = [trial for trial in map(_parsed, lines[1:]) if trial is not None]
        self.path.write_text("\n".join([self._header, *map(json.dumps, whole)]) + "\n", encoding="utf-8")
        return {trial["key"]: trial for trial in whole}


def _name(key: Key) -> str:
    return json.dumps(list(key))


def _parsed(line: str) -> dict[str, Any] | None:
    """A trial, or None for a line that was cut when the run was killed."""
    try:
        return json.loads(line)
    except json.JSONDecodeError:
        return None
