"""What a user waits for: imports, ``--help``, the first compilation, and the first page."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from time import perf_counter
from typing import Any

from .machine import ROOT

# Seconds of a first and of a second fit in one process: their difference is loading and compiling. The fit
# is small, but large enough for the engine to use its compiled step.
_TWO_FITS = """
import json, sys
from time import perf_counter
import numpy as np
from mvpa_gamp.methods import METHODS
rng = np.random.default_rng(0)
runs = np.repeat(np.arange(12), 4)
X = rng.standard_normal((48, 12_000), dtype=np.float32)
y = np.where(X[:, 0] > np.median(X[:, 0]), 1.0, -1.0)
train = runs[:, None] != np.arange(12)
seconds = []
for _ in range(2):
    began = perf_counter()
    METHODS["gamp-bg-lr"].fit_folds(X, y, train, runs)
    seconds.append(perf_counter() - began)
print(json.dumps({"seconds": seconds, "compiles": "numba" in sys.modules}))
"""

# From the start of a study to its page; what it loaded, in order, and its processor seconds.
_TO_PAGE = """
import json, sys, time
from mvpa_gamp.haxby import main
main(["--phantom", "--pairs", "face:chair", "--methods", "gamp-sbg-lr", "--quiet", "--out", sys.argv[1]])
print(json.dumps({"seconds": time.process_time(), "modules": list(sys.modules)}))
"""
_IMPORTS = """
import contextlib, importlib, sys, time
for name in sys.argv[1].split():
    with contextlib.suppress(Exception):
        importlib.import_module(name)
print(time.process_time())
"""

_COMMANDS = {
    "python alone": ("-c", "pass"),
    "import mvpa_gamp": ("-c", "import mvpa_gamp"),
    "import the methods": ("-c", "from mvpa_gamp.methods import METHODS"),
    "import GAMPClassifier": ("-c", "from mvpa_gamp import GAMPClassifier"),
    "haxby --help": ("-m", "mvpa_gamp.haxby", "--help"),
}


def startup_rows(repeats: int) -> list[dict[str, Any]]:
    """Best seconds of several fresh processes each, taken in turns; then the wait at the first fit."""
    seconds: dict[str, list[float]] = {name: [] for name in _COMMANDS}
    for _ in range(repeats):
        for name, arguments in _COMMANDS.items():
            began = perf_counter()
            fresh_python(arguments)
            seconds[name].append(perf_counter() - began)
    rows = [{"what": name, "seconds": min(each), "note": "fresh process"} for name, each in seconds.items()]
    return rows + compile_rows() + page_rows(repeats)


def page_rows(repeats: int) -> list[dict[str, Any]]:
    """Processor seconds from the start of a small study to its page, and those of what it imports."""
    seconds, imports = [], []
    for _ in range(repeats + 1):  # the first may compile
        with tempfile.TemporaryDirectory() as folder:
            printed = fresh_python(("-c", _TO_PAGE, f"{folder}/results"))
        found = json.loads(printed.splitlines()[-1])
        seconds.append(found["seconds"])
        imports.append(float(fresh_python(("-c", _IMPORTS, " ".join(found["modules"]))).splitlines()[-1]))
    note = "processor time; phantom, face:chair by gamp-sbg-lr"
    return [
        {"what": name, "seconds": min(each), "note": note}
        for name, each in (("start to page", seconds), ("imports of start to page", imports))
    ]


def compile_rows() -> list[dict[str, Any]]:
    """Extra seconds of the first fit in a process, with nothing compiled yet and with a filled cache."""
    with tempfile.TemporaryDirectory() as folder:
        waits = [_first_fit_wait(folder) for _ in range(2)]
    names = ("first fit, nothing compiled", "first fit, compiled before")
    return [
        {"what": name, "seconds": wait, "note": "numba" if compiles else "nothing is compiled"}
        for name, (wait, compiles) in zip(names, waits, strict=True)
    ]


def _first_fit_wait(cache: str) -> tuple[float, bool]:
    found = json.loads(fresh_python(("-c", _TWO_FITS), NUMBA_CACHE_DIR=cache).splitlines()[-1])
    first, second = found["seconds"]
    return max(0.0, first - second), found["compiles"]


def fresh_python(arguments: Sequence[str], **more: str) -> str:
    """Run this Python in a new process that finds the package; returns what it printed."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | {"PYTHONPATH": path} | more,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise RuntimeError(f"A fresh Python was to run {arguments[0]} {arguments[1][:60]!r}, but: {last}")
    return done.stdout
