"""What a study does beyond its table of comparisons: all classes together, and cross-decoding."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mvpa_gamp.decoding.permutation import PermutationPlan
from mvpa_gamp.decoding.tasks import Task
from mvpa_gamp.imaging.samples import Samples
from mvpa_gamp.methods.fold_fits import Method
from mvpa_gamp.results.cell import Subject
from mvpa_gamp.results.names import ResultsFolder
from mvpa_gamp.study.cells import PlannedCell, data_fingerprint
from mvpa_gamp.study.class_jobs import (
    ClassPlan,
    Key,
    open_classes,
    plan_classes,
    store_classes,
    write_all_classes,
)
from mvpa_gamp.study.console import Console
from mvpa_gamp.study.cross_jobs import CrossPlan, plan_crosses, write_all_crosses
from mvpa_gamp.study.jobs import Job, store_answers, unanswered
from mvpa_gamp.study.plan import check_tuning, choose_classes, choose_crosses, members_part
from mvpa_gamp.study.preparing import StudyPreparation
from mvpa_gamp.study.settings import StudySettings


@dataclass(frozen=True)
class Designs:
    """Plans of all methods, and the work that is open: joint solves come first, then other jobs."""

    tasks: Sequence[Task]
    classes: list[ClassPlan]
    crosses: list[CrossPlan]
    joint: list[ClassPlan]  # those of ``classes`` whose solve is to be made
    jobs: list[Job]
    members: dict[str, Any]  # a part of summary.json

    @property
    def tests(self) -> list[PermutationPlan]:
        """The permutations of all classes together and of crosses."""
        whole = [plan.permutation for plan in self.classes if plan.permutation is not None]
        return whole + [test for plan in self.crosses for test, _ in plan.permutations.values()]

    @property
    def replaced(self) -> set[Key]:
        """Cells, by method and comparison, whose fits come out of the joint solves."""
        return {(cell.method.name, cell.task.name) for plan in self.joint for cell in plan.cells}

    def store_joint(self, answers: Iterator[Any]) -> dict[Key, str | None]:
        """Take the first answers; what went wrong with each cell, or None."""
        return store_classes(self.joint, answers)

    def store_jobs(self, answers: Iterator[Any], console: Console) -> dict[Path, str]:
        """Take the last answers; the troubles of those without one."""
        return store_answers(self.jobs, answers, console)

    def write(
        self, folder: ResultsFolder, subject: Subject, samples: Samples, troubles: dict[Path, str]
    ) -> dict[str, Any]:
        """Write files; returns parts of summary.json."""
        return {
            **write_all_classes(folder, subject, samples, self.classes, troubles),
            **write_all_crosses(folder, subject, self.crosses, self.tasks, troubles),
            **self.members,
        }


def plan_designs(
    settings: StudySettings, samples: Samples, prepared: StudyPreparation, tasks: Sequence[Task],
    methods: Sequence[Method], cells: Sequence[PlannedCell], done: Sequence[bool], folder: ResultsFolder,
    resume: bool,
) -> Designs:  # fmt: skip
    """Everything that is asked for, refused before the first fit where it cannot be."""
    classes = choose_classes(settings.classes, samples)
    crosses = choose_crosses(settings.cross, settings.cross_session, samples, tasks)
    check_tuning(methods, crosses, samples.runs)
    data = data_fingerprint(samples) if classes or crosses else ""
    by_class = plan_classes(settings, samples, prepared, classes, cells, folder, data)
    by_cross = plan_crosses(settings, samples, prepared, crosses, methods, folder, data)
    known = {(c.method.name, c.task.name): finished for c, finished in zip(cells, done, strict=True)}
    later = [*(job for plan in by_class for job in plan.nulls), *(j for plan in by_cross for j in plan.jobs)]
    return Designs(
        tasks=tasks,
        classes=by_class,
        crosses=by_cross,
        joint=open_classes(by_class, known, resume),
        jobs=unanswered(later, resume),
        members=members_part(samples, tasks),
    )
