"""Through how many files of the package a command runs: those of which it calls a function.

python -m pipelines.way                     as the README begins, on a small phantom
python -m pipelines.way --pairs all ...     any options of mvpa_gamp.haxby
"""

import argparse
import importlib
import inspect
import pkgutil
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import mvpa_gamp

PACKAGE = Path(mvpa_gamp.__file__).parent
SMALL = ("--phantom", "--phantom-shape", "9", "11", "9")


def functions_called(argv: Sequence[str]) -> dict[str, set[str]]:
    """The names of the functions that ``mvpa_gamp.haxby`` calls, by file of the package."""
    for module in pkgutil.walk_packages(mvpa_gamp.__path__, "mvpa_gamp."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)  # so that what an import calls does not count
    called: dict[Any, None] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            called[frame.f_code] = None

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        code = importlib.import_module("mvpa_gamp.haxby").main(list(argv))
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    if code:
        raise SystemExit(code)
    found: dict[str, set[str]] = {}
    for each in called:
        path = Path(each.co_filename)
        if path.suffix == ".py" and path.is_relative_to(PACKAGE) and each.co_flags & inspect.CO_OPTIMIZED:
            found.setdefault(path.relative_to(PACKAGE).as_posix(), set()).add(each.co_name)
    return dict(sorted(found.items()))


def run(argv: Sequence[str]) -> dict[str, set[str]]:
    """Run the command in a folder of its own, and print its files."""
    with tempfile.TemporaryDirectory() as out:
        found = functions_called([*(argv or SMALL), "--quiet", "--out", f"{out}/results"])
    for name, functions in found.items():
        print(f"{len(functions):4} functions  {name}")
    print(f"{sum(map(len, found.values())):4} functions  in {len(found)} files of mvpa_gamp")
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    run(parser.parse_known_args(argv)[1])
    return 0


if __name__ == "__main__":
    sys.exit(main())
