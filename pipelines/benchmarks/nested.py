"""Nested leave-one-run-out as a user of a peer would write it, one outer fold at a time."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from .problems import Grids, Problem
from .solvers import PathSolver


class Outcome(NamedTuple):
    """What fits are worth: wrong and tested rows of each held-out run, and the mean number of features."""

    wrong: dict[int, int]
    tested: dict[int, int]
    selected: float

    def error(self, runs: Iterable[int] | None = None) -> float:
        """Share of held-out rows predicted wrongly, over all runs tested or over these."""
        chosen = list(self.tested if runs is None else runs)
        return sum(self.wrong[run] for run in chosen) / sum(self.tested[run] for run in chosen)


def joined(outcomes: Sequence[Outcome]) -> Outcome:
    """Several outcomes as one; a run that was tested again counts once."""
    wrong: dict[int, int] = {}
    tested: dict[int, int] = {}
    for outcome in outcomes:
        wrong |= outcome.wrong
        tested |= outcome.tested
    return Outcome(wrong, tested, float(np.mean([outcome.selected for outcome in outcomes])))


def nested_fold(solver: PathSolver, problem: Problem, grids: Grids, held_out: int) -> Outcome:
    """Tune on the runs other than ``held_out``, refit on all of them, and test on ``held_out``.

    One path per inner run and one fit at the chosen penalty: 11 * 10 + 1 fits with 12 runs and 10 penalties.
    Ties go to the larger penalty, as in ``l1-lr-cv``. The BLAS gets one thread: the products of these solvers
    are so small that more threads make them slower, several times on a busy machine.
    """
    with threadpool_limits(1):
        return _nested_fold(solver, problem, grids, held_out)


def _nested_fold(solver: PathSolver, problem: Problem, grids: Grids, held_out: int) -> Outcome:
    X, y, runs = problem.X, problem.y, problem.runs
    outer = runs != held_out
    errors = []
    for inner in np.unique(runs[outer]):
        rows, tested = outer & (runs != inner), runs == inner
        coefs = solver(X[rows], y[rows], grids[frozenset((held_out, int(inner)))])
        errors.append(_wrong(coefs, X[tested], y[tested]) / tested.sum())
    chosen = int(np.argmin(np.mean(errors, axis=0)))
    lam = grids[frozenset((held_out,))][chosen : chosen + 1]
    coef = solver(X[outer], y[outer], lam)
    wrong = int(_wrong(coef, X[~outer], y[~outer])[0])
    return Outcome({held_out: wrong}, {held_out: int((~outer).sum())}, float(np.count_nonzero(coef)))


def fits_per_fold(n_runs: int, n_values: int = 10) -> int:
    """Fits of one outer fold: all penalties per inner run, and the refit."""
    return (n_runs - 1) * n_values + 1


def _wrong(coefs: NDArray, X: NDArray, y: NDArray) -> NDArray:
    """Wrong predictions of every row of ``coefs`` (G, N)."""
    return np.count_nonzero((coefs @ X.T > 0) != (y > 0), axis=1)
