"""What looks wrong with files before they are read: volumes and labels swapped, or files out of order."""

import codecs
import gzip
import re
import zlib
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.labels import Labels

_HEADER_SIZES = (348, 540)  # what the first number of NIfTI-1 (and Analyze) and NIfTI-2 headers says
_LOOK = 4096  # bytes


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
    return same and _numbers(before) > _numbers(after)


def _numbers(name: str) -> list[int]:
    return [int(digits) for digits in re.findall(r"\d+", name)]
