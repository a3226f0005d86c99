"""Whole studies of the size that labs run, each in a fresh process: time, processor time and peak memory."""

import json
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from .sizes import Sizes
from .startup import fresh_python

PERMUTATIONS, FEW_VOXELS = "permutations", "permutations, few voxels"
PAIRS = "all pairs of 8 categories"
READ = "only read its files"
ADDED, CLUSTER = "permutations added to a finished run", "participants on a cluster"
LOAD, COMPARISON = "load and clean a BIDS participant", "one comparison, standard space"


_COLUMNS = (
    "what", "voxels", "rows", "fits", "seconds", "cpu_seconds", "peak_mb", "asked", "permutations_fitted",
    "bar_counts_permutations", "at_once", "clusters",
)  # fmt: skip


def study_rows(sizes: Sizes, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """Permutations, all pairs, a participant in a standard space, and what commands add or do at once."""
    shape = ",".join(map(str, sizes.shape))
    standard = ",".join(map(str, sizes.standard_shape))
    jobs = [
        ("permutations", shape, str(sizes.permutations), "0"),
        ("permutations", shape, str(sizes.permutations), str(sizes.region_voxels)),
        ("pairs", shape),
        ("standard_space", standard, str(sizes.standard_voxels)),
    ]
    small = ",".join(map(str, sizes.small_shape)), str(sizes.region_voxels)
    commands = [("added", *small)]
    if find_spec("distributed") is not None:
        commands.append(("participants", *small))
    return [
        row
        for worker, asked in (("study_worker", jobs), ("command_worker", commands))
        for job in asked
        for row in _rows(worker, job, say)
    ]


def _rows(worker: str, job: tuple[str, ...], say: Callable[[str], None]) -> list[dict[str, Any]]:
    """What a worker prints about one job, in a process of its own."""
    say(f"{job[0]}: in a fresh process")
    rows = json.loads(fresh_python(("-m", f"pipelines.benchmarks.{worker}", *job)).splitlines()[-1])
    return [{name: row.get(name) for name in _COLUMNS} for row in rows]
