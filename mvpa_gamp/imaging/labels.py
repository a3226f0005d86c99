"""What was shown when: one condition and one run per volume, from the text form of nilearn or a TSV.

What looks wrong with files is said before they are read: volumes and labels swapped, or files out of order.
"""

import codecs
import csv
import gzip
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.names import natural

CONDITION_COLUMNS = ("labels", "label", "condition", "trial_type")
RUN_COLUMNS = ("chunks", "chunk", "run", "runs", "session")
_ZEROS = re.compile(r"(?<![0-9.,])0+(?=[0-9])")  # in front of a number
_NUMBER = re.compile(r"([+-]?[0-9]{1,15})(\.0*)?")  # a run; whatever else it is called is its name
UNLABELLED = "n/a"  # BIDS's word for a missing value: such volumes are never used
# Characters of a condition's name; names are repeated in every table, whose cells end at 131,072.
_LONGEST = 1000
_HEADER_SIZES = (348, 540)  # what the first number of NIfTI-1 (and Analyze) and NIfTI-2 headers says
_LOOK = 4096  # bytes


@dataclass(frozen=True)
class Labels:
    """Condition (M,) str and run (M,) int of each volume; ``run_names`` where the file has names for runs."""

    conditions: NDArray
    runs: NDArray | None
    run_names: dict[int, str] | None = None

    def __post_init__(self) -> None:
        longest = max(self.conditions, key=len, default="")
        if len(longest) > _LONGEST:
            raise DataError(
                f"labels: expected names of at most {_LONGEST} characters, got one of {len(longest)}, which "
                f"begins with {longest[:20]!r}. Shorten it."
            )

    def __len__(self) -> int:
        return len(self.conditions)

    def of_files(self, volumes: Sequence[int]) -> "Labels":
        """The labels of files with so many volumes; without runs of their own every file is a run."""
        if len(self) != sum(volumes):
            per_file = "" if len(volumes) == 1 else f" ({' + '.join(map(str, volumes))})"
            raise DataError(
                f"labels: expected one label per volume, {sum(volumes)}{per_file}, got {len(self)}. "
                "Give the label file of exactly these BOLD files."
            )
        if self.runs is None and len(volumes) == 1:
            raise DataError(
                "labels: expected a column with the run of each volume (chunks or run), got none for a "
                "single BOLD file. Add the column: cross-validation leaves one run out."
            )
        return self if self.runs is not None else Labels(self.conditions, runs_of_files(volumes))


def read_labels(path: str | Path) -> Labels:
    """Read a label file with a header line and one line per volume.

    Separated by spaces (nilearn's ``labels chunks``), tabs or commas. The condition is in the column
    ``labels``, ``condition`` or ``trial_type``, the run in ``chunks`` or ``run``; without a run column
    ``runs`` is None. Runs that are not whole numbers are numbered in the order of their names, 2 before 10.

    Parameters
    ----------
    path
        The label file.

    Returns
    -------
    Labels
        Conditions and runs (T,) of the volumes.
    """
    path = Path(path).expanduser()
    rows = _rows(path)
    header = [name.strip().lower() for name in rows[0]]
    if {"onset", "duration"} <= set(header):
        raise DataError(
            f"label file {path} lists events (onset, duration), expected one line per volume. "
            "Write the condition and the run of every volume."
        )
    condition = _column(header, CONDITION_COLUMNS)
    if condition is None:
        raise DataError(
            f"label file {path}: expected a header line with a column {' or '.join(CONDITION_COLUMNS)} and "
            f"one {' or '.join(RUN_COLUMNS)}, got {' '.join(rows[0])[:80]!r}. Add the header line."
        )
    _check_widths(path, rows)
    _check_headers(path, header, rows)
    run = _column(header, RUN_COLUMNS)
    conditions = np.array([row[condition].strip() or UNLABELLED for row in rows[1:]], dtype=str)
    if run is None:
        return Labels(conditions, None)
    return Labels(conditions, *_run_numbers(path, [row[run].strip() for row in rows[1:]]))


def shift_labels(labels: Labels, lag_trs: int) -> NDArray:
    """Conditions (M,) moved ``lag_trs`` volumes later within each run, for the delay of the BOLD response.

    The first ``lag_trs`` volumes of each run become unlabelled; labels never cross into another run.

    Parameters
    ----------
    labels
        From ``read_labels``.
    lag_trs
        Volumes, 0 or more.

    Returns
    -------
    ndarray
        Conditions (M,).

    Examples
    --------
    >>> import numpy as np
    >>> from mvpa_gamp.imaging.labels import Labels, shift_labels
    >>> shown = Labels(np.array(["face", "face", "rest", "cat"]), np.array([1, 1, 1, 1]))
    >>> shift_labels(shown, 1).tolist()[1:]
    ['face', 'face', 'rest']
    """
    shifted = np.full(len(labels), UNLABELLED, dtype=np.result_type(labels.conditions, np.array(UNLABELLED)))
    assert labels.runs is not None
    for run in np.unique(labels.runs):
        rows = np.flatnonzero(labels.runs == run)
        shifted[rows[lag_trs:]] = labels.conditions[rows[: max(0, len(rows) - lag_trs)]]
    return shifted


def runs_in_order(runs: NDArray) -> list[tuple[int, slice]]:
    """Each run and its rows, in order of appearance; a run must be one unbroken stretch."""
    borders = np.flatnonzero(np.diff(runs)) + 1
    starts, stops = np.r_[0, borders], np.r_[borders, len(runs)]
    stretches = [(int(runs[a]), slice(int(a), int(b))) for a, b in zip(starts, stops, strict=True)]
    seen: set[int] = set()
    for run, rows in stretches:
        if run in seen:
            raise DataError(
                f"labels: run {run} appears again at volume {rows.start + 1} (counted from 1) after another "
                "run. Expected each run in one stretch: sort the volumes by run and give every run its own "
                "number."
            )
        seen.add(run)
    return stretches


def runs_of_files(volumes: Sequence[int]) -> NDArray:
    """Run numbers when every BOLD file is a run: 1, 2, ... repeated for its volumes."""
    return np.repeat(np.arange(1, len(volumes) + 1), volumes)


def _rows(path: Path) -> list[list[str]]:
    """Cells of a text table, empty lines left out."""
    if not path.is_file():
        raise DataError(f"label file {path}: expected a text file, found none there. Check the path.")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DataError(
            f"label file {path} cannot be read ({error.strerror}). Check its permissions."
        ) from error
    except UnicodeDecodeError as error:
        raise DataError(f"label file {path} is not text in UTF-8 ({error}). Save it as UTF-8.") from error
    if "\0" in text:
        raise DataError(
            f"label file {path} is binary, expected text. Give nilearn's `labels chunks` form or a TSV."
        )
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) < 2:
        raise DataError(
            f"label file {path}: expected a header line and one line per volume, got {len(lines)} lines of "
            "text. Give nilearn's `labels chunks` form or a TSV."
        )
    for separator in ("\t", ","):
        if separator in lines[0]:
            return _cells(path, lines, separator)
    return [line.split() for line in lines]


def _cells(path: Path, lines: list[str], separator: str) -> list[list[str]]:
    """The cells of every line."""
    reader, rows = csv.reader(lines, delimiter=separator), []
    try:
        for row in reader:
            rows.append([cell.strip() for cell in row])
    except csv.Error as error:  # such as a quotation mark that is never closed
        limit = f"a field has more than {csv.field_size_limit():,} characters"
        told = limit if "field limit" in str(error) else error
        raise DataError(
            f"label file {path}: line {len(rows) + 1} cannot be read ({told}). Expected a condition and a "
            "run; correct that line."
        ) from error
    return rows


def _check_headers(path: Path, header: list[str], rows: list[list[str]]) -> None:
    """Refuse a column that is there twice, and a header line among the volumes, also in other words."""
    for names in (CONDITION_COLUMNS, RUN_COLUMNS):
        found = [name for name in header if name in names]
        if len(set(found)) < len(found):
            raise DataError(
                f"label file {path}: expected one column {found[0]!r}, got {found.count(found[0])}. Remove "
                "all but one."
            )
    for number, row in enumerate(rows[1:], start=2):
        cells = [cell.strip().lower() for cell in row]
        if cells == header or ({*cells} & {*CONDITION_COLUMNS} and {*cells} & {*RUN_COLUMNS}):
            raise DataError(
                f"label file {path}: line {number} is a second header line, expected the condition and run "
                "of a volume. Remove it."
            )


def _check_widths(path: Path, rows: list[list[str]]) -> None:
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != len(rows[0]):
            raise DataError(
                f"label file {path}: expected {len(rows[0])} columns as in its header, got {len(row)} in "
                f"line {number}. Correct that line."
            )


def _column(header: list[str], names: Sequence[str]) -> int | None:
    """Position of the first of ``names`` in the header."""
    return next((header.index(name) for name in names if name in header), None)


def _run_numbers(path: Path, cells: list[str]) -> tuple[NDArray, dict[int, str] | None]:
    """Runs as integers, and the names they stand for where the file has names."""
    if "" in cells:
        raise DataError(
            f"label file {path}: line {cells.index('') + 2} names no run. Fill in the run column."
        )
    spelled: dict[Any, str] = {}
    found = [_NUMBER.fullmatch(cell) for cell in cells]
    if all(found):
        numbers = [int(each[1]) for each in found if each]
        for number, cell in zip(numbers, cells, strict=True):
            if spelled.setdefault(number, cell) != cell:
                raise DataError(
                    f"label file {path}: run {number} is written {spelled[number]} and {cell}. If both are "
                    "one run, write it in one way; if not, give every run its own name."
                )
        return np.array(numbers, dtype=np.int64), None
    names = sorted(set(cells), key=natural)
    for name in names:
        if (other := spelled.setdefault(_ZEROS.sub("", name), name)) != name:
            raise DataError(
                f"label file {path}: runs {other} and {name} differ by leading zeros only. If both are "
                "one run, write it in one way; if not, give every run its own name."
            )
    order = {name: k + 1 for k, name in enumerate(names)}
    return np.array([order[cell] for cell in cells]), {k: name for name, k in order.items()}


def check_not_swapped(bold: Sequence[Any], labels: Any) -> None:
    """Refuse text where volumes belong, and an image where labels belong; images in memory are images."""
    texts = [Path(file).expanduser() for file in bold if isinstance(file, str | Path)]
    texts = [path for path in texts if is_text(path)]
    image = isinstance(labels, str | Path) and is_image(Path(labels).expanduser())
    if texts and image:
        raise DataError(
            f"BOLD file {texts[0]} is text and label file {labels} is an image: they look swapped. Give the "
            "volumes as BOLD (--bold) and the text as labels (--labels)."
        )
    if image:
        raise DataError(
            f"label file {labels} is an image, expected text. Give nilearn's `labels chunks` form or a TSV, "
            "one line per volume."
        )
    if texts:
        raise DataError(f"BOLD file {texts[0]} is text, expected a 4-D NIfTI file. Give the volumes.")


def is_image(path: Path) -> bool:
    """Whether a file begins like a NIfTI (or Analyze) header, compressed or not."""
    start = _beginning(path)
    sizes = [int.from_bytes(start[:4], order) for order in ("little", "big")]
    return len(start) >= min(_HEADER_SIZES) and any(size in _HEADER_SIZES for size in sizes)


def is_text(path: Path) -> bool:
    """Whether a file begins with text in UTF-8."""
    start = _beginning(path)
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)  # a letter cut at the end does not matter
    except UnicodeDecodeError:
        return False
    return len(start) > 0 and b"\0" not in start


def _beginning(path: Path) -> bytes:
    """The first bytes of a file, unpacked; none where it cannot be read."""
    try:
        with path.open("rb") as stream:
            packed = stream.read(2) == b"\x1f\x8b"
        with gzip.open(path, "rb") if packed else path.open("rb") as stream:
            return stream.read(_LOOK)
    except (OSError, EOFError, zlib.error):
        return b""


def order_notes(names: Sequence[str], volumes: Sequence[int], labels: Labels) -> tuple[str, ...]:
    """Sentences about what looks like a wrong order of files; ``volumes`` counts those of each file."""
    assert labels.runs is not None
    borders = np.cumsum(volumes)[:-1]
    crossing = [int(labels.runs[b]) for b in borders if labels.runs[b - 1] == labels.runs[b]]
    notes = []
    if crossing:
        runs = ", ".join(map(str, dict.fromkeys(crossing)))
        notes.append(
            f"Labels: run {runs} continues across the boundary of two BOLD files. Check that files and "
            "labels are in the same order."
        )
    files = [Path(name).name for name in names]
    for before, after in pairwise(files):
        if _swapped(before, after):
            notes.append(
                f"BOLD files are not in the order of their numbers: {before} comes before {after}. "
                "Check that files and labels are in the same order."
            )
            break
    return tuple(notes)


def _swapped(before: str, after: str) -> bool:
    """Whether two names that differ in their numbers alone stand in falling order."""
    same = re.sub(r"\d+", "0", before) == re.sub(r"\d+", "0", after)
    return same and _numbers_in(before) > _numbers_in(after)


def _numbers_in(name: str) -> list[int]:
    return [int(digits) for digits in re.findall(r"\d+", name)]
