"""Units of work: every method on every task, fitted in this process or in several, and never twice."""

import hashlib
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp._version import __version__
from mvpa_gamp.decoding.tasks import Task
from mvpa_gamp.imaging.samples import Samples
from mvpa_gamp.methods.fold_fits import Method
from mvpa_gamp.report.folder import ResultsFolder
from mvpa_gamp.study.errors import StudyError
from mvpa_gamp.study.fits import fit_together, load_fits, save_fits

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
            "version of mvpa_gamp. Use --overwrite to start again, or another --out."
        )
    return True


def all_or_none(units: Sequence[Unit], done: Sequence[bool]) -> list[bool]:
    """``done``, less units of methods that join tasks and still miss one: only together are they the same."""
    missing = [unit.method for unit, finished in zip(units, done, strict=True) if not finished]
    again = {method.name for method in missing if method.joins_tasks}
    return [finished and unit.method.name not in again for unit, finished in zip(units, done, strict=True)]


def fit_units(units: Sequence[Unit], samples: Samples, n_jobs: int) -> Iterator[str | None]:
    """Fit and store units; for each, in order, None or the traceback of what went wrong.

    Methods that join tasks fit all of theirs in one go, when the first of them is due. With several
    processes each one gets its share of the cores for its matrix products.
    """
    groups = _groups(units)
    yield from _in_order(units, groups, _outcomes(groups, samples, n_jobs))


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


def _outcomes(groups: list[list[Unit]], samples: Samples, n_jobs: int) -> Iterator[str | None]:
    if n_jobs == 1 or len(groups) < 2:
        yield from (_fit(group, samples.X, samples.runs) for group in groups)
        return
    from joblib import Parallel, cpu_count, delayed, parallel_config

    workers = cpu_count() + 1 + n_jobs if n_jobs < 0 else n_jobs
    workers = max(1, min(workers, len(groups)))
    with parallel_config("loky", inner_max_num_threads=max(1, cpu_count() // workers)):
        jobs = (delayed(_fit)(group, samples.X, samples.runs) for group in groups)
        yield from Parallel(n_jobs=workers, return_as="generator", pre_dispatch=workers)(jobs)


def _fit(group: Sequence[Unit], X: NDArray, runs: NDArray) -> str | None:
    """Fit the units of one method together and store their fits; a failure is an answer, not an end."""
    try:
        if len(group) == 1:  # only its own rows
            rows = group[0].task.rows
            fits = fit_together(
                group[0].method, X[rows], runs[rows], [(np.arange(len(rows)), group[0].task.y)]
            )
            fits = [replace(fits[0], rows=rows)]
        else:
            fits = fit_together(group[0].method, X, runs, [(unit.task.rows, unit.task.y) for unit in group])
        for unit, each in zip(group, fits, strict=True):
            save_fits(unit.path, each, unit.fingerprint)
    except Exception:
        return traceback.format_exc()
    return None
