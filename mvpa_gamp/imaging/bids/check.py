"""A quick check of all participants before anything is written: what is wrong for every one is refused."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import nibabel
import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.imaging.atlas import Atlas, SurfaceAtlas
from mvpa_gamp.imaging.bids.betas import BetasSource, Maps, find_betas, runs_of
from mvpa_gamp.imaging.bids.confounds import confound_columns
from mvpa_gamp.imaging.bids.events import Event, MissingEvents, events_of_runs, trial_types
from mvpa_gamp.imaging.bids.layout import (
    RunFiles,
    check_surface_runs,
    cortex_for,
    cortex_of_runs,
    is_on_surface,
    participants,
    repetition_time_of,
    spaces_of,
    tasks_of,
)
from mvpa_gamp.imaging.bids.participant import check_confounds, held_out_sessions
from mvpa_gamp.imaging.bids.selection import OpenChoice, choose, chosen_tasks
from mvpa_gamp.imaging.bids.source import BidsSource
from mvpa_gamp.imaging.bids.trials import scaling_for
from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.masks import mask_on_grid
from mvpa_gamp.imaging.names import is_surface_file
from mvpa_gamp.imaging.processing import check_high_pass
from mvpa_gamp.imaging.volumes import open_mask

# In the order in which they are checked. The settings decide on the last ones: where they fail for all who
# come that far, the command is wrong. The others are matters of a participant's own files.
_STEPS = ("files", "choice", "folds", "events", "trials", "time", "confounds", "mask", "atlas")
_DECIDED_BY_SETTINGS = ("choice", "folds", "trials", "time", "confounds", "mask", "atlas")
AnyAtlas = Atlas | SurfaceAtlas
_NESTED = 3  # runs or sessions: one is held out, of the others each in turn for tuning


@dataclass(frozen=True)
class _Participant:
    """What is known of a participant without reading volumes: conditions, and the step that failed."""

    conditions: Sequence[str] = ()
    failed: str | None = None
    problem: str = ""
    no_events: Sequence[str] = ()  # who lacks the events of which runs


def check_participants(
    source: BidsSource, labels: Sequence[str], nested: str = "", atlas: AnyAtlas | None = None
) -> None:
    """Refuse, with one sentence, what is wrong for all of the participants; what is wrong for one is not.

    ``nested`` names methods that tune by nested cross-validation. No volume is read. A lone participant whose
    own files are unfit is left for its turn, to be skipped.
    """
    if not isinstance(source, BetasSource):
        _check_task_and_space(source, labels)
    mask = open_mask(source.mask)[0] if source.mask and not is_surface_file(source.mask) else None
    each = (replace(source, participant_label=label) for label in labels)
    checked = [_check_one(own, mask, nested, atlas) for own in each]
    if len(labels) == 1 and checked[0].failed == "choice" and _fits_others(source, labels[0]):
        checked = [replace(checked[0], failed="files")]
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
            alike = all_failed and not any(each.no_events for each in failed)
            count = f" This applies to all {len(failed)} participants." if alike else ""
            raise DataError(_problem_of(failed) + count)
    if len(checked) > 1 and all(each.failed for each in checked):
        kinds = dict.fromkeys(each.failed for each in checked)
        first = [_problem_of([each for each in checked if each.failed == kind]) for kind in kinds]
        raise DataError(f"None of the {len(checked)} participants can be analysed. {' '.join(first)}")


def _problem_of(failed: Sequence[_Participant]) -> str:
    """The first problem at a step; missing events are one sentence that names all participants."""
    missing = [who for each in failed for who in each.no_events]
    others = [each.problem for each in failed if not each.no_events]
    return " ".join([*([str(MissingEvents(missing))] if missing else []), *others[:1]])


def _check_one(source: BidsSource, mask: Any, nested: str, atlas: AnyAtlas | None) -> _Participant:
    """Everything about a participant that can be known from names, tables and headers."""
    step, names = "files", []
    try:
        if isinstance(source, BetasSource):
            maps = find_betas(source)
            names, step = [name for each in maps for name in each.conditions], "folds"
            _check_folds(source, [key[0] for key in runs_of(maps)], nested)
            step = "mask"
            _check_maps(source, maps, atlas)
            return _Participant(names)
        runs = source.runs()
        step = "folds"
        _check_folds(source, [run.session for run in runs], nested)
        step = "events"
        events = events_of_runs(runs)
        names = [name for each in events for name in trial_types(each)]
        step = "trials"
        _check_trials(source, events, names)
        step = "time"
        check_high_pass(source.high_pass, repetition_time_of(runs, source.t_r))
        step = "confounds"
        check_confounds(runs, confound_columns(source.confounds), source.confounds_strategy)
        step = "mask"
        check_surface_runs(source, runs) if is_on_surface(runs) else _check_mask(source, mask, runs)
        step = "atlas"
        if atlas is not None:
            atlas.check(cortex_of_runs(source, runs) if is_on_surface(runs) else None)
    except DataError as error:
        chosen = step == "files" and str(error).startswith("--")  # no series is left that fits an option
        no_events = error.which if isinstance(error, MissingEvents) else ()
        return _Participant(names, "choice" if chosen else step, str(error), no_events)
    return _Participant(names)


def _fits_others(source: BidsSource, label: str) -> bool:
    """Whether another participant of the dataset has series that fit the options."""
    for other in participants(source.layout):
        own = replace(source, participant_label=other)
        try:
            if other != label and (find_betas(own) if isinstance(own, BetasSource) else own.runs()):
                return True
        except DataError:
            continue
    return False


def numbered_runs(source: BidsSource) -> tuple[NDArray, NDArray | None]:
    """Run numbers as cross-validation counts them, and sessions by name where samples know them."""
    if isinstance(source, BetasSource):
        sessions, named = [key[0] for key in runs_of(find_betas(source))], False
    else:
        sessions = [run.session for run in source.runs()]
        named = len(set(sessions)) > 1
    numbers = np.arange(1, len(sessions) + 1)
    if source.cv == "session":
        names = held_out_sessions(sessions)
        numbers = np.array([names.index(each) + 1 for each in sessions])
    return numbers, np.array(sessions) if named else None


def _check_folds(source: BidsSource, sessions: Sequence[str], nested: str) -> None:
    """Refuse too few runs or sessions (those of each run are given) for cross-validation and tuning."""
    number = len(held_out_sessions(sessions)) if source.cv == "session" else len(sessions)
    if nested and number < _NESTED:
        raise DataError(
            f"--methods {nested}: tuning by nested cross-validation needs at least {_NESTED} {source.cv}s, "
            f"sub-{source.participant_label} has {number}. Choose methods that need none (a gamp one, svm, "
            f"lda){', or leave out --cv session' if source.cv == 'session' else ''}."
        )


def _check_trials(source: BidsSource, events: Sequence[Sequence[Event]], names: Sequence[str]) -> None:
    """Refuse runs with too few trials to scale."""
    if source.samples != "trial":
        return
    try:
        wanted = source.wanted(names)
    except DataError:
        return  # conditions are checked for all participants together
    counts = [sum(event.trial_type in wanted for event in own) for own in events]
    scaling_for(counts, source.standardize)


def _check_maps(source: BetasSource, maps: Sequence[Maps], atlas: AnyAtlas | None) -> None:
    """Refuse a mask, meshes or an atlas that maps have no use for, as far as names and small files tell."""
    cortex = None
    if is_surface_file(maps[0].file.path):
        from mvpa_gamp.imaging.surfaces import surface_mask

        cortex = cortex_for(source, maps[0].file.entities.get("space", ""))
        surface_mask(source.mask, cortex)
    elif is_surface_file(source.mask):
        raise DataError(
            f"--mask {source.mask} is on a surface, but the maps are volumes. Give a volume as mask."
        )
    if atlas is not None:
        atlas.check(cortex)


def _check_mask(source: BidsSource, mask: Any, runs: Sequence[RunFiles]) -> None:
    """Refuse a mask that the first run's grid has no use for, as far as headers tell."""
    if mask is None and source.mask:
        raise DataError(
            f"--mask {source.mask} is on a surface, but the runs are volumes. Give a volume as mask."
        )
    if mask is None:
        return
    try:
        image = nibabel.load(runs[0].bold)
    except (OSError, ValueError, EOFError, nibabel.filebasedimages.ImageFileError):
        return  # said when its turn comes
    mask_on_grid(mask, image)


def _check_task_and_space(source: BidsSource, labels: Sequence[str]) -> None:
    """Refuse a task or space that nobody has, and a choice that is left open: both in one message."""
    problems, example = [], ""
    for find, option in ((_open_tasks, "--task"), (_open_spaces, "--space")):
        try:
            find(source, labels)
        except OpenChoice as error:
            problems.append(str(error))
            example += f" {option} {error.available[0]}"
    if problems:
        raise DataError(f"{' '.join(problems)} For example:{example}")


def _open_tasks(source: BidsSource, labels: Sequence[str]) -> None:
    layout, wanted = source.layout, source.selection()
    tasks = sorted({task for label in labels for task in tasks_of(layout, label, wanted)})
    if tasks:
        chosen_tasks(source.task, tasks, "the dataset")


def _open_spaces(source: BidsSource, labels: Sequence[str]) -> None:
    layout, space, wanted = source.layout, source.space, source.selection()
    if layout.derivatives is None:
        return
    each = {label: spaces_of(layout, label, wanted) for label in labels}
    everywhere = sorted({name for spaces in each.values() for name in spaces})
    if space is None:
        for label, spaces in each.items():
            if len(spaces) > 1:
                choose("--space", None, spaces, f"sub-{label}")
    elif everywhere and not any(name.split(":")[0] == space.split(":")[0] for name in everywhere):
        choose("--space", space, everywhere, "the dataset")
