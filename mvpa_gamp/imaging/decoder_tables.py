"""Tables of a fitted decoder: held-out predictions, confusion, stability and how every fit ended."""

import math
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mvpa_gamp.decoding.multiclass import couple
from mvpa_gamp.decoding.pairwise import PairFits
from mvpa_gamp.decoding.scoring import score_rows
from mvpa_gamp.imaging.contrast_maps import contrast_key
from mvpa_gamp.stability import jaccard, jaccard_chance, nogueira


def answers_of_pairs(decision: NDArray, proba: NDArray, n_classes: int) -> tuple[NDArray, NDArray, NDArray]:
    """Decision, class probabilities (m, K) and predicted class numbers (m,) from pairs (m, P).

    Two classes: the decision (m,) is the linear score, positive for the second class. More: it is the
    logarithm of the coupled probability of each class, (m, K), and the largest one is predicted.
    """
    coupled = couple(proba, n_classes)
    if n_classes == 2:
        return -decision[:, 0], coupled, np.where(decision[:, 0] > 0, 0, 1)
    return np.log(np.maximum(coupled, np.finfo(float).tiny)), coupled, coupled.argmax(axis=1)


def predictions_table(
    rows: NDArray, groups: NDArray | None, fold: NDArray, true: NDArray, predicted: NDArray, proba: NDArray,
    classes: NDArray,
) -> pd.DataFrame:  # fmt: skip
    """One row per held-out image; ``true`` and ``predicted`` are class numbers, folds count from 1."""
    table: dict[str, Any] = {
        "row": rows,
        "group": np.full(len(rows), None, dtype=object) if groups is None else groups,
        "fold": fold + 1,
        "true": classes[true],
        "predicted": classes[predicted],
    }
    table |= {f"probability_{name}": proba[:, k] for k, name in enumerate(classes)}
    return pd.DataFrame(table)


def confusion_table(true: NDArray, predicted: NDArray, classes: NDArray) -> pd.DataFrame:
    """Counts of held-out images: rows are true classes, columns predicted ones."""
    counts = np.zeros((len(classes), len(classes)), dtype=int)
    np.add.at(counts, (true, predicted), 1)
    return pd.DataFrame(
        counts, index=pd.Index(classes, name="true"), columns=pd.Index(classes, name="predicted")
    )


def stability_table(fits: PairFits, names: list[str]) -> pd.DataFrame:
    """Consistency of the folds' selections by contrast; NaN where there is a single fold.

    Short names and a rounded number of voxels, so that a line fits into a terminal.
    """
    rows = [_stability(fits.support[:, p]) for p in range(len(fits.pairs))]
    return pd.DataFrame(rows, index=pd.Index(names, name="contrast"))


def _stability(support: NDArray) -> dict[str, float]:
    out = {"voxels": round(float(support.sum(axis=0).mean()), 1)}
    columns = ("jaccard", "chance", "nogueira", "low", "high")
    if support.shape[1] < 2:
        return out | dict.fromkeys(columns, math.nan)
    index = nogueira(support)
    values = (jaccard(support), jaccard_chance(support), index.estimate, index.low, index.high)
    return out | dict(zip(columns, values, strict=True))


def status_table(fits: PairFits, names: list[str], held_out: NDArray) -> pd.DataFrame:
    """One row per fit: contrast, fold ("refit" for the one on all images), and how it ended."""
    n_pairs, n_fits = fits.status.shape
    folds = [*range(1, n_fits), "refit"]
    return pd.DataFrame(
        {
            "contrast": np.repeat(names, n_fits),
            "fold": folds * n_pairs,
            "held_out": [*held_out.tolist(), None] * n_pairs,
            "converged": fits.converged.ravel(),
            "n_iter": fits.n_iter.ravel(),
            "voxels": fits.voxels.ravel(),
            "intercept": fits.fold_intercept.ravel(),
            **{name: values.ravel() for name, values in fits.parameters.items()},
            "status": fits.status.ravel(),
        }
    )


def contrast_scores(scoring: Any, fits: PairFits, codes: NDArray, classes: NDArray) -> dict[str, list[float]]:
    """Scores per fold of every contrast, on the held-out images of its two classes."""
    true = codes[fits.rows]
    scores = {}
    for p, (i, j) in enumerate(fits.pairs):
        mine = (true == i) | (true == j)
        said = answers_of_pairs(fits.decision[mine, p : p + 1], fits.proba[mine, p : p + 1], 2)
        of_pair = _by_fold(scoring, classes[[i, j]], (true[mine] == j).astype(int), said, fits, mine)
        scores[contrast_key(classes[i], classes[j])] = of_pair
    return scores


def class_scores(
    scoring: Any, fits: PairFits, codes: NDArray, classes: NDArray, overall: NDArray,
    answers: tuple[NDArray, NDArray, NDArray],
) -> dict[Any, list[float]]:  # fmt: skip
    """Scores per fold of every class, as in nilearn.

    With two classes the score of their contrast; with more the class against all others by the coupled
    probabilities, which needs a scorer by name: a callable may not know what True and False stand for.
    """
    names = classes.tolist()
    if len(names) == 2:
        return {name: overall.tolist() for name in names}
    if callable(scoring):
        return {}
    true, everything = codes[fits.rows], np.ones(len(fits.rows), dtype=bool)
    scores = {}
    for k, name in enumerate(names):
        p_class = answers[1][:, k]
        rest = np.clip(1 - p_class, np.finfo(float).tiny, 1)
        decision = answers[0][:, k] - np.log(rest)
        said = (decision, np.column_stack([rest, p_class]), (answers[2] == k).astype(int))
        two = np.array([False, True])
        scores[name] = _by_fold(scoring, two, (true == k).astype(int), said, fits, everything)
    return scores


def _by_fold(
    scoring: Any, classes: NDArray, true: NDArray, said: tuple[NDArray, NDArray, NDArray], fits: PairFits,
    mine: NDArray,
) -> list[float]:  # fmt: skip
    decision, proba, predicted = said
    found = score_rows(scoring, classes, true, decision, proba, predicted, fits.fold[mine])
    missing = fits.n_folds - len(found)  # last folds without images of the pair
    return [*found.tolist(), *([math.nan] * missing)]
