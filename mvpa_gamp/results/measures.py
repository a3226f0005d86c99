"""The measures of a cell, a method on a comparison: error, sparsity, consistency of the folds' selections."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.decoding.scores import HeldOut, balanced_scores, fold_aucs, held_out_answers
from mvpa_gamp.methods.fold_fits import FoldFits
from mvpa_gamp.stability import jaccard, jaccard_chance, jaccard_matrix, kuncheva, nogueira

CONSISTENCY_COLUMNS = (
    "contrast", "comparison", "method", "folds", "folds_selecting", "voxels", "sparsity_percent",
    "consistency_percent", "chance_consistency_percent", "kuncheva",
    "nogueira", "nogueira_variance", "nogueira_low", "nogueira_high",
    "voxels_in_every_fold", "voxels_in_any_fold", "note",
)  # fmt: skip

NO_SELECTION = "Every voxel has a weight: nothing was selected, so folds have no selection to agree on."


def consistency(support: NDArray) -> dict[str, Any]:
    """All measures of a boolean (N, B) support matrix, one column per fold (the refit left out), B >= 2.

    ``consistency_percent`` is the paper's: the mean Jaccard index over ordered pairs of folds, where two
    empty selections count as equal. ``folds_selecting`` counts the folds that selected something, but not
    every voxel: without most of them consistency says nothing. Where all folds use every voxel nothing was
    selected: overlaps are NaN, and ``note`` says why.
    """
    stability = nogueira(support)
    times, sizes = support.sum(axis=1), support.sum(axis=0)
    overlap = math.nan if support.all() else 100 * jaccard(support)
    by_chance = math.nan if support.all() else 100 * jaccard_chance(support)
    return {
        "folds": support.shape[1],
        "folds_selecting": int(((sizes > 0) & (sizes < len(support))).sum()),
        "voxels": float(sizes.mean()),
        "sparsity_percent": 100 * float(support.mean()),
        "consistency_percent": overlap,
        "chance_consistency_percent": by_chance,
        "kuncheva": kuncheva(support),
        "nogueira": stability.estimate,
        "nogueira_variance": stability.variance,
        "nogueira_low": stability.low,
        "nogueira_high": stability.high,
        "voxels_in_every_fold": int((times == support.shape[1]).sum()),
        "voxels_in_any_fold": int((times > 0).sum()),
        "note": NO_SELECTION if support.all() else None,
    }


def overlap_rows(support: NDArray, held_out: Sequence[Any]) -> tuple[list[str], list[dict[str, Any]]]:
    """Columns and rows of the Jaccard matrix, named by the run held out; NaN where nothing is selected."""
    names = [f"run_{run}" for run in held_out]
    matrix = np.asarray(jaccard_matrix(support))
    matrix = np.full_like(matrix, np.nan) if support.all() else matrix
    rows = [
        {"held_out_run": run, **dict(zip(names, line, strict=True))}
        for run, line in zip(held_out, matrix, strict=True)
    ]
    return ["held_out_run", *names], rows


def error_summary(wrong: NDArray, fold: NDArray, y: NDArray) -> dict[str, float]:
    """Error rate over held-out rows with two standard errors, in percent.

    ``wrong`` (T,) bool; ``fold`` (T,) what held each row out; ``y`` (T,) in -1/+1. ``error_se_percent`` is
    the standard deviation of the fold-wise errors over sqrt(folds): it respects that rows of one block are
    correlated. ``error_binomial_se_percent`` treats all T rows as independent and is usually too small.
    Folds share training rows, so neither is exact.
    """
    rates = np.array([wrong[fold == number].mean() for number in np.unique(fold)])
    error = float(rates.mean())
    spread = _standard_error(rates)
    majority = max(float((y > 0).mean()), float((y < 0).mean()))
    return {
        "error_percent": 100 * error,
        "error_se_percent": 100 * spread,
        "error_binomial_se_percent": 100 * math.sqrt(error * (1 - error) / len(wrong)),
        "chance_error_percent": 100 * (1 - majority),
        "accuracy_percent": 100 * (1 - error),
        "accuracy_se_percent": 100 * spread,
        "chance_accuracy_percent": 100 * majority,
    }


def balanced_summary(said: HeldOut, y: NDArray, n_folds: int) -> dict[str, float]:
    """Balanced accuracy (percent) and area under the ROC curve, means over folds that test both classes.

    ``said`` are the answers to held-out rows, y (M,) in -1/+1. Where no fold tests both classes, balanced
    accuracy is that of all held-out rows together, without a standard error, and there is no area: decision
    values of different folds do not share a scale.
    """
    positive, decision = y[said.rows] > 0, said.decision[:, 0]
    right = (decision > 0) == positive
    balanced = balanced_scores(right, (~positive).astype(int), said.fold, 2, n_folds)
    areas = fold_aucs(decision, positive, said.fold)
    return {
        "balanced_accuracy_percent": 100 * float(balanced.mean()),
        "balanced_accuracy_se_percent": 100 * _standard_error(balanced),
        "chance_balanced_accuracy_percent": 50.0,
        "auc": float(areas.mean()) if areas.size else math.nan,
        "auc_se": _standard_error(areas),
        "chance_auc": 0.5,
    }


def _standard_error(values: NDArray) -> float:
    """Standard deviation of fold-wise values over the root of their number; NaN of one fold."""
    return float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan


def planted_ranking(truth: NDArray, refit: FoldFits) -> dict[str, float]:
    """Area under the precision-recall curve of the planted voxels (N,) bool, for a phantom.

    Voxels are ranked by the refit's inclusion probability where a method has it, else by |weight|.
    """
    from sklearn.metrics import average_precision_score

    scores = np.abs(refit.coef[:, 0]) if refit.inclusion is None else refit.inclusion[:, 0]
    return {
        "average_precision": float(average_precision_score(truth, scores)),
        "chance_average_precision": float(np.mean(truth)),
    }


def measures_of(fits: FoldFits, y: NDArray, truth: NDArray | None = None) -> dict[str, Any]:
    """All measures of a cell, the fits of a method on a comparison with labels y (M,) in -1/+1."""
    said = held_out_answers([fits])
    wrong = (said.decision[:, 0] > 0) != (y[said.rows] > 0)
    support = fits.folds.support
    return {
        **(consistency(support) if fits.n_folds > 1 else {"folds": fits.n_folds}),
        **error_summary(wrong, said.fold, y[said.rows]),
        **balanced_summary(said, y, fits.n_folds),
        **({} if truth is None or not truth.any() else planted_ranking(truth, fits.refit)),
        "folds_converged": int(fits.folds.converged.sum()),
    }
