"""The cells of a study, every method on every comparison; each has a file for its fits, made once."""

import hashlib
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mvpa_gamp._version import __version__
from mvpa_gamp.decoding.tasks import Task
from mvpa_gamp.imaging.atomic_files import WriteError
from mvpa_gamp.imaging.samples import Samples
from mvpa_gamp.imaging.spaces import space_of
from mvpa_gamp.methods.fold_fits import FoldFits, Method
from mvpa_gamp.results.damaged import DamagedFile
from mvpa_gamp.results.names import ResultsFolder
from mvpa_gamp.results.stored_fits import load_fits, save_fits
from mvpa_gamp.study.errors import StudyError


@dataclass(frozen=True)
class PlannedCell:
    """One method on one comparison, and where its fits are kept."""

    task: Task
    method: Method
    path: Path
    fingerprint: str


def plan_cells(
    folder: ResultsFolder, samples: Samples, tasks: Sequence[Task], methods: Sequence[Method], prepared: str
) -> list[PlannedCell]:
    """All cells, comparison by comparison, so that the first one's row is complete early.

    ``prepared`` says what folds do to X, empty for nothing.
    """
    data = data_fingerprint(samples) + prepared
    return [
        PlannedCell(
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
    for array in (samples.X, samples.runs, *space_of(samples.mask_img).content()):
        digest.update(str((array.shape, array.dtype.str)).encode())
        digest.update(np.ascontiguousarray(array).data)
    digest.update("\n".join(map(str, samples.conditions)).encode())
    return digest.hexdigest()


def _fingerprint(data: str, task: Task, method: Method) -> str:
    """A digest of data, comparison, method settings and version."""
    parts = (data, task.positive, task.negative, method.name, repr(method), __version__)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def is_done(cell: PlannedCell, say: Callable[[str], None]) -> bool:
    """Whether the cell's fits are stored already; fits of other data or settings are refused.

    Damaged ones are as good as none: ``say`` so, and they are made again.
    """
    if not cell.path.is_file():
        return False
    try:
        fingerprint = load_fits(cell.path)[1]
    except DamagedFile:
        say(f"{cell.path} is damaged: its fits are computed again.")
        return False
    if fingerprint != cell.fingerprint:
        raise StudyError(
            f"--resume: {cell.path.name} was computed from other data, other method settings or another "
            "version of mvpa_gamp. Use --overwrite to start again, or another results folder."
        )
    return True


def stored(cell: PlannedCell, answer: FoldFits | str) -> str | None:
    """Store the fits that a worker found; None, or the traceback of what went wrong."""
    if isinstance(answer, str):
        return answer
    try:
        save_fits(cell.path, answer, cell.fingerprint)
    except WriteError:  # a full disk is full for all cells
        raise
    except Exception:
        return traceback.format_exc()
    return None
