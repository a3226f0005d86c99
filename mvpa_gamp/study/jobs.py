"""Work whose answer, a few arrays, is stored as soon as it is there, so that a killed run goes on."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.results.damaged import DamagedFile
from mvpa_gamp.results.files import write_npz
from mvpa_gamp.results.stored_fits import load_arrays
from mvpa_gamp.study.console import Console


@dataclass(frozen=True)
class Job:
    """Some work, what it is called, where its answer is kept, and how many permutations it brings."""

    label: str
    work: Any
    path: Path
    fingerprint: str
    permutations: int = 0


def make_job(label: str, work: Any, path: Path, *facts: str) -> Job:
    """A job; ``facts`` are all that its answer depends on."""
    return Job(label, work, path, hashlib.sha256("\n".join(facts).encode()).hexdigest())


def digest(labels: NDArray) -> str:
    """What the permutations of a job are known by: their label vectors (M, k)."""
    return f"scored by permutation {hashlib.sha256(np.ascontiguousarray(labels).tobytes()).hexdigest()}"


def unanswered(jobs: Sequence[Job], resume: bool) -> list[Job]:
    """The jobs that have no answer yet."""
    return [job for job in jobs if not (resume and is_stored(job))]


def store_answers(jobs: Sequence[Job], answers: Iterator[Any], console: Console) -> dict[Path, str]:
    """Store the answers to the open ``jobs`` as they come; returns the troubles of those without one."""
    troubles: dict[Path, str] = {}
    if jobs:
        console.start(len(jobs))
    for job in jobs:
        troubles |= store_answer([job], next(answers), console)
        console.advance(job.label, minor=True)
    return troubles


def store_answer(jobs: Sequence[Job], answer: Any, console: Console) -> dict[Path, str]:
    """Keep the answer to one or several jobs; returns what went wrong, by the file that is missing."""
    if isinstance(answer, str):
        console.note(answer, level=2)
        return {job.path: answer.strip().splitlines()[-1] for job in jobs}
    for job, arrays in zip(jobs, answer if isinstance(answer, list) else [answer], strict=True):
        write_npz(job.path, {**arrays, "fingerprint": job.fingerprint})
    return {}


def is_stored(job: Job) -> bool:
    """Whether the answer is there; one that is damaged, or to another question, is asked for again."""
    try:
        return bool(load_arrays(job.path).get("fingerprint") == job.fingerprint)
    except (OSError, DamagedFile):
        return False
