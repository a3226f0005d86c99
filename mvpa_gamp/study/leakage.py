"""The check before the first fit: what samples and covariates tell, and what --strict makes of it."""

from collections.abc import Sequence

import numpy as np

from mvpa_gamp.decoding.covariate_check import CovariateCheck
from mvpa_gamp.decoding.leakage import Checked, Evidence, find_leakage
from mvpa_gamp.decoding.tasks import Task
from mvpa_gamp.imaging.samples import Samples
from mvpa_gamp.study.errors import StudyError
from mvpa_gamp.study.plan import choose_tasks
from mvpa_gamp.study.preparing import StudyPreparation, covariate_checks, prepare_folds
from mvpa_gamp.study.settings import StudySettings


def check_before_fits(
    settings: StudySettings, samples: Samples, tasks: Sequence[Task], prepared: StudyPreparation
) -> tuple[Checked, list[CovariateCheck]]:
    """What could make the scores too good, and which covariates decode by themselves; strictly an error."""
    found = check_leakage(settings, samples, tasks)
    checks = covariate_checks(prepared, samples, tasks, settings.seed)
    sentences = [*found.sentences, *(check.caution for check in checks if check.caution)]
    if settings.strict and sentences:
        more = len(sentences) - 1
        others = (
            f" ({more} more finding{'s' * (more > 1)}; without --strict they are cautions.)" if more else ""
        )
        raise StudyError(f"--strict: sub-{samples.subject}: {sentences[0]}{others}")
    return found, checks


def check_leakage(settings: StudySettings, samples: Samples, tasks: Sequence[Task]) -> Checked:
    """What could make the scores of a study too good."""
    given = settings.values()
    return find_leakage(
        Evidence(
            X=samples.X,
            conditions=samples.conditions,
            runs=samples.runs,
            pairs=_pairs(tasks),
            places=np.arange(len(samples.runs)) if samples.kind == "trial" else samples.volumes,
            kind=samples.kind,
            sessions=samples.sessions,
            t_r=samples.provenance.get("t_r"),
            lag=given.get("lag_trs"),
            around=samples.around,
            fingerprints=samples.fingerprints,
            word=samples.held_out,
        )
    )


def _pairs(tasks: Sequence[Task]) -> list[tuple[str, str]]:
    """The conditions that are compared; of groups each member with each of the other side's."""
    sides = [[side.members for side in task.sides] for task in tasks]
    return list(dict.fromkeys((a, b) for first, second in sides for a in first for b in second))


def check_strictly(settings: StudySettings) -> None:
    """--strict of one participant of a dataset, before anything of any participant is written.

    A participant who cannot be read is left for its turn, to be skipped.
    """
    try:
        ready = settings.resolve(lambda sentence: None)
        samples = ready.source.load()
        tasks = choose_tasks(ready.pairs, samples, ready.classes, ready.cross)
        prepared = prepare_folds(ready, samples)
    except (ValueError, OSError, EOFError):
        return
    check_before_fits(ready, samples, tasks, prepared)
