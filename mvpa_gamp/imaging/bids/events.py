"""events.tsv: what was shown when, in seconds, and from it the condition and the event of every volume."""

import csv
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.imaging.errors import DataError, reason
from mvpa_gamp.imaging.labels import UNLABELLED

COLUMNS = ("onset", "duration", "trial_type")
_ROUNDING = 1e-3  # of a TR: onsets are written with a few decimals


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
