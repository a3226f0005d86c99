"""Is our own L1 baseline a fair one? ``l1-lr-cv`` against skglm on the same grid and gap, one core each."""

from collections.abc import Callable
from typing import Any

import numpy as np

from mvpa_gamp.methods.l1_solver import gap, null_objective, residual

from . import contenders
from .contenders import Contender
from .peers import compare
from .problems import Grids, Problem
from .solvers import PathSolver, skglm_path
from .timing import one_core


def baseline_rows(problem: Problem, rounds: int, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """Both nested, plus skglm as if it, too, solved each different fit only once."""
    if contenders.missing((contenders.SKGLM,)):
        say("baseline: skipped, skglm is not installed (pip install '.[bench]' in the clone)")
        return []
    with one_core():
        rows = compare(_both, problem, rounds)
    reached = reached_gaps(skglm_path, problem, Grids(problem))
    say("ratios are over skglm nested, which is first here; one core for everyone")
    say(f"skglm's relative duality gaps: median {np.median(reached):.0e}, largest {reached.max():.0e}")
    return [rows[1], rows[0], shared(rows[0])]


def _both(problem: Problem) -> list[Contender]:
    skglm = contenders.nested_peer(contenders.SKGLM, problem, Grids(problem))
    return [skglm, contenders.baseline(problem)]


def shared(nested: dict[str, Any]) -> dict[str, Any]:
    """Nested leave-one-run-out if leaving out runs i, j and j, i were one fit: half the work."""
    return nested | {
        "name": f"{nested['name']}, shared",
        "what": "the same if each different fit were made once (computed)",
        "extrapolated": True,
        **{name: nested[name] / 2 for name in ("seconds", "ratio", "cpu_seconds", "cpu_ratio")},
    }


def reached_gaps(solver: PathSolver, problem: Problem, grids: Grids) -> np.ndarray:
    """Relative duality gaps (G,) of one path of a peer, measured with our own certificate."""
    run = int(problem.run_numbers()[0])
    rows = problem.runs != run
    X, y, lambdas = problem.X[rows].astype(np.float64), problem.y[rows], grids[frozenset((run,))]
    coefs = np.asarray(solver(problem.X[rows], y, lambdas), dtype=np.float64)
    labels = np.tile(y, (len(lambdas), 1))
    decision = coefs @ X.T
    candidate = residual(labels, decision)
    shrink = np.minimum(1.0, lambdas / np.abs(candidate @ X).max(axis=1))
    penalty = lambdas * np.abs(coefs).sum(axis=1)
    return gap(labels, decision, penalty, candidate, shrink) / null_objective(labels, False)
