"""Work on all cores: tasks in processes or on a cluster, and blocks of arrays in threads of one process.

Same call, same results. ``workers`` is a number of processes (-1: one per core) or where to find a Dask
cluster: "local:2" starts two workers on this machine, "tcp://host:8786" is a scheduler that is running
already. Nothing is written by a worker, so a cluster needs no shared disk, and a worker that dies loses
nothing: its tasks are done by others.

Blocks of arrays are the one rule for every loop over blocks: the products of one block are too small for a
threaded BLAS, whose threads then wait for each other (ten times slower on a busy machine). So the BLAS gets
one thread and blocks are spread over Python threads, as many as this process may use: NumPy releases the
interpreter lock in products and element-wise work. A limit that an outer loop set for the BLAS does not
count: it is there so that digits do not depend on cores. Results do not depend on the number of threads,
because sums over blocks are taken in their order.
"""

import os
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pydoc import locate
from socket import create_connection
from typing import Any

from threadpoolctl import ThreadpoolController

from mvpa_gamp._version import __version__

Workers = int | str
_LOCAL = re.compile(r"local:([1-9][0-9]*)")
_ADDRESS = re.compile(r"(tcp|tls|ws|wss|ucx)://.+")
_PATIENCE = 30.0  # seconds for a scheduler to answer
_RETRIES = 3  # of a task whose worker died
_BLOCKS_PER_THREAD = 3  # fewer blocks of features do not pay for handing them over
_LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
BlockMap = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]


def check_workers(workers: Workers) -> None:
    """Raise a ValueError that says what to change unless ``workers`` can be understood.

    Parameters
    ----------
    workers
        A number of processes (-1: one per core), "local:N" or the address of a Dask scheduler.

    Returns
    -------
    None
        Where they can.

    Examples
    --------
    >>> from mvpa_gamp.parallel import check_workers
    >>> check_workers(0)
    Traceback (most recent call last):
    ValueError: --n-jobs: expected 1 or more processes, or -1 for one per core, got 0. Change it.
    """
    if isinstance(workers, str):
        if not _LOCAL.fullmatch(workers) and not _ADDRESS.fullmatch(workers):
            raise ValueError(
                f"--dask: expected local:N (N workers on this machine) or tcp://HOST:PORT, got {workers!r}. "
                "Start a scheduler with 'dask scheduler' and give its address."
            )
        if find_spec("distributed") is None:
            raise ValueError("--dask needs Dask: pip install distributed.")
        _check_answers(workers)
    elif workers == 0:
        raise ValueError("--n-jobs: expected 1 or more processes, or -1 for one per core, got 0. Change it.")


def _check_answers(where: str) -> None:
    """Whether somebody listens at a scheduler's address, known before anything is computed."""
    address = re.fullmatch(r"tcp://(.+):([0-9]+)", where)
    if address is None:
        return
    try:
        with create_connection((address[1], int(address[2])), timeout=_PATIENCE):
            pass
    except (OSError, OverflowError) as error:
        raise ValueError(
            f"--dask: no scheduler answers at {where} ({error}). Check that it is running, and its port."
        ) from error


def check_cluster(workers: Workers) -> None:
    """Raise a ValueError unless the workers of a scheduler that is running have this version of the package.

    Another version may compute other numbers, or not understand what it is sent. Processes of this machine
    always have it:

    Parameters
    ----------
    workers
        A number of processes (-1: one per core), "local:N" or the address of a Dask scheduler.

    Returns
    -------
    None
        Where they have.

    Examples
    --------
    >>> from mvpa_gamp.parallel import check_cluster
    >>> check_cluster(2)
    """
    if isinstance(workers, str) and not _LOCAL.fullmatch(workers):
        with _client(workers):
            pass


def _check_versions(client: Any, where: str) -> None:
    """Ask by a function of the standard library, which workers understand whatever they have installed."""
    found = client.run(locate, "mvpa_gamp._version.__version__", on_error="return")
    versions = {worker: version if isinstance(version, str) else "none" for worker, version in found.items()}
    other = [f"{worker} has {version}" for worker, version in versions.items() if version != __version__]
    if other:
        raise ValueError(
            f"--dask {where}: expected mvpa_gamp {__version__} on every worker, as here, but {other[0]}"
            + (f" (and {len(other) - 1} more differ)" if len(other) > 1 else "")
            + ". Install the same version there and restart the workers."
        )


def run_tasks(
    function: Callable[..., Any], tasks: Sequence[Any], shared: Sequence[Any], workers: Workers = 1
) -> Generator[Any, None, None]:
    """``function(task, *shared)`` of every task, in order, each as soon as it and those before are done.

    ``shared`` is sent to every worker once. How many workers there are does not change a result. Close the
    generator if it is not used up: a cluster waits for that.

    Parameters
    ----------
    function
        What is called; it must be importable by name.
    tasks
        Its first argument, one after the other.
    shared
        Its other arguments.
    workers
        A number of processes (-1: one per core), "local:N" or the address of a Dask scheduler.

    Returns
    -------
    generator
        The results in the order of the tasks.

    Examples
    --------
    >>> from mvpa_gamp.parallel import run_tasks
    >>> list(run_tasks(pow, [2, 3, 4], shared=[2], workers=1))
    [4, 9, 16]
    """
    check_workers(workers)
    if isinstance(workers, str):
        yield from _on_cluster(function, tasks, shared, workers)
    elif workers == 1 or len(tasks) < 2:
        yield from (function(task, *shared) for task in tasks)
    else:
        yield from _in_processes(function, tasks, shared, workers)


def _in_processes(
    function: Callable[..., Any], tasks: Sequence[Any], shared: Sequence[Any], n_jobs: int
) -> Iterator[Any]:
    """Each process gets its share of the cores for its matrix products."""
    from joblib import Parallel, cpu_count, delayed, parallel_config

    count = cpu_count() + 1 + n_jobs if n_jobs < 0 else n_jobs
    count = max(1, min(count, len(tasks)))
    with parallel_config("loky", inner_max_num_threads=max(1, cpu_count() // count)):
        jobs = (delayed(function)(task, *shared) for task in tasks)
        yield from Parallel(n_jobs=count, return_as="generator", pre_dispatch=count)(jobs)


def _on_cluster(
    function: Callable[..., Any], tasks: Sequence[Any], shared: Sequence[Any], where: str
) -> Iterator[Any]:
    with _client(where) as client:
        # Every worker holds a copy, so that it is still there when one of them dies.
        sent = [client.scatter(part, broadcast=True) for part in shared]
        waiting = [client.submit(function, task, *sent, pure=False, retries=_RETRIES) for task in tasks]
        for number, future in enumerate(waiting):
            yield future.result()
            waiting[number] = None  # lets the cluster forget the result


@contextmanager
def _client(where: str) -> Iterator[Any]:
    from distributed import Client, LocalCluster

    local = _LOCAL.fullmatch(where)
    if local is None:
        with Client(where, timeout=_PATIENCE) as client:
            _check_versions(client, where)
            yield client
        return
    workers = int(local[1])
    with (
        LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@cache
def _controller() -> ThreadpoolController:
    """Finding the loaded BLAS takes longer than a small solve, so it is done once."""
    return ThreadpoolController()


def allowed_threads() -> int:
    """The cores this process may use, or fewer where the environment allows the BLAS fewer.

    Process pools (joblib, Dask) and batch systems set these variables so that processes do not fight.

    Returns
    -------
    int
        At least 1.

    Examples
    --------
    >>> allowed_threads() >= 1
    True
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limits = (os.environ.get(name, "") for name in _LIMITS)
    return min([cores, *(int(limit) for limit in limits if limit.isdigit() and int(limit) > 0)])


@contextmanager
def block_threads(n_blocks: int, per_thread: int = _BLOCKS_PER_THREAD) -> Iterator[BlockMap]:
    """A ``map`` over blocks that uses the cores this process may use, results in order.

    ``per_thread`` is how many blocks a further thread is worth: 1 where a block is a whole fit.

    Parameters
    ----------
    n_blocks
        How many there are.
    per_thread
        1 where a block is a whole fit.

    Returns
    -------
    context manager
        Its value is a ``map``.

    Examples
    --------
    >>> with block_threads(3) as over_blocks:
    ...     list(over_blocks(sum, [[1, 2], [3, 4], [5, 6]]))
    [3, 7, 11]
    """
    workers = min(allowed_threads(), n_blocks // per_thread)
    with _controller().limit(limits=1, user_api="blas"):
        if workers < 2:
            yield map
            return
        with ThreadPoolExecutor(workers) as pool:
            yield pool.map


def each_block(design: Any, visit: Callable[[Any], None]) -> None:
    """Call ``visit`` with every block of a design.

    Parameters
    ----------
    design
        Of ``mvpa_gamp.gamp``.
    visit
        What is called; threads call it at once.

    Returns
    -------
    None
        What ``visit`` returns is dropped.

    Examples
    --------
    >>> import numpy as np
    >>> from mvpa_gamp.gamp import Design
    >>> each_block(Design(np.eye(4), np.ones((4, 1), dtype=bool)), lambda block: print(block.features))
    slice(0, 4, None)
    """
    with block_threads(design.n_blocks) as over_blocks:
        for _ in over_blocks(visit, design.blocks()):
            pass
