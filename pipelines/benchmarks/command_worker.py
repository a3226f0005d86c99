"""The fresh process that runs whole commands: permutations added to a run, participants on a cluster."""

import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from time import perf_counter, process_time
from typing import Any
from unittest.mock import patch

from mvpa_gamp.__main__ import main
from mvpa_gamp.methods.gamp import GampMethod

from .bids_participant import CONDITIONS, N_RUNS, write_participant
from .studies import ADDED, CLUSTER
from .study_worker import sides

_BEFORE, _AFTER = 200, 1000  # permutations
_PARTICIPANTS = ("01", "02", "03", "04")
_ASKED = ("--methods", "gamp-bg-lr", "--contrasts", ":".join(CONDITIONS))


def added(shape: str, n_voxels: str) -> list[dict[str, Any]]:
    """Permutations added to a finished run: how many are fitted, and what the bar counts."""
    with tempfile.TemporaryDirectory() as folder:
        data, out = Path(folder) / "data", Path(folder) / "out"
        write_participant(data, sides(shape), int(n_voxels))
        asked = (str(data), str(out), "participant", *_ASKED, "--permutations")
        _run(*asked, str(_BEFORE))
        began, cpu_began = perf_counter(), process_time()
        with _counted_fits() as fits:
            said = _run(*asked, str(_AFTER), "--resume")
        seconds, cpu = perf_counter() - began, process_time() - cpu_began
    return [
        {
            "what": ADDED,
            "voxels": int(n_voxels),
            "asked": _AFTER - _BEFORE,
            "fits": sum(fits),
            "permutations_fitted": sum(fits) / N_RUNS,
            "bar_counts_permutations": float(f"{_AFTER:,} of {_AFTER:,} permutations" in said),
            "seconds": seconds,
            "cpu_seconds": cpu,
        }
    ]


def participants(shape: str, n_voxels: str) -> list[dict[str, Any]]:
    """Participants on a cluster of two workers: how many at a time, and how often workers are started."""
    import distributed

    started: list[Any] = []

    class Counted(distributed.LocalCluster):
        def __init__(self, *given: Any, **how: Any) -> None:
            started.append(given)
            super().__init__(*given, **how)

    with tempfile.TemporaryDirectory() as folder:
        data, out = Path(folder) / "data", Path(folder) / "out"
        for number, label in enumerate(_PARTICIPANTS):
            write_participant(data, sides(shape), int(n_voxels), seed=number, label=label)
        began, cpu_began = perf_counter(), process_time()
        with patch.object(distributed, "LocalCluster", Counted):
            _run(str(data), str(out), "participant", *_ASKED, "--dask", "local:2")
        seconds, cpu = perf_counter() - began, process_time() - cpu_began
        spans = [_span(out / f"sub-{label}") for label in _PARTICIPANTS]
    return [
        {
            "what": CLUSTER,
            "voxels": int(n_voxels),
            "asked": len(_PARTICIPANTS),
            "at_once": max(_at_once(spans)),
            "clusters": len(started),
            "seconds": seconds,
            "cpu_seconds": cpu,
        }
    ]


def _span(folder: Path) -> tuple[float, float]:
    """When a participant's run began to write, and when its page was there."""
    return (folder / "config.toml").stat().st_mtime, (folder / "index.html").stat().st_mtime


def _at_once(spans: list[tuple[float, float]]) -> Iterator[int]:
    """How many participants were under way when each of them began."""
    for began, _ in spans:
        yield sum(first <= began < last for first, last in spans)


@contextmanager
def _counted_fits() -> Iterator[list[int]]:
    """A list that gets the number of classifiers of every call that fits some."""
    counts: list[int] = []
    fit = GampMethod.fit_folds

    def counted(self: GampMethod, X: Any, y: Any, train: Any, *more: Any, **how: Any) -> Any:
        counts.append(train.shape[1])
        return fit(self, X, y, train, *more, **how)

    with patch.object(GampMethod, "fit_folds", counted):
        yield counts


def _run(*arguments: str) -> str:
    """What the command says; an error where it fails."""
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(list(arguments))
    if code:
        raise RuntimeError(f"A command ended with code {code}: {err.getvalue().strip()[-300:]}")
    return err.getvalue()


if __name__ == "__main__":
    jobs = {job.__name__: job for job in (added, participants)}
    print(json.dumps(jobs[sys.argv[1]](*sys.argv[2:])))
