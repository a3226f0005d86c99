"""Work whose answer, a few arrays, is stored as soon as it is there, so that a killed run goes on."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mvpa_gamp.results.files import write_npz
from mvpa_gamp.results.stored_fits import DAMAGED, load_arrays
from mvpa_gamp.study.console import Console


@dataclass(frozen=True)
class Job:
    """Some work, what it is called, and where its answer is kept."""

    label: str
    work: Any
    path: Path
    fingerprint: str


def make_job(label: str, work: Any, path: Path, *facts: str) -> Job:
    """A job; ``facts`` are all that its answer depends on."""
    return Job(label, work, path, hashlib.sha256("\n".join(facts).encode()).hexdigest())


def unanswered(jobs: Sequence[Job], resume: bool) -> list[Job]:
    """The jobs that have no answer yet."""
    return [job for job in jobs if not (resume and _is_stored(job))]


def store_answers(jobs: Sequence[Job], answers: Iterator[Any], console: Console) -> dict[Path, str]:
    """Store the answers to the open ``jobs`` as they come; returns the troubles of those without one."""
    troubles: dict[Path, str] = {}
    if jobs:
        console.start(len(jobs))
    for job in jobs:
        answer = next(answers)
        if isinstance(answer, str):
            troubles[job.path] = answer.strip().splitlines()[-1]
            console.note(answer, level=2)
        else:
            write_npz(job.path, {**answer, "fingerprint": job.fingerprint})
        console.advance(job.label, minor=True)
    return troubles


def _is_stored(job: Job) -> bool:
    """Whether the answer is there; one that is damaged, or to another question, is asked for again."""
    try:
        return bool(load_arrays(job.path)["fingerprint"] == job.fingerprint)
    except DAMAGED:
        return False
