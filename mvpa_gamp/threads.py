"""Blocks of work on all cores, without fighting the BLAS: the one rule for every loop over blocks.

The products of one block are too small for a threaded BLAS, whose threads then wait for each other (ten
times slower on a busy machine). So the BLAS gets one thread and blocks are spread over Python threads, as
many as this process may use: NumPy releases the interpreter lock in products and element-wise work. A limit
that an outer loop set for the BLAS does not count: it is there so that digits do not depend on cores.
Results do not depend on the number of threads, because sums over blocks are taken in their order.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

_BLOCKS_PER_THREAD = 3  # fewer blocks of features do not pay for handing them over
_LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

BlockMap = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]


@cache
def _controller() -> ThreadpoolController:
    """Finding the loaded BLAS takes longer than a small solve, so it is done once."""
    return ThreadpoolController()


def allowed_threads() -> int:
    """The cores this process may use, or fewer where the environment allows the BLAS fewer.

    Process pools (joblib, Dask) and batch systems set these variables so that processes do not fight.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limits = (os.environ.get(name, "") for name in _LIMITS)
    return min([cores, *(int(limit) for limit in limits if limit.isdigit() and int(limit) > 0)])


@contextmanager
def block_threads(n_blocks: int, per_thread: int = _BLOCKS_PER_THREAD) -> Iterator[BlockMap]:
    """A ``map`` over blocks that uses the cores this process may use, results in order.

    ``per_thread`` is how many blocks a further thread is worth: 1 where a block is a whole fit.
    """
    workers = min(allowed_threads(), n_blocks // per_thread)
    with _controller().limit(limits=1, user_api="blas"):
        if workers < 2:
            yield map
            return
        with ThreadPoolExecutor(workers) as pool:
            yield pool.map


def each_block(design: Any, visit: Callable[[Any], None]) -> None:
    """Call ``visit`` with every block of a design."""
    with block_threads(design.n_blocks) as over_blocks:
        for _ in over_blocks(visit, design.blocks()):
            pass
