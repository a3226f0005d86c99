"""Regions of an atlas in a study: what is refused, the jobs of --by-region, and what is written."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mvpa_gamp.decoding.permutation import PermutationPlan, plan_permutations
from mvpa_gamp.decoding.regions import FEWEST_VOXELS, join_scores
from mvpa_gamp.imaging.atlas import PHANTOM, Atlas, open_atlas, phantom_atlas
from mvpa_gamp.imaging.regions import Regions
from mvpa_gamp.imaging.samples import Samples
from mvpa_gamp.imaging.surface_atlas import SurfaceAtlas
from mvpa_gamp.methods.fold_fits import Method
from mvpa_gamp.results.cell import Cell, CellRecord, Subject
from mvpa_gamp.results.names import ResultsFolder
from mvpa_gamp.results.region_files import CellRegions, write_regions
from mvpa_gamp.results.stored_fits import load_arrays, load_fits
from mvpa_gamp.study.cells import PlannedCell
from mvpa_gamp.study.console import Console
from mvpa_gamp.study.errors import StudyError
from mvpa_gamp.study.inference_jobs import Arrays
from mvpa_gamp.study.jobs import Job, digest, make_job, store_answers, unanswered
from mvpa_gamp.study.preparing import StudyPreparation, exchange_of
from mvpa_gamp.study.region_jobs import RegionPermutations, RegionWork, portions
from mvpa_gamp.study.settings import StudySettings


def check_regions(settings: StudySettings, methods: Sequence[Method]) -> None:
    """Refuse what needs no data to be known wrong; opens the atlas to see whether it can be used."""
    if not settings.atlas and (settings.atlas_labels or settings.by_region):
        option = "--by-region" if settings.by_region else "--atlas-labels"
        raise StudyError(f"{option} needs regions. Give --atlas FILE or NAME as well.")
    if settings.by_region and settings.whiten:
        raise StudyError(
            "--by-region cannot be used with --whiten: a whitened voxel is a mixture of voxels, including "
            "those of other regions. Run it without --whiten, with another results folder."
        )
    if settings.by_region and not any(method.is_batched for method in methods):
        names = ", ".join(method.name for method in methods)
        raise StudyError(f"--by-region is for GAMP methods, got {names}. Add gamp-bg-lr to --methods.")
    atlas_of(settings)


def atlas_of(settings: StudySettings) -> Atlas | SurfaceAtlas | None:
    """The atlas that was given; None for none, and for the phantom's own, which comes with the samples."""
    if settings.atlas in ("", PHANTOM):
        return None
    return open_atlas(settings.atlas, settings.atlas_labels)


def find_regions(settings: StudySettings, samples: Samples) -> Regions | None:
    """The regions at the voxels of the samples; None where no atlas was given."""
    if settings.atlas == PHANTOM:
        if not samples.is_phantom or settings.atlas_labels:
            raise StudyError(
                "--atlas phantom is the phantom's own atlas, with names of its own. Give a file or another "
                "name for real data, and no --atlas-labels for the phantom."
            )
        return phantom_atlas(samples.mask_img)
    atlas = atlas_of(settings)
    return None if atlas is None else atlas.regions(samples.mask_img)


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


@dataclass(frozen=True)
class RegionPlan:
    """The jobs of one cell; ``tested`` are the places of the regions that are large enough."""

    cell: PlannedCell
    permutation: PermutationPlan | None
    tested: tuple[int, ...]
    observed: tuple[Job, ...]  # some regions each
    nulls: tuple[tuple[Job, ...], ...]  # the chunks of permutations, for some regions each

    @property
    def jobs(self) -> list[Job]:
        """All of them."""
        return [*self.observed, *(job for jobs in self.nulls for job in jobs)]


def plan_region_jobs(
    settings: StudySettings, samples: Samples, prepared: StudyPreparation, regions: Regions | None,
    cells: Sequence[PlannedCell],
) -> list[RegionPlan]:  # fmt: skip
    """The jobs of every cell of a GAMP method, where --by-region asks for them."""
    if regions is None or not settings.by_region:
        return []
    tested = tuple(np.flatnonzero(regions.sizes >= FEWEST_VOXELS).tolist())
    if not tested:
        raise StudyError(
            f"--by-region: no region of {regions.atlas} has {FEWEST_VOXELS} voxels or more in the mask. "
            "Give an atlas of larger regions, or a larger mask."
        )
    return [
        _cell_plan(settings, samples, prepared, regions, tested, cell)
        for cell in cells
        if cell.method.is_batched
    ]


def _cell_plan(
    settings: StudySettings, samples: Samples, prepared: StudyPreparation, regions: Regions,
    tested: tuple[int, ...], cell: PlannedCell,
) -> RegionPlan:  # fmt: skip
    rows, runs = cell.task.rows, samples.runs[cell.task.rows]
    sizes, n_folds = [int(regions.sizes[place]) for place in tested], len(np.unique(runs))

    def groups(n_fits: int) -> list[tuple[Any, ...]]:
        parts = portions(sizes, len(rows), n_fits)
        return [tuple(regions.voxels(tested[k]) for k in part) for part in parts]

    observed = tuple(_observed(cell, prepared.steps, groups(n_folds)))
    if not settings.permutations:
        return RegionPlan(cell, None, tested, observed, ())
    within, blocks = exchange_of(samples, cell.task)
    plan = plan_permutations(
        cell.task.y, within, max(sizes), settings.permutations, seed=settings.seed, blocks=blocks,
        n_folds=n_folds, ahead=True,
    )  # fmt: skip
    nulls = _nulls(cell, prepared.steps, plan, groups(n_folds * plan.chunk_size))
    return RegionPlan(cell, plan, tested, observed, nulls)


def _observed(cell: PlannedCell, steps: Any, groups: Sequence[tuple[Any, ...]]) -> Iterator[Job]:
    """The folds of some regions each."""
    for number, voxels in enumerate(groups, start=1):
        work = RegionWork(cell.method, cell.task.rows, cell.task.y, voxels, steps)
        yield _job(cell, f"regions {number} of {len(groups)}", work, f"regions-{number:04d}", voxels)


def _nulls(
    cell: PlannedCell, steps: Any, plan: PermutationPlan, groups: Sequence[tuple[Any, ...]]
) -> tuple[tuple[Job, ...], ...]:
    """The chunks of permutations of some regions each; more permutations keep those that are there."""
    out = []
    for number, voxels in enumerate(groups, start=1):
        jobs = []
        for part, chunk in enumerate(plan.chunks, start=1):
            labels = np.ascontiguousarray(plan.labels[:, chunk])
            work = RegionPermutations(cell.method, cell.task.rows, labels, voxels, steps)
            name = f"regions {number} of {len(groups)}, permutations {part} of {len(plan.chunks)}"
            ending = f"regions-{number:04d}-permutations-{part:04d}"
            jobs.append(_job(cell, name, work, ending, voxels, digest(labels)))
        out.append(tuple(jobs))
    return tuple(out)


def _job(
    cell: PlannedCell, name: str, work: RegionWork | RegionPermutations, ending: str, voxels: Sequence[Any],
    *facts: str,
) -> Job:  # fmt: skip
    path = cell.path.with_name(cell.path.name.replace("_fits.npz", f"_{ending}.npz"))
    label = f"{cell.task.label}, {cell.method.label}: {name}"
    return make_job(label, work, path, cell.fingerprint, ending, *(str(v.tolist()) for v in voxels), *facts)


def open_region_jobs(plans: Sequence[RegionPlan], resume: bool) -> list[Job]:
    """The jobs that have no answer yet."""
    return unanswered([job for plan in plans for job in plan.jobs], resume)


def collect_regions(
    plans: Sequence[RegionPlan], jobs: Sequence[Job], answers: Iterator[Arrays | str], console: Console
) -> dict[tuple[str, str], CellRegions]:
    """Store the answers to the open ``jobs`` as they come; those of each cell by contrast and method."""
    troubles = store_answers(jobs, answers, console)
    return {(p.cell.task.name, p.cell.method.name): _together(p, troubles) for p in plans}


def _together(plan: RegionPlan, troubles: dict[Path, str]) -> CellRegions:
    """The answers about a cell, read back from their files, so that a resumed run has the same."""
    mine = [troubles[job.path] for job in plan.jobs if job.path in troubles]
    if mine:
        return CellRegions(trouble=mine[0])
    parts = [_read(job) for job in plan.observed]
    nulls = [[_read(job) for job in jobs] for jobs in plan.nulls]
    return CellRegions(join_scores(parts, plan.permutation, nulls), plan.tested)


def _read(job: Job) -> Any:
    return job.work.read(load_arrays(job.path))


def write_region_files(
    settings: StudySettings, folder: ResultsFolder, subject: Subject, cells: Sequence[PlannedCell],
    found: dict[tuple[str, str], CellRegions], records: Sequence[CellRecord],
) -> dict[str, Any]:  # fmt: skip
    """Write the tables of the cells that have fits; returns their part of summary.json, if any."""
    if subject.regions is None:
        return {}
    fitted = {(r.summary["contrast"], r.summary["method"]) for r in records if r.summary["status"] == "ok"}
    known = [
        (
            Cell(folder, subject, cell.task, cell.method),
            load_fits(cell.path)[0],
            found.get((cell.task.name, cell.method.name), CellRegions()),
        )
        for cell in cells
        if (cell.task.name, cell.method.name) in fitted
    ]
    asked = {
        "atlas": subject.regions.atlas,
        "by_region": settings.by_region,
        "permutations": settings.permutations if settings.by_region else 0,
    }
    return {"regions": write_regions(folder, subject, subject.regions, known, asked)}
