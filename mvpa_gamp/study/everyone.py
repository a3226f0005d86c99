"""What is wrong for every participant of a dataset: found by a quick look, before anything is written."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nibabel

from mvpa_gamp.imaging.bids.betas import LABEL, find_betas
from mvpa_gamp.imaging.bids.confounds import confound_columns
from mvpa_gamp.imaging.bids.events import trial_types
from mvpa_gamp.imaging.bids.layout import (
    Layout,
    RunFiles,
    choose,
    find_runs,
    repetition_time_of,
    spaces_of,
    tasks_of,
)
from mvpa_gamp.imaging.bids.source import confound_settings, events_of, wanted_categories
from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.processing import check_high_pass
from mvpa_gamp.imaging.volumes import check_same_grid, open_mask
from mvpa_gamp.study.doors import bids_choice
from mvpa_gamp.study.settings import StudySettings

# In the order in which they are looked at. The settings decide on the last ones: where they fail for all who
# come that far, the command is wrong. The others are matters of a participant's own files.
_STEPS = ("files", "events", "time", "confounds", "mask")
_BY_SETTINGS = ("time", "confounds", "mask")


@dataclass(frozen=True)
class _Look:
    """What a quick look at a participant found: conditions, and where and why it ended, if it did."""

    categories: Sequence[str] = ()
    step: str | None = None
    sentence: str = ""


def check_everyone(layout: Layout, settings: StudySettings, chosen: Sequence[str]) -> None:
    """Refuse, with one sentence, what is wrong for all of the participants; what is wrong for one is not.

    No volume is read. A lone participant whose own files are unfit is left for its turn, to be skipped.
    """
    tasks = sorted({task for label in chosen for task in tasks_of(layout, label)})
    if tasks and settings.betas is None:
        choose("--task", settings.task, tasks, "the dataset")
    if layout.derivatives is not None and settings.betas is None:
        _check_space(layout, settings, chosen)
    mask = None if settings.mask is None else open_mask(settings.mask)[0]
    looks = [_look(layout, settings, label, mask) for label in chosen]
    found = sorted({name for look in looks for name in look.categories})
    if found:
        wanted_categories(settings.pairs or ("all",), found)
    _check_steps(looks)


def _check_steps(looks: Sequence[_Look]) -> None:
    """Refuse a step at which all ended who reached it, if settings decide on it, or if nobody is left."""
    for number, step in enumerate(_STEPS):
        ended = [look for look in looks if look.step == step]
        beyond = [look for look in looks if look.step is None or _STEPS.index(look.step) > number]
        everyone = len(ended) == len(looks) > 1
        if ended and not beyond and (step in _BY_SETTINGS or everyone):
            count = f" This is so for all {len(ended)} participants." if everyone else ""
            raise DataError(ended[0].sentence + count)
    if len(looks) > 1 and all(look.step for look in looks):
        raise DataError(f"Not one of the {len(looks)} participants can be analysed. {_listed(looks)}")


def _listed(looks: Sequence[_Look]) -> str:
    """A sentence of each kind of trouble."""
    first = {look.step: look for look in reversed(looks)}
    return " ".join(look.sentence for look in first.values())


def _look(layout: Layout, settings: StudySettings, label: str, mask: Any) -> _Look:
    """Everything about a participant that can be known from names, tables and headers."""
    step, names = "files", []
    try:
        if settings.betas is not None:
            choice, glob = bids_choice(settings), settings.betas_glob or "*"
            files = find_betas(Path(settings.betas), label, glob, choice)
            return _Look([file.entities[LABEL] for file in files])
        runs = find_runs(layout, label, settings.task, settings.space)
        step = "events"
        names = [name for run in runs for name in trial_types(events_of(run))]
        step = "time"
        check_high_pass(settings.high_pass, repetition_time_of(runs, settings.t_r))
        step = "confounds"
        confound_settings(runs, confound_columns(settings.confounds or ("none",)))
        step = "mask"
        _check_mask(mask, runs)
    except DataError as error:
        return _Look(names, step, str(error))
    return _Look(names)


def _check_mask(mask: Any, runs: Sequence[RunFiles]) -> None:
    """Refuse a mask on another grid than the first run's, as far as its header tells."""
    if mask is None:
        return
    try:
        image = nibabel.load(runs[0].bold)
    except (OSError, ValueError, EOFError, nibabel.filebasedimages.ImageFileError):
        return  # said when its turn comes
    check_same_grid(mask, image, "mask")


def _check_space(layout: Layout, settings: StudySettings, chosen: Sequence[str]) -> None:
    """Refuse a space that nobody has, and a choice that is left open."""
    each = {label: spaces_of(layout, label, settings.task) for label in chosen}
    everywhere = sorted({space for spaces in each.values() for space in spaces})
    if settings.space is None:
        for label, spaces in each.items():
            if len(spaces) > 1:
                choose("--space", None, spaces, f"sub-{label}")
    elif everywhere and not any(space.split(":")[0] == settings.space.split(":")[0] for space in everywhere):
        choose("--space", settings.space, everywhere, "the dataset")
