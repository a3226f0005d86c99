"""Inference beyond the table: permutation chunks, planted checks and learning curves as further jobs.

A job is what a worker does in one go; its answer, a few arrays, is stored as soon as it is there, so that a
run that is killed goes on where it was.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.decoding.balanced import is_unequal
from mvpa_gamp.decoding.calibration import N_PERMUTATIONS
from mvpa_gamp.decoding.discoveries import NO_EFFECT_REPEATS
from mvpa_gamp.decoding.exchange import blocks_of_volumes
from mvpa_gamp.decoding.permutation import NullStatistics, PermutationPlan, plan_permutations
from mvpa_gamp.imaging.samples import Samples
from mvpa_gamp.methods.fold_fits import Method
from mvpa_gamp.results.files import write_npz
from mvpa_gamp.results.inference_files import CellInference
from mvpa_gamp.results.stored_fits import DAMAGED, load_arrays
from mvpa_gamp.study.cells import PlannedCell
from mvpa_gamp.study.console import Console
from mvpa_gamp.study.errors import StudyError
from mvpa_gamp.study.inference_jobs import Arrays, Curve, InferenceWork, NullChunk, Planting
from mvpa_gamp.study.settings import StudySettings

_FEWEST_RUNS = 3  # of a learning curve


def check_inference(settings: StudySettings, methods: Sequence[Method]) -> None:
    """Refuse what needs no data to be known wrong."""
    if settings.whiten and (settings.permutations or settings.fdr or settings.learning_curve):
        raise StudyError(
            "--whiten cannot be tested by --permutations, --fdr or --learning-curve: every fold has its own "
            "whitened volumes. Run these without --whiten, into another folder."
        )
    if settings.permutations < 0:
        raise StudyError(f"--permutations: expected 1 or more, got {settings.permutations}. 1000 is usual.")
    if settings.max_inclusion and not settings.permutations:
        raise StudyError(
            "--max-inclusion is a null that permutations make. Give --permutations 1000 as well."
        )
    if settings.fdr is not None and not 0 < settings.fdr < 1:
        raise StudyError(f"--fdr: expected a rate between 0 and 1, got {settings.fdr:g}. 0.05 is usual.")
    of_inclusion = "GAMP methods with inclusion probabilities"
    unsearched = "methods without a nested search in every fit (GAMP methods, svm, lda)"
    for option, wanted, fact, kind in (
        ("--permutations", settings.permutations, "is_batched", unsearched),
        ("--max-inclusion", settings.max_inclusion, "has_posterior", of_inclusion),
        ("--fdr", settings.fdr, "has_posterior", of_inclusion),
        ("--learning-curve", settings.learning_curve, "is_batched", unsearched),
    ):
        if wanted and not any(getattr(method, fact) for method in methods):
            names = ", ".join(method.name for method in methods)
            raise StudyError(f"{option} is for {kind}, got {names}. Add gamp-bg-lr to --methods.")


def check_whitening(settings: StudySettings, samples: Samples) -> None:
    """Refuse to whiten samples that have no noise to learn from."""
    if settings.whiten and samples.kind != "volume":
        raise StudyError(
            "--whiten needs several volumes of every block, whose spread is the noise, got "
            f"{samples.plural}. Leave it out."
        )


@dataclass(frozen=True)
class Job:
    """Work on a cell, and where its answer is kept."""

    cell: PlannedCell
    name: str
    work: InferenceWork
    path: Path
    fingerprint: str


@dataclass(frozen=True)
class InferencePlan:
    """The jobs of one cell in the order of their parts, and the permutations they belong to."""

    cell: PlannedCell
    permutation: PermutationPlan | None
    jobs: tuple[Job, ...]


def plan_inference(
    settings: StudySettings, samples: Samples, cells: Sequence[PlannedCell]
) -> list[InferencePlan]:
    """The jobs of every cell that inference is asked for."""
    n_runs = len(np.unique(samples.runs))
    if settings.learning_curve and n_runs < _FEWEST_RUNS:
        raise StudyError(f"--learning-curve needs {_FEWEST_RUNS} runs or more, got {n_runs}. Leave it out.")
    blocks = blocks_of(samples)
    plans = [_cell_plan(settings, samples, cell, blocks) for cell in cells if cell.method.is_batched]
    return [plan for plan in plans if plan.jobs or settings.fdr is not None]


def blocks_of(samples: Samples) -> NDArray:
    """The block of each sample: what is exchanged as a whole. Means of events and given maps stand alone."""
    each = np.arange(len(samples.runs))
    if samples.kind != "volume":
        return each
    volumes = each if samples.volumes is None else samples.volumes
    return blocks_of_volumes(samples.conditions, samples.runs, volumes)


def _cell_plan(
    settings: StudySettings, samples: Samples, cell: PlannedCell, blocks: NDArray
) -> InferencePlan:
    method, rows, y, seed = cell.method, cell.task.rows, cell.task.y, settings.seed
    jobs: list[Job] = []
    plan = None
    if settings.permutations:
        plan = plan_permutations(
            y, samples.runs[rows], samples.X.shape[1], settings.permutations, seed=seed, blocks=blocks[rows]
        )
        keep, balanced = settings.max_inclusion and method.has_posterior, is_unequal(y)
        for number, chunk in enumerate(plan.chunks, start=1):
            name = f"permutations {number} of {len(plan.chunks)}"
            key = f"{settings.permutations} {seed} {keep}" + " balanced" * balanced
            work = NullChunk(method, rows, plan.labels[:, chunk], keep, balanced)
            jobs.append(_job(cell, name, work, f"permutations-{number:04d}", key))
    if settings.fdr is not None and method.has_posterior:
        key = f"{settings.fdr} {seed} {N_PERMUTATIONS} {NO_EFFECT_REPEATS}"
        planting = Planting(method, rows, y, blocks[rows], settings.fdr, seed)
        jobs.append(_job(cell, "planted effects", planting, "planted", key))
    if settings.learning_curve:
        jobs.append(_job(cell, "learning curve", Curve(method, rows, y, seed), "learningcurve", f"{seed}"))
    return InferencePlan(cell, plan, tuple(jobs))


def _job(cell: PlannedCell, name: str, work: InferenceWork, ending: str, key: str) -> Job:
    path = cell.path.with_name(cell.path.name.replace("_fits.npz", f"_{ending}.npz"))
    fingerprint = hashlib.sha256(f"{cell.fingerprint}\n{ending}\n{key}".encode()).hexdigest()
    return Job(cell, name, work, path, fingerprint)


def open_jobs(plans: Sequence[InferencePlan], resume: bool) -> list[Job]:
    """The jobs that have no answer yet."""
    return [job for plan in plans for job in plan.jobs if not (resume and _is_stored(job))]


def collect(
    plans: Sequence[InferencePlan], jobs: Sequence[Job], answers: Iterator[Arrays | str], console: Console
) -> list[CellInference]:
    """Store the answers to the open ``jobs`` as they come, then put those of each cell together."""
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
        console.advance(f"{job.cell.task.label}, {job.cell.method.label}: {job.name}", minor=True)
    return [_together(plan, troubles) for plan in plans]


def _is_stored(job: Job) -> bool:
    """Whether the answer is there; one that is damaged, or to another question, is asked for again."""
    try:
        return bool(load_arrays(job.path)["fingerprint"] == job.fingerprint)
    except DAMAGED:
        return False


def _together(plan: InferencePlan, troubles: dict[Path, str]) -> CellInference:
    """The answers about a cell, read back from their files, so that a resumed run has the same."""
    mine = [troubles[job.path] for job in plan.jobs if job.path in troubles]
    if mine:
        return CellInference(trouble=mine[0])
    chunks: list[NullStatistics] = []
    found: dict[str, Any] = {}
    for job in plan.jobs:
        arrays = load_arrays(job.path)
        if isinstance(job.work, NullChunk):
            chunks.append(job.work.read(arrays))
        elif isinstance(job.work, Planting):
            found["selection"], found["planted"] = job.work.read(arrays)
        else:
            found["curve"], found["farther"] = job.work.read(arrays)
    if plan.permutation is not None:
        found["permutation"] = plan.permutation.joined(plan.cell.method.name, chunks)
    return CellInference(**found)
