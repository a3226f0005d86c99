"""Inference beyond the table: permutations, selections, curves, single voxels, forced choice."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.decoding.calibration import N_PERMUTATIONS, FdrSelection, calibrate
from mvpa_gamp.decoding.discoveries import (
    NO_EFFECT_REPEATS,
    PlantedCheck,
    PlantedEffect,
    Planting,
    planted_check,
    planted_count,
)
from mvpa_gamp.decoding.fit import Scheme
from mvpa_gamp.decoding.group import people_scores
from mvpa_gamp.decoding.learning_curve import Extrapolation, LearningCurve, learning_curve
from mvpa_gamp.decoding.localisation import carries_information
from mvpa_gamp.decoding.null import LabelVectors
from mvpa_gamp.decoding.permutation import PermutationPlan
from mvpa_gamp.decoding.preparation import Preparation
from mvpa_gamp.decoding.scores import held_out_answers, is_unequal, mean_balanced_accuracy
from mvpa_gamp.decoding.tasks import Task
from mvpa_gamp.methods.fold_fits import Method
from mvpa_gamp.report.words import compared_with
from mvpa_gamp.results.files import load_fits
from mvpa_gamp.results.inference import CellInference, write_inference, write_information
from mvpa_gamp.results.tables import write_people
from mvpa_gamp.study.comparisons import exchange_of
from mvpa_gamp.study.ending import StudyError
from mvpa_gamp.study.jobs import (
    Answers,
    Arrays,
    Job,
    NullWork,
    Phase,
    Round,
    beside,
    make_job,
    permutation_jobs,
    permutation_result,
    rounds_of,
)
from mvpa_gamp.study.plan import PlannedCell, Study
from mvpa_gamp.study.settings import INFERENCE, StudySettings

_FEWEST_RUNS = 3  # of a learning curve
_CHUNKS_TOGETHER = 2  # of a cell, up to 100 permutations: their summed inclusions are held for a whole round
_FARTHER = (1.5, 2.0, 3.0)  # times the runs at hand, for which a learning curve is extrapolated


class Selection(NamedTuple):
    """The selection of one cell at a false-discovery rate, and the planted check of that rate.

    Where folds prepare X, both are of X as the refit prepares it.
    """

    method: Method
    task: Task
    blocks: NDArray
    fdr: float
    seed: int
    preparation: Preparation

    def answer(self, X: NDArray, runs: NDArray, connectivity: Any) -> list[Arrays]:
        """Strengths and selected voxels (N,); effects (K, 9) and what they were planted with."""
        scheme = Scheme(
            rows=self.task.rows, preparation=self.preparation, connectivity=connectivity, blocks=self.blocks,
            seed=self.seed,
        )  # fmt: skip
        given = self.method, X, self.task.y, runs, scheme
        calibration = calibrate(*given)
        chosen = calibration.select(self.fdr, of="voxel")
        arrays = {
            "strength": chosen.strength,
            "selected": chosen.selected,
            "chosen": np.array([chosen.estimate, chosen.pvalue, chosen.n, chosen.smallest]),
        }
        if chosen.smallest > self.fdr:  # nothing can be selected, whatever is planted
            return [arrays]
        planting = Planting(planted_count(X.shape[1]))
        found = planted_check(*given, planting, fdr=self.fdr, calibration=calibration, of="voxel")
        arrays["effects"] = np.array(found.effects)
        arrays["planted"] = np.array([found.n_planted, found.n_repeats, found.resemblance])
        return [arrays]

    def read(self, arrays: Arrays) -> tuple[FdrSelection, PlantedCheck | None]:
        """The way back."""
        estimate, pvalue, n, smallest = arrays["chosen"].tolist()
        maps = arrays["strength"], arrays["selected"]
        chosen = FdrSelection(
            self.method.name, self.fdr, *maps, estimate, pvalue, int(n), smallest, self.seed, of="voxel"
        )
        if "planted" not in arrays:
            return chosen, None
        n_planted, n_repeats, resemblance = arrays["planted"].tolist()
        found = (PlantedEffect(*row) for row in arrays["effects"].tolist())
        effects = tuple(each._replace(n_repeats=int(each.n_repeats)) for each in found)
        sizes = int(n_planted), int(n_repeats), resemblance
        return chosen, PlantedCheck(self.method.name, self.fdr, *sizes, self.seed, effects, of="voxel")


class Curve(NamedTuple):
    """The learning curve of one cell."""

    method: Method
    task: Task
    seed: int
    preparation: Preparation

    def answer(self, X: NDArray, runs: NDArray, connectivity: Any) -> list[Arrays]:
        """The measured and the predicted curve, and how it goes on if that may be said."""
        scheme = Scheme(None, self.task.rows, self.preparation, connectivity, seed=self.seed)
        found = learning_curve(self.method, X, self.task.y, runs, scheme)
        sizes = [] if found.refusal else [round(share * found.n_runs) for share in _FARTHER]
        farther = [found.extrapolate(size) for size in sizes]
        stored = {f.name: np.asarray(getattr(found, f.name)) for f in fields(found) if f.name != "model"}
        return [{**stored, "farther": np.array(farther).reshape(-1, len(Extrapolation._fields))}]

    def read(self, arrays: Arrays) -> tuple[LearningCurve, tuple[Extrapolation, ...]]:
        """The way back."""
        known: dict[str, Any] = {
            f.name: arrays[f.name] if arrays[f.name].ndim else arrays[f.name].item()
            for f in fields(LearningCurve)
            if f.name != "model"
        }
        farther = tuple(Extrapolation(int(runs), *values) for runs, *values in arrays["farther"].tolist())
        return LearningCurve(**known, model=None), farther


class CellJobs(NamedTuple):
    """What is asked about one cell: permutations, the selection, the curve."""

    cell: PlannedCell
    permutation: PermutationPlan | None = None
    nulls: tuple[Job, ...] = ()
    others: tuple[Job, ...] = ()

    def together(self, answers: Answers) -> CellInference:
        """The answers, read back from their files, so that a resumed run has the same."""
        if trouble := answers.trouble([*self.nulls, *self.others]):
            return CellInference(trouble=trouble)
        found: dict[str, Any] = {}
        for job in self.others:
            names = ("selection", "planted") if isinstance(job.work, Selection) else ("curve", "farther")
            found |= zip(names, job.read(), strict=True)
        if self.permutation is not None:
            found["permutation"] = permutation_result(self.permutation, self.cell.method.name, self.nulls)
        return CellInference(**found)


@dataclass
class Inference:
    """Permutation tests, selections and learning curves of the cells that they are for."""

    study: Study
    jobs: Sequence[CellJobs]
    phases: Sequence[Phase]

    @classmethod
    def of(cls, study: Study) -> "Inference":
        """The jobs of every cell; permutations come first."""
        settings, n_runs = study.settings, len(np.unique(study.samples.runs))
        if settings.learning_curve and n_runs < _FEWEST_RUNS:
            raise StudyError(
                f"--learning-curve needs {_FEWEST_RUNS} runs or more, got {n_runs}. Leave it out."
            )
        samples = study.samples
        if settings.fdr is not None and samples.people is not None and samples.held_out != "participant":
            raise StudyError(
                "--fdr is calibrated with whole participants held out, got --folds by "
                f"{samples.held_out}. Leave out one of them."
            )
        asked = settings.has_inference
        jobs = [_cell_jobs(study, cell) for cell in study.cells if asked and cell.method.is_batched]
        resume = study.output.resume
        nulls = [job for each in jobs for job in each.nulls]
        permutations = Phase(
            _null_rounds(study, jobs), sum(job.permutations for job in nulls), "permutations"
        )
        others = rounds_of([job for each in jobs for job in each.others], resume)
        return cls(study, jobs, (permutations, Phase(others)))

    @property
    def tests(self) -> list[PermutationPlan]:
        """The permutations of all cells."""
        return [each.permutation for each in self.jobs if each.permutation is not None]

    def write(self, answers: Answers) -> dict[str, Any]:
        """The files of the cells that have fits."""
        settings = self.study.settings
        if not settings.has_inference:
            return {}
        known = [
            (self.study.files(each.cell), load_fits(each.cell.path)[0], each.together(answers))
            for each in self.jobs
            if each.cell.path in answers.written
        ]
        asked = {name: getattr(settings, name) for name in INFERENCE}
        return {"inference": write_inference(self.study.folder, asked, known)}


def _cell_jobs(study: Study, cell: PlannedCell) -> CellJobs:
    """Everything that is asked about a cell."""
    settings, method, task, seed = study.settings, cell.method, cell.task, study.settings.seed
    known, blocks, others = cell.job.fingerprint, study.blocks[task.rows], []
    plan: PermutationPlan | None = None
    nulls: tuple[Job, ...] = ()
    if settings.permutations:
        n_voxels = study.samples.X.shape[1]
        plan = study.permutations(task, task.y, n_voxels, by_fold=not study.steps.shared)
        keep = settings.max_inclusion and method.has_posterior
        score = mean_balanced_accuracy if is_unequal(task.y) else None

        def asked(labels: NDArray) -> LabelVectors:
            return LabelVectors(method, task.rows, labels, keep, score)

        path, facts = beside(cell.path, "permutations"), (known, f"{keep} {score is not None}")
        nulls = permutation_jobs(plan, f"{cell.label}: permutations", path, asked, *facts)
    if settings.fdr is not None and method.has_posterior:
        work: Selection | Curve = Selection(method, task, blocks, settings.fdr, seed, study.steps)
        facts = (known, f"{settings.fdr} {seed} {N_PERMUTATIONS} {NO_EFFECT_REPEATS}")
        path = beside(cell.path, "planted")
        others.append(make_job(f"{cell.label}: planted effects", path, work, "planted", *facts))
    if settings.learning_curve:
        work, path = Curve(method, task, seed, study.steps), beside(cell.path, "learningcurve")
        others.append(
            make_job(f"{cell.label}: learning curve", path, work, "learningcurve", known, f"{seed}")
        )
    return CellJobs(cell, plan, nulls, tuple(others))


def _null_rounds(study: Study, jobs: Sequence[CellJobs]) -> list[Round]:
    """Permutations without an answer, chunk by chunk; where folds prepare X, cells do theirs together."""
    steps, resume = study.steps, study.output.resume
    missing = [[job for job in each.nulls if not (resume and job.is_stored)] for each in jobs]
    if steps.shared:
        return [
            Round(NullWork((job.work,), steps, job.work.rows), (job,)) for each in missing for job in each
        ]
    rows = np.unique([row for each in jobs for row in each.cell.task.rows])
    out = []
    for at in range(0, max(map(len, missing), default=0), _CHUNKS_TOGETHER):
        some = tuple(job for each in missing for job in each[at : at + _CHUNKS_TOGETHER])
        out.append(Round(NullWork(tuple(job.work for job in some), steps, rows), some))
    return out


@dataclass
class Information:
    """Which voxels carry information about the labels, from as many permutations; needs no fit."""

    study: Study
    phases: Sequence[Phase] = ()
    tests: Sequence[PermutationPlan] = ()

    def write(self, answers: Answers) -> dict[str, Any]:
        """Test every voxel of every comparison."""
        study, n, seed = self.study, self.study.settings.permutations, self.study.settings.seed
        if not n:
            return {}
        X, found = study.prepared.voxels(study.samples.X), []
        for task in study.tasks:
            within, blocks = exchange_of(study.samples, task)
            found.append((task, carries_information(X[task.rows], task.y, within, n, seed, blocks=blocks)))
        return {"information": write_information(study.folder, study.subject, found)}


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
    fastest = ". Fastest: --methods vamp-sbg, the method that answers on the page"
    return said + (fastest if len(methods) > 1 and "vamp-sbg" in {m.name for m in methods} else "") + "."


def fewer_words(earlier: int, asked: int, plans: Sequence[PermutationPlan]) -> str:
    """That a resumed run has fewer permutations than the one before; "" where all arrangements are used."""
    if not 0 < asked < earlier or all(plan.is_exact for plan in plans):
        return ""
    return (
        f"{asked:,} permutations were asked for, {earlier:,} in the run before: its results are replaced by "
        f"those of {asked:,}."
    )


@dataclass
class People:
    """Needs no jobs: it reads the fits of the comparisons, and their permutation tests."""

    study: Study
    inference: Inference
    phases: Sequence[Phase] = ()
    tests: Sequence[PermutationPlan] = ()

    def write(self, answers: Answers) -> dict[str, Any]:
        """The table of all cells that have fits."""
        samples = self.study.samples
        if samples.people is None:
            return {}
        tests = {each.cell.path: each.together(answers).permutation for each in self.inference.jobs}
        by_person, found = samples.held_out == "participant", []
        for cell in (cell for cell in self.study.cells if cell.path in answers.written):
            said = held_out_answers([load_fits(cell.path)[0]])
            people, y = samples.people[cell.task.rows][said.rows], cell.task.y[said.rows]
            scores = people_scores(said.decision[:, 0], y, people, tests.get(cell.path), by_person)
            found.append((self.study.files(cell), scores))
        return write_people(self.study.folder, self.study.subject.name, found)
