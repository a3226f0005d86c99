"""The fresh process of ``memory``: load data, warm up, note the memory held, run one contender, print JSON.

The resident peak that the system reports at exit starts at that of the parent process on Linux, so the
kernel's own high-water mark of this process is read, after setting it back where that is allowed.
"""

import contextlib
import gc
import json
import resource
import sys
from pathlib import Path

from . import contenders
from .contenders import Contender
from .problems import Grids, Problem, load_problem

_STATUS = Path("/proc/self/status")
_PEAK_RESET = ("/proc/self/clear_refs", "5")


def main(name: str, folder: str, C: str) -> None:
    """Print the bytes held before and the peak above them."""
    problem = load_problem(Path(folder))
    job = contender(name, problem, float(C))
    contender(name, problem.small(job.warm_features), float(C)).run(0)
    forget_peak()
    before = held()
    job.run(0)
    print(json.dumps({"before": before, "extra": max(0, peak() - before)}))


def contender(name: str, problem: Problem, C: float) -> Contender:
    """The contender of this name on a problem."""
    if name == contenders.OURS:
        return contenders.ours(problem)
    if name == contenders.BASELINE:
        return contenders.baseline(problem)
    if name == contenders.ONE_FIT:
        return contenders.one_fit(problem, C)
    if name == contenders.DECODER:
        return contenders.nilearn_decoder(problem)
    return contenders.nested_peer(name, problem, Grids(problem))


def forget_peak() -> None:
    """Let the peak begin at what is held now, where the system allows it."""
    gc.collect()
    with contextlib.suppress(OSError):
        Path(_PEAK_RESET[0]).write_text(_PEAK_RESET[1])


def held() -> int:
    """Bytes resident now; the peak so far where the system does not tell."""
    return _status("VmRSS") or peak()


def peak() -> int:
    """Most bytes that were resident at once."""
    unit = 1 if sys.platform == "darwin" else 1024
    return _status("VmHWM") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _status(field: str) -> int | None:
    try:
        lines = _STATUS.read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{field}:")), None)


if __name__ == "__main__":
    main(*sys.argv[1:])
