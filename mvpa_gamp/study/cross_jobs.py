"""Cross-decoding in a study: all crosses of a method as one piece of work, permutations as further ones."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp._version import __version__
from mvpa_gamp.decoding.cross import CrossDecoding, cross_decode, cross_null, plan_cross_permutations
from mvpa_gamp.decoding.cross_tasks import Cross
from mvpa_gamp.decoding.fit import Scheme
from mvpa_gamp.decoding.permutation import PermutationPlan
from mvpa_gamp.decoding.preparation import Preparation
from mvpa_gamp.decoding.tasks import Task
from mvpa_gamp.imaging.samples import Samples
from mvpa_gamp.methods.fold_fits import FoldFits, Method
from mvpa_gamp.results.cell import Subject
from mvpa_gamp.results.cross_files import CrossFound, write_crosses
from mvpa_gamp.results.names import ResultsFolder
from mvpa_gamp.results.stored_fits import load_arrays
from mvpa_gamp.study.errors import StudyError
from mvpa_gamp.study.inference_jobs import Arrays, read_null, stored_null
from mvpa_gamp.study.jobs import Job, digest, make_job
from mvpa_gamp.study.preparing import StudyPreparation, blocks_of
from mvpa_gamp.study.settings import StudySettings

_STORED = ("rows", "y", "run", "decision", "proba")
_FITS = tuple(item.name for item in fields(FoldFits) if item.name not in ("parameters", "held_out", "tested"))


class CrossWork(NamedTuple):
    """All crosses of one method: training comparisons and folds are columns of one solve."""

    method: Method
    crosses: tuple[Cross, ...]
    preparation: Preparation

    def answer(self, X: NDArray, runs: NDArray, connectivity: Any) -> Arrays:
        """Decisions about tested rows; of classifiers with chosen training runs also the classifier."""
        scheme = Scheme(preparation=self.preparation, connectivity=connectivity)
        found = cross_decode(self.method, X, self.crosses, runs, scheme)
        out: Arrays = {}
        for number, each in enumerate(found):
            out |= {f"{name}_{number}": np.asarray(getattr(each, name)) for name in _STORED}
            out |= _kept(each, number)
        return out

    def read(self, arrays: Arrays, number: int) -> CrossDecoding:
        """The way back."""
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

    def answer(self, X: NDArray, runs: NDArray, connectivity: Any) -> Arrays:
        """Accuracies of the k label vectors."""
        scheme = Scheme(preparation=self.preparation, connectivity=connectivity)
        return stored_null(cross_null(self.method, X, self.cross, self.labels, runs, scheme))


@dataclass(frozen=True)
class CrossPlan:
    """The crosses of one method: the job that decodes, and the jobs of their permutations."""

    method: Method
    crosses: tuple[Cross, ...]
    job: Job
    permutations: dict[str, tuple[PermutationPlan, tuple[Job, ...]]]  # by name of the cross

    @property
    def jobs(self) -> list[Job]:
        """All of them."""
        return [self.job, *(job for _, jobs in self.permutations.values() for job in jobs)]


def plan_crosses(
    settings: StudySettings, samples: Samples, prepared: StudyPreparation, crosses: Sequence[Cross],
    methods: Sequence[Method], folder: ResultsFolder, data: str,
) -> list[CrossPlan]:  # fmt: skip
    """A plan per method; ``data`` is the digest of what fits can see."""
    if not crosses:
        return []
    if samples.people is not None and samples.held_out != "participant":
        raise StudyError(
            f"--cross leaves one participant out at a time, got --folds by {samples.held_out}. Leave it out."
        )
    out = []
    for method in methods:
        path = folder.fits(samples.subject, "cross", method.name)
        facts = (data, prepared.key, repr([_digest(cross) for cross in crosses]), method.name)
        work = CrossWork(method, tuple(crosses), prepared.steps)
        job = make_job(f"cross-decoding, {method.label}", work, path, *facts, repr(method), __version__)
        tested = [c for c in crosses if settings.permutations and method.is_batched and not c.shared]
        nulls = {c.name: _null_jobs(settings, samples, c, job) for c in tested}
        out.append(CrossPlan(method, tuple(crosses), job, nulls))
    return out


def _digest(cross: Cross) -> tuple[Any, ...]:
    return cross.label, cross.train.sides, cross.test.sides


def _null_jobs(
    settings: StudySettings, samples: Samples, cross: Cross, job: Job
) -> tuple[PermutationPlan, tuple[Job, ...]]:
    n, seed, n_voxels = settings.permutations, settings.seed, samples.X.shape[1]
    method, preparation = job.work.method, job.work.preparation
    scheme = Scheme(preparation=preparation, blocks=blocks_of(samples), seed=seed)
    plan = plan_cross_permutations(cross, samples.runs, n_voxels, n, scheme, ahead=True)
    jobs = []
    for number, chunk in enumerate(plan.chunks, start=1):
        ending = f"_{cross.name}-{number:04d}.npz"
        path = job.path.with_name(job.path.name.replace("_fits.npz", ending))
        label = f"{cross.label}, {method.label}: permutations {number} of {len(plan.chunks)}"
        work = CrossNull(method, cross, np.ascontiguousarray(plan.labels[:, chunk]), preparation)
        jobs.append(make_job(label, work, path, job.fingerprint, cross.name, digest(work.labels)))
    return plan, tuple(jobs)


def write_all_crosses(
    folder: ResultsFolder, subject: Subject, plans: Sequence[CrossPlan], tasks: Sequence[Task],
    troubles: dict[Path, str],
) -> dict[str, Any]:  # fmt: skip
    """Files of all crosses; returns the ``cross`` part of summary.json."""
    if not plans:
        return {}
    found = [_found(plan, number, troubles) for number in range(len(plans[0].crosses)) for plan in plans]
    return write_crosses(folder, subject, found, tasks)


def _found(plan: CrossPlan, number: int, troubles: dict[Path, str]) -> CrossFound:
    """One cross by one method, read back from the stored answers."""
    cross = plan.crosses[number]
    if plan.job.path in troubles:
        return CrossFound(cross, plan.method, None, trouble=troubles[plan.job.path])
    found = plan.job.work.read(load_arrays(plan.job.path), number)
    permutations, jobs = plan.permutations.get(cross.name, (None, ()))
    if trouble := next((troubles[job.path] for job in jobs if job.path in troubles), ""):
        return CrossFound(cross, plan.method, found, trouble=trouble)
    test = None
    if permutations is not None:
        parts = [read_null(load_arrays(job.path)) for job in jobs]
        test = permutations.joined(plan.method.name, parts)
    return CrossFound(cross, plan.method, found, test)
