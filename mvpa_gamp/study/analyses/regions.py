"""Regions of an atlas in a study: what of a map lies in each, and with --by-region how well each decodes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.decoding.fit import Scheme
from mvpa_gamp.decoding.localisation import (
    FEWEST_VOXELS,
    RegionNull,
    RegionScores,
    join_scores,
    others,
    region_null,
    region_scores,
)
from mvpa_gamp.decoding.permutation import PermutationPlan
from mvpa_gamp.decoding.preparation import Preparation
from mvpa_gamp.imaging.regions import Regions
from mvpa_gamp.methods.fold_fits import Method
from mvpa_gamp.results.files import load_fits
from mvpa_gamp.results.regions import CellRegions, write_regions
from mvpa_gamp.study.ending import StudyError
from mvpa_gamp.study.jobs import (
    Answers,
    Arrays,
    Job,
    Phase,
    beside,
    make_job,
    permutation_jobs,
    rounds_of,
)
from mvpa_gamp.study.plan import PlannedCell, Study
from mvpa_gamp.study.settings import StudySettings

_PRODUCTS = 2e9  # rows x voxels x fits of a job: about half a minute, which an interruption may lose


class RegionFolds(NamedTuple):
    """The folds of some regions of one cell."""

    method: Method
    own: NDArray  # (m,) rows of the comparison
    y: NDArray
    regions: tuple[NDArray, ...]  # numbers of the voxels of each
    preparation: Preparation

    def answer(self, X: NDArray, runs: NDArray, connectivity: Any) -> list[Arrays]:
        """Accuracies of the regions."""
        scheme = Scheme(None, self.own, self.preparation, connectivity)
        return [region_scores(self.method, X, self.y, runs, self.regions, scheme)._asdict()]

    def read(self, arrays: Arrays) -> RegionScores:
        """The way back."""
        return RegionScores(arrays["accuracy"], arrays["n_failed"])


class RegionPermutations(NamedTuple):
    """Some permutations of some regions of one cell."""

    method: Method
    own: NDArray  # (m,) rows of the comparison
    labels: NDArray  # (m, k)
    regions: tuple[NDArray, ...]
    preparation: Preparation

    def answer(self, X: NDArray, runs: NDArray, connectivity: Any) -> list[Arrays]:
        """Accuracies of the regions, a row each."""
        scheme = Scheme(None, self.own, self.preparation, connectivity)
        return [region_null(self.method, X, self.labels, runs, self.regions, scheme)._asdict()]

    def read(self, arrays: Arrays) -> RegionNull:
        """The way back."""
        return RegionNull(*(arrays[name] for name in RegionNull._fields))


def portions(sizes: Sequence[int], n_rows: int, n_fits: int) -> list[list[int]]:
    """Regions, by their places, that make up one job each; by sizes alone, whatever the workers."""
    out: list[list[int]] = []
    work = np.inf
    for place, size in enumerate(sizes):
        each = float(n_rows) * (size + n_rows) * n_fits
        if work + each > _PRODUCTS:
            out.append([])
            work = 0.0
        out[-1].append(place)
        work += each
    return out


class CellJobs(NamedTuple):
    """The jobs of one cell; ``tested`` are the places of the regions that are large enough.

    ``without``: of all voxels but those of each region.
    """

    cell: PlannedCell
    without: bool
    permutation: PermutationPlan | None
    tested: tuple[int, ...]
    observed: tuple[Job, ...]  # some regions each
    nulls: tuple[tuple[Job, ...], ...]  # the chunks of permutations, for some regions each

    @property
    def jobs(self) -> list[Job]:
        """All of them."""
        return [*self.observed, *(job for jobs in self.nulls for job in jobs)]

    def together(self, answers: Answers, known: CellRegions) -> CellRegions:
        """What is ``known`` and these answers, read back from their files: a resumed run has the same."""
        if trouble := answers.trouble(self.jobs):
            return replace(known, trouble=trouble)
        nulls = [[job.read() for job in jobs] for jobs in self.nulls]
        test = join_scores([job.read() for job in self.observed], self.permutation, nulls)
        what: dict[str, Any] = {"without": test} if self.without else {"test": test}
        return replace(known, tested=self.tested, **what)


@dataclass
class ByRegion:
    """The regions of all cells, and the jobs of those of a GAMP method where --by-region asks for them."""

    study: Study
    jobs: Sequence[CellJobs]
    phases: Sequence[Phase]
    tests: Sequence[PermutationPlan] = ()  # the same as those of the cells

    @classmethod
    def of(cls, study: Study) -> "ByRegion":
        """The jobs of every cell."""
        regions, cells = study.subject.regions, []
        if regions is not None and study.settings.by_region:
            tested = tuple(np.flatnonzero(regions.sizes >= FEWEST_VOXELS).tolist())
            if not tested:
                raise StudyError(
                    f"--by-region: no region of {regions.atlas} has {FEWEST_VOXELS} voxels or more in the "
                    "mask. Give an atlas of larger regions, or a larger mask."
                )
            kinds = (False, True) if study.settings.without_region else (False,)
            cells = [
                _cell_jobs(study, cell, regions, tested, without)
                for cell in study.cells
                if cell.method.is_batched
                for without in kinds
            ]
        rounds = rounds_of([job for each in cells for job in each.jobs], study.output.resume)
        return cls(study, cells, (Phase(rounds),))

    def write(self, answers: Answers) -> dict[str, Any]:
        """The tables of the cells that have fits."""
        study, regions = self.study, self.study.subject.regions
        if regions is None:
            return {}
        found: dict[Any, CellRegions] = {}
        for each in self.jobs:
            found[each.cell.path] = each.together(answers, found.get(each.cell.path, CellRegions()))
        known = [
            (study.files(cell), load_fits(cell.path)[0], found.get(cell.path, CellRegions()))
            for cell in study.cells
            if cell.path in answers.written
        ]
        by_region = study.settings.by_region
        asked = {
            "atlas": regions.atlas,
            "by_region": by_region,
            "without_region": study.settings.without_region,
            "permutations": study.settings.permutations if by_region else 0,
        }
        return {"regions": write_regions(study.folder, study.subject, regions, known, asked)}


def _cell_jobs(
    study: Study, cell: PlannedCell, regions: Regions, tested: tuple[int, ...], without: bool
) -> CellJobs:
    """The folds of some regions each, or of all voxels without each, and their permutations."""
    settings, method, task = study.settings, cell.method, cell.task
    runs = study.samples.runs[task.rows]
    used = [others(regions, place) if without else regions.voxels(place) for place in tested]
    sizes, n_folds = [len(voxels) for voxels in used], len(np.unique(runs))
    what, ends = ("without regions", "without") if without else ("regions", "regions")

    def groups(n_fits: int) -> list[tuple[NDArray, ...]]:
        parts = portions(sizes, len(task.rows), n_fits)
        return [tuple(used[k] for k in part) for part in parts]

    observed = []
    for number, voxels in enumerate(some := groups(n_folds), start=1):
        work = RegionFolds(method, task.rows, task.y, voxels, study.steps)
        label, ending = f"{cell.label}: {what} {number} of {len(some)}", f"{ends}-{number:04d}"
        facts = (cell.job.fingerprint, ending, *_known(voxels))
        observed.append(make_job(label, beside(cell.path, ending), work, *facts))
    if not settings.permutations:
        return CellJobs(cell, without, None, tested, tuple(observed), ())
    plan = study.permutations(task, task.y, max(sizes))
    nulls = []
    for number, voxels in enumerate(some := groups(n_folds * plan.chunk_size), start=1):

        def null(labels: NDArray, voxels: tuple[NDArray, ...] = voxels) -> RegionPermutations:
            return RegionPermutations(method, task.rows, labels, voxels, study.steps)

        label = f"{cell.label}: {what} {number} of {len(some)}, permutations"
        path = beside(cell.path, f"{ends}-{number:04d}-permutations")
        nulls.append(permutation_jobs(plan, label, path, null, cell.job.fingerprint, *_known(voxels)))
    return CellJobs(cell, without, plan, tested, tuple(observed), tuple(nulls))


def _known(voxels: Sequence[NDArray]) -> list[str]:
    """What some regions are known by."""
    return [sha256(np.ascontiguousarray(each, dtype=np.int64).tobytes()).hexdigest() for each in voxels]


def region_notes(settings: StudySettings, regions: Regions | None) -> tuple[str, ...]:
    """What a reader must know about the regions: resampling, those outside the mask, those too small."""
    if regions is None:
        return ()
    small = [name for name, size in zip(regions.names, regions.sizes, strict=True) if size < FEWEST_VOXELS]
    if not small or not settings.by_region:
        return regions.notes
    return (
        *regions.notes,
        f"--by-region: regions with fewer than {FEWEST_VOXELS} voxels are not decoded: {', '.join(small)}.",
    )
