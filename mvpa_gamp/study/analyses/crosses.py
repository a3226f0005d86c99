"""Cross-decoding in a study: all crosses of a method as one job, permutations as further ones."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp._version import __version__
from mvpa_gamp.decoding.cross import CrossDecoding, cross_decode, cross_null, plan_cross_permutations
from mvpa_gamp.decoding.designs import Cross
from mvpa_gamp.decoding.fit import Scheme
from mvpa_gamp.decoding.permutation import PermutationPlan
from mvpa_gamp.decoding.preparation import Preparation
from mvpa_gamp.methods.fold_fits import FoldFits, Method
from mvpa_gamp.results.designs import CrossFound, write_crosses
from mvpa_gamp.study.errors import StudyError
from mvpa_gamp.study.jobs import (
    Answers,
    Arrays,
    Job,
    Phase,
    beside,
    make_job,
    permutation_jobs,
    permutation_result,
    rounds_of,
    stored_null,
)
from mvpa_gamp.study.plan import Study

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


class MethodJobs(NamedTuple):
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
    jobs: Sequence[MethodJobs]
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
        jobs = [_jobs(study, method) for method in study.methods if study.crosses]
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


def _jobs(study: Study, method: Method) -> MethodJobs:
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
    return MethodJobs(method, job, nulls)
