"""What fMRIPrep's confounds tables say of a run: columns to regress out, and volumes to leave out.

Columns are named, by set or wildcard, or one of nilearn's strategies chooses them. Volumes before the steady
state, and those that a strategy or the columns ``motion_outlier*`` scrub, take no part in cleaning and
decoding.
"""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.imaging.bids.layout import RunFiles
from mvpa_gamp.imaging.errors import DataError, reason
from mvpa_gamp.imaging.processing import Nuisance, confound_table

_MOTION = tuple(f"{kind}_{axis}" for kind in ("trans", "rot") for axis in "xyz")
_EXPANSION = ("", "_derivative1", "_power2", "_derivative1_power2")
SETS = {
    "none": (),
    "motion6": _MOTION,
    "motion24": tuple(name + ending for name in _MOTION for ending in _EXPANSION),  # Friston et al., 1996
}
STRATEGIES = ("simple", "scrubbing", "compcor", "ica_aroma")  # of nilearn's load_confounds_strategy
AROMA = "smoothAROMAnonaggr"  # desc of the volumes that the strategy ica_aroma is meant for
# Columns of zeros with a single one: each names a volume.
_UNSTEADY, _SCRUBBED = "non_steady_state_outlier*", "motion_outlier*"


@dataclass(frozen=True)
class RunConfounds:
    """The names of the columns regressed out of a run, their values, and the volumes left out."""

    names: tuple[str, ...]
    nuisance: Nuisance
    unsteady: int = 0  # volumes before the steady state
    scrubbed: int = 0  # volumes with too much motion


def confound_columns(chosen: Sequence[str]) -> tuple[str, ...]:
    """Names and wildcards of columns, from names of sets (none, motion6, motion24) and columns, each once.

    Commas may stand between them.
    """
    names = [name.strip() for text in chosen for name in text.split(",") if name.strip()]
    if "none" in names and len(names) > 1:
        raise DataError(
            f"--confounds: none cannot be combined with other names, got {', '.join(names)}. Give either "
            "none or the names."
        )
    return tuple(dict.fromkeys(column for name in names for column in SETS.get(name, (name,))))


def check_strategy(strategy: str, confounds: Sequence[str], derivatives: bool) -> None:
    """Refuse a strategy that is not known, that competes with columns, or that has no table to read."""
    if not strategy:
        return
    if strategy not in STRATEGIES:
        raise DataError(
            f"--confounds-strategy: expected one of {', '.join(STRATEGIES)}, got {strategy!r}. Choose one."
        )
    if confounds and tuple(confounds) != ("none",):
        raise DataError("--confounds and --confounds-strategy both choose columns. Give one of them.")
    if not derivatives:
        raise DataError(
            f"--confounds-strategy {strategy} reads fMRIPrep's confounds, but the volumes are raw. Give "
            "--derivatives, or leave it out."
        )


def check_columns(paths: Sequence[Path], columns: Sequence[str]) -> None:
    """Refuse tables without the columns asked for, naming those that look alike.

    A wildcard must fit a column of some run, a name must be in every one.
    """
    headers = {path: _header(path) for path in paths}
    for name in columns:
        if _is_wild(name):
            if not any(_fitting(name, header) for header in headers.values()):
                path = next(iter(headers))
                raise DataError(
                    f"--confounds: no run has a column that matches {name!r}. Choose among those of "
                    f"{path.name}, such as {', '.join(headers[path][:5])}."
                )
            continue
        for path, header in headers.items():
            if name not in header:
                _refuse(path, header, [each for each in columns if each not in header and not _is_wild(each)])


def run_confounds(run: RunFiles, n_volumes: int, columns: Sequence[str], strategy: str = "") -> RunConfounds:
    """The confounds of a run: ``columns`` of its table, or what a strategy chooses.

    Without a table there is nothing to leave out; asking for columns then is an error.
    """
    if run.confounds is None:
        if columns or strategy:
            raise DataError(
                f"confounds: expected desc-confounds_timeseries.tsv next to {run.bold.name}, found none. "
                "Give --confounds none, or --derivatives."
            )
        return RunConfounds((), Nuisance(np.empty((n_volumes, 0)), np.ones(n_volumes, dtype=bool)))
    header = _header(run.confounds)
    unsteady = _flagged(run.confounds, n_volumes, _fitting(_UNSTEADY, header))
    if strategy:
        names, values, used = _by_strategy(run.bold, strategy, n_volumes)
        scrubbed = ~used & ~unsteady
    else:
        wanted = [name for pattern in columns for name in _fitting(pattern, header)]
        outliers = [name for name in wanted if fnmatchcase(name, _SCRUBBED)]
        names = tuple(dict.fromkeys(n for n in wanted if n not in outliers and not fnmatchcase(n, _UNSTEADY)))
        values = confound_table(run.confounds, n_volumes, names)[1].reshape(n_volumes, len(names))
        scrubbed = _flagged(run.confounds, n_volumes, outliers) & ~unsteady
    used = ~(unsteady | scrubbed)
    return RunConfounds(names, Nuisance(values, used), int(unsteady.sum()), int(scrubbed.sum()))


def volume_notes(runs: Sequence[RunConfounds]) -> tuple[str, ...]:
    """Sentences about the volumes left out."""
    unsteady, scrubbed = sum(run.unsteady for run in runs), sum(run.scrubbed for run in runs)
    total = sum(run.nuisance.used.size for run in runs)
    told = ((unsteady, "precede the steady state"), (scrubbed, "have too much motion"))
    return tuple(f"{n} of {total:,} volumes {why} and were left out." for n, why in told if n)


def columns_of(runs: Sequence[RunConfounds]) -> tuple[str, ...]:
    """The columns that were regressed out of any run."""
    return tuple(dict.fromkeys(name for run in runs for name in run.names))


def _by_strategy(bold: Path, strategy: str, n_volumes: int) -> tuple[tuple[str, ...], NDArray, NDArray]:
    """What nilearn's strategy takes from the table beside a series: names, values (T, C), used (T,)."""
    from nilearn.interfaces.fmriprep import load_confounds_strategy

    try:
        table, sample_mask = load_confounds_strategy(str(bold), denoise_strategy=strategy)
    except (ValueError, KeyError, OSError) as error:
        said = " ".join(str(error).split()).rstrip(".")
        raise DataError(
            f"--confounds-strategy {strategy}: the confounds of {bold.name} do not have what it needs "
            f"({said}). Choose another strategy, or name columns with --confounds."
        ) from error
    used = np.ones(n_volumes, dtype=bool)
    if sample_mask is not None:
        used = np.isin(np.arange(n_volumes), sample_mask)
    values = table.to_numpy(dtype=float)
    if len(values) != n_volumes:
        raise DataError(
            f"confounds of {bold.name}: expected {n_volumes} lines, one per volume, got {len(values)}. "
            "Give the confounds of exactly these volumes."
        )
    return tuple(map(str, table.columns)), values, used


def _header(path: Path) -> list[str]:
    try:
        with path.open(encoding="utf-8-sig") as stream:
            return stream.readline().rstrip("\r\n").split("\t")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"confounds {path} cannot be read as text ({reason(error)}). Check the file."
        ) from error


def _is_wild(name: str) -> bool:
    return "*" in name or "?" in name


def _fitting(pattern: str, header: Sequence[str]) -> list[str]:
    """The columns that a name or wildcard means."""
    return [name for name in header if name == pattern or (_is_wild(pattern) and fnmatchcase(name, pattern))]


def _flagged(path: Path, n_volumes: int, names: Sequence[str]) -> NDArray:
    """Volumes (T,) bool at which any of some columns is not zero."""
    values = confound_table(path, n_volumes, tuple(names))[1].reshape(n_volumes, len(names))
    return np.nan_to_num(values).any(axis=1)


def _refuse(path: Path, header: Sequence[str], missing: Sequence[str]) -> None:
    """Say that a column is missing, and which are there."""
    near = difflib.get_close_matches(missing[0], header, n=5, cutoff=0.4) or list(header[:5])
    meant = difflib.get_close_matches(missing[0], SETS, n=1)
    offer = f"Did you mean {meant[0]}? " if meant else ""
    more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    raise DataError(
        f"--confounds: {path.name} has no column {missing[0]}{more}. {offer}Choose among its "
        f"{len(header)} columns, such as {', '.join(near)}; or none, motion6, motion24."
    )
