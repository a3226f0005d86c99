"""Whole brains at 2 mm, 223,707 voxels and 59 folds: VAMP beside svm in the same process, lda, permutations.

The maps are those of ``data_sets`` where they are found, brought to the size of the full study: maps of other
conditions are taken for those of further participants, trials at 4 mm set into the grid of 2 mm. Without them
smooth random maps of the same size are decoded, in which labels mean nothing. Every job is a fresh process.
"""

import json
import sys
from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any

import nibabel
import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.decoding.fit import Scheme
from mvpa_gamp.decoding.folds import leave_one_run_out
from mvpa_gamp.decoding.permutation import permutation_test
from mvpa_gamp.methods import METHODS

from ..data_sets import contrasts, trials
from .memory import MEGABYTE
from .memory_worker import forget_peak, peak
from .problems import Problem
from .sizes import Sizes
from .startup import fresh_python

NEW, PEER, SLOW = "vamp-sbg", "svm", "lda"
CONTRASTS, TRIALS = 2, 16  # maps of a participant
FIT, PERMUTE = "folds", "permutations"
_BOX = (67, 67, 50)  # 224,450 voxels, of random maps
_FEW = 3000  # voxels, enough to load and to compile


def whole_brain_rows(sizes: Sizes, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """Times and memory, each method's ratio to svm's of the same process."""
    jobs = [
        (FIT, CONTRASTS, PEER, NEW),
        (PERMUTE, CONTRASTS, NEW),
        (FIT, TRIALS, PEER, NEW),
        (FIT, TRIALS, SLOW),
    ]
    out = []
    for what, rows, *names in jobs:
        say(f"{what}, {sizes.people * rows} maps, {', '.join(names)}: in a fresh process")
        job = (what, str(rows), str(sizes.people), str(sizes.brain_voxels), str(sizes.permutations), *names)
        found = fresh_python(("-m", "pipelines.benchmarks.whole_brain", *job)).splitlines()[-1]
        out += json.loads(found)
    return out


def problem_of(n_maps: int, n_people: int, n_voxels: int) -> Problem:
    """``n_maps`` maps of two conditions of every participant, real where they are found."""
    data = contrasts() if n_maps == CONTRASTS else trials()
    if data is None:
        X, mask, affine = _random(n_maps * n_people)
    else:
        fine = nibabel.load(_mask_file("mask_2mm.nii.gz"))
        X, mask, affine = _set_in(data.samples.X, data.samples.mask_img, fine)
    people = np.repeat(np.arange(n_people), n_maps)
    y = np.tile(np.repeat([1.0, -1.0], n_maps // 2), n_people)
    if data is not None:
        X = X[_places(data.samples.conditions, data.samples.runs, n_maps, n_people)]
    for each in range(n_people):  # maps are centred within participants
        X[people == each] -= X[people == each].mean(axis=0)
    return Problem(X, y, people, mask, affine).small(n_voxels)


def _places(conditions: NDArray, people: NDArray, n_maps: int, n_people: int) -> NDArray:
    """Rows by participant: heat and warmth of all there are, then rejection and friend as if of others."""
    out = []
    for pair in (("heat", "warmth"), ("rejection", "friend")):
        for one in np.unique(people):
            sides = [np.flatnonzero((conditions == name) & (people == one)) for name in pair]
            out.append(np.concatenate([np.resize(side, n_maps // 2) for side in sides]))
    return np.concatenate(out[:n_people])


def _mask_file(name: str) -> Any:
    from ..data_folder import find_data

    folder = find_data(None, "pain_rejection")
    assert folder is not None
    return folder / name


def _set_in(X: NDArray, coarse: Any, fine: Any) -> tuple[NDArray, NDArray, NDArray]:
    """Rows on the voxels of a finer mask: each takes the value of the coarse voxel it is in."""
    inside, own = np.asarray(fine.dataobj) > 0, np.asarray(coarse.dataobj) > 0
    place = np.argwhere(inside)
    there = nibabel.affines.apply_affine(np.linalg.inv(coarse.affine) @ fine.affine, place)
    there = np.clip(np.rint(there).astype(int), 0, np.array(own.shape) - 1)
    number = np.full(own.shape, -1)
    number[own] = np.arange(own.sum())
    found = number[tuple(there.T)]
    kept = found >= 0
    mask = np.zeros_like(inside)
    mask[tuple(place[kept].T)] = True
    return X[:, found[kept]], mask, fine.affine


def _random(n_rows: int) -> tuple[NDArray, NDArray, NDArray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, int(np.prod(_BOX))), dtype=np.float32)
    for step in (1, _BOX[2], _BOX[1] * _BOX[2]):  # along the three axes
        X[:, step:] += X[:, :-step].copy()
    return X, np.ones(_BOX, bool), np.diag([2.0, 2.0, 2.0, 1.0])


def _job(what: str, rows: str, people: str, voxels: str, n: str, *names: str) -> list[dict[str, Any]]:
    problem = problem_of(int(rows), int(people), int(voxels))
    folds, graph = leave_one_run_out(problem.runs), problem.connectivity()
    few = problem.small(_FEW)
    out: list[dict[str, Any]] = []
    for name in names:
        method = METHODS[name]
        connectivity = graph if method.uses_connectivity else None
        near = few.connectivity() if method.uses_connectivity else None
        method.fit_folds(few.X, problem.y, folds.train, problem.runs, near)  # loads and compiles
        forget_peak()
        began, cpu_began = perf_counter(), process_time()
        if what == PERMUTE:
            scheme = Scheme(connectivity=connectivity)
            permutation_test(method, problem.X, problem.y, problem.runs, int(n), scheme=scheme)
        else:
            method.fit_folds(problem.X, problem.y, folds.train, problem.runs, connectivity)
        row = {
            "what": what, "name": name, "rows": len(problem.X), "voxels": problem.X.shape[1],
            "folds": int(people), "permutations": int(n) if what == PERMUTE else None,
            "seconds": perf_counter() - began, "cpu_seconds": process_time() - cpu_began,
            "peak_mb": peak() / MEGABYTE, "x_mb": problem.X.nbytes / MEGABYTE,
        }  # fmt: skip
        first = (out or [row])[0]
        shares = {f"{each}_ratio": row[f"{each}econds"] / first[f"{each}econds"] for each in ("s", "cpu_s")}
        out.append(row | {"ratio": shares["s_ratio"], "cpu_ratio": shares["cpu_s_ratio"]})
    return out


if __name__ == "__main__":
    print(json.dumps(_job(*sys.argv[1:])))
