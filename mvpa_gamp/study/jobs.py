"""Jobs of a study: work for a worker, and the file in which each answer is kept.

A round is what a worker does in one go: the work of one job, or of several that share what folds prepare. An
answer is stored under the path of its job as soon as it is there and read back from it, so that a killed run
goes on where it was and a resumed one has the same results.
"""

import hashlib
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.decoding.fit import Scheme
from mvpa_gamp.decoding.null import LabelVectors, NullStatistics, joint_null
from mvpa_gamp.decoding.permutation import PermutationPlan, PermutationTest
from mvpa_gamp.decoding.preparation import Preparation
from mvpa_gamp.imaging.disk import WriteError
from mvpa_gamp.methods.fold_fits import FoldFits
from mvpa_gamp.parallel import block_threads
from mvpa_gamp.results.files import DamagedFile, load_arrays, save_fits, write_npz
from mvpa_gamp.study.console import Console

Arrays = dict[str, NDArray]


class Work(Protocol):
    """Anything that a worker can do with the X of a study; small, because it is sent to the worker."""

    def answer(self, X: NDArray, runs: NDArray, connectivity: Any) -> Sequence[Arrays | FoldFits]:
        """One answer per job of the round, given X, the run of each row, and which voxels are neighbours."""
        ...


def answered(work: Work, X: NDArray, runs: NDArray, connectivity: Any) -> Sequence[Arrays | FoldFits] | str:
    """The answers, or the traceback as text: a failure is an answer, not an end."""
    try:
        with block_threads(1):  # one thread for the BLAS: the same digits however many cores a worker has
            return work.answer(X, runs, connectivity)
    except Exception:
        return traceback.format_exc()


@dataclass(frozen=True)
class Job:
    """A question, the file that keeps its answer, and how many permutations it brings."""

    label: str
    path: Path
    fingerprint: str  # a digest of all that the answer depends on
    work: Any = None
    permutations: int = 0

    @property
    def is_stored(self) -> bool:
        """Whether the answer is there; one that is damaged, or to another question, is asked for again."""
        try:
            return bool(load_arrays(self.path).get("fingerprint") == self.fingerprint)
        except (OSError, DamagedFile):
            return False

    def keep(self, answer: Arrays | FoldFits) -> None:
        """Store the answer."""
        if isinstance(answer, FoldFits):
            save_fits(self.path, answer, self.fingerprint)
        else:
            write_npz(self.path, {**answer, "fingerprint": self.fingerprint})

    def read(self) -> Any:
        """The stored answer as a worker's work understands it, or its arrays."""
        arrays = load_arrays(self.path)
        return self.work.read(arrays) if hasattr(self.work, "read") else arrays


def make_job(label: str, path: Path, work: Any, *facts: str, permutations: int = 0) -> Job:
    """A job; ``facts`` are all that its answer depends on."""
    fingerprint = hashlib.sha256("\n".join(facts).encode()).hexdigest()
    return Job(label, path, fingerprint, work, permutations)


def beside(path: Path, ending: str) -> Path:
    """The file of a job that belongs to the one of some fits."""
    return path.with_name(path.name.replace("_fits.npz", f"_{ending}.npz"))


class Round(NamedTuple):
    """What a worker does in one go, and the jobs that it answers."""

    work: Work
    jobs: tuple[Job, ...]

    @property
    def label(self) -> str:
        """What it is about, for the progress line."""
        more = len(self.jobs) - 1
        return self.jobs[0].label + (f" and {more} more" if more else "")

    @property
    def permutations(self) -> int:
        """Of all its jobs."""
        return sum(job.permutations for job in self.jobs)


def rounds_of(jobs: Sequence[Job], resume: bool) -> list[Round]:
    """A round for each job that has no answer yet."""
    return [Round(job.work, (job,)) for job in jobs if not (resume and job.is_stored)]


@dataclass
class Answers:
    """What is stored of the answers, and what went wrong with the others."""

    console: Console
    troubles: dict[Path, str] = field(default_factory=dict)  # by the file that is missing
    written: set[Path] = field(default_factory=set)  # fits whose tables and maps are written

    def keep(self, round_: Round, answer: Sequence[Arrays | FoldFits] | str) -> None:
        """Store the answers to the jobs of a round, or take down what went wrong."""
        trouble = answer if isinstance(answer, str) else ""
        try:
            for job, each in zip(round_.jobs, answer, strict=True) if not isinstance(answer, str) else ():
                job.keep(each)
        except WriteError:  # a full disk is full for all jobs
            raise
        except Exception:
            trouble = traceback.format_exc()
        if trouble:
            self.console.note(trouble, level=2)
            self.troubles |= {job.path: trouble.strip().splitlines()[-1] for job in round_.jobs}

    def trouble(self, jobs: Sequence[Job]) -> str:
        """What went wrong with the first of some jobs that has no answer, or nothing."""
        return next((self.troubles[job.path] for job in jobs if job.path in self.troubles), "")


@dataclass
class Phase:
    """Rounds that are counted together; ``total`` of ``things`` where it is not the rounds that count."""

    rounds: Sequence[Round]
    total: int = 0
    things: str = ""

    def begin(self, answers: Answers) -> None:
        """The first line of its progress."""
        open_ = sum(each.permutations for each in self.rounds)
        if self.rounds and self.things:
            answers.console.start(self.total, self.total - open_, self.things)
        elif self.rounds:
            answers.console.start(len(self.rounds))

    def advance(self, round_: Round, answers: Answers) -> None:
        """The line of a round that is done."""
        answers.console.advance(round_.label, minor=True, by=round_.permutations if self.things else 1)


class Analysis(Protocol):
    """Something that a study finds out: jobs to be done, and files and a part of summary.json at the end."""

    @property
    def phases(self) -> Sequence[Phase]:
        """What has no answer yet."""

    @property
    def tests(self) -> Sequence[PermutationPlan]:
        """Its permutations."""

    def write(self, answers: Answers) -> dict[str, Any]:
        """Write its files from the stored answers; returns its parts of summary.json."""


class NullWork(NamedTuple):
    """Some permutations of one comparison and method or of several, which then share every prepared X."""

    asked: tuple[LabelVectors, ...]
    preparation: Preparation
    prepared: NDArray  # rows of all comparisons, asked for or not: digits then do not depend on what is

    def answer(self, X: NDArray, runs: NDArray, connectivity: Any) -> list[Arrays]:
        """Scores of the label vectors of each."""
        scheme = Scheme(preparation=self.preparation, connectivity=connectivity)
        return [stored_null(each) for each in joint_null(self.asked, X, runs, scheme, rows=self.prepared)]


def stored_null(found: NullStatistics) -> Arrays:
    """The permutations of a chunk, a row of every array each."""
    return {name: values for name, values in found._asdict().items() if values is not None}


def permutation_jobs(
    plan: PermutationPlan, label: str, path: Path, make: Callable[[NDArray], Any], *facts: str
) -> tuple[Job, ...]:
    """The chunks of a plan, whole ones: more permutations keep those that are there.

    ``make`` gives the work for label vectors (M, k); ``path`` is without the number of the chunk.
    """
    jobs, before = [], 0
    for number, chunk in enumerate(plan.chunks, start=1):
        labels, done = np.ascontiguousarray(plan.labels[:, chunk]), plan.done(chunk)
        known = f"scored by permutation {hashlib.sha256(labels.tobytes()).hexdigest()}"
        own = path.with_name(f"{path.stem}-{number:04d}.npz")
        work = make(labels)
        jobs.append(make_job(label, own, work, *facts, path.stem, known, permutations=done - before))
        before = done
    return tuple(jobs)


def permutation_result(plan: PermutationPlan, method: str, jobs: Sequence[Job]) -> PermutationTest:
    """The test, from the stored chunks of its plan."""
    stored = [load_arrays(job.path) for job in jobs]
    parts = [
        NullStatistics(a["score"], a["auc"], a.get("max_inclusion"), a["n_failed"], a.get("consistency"))
        for a in stored
    ]
    return plan.joined(method, parts)
