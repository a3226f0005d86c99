"""Tables of a fitted decoder: held-out predictions, confusion, stability and how every fit ended."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mvpa_gamp.decoding.multiclass import Answers
from mvpa_gamp.methods.fold_fits import FoldFits
from mvpa_gamp.results.measures import consistency


def predictions_table(
    rows: NDArray, groups: NDArray | None, fold: NDArray, true: NDArray, said: Answers, classes: NDArray
) -> pd.DataFrame:
    """One row per held-out image; ``true`` are class numbers, folds count from 1."""
    table: dict[str, Any] = {
        "row": rows,
        "group": np.full(len(rows), None, dtype=object) if groups is None else groups,
        "fold": fold + 1,
        "true": classes[true],
        "predicted": classes[said.predicted],
    }
    table |= {f"probability_{name}": said.proba[:, k] for k, name in enumerate(classes)}
    return pd.DataFrame(table)


def confusion_table(counts: NDArray, classes: NDArray) -> pd.DataFrame:
    """Counts of held-out images: rows are true classes, columns predicted ones."""
    return pd.DataFrame(
        counts, index=pd.Index(classes, name="true"), columns=pd.Index(classes, name="predicted")
    )


def stability_table(fits: Sequence[FoldFits], names: list[str]) -> pd.DataFrame:
    """Consistency of the folds' selections by contrast; NaN where there is a single fold.

    Short names and a rounded number of voxels, so that a line fits into a terminal.
    """
    rows = [_stability(each.folds.support) for each in fits]
    return pd.DataFrame(rows, index=pd.Index(names, name="contrast"))


def _stability(support: NDArray) -> dict[str, float]:
    out = {"voxels": round(float(support.sum(axis=0).mean()), 1)}
    if support.shape[1] < 2:
        return out | dict.fromkeys(("jaccard", "chance", "nogueira", "low", "high"), math.nan)
    found = consistency(support)
    overlap = found["consistency_percent"] / 100, found["chance_consistency_percent"] / 100
    index = (found[name] for name in ("nogueira", "nogueira_low", "nogueira_high"))
    return out | dict(zip(("jaccard", "chance", "nogueira", "low", "high"), (*overlap, *index), strict=True))


def learnt_parameters(fits: Sequence[FoldFits], classes: NDArray, names: list[str]) -> dict[Any, Any]:
    """What every fold learnt, by contrast (of two classes also by class) and parameter, as lists."""
    found = [{key: values[:-1].tolist() for key, values in each.parameters.items()} for each in fits]
    learnt: dict[Any, Any] = dict(zip(names, found, strict=True))
    return learnt | (dict.fromkeys(classes.tolist(), found[0]) if len(classes) == 2 else {})


def status_table(fits: Sequence[FoldFits], names: list[str]) -> pd.DataFrame:
    """One row per fit: contrast, fold ("refit" for the one on all images), and how it ended."""
    tables = []
    for name, each in zip(names, fits, strict=True):
        assert each.held_out is not None
        tables.append(pd.DataFrame({
            "contrast": name,
            "fold": [*range(1, each.n_folds + 1), "refit"],
            "held_out": [*each.held_out.tolist(), None],
            "converged": each.converged,
            "n_iter": each.n_iter,
            "voxels": each.support.sum(axis=0),
            "intercept": each.intercept,
            **each.parameters,
            "status": each.status,
        }))  # fmt: skip
    return pd.concat(tables, ignore_index=True)
