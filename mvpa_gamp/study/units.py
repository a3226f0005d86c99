"""Units of work: every method on every task, fitted here or by workers, and never twice."""

import hashlib
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp._version import __version__
from mvpa_gamp.decoding.tasks import Task
from mvpa_gamp.gamp.threads import block_threads
from mvpa_gamp.imaging.samples import Samples
from mvpa_gamp.methods.fold_fits import Method
from mvpa_gamp.parallel import Workers, run_tasks
from mvpa_gamp.report.folder import ResultsFolder
from mvpa_gamp.study.errors import StudyError
from mvpa_gamp.study.fits import UnitFits, fit_together, load_fits, save_fits

# Comparisons in one solve: enough to share a pass over X, few enough that the table's first row is early.
_TOGETHER = 3


@dataclass(frozen=True)
class Unit:
    """One method on one task, and where its fits are kept."""

    task: Task
    method: Method
    path: Path
    fingerprint: str


def plan_units(
    folder: ResultsFolder, samples: Samples, tasks: Sequence[Task], methods: Sequence[Method]
) -> list[Unit]:
    """All units, task by task, so that the first comparison's row is complete early."""
    data = data_fingerprint(samples)
    return [
        Unit(
            task,
            method,
            folder.fits(samples.subject, task.name, method.name),
            _fingerprint(data, task, method),
        )
        for task in tasks
        for method in methods
    ]


def data_fingerprint(samples: Samples) -> str:
    """A digest of everything that a fit can see, and of the grid the maps live on."""
    digest = hashlib.sha256()
    mask = np.asarray(samples.mask_img.dataobj) > 0
    for array in (samples.X, samples.runs, mask, np.asarray(samples.mask_img.affine)):
        digest.update(str((array.shape, array.dtype.str)).encode())
        digest.update(np.ascontiguousarray(array).data)
    digest.update("\n".join(map(str, samples.conditions)).encode())
    return digest.hexdigest()


def _fingerprint(data: str, task: Task, method: Method) -> str:
    """A digest of data, task, method settings and version."""
    parts = (data, task.positive, task.negative, method.name, repr(method), __version__)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def is_done(unit: Unit) -> bool:
    """Whether the unit's fits are stored already; fits of other data or settings are refused."""
    if not unit.path.is_file():
        return False
    try:
        fingerprint = load_fits(unit.path)[1]
    except ValueError as error:
        raise StudyError(str(error)) from error
    if fingerprint != unit.fingerprint:
        raise StudyError(
            f"--resume: {unit.path.name} was computed from other data, other method settings or another "
            "version of mvpa_gamp. Use --overwrite to start again, or another results folder."
        )
    return True


def all_or_none(units: Sequence[Unit], done: Sequence[bool]) -> list[bool]:
    """``done``, less units of methods that join tasks and still miss one: only together are they the same."""
    missing = [unit.method for unit, finished in zip(units, done, strict=True) if not finished]
    again = {method.name for method in missing if method.joins_tasks}
    return [finished and unit.method.name not in again for unit, finished in zip(units, done, strict=True)]


def fit_units(units: Sequence[Unit], samples: Samples, workers: Workers) -> Iterator[str | None]:
    """Fit and store units; for each, in order, None or the traceback of what went wrong.

    Methods that join tasks fit some of theirs in one go, when the first of them is due. Workers only fit;
    this process stores what they return.
    """
    groups = _groups(units)
    answers = run_tasks(_fit, [_work(group) for group in groups], (samples.X, samples.runs), workers)
    outcomes = (_stored(group, answer) for group, answer in zip(groups, answers, strict=True))
    yield from _in_order(units, groups, outcomes)


def _groups(units: Sequence[Unit]) -> list[list[Unit]]:
    """Units that are fitted in one go, in the order of their first."""
    groups: list[list[Unit]] = []
    latest: dict[str, list[Unit]] = {}
    for unit in units:
        group = latest.get(unit.method.name, [])
        if not group or not unit.method.joins_tasks or len(group) == _TOGETHER:
            group = latest[unit.method.name] = []
            groups.append(group)
        group.append(unit)
    return groups


def _in_order(
    units: Sequence[Unit], groups: list[list[Unit]], outcomes: Iterator[str | None]
) -> Iterator[str | None]:
    """The outcome of every unit in the order of the units, each group worked on when first needed."""
    waiting = iter(groups)
    known: dict[int, str | None] = {}
    for unit in units:
        while id(unit) not in known:
            outcome = next(outcomes)
            known |= {id(member): outcome for member in next(waiting)}
        yield known[id(unit)]


class _Work(NamedTuple):
    """What a worker needs to know of a group of units."""

    method: Method
    comparisons: list[tuple[NDArray, NDArray]]  # rows and labels


def _work(group: Sequence[Unit]) -> _Work:
    return _Work(group[0].method, [(unit.task.rows, unit.task.y) for unit in group])


def _fit(work: _Work, X: NDArray, runs: NDArray) -> list[UnitFits] | str:
    """Fit comparisons of one method together, or say what went wrong: a failure is an answer, not an end."""
    try:
        with block_threads(1):  # one thread for the BLAS: the same digits however many cores a worker has
            if len(work.comparisons) > 1:
                return fit_together(work.method, X, runs, work.comparisons)
            rows, y = work.comparisons[0]  # only its own rows
            alone = fit_together(work.method, X[rows], runs[rows], [(np.arange(len(rows)), y)])
            return [replace(alone[0], rows=rows)]
    except Exception:
        return traceback.format_exc()


def _stored(group: Sequence[Unit], answer: list[UnitFits] | str) -> str | None:
    if isinstance(answer, str):
        return answer
    try:
        for unit, fits in zip(group, answer, strict=True):
            save_fits(unit.path, fits, unit.fingerprint)
    except Exception:
        return traceback.format_exc()
    return None
