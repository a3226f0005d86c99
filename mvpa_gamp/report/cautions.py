"""What a reader of the table must know before trusting it: leaks, empty selections, unbalanced categories."""

import math
from collections.abc import Mapping
from typing import Any

from scipy.special import stdtrit

from mvpa_gamp.report.comparisons import member_cautions
from mvpa_gamp.results.reader import Results
from mvpa_gamp.results.tables import AVERAGE, BALANCED, leading_of_tasks

_BALANCED = 0.8  # rarer over more frequent category; below, the majority alone is right in over 55 %


def cautions(results: Results) -> list[str]:
    """Sentences about comparisons and methods, in the order of the table."""
    crossed = [each["caution"] for each in results.summary.cross.get("crosses", ()) if each["caution"]]
    return [
        *leaks(results),
        *_dependent(results),
        *_confounded(results),
        *_unbalanced(results),
        *_below_chance(results),
        *member_cautions(results),
        *crossed,
        *_hardly_selecting(results),
        *_failed(results),
    ]


def leaks(results: Results) -> list[str]:
    """What the check before the first fit found; folders of earlier versions have none."""
    return [each["sentence"] for each in results.summary.leakage.get("findings", ())]


def _dependent(results: Results) -> list[str]:
    """Folds that may hold neighbours of the rows they train on."""
    if results.summary.data["n_runs"] is not None:
        return []
    return [
        "No groups were given. If the images are volumes of a scan, neighbours of test images were in the "
        "training set, and scores are too good."
    ]


def _confounded(results: Results) -> list[str]:
    """Covariates that decode a comparison by themselves."""
    return list(results.summary.fold_confounds.get("cautions", ()))


def _failed(results: Results) -> list[str]:
    """Fits that did not meet their stopping rule."""
    rows = [row for row in results.rows if row["contrast"] != AVERAGE and row["status"] == "ok"]
    folds, good = (int(sum(row[name] for row in rows)) for name in ("folds", "folds_converged"))
    return [f"{folds - good} of {folds} fits did not converge, see Convergence."] if good < folds else []


def _unbalanced(results: Results) -> list[str]:
    """Comparisons with many more volumes of one category."""
    out, unit = [], results.summary.data.get("unit", "volumes")
    for task in results.tasks:
        counts = [int(task.get(f"{side}_volumes", 0)) for side in ("positive", "negative")]
        if min(counts) < _BALANCED * max(counts):
            chance = 100 * max(counts) / sum(counts)
            with_what = (
                "The page reports balanced accuracy, with a chance level of 50 %"
                if leading_of_tasks(results.tasks) is BALANCED
                else "Compare accuracies with this"
            )
            out.append(
                f"{task['label']} is unbalanced, {counts[0]} against {counts[1]} {unit}: always predicting "
                f"the more frequent category is correct in {chance:.0f} %. {with_what}; "
                "methods without an intercept cannot use the imbalance."
            )
    return out


def _below_chance(results: Results) -> list[str]:
    """Comparisons that are decoded much worse than by guessing, with the methods that do so."""
    found: dict[str, list[str]] = {}
    for row in results.rows:
        if row["contrast"] != AVERAGE and row["status"] == "ok" and _is_below_chance(row):
            said = f"{results.labels[row['method']]} {row[BALANCED.column]:.1f} %"
            found.setdefault(row["comparison"], []).append(said)
    if not found:
        return []
    which = "; ".join(f"{comparison} ({', '.join(methods)})" for comparison, methods in found.items())
    word = results.fold_word
    return [
        f"Balanced accuracy is far below chance: {which}. Noise alone does this in up to 3 % of comparisons. "
        f"Possible causes are labels that are exchanged in some {word}s and an order of conditions that "
        f"changes between {word}s together with something else, such as drifts. "
        f"Check the labels of every {word}."
    ]


def _is_below_chance(row: Mapping[str, Any]) -> bool:
    """At least ten points below, and p < 0.005 by a t-test over folds (up to 3 % of noise: they depend)."""
    columns = BALANCED.chance, BALANCED.column, BALANCED.spread
    chance, reached, spread = (row.get(name, math.nan) for name in columns)  # earlier versions had none
    below = chance - reached
    if math.isnan(below) or below < 10 or row["folds"] < 3 or math.isnan(spread):
        return False
    return spread == 0 or below / spread > stdtrit(row["folds"] - 1, 0.995)


def _hardly_selecting(results: Results) -> list[str]:
    """Methods that select less than one voxel on average, with the comparisons where they do."""
    out = []
    for method, label in results.labels.items():
        rows = [row for row in results.rows if row["method"] == method and row["contrast"] != AVERAGE]
        empty = [row["comparison"] for row in rows if row["voxels"] < 1]
        if empty:
            where = ", ".join(empty)
            out.append(
                f"{label} selects less than one voxel per fold on {where}: there are too few samples, "
                "or too many redundant voxels, and its consistency there is meaningless. The prediction "
                "uses all voxels together: read accuracy and pattern."
            )
    return out
