"""One iteration against its bare matrix products, the least any engine of this kind can take.

Per iteration and column GAMP needs s'X, tau_s'X^2, X w and X^2 tau_w. Here they are four BLAS calls for all
columns on a stored X and stored squares, in the precision of X, with as many threads as the engine has cores.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from .growth import iteration_seconds
from .machine import usable_cores
from .problems import random_problem
from .sizes import USUAL_COLUMNS, USUAL_ROWS, Sizes
from .timing import Clock, Steps, columns_of, in_turns, together

_PRODUCTS = "bare products"
_BLOCK = 4096  # features whose part of X stays in a large cache


def limit_rows(sizes: Sizes, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Time of an iteration, with and without tuning, over that of its products, in both precisions."""
    return [row for precision in ("float32", "float64") for row in _precision(precision, sizes, rng)]


def _precision(precision: str, sizes: Sizes, rng: np.random.Generator) -> list[dict[str, Any]]:
    X, y, train = random_problem(USUAL_ROWS, sizes.usual_voxels, USUAL_COLUMNS, rng)
    X = X.astype(precision, copy=False)
    variants = [bare_products(X, USUAL_COLUMNS, step, rng) for step in (_BLOCK, X.shape[1])]
    jobs: dict[str, Callable[[int], Steps]] = {
        _PRODUCTS: lambda _: fastest_products(variants, sizes.iterations),
        "solve": lambda _: iteration_seconds(X, y, train, sizes.iterations),
        "fit_em": lambda _: iteration_seconds(X, y, train, sizes.iterations, tuned=True),
    }
    in_turns(jobs, 1)
    timed = in_turns(jobs, sizes.rounds)
    columns = {name: columns_of(together(timed[name].results)) for name in jobs}
    return [
        {
            "precision": precision,
            "what": name,
            "rows": USUAL_ROWS,
            "voxels": sizes.usual_voxels,
            "columns": USUAL_COLUMNS,
            **mine,
            "times_products": mine["iteration_ms"] / columns[_PRODUCTS]["iteration_ms"],
            "fastest_times_products": mine["fastest_ms"] / columns[_PRODUCTS]["fastest_ms"],
            "cpu_times_products": mine["cpu_ms"] / columns[_PRODUCTS]["cpu_ms"],
        }
        for name, mine in columns.items()
    ]


def bare_products(X: NDArray, n_columns: int, step: int, rng: np.random.Generator) -> Callable[[], None]:
    """The four products of one iteration, ``step`` features at a time."""
    squares = X * X
    s, tau_s = (rng.standard_normal((n_columns, X.shape[0])).astype(X.dtype) for _ in range(2))
    w, tau_w = (rng.standard_normal((n_columns, X.shape[1])).astype(X.dtype) for _ in range(2))
    parts = [slice(first, first + step) for first in range(0, X.shape[1], step)]

    def products() -> None:
        for at in parts:
            s @ X[:, at]
            tau_s @ squares[:, at]
            w[:, at] @ X[:, at].T
            tau_w[:, at] @ squares[:, at].T

    return products


def fastest_products(variants: Sequence[Callable[[], None]], repeats: int) -> Steps:
    """Time of the four products, repeated, in the variant and with the threads that are fastest.

    BLAS differs much in how well it takes such flat matrices, whole or in blocks, with one thread or more.
    """
    threads = {1, usable_cores()}
    return min(
        (_repeated(products, repeats, n) for products in variants for n in threads),
        key=lambda steps: float(np.median(steps.seconds)),
    )


def _repeated(products: Callable[[], None], repeats: int, threads: int) -> Steps:
    clock = Clock()
    with threadpool_limits(threads):
        products()  # wakes the threads
        clock.tick()
        for _ in range(repeats):
            products()
            clock.tick()
    return clock.steps()
