"""The small files of a results folder, TSV, JSON, text, arrays, fits: written whole, read, found damaged."""

import csv
import io
import json
import math
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.imaging.disk import write_atomic
from mvpa_gamp.methods.fold_fits import FoldFits

MISSING = "n/a"  # BIDS's word for a value that does not exist


def write_text(path: Path, text: str) -> Path:
    """Write a text file in UTF-8, whole or not at all."""
    return write_atomic(path, text.encode("utf-8"))


def cell(value: Any) -> str:
    """One TSV cell: six significant digits, ``n/a`` for None and NaN, never a tab or a line break."""
    if value is None:
        return MISSING
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, float | np.floating):
        return MISSING if math.isnan(value) else f"{float(value):.6g}"
    return " ".join(str(value).split())


def write_tsv(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> Path:
    """Write rows as a BIDS table: a header line, tab-separated cells, ``n/a`` where a row has no value."""
    lines = ["\t".join(columns)]
    lines += ["\t".join(cell(row.get(column)) for column in columns) for row in rows]
    return write_text(path, "\n".join(lines) + "\n")


def read_tsv(path: Path) -> list[dict[str, str]]:
    """The rows of a table written by :func:`write_tsv`, every cell as its text."""
    with reading(path, "a table"), path.open(encoding="utf-8", newline="") as stream:
        header, *rows = csv.reader(stream, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [dict(zip(header, row, strict=True)) for row in rows]


def number(text: str) -> float:
    """The number in a TSV cell, NaN for ``n/a``."""
    return math.nan if text in (MISSING, "") else float(text)


def write_json(path: Path, content: Any) -> Path:
    """Write JSON that strict readers accept."""
    return write_text(path, json_text(content))


def json_text(content: Any) -> str:
    """JSON in which NaN is null and NumPy numbers are plain ones."""
    return json.dumps(_plain(content), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def read_json(path: Path) -> Any:
    """The content of a JSON file."""
    with reading(path, "JSON"):
        return json.loads(path.read_text(encoding="utf-8"))


def write_npz(path: Path, arrays: Mapping[str, Any]) -> Path:
    """Write arrays as one compressed npz file, atomically; equal arrays give equal bytes."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return write_atomic(path, buffer.getvalue())


def _plain(value: Any) -> Any:
    """Nested containers with NumPy scalars and arrays as plain JSON values."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Path):
        return str(value)
    return value


class ResultsError(ValueError):
    """A folder that is not a finished results folder."""


class DamagedFile(ResultsError):
    """A file that is there but cannot be read as what it should be, or is not what its run wrote."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"{path} is damaged ({reason}). Write it again from the stored fits: repeat the command of its "
            "run with --resume."
        )


@contextmanager
def reading(path: Path, kind: str) -> Iterator[None]:
    """Whatever breaks a reader of a file that is there is damage; ``kind`` says what it should hold.

    Readers of damaged bytes fail in more ways than can be listed: zlib, zipfile, nibabel and the parsers
    have an error type each. A file that is missing, or may not be read, raises what it always did.
    """
    try:
        yield
    except (DamagedFile, FileNotFoundError, PermissionError):
        raise
    except (IsADirectoryError, NotADirectoryError) as error:
        raise DamagedFile(path, "a folder and a file have changed places") from error
    except Exception as error:
        raise DamagedFile(path, f"it cannot be read as {kind}") from error


_PARAMETER = "parameter_"
_MAPS = ("coef", "coef_std", "inclusion", "pattern")  # in the single precision of maps


def save_fits(path: Path, fits: FoldFits, fingerprint: str) -> None:
    """Store the fits of a cell, folds and refit, in one file, whole or not at all."""
    arrays = {item.name: getattr(fits, item.name) for item in fields(FoldFits)}
    parameters = arrays.pop("parameters")
    arrays = {name: np.asarray(value) for name, value in arrays.items() if value is not None}
    arrays |= {name: arrays[name].astype(np.float32) for name in _MAPS if name in arrays}
    arrays |= {_PARAMETER + name: value for name, value in parameters.items()}
    arrays["support"] = np.packbits(fits.support, axis=0)
    write_npz(path, {**arrays, "fingerprint": fingerprint})


def load_fits(path: Path) -> tuple[FoldFits, str]:
    """The stored fits and their fingerprint; ``DamagedFile`` when the file is not one of ours."""
    with reading(path, "stored fits"):
        arrays = load_arrays(path)
        known: dict[str, Any] = {item.name: arrays.get(item.name) for item in fields(FoldFits)}
        known["support"] = np.unpackbits(arrays["support"], axis=0, count=len(arrays["coef"])).astype(bool)
        known["seconds"] = float(arrays["seconds"])
        known["status"] = tuple(arrays["status"].tolist())
        known["parameters"] = {
            name.removeprefix(_PARAMETER): value
            for name, value in arrays.items()
            if name.startswith(_PARAMETER)
        }
        return FoldFits(**known), str(arrays["fingerprint"])


def load_arrays(path: Path) -> dict[str, NDArray]:
    """All arrays of a stored file; ``DamagedFile`` where it cannot be read.

    Members are read whole, because only then is their checksum compared: NumPy's own reader stops before.
    """
    with reading(path, "stored arrays"), zipfile.ZipFile(path) as stored:
        content = {name.removesuffix(".npy"): BytesIO(stored.read(name)) for name in stored.namelist()}
        return {name: np.lib.format.read_array(part, allow_pickle=False) for name, part in content.items()}
