"""From the files of a participant's runs to samples."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.imaging.bids.confounds import (
    RunConfounds,
    check_columns,
    columns_of,
    confound_columns,
    run_confounds,
    volume_notes,
)
from mvpa_gamp.imaging.bids.events import (
    Event,
    VolumeEvents,
    average_events,
    event_notes,
    events_of_runs,
    label_volumes,
    lost_conditions,
    short_name,
    trial_types,
)
from mvpa_gamp.imaging.bids.layout import (
    MIN_RUNS,
    RunFiles,
    is_on_surface,
    mask_for,
    open_runs,
    repetition_time_of,
)
from mvpa_gamp.imaging.bids.selection import NATIVE
from mvpa_gamp.imaging.bids.trials import RunTrials, run_trials, scale_run, scaling_for
from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.labels import Labels, runs_of_files
from mvpa_gamp.imaging.matrix import Images, read_series, usable_voxels
from mvpa_gamp.imaging.names import ALL_VERTICES, entity, files_of, shared_entities
from mvpa_gamp.imaging.processing import Nuisance
from mvpa_gamp.imaging.samples import Samples, load_samples

if TYPE_CHECKING:
    from mvpa_gamp.imaging.bids.source import BidsSource

_COMMON = "the voxels that all runs' brain masks have in common"
_RAW = "The volumes are raw and not corrected for motion. Preprocessed ones are better (--derivatives)."


@dataclass(frozen=True)
class _Read:
    """What is known of a participant's runs before their volumes are made to samples."""

    source: "BidsSource"
    runs: list[RunFiles]
    t_r: float
    events: list[list[Event]]
    wanted: set[str]
    confounds: list[RunConfounds]
    series: Images

    @property
    def volumes(self) -> list[int]:
        """Their numbers in each run."""
        return list(self.series.counts)

    @property
    def nuisance(self) -> dict[Any, Nuisance]:
        """By number of the run."""
        return {number: each.nuisance for number, each in enumerate(self.confounds, start=1)}


def load_participant(source: "BidsSource") -> Samples:
    """Samples of a participant whose settings are resolved."""
    read = _read(source)
    mask, mask_notes = mask_for(source, read.runs, read.series)
    samples = (_trials if source.samples == "trial" else _labelled_volumes)(read, mask)
    lost = lost_conditions(samples, read.wanted, source.asks_for_all)
    raw = () if source.layout.derivatives else (_RAW,)
    samples = replace(
        samples,
        notes=(
            *mask_notes,
            *raw,
            *volume_notes(read.confounds),
            *lost,
            *samples.notes,
            *session_notes(read.runs, source.cv),
        ),
        space=read.runs[0].entities.get("space", NATIVE),
        entities=shared_entities(run.entities for run in read.runs),
        origin=source.layout.origin(_files(read.runs), read.runs[0].metadata),
        confound_columns=columns_of(read.confounds),
        sessions=_sessions(read.runs, samples.runs),
    )
    if source.cv == "session":
        samples = by_session(samples, [run.session for run in read.runs])
    return _told(samples, read)


def _files(runs: Sequence[RunFiles]) -> list[Path]:
    """What samples are made from: all series, then their events, confounds and masks."""
    others = [path for run in runs for path in (run.events, run.confounds, run.mask) if path is not None]
    return list(dict.fromkeys([*(file for run in runs for file in files_of(run.bold)), *others]))


def _read(source: "BidsSource") -> _Read:
    runs = source.runs()
    t_r = repetition_time_of(runs, source.t_r)
    events = events_of_runs(runs)
    wanted = source.wanted([trial for each in events for trial in trial_types(each)])
    columns = confound_columns(source.confounds)
    check_confounds(runs, columns, source.confounds_strategy)
    series = open_runs(source, runs)
    confounds = [
        run_confounds(run, n, columns, source.confounds_strategy)
        for run, n in zip(runs, series.counts, strict=True)
    ]
    return _Read(source, runs, t_r, events, wanted, confounds, series)


def _labelled_volumes(read: _Read, mask: Any) -> Samples:
    """A sample per volume in an event, or per event."""
    source, t_r = read.source, read.t_r
    shown = _shown(read, read.wanted)
    own = {str(name) for each in shown for name in np.unique(each.conditions)} & read.wanted
    if source.asks_for_all and own:  # events that only lie in those of others, such as button presses
        shown = _shown(read, own)
    labels = Labels(np.concatenate([each.conditions for each in shown]), runs_of_files(read.volumes))
    steps = replace(source.processing(), t_r=t_r)
    samples = load_samples(read.series, labels, mask, steps, source.participant_label, read.nuisance)
    samples = replace(samples, notes=(*event_notes(shown), *samples.notes))
    return average_events(samples, shown, labels, steps.lag_trs) if source.samples == "block" else samples


def _shown(read: _Read, wanted: set[str]) -> list[VolumeEvents]:
    """The conditions of the volumes of every run, of those wanted."""
    return [
        label_volumes(each, n, read.t_r, start_time(run, read.t_r), wanted)
        for run, each, n in zip(read.runs, read.events, read.volumes, strict=True)
    ]


def _trials(read: _Read, mask: Any) -> Samples:
    """A sample per event: its effect in a general linear model of the run."""
    source = read.source
    series = read_series(read.series, mask, source.smoothing_fwhm)
    places = np.split(np.arange(sum(read.volumes)), np.cumsum(read.volumes)[:-1])
    usable, notes = usable_voxels(series, places)
    found = []
    for number, (run, place) in enumerate(zip(read.runs, places, strict=True), start=1):
        times = start_time(run, read.t_r) + read.t_r * np.arange(len(place))
        values = series.values[np.ix_(place, usable)]
        events, nuisance = read.events[number - 1], read.nuisance[number]
        found.append(run_trials(values, times, events, read.wanted, nuisance, source.model, number))
    scaling = scaling_for([len(each.events) for each in found], source.standardize)
    X = [scale_run(each.effects, scaling, number) for number, each in enumerate(found, start=1)]
    unseen = sum(each.unseen for each in found)
    notes = series.notes + notes + ((scaling.note,) if scaling.note else ())
    if unseen:
        notes += (f"{unseen} events lie outside the volumes of their run and were left out.",)
    samples = trial_samples(np.concatenate(X), found, series.mask_of(usable), series.mean_img, notes, source)
    return replace(samples, provenance={"trial_scaling": scaling.words})


def trial_samples(
    X: NDArray, found: Sequence[RunTrials], mask_img: Any, mean_img: Any, notes: Any, source: "BidsSource"
) -> Samples:
    """The scaled effects of the trials of all runs as samples that know their event."""
    events = [event for each in found for event in each.events]
    return Samples(
        X=np.ascontiguousarray(X, dtype=np.float32),
        conditions=np.array([event.trial_type for event in events]),
        runs=np.repeat(np.arange(1, len(found) + 1), [len(each.events) for each in found]),
        mask_img=mask_img,
        background_img=mean_img,
        subject=entity(source.participant_label),
        notes=tuple(notes),
        kind="trial",
        events={
            "onset": np.array([event.onset for event in events]),
            "duration": np.array([event.duration for event in events]),
            "event_line": np.array([event.line for event in events]),
        },
    )


def by_session(samples: Samples, sessions: Sequence[str]) -> Samples:
    """The same samples, their runs joined by session: one session is held out at a time.

    ``sessions`` are those of run 1, 2, ...
    """
    names = held_out_sessions(sessions[run - 1] for run in np.unique(samples.runs))
    number = np.array([names.index(each) + 1 if each in names else 0 for each in sessions])
    return replace(samples, runs=number[samples.runs - 1], held_out="session")


def held_out_sessions(sessions: Iterable[str]) -> list[str]:
    """The distinct sessions of some runs, refused where they are too few or not named."""
    names = list(dict.fromkeys(sessions))
    if len(names) < MIN_RUNS or "" in names:
        told = ", ".join(name or "none" for name in names)
        raise DataError(
            f"--cv session: expected runs of at least {MIN_RUNS} sessions (ses-), got {told}. Leave it out "
            "to hold out runs."
        )
    return names


def _sessions(runs: Sequence[RunFiles], numbers: NDArray) -> NDArray | None:
    """The session (M,) of samples with these run numbers; None where there is only one."""
    names = np.array([run.session for run in runs])
    return names[numbers - 1] if len(set(names.tolist())) > 1 else None


def session_notes(runs: Sequence[RunFiles], cv: str) -> tuple[str, ...]:
    """Which runs are of which session, where there are several: names do not tell which came first."""
    numbers: dict[str, list[int]] = {}
    for number, run in enumerate(runs, start=1):
        numbers.setdefault(run.session, []).append(number)
    if len(numbers) < 2:
        return ()
    if cv == "session":
        told = [f"{k} is ses-{name}" for k, name in enumerate(numbers, start=1)]
    else:
        told = [f"{_span(own)} of ses-{name}" for name, own in numbers.items()]
    return (
        f"{'Session' if cv == 'session' else 'Runs'} {', '.join(told)}: sessions are in the order of their "
        "names, which need not be that of the scans.",
    )


def _span(numbers: Sequence[int]) -> str:
    return f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]}-{numbers[-1]}"


def start_time(run: RunFiles, t_r: float) -> float:
    """When the first volume stands for: fMRIPrep's StartTime after slice-timing correction, else 0."""
    value = run.metadata.get("StartTime", 0.0)
    return float(value) if isinstance(value, int | float) and 0 <= value < t_r else 0.0


def check_confounds(runs: Sequence[RunFiles], columns: tuple[str, ...], strategy: str = "") -> None:
    """Refuse runs without a confounds table, or without the columns asked for; no volume is read."""
    if not columns and not strategy:
        return
    for run in runs:
        if run.confounds is None:
            run_confounds(run, 0, columns, strategy)  # says what is missing
    check_columns([run.confounds for run in runs if run.confounds is not None], columns)


def _told(samples: Samples, read: _Read) -> Samples:
    """The samples with where they came from."""
    source, runs = read.source, read.runs
    made = _preparation(samples) if source.layout.derivatives else "raw volumes"
    what = f"{made}, {len(runs)} runs of {_listed('task', runs)}{_listed('session', runs, ' in ')}"
    return samples.from_source(
        "bids",
        f"Participant {samples.subject} of a BIDS dataset ({what}); samples are {samples.plural}.",
        unit=samples.plural,
        space=samples.space,
        runs=", ".join(f"{k} = {short_name(run)}" for k, run in enumerate(runs, start=1)),
        events=[str(run.events) for run in runs],
        mask=source.mask or (ALL_VERTICES if is_on_surface(runs) else _COMMON),
        confound_columns=list(samples.confound_columns),
        confounds_strategy=source.confounds_strategy or None,
        non_steady_state_volumes=sum(each.unsteady for each in read.confounds),
        scrubbed_volumes=sum(each.scrubbed for each in read.confounds),
    )


def _preparation(samples: Samples) -> str:
    """Who preprocessed the volumes, as their dataset says."""
    named = [f"{name} {version}" for name, version in samples.origin.software.items()]
    return f"preprocessed with {' and '.join(named)}" if named else "fMRIPrep derivatives"


def _listed(what: str, runs: Sequence[RunFiles], before: str = "") -> str:
    """``task a`` or ``tasks a and b``; nothing where names tell none."""
    names = dict.fromkeys(run.entities.get(_ENTITY[what], "") for run in runs)
    known = [name for name in names if name]
    if not known:
        return "" if before else f"an unnamed {what}"
    return f"{before}{what}{'s' * (len(known) > 1)} {' and '.join(known)}"


_ENTITY = {"task": "task", "session": "ses"}
