"""Everything that a study decides before its first fit; what cannot be run is refused on the way."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from mvpa_gamp.decoding.covariate_check import CovariateCheck
from mvpa_gamp.decoding.leakage import Checked
from mvpa_gamp.decoding.tasks import Task
from mvpa_gamp.imaging.regions import Regions
from mvpa_gamp.imaging.samples import Samples
from mvpa_gamp.methods.fold_fits import Method
from mvpa_gamp.parallel import Workers
from mvpa_gamp.results.cell import Cell, Subject
from mvpa_gamp.results.names import ResultsFolder
from mvpa_gamp.study.cells import PlannedCell, is_done, plan_cells
from mvpa_gamp.study.checks import check_settings
from mvpa_gamp.study.console import Console
from mvpa_gamp.study.describe import sidecar_facts
from mvpa_gamp.study.designs import Designs, plan_designs
from mvpa_gamp.study.inference import InferencePlan, plan_inference
from mvpa_gamp.study.leakage import check_before_fits
from mvpa_gamp.study.output import Output, check_inputs, check_output, check_resume
from mvpa_gamp.study.plan import check_tuning, choose_tasks, planted_voxels
from mvpa_gamp.study.preparing import StudyPreparation, prepare_folds
from mvpa_gamp.study.regions import RegionPlan, find_regions, plan_region_jobs
from mvpa_gamp.study.settings import StudySettings, read_earlier


@dataclass(frozen=True)
class StudyPlan:
    """The samples, what is compared by which methods, and what is stored of it already."""

    settings: StudySettings  # resolved
    output: Output
    samples: Samples
    tasks: Sequence[Task]
    methods: Sequence[Method]
    prepared: StudyPreparation
    subject: Subject
    leakage: Checked
    covariates: Sequence[CovariateCheck]
    cells: Sequence[PlannedCell]
    stored: Sequence[bool]  # whether the fits of each cell are there from an earlier run
    designs: Designs
    inference: Sequence[InferencePlan]
    by_region: Sequence[RegionPlan]
    permutations_before: int  # that the run in the folder was asked for, where it is resumed

    @property
    def folder(self) -> ResultsFolder:
        """The names inside the results folder."""
        return self.output.folder

    @property
    def cautions(self) -> list[str]:
        """What could make the scores too good, in sentences."""
        return [*self.leakage.sentences, *(check.caution for check in self.covariates if check.decodes)]

    def files(self, cell: PlannedCell) -> Cell:
        """Where the files of a cell go, and what they share with those of others."""
        return Cell(self.folder, self.subject, cell.task, cell.method)


def plan_study(settings: StudySettings, output: Output, workers: Workers, console: Console) -> StudyPlan:
    """Load the samples and lay out all work; nothing is written."""
    check_output(output)
    methods = check_settings(settings, workers)
    settings = settings.resolve(console.note)
    check_inputs(output, settings)
    check_resume(output, settings)
    earlier = (read_earlier(output.folder) if output.resume else None) or {}
    console.note("Preparing the data ...")
    samples = settings.source.load()
    output = replace(output, entities=samples.entities)
    tasks = choose_tasks(settings.pairs, samples, settings.classes, settings.cross)
    check_tuning(methods, tasks, samples.runs)
    regions, prepared = find_regions(settings, samples), prepare_folds(settings, samples)
    leakage, covariates = check_before_fits(settings, samples, tasks, prepared)
    cells = plan_cells(output.folder, samples, tasks, methods, prepared.key)
    stored = [output.resume and is_done(cell, console.note) for cell in cells]
    designs = plan_designs(
        settings, samples, prepared, tasks, methods, cells, stored, output.folder, output.resume
    )
    return StudyPlan(
        settings=settings,
        output=output,
        samples=samples,
        tasks=tasks,
        methods=methods,
        prepared=prepared,
        subject=_subject(settings, samples, tasks, regions, sidecar_facts(settings, samples, prepared)),
        leakage=leakage,
        covariates=covariates,
        cells=cells,
        stored=stored,
        designs=designs,
        inference=plan_inference(settings, samples, cells, prepared.steps),
        by_region=plan_region_jobs(settings, samples, prepared, regions, cells),
        permutations_before=earlier.get("permutations", 0),
    )


def _subject(
    settings: StudySettings,
    samples: Samples,
    tasks: Sequence[Task],
    regions: Regions | None,
    about: dict[str, Any],
) -> Subject:
    """What the files of all cells share."""
    return Subject(
        name=samples.subject,
        mask_img=samples.mask_img,
        banner=samples.banner,
        runs=samples.shown_runs,
        run_names=samples.run_names,
        volumes=samples.volumes,
        truth=planted_voxels(samples, tasks),
        fold_maps=settings.fold_maps,
        whitened=settings.whiten,
        events=samples.events,
        regions=regions,
        about=about,
        links=samples.origin.links,
    )
