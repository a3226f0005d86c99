"""events.tsv: what was shown when, in seconds, and from it the condition and the event of every volume."""

import csv
import difflib
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.decoding.designs import design_pairs
from mvpa_gamp.decoding.tasks import read_side
from mvpa_gamp.imaging.bids.layout import RunFiles
from mvpa_gamp.imaging.errors import DataError, reason
from mvpa_gamp.imaging.labels import UNLABELLED, Labels, shift_labels
from mvpa_gamp.imaging.processing import Processing
from mvpa_gamp.imaging.samples import Samples

COLUMNS = ("onset", "duration", "trial_type")
_ROUNDING = 1e-3  # of a TR: onsets are written with a few decimals
_OFFERED = 6  # conditions listed in a message


@dataclass(frozen=True)
class Event:
    """A stretch of time in seconds from the first volume, and what was shown."""

    onset: float
    duration: float
    trial_type: str
    line: int = 0  # of the table, its header being line 1


@dataclass(frozen=True)
class VolumeEvents:
    """Condition (T,) and event number from 1 (T,), 0 where there is none, of each volume of a run."""

    conditions: NDArray
    events: NDArray
    ambiguous: int = 0  # volumes left out because two conditions claim them
    stretched: int = 0  # events shorter than a TR, taken for one TR


def read_events(path: Path) -> list[Event]:
    """The events of a run in order of onset; rows without a trial_type (n/a) are left out."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            rows = list(csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))
            header = tuple(rows[0]) if rows else ()
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(
            f"events {path} cannot be read as a table ({reason(error)}). Check the file."
        ) from error
    if not rows:
        raise DataError(
            f"events {path}: expected a header and a line per event, got no event. Check the file."
        )
    missing = [name for name in COLUMNS if name not in header]
    if missing:
        listed = ", ".join(map(str, header))
        raise DataError(
            f"events {path}: expected the columns {', '.join(COLUMNS)}, got {listed}; "
            f"{' and '.join(missing)} is missing. Add it: trial_type names what is decoded."
        )
    events = [_event(path, line, row) for line, row in enumerate(rows, start=2)]
    known = [event for event in events if event.trial_type != UNLABELLED]
    if not known:
        raise DataError(
            f"events {path}: trial_type is n/a in every line. Fill it in: it names what is decoded."
        )
    return sorted(known, key=lambda event: event.onset)


def trial_types(events: Sequence[Event]) -> list[str]:
    """The conditions that occur, sorted."""
    return sorted({event.trial_type for event in events})


def label_volumes(
    events: Sequence[Event], n_volumes: int, t_r: float, start: float = 0.0, wanted: Collection[str] = ()
) -> VolumeEvents:
    """Volumes at times start + k t_r that lie in [onset, onset + duration) of an event, without any lag.

    Only ``wanted`` conditions count (empty: all). An event shorter than a TR is taken for one TR long,
    so that it holds exactly one volume. A volume that two conditions claim is left out.
    """
    conditions = np.full(n_volumes, UNLABELLED, dtype=f"U{max([3, *(len(e.trial_type) for e in events)])}")
    numbers = np.zeros(n_volumes, dtype=int)
    ambiguous = np.zeros(n_volumes, dtype=bool)
    stretched = 0
    for number, event in enumerate(events, start=1):
        if wanted and event.trial_type not in wanted:
            continue
        stretched += event.duration < t_r * (1 - _ROUNDING)
        first, last = (
            _volume_at(t - start, t_r) for t in (event.onset, event.onset + max(event.duration, t_r))
        )
        span = slice(min(max(first, 0), n_volumes), min(max(last, 0), n_volumes))
        ambiguous[span] |= ~np.isin(conditions[span], [UNLABELLED, event.trial_type])
        conditions[span], numbers[span] = event.trial_type, number
    conditions[ambiguous], numbers[ambiguous] = UNLABELLED, 0
    return VolumeEvents(conditions, numbers, int(ambiguous.sum()), stretched)


def _volume_at(seconds: float, t_r: float) -> int:
    """The first volume at or after a time."""
    return math.ceil(seconds / t_r - _ROUNDING)


def _event(path: Path, line: int, row: dict[str, str | None]) -> Event:
    """One line of the table."""
    times = []
    for name in ("onset", "duration"):
        text = (row[name] or "").strip()
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or (name == "duration" and value < 0):
            raise DataError(
                f"events {path}, line {line}: expected {name} in seconds, got {text or 'nothing'!r}. "
                "Correct it."
            )
        times.append(value)
    return Event(times[0], times[1], (row["trial_type"] or "").strip() or UNLABELLED, line)


class MissingEvents(DataError):
    """Runs without an events.tsv; ``which`` are they, in a few words that start with the participant."""

    def __init__(self, which: Sequence[str]) -> None:
        self.which = which
        super().__init__(
            f"Without an events.tsv (or an inherited one) in the BIDS dataset: {'; '.join(which)}. Add the "
            "files, leave such runs out with --run-label or --bids-filter-file (a participant with "
            "--participant-label), or give beta maps with --samples betas."
        )


def events_of_runs(runs: Sequence[RunFiles]) -> list[list[Event]]:
    """The events of every run of a participant."""
    missing = [short_name(run) for run in runs if run.events is None]
    if missing:
        which = f"all {len(runs)} runs" if len(missing) == len(runs) else ", ".join(missing)
        raise MissingEvents([f"sub-{runs[0].entities['sub']} ({which})"])
    return [read_events(run.events) for run in runs if run.events is not None]


def short_name(run: RunFiles) -> str:
    """Session, task and run of a file name."""
    named = [f"{key}-{run.entities[key]}" for key in ("ses", "task", "run") if key in run.entities]
    return " ".join(named) or run.bold.name


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
        f"--contrasts: the pair {text!r} names {unknown!r}, which the data do not contain. {offer}"
        f"{'Other conditions' if near else 'Conditions in the data'}: {listed}{more}."
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
    keep = first[order]

    def means(values: NDArray) -> NDArray:
        sums = np.zeros((len(first), values.shape[1]))
        np.add.at(sums, rank, values)
        return np.ascontiguousarray(sums / np.bincount(rank)[:, None], dtype=np.float32)

    return replace(
        samples,
        X=means(samples.X),
        around=None if samples.around is None else means(samples.around),
        fingerprints=None,
        conditions=samples.conditions[keep],
        runs=samples.runs[keep],
        volumes=samples.volumes[keep],
        kind="block",
        notes=(*samples.notes, f"{len(samples.X):,} volumes were averaged to {len(keep):,} events."),
    )


def event_notes(shown: Sequence[VolumeEvents]) -> tuple[str, ...]:
    """Sentences about what was not taken as written."""
    notes = []
    ambiguous, stretched = (sum(getattr(each, name) for each in shown) for name in ("ambiguous", "stretched"))
    if ambiguous:
        notes.append(
            f"{ambiguous} volumes lie in events of two conditions and were left out. Name the conditions to "
            "decode (--contrasts, --classes) so that other events, such as button presses, take none."
        )
    if stretched:
        notes.append(f"{stretched} events are shorter than a TR and were treated as one TR long.")
    return tuple(notes)


def lost_conditions(samples: Samples, wanted: set[str], asked_for_all: bool) -> tuple[str, ...]:
    """Conditions without a volume of their own: refused where named, a note where all were asked for."""
    lost = sorted(wanted - set(samples.conditions))
    if lost and not asked_for_all:
        raise DataError(
            f"--contrasts: {lost[0]} has no volume: its events lie outside the runs, or within events of "
            "another condition. Check the events, or leave it out."
        )
    return tuple(
        f"The condition {name} has no volume of its own and is not compared; its events take no volumes."
        for name in lost
    )
