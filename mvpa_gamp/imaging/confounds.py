"""Confound tables: TSV or CSV files with a header line and one line per volume, read into one matrix."""

import math
from itertools import zip_longest
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.imaging.errors import DataError


def read_confounds(
    files: tuple[Path, ...], volumes: list[int], columns: tuple[str, ...] | None = None
) -> tuple[NDArray, int]:
    """Confounds of all volumes (M, C), and how many of their values were missing.

    One file for all volumes, or one per BOLD file with the same columns, of which ``columns`` are used (None:
    all). Missing values (``n/a``, as in the first rows of derivatives) become NaN here and their run's mean
    when the run is processed.
    """
    expected = [sum(volumes)] if len(files) == 1 else volumes
    if len(files) != len(expected):
        raise DataError(
            f"confounds: expected one file, or one for each of {len(volumes)} BOLD files, got {len(files)}. "
            "Give as many confound files as BOLD files."
        )
    headers, parts = [], []
    for path, rows in zip(files, expected, strict=True):
        header, cells = _confound_cells(path, columns)
        headers.append(header)
        parts.append(_numbers(path, cells, rows))
    _check_headers(files, headers)
    table = np.concatenate(parts)
    return table, int(np.isnan(table).sum())


def fill_missing(confounds: NDArray) -> NDArray:
    """Missing values of a run's confounds (T, C) replaced by their column's mean; empty columns become 0."""
    known = ~np.isnan(confounds)
    totals = np.where(known, confounds, 0.0).sum(axis=0)
    return np.where(known, confounds, totals / np.maximum(known.sum(axis=0), 1))


def _confound_cells(path: Path, columns: tuple[str, ...] | None) -> tuple[list[str], list[list[str]]]:
    """Header and cells of a TSV or CSV, all columns or the ``columns`` named, in that order."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"confounds {path} cannot be read as text ({error}). Check the path.") from error
    separator = "\t" if lines and "\t" in lines[0] else ","
    header = [name.strip() for name in lines[0].split(separator)] if lines else []
    cells = [line.split(separator) for line in lines[1:] if line.strip()]
    if columns is None:
        return header, cells
    missing = [name for name in columns if name not in header]
    if missing:
        raise DataError(f"confounds {path} has no column {missing[0]}. Choose among {', '.join(header)}.")
    places = [header.index(name) for name in columns]
    return list(columns), [[row[place] for place in places] for row in cells if len(row) == len(header)]


def _check_headers(files: tuple[Path, ...], headers: list[list[str]]) -> None:
    """Refuse files whose columns differ in names or order: a column of the matrix must mean one thing."""
    for path, header in zip(files, headers, strict=True):
        for number, (first, name) in enumerate(zip_longest(headers[0], header, fillvalue="missing"), start=1):
            if name != first:
                raise DataError(
                    "confounds: expected the same columns in all files, in the same order, but column "
                    f"{number} (counted from 1) is {first} in {files[0]} and {name} in {path}. Repair one."
                )


def _numbers(path: Path, cells: list[list[str]], rows: int) -> NDArray:
    """The cells of a confounds table as numbers (rows, C)."""
    if len(cells) != rows:
        raise DataError(
            f"confounds {path}: expected {rows} lines below the header, one per volume, got {len(cells)}. "
            "Give the confounds of exactly these volumes."
        )
    try:
        return np.array([[_number(cell) for cell in row] for row in cells])
    except ValueError as error:
        raise DataError(
            f"confounds {path}: expected numbers or n/a in every column ({error}). Keep numeric columns only."
        ) from error


def _number(cell: str) -> float:
    """A cell's number, NaN where it is missing."""
    value = math.nan if cell.strip().lower() in ("", "n/a", "nan") else float(cell)
    if math.isinf(value):
        raise ValueError("infinite value")
    return value
