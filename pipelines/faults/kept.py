"""The counts of finished seeds in a file of JSON lines, all of one commit."""

import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

from .outcomes import Counts


def commit() -> str:
    """The commit of the code, with "-dirty" where files differ from it; "" outside a repository."""
    words = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    asked = subprocess.run(words, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    return asked.stdout.strip()


class Kept:
    """Finished seeds of one campaign; ``parts`` are the counts of all campaigns in the file."""

    def __init__(self, path: Path | None, what: str, n: int) -> None:
        self.path, self.what, self.n = path, what, n
        self.seeds: set[int] = set()
        self.parts: list[Counts] = []
        self.commit = commit() if path else ""
        for line in path.read_text().splitlines() if path and path.is_file() else ():
            self._take(json.loads(line))

    def add(self, seed: int, counted: Counts) -> None:
        """Keep a seed, in the file too."""
        rows = [[*key, dict(found)] for key, found in counted.items()]
        about = {"commit": self.commit, "what": self.what, "n": self.n, "seed": seed, "counts": rows}
        if self.path:
            with self.path.open("a") as stream:
                stream.write(json.dumps(about) + "\n")
        self._take(about)

    def _take(self, about: dict[str, Any]) -> None:
        if about["commit"] != self.commit:
            raise SystemExit(
                f"{self.path} has counts of commit {about['commit']}, but this is {self.commit}. The counts "
                "of one table come from one commit: give another file to --counts."
            )
        self.parts.append({(target, kind): Counter(found) for target, kind, found in about["counts"]})
        if (about["what"], about["n"]) == (self.what, self.n):
            self.seeds.add(about["seed"])
