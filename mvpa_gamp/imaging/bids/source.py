"""Volumes of a BIDS dataset: fMRIPrep derivatives (or raw volumes) and events in, Samples out.

A sample is a volume ("tr"), the mean of the volumes of an event ("block"), or a given map ("betas", see
betas.py). Runs are numbered 1, 2, ... across sessions.
"""

import difflib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.decoding.designs import ALL, design_pairs
from mvpa_gamp.decoding.groups import read_side
from mvpa_gamp.imaging.bids.confounds import check_columns, confound_columns
from mvpa_gamp.imaging.bids.events import Event, VolumeEvents, label_volumes, read_events, trial_types
from mvpa_gamp.imaging.bids.layout import (
    NATIVE,
    Layout,
    RunFiles,
    find_layout,
    find_runs,
    repetition_time_of,
)
from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.labels import Labels, runs_of_files, shift_labels
from mvpa_gamp.imaging.processing import Processing
from mvpa_gamp.imaging.samples import Samples, load_samples
from mvpa_gamp.imaging.source import Source
from mvpa_gamp.imaging.volumes import check_same_grid, computed_mask, like, open_mask, open_series

HAEMODYNAMIC_DELAY = 5.0  # s, to the peak of the usual response: the default lag is the nearest number of TRs
_OFFERED = 6  # conditions listed in a message
DEFAULT_CONFOUNDS = ("motion6",)  # of derivatives; raw datasets have none


def default_lag(t_r: float) -> int:
    """Volumes nearest to the delay of the haemodynamic response, at least one: 2 at a TR of 2.5 s."""
    return max(1, round(HAEMODYNAMIC_DELAY / t_r))


_Bids = TypeVar("_Bids", bound="BidsSource")


@dataclass(frozen=True, kw_only=True)
class BidsSource(Source):
    """A participant of a BIDS dataset: volumes, or means over events, that events label.

    ``derivatives`` is fMRIPrep's output (default: BIDS_DIR/derivatives/fmriprep if it is there), or "none".
    Task and space None: the only one there is. ``pairs`` are "a:b" texts, or ("all",); with ``classes`` and
    ``cross`` they say which events are read. ``confounds`` are names of sets or columns. Without a mask the
    voxels are those that all runs' brain masks have in common. Lag None: the nearest number of TRs to 5 s.
    """

    bids_dir: str = ""
    derivatives: str = ""
    participant_label: str = ""
    task: str | None = None
    space: str | None = None
    samples: str = "tr"
    pairs: tuple[str, ...] = ALL
    classes: tuple[str, ...] = ()
    cross: tuple[str, ...] = ()
    confounds: tuple[str, ...] = ()
    mask: str = ""
    lag_trs: int | None = None

    name = "a BIDS dataset"
    paths: ClassVar[tuple[str, ...]] = ("bids_dir", "derivatives", "mask")
    words = ("none",)
    kinds: ClassVar[tuple[str, ...]] = ("tr", "block")

    @property
    def layout(self) -> Layout:
        """The dataset's folders."""
        return find_layout(self.bids_dir, self.derivatives)

    def dataset(self: _Bids) -> _Bids:
        """The settings that all participants share, with nothing left to defaults but their lag."""
        if self.samples not in self.kinds:
            known = ", ".join(self.kinds)
            raise DataError(f"--samples: expected {known}, got {self.samples!r}. Choose one of them.")
        self.processing()  # refuses what has no meaning
        layout = self.layout
        confounds = self.confounds or (DEFAULT_CONFOUNDS if layout.derivatives else ("none",))
        confound_columns(confounds)
        derivatives = str(layout.derivatives or "none")
        return replace(self.absolute(), derivatives=derivatives, confounds=confounds)

    def resolve(self: _Bids) -> _Bids:
        """The settings of one participant; the default lag follows from the time between its volumes."""
        if not self.participant_label:
            raise DataError("A BIDS dataset needs --participant-label. Give one.")
        ready = replace(self.dataset(), participant_label=self.participant_label.removeprefix("sub-"))
        if ready.lag_trs is not None:
            return ready
        return replace(ready, lag_trs=default_lag(repetition_time_of(ready.runs(), ready.t_r)))

    def runs(self) -> list[RunFiles]:
        """The participant's runs."""
        return find_runs(self.layout, self.participant_label, self.task, self.space)

    def wanted(self, found: Collection[str]) -> set[str]:
        """The conditions among those found that are compared."""
        return wanted_categories(self.pairs, found, self.classes, self.cross)

    def load(self) -> Samples:
        """Samples of the participant."""
        return _load(self.resolve())


def _load(source: BidsSource) -> Samples:
    """Samples of a participant whose settings are resolved."""
    runs = source.runs()
    t_r = repetition_time_of(runs, source.t_r)
    events = [events_of(run) for run in runs]
    wanted = source.wanted([trial for each in events for trial in trial_types(each)])
    columns = confound_columns(source.confounds)
    tables = confound_files(runs, columns)
    steps = replace(source.processing(confounds=tables, confound_columns=columns or None), t_r=t_r)
    images = [open_series(run.bold) for run in runs]
    volumes = [image.shape[3] for image in images]
    shown = [
        label_volumes(each, n, t_r, _start_time(run, t_r), wanted)
        for run, each, n in zip(runs, events, volumes, strict=True)
    ]
    mask, mask_notes = _mask(runs, images, source.mask)
    labels = Labels(np.concatenate([each.conditions for each in shown]), runs_of_files(volumes))
    samples = load_samples(images, labels, mask, steps, source.participant_label)
    lost = _lost_conditions(samples, wanted, ALL in (source.pairs, source.classes))
    samples = replace(
        samples,
        notes=(*mask_notes, *_notes(shown, source.layout), *lost, *samples.notes),
        space=runs[0].entities.get("space", NATIVE),
        confound_columns=columns,
    )
    if source.samples == "block":
        samples = average_events(samples, shown, labels, steps.lag_trs)
    named = [run.entities.get("ses", "") for run in runs]
    return _told(replace(samples, sessions=sessions_of(samples.runs, named)), source, runs)


def sessions_of(runs: NDArray, names: Sequence[str]) -> NDArray | None:
    """The session (M,) of each row from those of runs 1, 2, ...; None where files name none."""
    return np.array(names)[runs - 1] if any(names) else None


def events_of(run: RunFiles) -> list[Event]:
    """The events of a run."""
    if run.events is None:
        raise DataError(
            f"{run.bold.name}: expected an events.tsv of the same run (or an inherited one) in the BIDS "
            "dataset, found none. Add it, or give beta maps with --samples betas."
        )
    return read_events(run.events)


def wanted_categories(
    pairs: Sequence[str], found: Collection[str], classes: Sequence[str] = (), cross: Sequence[str] = ()
) -> set[str]:
    """The conditions that pairs, classes and crosses name, checked against those there are."""
    rest = [name for name in Processing().drop if name in found]
    known = sorted({name for name in found if name not in rest})
    for text in pairs:
        _check_names(text, known, rest)
    try:
        chosen = design_pairs(list(pairs), classes, cross, known, rest, option="--contrasts")
    except ValueError as error:
        raise DataError(str(error)) from error
    return {name for pair in chosen for side in pair for name in read_side(side, known).members}


def _check_names(text: str, known: Sequence[str], rest: Sequence[str]) -> None:
    """Refuse a pair with an unknown condition, offering those of similar names first: events name a lot."""
    names = text.split(":")
    sides = [read_side(name, (*known, *rest)) for name in names]
    unknown = next((name for side in sides for name in side.unknown), None)
    if len(names) != 2 or unknown is None:
        return  # well, or for parse_pairs to say
    near = difflib.get_close_matches(unknown, known, n=3)
    others = [name for name in known if name not in (*near, *names)]
    offer = f"Did you mean {' or '.join(map(repr, near))}? " if near else ""
    listed = ", ".join(map(repr, others[:_OFFERED])) or "none"
    more = f" and {len(others) - _OFFERED} more" if len(others) > _OFFERED else ""
    raise DataError(
        f"--contrasts: the pair {text!r} names {unknown!r}, which the data do not have. {offer}"
        f"{'Others' if near else 'Choose among those'} that are there: {listed}{more}."
    )


def average_events(samples: Samples, shown: Sequence[VolumeEvents], labels: Labels, lag_trs: int) -> Samples:
    """One sample per event, the mean of its cleaned volumes; its place is that of its first volume."""
    assert samples.volumes is not None
    numbers = Labels(np.concatenate([each.events for each in shown]).astype(str), labels.runs)
    event = shift_labels(numbers, lag_trs)[samples.volumes]
    key = np.char.add(np.char.add(samples.runs.astype(str), " "), event)
    _, first, member = np.unique(key, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.argsort(order)[member.reshape(-1)]
    sums = np.zeros((len(first), samples.X.shape[1]))
    np.add.at(sums, rank, samples.X)
    means = sums / np.bincount(rank)[:, None]
    keep = first[order]
    return replace(
        samples,
        X=np.ascontiguousarray(means, dtype=np.float32),
        conditions=samples.conditions[keep],
        runs=samples.runs[keep],
        volumes=samples.volumes[keep],
        kind="block",
        notes=(*samples.notes, f"{len(samples.X):,} volumes were averaged to {len(keep):,} events."),
    )


def common_mask(files: Sequence[Path]) -> Any:
    """The voxels that are in every mask, as an image on the first one's grid."""
    first, inside = open_mask(files[0])
    for path in files[1:]:
        image, other = open_mask(path)
        check_same_grid(image, first, "mask")
        inside = inside & other
    if not inside.any():
        raise DataError(
            f"mask: the brain masks of the {len(files)} runs have no voxel in common. Give one with --mask."
        )
    return like(first, inside.astype(np.uint8))


def confound_files(runs: Sequence[RunFiles], columns: tuple[str, ...]) -> tuple[Path, ...]:
    """The confound tables of the runs, each with all of the columns; none where no column is asked for."""
    files = []
    for run in runs if columns else ():
        if run.confounds is None:
            raise DataError(
                f"confounds: expected desc-confounds_timeseries.tsv beside {run.bold.name}, found none. Give "
                "--confounds none, or --derivatives."
            )
        check_columns(run.confounds, columns)
        files.append(run.confounds)
    return tuple(files)


def _mask(runs: Sequence[RunFiles], images: Sequence[Any], given: str) -> tuple[Any, tuple[str, ...]]:
    """The mask given, the common part of the runs' brain masks, or one computed from raw volumes."""
    if given:
        return given, ()
    files = [run.mask for run in runs if run.mask is not None]
    if len(files) == len(runs):
        return common_mask(files), ()
    if files or "desc-preproc" in runs[0].bold.name:
        without = next(run.bold.name for run in runs if run.mask is None)
        raise DataError(
            f"mask: expected a desc-brain_mask beside every run, found none for {without}. Add it, or "
            "give --mask."
        )
    for image in images[1:]:
        check_same_grid(image, images[0], "BOLD file")
    mask, size = computed_mask(images)
    if not size:
        raise DataError("mask: none could be computed from the raw volumes. Give one with --mask.")
    return mask, (f"The brain mask was computed from the mean volume: {size:,} voxels.",)


def _start_time(run: RunFiles, t_r: float) -> float:
    """When the first volume stands for: fMRIPrep's StartTime after slice-timing correction, else 0."""
    value = run.metadata.get("StartTime", 0.0)
    return float(value) if isinstance(value, int | float) and 0 <= value < t_r else 0.0


def _notes(shown: Sequence[VolumeEvents], layout: Layout) -> tuple[str, ...]:
    """Sentences about what was not taken as written."""
    notes = []
    if layout.derivatives is None:
        notes.append("The volumes are raw: not corrected for motion. Prefer fMRIPrep's (--derivatives).")
    ambiguous, stretched = (sum(getattr(each, name) for each in shown) for name in ("ambiguous", "stretched"))
    if ambiguous:
        notes.append(f"{ambiguous} volumes lie in events of two conditions and were left out.")
    if stretched:
        notes.append(f"{stretched} events are shorter than a TR and were taken for one TR long.")
    return tuple(notes)


def _lost_conditions(samples: Samples, wanted: set[str], asked_for_all: bool) -> tuple[str, ...]:
    """Conditions without a volume of their own: refused where named, a note where all were asked for."""
    lost = sorted(wanted - set(samples.conditions))
    if lost and not asked_for_all:
        raise DataError(
            f"--contrasts: {lost[0]} has no volume: its events lie outside the runs, or within events of "
            "another condition. Check the events, or leave it out."
        )
    return tuple(f"The condition {name} has no volume of its own and is not compared." for name in lost)


def _told(samples: Samples, source: BidsSource, runs: Sequence[RunFiles]) -> Samples:
    """The samples with where they came from."""
    made = "fMRIPrep derivatives" if source.layout.derivatives else "raw volumes"
    what = f"{made}, {len(runs)} runs of task {runs[0].entities.get('task', 'unnamed')}"
    return samples.from_source(
        "bids",
        f"Participant {samples.subject} of a BIDS dataset ({what}); samples are {samples.plural}.",
        unit=samples.plural,
        space=samples.space,
        events=[str(run.events) for run in runs],
        mask=source.mask or "the voxels that all runs' brain masks have in common",
        confound_columns=list(samples.confound_columns),
    )
