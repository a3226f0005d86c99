"""Whole studies of the size that labs run, each in a fresh process: time, processor time and peak memory."""

import json
from collections.abc import Callable
from typing import Any

from .sizes import Sizes
from .startup import fresh_python

PERMUTATIONS, FEW_VOXELS = "permutations", "permutations, few voxels"
PAIRS = "all pairs of 8 categories"
READ = "only read its files"
LOAD, COMPARISON = "load and clean a BIDS participant", "one comparison, standard space"


def study_rows(sizes: Sizes, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """Permutations of a whole brain and of a region, all pairs, and a participant in a standard space."""
    shape = ",".join(map(str, sizes.shape))
    jobs = [
        ("permutations", shape, str(sizes.permutations), "0"),
        ("permutations", shape, str(sizes.permutations), str(sizes.region_voxels)),
        ("pairs", shape),
        ("standard_space", ",".join(map(str, sizes.standard_shape)), str(sizes.standard_voxels)),
    ]
    rows = []
    for job in jobs:
        say(f"{job[0]}: in a fresh process")
        printed = fresh_python(("-m", "pipelines.benchmarks.study_worker", *job))
        rows += json.loads(printed.splitlines()[-1])
    return rows
