"""All classes together, and crosses: one solve per method, its answers stored, and permutations."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp._version import __version__
from mvpa_gamp.decoding.cross import CrossDecoding, cross_decode, cross_null, plan_cross_permutations
from mvpa_gamp.decoding.designs import Classes, Cross
from mvpa_gamp.decoding.fit import Scheme, fit_pairs, joins_classes
from mvpa_gamp.decoding.folds import Folds
from mvpa_gamp.decoding.null import LabelVectors
from mvpa_gamp.decoding.permutation import PermutationPlan
from mvpa_gamp.decoding.preparation import Preparation
from mvpa_gamp.decoding.scores import HeldOut, held_out_answers, score_classes
from mvpa_gamp.decoding.tasks import Side, Task, file_side
from mvpa_gamp.imaging.samples import Samples
from mvpa_gamp.methods.fold_fits import FoldFits, Method
from mvpa_gamp.results.designs import (
    AllClasses,
    CrossFound,
    maps_by_class,
    write_class_table,
    write_classes,
    write_crosses,
)
from mvpa_gamp.results.files import load_arrays, load_fits
from mvpa_gamp.results.names import ALL_CLASSES
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
    stored_null,
)
from mvpa_gamp.study.plan import PlannedCell, Study

_MAP = "map_"  # before the kind of a map by class, in the stored answer of a fit of all classes


class ClassWork(NamedTuple):
    """All classes on every fold, and the refits, of one method: one fit, or one per pair."""

    method: Method
    classes: Classes
    preparation: Preparation

    @property
    def is_one_fit(self) -> bool:
        """Whether the method fits the classes together."""
        return joins_classes(self.method, len(self.classes.tasks))

    def answer(self, X: NDArray, runs: NDArray, connectivity: Any) -> list[Arrays | FoldFits]:
        """What is said about held-out rows of all classes, and the fits of each pair with its own rows.

        Classes that are one fit have their maps instead: their pairs are fitted by themselves, as the
        permutations of a pair are.
        """
        rows, codes = self.classes.rows, self.classes.codes
        if self.preparation.shared:
            X, runs, mine = X[rows], runs[rows], np.arange(rows.size)
        else:  # every condition helps to prepare X, and rows of no class train no pair
            mine, codes = rows, np.full(len(runs), -1)
            codes[rows] = self.classes.codes
        held_out = np.unique(runs[mine])
        tested = runs[:, None] == held_out
        folds = Folds(~tested, tested, held_out)
        scheme = Scheme(folds, preparation=self.preparation, connectivity=connectivity)
        found = fit_pairs(self.method, X, codes, runs, scheme, n_classes=len(self.classes.names))
        fits = [each.at(mine) for each in found.fits]
        said = {**held_out_answers(fits)._asdict(), "held_out": np.asarray(held_out)}
        if self.is_one_fit:
            maps = maps_by_class(fits, len(self.classes.names))
            return [said | {_MAP + stat: values for stat, values in maps.items()}]
        own = [_own_fits(each, task, rows) for each, task in zip(fits, self.classes.tasks, strict=True)]
        return [said, *own]


def _own_fits(fits: FoldFits, task: Task, rows: NDArray) -> FoldFits:
    """The fits of a pair with its own rows, without folds that hold none of them out."""
    own = fits.at(np.searchsorted(rows, task.rows))
    assert own.tested is not None and own.held_out is not None
    kept = np.flatnonzero(own.tested.any(axis=0))
    changed = own.take(np.append(kept, own.n_folds))
    return replace(changed, tested=own.tested[:, kept], held_out=own.held_out[kept])


class ClassJobs(NamedTuple):
    """One method on all classes: its solve, the cells that come out of it, if any, and its permutations."""

    method: Method
    joint: Job
    cells: tuple[PlannedCell, ...]
    permutation: PermutationPlan | None
    nulls: tuple[Job, ...]

    @property
    def round(self) -> Round:
        """The joint solve and everything that it answers."""
        return Round(self.joint.work, (self.joint, *(cell.job for cell in self.cells)))


@dataclass
class AllTogether:
    """All classes by every method; ``joint`` are solves to be made, which answer for cells, too."""

    study: Study
    jobs: Sequence[ClassJobs]
    joint: Sequence[Round]
    phases: Sequence[Phase]

    @classmethod
    def of(cls, study: Study) -> "AllTogether":
        """The jobs of every method; a joint solve is made where it, or a cell of it, has no answer."""
        resume = study.output.resume
        jobs = (
            []
            if study.classes is None
            else [_class_jobs(study, study.classes, each) for each in study.methods]
        )
        joint = [
            each.round
            for each in jobs
            if rounds_of([each.joint], resume) or not study.stored.issuperset(c.path for c in each.cells)
        ]
        nulls = rounds_of([job for each in jobs for job in each.nulls], resume)
        return cls(study, jobs, joint, (Phase(nulls),))

    @property
    def tests(self) -> list[PermutationPlan]:
        """The permutations of all methods."""
        return [each.permutation for each in self.jobs if each.permutation is not None]

    def write(self, answers: Answers) -> dict[str, Any]:
        """Files of all methods that have an answer; the first leads, ``others`` are those of the others."""
        study, classes = self.study, self.study.classes
        parts = [
            write_classes(study.folder, study.subject, each.method, _read(each, classes, study, answers))
            for each in self.jobs
            if classes and each.joint.path.is_file() and all(cell.path.is_file() for cell in each.cells)
        ]
        if not parts or classes is None:
            return {}
        write_class_table(study.folder, study.subject, parts)
        groups = [list(members) for members in classes.members]
        return {"classes": {**parts[0], "members": groups, "others": parts[1:]}}


def _class_jobs(study: Study, classes: Classes, method: Method) -> ClassJobs:
    """The joint solve of a method, and its permutations."""
    settings, rows = study.settings, classes.rows
    path = study.folder.fits(study.samples.subject, ALL_CLASSES, method.name)
    named = repr(list(zip(classes.names, classes.members, strict=True)))
    facts = (study.data, named, method.name, repr(method), __version__)
    label = f"{len(classes.names)} classes, {method.label}"
    joint = make_job(label, path, ClassWork(method, classes, study.steps), *facts)
    by_name = {cell.task.name: cell for cell in study.cells if cell.method.name == method.name}
    cells = () if joint.work.is_one_fit else tuple(by_name[task.name] for task in classes.tasks)
    if not (settings.permutations and method.is_batched):
        return ClassJobs(method, joint, cells, None, ())
    n_voxels = study.samples.X.shape[1]
    plan = study.permutations(classes, classes.codes, n_voxels, by_fold=not study.steps.shared)

    def null(labels: NDArray) -> NullWork:
        return NullWork((LabelVectors(method, rows, labels),), study.steps, rows)

    beside_it = beside(path, "permutations")
    nulls = permutation_jobs(plan, f"{label}: permutations", beside_it, null, *facts)
    return ClassJobs(method, joint, cells, plan, nulls)


def _read(each: ClassJobs, classes: Any, study: Study, answers: Answers) -> AllClasses:
    """The answers read back from their files, so that a resumed run has the same."""
    arrays, names = load_arrays(each.joint.path), np.array(classes.names)
    said = HeldOut(*(arrays[name] for name in HeldOut._fields))
    scores = score_classes("accuracy", said, classes.codes, names)
    test = None
    if each.permutation is not None and not answers.trouble(each.nulls):
        test = permutation_result(each.permutation, each.method.name, each.nulls)
    sides = (Side(*both) for both in zip(classes.names, classes.members, strict=True))
    return AllClasses(
        names=classes.names,
        scoring="accuracy",
        held_out=arrays["held_out"],
        fold_scores=scores.fold_scores,
        contrast_scores=scores.contrast_scores,
        class_scores=scores.class_scores if len(names) > 2 else {},
        confusion=scores.confusion,
        predictions=_prediction_rows(study.samples, classes, said, scores.judged),
        permutation=test,
        maps=_class_maps(each, arrays, len(names)),
        spelled=tuple(file_side(side) for side in sides),
        auc=scores.auc,
    )


def _class_maps(each: ClassJobs, arrays: Arrays, n_classes: int) -> dict[str, NDArray]:
    """Maps by class: those of the fit of all, or the means over the fits of pairs."""
    if each.joint.work.is_one_fit:
        return {name.removeprefix(_MAP): arrays[name] for name in arrays if name.startswith(_MAP)}
    return maps_by_class([load_fits(cell.path)[0] for cell in each.cells], n_classes)


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


_STORED = ("rows", "y", "run", "decision", "proba")
_FITS = tuple(item.name for item in fields(FoldFits) if item.name not in ("parameters", "held_out", "tested"))


class CrossWork(NamedTuple):
    """All crosses of one method: training comparisons and folds are columns of one solve."""

    method: Method
    crosses: tuple[Cross, ...]
    preparation: Preparation

    def answer(self, X: NDArray, runs: NDArray, connectivity: Any) -> list[Arrays]:
        """Decisions about tested rows; of classifiers with chosen training runs also the classifier."""
        scheme = Scheme(preparation=self.preparation, connectivity=connectivity)
        found = cross_decode(self.method, X, self.crosses, runs, scheme)
        out: Arrays = {}
        for number, each in enumerate(found):
            out |= {f"{name}_{number}": np.asarray(getattr(each, name)) for name in _STORED}
            out |= _kept(each, number)
        return [out]

    def read(self, arrays: Arrays) -> list[CrossDecoding]:
        """The way back."""
        return [self._one(arrays, number) for number in range(len(self.crosses))]

    def _one(self, arrays: Arrays, number: int) -> CrossDecoding:
        cross = self.crosses[number]
        known: dict[str, Any] = {name: arrays.get(f"trained_{number}_{name}") for name in _FITS}
        known["status"] = tuple(known["status"].tolist())
        trained = FoldFits(**known, parameters={})
        said: dict[str, Any] = {name: arrays[f"{name}_{number}"] for name in _STORED}
        return CrossDecoding(cross, self.method.name, **said, trained=trained)


def _kept(each: CrossDecoding, number: int) -> Arrays:
    """How the fits ended, and their maps where no comparison's cell has them."""
    maps = ("coef", "coef_std", "inclusion", "pattern", "support")
    names = _FITS if each.cross.train_on else tuple(name for name in _FITS if name not in maps)
    known = {name: getattr(each.trained, name) for name in names}
    arrays = {name: np.asarray(value) for name, value in known.items() if value is not None}
    arrays |= {name: arrays[name].astype(np.float32) for name in maps[:4] if name in arrays}
    if not each.cross.train_on:
        arrays |= {name: np.zeros((0, each.trained.converged.size)) for name in ("coef", "support")}
    return {f"trained_{number}_{name}": value for name, value in arrays.items()}


class CrossNull(NamedTuple):
    """Some permutations of the training labels of one cross."""

    method: Method
    cross: Cross
    labels: NDArray  # (m_train, k)
    preparation: Preparation

    def answer(self, X: NDArray, runs: NDArray, connectivity: Any) -> list[Arrays]:
        """Accuracies of the k label vectors."""
        scheme = Scheme(preparation=self.preparation, connectivity=connectivity)
        return [stored_null(cross_null(self.method, X, self.cross, self.labels, runs, scheme))]


class CrossJobs(NamedTuple):
    """The crosses of one method: the job that decodes, and the jobs of their permutations."""

    method: Method
    job: Job
    nulls: dict[str, tuple[PermutationPlan, tuple[Job, ...]]]  # by name of the cross

    @property
    def jobs(self) -> list[Job]:
        """All of them."""
        return [self.job, *(job for _, jobs in self.nulls.values() for job in jobs)]

    def together(self, cross: Cross, number: int, answers: Answers) -> CrossFound:
        """One cross, read back from the stored answers."""
        if trouble := answers.trouble([self.job]):
            return CrossFound(cross, self.method, None, trouble=trouble)
        found = self.job.read()[number]
        plan, jobs = self.nulls.get(cross.name, (None, ()))
        if trouble := answers.trouble(jobs):
            return CrossFound(cross, self.method, found, trouble=trouble)
        test = None if plan is None else permutation_result(plan, self.method.name, jobs)
        return CrossFound(cross, self.method, found, test)


@dataclass
class Crosses:
    """All crosses by every method."""

    study: Study
    jobs: Sequence[CrossJobs]
    phases: Sequence[Phase]

    @classmethod
    def of(cls, study: Study) -> "Crosses":
        """The jobs of every method."""
        samples = study.samples
        if study.crosses and samples.people is not None and samples.held_out != "participant":
            raise StudyError(
                f"--cross leaves one participant out at a time, got --folds by {samples.held_out}. Leave it "
                "out."
            )
        jobs = [_cross_jobs(study, method) for method in study.methods if study.crosses]
        rounds = rounds_of([job for each in jobs for job in each.jobs], study.output.resume)
        return cls(study, jobs, (Phase(rounds),))

    @property
    def tests(self) -> list[PermutationPlan]:
        """The permutations of all crosses."""
        return [plan for each in self.jobs for plan, _ in each.nulls.values()]

    def write(self, answers: Answers) -> dict[str, Any]:
        """Files of all crosses."""
        if not self.jobs:
            return {}
        study = self.study
        found = [
            each.together(cross, number, answers)
            for number, cross in enumerate(study.crosses)
            for each in self.jobs
        ]
        return write_crosses(study.folder, study.subject, found, study.tasks)


def _cross_jobs(study: Study, method: Method) -> CrossJobs:
    """The jobs of a method; crosses whose comparisons share a condition have no test."""
    settings, steps, crosses = study.settings, study.steps, tuple(study.crosses)
    path = study.folder.fits(study.samples.subject, "cross", method.name)
    named = repr([(cross.label, cross.train.sides, cross.test.sides) for cross in crosses])
    facts = (study.data, named, method.name, repr(method), __version__)
    job = make_job(f"cross-decoding, {method.label}", path, CrossWork(method, crosses, steps), *facts)
    nulls = {}
    for cross in crosses if settings.permutations and method.is_batched else ():
        if not cross.shared:
            scheme = Scheme(preparation=steps, blocks=study.blocks, seed=settings.seed)
            given = study.samples.runs, study.samples.X.shape[1], settings.permutations, scheme
            plan = plan_cross_permutations(cross, *given, ahead=True)

            def null(labels: NDArray, cross: Cross = cross) -> CrossNull:
                return CrossNull(method, cross, labels, steps)

            label, own = f"{cross.label}, {method.label}: permutations", beside(path, cross.name)
            nulls[cross.name] = plan, permutation_jobs(plan, label, own, null, job.fingerprint)
    return CrossJobs(method, job, nulls)
