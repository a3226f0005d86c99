"""Everything that a study decides before its first fit; what cannot be run is refused on the way."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp._version import __version__
from mvpa_gamp.decoding.designs import Classes, Cross, refuse_runs, refuse_same, session_crosses
from mvpa_gamp.decoding.leakage import Checked
from mvpa_gamp.decoding.permutation import PermutationPlan, plan_permutations
from mvpa_gamp.decoding.preparation import Preparation
from mvpa_gamp.decoding.tasks import Task
from mvpa_gamp.decoding.ties import CovariateCheck
from mvpa_gamp.imaging.atlas import PHANTOM, Atlas, SurfaceAtlas, open_atlas, phantom_atlas
from mvpa_gamp.imaging.bids.check import numbered_runs
from mvpa_gamp.imaging.bids.layout import participants
from mvpa_gamp.imaging.bids.source import BidsSource
from mvpa_gamp.imaging.disk import WriteError
from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.regions import Regions
from mvpa_gamp.imaging.samples import Samples
from mvpa_gamp.imaging.spaces import space_of
from mvpa_gamp.methods.fold_fits import Method
from mvpa_gamp.parallel import Workers, check_cluster, check_workers
from mvpa_gamp.results.files import DamagedFile, load_fits
from mvpa_gamp.results.ledger import Cell, Subject
from mvpa_gamp.results.names import ResultsFolder
from mvpa_gamp.study.comparisons import (
    StudyPreparation,
    blocks_of,
    check_before_fits,
    check_preparation,
    check_tuning,
    choose_classes,
    choose_crosses,
    choose_methods,
    choose_tasks,
    exchange_of,
    planted_voxels,
    prepare_folds,
    weighted_methods,
)
from mvpa_gamp.study.console import Console
from mvpa_gamp.study.describe import sidecar_facts
from mvpa_gamp.study.ending import StudyError
from mvpa_gamp.study.jobs import Job, make_job
from mvpa_gamp.study.output import Output, check_inputs, check_output, check_resume
from mvpa_gamp.study.settings import StudySettings, read_earlier


def check_settings(settings: StudySettings, workers: Workers) -> list[Method]:
    """Refuse what needs no data to be known wrong; returns the methods."""
    try:
        check_workers(workers)
        check_cluster(workers)
    except (ValueError, OSError) as error:
        raise StudyError(str(error)) from error
    if settings.seed < 0:
        raise StudyError(f"--seed: expected 0 or more, got {settings.seed}. Change it.")
    _check_texts("--cross", refuse_same, settings.cross)
    _check_texts("--cross-session", refuse_runs, settings.cross_session)
    methods = weighted_methods(choose_methods(settings.methods), settings.class_weight)
    check_inference(settings, methods)
    check_preparation(settings)
    check_regions(settings, methods)
    return methods


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


def check_regions(settings: StudySettings, methods: Sequence[Method]) -> None:
    """Refuse what needs no data to be known wrong; opens the atlas to see whether it can be used."""
    if not settings.atlas and (settings.atlas_labels or settings.by_region):
        option = "--by-region" if settings.by_region else "--atlas-labels"
        raise StudyError(f"{option} needs regions. Give --atlas FILE or NAME as well.")
    if settings.without_region and not settings.by_region:
        raise StudyError("--without-region is shown beside --by-region. Give --by-region as well.")
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


def check_cross_session(texts: Sequence[str], source: BidsSource, labels: Sequence[str]) -> None:
    """Refuse runs and sessions that no participant has; a lone one may differ from the others."""
    problems = []
    others = participants(source.layout) if len(labels) == 1 else ()
    for label in dict.fromkeys([*labels, *others]) if texts else ():
        try:
            runs, sessions = numbered_runs(replace(source, participant_label=label))
        except DataError:
            continue  # said when its turn comes
        try:
            session_crosses((), texts, runs, sessions)
            return
        except ValueError as error:
            problems.append(f"sub-{label}: {error}")
    if problems:
        count = f" This applies to all {len(problems)} participants." if len(problems) > 1 else ""
        raise StudyError(f"--cross-session: {problems[0]}{count}")


def _check_texts(option: str, refuse: Callable[[Sequence[str]], None], texts: Sequence[str]) -> None:
    """Refuse texts that no data could be used with."""
    try:
        refuse(texts)
    except ValueError as error:
        raise StudyError(f"{option}: {error}") from error


@contextmanager
def usage_errors() -> Iterator[None]:
    """Whatever is wrong before the first fit is wrong with what was given: one sentence, exit code 2."""
    from nibabel.filebasedimages import ImageFileError

    try:
        yield
    except (StudyError, WriteError):
        raise
    except MemoryError as error:
        raise StudyError(f"The data do not fit into memory: {error}. Use a smaller mask.") from error
    except (ValueError, OSError, EOFError, ImageFileError) as error:
        raise StudyError(" ".join(str(error).split())) from error


@dataclass(frozen=True)
class PlannedCell:
    """One method on one comparison, and the job of its fits."""

    task: Task
    method: Method
    job: Job

    @property
    def key(self) -> tuple[str, str]:
        """Names of method and comparison."""
        return self.method.name, self.task.name

    @property
    def path(self) -> Path:
        """Where its fits are kept."""
        return self.job.path

    @property
    def label(self) -> str:
        """For progress lines."""
        return f"{self.task.label}, {self.method.label}"


def plan_cells(
    folder: ResultsFolder, samples: Samples, tasks: Sequence[Task], methods: Sequence[Method], data: str
) -> list[PlannedCell]:
    """All cells, comparison by comparison, so that the first one's row is complete early.

    ``data`` is the digest of what fits can see.
    """
    cells = []
    for task in tasks:
        for method in methods:
            facts = (data, task.positive, task.negative, method.name, repr(method), __version__)
            path = folder.fits(samples.subject, task.name, method.name)
            cells.append(
                PlannedCell(task, method, make_job(f"{task.label}, {method.label}", path, None, *facts))
            )
    return cells


def data_fingerprint(samples: Samples) -> str:
    """A digest of everything that a fit can see, and of the grid the maps live on."""
    digest = hashlib.sha256()
    for array in (samples.X, samples.runs, *space_of(samples.mask_img).content()):
        digest.update(str((array.shape, array.dtype.str)).encode())
        digest.update(np.ascontiguousarray(array).data)
    digest.update("\n".join(map(str, samples.conditions)).encode())
    return digest.hexdigest()


def is_done(job: Job, say: Callable[[str], None]) -> bool:
    """Whether the fits of a cell are stored already; fits of other data or settings are refused.

    Damaged ones are as good as none: ``say`` so, and they are made again.
    """
    if not job.path.is_file():
        return False
    try:
        fingerprint = load_fits(job.path)[1]
    except DamagedFile:
        say(f"{job.path} is damaged: its fits are computed again.")
        return False
    if fingerprint != job.fingerprint:
        raise StudyError(
            f"--resume: {job.path.name} was computed from other data, other method settings or another "
            "version of mvpa_gamp. Use --overwrite to start again, or another results folder."
        )
    return True


@dataclass(frozen=True)
class Study:
    """The samples, what is compared by which methods, and what is stored of it already."""

    settings: StudySettings  # resolved
    output: Output
    samples: Samples
    tasks: Sequence[Task]
    classes: Classes | None
    crosses: Sequence[Cross]
    methods: Sequence[Method]
    prepared: StudyPreparation
    subject: Subject
    leakage: Checked
    covariates: Sequence[CovariateCheck]
    data: str  # a digest of what fits can see
    cells: Sequence[PlannedCell]
    stored: frozenset[Path]  # fits that are there from an earlier run
    permutations_before: int  # that the run in the folder was asked for, where it is resumed

    @property
    def folder(self) -> ResultsFolder:
        """The names inside the results folder."""
        return self.output.folder

    @property
    def steps(self) -> Preparation:
        """What folds do to X."""
        return self.prepared.steps

    @cached_property
    def blocks(self) -> NDArray:
        """The block (M,) of every sample."""
        return blocks_of(self.samples)

    @property
    def cautions(self) -> list[str]:
        """What could make the scores too good, in sentences."""
        return [*self.leakage.sentences, *(check.caution for check in self.covariates if check.decodes)]

    @property
    def shared(self) -> tuple[Any, Any, Any]:
        """What all workers need: X, runs, and which voxels are neighbours where a method asks for it."""
        asked = any(method.uses_connectivity for method in self.methods)
        return self.samples.X, self.samples.runs, self.samples.connectivity if asked else None

    def permutations(
        self, task: Task | Classes, labels: NDArray, n_features: int, by_fold: bool = False
    ) -> PermutationPlan:
        """The permutations of labels (m,); ``by_fold``: each fold is a solve of its own."""
        within, blocks = exchange_of(self.samples, task)
        n_folds = 1 if by_fold else len(np.unique(self.samples.runs[task.rows]))
        n, seed = self.settings.permutations, self.settings.seed
        return plan_permutations(
            labels, within, n_features, n, seed=seed, blocks=blocks, n_folds=n_folds, ahead=True
        )

    def files(self, cell: PlannedCell) -> Cell:
        """Where the files of a cell go, and what they share with those of others."""
        return Cell(self.folder, self.subject, cell.task, cell.method)


def plan_study(settings: StudySettings, output: Output, workers: Workers, console: Console) -> Study:
    """Load the samples and lay out what is compared; nothing is written."""
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
    data = data_fingerprint(samples) + prepared.key
    cells = plan_cells(output.folder, samples, tasks, methods, data)
    stored = [cell.path for cell in cells if output.resume and is_done(cell.job, console.note)]
    classes = choose_classes(settings.classes, samples)
    crosses = choose_crosses(settings.cross, settings.cross_session, samples, tasks)
    check_tuning(methods, crosses, samples.runs)
    return Study(
        settings=settings,
        output=output,
        samples=samples,
        tasks=tasks,
        classes=classes,
        crosses=crosses,
        methods=methods,
        prepared=prepared,
        subject=Subject(
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
            about=sidecar_facts(settings, samples, prepared),
            links=samples.origin.links,
            counted="run" if samples.people is None else "participant",
        ),
        leakage=leakage,
        covariates=covariates,
        data=data,
        cells=cells,
        stored=frozenset(stored),
        permutations_before=earlier.get("permutations", 0),
    )
