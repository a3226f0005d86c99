"""The fresh process of ``studies``: make the data, warm up, run one study, print its rows as JSON."""

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import nibabel
import numpy as np

from mvpa_gamp.decoding.fit import Scheme, cross_validate, fit_pairs
from mvpa_gamp.decoding.folds import leave_one_run_out
from mvpa_gamp.decoding.permutation import permutation_test
from mvpa_gamp.decoding.tasks import PAPER_PAIRS, make_tasks
from mvpa_gamp.imaging.bids.source import BidsSource
from mvpa_gamp.imaging.phantom import Phantom, phantom_samples
from mvpa_gamp.imaging.samples import Samples
from mvpa_gamp.methods import METHODS

from .bids_participant import CONDITIONS, LABEL, write_participant
from .contenders import RECOMMENDED
from .memory import MEGABYTE
from .memory_worker import forget_peak, peak
from .studies import COMPARISON, FEW_VOXELS, LOAD, PAIRS, PERMUTATIONS, READ

Row = dict[str, Any]
Rows = list[Row]
_METHOD = METHODS[RECOMMENDED]
_WARM_VOXELS = 4000  # enough for the engine to load and to compile all that the study needs


def permutations(shape: str, n: str, n_voxels: str) -> Rows:
    """The permutation test of one comparison, on all voxels (0) or on those of one region."""
    samples = phantom_samples(Phantom(shape=sides(shape)))
    task = make_tasks(samples.conditions, PAPER_PAIRS[:1])[0]
    wanted = int(n_voxels) or samples.X.shape[1]
    X, graph = _some_voxels(samples, task.rows, wanted)
    runs = samples.runs[task.rows]
    few, few_graph = _some_voxels(samples, task.rows, _WARM_VOXELS)
    cross_validate(_METHOD, few, task.y, runs, scheme=Scheme(connectivity=few_graph))
    name = FEW_VOXELS if int(n_voxels) else PERMUTATIONS
    fits = int(n) * np.unique(runs).size

    def test() -> Any:
        return permutation_test(
            _METHOD, X, task.y, runs, int(n), max_inclusion=True, scheme=Scheme(connectivity=graph)
        )

    return [_timed(name, X.shape, fits, test)[0]]


def pairs(shape: str) -> Rows:
    """Every pair of the categories on every fold and on all rows, as GAMPDecoder fits them."""
    samples = phantom_samples(Phantom(shape=sides(shape)))
    codes = np.unique(samples.conditions, return_inverse=True)[1]
    folds = leave_one_run_out(samples.runs)
    few, few_graph = _some_voxels(samples, np.arange(len(codes)), _WARM_VOXELS)
    fit_pairs(_METHOD, few, np.minimum(codes, 1), samples.runs, scheme=Scheme(folds, connectivity=few_graph))
    X, graph = samples.X, samples.connectivity
    n_classes = int(codes.max()) + 1
    fits = n_classes * (n_classes - 1) // 2 * (len(folds.held_out) + 1)
    return [
        _timed(
            PAIRS,
            X.shape,
            fits,
            lambda: fit_pairs(_METHOD, X, codes, samples.runs, scheme=Scheme(folds, connectivity=graph)),
        )[0]
    ]


def standard_space(shape: str, n_voxels: str) -> Rows:
    """Load a participant from compressed files and compare two conditions with all runs held out in turn."""
    with tempfile.TemporaryDirectory() as folder:
        write_participant(Path(folder), sides(shape), int(n_voxels))
        source = BidsSource(bids_dir=folder, participant_label=LABEL, lag_trs=0)
        reading, _ = _timed(READ, (0, 0), 0, lambda: [_sum(run.bold) for run in source.resolve().runs()])
        loading, samples = _timed(LOAD, (0, 0), 0, source.load)
    task = make_tasks(samples.conditions, [CONDITIONS])[0]
    X, runs, graph = samples.X[task.rows], samples.runs[task.rows], samples.connectivity
    few, few_graph = _some_voxels(samples, task.rows, _WARM_VOXELS)
    cross_validate(_METHOD, few, task.y, runs, scheme=Scheme(connectivity=few_graph))
    compared = _timed(
        COMPARISON,
        X.shape,
        np.unique(runs).size + 1,
        lambda: cross_validate(_METHOD, X, task.y, runs, scheme=Scheme(connectivity=graph)),
    )[0]
    size = {"voxels": X.shape[1], "rows": len(samples.X)}
    return [reading | size, loading | size, compared]


def _sum(path: Path) -> float:
    """Read a file of volumes without keeping them."""
    return float(np.asarray(nibabel.load(path).dataobj).sum())


def _timed(what: str, shape: tuple[int, ...], fits: int, job: Callable[[], Any]) -> tuple[Row, Any]:
    forget_peak()
    began, cpu_began = perf_counter(), process_time()
    result = job()
    return {
        "what": what,
        "voxels": shape[1],
        "rows": shape[0],
        "fits": fits,
        "seconds": perf_counter() - began,
        "cpu_seconds": process_time() - cpu_began,
        "peak_mb": peak() / MEGABYTE,
    }, result


def _some_voxels(samples: Samples, rows: Any, n_voxels: int) -> tuple[Any, Any]:
    """The first voxels of some rows, and which of them are neighbours."""
    X = np.ascontiguousarray(samples.X[rows, :n_voxels])
    return X, samples.connectivity[: X.shape[1], : X.shape[1]]


def sides(text: str) -> tuple[int, int, int]:
    first, second, third = map(int, text.split(","))
    return first, second, third


if __name__ == "__main__":
    jobs = {job.__name__: job for job in (permutations, pairs, standard_space)}
    print(json.dumps(jobs[sys.argv[1]](*sys.argv[2:])))
