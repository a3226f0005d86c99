"""The leakage check of a study: what its samples tell, and what --strict makes of it."""

from collections.abc import Sequence

import numpy as np

from mvpa_gamp.decoding.leakage import Checked, Evidence, find_leakage
from mvpa_gamp.decoding.tasks import Task
from mvpa_gamp.imaging.samples import Samples
from mvpa_gamp.study.errors import StudyError
from mvpa_gamp.study.plan import choose_tasks
from mvpa_gamp.study.settings import StudySettings


def check_leakage(settings: StudySettings, samples: Samples, tasks: Sequence[Task]) -> Checked:
    """What could make the scores of a study too good; with ``strict`` an error."""
    given = settings.values()
    found = find_leakage(
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
    if settings.strict and found.findings:
        more = len(found.findings) - 1
        others = (
            f" ({more} more finding{'s' * (more > 1)}; without --strict they are cautions.)" if more else ""
        )
        raise StudyError(f"--strict: sub-{samples.subject}: {found.sentences[0]}{others}")
    return found


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
    except (ValueError, OSError, EOFError):
        return
    check_leakage(ready, samples, tasks)
