"""Tables of a fitted decoder: held-out predictions, confusion, stability and how every fit ended."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mvpa_gamp.decoder.contrast_maps import contrast_key
from mvpa_gamp.decoding.crossval import HeldOut
from mvpa_gamp.decoding.multiclass import Answers, class_pairs, classify
from mvpa_gamp.decoding.scoring import score_rows
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


def confusion_table(true: NDArray, predicted: NDArray, classes: NDArray) -> pd.DataFrame:
    """Counts of held-out images: rows are true classes, columns predicted ones."""
    counts = np.zeros((len(classes), len(classes)), dtype=int)
    np.add.at(counts, (true, predicted), 1)
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


def contrast_scores(scoring: Any, said: HeldOut, codes: NDArray, classes: NDArray) -> dict[str, list[float]]:
    """Scores per fold of every contrast, on the held-out images of its two classes."""
    true = codes[said.rows]
    scores = {}
    for p, (i, j) in enumerate(class_pairs(len(classes))):
        mine = (true == i) | (true == j)
        judged = classify(said.decision[mine, p : p + 1], said.proba[mine, p : p + 1], 2)
        second = (true[mine] == j).astype(int)
        of_pair = score_rows(scoring, classes[[i, j]], second, *judged, said.fold[mine])
        missing = int(said.fold.max()) + 1 - len(of_pair)  # last folds without images of the pair
        scores[contrast_key(classes[i], classes[j])] = [*of_pair.tolist(), *([math.nan] * missing)]
    return scores


def class_scores(
    scoring: Any, said: HeldOut, judged: Answers, codes: NDArray, classes: NDArray, overall: NDArray
) -> dict[Any, list[float]]:
    """Scores per fold of every class, as in nilearn.

    With two classes the score of their contrast; with more the class against all others by the coupled
    probabilities, which needs a scorer by name: a callable may not know what True and False stand for.
    """
    names = classes.tolist()
    if len(names) == 2:
        return {name: overall.tolist() for name in names}
    if callable(scoring):
        return {}
    true, scores = codes[said.rows], {}
    for k, name in enumerate(names):
        p_class = judged.proba[:, k]
        rest = np.clip(1 - p_class, np.finfo(float).tiny, 1)
        decision = judged.decision[:, k] - np.log(rest)
        answers = (decision, np.column_stack([rest, p_class]), (judged.predicted == k).astype(int))
        two = np.array([False, True])
        found = score_rows(scoring, two, (true == k).astype(int), *answers, said.fold)
        scores[name] = found.tolist()
    return scores
