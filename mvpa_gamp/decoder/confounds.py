"""Confounds as nilearn's maskers and models take them: one table for all images, or one per run."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mvpa_gamp.imaging.errors import DataError, reason
from mvpa_gamp.imaging.matrix import rows_of_runs
from mvpa_gamp.imaging.processing import Nuisance, confound_table

_TABLES = (np.ndarray, pd.DataFrame, pd.Series, str, Path)


def confounds_of_runs(
    confounds: Any, counts: Sequence[int], runs: NDArray | None
) -> dict[Any, Nuisance] | None:
    """The confounds of each run that is cleaned by itself, by its name; None where none are given.

    ``confounds`` is a table of all M images (array, DataFrame or file with a header), or a list of tables,
    one for each image file (``counts`` are their volumes) or one for each of ``runs`` (M,) in their order.
    Tables of different runs may have different columns.
    """
    if confounds is None:
        return None
    members = rows_of_runs(runs, sum(counts))
    places = _places(confounds, counts, members)
    given = confounds if _is_list(confounds) else [confounds]
    tables = [_numbers(table, len(rows)) for table, rows in zip(given, places, strict=True)]
    return {run: _of_run(run, rows, places, tables) for run, rows in members.items()}


def _is_list(confounds: Any) -> bool:
    return isinstance(confounds, (list, tuple)) and any(isinstance(each, _TABLES) for each in confounds)


def _places(confounds: Any, counts: Sequence[int], members: dict[Any, NDArray]) -> list[NDArray]:
    """The rows that each table is about."""
    if not _is_list(confounds):
        return [np.arange(sum(counts))]
    if len(confounds) == len(counts):
        return np.split(np.arange(sum(counts)), np.cumsum(counts)[:-1])
    if len(confounds) == len(members):
        return list(members.values())
    raise DataError(
        f"confounds: expected one table, one for each of {len(counts)} images, or one for each of "
        f"{len(members)} runs that are cleaned separately, got {len(confounds)}. Give a list of one of "
        "these lengths."
    )


def _numbers(table: Any, rows: int) -> NDArray:
    """Numbers (rows, C) of a table, NaN where they are missing."""
    if isinstance(table, (str, Path)):
        return confound_table(Path(table).expanduser(), rows, None)[1]
    try:
        values = np.asarray(table, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"confounds: expected numbers ({reason(error)}). Keep numeric columns only."
        ) from error
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or len(values) != rows or np.isinf(values).any():
        raise DataError(
            f"confounds: expected {rows} rows of numbers, one for each image of the run, got shape "
            f"{np.shape(table)}{' with infinite values' * bool(np.isinf(values).any())}. Give the confounds "
            "of exactly these images."
        )
    return values


def _of_run(run: Any, rows: NDArray, places: list[NDArray], tables: list[NDArray]) -> Nuisance:
    """The confounds of a run's rows, which may come from several tables with the same columns."""
    about = [k for k, place in enumerate(places) if np.isin(place, rows).any()]
    widths = {tables[k].shape[1] for k in about}
    if len(widths) > 1:
        raise DataError(
            f"confounds: the images of run {run} are cleaned together, but their tables have different "
            f"numbers of columns ({', '.join(map(str, sorted(widths)))}). Give groups so that each table "
            "belongs to one run, or tables with the same columns."
        )
    values = np.empty((sum(map(len, places)), widths.pop()))
    for k in about:
        values[places[k]] = tables[k]
    return Nuisance(values[rows], np.ones(len(rows), dtype=bool))
