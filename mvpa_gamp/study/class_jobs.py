"""All classes together in a study: one joint solve per method, its answers stored, and their null."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp._version import __version__
from mvpa_gamp.decoding.classes import score_classes
from mvpa_gamp.decoding.designs import Classes
from mvpa_gamp.decoding.fit import Scheme, fit_pairs
from mvpa_gamp.decoding.folds import Folds
from mvpa_gamp.decoding.groups import Side, file_side
from mvpa_gamp.decoding.null import LabelVectors
from mvpa_gamp.decoding.permutation import PermutationPlan, plan_permutations
from mvpa_gamp.decoding.preparation import Preparation
from mvpa_gamp.decoding.scores import HeldOut, held_out_answers
from mvpa_gamp.imaging.samples import Samples
from mvpa_gamp.methods.fold_fits import FoldFits, Method
from mvpa_gamp.results.cell import Subject
from mvpa_gamp.results.class_files import AllClasses, maps_by_class, write_class_table, write_classes
from mvpa_gamp.results.files import write_npz
from mvpa_gamp.results.names import ALL_CLASSES, ResultsFolder
from mvpa_gamp.results.stored_fits import load_arrays, load_fits
from mvpa_gamp.study.cells import PlannedCell, stored
from mvpa_gamp.study.inference_jobs import NullWork, read_null
from mvpa_gamp.study.jobs import Job, digest, make_job, unanswered
from mvpa_gamp.study.preparing import StudyPreparation, exchange_of
from mvpa_gamp.study.settings import StudySettings

Key = tuple[str, str]  # names of method and comparison


class ClassWork(NamedTuple):
    """Every pair of classes on every fold, and the refits, of one method: columns of one solve."""

    method: Method
    classes: Classes
    preparation: Preparation

    def answer(self, X: NDArray, runs: NDArray, connectivity: Any) -> tuple[FoldFits, ...]:
        """The fits of the pairs, with answers to the rows of all classes."""
        (_, _, mine, codes, _), n_classes = self.classes, len(self.classes.names)
        if self.preparation.shared:
            X, runs = X[mine], runs[mine]
        else:  # every condition helps to prepare X, and rows of no class train no pair
            codes = np.full(len(runs), -1)
            codes[mine] = self.classes.codes
        held_out = np.unique(runs[codes >= 0])
        tested = runs[:, None] == held_out
        scheme = Scheme(
            Folds(~tested, tested, held_out), preparation=self.preparation, connectivity=connectivity
        )
        found = fit_pairs(self.method, X, codes, runs, scheme, n_classes=n_classes)
        return tuple(each.at(np.flatnonzero(codes >= 0)) for each in found.fits)


@dataclass(frozen=True)
class ClassPlan:
    """One method on all classes: its joint solve, the cells that come out of it, and its permutations."""

    method: Method
    classes: Classes
    joint: Job
    cells: tuple[PlannedCell, ...]
    permutation: PermutationPlan | None
    nulls: tuple[Job, ...]


def plan_classes(
    settings: StudySettings,
    samples: Samples,
    prepared: StudyPreparation,
    classes: Classes | None,
    cells: Sequence[PlannedCell],
    folder: ResultsFolder,
    data: str,
) -> list[ClassPlan]:
    """A plan per method; ``data`` is the digest of what fits can see."""
    if classes is None:
        return []
    methods = {cell.method.name: cell.method for cell in cells}
    return [
        _plan(settings, samples, prepared, classes, cells, folder, data, method)
        for method in methods.values()
    ]


def _plan(
    settings: StudySettings, samples: Samples, prepared: StudyPreparation, classes: Classes,
    cells: Sequence[PlannedCell], folder: ResultsFolder, data: str, method: Method,
) -> ClassPlan:  # fmt: skip
    path = folder.fits(samples.subject, ALL_CLASSES, method.name)
    named = repr(list(zip(classes.names, classes.members, strict=True)))
    facts = (data, prepared.key, named, method.name, repr(method), __version__)
    label = f"{len(classes.names)} classes, {method.label}"
    work = ClassWork(method, classes, prepared.steps)
    by_name = {cell.task.name: cell for cell in cells if cell.method.name == method.name}
    plan, nulls = None, []
    if settings.permutations and method.is_batched:
        rows = classes.rows
        n, seed = settings.permutations, settings.seed
        within, blocks = exchange_of(samples, classes)
        n_folds = len(np.unique(samples.runs[rows])) if prepared.steps.shared else 1
        plan = plan_permutations(
            classes.codes,
            within,
            samples.X.shape[1],
            n,
            seed=seed,
            blocks=blocks,
            n_folds=n_folds,
            ahead=True,
        )
        for number, chunk in enumerate(plan.chunks, start=1):
            own = path.with_name(path.name.replace("_fits.npz", f"_permutations-{number:04d}.npz"))
            labels = np.ascontiguousarray(plan.labels[:, chunk])
            null = NullWork((LabelVectors(method, rows, labels),), prepared.steps, rows)
            name = f"{label}: {plan.done(chunk):,} of {plan.n:,} permutations"
            nulls.append(make_job(name, null, own, *facts, digest(labels)))
    mine = tuple(by_name[task.name] for task in classes.tasks)
    return ClassPlan(method, classes, make_job(label, work, path, *facts), mine, plan, tuple(nulls))


def open_classes(plans: Sequence[ClassPlan], done: dict[Key, bool], resume: bool) -> list[ClassPlan]:
    """The plans whose joint solve must be made: no stored answer, or a cell without fits."""
    return [
        plan
        for plan in plans
        if unanswered([plan.joint], resume)
        or not all(done[cell.method.name, cell.task.name] for cell in plan.cells)
    ]


def store_classes(plans: Sequence[ClassPlan], answers: Iterator[Any]) -> dict[Key, str | None]:
    """Store the joint answers of open ``plans`` and the fits of their cells; None, or what went wrong."""
    out: dict[Key, str | None] = {}
    for plan in plans:
        answer = next(answers)
        if not isinstance(answer, str):
            said = held_out_answers(answer)
            arrays = {**said._asdict(), "held_out": np.asarray(answer[0].held_out)}
            write_npz(plan.joint.path, {**arrays, "fingerprint": plan.joint.fingerprint})
        for number, cell in enumerate(plan.cells):
            fits = answer if isinstance(answer, str) else _own_fits(answer[number], cell, plan.classes)
            out[cell.method.name, cell.task.name] = stored(cell, fits)
    return out


def _own_fits(fits: FoldFits, cell: PlannedCell, classes: Classes) -> FoldFits:
    """The fits of a pair with its own rows, without folds that hold none of them out."""
    own = fits.at(np.searchsorted(classes.rows, cell.task.rows))
    assert own.tested is not None and own.held_out is not None
    kept = np.flatnonzero(own.tested.any(axis=0))
    changed = own.take(np.append(kept, own.n_folds))
    return replace(changed, tested=own.tested[:, kept], held_out=own.held_out[kept])


def write_all_classes(
    folder: ResultsFolder, subject: Subject, samples: Samples, plans: Sequence[ClassPlan],
    troubles: dict[Path, str],
) -> dict[str, Any]:  # fmt: skip
    """Files of all methods that have an answer; returns the ``classes`` part of summary.json.

    The first method leads; the parts of the others are in ``others``.
    """
    parts = [
        write_classes(folder, subject, plan.method, _found(plan, samples, troubles))
        for plan in plans
        if plan.joint.path.is_file() and all(cell.path.is_file() for cell in plan.cells)
    ]
    if not parts:
        return {}
    write_class_table(folder, subject, parts)
    groups = [list(members) for members in plans[0].classes.members]
    return {"classes": {**parts[0], "members": groups, "others": parts[1:]}}


def _found(plan: ClassPlan, samples: Samples, troubles: dict[Path, str]) -> AllClasses:
    """The answers read back from their files, so that a resumed run has the same."""
    arrays, classes = load_arrays(plan.joint.path), plan.classes
    said = HeldOut(*(arrays[name] for name in HeldOut._fields))
    names = np.array(classes.names)
    scores = score_classes("accuracy", said, classes.codes, names)
    test = None
    if plan.permutation is not None and not any(job.path in troubles for job in plan.nulls):
        parts = [read_null(load_arrays(job.path)) for job in plan.nulls]
        test = plan.permutation.joined(plan.method.name, parts)
    sides = (Side(*both) for both in zip(classes.names, classes.members, strict=True))
    return AllClasses(
        names=classes.names,
        scoring="accuracy",
        held_out=arrays["held_out"],
        fold_scores=scores.fold_scores,
        contrast_scores=scores.contrast_scores,
        class_scores=scores.class_scores if len(names) > 2 else {},
        confusion=scores.confusion,
        predictions=_prediction_rows(samples, classes, said, scores.judged),
        permutation=test,
        maps=maps_by_class([load_fits(cell.path)[0] for cell in plan.cells], len(names)),
        spelled=tuple(file_side(side) for side in sides),
        auc=scores.auc,
    )


def _prediction_rows(samples: Samples, classes: Classes, said: HeldOut, judged: Any) -> list[dict[str, Any]]:
    """A row per held-out volume: what it was taken for, and the probability of each class."""
    rows, names = classes.rows[said.rows], classes.names
    return [
        {
            "sample": row,
            "volume": None if samples.volumes is None else samples.volumes[row],
            "run": samples.shown_runs[row],
            "fold": said.fold[t] + 1,
            "true": names[classes.codes[said.rows[t]]],
            "predicted": names[judged.predicted[t]],
            **{f"probability_{name}": judged.proba[t, k] for k, name in enumerate(names)},
        }
        for t, row in enumerate(rows)
    ]
