"""Whether a file is an image or text, whatever its name says: for volumes and labels that were swapped."""

import codecs
import gzip
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mvpa_gamp.imaging.errors import DataError

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
