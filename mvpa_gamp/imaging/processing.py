"""What happens to time series before decoding: detrending, filtering, confounds and z-scores, by nilearn."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import groupby, zip_longest
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.imaging.errors import DataError, reason

STANDARDIZE = (True, False, None, "zscore_sample", "psc")
_FINEST, _COARSEST = 1e-3, 1e3  # mm: no volume has finer voxels or is larger
MIN_VOLUMES = 3  # two volumes are a straight line: detrending leaves rounding errors, z-scores blow them up
# A line through fewer volumes leaves much of each in the others, in shares that depend on their places: where
# conditions keep their places, places are decoded instead (measured in docs/leakage.md).
MIN_SERIES = 10

_NEARLY = 0.9  # of the runs
_HUGE = 1e100  # of a confound: its square, summed over a run, is still a number


@dataclass(frozen=True)
class Processing:
    """Settings of the processing; every step is applied to each run separately.

    ``standardize`` is nilearn's "zscore_sample" (or True), "psc" or None (or False). ``lag_trs`` moves labels
    that many volumes later, ``smoothing_fwhm`` is in mm, ``high_pass`` and ``low_pass`` in Hz, ``t_r`` in
    seconds (None: from the image header), ``confounds`` one TSV for all volumes or one per BOLD file,
    ``confound_columns`` those of its columns to use (None: all), ``drop`` the conditions left out.
    """

    detrend: bool = True
    standardize: bool | str | None = True
    lag_trs: int = 0
    smoothing_fwhm: float | None = None
    high_pass: float | None = None
    t_r: float | None = None
    confounds: str | Path | tuple[str | Path, ...] | None = None
    drop: tuple[str, ...] = ("rest",)
    confound_columns: tuple[str, ...] | None = None
    low_pass: float | None = None

    def __post_init__(self) -> None:
        if self.lag_trs != 0 and not (_is_positive(self.lag_trs) and self.lag_trs == int(self.lag_trs)):
            raise DataError(
                f"lag_trs: expected a number of volumes, 0 or more, got {self.lag_trs!r}. Change it."
            )
        if self.standardize not in STANDARDIZE:
            known = ", ".join(map(repr, STANDARDIZE))
            raise DataError(f"standardize: expected one of {known}, got {self.standardize!r}. Change it.")
        for name in ("smoothing_fwhm", "high_pass", "low_pass", "t_r"):
            value = getattr(self, name)
            if value is not None and not _is_positive(value):
                raise DataError(f"{name}: expected a positive number or none, got {value!r}. Change it.")
        if self.smoothing_fwhm is not None and not _FINEST <= self.smoothing_fwhm <= _COARSEST:
            raise DataError(
                f"smoothing_fwhm: expected a width in mm, from {_FINEST:g} to {_COARSEST:g}, got "
                f"{self.smoothing_fwhm:g}. Change it (5 is usual)."
            )

    @property
    def cleans(self) -> bool:
        """Whether anything is done to the time series of a voxel."""
        return bool(
            self.detrend or self.standardize or self.high_pass or self.low_pass or self.confound_files
        )

    @property
    def needs_series(self) -> bool:
        """Whether a step makes sense for successive volumes alone, not for maps."""
        return bool(self.detrend or self.high_pass or self.low_pass)

    @property
    def confound_files(self) -> tuple[Path, ...]:
        """The confound files in order."""
        given = (self.confounds,) if isinstance(self.confounds, str | Path) else self.confounds or ()
        return tuple(Path(name).expanduser() for name in given)

    def description(self) -> dict[str, Any]:
        """All settings as plain values."""
        files = [str(path) for path in self.confound_files]
        columns = self.confound_columns and list(self.confound_columns)
        plain = {"confounds": files or None, "drop": list(self.drop), "confound_columns": columns}
        return asdict(self) | plain


def _is_positive(value: Any) -> bool:
    """Whether it is a number above zero that can be computed with."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    return bool(is_number and 0 < value <= _HUGE)


@dataclass(frozen=True)
class Nuisance:
    """Confounds of the T volumes of a run, NaN where missing, and which of the volumes are used."""

    values: NDArray  # (T, C)
    used: NDArray  # (T,) bool

    def filled(self) -> tuple[NDArray | None, NDArray]:
        """The confounds without missing values, None where there are none, and the volumes used."""
        return (fill_missing(self.values) if self.values.shape[1] else None), self.used


def clean_run(
    values: NDArray,
    processing: Processing,
    t_r: float | None,
    confounds: NDArray | None,
    run: Any,
    used: NDArray | None = None,
) -> NDArray:
    """One run (T, N), processed by ``nilearn.signal.clean`` in float64.

    Order: detrend, filter (Butterworth), confounds, z-score with the sample deviation. Volumes that are not
    ``used`` (T,) bool take no part in it and become NaN.
    """
    from nilearn import signal

    if not processing.cleans and confounds is None:
        return values
    used = np.ones(len(values), dtype=bool) if used is None else used
    _check_run(int(used.sum()), processing, t_r, confounds, run)
    try:
        with np.errstate(invalid="ignore", divide="ignore"):  # volumes of zeros have a mean of zero
            cleaned = signal.clean(
                np.asarray(values, dtype=np.float64),
                sample_mask=None if used.all() else np.flatnonzero(used),
                detrend=processing.detrend,
                standardize="zscore_sample"
                if processing.standardize is True
                else processing.standardize or None,
                confounds=confounds,
                filter="butterworth" if processing.high_pass or processing.low_pass else False,
                high_pass=processing.high_pass,
                low_pass=processing.low_pass,
                t_r=t_r,
            )
        if used.all():
            return np.asarray(cleaned)
        out = np.full(values.shape, np.nan)
        out[used] = cleaned
        return out
    except ValueError as error:
        if "padlen" in str(error):  # what the filter adds at both ends is longer than the run
            raise DataError(
                f"run {run}: its {int(used.sum())} volumes are too few for a temporal filter. Leave the run "
                "out, or do without the filter."
            ) from error
        raise DataError(
            f"run {run} with {int(used.sum())} volumes cannot be processed: {str(error).rstrip('.')}. Change "
            "the processing."
        ) from error


def check_series(processing: Processing, sizes: Mapping[Any, int], are_maps: bool) -> None:
    """Refuse lines, filters and lags for given maps, and lines and filters for runs of few volumes.

    ``sizes`` counts the volumes of each run that are used; ``are_maps``: every file holds one volume. Runs
    too short for any cleaning are left for ``clean_run`` to refuse.
    """
    if are_maps and (processing.needs_series or processing.lag_trs):
        raise DataError(
            "detrend, filters and lag_trs are for time series, but every image is a single map, which "
            "would then contain parts of the other maps. Leave them out (--no-detrend; detrend=False), or "
            "give each run as one 4-D series."
        )
    short = [(run, size) for run, size in sizes.items() if MIN_VOLUMES <= size < MIN_SERIES]
    if short and processing.needs_series:
        run, size = short[0]
        raise DataError(
            f"run {run}: expected at least {MIN_SERIES} volumes to detrend or filter it, got {size}. In so "
            "few, each volume would contain parts of the others, by its place in the run, which makes scores "
            "too high. Maps are not a time series: give --no-detrend (GAMPDecoder: detrend=False), or leave "
            "the run out."
        )


def sorted_by_class(labels: NDArray, groups: NDArray) -> bool:
    """Whether nearly all groups have every class in one stretch, all in the same order.

    >>> sorted_by_class(np.array(list("aabcaabbc")), np.array([1] * 4 + [2] * 5))
    True
    """
    orders = Counter(
        tuple(name for name, _ in groupby(labels[groups == one].tolist())) for one in np.unique(groups)
    )
    order, count = orders.most_common(1)[0]
    return len(set(order)) == len(order) > 1 and orders.total() > 1 and count >= _NEARLY * orders.total()


def check_order(processing: Processing, conditions: NDArray, runs: NDArray) -> None:
    """Refuse lines and filters for runs whose volumes are all sorted by condition, as maps often are."""
    if processing.needs_series and sorted_by_class(conditions, runs):
        names = list(dict.fromkeys(conditions[runs == runs[0]].tolist()))
        shown = ", ".join(map(str, names[:4])) + ", ..." * (len(names) > 4)
        raise DataError(
            f"labels: the volumes of every run are sorted by condition ({shown}), as maps often are. "
            "Detrending or filtering gives each a part of the others by its place, which is its condition: "
            "nothing is decoded with 97 %. Give --no-detrend and no filter."
        )


def _check_run(
    volumes: int, processing: Processing, t_r: float | None, confounds: NDArray | None, run: Any
) -> None:
    if volumes < MIN_VOLUMES:
        raise DataError(
            f"run {run}: expected at least {MIN_VOLUMES} volumes, got {volumes}. Leave the run out."
        )
    if confounds is not None and confounds.shape[1] + MIN_VOLUMES > volumes:
        raise DataError(
            f"run {run}: {confounds.shape[1]} confounds are too many for its {volumes} volumes. Give fewer "
            "confound columns."
        )
    check_high_pass(processing.high_pass, t_r)


def check_high_pass(high_pass: float | None, t_r: float | None) -> None:
    """Refuse a filter that volumes ``t_r`` seconds apart cannot have."""
    if high_pass is None:
        return
    if t_r is None:
        raise DataError("high_pass needs the time between volumes, and none is known. Give t_r.")
    if high_pass >= 0.5 / t_r:
        raise DataError(
            f"high_pass: expected less than half the sampling rate, {0.5 / t_r:.4g} Hz at t_r = {t_r:.4g} s, "
            f"got {high_pass:.4g} Hz. Lower it (0.01 is usual)."
        )


def read_confounds(
    files: tuple[Path, ...], volumes: list[int], columns: tuple[str, ...] | None = None
) -> NDArray:
    """Confounds of all volumes (M, C).

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
    tables = [confound_table(path, rows, columns) for path, rows in zip(files, expected, strict=True)]
    _check_headers(files, [header for header, _ in tables])
    return np.concatenate([numbers for _, numbers in tables])


def fill_missing(confounds: NDArray) -> NDArray:
    """Missing values of a run's confounds (T, C) replaced by their column's mean; empty columns become 0.

    Columns whose squares would overflow are divided by a power of two, which changes nothing of what they
    explain.
    """
    known = ~np.isnan(confounds)
    largest = np.where(known, np.abs(confounds), 0.0).max(axis=0, initial=0.0)
    if (huge := largest > _HUGE).any():
        confounds = np.where(huge, np.ldexp(confounds, -np.frexp(largest)[1]), confounds)
    totals = np.where(known, confounds, 0.0).sum(axis=0)
    return np.where(known, confounds, totals / np.maximum(known.sum(axis=0), 1))


def confound_table(path: Path, rows: int, columns: tuple[str, ...] | None) -> tuple[list[str], NDArray]:
    """Header and numbers (rows, C) of a TSV or CSV, all columns or the ``columns`` named, in that order."""
    if path.exists() and not path.is_file():
        raise DataError(f"confounds {path}: expected a TSV, found no file there. Check the path.")
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"confounds {path} cannot be read as text ({reason(error)}). Check the path."
        ) from error
    separator = "\t" if lines and "\t" in lines[0] else ","
    header = [name.strip() for name in lines[0].split(separator)] if lines else []
    cells = [line.split(separator) for line in lines[1:] if line.strip()]
    if missing := [name for name in columns or () if name not in header]:
        raise DataError(f"confounds {path} has no column {missing[0]}. Choose among {', '.join(header)}.")
    if columns is not None:
        places = [header.index(name) for name in columns]
        cells = [[row[place] for place in places] for row in cells if len(row) == len(header)]
    if len(cells) != rows:
        raise DataError(
            f"confounds {path}: expected {rows} lines below the header, one per volume, got {len(cells)}. "
            "Give the confounds of exactly these volumes."
        )
    try:
        return list(columns or header), np.array([[_number(cell) for cell in row] for row in cells])
    except ValueError as error:
        raise DataError(
            f"confounds {path}: expected numbers or n/a in every column ({reason(error)}). Keep numeric "
            "columns only."
        ) from error


def _check_headers(files: tuple[Path, ...], headers: list[list[str]]) -> None:
    """Refuse files whose columns differ in names or order: a column of the matrix must mean one thing."""
    for path, header in zip(files, headers, strict=True):
        for number, (first, name) in enumerate(zip_longest(headers[0], header, fillvalue="missing"), start=1):
            if name != first:
                raise DataError(
                    "confounds: expected the same columns in all files, in the same order, but column "
                    f"{number} (counted from 1) is {first} in {files[0]} and {name} in {path}. Correct one "
                    "of them."
                )


def _number(cell: str) -> float:
    """A cell's number, NaN where it is missing."""
    value = math.nan if cell.strip().lower() in ("", "n/a", "nan") else float(cell)
    if math.isinf(value):
        raise ValueError("infinite value")
    return value
