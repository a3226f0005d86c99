"""Covariates of samples, such as reaction times: a table with a line per sample or per volume."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.feature_scale import LARGEST
from mvpa_gamp.imaging.errors import DataError, reason
from mvpa_gamp.imaging.samples import Samples

_OPTION = "--fold-confounds"


@dataclass(frozen=True, eq=False)
class Covariates:
    """Numbers (L, C) of L lines, and the names of the C columns."""

    path: Path
    names: tuple[str, ...]
    values: NDArray

    def of(self, samples: Samples) -> "Covariates":
        """Those of the samples: a line each, or, for volumes, a line for every volume of the series."""
        n_samples = len(samples.X)
        if len(self.values) == n_samples:
            return self._checked(self.values)
        n_volumes = sum(samples.provenance.get("volumes", ()))
        if samples.kind == "volume" and samples.volumes is not None and len(self.values) == n_volumes:
            return self._checked(self.values[samples.volumes])
        volumes = f" or {n_volumes} (all volumes of the series)" if samples.kind == "volume" else ""
        raise DataError(
            f"{_OPTION} {self.path.name}: expected a header and {n_samples} lines ({samples.plural} that "
            f"are decoded){volumes}, got {len(self.values)}. Give one line for each, in the same order."
        )

    def _checked(self, values: NDArray) -> "Covariates":
        constant = np.flatnonzero((values == values[0]).all(axis=0))
        if constant.size:
            raise DataError(
                f"{_OPTION} {self.path.name}: {self.names[constant[0]]} is the same in all samples, so there "
                "is nothing to regress out. Leave the column out."
            )
        tops = np.abs(values).max(axis=0)
        if (large := np.flatnonzero(tops > LARGEST)).size:
            raise DataError(
                f"{_OPTION} {self.path.name}: expected {self.names[large[0]]} to be at most {LARGEST:g} in "
                f"size, so that float32 can hold it, got {tops[large[0]]:g}. Divide that column by a number."
            )
        return Covariates(self.path, self.names, values)


def read_covariates(path: str | Path) -> Covariates:
    """Read a TSV with one header line and numbers below it."""
    path = Path(path).expanduser()
    if not path.is_file():
        raise DataError(f"{_OPTION} {path}: expected a TSV, found no file there. Check the path.")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"{_OPTION} {path} cannot be read as text ({reason(error)}). Save it as UTF-8."
        ) from error
    lines = [line for line in text.splitlines() if line.strip()]
    rows = [[cell.strip().strip('"') for cell in line.split("\t")] for line in lines]
    if len(rows) < 2:
        raise DataError(
            f"{_OPTION} {path.name}: expected a header line and a line of numbers per sample, got "
            f"{len(rows)} lines. Give a TSV."
        )
    names = tuple(name.strip() for name in rows[0])
    if len(set(names)) < len(names) or not all(names) or _is_number(names[0]):
        raise DataError(
            f"{_OPTION} {path.name}: expected a header with a name for each column, got "
            f"{' '.join(rows[0])[:80]!r}. Give every column a name of its own."
        )
    return Covariates(
        path, names, np.array([_numbers(path, names, *each) for each in enumerate(rows[1:], 2)])
    )


def _numbers(path: Path, names: tuple[str, ...], line: int, row: list[str]) -> list[float]:
    if len(row) != len(names):
        raise DataError(
            f"{_OPTION} {path.name}: expected {len(names)} columns as in its header, got {len(row)} in line "
            f"{line}. Separate columns by tabs."
        )
    for name, cell in zip(names, row, strict=True):
        if not _is_number(cell):
            raise DataError(
                f"{_OPTION} {path.name}, line {line}: expected a number for {name}, got {cell[:40]!r}. "
                "Fill it in, for example with the mean of the run."
            )
    return [float(cell) for cell in row]


def _is_number(cell: str) -> bool:
    try:
        return bool(np.isfinite(float(cell)))
    except ValueError:
        return False
