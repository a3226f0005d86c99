"""What pipelines write: a CSV of the numbers, a JSON record of the run, and the figure as PNG and PDF.

Every file is written whole or not at all, and equal runs write equal tables and figures.
"""

import argparse
import csv
import io
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import scipy
from matplotlib.figure import Figure

import mvpa_gamp
from mvpa_gamp.imaging.disk import write_atomic
from mvpa_gamp.report.style import METHOD_ORDER, RULE, colour_of, look, marker_of
from mvpa_gamp.results.files import write_json, write_text

from .benchmarks.machine import commit, cpu_model, usable_cores
from .command import Options

_DPI = 180
COLOUR_OF = {name: colour_of(name) for name in METHOD_ORDER}
MARKER_OF = {name: marker_of(name) for name in METHOD_ORDER}

_RC: dict[Any, Any] = {
    "text.parse_math": True,
    "mathtext.fontset": "dejavusans",
    "figure.constrained_layout.use": True,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.6,
    "lines.markersize": 5.0,
    "pdf.fonttype": 42,  # text stays text
}


@contextmanager
def style() -> Iterator[None]:
    """Draw with the look of the package's report, a light grid and mathematical labels."""
    with look():
        matplotlib.rcParams.update(_RC)
        yield


def write_table(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write rows as CSV with the columns of the first row; numbers in full precision, NaN as ``nan``.

    Every row must have the same keys.
    """
    if not rows:
        raise ValueError(f"{path.name} needs at least one row, got none. Check what the pipeline collected.")
    columns = list(rows[0])
    for row in rows:
        if list(row) != columns:
            raise ValueError(
                f"{path.name}: every row needs the columns {columns}, got {list(row)}. "
                "Use None where a row has no value."
            )
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_cell(row[column]) for column in columns] for row in rows)
    return write_text(path, buffer.getvalue())


def write_record(
    path: Path,
    record: Mapping[str, Any],
    *,
    pipeline: str,
    options: Options,
    seconds: float,
    own: argparse.Namespace | None = None,
) -> dict[str, Any]:
    """Write ``record`` with the provenance of the run under "provenance", and return both together.

    ``seconds`` is the elapsed time, ``own`` the pipeline's own arguments. The processor and the commit are
    noted, but no host name, no folder and no date.
    """
    if "provenance" in record:
        raise ValueError('The key "provenance" is written here. Rename yours.')
    whole = {**record, "provenance": _provenance(pipeline, options, seconds, own)}
    write_json(path, whole)
    return whole


def save_figure(figure: Figure, stem: Path) -> list[Path]:
    """Write ``stem``.png and ``stem``.pdf, with nothing in them that changes from run to run."""
    formats: dict[str, dict[str, Any]] = {
        ".png": {"dpi": _DPI, "metadata": {"Software": None}},
        ".pdf": {"metadata": {"CreationDate": None, "Creator": None, "Producer": None}},
    }
    written = []
    for suffix, settings in formats.items():
        buffer = io.BytesIO()
        figure.savefig(buffer, format=suffix[1:], **settings)
        written.append(write_atomic(stem.with_name(stem.name + suffix), buffer.getvalue()))
    return written


def _provenance(
    pipeline: str, options: Options, seconds: float, own: argparse.Namespace | None
) -> dict[str, Any]:
    return {
        "pipeline": pipeline,
        "command": _command(pipeline, options),
        "size": options.size,
        "seed": options.seed,
        "arguments": {name: _portable(value) for name, value in vars(own).items()} if own else {},
        "seconds": round(float(seconds), 2),
        "cpu": cpu_model(),
        "cores": usable_cores(),
        "commit": commit(),
        "mvpa_gamp": mvpa_gamp.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
    }


def _command(pipeline: str, options: Options) -> str:
    """The command line that makes the same files, of folders and files only their names."""
    words = ["python", "-m", f"pipelines.{pipeline}", f"--{options.size}", "--seed", str(options.seed)]
    for name, value in options.own:
        given = [] if value is True else value if isinstance(value, list | tuple) else [value]
        words += [f"--{name.replace('_', '-')}", *(str(_portable(each)) for each in given)]
    return " ".join(words)


def _portable(value: Any) -> Any:
    """A path's last part, and everything else as it is."""
    if isinstance(value, Path):
        return value.name
    if isinstance(value, list | tuple):
        return [_portable(part) for part in value]
    return value


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float | np.floating):
        return repr(float(value))
    return str(value)


def write_trials(
    name: str,
    options: Options,
    rows: Sequence[Mapping[str, Any]],
    means: Sequence[Mapping[str, Any]],
    figure: Figure,
    record: Mapping[str, Any],
    seconds: float,
) -> dict[str, Any]:
    """Write an experiment of many trials: all rows, their means, the figure of these, and the record."""
    write_table(options.out / f"{name}_trials.csv", rows)
    write_table(options.out / f"{name}.csv", means)
    save_figure(figure, options.out / name)
    path = options.out / f"{name}.json"
    return write_record(path, {**record, "means": means}, pipeline=name, options=options, seconds=seconds)
