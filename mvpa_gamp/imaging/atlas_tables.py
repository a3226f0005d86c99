"""Names of an atlas's regions, from the tables that come with atlases."""

import csv
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mvpa_gamp.imaging.errors import DataError

_ENDINGS = (".tsv", ".csv", ".txt", ".lut")
_INDEX, _NAME = ("index", "value", "id"), ("name", "label", "region")
_BACKGROUND = ("background", "unknown", "???", "0")
_LARGEST = 1 << 22  # bytes; a table of names is small


def find_table(image: Path) -> Path | None:
    """The table beside an atlas: of the same name, or, as BIDS allows, without its ``res-`` or ``space-``.

    ``<name>.tsv``, ``.csv``, ``.txt`` and ``.lut`` are looked for in this order. Hemispheres share a table.
    """
    stem = re.sub(r"(\.d(label|scalar))?\.nii(\.gz)?$|(\.(label|func|shape))?\.gii$|\.annot$", "", image.name)
    stems = dict.fromkeys(
        re.sub(rf"_({dropped})-[^_]+", "", stem)
        for dropped in ("hemi", "hemi|res", "hemi|space", "hemi|res|space")
    )
    candidates = (image.with_name(name + ending) for name in stems for ending in _ENDINGS)
    return next((path for path in candidates if path.is_file()), None)


def read_table(path: Path) -> dict[int, str]:
    """Number to name, from one of three forms:

    a table with a header line that has the columns ``index`` and ``name`` (BIDS's ``_dseg.tsv``; tabs or
    commas); lines that begin with the number and the name (lookup tables of FreeSurfer and others; # begins a
    comment); or one name per line (nilearn's lists), where the first line names region 1, or 0 if it says
    Background.
    """
    lines = _lines(path)
    separator = "\t" if "\t" in lines[0] else ","
    header = [part.strip().strip('"').lower() for part in lines[0].split(separator)]
    if {"index", "name"} <= set(header) or (_column(header, _INDEX) and _column(header, _NAME)):
        return _from_columns(path, lines, separator, header)
    body = [line for line in lines if not line.lstrip().startswith("#")]
    numbered = [re.fullmatch(r"\s*(\d+)[\s,;:]+(\S.*)", line) for line in body]
    if body and all(numbered):
        return _checked(path, [(found[1], _first_name(found[2])) for found in numbered if found])
    if any(numbered) or len(header) > 1:
        raise DataError(
            f"atlas labels {path}: expected the columns index and name, or a number and a name on every "
            f"line, or one name per line, got {lines[0][:80]!r}. Write a TSV with the columns index and name."
        )
    first = 0 if body[0].strip().lower() in _BACKGROUND else 1
    return _checked(path, [(str(first + k), name) for k, name in enumerate(body)])


def names_of(labels: Any, beside: Path | None = None) -> dict[int, str] | None:
    """Number to name from whatever tells them; None where nothing does.

    ``labels`` is the file of a table, a mapping, a list of names from number 0 on, or a data frame with the
    columns index and name, as nilearn's ``lut``; without them the table ``beside`` the atlas is read.
    """
    if isinstance(labels, str | Path):
        table = Path(labels).expanduser() if str(labels) else beside
        return None if table is None else read_table(table)
    if hasattr(labels, "columns"):
        labels = dict(zip(labels["index"], labels["name"], strict=True))
    pairs = labels.items() if isinstance(labels, Mapping) else enumerate(labels)
    return {int(index): plain(_decoded(text)) for index, text in pairs}


def _decoded(name: Any) -> Any:
    """Old tables hold bytes."""
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else name


def plain(text: object) -> str:
    """A name on one line, without control characters."""
    letters = (letter if letter.isprintable() else " " for letter in str(text))
    return " ".join("".join(letters).split())


def _column(header: Sequence[str], names: Sequence[str]) -> str | None:
    return next((name for name in names if name in header), None)


def _from_columns(path: Path, lines: list[str], separator: str, header: list[str]) -> dict[int, str]:
    """The two columns of a table."""
    index, name = _column(header, _INDEX), _column(header, _NAME)
    assert index is not None and name is not None
    try:
        rows = list(csv.reader(lines[1:], delimiter=separator))
    except csv.Error as error:  # such as a cell that never ends
        raise DataError(f"atlas labels {path} cannot be read as a table ({error}). Correct it.") from error
    short = next((k for k, row in enumerate(rows) if len(row) < len(header)), None)
    if short is not None:
        raise DataError(
            f"atlas labels {path}: line {short + 2} has {len(rows[short])} of {len(header)} columns. "
            "Correct that line."
        )
    return _checked(path, [(row[header.index(index)], row[header.index(name)]) for row in rows])


def _first_name(rest: str) -> str:
    """The name of a line of a lookup table, without the colours behind it."""
    parts = re.split(r"\t", rest) if "\t" in rest else [re.sub(r"(\s+\d+){3,}\s*$", "", rest)]
    return parts[0]


def _checked(path: Path, pairs: Sequence[tuple[str, str]]) -> dict[int, str]:
    """Whole numbers, each once, with names that are safe to print."""
    found: dict[int, str] = {}
    for text, name in pairs:
        number = text.strip()
        if not re.fullmatch(r"[0-9]{1,15}(\.0+)?", number):
            raise DataError(
                f"atlas labels {path}: expected the number of a region, 0 or more, got {text!r}. Correct it."
            )
        index = int(float(number))
        if index in found:
            raise DataError(f"atlas labels {path}: region {index} has two names. Keep one of them.")
        found[index] = plain(name) or f"region {index}"
    return found


def _lines(path: Path) -> list[str]:
    """The lines of a text file that are not empty."""
    try:
        if path.stat().st_size > _LARGEST:
            raise DataError(f"atlas labels {path}: expected a table of names, got a file of "
                            f"{path.stat().st_size:,} bytes. Give the table.")  # fmt: skip
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DataError(f"atlas labels {path} cannot be read: {error.strerror}. Check the path.") from error
    except UnicodeDecodeError as error:
        raise DataError(
            f"atlas labels {path}: expected text in UTF-8, got other bytes. Give the table."
        ) from error
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        raise DataError(f"atlas labels {path} is empty. Give the table of the atlas.")
    return lines
