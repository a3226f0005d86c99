"""Inference beyond the table: permutation chunks, planted checks and learning curves as further jobs.

A piece is a job whose answer about a cell, a few arrays, is kept in a file of its own. A round is what a
worker does in one go: one piece, or those of several cells that share what folds prepare. Pieces are stored
as soon as they are there, so that a run that is killed goes on where it was.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.decoding.calibration import N_PERMUTATIONS
from mvpa_gamp.decoding.discoveries import NO_EFFECT_REPEATS
from mvpa_gamp.decoding.null import LabelVectors, NullStatistics
from mvpa_gamp.decoding.permutation import PermutationPlan, plan_permutations
from mvpa_gamp.decoding.preparation import Preparation
from mvpa_gamp.decoding.scores import is_unequal, mean_balanced_accuracy
from mvpa_gamp.decoding.tasks import Task
from mvpa_gamp.imaging.samples import Samples
from mvpa_gamp.methods.fold_fits import Method
from mvpa_gamp.report.words import compared_with
from mvpa_gamp.results.inference_files import CellInference
from mvpa_gamp.results.stored_fits import load_arrays
from mvpa_gamp.study.cells import PlannedCell
from mvpa_gamp.study.console import Console
from mvpa_gamp.study.errors import StudyError
from mvpa_gamp.study.inference_jobs import Curve, NullWork, Selection, read_null
from mvpa_gamp.study.jobs import Job, digest, is_stored, make_job, store_answer
from mvpa_gamp.study.preparing import blocks_of, exchange_of
from mvpa_gamp.study.settings import StudySettings
from mvpa_gamp.study.work import Work

_FEWEST_RUNS = 3  # of a learning curve
_CHUNKS_TOGETHER = 2  # of a cell, up to 100 permutations: their summed inclusions are held for a whole round


def check_inference(settings: StudySettings, methods: Sequence[Method]) -> None:
    """Refuse what needs no data to be known wrong."""
    if settings.whiten and settings.fdr is not None:
        raise StudyError(
            "--fdr cannot be used with --whiten: whitened voxels are mixtures of voxels, for which no "
            "false-discovery rate has been calibrated. Run it without --whiten, with another results "
            "folder."
        )
    if settings.permutations < 0:
        raise StudyError(f"--permutations: expected 1 or more, got {settings.permutations}. 1000 is usual.")
    if settings.max_inclusion and not settings.permutations:
        raise StudyError("--max-inclusion needs permutations. Give --permutations 1000 as well.")
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


def permutation_words(
    settings: StudySettings,
    tasks: Sequence[Task],
    methods: Sequence[Method],
    plans: Sequence[PermutationPlan],
) -> str:
    """Which methods get permutations, how many the ``plans`` have in all, and which get none and why."""
    tested = [method for method in methods if method.is_batched]
    if not plans:
        return ""
    total = sum(plan.n for plan in plans)
    labels = ", ".join(method.label for method in tested)
    used = compared_with((plan.n, plan.is_exact) for plan in plans)
    said = f"Permutations: {used.replace(' permutations', '')} for {labels}"
    if len(plans) > 1:
        pairs = f"{len(tasks)} comparison{'s' * (len(tasks) > 1)}"
        said += f", {total:,} in all ({pairs} x {len(tested)} method{'s' * (len(tested) > 1)})"
    others = [method.label for method in methods if not method.is_batched]
    if others:
        said += f"; none for {', '.join(others)}, whose nested cross-validation would be repeated each time"
    bare = [method.label for method in tested if settings.fdr is not None and not method.has_posterior]
    if bare:
        said += f"; no selection at FDR {settings.fdr:g} for {', '.join(bare)} (no inclusion probabilities)"
    fastest = ". Fastest: --methods gamp-sbg-lr, the method that answers on the page"
    return said + (fastest if len(methods) > 1 and "gamp-sbg-lr" in {m.name for m in methods} else "") + "."


def fewer_words(earlier: int, asked: int, plans: Sequence[PermutationPlan]) -> str:
    """That a resumed run has fewer permutations than the one before; "" where all arrangements are used."""
    if not 0 < asked < earlier or all(plan.is_exact for plan in plans):
        return ""
    return (
        f"{asked:,} permutations were asked for, {earlier:,} in the run before: its results are replaced by "
        f"those of {asked:,}."
    )


class Round(NamedTuple):
    """What a worker does in one go, and the pieces it answers, in the order of its answers."""

    work: Work
    pieces: tuple[Job, ...]

    @property
    def permutations(self) -> int:
        """Of all its pieces."""
        return sum(piece.permutations for piece in self.pieces)


@dataclass(frozen=True)
class InferencePlan:
    """The pieces of one cell in their order, and the permutations they belong to."""

    cell: PlannedCell
    permutation: PermutationPlan | None
    pieces: tuple[Job, ...]

    @property
    def chunks(self) -> list[Job]:
        """The pieces that are permutations."""
        return [piece for piece in self.pieces if isinstance(piece.work, LabelVectors)]


def plan_inference(
    settings: StudySettings, samples: Samples, cells: Sequence[PlannedCell], steps: Preparation
) -> list[InferencePlan]:
    """The pieces of every cell that inference is asked for; ``steps`` are what folds do to X."""
    n_runs = len(np.unique(samples.runs))
    if settings.learning_curve and n_runs < _FEWEST_RUNS:
        raise StudyError(f"--learning-curve needs {_FEWEST_RUNS} runs or more, got {n_runs}. Leave it out.")
    if settings.fdr is not None and samples.people is not None and samples.held_out != "participant":
        raise StudyError(
            f"--fdr is calibrated with whole participants held out, got --folds by {samples.held_out}. Leave "
            "out one of them."
        )
    blocks = blocks_of(samples)
    plans = [_cell_plan(settings, samples, cell, blocks, steps) for cell in cells if cell.method.is_batched]
    return [plan for plan in plans if plan.pieces or settings.fdr is not None]


def _cell_plan(
    settings: StudySettings, samples: Samples, cell: PlannedCell, blocks: NDArray, steps: Preparation
) -> InferencePlan:
    method, task, seed = cell.method, cell.task, settings.seed
    pieces: list[Job] = []
    plan = None
    if settings.permutations:
        within, moved = exchange_of(samples, task)
        n_folds = len(np.unique(samples.runs[task.rows])) if steps.shared else 1
        plan = plan_permutations(
            task.y, within, samples.X.shape[1], settings.permutations, seed=seed, blocks=moved,
            n_folds=n_folds, ahead=True,
        )  # fmt: skip
        pieces += _chunks(cell, plan, settings.max_inclusion and method.has_posterior)
    if settings.fdr is not None and method.has_posterior:
        key = f"{settings.fdr} {seed} {N_PERMUTATIONS} {NO_EFFECT_REPEATS}"
        planting = Selection(method, task, blocks[task.rows], settings.fdr, seed, steps)
        pieces.append(_piece(cell, "planted effects", planting, "planted", key))
    if settings.learning_curve:
        curve = Curve(method, task, seed, steps)
        pieces.append(_piece(cell, "learning curve", curve, "learningcurve", f"{seed}"))
    return InferencePlan(cell, plan, tuple(pieces))


def _chunks(cell: PlannedCell, plan: PermutationPlan, keep: bool) -> Iterator[Job]:
    """The permutations of a cell, whole chunks: more permutations keep those that are there."""
    before, score = 0, mean_balanced_accuracy if is_unequal(cell.task.y) else None
    for number, chunk in enumerate(plan.chunks, start=1):
        labels = np.ascontiguousarray(plan.labels[:, chunk])
        key = f"{digest(labels)} {keep}" + " balanced" * (score is not None)
        work = LabelVectors(cell.method, cell.task.rows, labels, keep, score)
        piece = _piece(cell, "permutations", work, f"permutations-{number:04d}", key)
        yield replace(piece, permutations=plan.done(chunk) - before)
        before = plan.done(chunk)


def _piece(
    cell: PlannedCell, name: str, work: LabelVectors | Selection | Curve, ending: str, key: str
) -> Job:
    path = cell.path.with_name(cell.path.name.replace("_fits.npz", f"_{ending}.npz"))
    label = f"{cell.task.label}, {cell.method.label}: {name}"
    return make_job(label, work, path, cell.fingerprint, ending, key)


def open_jobs(plans: Sequence[InferencePlan], resume: bool, steps: Preparation) -> list[Round]:
    """What has no answer yet, permutations first; where folds prepare X, cells do theirs together."""
    missing = [[piece for piece in plan.pieces if not (resume and is_stored(piece))] for plan in plans]
    chunks = [[piece for piece in pieces if piece.permutations] for pieces in missing]
    others = [piece for pieces in missing for piece in pieces if not piece.permutations]
    if steps.shared:
        rounds: list[tuple[tuple[Job, ...], Any]] = [
            ((piece,), piece.work.rows) for pieces in chunks for piece in pieces
        ]
    else:
        rows = np.unique([row for plan in plans for row in plan.cell.task.rows])
        rounds = [(each, rows) for each in _rounds(chunks)]
    jobs = [Round(NullWork(tuple(p.work for p in each), steps, rows), each) for each, rows in rounds]
    return jobs + [Round(piece.work, (piece,)) for piece in others]


def _rounds(chunks: Sequence[Sequence[Job]]) -> list[tuple[Job, ...]]:
    """Some chunks of every cell at a time: the more, the fewer times every fold prepares its X."""
    longest = max(map(len, chunks), default=0)
    starts = range(0, longest, _CHUNKS_TOGETHER)
    return [tuple(piece for each in chunks for piece in each[at : at + _CHUNKS_TOGETHER]) for at in starts]


def collect(
    plans: Sequence[InferencePlan], jobs: Sequence[Round], answers: Iterator[Any], console: Console
) -> list[CellInference]:
    """Store the answers to the open ``jobs`` as they come, then put those of each cell together."""
    troubles: dict[Path, str] = {}
    permuting = [job for job in jobs if job.permutations]
    if permuting:
        total = sum(piece.permutations for plan in plans for piece in plan.chunks)
        console.start(total, total - sum(job.permutations for job in permuting), "permutations")
        for job in permuting:
            troubles |= store_answer(job.pieces, next(answers), console)
            console.advance(_told(job), minor=True, by=job.permutations)
    others = jobs[len(permuting) :]
    if others:
        console.start(len(others))
        for job in others:
            troubles |= store_answer(job.pieces, next(answers), console)
            console.advance(_told(job), minor=True)
    return [_together(plan, troubles) for plan in plans]


def _told(job: Round) -> str:
    """What a round was about, for the progress line."""
    more = len(job.pieces) - 1
    return job.pieces[0].label + (f" and {more} more" if more else "")


def _together(plan: InferencePlan, troubles: dict[Path, str]) -> CellInference:
    """The answers about a cell, read back from their files, so that a resumed run has the same."""
    mine = [troubles[piece.path] for piece in plan.pieces if piece.path in troubles]
    if mine:
        return CellInference(trouble=mine[0])
    chunks: list[NullStatistics] = []
    found: dict[str, Any] = {}
    for piece in plan.pieces:
        arrays = load_arrays(piece.path)
        if isinstance(piece.work, LabelVectors):
            chunks.append(read_null(arrays))
        elif isinstance(piece.work, Selection):
            found["selection"], found["planted"] = piece.work.read(arrays)
        else:
            found["curve"], found["farther"] = piece.work.read(arrays)
    if plan.permutation is not None:
        found["permutation"] = plan.permutation.joined(plan.cell.method.name, chunks)
    return CellInference(**found)
