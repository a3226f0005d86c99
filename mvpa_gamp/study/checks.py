"""What is refused before anything is fitted or written: settings that cannot be run, input that is wrong."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from mvpa_gamp.decoding.cross_tasks import refuse_runs, refuse_same, session_crosses
from mvpa_gamp.imaging.atomic_files import WriteError
from mvpa_gamp.imaging.bids.check import numbered_runs
from mvpa_gamp.imaging.bids.layout import participants
from mvpa_gamp.imaging.bids.source import BidsSource
from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.methods.fold_fits import Method
from mvpa_gamp.parallel import Workers, check_cluster, check_workers
from mvpa_gamp.study.errors import StudyError
from mvpa_gamp.study.inference import check_inference
from mvpa_gamp.study.plan import choose_methods, weighted_methods
from mvpa_gamp.study.preparing import check_preparation
from mvpa_gamp.study.regions import check_regions
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
