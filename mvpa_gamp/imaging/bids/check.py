"""A quick check of all participants before anything is written: what is wrong for every one is refused."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import nibabel

from mvpa_gamp.imaging.bids.betas import BetasSource, find_betas
from mvpa_gamp.imaging.bids.confounds import confound_columns
from mvpa_gamp.imaging.bids.event_volumes import events_of
from mvpa_gamp.imaging.bids.events import trial_types
from mvpa_gamp.imaging.bids.layout import RunFiles, repetition_time_of, spaces_of, tasks_of
from mvpa_gamp.imaging.bids.participant import check_confounds
from mvpa_gamp.imaging.bids.selection import choose, chosen_tasks
from mvpa_gamp.imaging.bids.source import BidsSource
from mvpa_gamp.imaging.bids.surface_runs import check_surface_runs, is_on_surface
from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.mask_grid import mask_on_grid
from mvpa_gamp.imaging.processing import check_high_pass
from mvpa_gamp.imaging.surface_names import is_surface_file
from mvpa_gamp.imaging.volumes import open_mask

# In the order in which they are checked. The settings decide on the last ones: where they fail for all who
# come that far, the command is wrong. The others are matters of a participant's own files.
_STEPS = ("files", "events", "time", "confounds", "mask")
_DECIDED_BY_SETTINGS = ("time", "confounds", "mask")


@dataclass(frozen=True)
class _Participant:
    """What is known of a participant without reading volumes: conditions, and the step that failed."""

    conditions: Sequence[str] = ()
    failed: str | None = None
    problem: str = ""


def check_participants(source: BidsSource, labels: Sequence[str]) -> None:
    """Refuse, with one sentence, what is wrong for all of the participants; what is wrong for one is not.

    No volume is read. A lone participant whose own files are unfit is left for its turn, to be skipped.
    """
    if not isinstance(source, BetasSource):
        _check_task_and_space(source, labels)
    mask = open_mask(source.mask)[0] if source.mask and not is_surface_file(source.mask) else None
    checked = [_check_one(replace(source, participant_label=label), mask) for label in labels]
    found = sorted({name for participant in checked for name in participant.conditions})
    if found:
        source.wanted(found)
    _check_steps(checked)


def _check_steps(checked: Sequence[_Participant]) -> None:
    """Refuse a step at which all failed who reached it, if settings decide on it, or if nobody is left."""
    for number, step in enumerate(_STEPS):
        failed = [each for each in checked if each.failed == step]
        passed = [each for each in checked if each.failed is None or _STEPS.index(each.failed) > number]
        all_failed = len(failed) == len(checked) > 1
        if failed and not passed and (step in _DECIDED_BY_SETTINGS or all_failed):
            count = f" This is so for all {len(failed)} participants." if all_failed else ""
            raise DataError(failed[0].problem + count)
    if len(checked) > 1 and all(each.failed for each in checked):
        first = {each.failed: each.problem for each in reversed(checked)}  # one of each kind
        raise DataError(
            f"Not one of the {len(checked)} participants can be analysed. {' '.join(first.values())}"
        )


def _check_one(source: BidsSource, mask: Any) -> _Participant:
    """Everything about a participant that can be known from names, tables and headers."""
    step, names = "files", []
    try:
        if isinstance(source, BetasSource):
            return _Participant([name for each in find_betas(source) for name in each.conditions])
        runs = source.runs()
        step = "events"
        names = [name for run in runs for name in trial_types(events_of(run))]
        step = "time"
        check_high_pass(source.high_pass, repetition_time_of(runs, source.t_r))
        step = "confounds"
        check_confounds(runs, confound_columns(source.confounds), source.confounds_strategy)
        step = "mask"
        check_surface_runs(source, runs) if is_on_surface(runs) else _check_mask(source, mask, runs)
    except DataError as error:
        return _Participant(names, step, str(error))
    return _Participant(names)


def _check_mask(source: BidsSource, mask: Any, runs: Sequence[RunFiles]) -> None:
    """Refuse a mask that the first run's grid has no use for, as far as headers tell."""
    if mask is None and source.mask:
        raise DataError(f"--mask {source.mask} is on a surface, and the runs are volumes. Give a volume.")
    if mask is None:
        return
    try:
        image = nibabel.load(runs[0].bold)
    except (OSError, ValueError, EOFError, nibabel.filebasedimages.ImageFileError):
        return  # said when its turn comes
    mask_on_grid(mask, image)


def _check_task_and_space(source: BidsSource, labels: Sequence[str]) -> None:
    """Refuse a task or space that nobody has, and a choice that is left open."""
    layout, space = source.layout, source.space
    tasks = sorted({task for label in labels for task in tasks_of(layout, label)})
    if tasks:
        chosen_tasks(source.task, tasks, "the dataset")
    if layout.derivatives is None:
        return
    each = {label: spaces_of(layout, label, source.task, space) for label in labels}
    everywhere = sorted({name for spaces in each.values() for name in spaces})
    if space is None:
        for label, spaces in each.items():
            if len(spaces) > 1:
                choose("--space", None, spaces, f"sub-{label}")
    elif everywhere and not any(name.split(":")[0] == space.split(":")[0] for name in everywhere):
        choose("--space", space, everywhere, "the dataset")
