"""What is refused before anything is fitted or written: settings that cannot be run, input that is wrong."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from mvpa_gamp.decoding.designs import refuse_runs, refuse_same, session_crosses
from mvpa_gamp.imaging.atlas import PHANTOM, Atlas, SurfaceAtlas, open_atlas, phantom_atlas
from mvpa_gamp.imaging.bids.check import numbered_runs
from mvpa_gamp.imaging.bids.layout import participants
from mvpa_gamp.imaging.bids.source import BidsSource
from mvpa_gamp.imaging.disk import WriteError
from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.regions import Regions
from mvpa_gamp.imaging.samples import Samples
from mvpa_gamp.methods.fold_fits import Method
from mvpa_gamp.parallel import Workers, check_cluster, check_workers
from mvpa_gamp.study.comparisons import choose_methods, weighted_methods
from mvpa_gamp.study.errors import StudyError
from mvpa_gamp.study.preparation import check_preparation
from mvpa_gamp.study.settings import StudySettings


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
