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

from mvpa_gamp.decoding.discoveries import PlantedCheck
from mvpa_gamp.decoding.exchange import blocks_of_volumes
from mvpa_gamp.decoding.learning_curve import Extrapolation, LearningCurve
from mvpa_gamp.decoding.permutation import (
    NullStatistics,
    PermutationPlan,
    PermutationTest,
    plan_permutations,
)
from mvpa_gamp.imaging.samples import Samples
from mvpa_gamp.methods import GampMethod
from mvpa_gamp.methods.fold_fits import Method
from mvpa_gamp.report.files import write_npz
from mvpa_gamp.study.console import Console
from mvpa_gamp.study.errors import StudyError
from mvpa_gamp.study.inference_jobs import Arrays, Curve, InferenceWork, NullChunk, Planting
from mvpa_gamp.study.settings import StudySettings
from mvpa_gamp.study.units import Unit

_FEWEST_RUNS = 3  # of a learning curve


@dataclass(frozen=True)
class UnitInference:
    """What was asked for about one unit; None what was not, or what ``trouble`` kept from being there."""

    unit: Unit
    permutation: PermutationTest | None = None
    planted: PlantedCheck | None = None
    curve: LearningCurve | None = None
    farther: tuple[Extrapolation, ...] = ()
    trouble: str = ""


def check_inference(settings: StudySettings, methods: Sequence[Method]) -> None:
    """Refuse what needs no data to be known wrong."""
    if settings.permutations < 0:
        raise StudyError(f"--permutations: expected 1 or more, got {settings.permutations}. 1000 is usual.")
    if settings.max_inclusion and not settings.permutations:
        raise StudyError(
            "--max-inclusion is a null that permutations make. Give --permutations 1000 as well."
        )
    if settings.fdr is not None and not 0 < settings.fdr < 1:
        raise StudyError(f"--fdr: expected a rate between 0 and 1, got {settings.fdr:g}. 0.05 is usual.")
    of_inclusion = "GAMP methods with inclusion probabilities"
    for option, wanted, fits, kind in (
        ("--permutations", settings.permutations, is_batched, "GAMP methods"),
        ("--max-inclusion", settings.max_inclusion, has_inclusion, of_inclusion),
        ("--fdr", settings.fdr, has_inclusion, of_inclusion),
        ("--learning-curve", settings.learning_curve, is_batched, "GAMP methods"),
    ):
        if wanted and not any(map(fits, methods)):
            names = ", ".join(method.name for method in methods)
            raise StudyError(f"{option} is for {kind}, got {names}. Add gamp-bg-lr to --methods.")


def is_batched(method: Method) -> bool:
    """Whether permutations are affordable: columns of one solve, without a nested search each."""
    return isinstance(method, GampMethod)


def has_inclusion(method: Method) -> bool:
    """Whether a method has inclusion probabilities."""
    return isinstance(method, GampMethod) and method.settings.mode == "sum-product"


@dataclass(frozen=True)
class Job:
    """Work on a unit, and where its answer is kept."""

    unit: Unit
    name: str
    work: InferenceWork
    path: Path
    fingerprint: str


@dataclass(frozen=True)
class UnitPlan:
    """The jobs of one unit in the order of their parts, and the permutations they belong to."""

    unit: Unit
    permutation: PermutationPlan | None
    jobs: tuple[Job, ...]


def plan_inference(settings: StudySettings, samples: Samples, units: Sequence[Unit]) -> list[UnitPlan]:
    """The jobs of every unit that inference is asked for."""
    n_runs = len(np.unique(samples.runs))
    if settings.learning_curve and n_runs < _FEWEST_RUNS:
        raise StudyError(f"--learning-curve needs {_FEWEST_RUNS} runs or more, got {n_runs}. Leave it out.")
    blocks = _blocks(samples)
    plans = [_unit_plan(settings, samples, unit, blocks) for unit in units if is_batched(unit.method)]
    return [plan for plan in plans if plan.jobs]


def _blocks(samples: Samples) -> NDArray:
    """The block of each sample: what is exchanged as a whole. Means of events and given maps stand alone."""
    each = np.arange(len(samples.runs))
    if samples.kind != "volume":
        return each
    volumes = each if samples.volumes is None else samples.volumes
    return blocks_of_volumes(samples.conditions, samples.runs, volumes)


def _unit_plan(settings: StudySettings, samples: Samples, unit: Unit, blocks: NDArray) -> UnitPlan:
    method, rows, y, seed = unit.method, unit.task.rows, unit.task.y, settings.seed
    jobs: list[Job] = []
    plan = None
    if settings.permutations:
        plan = plan_permutations(
            y, samples.runs[rows], samples.X.shape[1], settings.permutations, seed=seed, blocks=blocks[rows]
        )
        keep = settings.max_inclusion and has_inclusion(method)
        for number, chunk in enumerate(plan.chunks, start=1):
            name = f"permutations {number} of {len(plan.chunks)}"
            key = f"{settings.permutations} {seed} {keep}"
            work = NullChunk(method, rows, plan.labels[:, chunk], keep)
            jobs.append(_job(unit, name, work, f"permutations-{number:04d}", key))
    if settings.fdr is not None and has_inclusion(method):
        planting = Planting(method, rows, y, blocks[rows], settings.fdr, seed)
        jobs.append(_job(unit, "planted effects", planting, "planted", f"{settings.fdr} {seed}"))
    if settings.learning_curve:
        jobs.append(_job(unit, "learning curve", Curve(method, rows, y, seed), "learningcurve", f"{seed}"))
    return UnitPlan(unit, plan, tuple(jobs))


def _job(unit: Unit, name: str, work: InferenceWork, ending: str, key: str) -> Job:
    path = unit.path.with_name(unit.path.name.replace("_fits.npz", f"_{ending}.npz"))
    fingerprint = hashlib.sha256(f"{unit.fingerprint}\n{ending}\n{key}".encode()).hexdigest()
    return Job(unit, name, work, path, fingerprint)


def open_jobs(plans: Sequence[UnitPlan], resume: bool) -> list[Job]:
    """The jobs that have no answer yet."""
    return [job for plan in plans for job in plan.jobs if not (resume and _is_stored(job))]


def collect(
    plans: Sequence[UnitPlan], jobs: Sequence[Job], answers: Iterator[Arrays | str], console: Console
) -> list[UnitInference]:
    """Store the answers to the open ``jobs`` as they come, then put those of each unit together."""
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
        console.advance(f"{job.unit.task.label}, {job.unit.method.label}: {job.name}", minor=True)
    return [_together(plan, troubles) for plan in plans]


def _is_stored(job: Job) -> bool:
    """Whether the answer is there; one that is damaged, or to another question, is asked for again."""
    try:
        return bool(_load(job)["fingerprint"] == job.fingerprint)
    except (OSError, ValueError, KeyError, EOFError):
        return False


def _load(job: Job) -> Arrays:
    with np.load(job.path, allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


def _together(plan: UnitPlan, troubles: dict[Path, str]) -> UnitInference:
    """The answers about a unit, read back from their files, so that a resumed run has the same."""
    mine = [troubles[job.path] for job in plan.jobs if job.path in troubles]
    if mine:
        return UnitInference(plan.unit, trouble=mine[0])
    chunks: list[NullStatistics] = []
    found: dict[str, Any] = {}
    for job in plan.jobs:
        arrays = _load(job)
        if isinstance(job.work, NullChunk):
            chunks.append(job.work.read(arrays))
        elif isinstance(job.work, Planting):
            found["planted"] = job.work.read(arrays)
        else:
            found["curve"], found["farther"] = job.work.read(arrays)
    if plan.permutation is not None:
        found["permutation"] = plan.permutation.joined(plan.unit.method.name, chunks)
    return UnitInference(plan.unit, **found)
