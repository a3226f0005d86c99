"""How the time of one iteration grows with voxels, rows and columns."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.gamp import Bernoulli, Design, Gaussian, Logistic, SolverSettings, fit_em, solve

from .problems import random_problem
from .sizes import USUAL_COLUMNS, USUAL_ROWS, Sizes
from .timing import Clock, Steps, columns_of, in_turns, together

_RATE = 0.003  # about a hundred of 31,398 voxels
_SCORE_VARIANCE = 15.0  # prior variance of a score: neither timid nor eager


def growth_rows(sizes: Sizes, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Seconds per iteration along each of the three sizes, the others at their usual value."""
    usual = (USUAL_ROWS, sizes.usual_voxels, USUAL_COLUMNS)
    along = {
        "voxels": [(usual[0], n, usual[2]) for n in sizes.voxels],
        "rows": [(m, usual[1], usual[2]) for m in sizes.rows],
        "columns": [(usual[0], usual[1], b) for b in sizes.columns],
    }
    return [row for name, shapes in along.items() for row in _series(name, shapes, sizes, rng)]


def _series(
    name: str, shapes: list[tuple[int, int, int]], sizes: Sizes, rng: np.random.Generator
) -> list[dict[str, Any]]:
    problems = {shape: random_problem(*shape, rng) for shape in shapes}
    jobs = {str(shape): _job(data, sizes.iterations) for shape, data in problems.items()}
    in_turns(dict(list(jobs.items())[:1]), 1)  # load, compile
    timed = in_turns(jobs, sizes.rounds)
    steps = [together(timed[str(shape)].results) for shape in shapes]
    first = float(np.median(steps[0].seconds))
    return [
        {
            "along": name,
            "rows": shape[0],
            "voxels": shape[1],
            "columns": shape[2],
            **columns_of(step),
            "column_ms": 1e3 * float(np.median(step.seconds)) / shape[2],
            "fastest_column_ms": 1e3 * float(step.seconds.min()) / shape[2],
            "times_first": float(np.median(step.seconds)) / first,
        }
        for shape, step in zip(shapes, steps, strict=True)
    ]


def _job(data: tuple[NDArray, NDArray, NDArray], n_iter: int) -> Callable[[int], Steps]:
    return lambda _: iteration_seconds(*data, n_iter)


def iteration_seconds(
    X: NDArray, y: NDArray, train: NDArray, n_iter: int, *, tuned: bool = False, centred: bool = True
) -> Steps:
    """Time between the ends of successive iterations of one solve, all columns running to its end.

    Everything else of a solve, its start and its last predictions, is left out.
    """
    clock = Clock()
    design = Design(X, train, center="train" if centred else None)
    prior = Bernoulli(_RATE, Gaussian(0.0, _SCORE_VARIANCE / (_RATE * X.shape[1])))
    settings = SolverSettings(stop="cavity", max_iter=n_iter, patience=n_iter, intercept=True)
    engine = fit_em if tuned else solve
    engine(design, y, Logistic(), prior, settings, callback=lambda _: clock.tick())
    return clock.steps()
