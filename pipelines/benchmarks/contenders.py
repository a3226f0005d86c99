"""Who is timed: our methods and the peers, each behind one call per round."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from mvpa_gamp.decoding.folds import leave_one_run_out
from mvpa_gamp.methods import METHODS, L1LogisticCV, Method

from .nested import Outcome, fits_per_fold, joined, nested_fold
from .nilearn_decoder import decoder_fold
from .problems import Grids, Problem
from .solvers import GAP, PathSolver, celer_path, liblinear, liblinear_path, skglm_path

OURS = "gamp-bg-lr"
SPATIAL = "gamp-sbg-lr"
RECOMMENDED = "vamp-sbg"
BASELINE = "l1-lr-cv"
ONE_FIT = "liblinear one fit"
SKGLM = "skglm nested"
CELER = "celer nested"
LIBLINEAR = "liblinear nested"
DECODER = "nilearn Decoder"


@dataclass(frozen=True)
class Contender:
    """One way to the same answer; ``run(number)`` is what a round times.

    A whole study is ``parts`` such calls, ``fits_per_part`` fits each; ``score`` gives the held-out error
    where the timed call cannot. ``warm_features`` are enough to load and compile all that the call needs.
    """

    name: str
    what: str
    run: Callable[[int], Outcome | None]
    parts: int = 1
    fits_per_part: int = 1
    score: Callable[[], Outcome] | None = None
    warm_features: int = 200


def ours(problem: Problem, name: str = OURS) -> Contender:
    """One of the package's methods, every fold tuned by expectation maximisation."""
    graph = problem.connectivity() if METHODS[name].uses_connectivity else None
    return Contender(
        name,
        "all folds, tuned on the way",
        lambda _: fit_all(METHODS[name], problem, graph),
        fits_per_part=len(problem.run_numbers()),
        warm_features=12_000,  # small problems are solved without the compiled step
    )


def baseline(problem: Problem, tol: float = GAP) -> Contender:
    """Our L1 logistic regression, all of nested leave-one-run-out, to the gap of the peers."""
    method = L1LogisticCV(tol=tol, tuning_tol=GAP)
    n_runs = len(problem.run_numbers())
    n_fits = (n_runs * (n_runs - 1) // 2 + n_runs) * method.n_lambdas + n_runs
    return Contender(
        BASELINE,
        "all nested folds, each different fit once",
        lambda _: fit_all(method, problem),
        fits_per_part=n_fits,
    )


def one_fit(problem: Problem, C: float) -> Contender:
    """A single fit of scikit-learn's liblinear on all rows at a fixed C."""

    def fit(_: int) -> None:
        liblinear(C).fit(problem.X, problem.y)

    return Contender(
        ONE_FIT, f"1 fit on all rows at C = {C:.3g}", fit, score=lambda: liblinear_folds(problem, C)
    )


def nested_peer(name: str, problem: Problem, grids: Grids) -> Contender:
    """Nested leave-one-run-out by a peer; a round measures one outer fold, the next round the next one."""
    solver = _SOLVERS[name]
    runs = problem.run_numbers().tolist()
    return Contender(
        name,
        "nested leave-one-run-out over 10 penalties",
        lambda number: nested_fold(solver, problem, grids, runs[number % len(runs)]),
        len(runs),
        fits_per_fold(len(runs)),
    )


def nilearn_decoder(problem: Problem) -> Contender:
    """nilearn's Decoder with L1 logistic regression and its own grid; a round measures one outer fold."""
    runs = problem.run_numbers().tolist()
    return Contender(
        DECODER,
        "estimator='logistic_l1', own grid, its 20 % screening",
        lambda number: decoder_fold(problem, runs[number % len(runs)]),
        len(runs),
        41,  # eight values in five inner folds, and a refit
    )


def missing(names: tuple[str, ...]) -> list[str]:
    """Those of the peers whose library is not installed."""
    library = {SKGLM: "skglm", CELER: "celer", DECODER: "nilearn"}
    return [name for name in names if name in library and find_spec(library[name]) is None]


def fit_all(method: Method, problem: Problem, connectivity: Any = None) -> Outcome:
    """Fit all leave-one-run-out folds and count wrong held-out rows."""
    folds = leave_one_run_out(problem.runs)
    fits = method.fit_folds(problem.X, problem.y, folds.train, problem.runs, connectivity)
    tested = ~folds.train
    wrong = ((fits.decision > 0) != (problem.y > 0)[:, None]) & tested
    runs = folds.held_out.tolist()
    return Outcome(
        dict(zip(runs, wrong.sum(axis=0).tolist(), strict=True)),
        dict(zip(runs, tested.sum(axis=0).tolist(), strict=True)),
        float(fits.support.sum(axis=0).mean()),
    )


def liblinear_folds(problem: Problem, C: float) -> Outcome:
    """All leave-one-run-out folds of liblinear at one C, which nothing tuned."""
    return joined([_liblinear_fold(problem, C, run) for run in problem.run_numbers().tolist()])


def _liblinear_fold(problem: Problem, C: float, held_out: int) -> Outcome:
    rows = problem.runs != held_out
    model = liblinear(C).fit(problem.X[rows], problem.y[rows])
    wrong = int(np.count_nonzero(model.predict(problem.X[~rows]) != problem.y[~rows]))
    return Outcome({held_out: wrong}, {held_out: int((~rows).sum())}, float(np.count_nonzero(model.coef_)))


_SOLVERS: dict[str, PathSolver] = {SKGLM: skglm_path, CELER: celer_path, LIBLINEAR: liblinear_path}
