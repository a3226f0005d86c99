"""Cross-decoding and all classes together in a results folder: tables, predictions, nulls and maps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.decoding.cross import CrossDecoding
from mvpa_gamp.decoding.designs import Cross
from mvpa_gamp.decoding.permutation import PermutationTest, holm
from mvpa_gamp.decoding.scores import class_maps
from mvpa_gamp.decoding.tasks import Task, alphanumeric, contrast_name
from mvpa_gamp.imaging.brainmaps import sidecar_path
from mvpa_gamp.imaging.names import entity
from mvpa_gamp.methods.fold_fits import FoldFits, Method
from mvpa_gamp.results.files import write_tsv
from mvpa_gamp.results.inference import null_rows
from mvpa_gamp.results.ledger import NO_THRESHOLD, Ledger, Subject
from mvpa_gamp.results.names import ALL_CLASSES, ResultsFolder

_COLUMNS = (
    "cross", "contrast", "trained_on", "tested_on", "method", "runs", "volumes",
    "accuracy_percent", "accuracy_se_percent", "balanced_accuracy_percent", "auc", "chance_percent",
    "fits", "fits_converged", "permutations", "null_mean_percent", "p_value", "p_value_holm", "exchanged",
    "labellings", "caution", "status",
)  # fmt: skip
_PREDICTIONS = (
    "sample", "volume", "run", "true", "predicted", "trained_side", "correct", "probability_positive",
    "decision",
)  # fmt: skip


@dataclass(frozen=True)
class CrossFound:
    """A cross by one method: what came out, its test if there is one, or why there is nothing."""

    cross: Cross
    method: Method
    found: CrossDecoding | None
    test: PermutationTest | None = None
    trouble: str = ""


def write_crosses(
    folder: ResultsFolder, subject: Subject, each: Sequence[CrossFound], tasks: Sequence[Task]
) -> dict[str, Any]:
    """Write cross.tsv and the files of every cross; returns the ``cross`` part of summary.json.

    ``tasks`` are the comparisons of the study, those trained on among them.
    """
    files: list[Path] = []
    rows = []
    for one in each:
        row = {**_keys(one), "status": "ok", "caution": one.cross.caution or None}
        if one.found is None:
            row["status"] = "failed: " + " ".join(one.trouble.split())
        else:
            row |= _measures(one.found)
            files += _write_one(folder, subject, one)
        if one.test is not None:
            row |= _tested(one.test, one.cross.caution)
        if one.found is not None and one.trouble:
            row["status"] = "failed: " + " ".join(one.trouble.split())
        rows.append(row)
    path = folder.subject_table(subject.name, "cross")
    write_tsv(path, _COLUMNS, _corrected(rows))
    crosses = {one.cross.name: _about(one.cross, tasks) for one in each}
    places = [file.relative_to(folder.root).as_posix() for file in (path, *files)]
    return {"cross": {"crosses": list(crosses.values()), "files": places}}


def _about(cross: Cross, tasks: Sequence[Task]) -> dict[str, Any]:
    return {
        "name": cross.name,
        "label": cross.label,
        "trained_on": cross.train_on or cross.train.label,
        "tested_on": cross.test_on or cross.test.label,
        "contrast": _named(cross.train, tasks),
        "own_maps": bool(cross.train_on),
        "members": [
            {side.text: list(side.members) for side in task.sides} for task in (cross.train, cross.test)
        ],
        "caution": cross.caution,
    }


def _named(trained: Task, tasks: Sequence[Task]) -> str:
    """The name of a comparison in the study, which may have it the other way round (house:face)."""
    members = {side.members for side in trained.sides}
    same = [task.name for task in tasks if {side.members for side in task.sides} == members]
    return trained.name if trained.name in same else (*same, trained.name)[0]


def _keys(one: CrossFound) -> dict[str, Any]:
    cross = one.cross
    return {
        "cross": cross.label,
        "contrast": cross.name,
        "trained_on": ", ".join(filter(None, (cross.train.label, cross.train_on))),
        "tested_on": ", ".join(filter(None, (cross.test.label, cross.test_on))),
        "method": one.method.name,
    }


def _measures(found: CrossDecoding) -> dict[str, Any]:
    by_run = found.accuracies
    spread = by_run.std(ddof=1) / np.sqrt(by_run.size) if by_run.size > 1 else np.nan
    return {
        "runs": by_run.size,
        "volumes": found.rows.size,
        "accuracy_percent": 100 * found.accuracy,
        "accuracy_se_percent": 100 * float(spread),
        "balanced_accuracy_percent": 100 * found.balanced_accuracy,
        "auc": found.auc,
        "chance_percent": 100 * found.chance,
        "fits": found.trained.converged.size,
        "fits_converged": int(np.count_nonzero(found.trained.converged)),
    }


def _tested(test: PermutationTest, caution: str) -> dict[str, Any]:
    return {
        "permutations": test.null.size,
        "null_mean_percent": 100 * float(test.null.mean()),
        "p_value": test.pvalue,
        "exchanged": test.exchange,
        "labellings": test.n_distinct,
        "caution": " ".join(filter(None, (caution, test.caution))) or None,
    }


def _corrected(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows with p-values corrected for the crosses tested with the same method."""
    for method in {row["method"] for row in rows}:
        tested = [row for row in rows if row["method"] == method and "p_value" in row]
        for row, p in zip(tested, holm([row["p_value"] for row in tested]), strict=True):
            row["p_value_holm"] = float(p)
    return rows


def _write_one(folder: ResultsFolder, subject: Subject, one: CrossFound) -> list[Path]:
    """Predictions, null and, where the training runs were chosen, maps; returns their paths."""
    assert one.found is not None
    name, method = one.cross.name, one.method.name
    files = [folder.cell_table(subject.name, name, method, "crosspredictions")]
    write_tsv(files[0], _PREDICTIONS, _prediction_rows(subject, one.found))
    if one.test is not None:
        files.append(folder.cell_table(subject.name, name, method, "crosspermutations"))
        write_tsv(files[-1], *null_rows(one.test))
    if one.cross.train_on:
        files += _write_maps(folder, subject, one)
    return files


def _prediction_rows(subject: Subject, found: CrossDecoding) -> list[dict[str, Any]]:
    """A row per tested volume; ``trained_side`` is what the classifier was trained to say for it."""
    tested, trained = found.cross.test, found.cross.train
    shown, learnt = ((task.negative, task.positive) for task in (tested, trained))
    said = (found.decision > 0).astype(int)
    true = (found.y > 0).astype(int)
    return [
        {
            "sample": row,
            "volume": None if subject.volumes is None else subject.volumes[row],
            "run": subject.run_name(found.run[t]),
            "true": shown[true[t]],
            "predicted": shown[said[t]],
            "trained_side": learnt[said[t]],
            "correct": said[t] == true[t],
            "probability_positive": found.proba[t],
            "decision": found.decision[t],
        }
        for t, row in enumerate(found.rows)
    ]


def trained_maps(found: CrossDecoding) -> dict[str, NDArray]:
    """Maps (N,) of the one classifier that was trained on some runs, by kind."""
    fits = found.trained
    known: Mapping[str, NDArray | None] = {
        "weight": fits.coef, "weightsd": fits.coef_std, "pip": fits.inclusion, "pattern": fits.pattern,
    }  # fmt: skip
    return {stat: values[:, 0] for stat, values in known.items() if values is not None}


def _write_maps(folder: ResultsFolder, subject: Subject, one: CrossFound) -> list[Path]:
    assert one.found is not None
    files = []
    for stat, values in trained_maps(one.found).items():
        task = one.cross.train
        facts = {
            "Estimate": f"trained on {one.cross.train_on}",
            "Threshold": NO_THRESHOLD,
            "Contrast": f"{task.positive} (positive) versus {task.negative} (negative)",
            "Method": one.method.name,
            "MethodDescription": one.method.description,
        }
        path = folder.statmap(subject.name, one.cross.name, entity(one.method.name), stat)
        words = f"{stat} {one.method.name} {one.cross.label}"
        Ledger(folder, subject).map(path, values, f"trained {stat}", stat, words, facts)
        files += [path, sidecar_path(path)]
    return files


_CHANCE_OF_RANKING = ("roc_auc", "roc_auc_ovr", "roc_auc_ovo")
_MAPS = {"weight": ("coef", True), "pattern": ("pattern", True), "pip": ("inclusion", False)}
_TABLE = (
    "method", "class", "volumes", "recall_percent", "precision_percent",
    "scoring", "score", "score_se", "chance", "permutations", "p_value",
)  # fmt: skip


@dataclass(frozen=True)
class AllClasses:
    """What is known of K classes together; scores are lists with one entry per fold.

    ``maps`` (N, K) by kind: what speaks for each class, the mean over the pairs it is part of.
    """

    names: tuple[str, ...]
    scoring: str
    held_out: NDArray  # (F,)
    fold_scores: NDArray  # (F,)
    contrast_scores: Mapping[str, Sequence[float]]
    class_scores: Mapping[Any, Sequence[float]]  # each class against all others; none of two classes
    confusion: NDArray  # (K, K) counts, rows are true classes
    predictions: Sequence[Mapping[str, Any]]
    permutation: PermutationTest | None = None
    maps: Mapping[str, NDArray] = field(default_factory=dict)
    spelled: tuple[str, ...] = ()  # names for files, where they are not those of the classes
    auc: float | None = None  # mean over folds and pairs of the area under the ROC curve

    @property
    def chance(self) -> float | None:
        """The score of always predicting the most frequent class, where it is known."""
        if self.scoring == "accuracy":
            counts = self.confusion.sum(axis=1)
            return float(counts.max() / counts.sum())
        if self.scoring == "balanced_accuracy":
            return 1 / len(self.names)
        return 0.5 if self.scoring in _CHANCE_OF_RANKING else None

    @property
    def contrasts(self) -> list[str]:
        """Names for the files of each class against the others."""
        return [contrast_name(name, "others") for name in self.spelled or map(alphanumeric, self.names)]


def maps_by_class(fits: Sequence[FoldFits], n_classes: int) -> dict[str, NDArray]:
    """Maps (N, K) of the refits of all pairs, by kind; two classes have those of their pair."""
    if n_classes == 2:
        return {}
    out = {}
    for stat, (name, signed) in _MAPS.items():
        values = [getattr(each, name) for each in fits]
        if values[0] is not None:
            out[stat] = class_maps([each[:, -1] for each in values], n_classes, signed)
    if all(each.folds.support.all() for each in fits):
        return out  # a method that weighs every voxel selects none
    return {**out, "selfreq": class_maps([each.frequency for each in fits], n_classes, signed=False)}


def write_classes(
    folder: ResultsFolder, subject: Subject, method: Method, found: AllClasses
) -> dict[str, Any]:
    """Write tables under ``contrast-all`` and maps by class; returns the ``classes`` part of summary.json."""
    files = [(method.name, "predictions")]
    path = folder.cell_table(subject.name, ALL_CLASSES, *files[0])
    write_tsv(path, list(found.predictions[0]), found.predictions)
    out = {
        "names": list(found.names),
        "method": method.name,
        "scoring": found.scoring,
        "chance": found.chance,
        "auc": found.auc,
        "held_out": [str(subject.run_name(run)) for run in found.held_out],
        "fold_scores": np.asarray(found.fold_scores).tolist(),
        "contrast_scores": {str(name): list(scores) for name, scores in found.contrast_scores.items()},
        "class_scores": {str(name): list(scores) for name, scores in found.class_scores.items()},
        "recall": dict(zip(found.names, _shares(found.confusion), strict=True)),
        "precision": dict(zip(found.names, _shares(found.confusion.T), strict=True)),
        "confusion": [
            {"contrast": ALL_CLASSES, "method": method.name, "true": true, "predicted": said,
             "count": int(found.confusion[i, j])}
            for i, true in enumerate(found.names)
            for j, said in enumerate(found.names)
        ],
        "maps": _write_class_maps(folder, subject, method, found),
    }  # fmt: skip
    if found.permutation is not None:
        test = found.permutation
        files.append((method.name, "permutations"))
        write_tsv(folder.cell_table(subject.name, ALL_CLASSES, *files[1]), *null_rows(test))
        out["permutation"] = {
            "n": test.null.size,
            "exact": test.is_exact,
            "score": test.score,
            "auc": test.auc,
            "pvalue": test.pvalue,
            "smallest": test.smallest,
            "exchange": test.exchange,
            "caution": test.caution,
        }
    return {**out, "files": files}


def write_class_table(folder: ResultsFolder, subject: Subject, parts: Sequence[Mapping[str, Any]]) -> None:
    """classes.tsv: recall and precision of every class, and a row of all together, for each method."""
    rows = [row for part in parts for row in _table_rows(part)]
    write_tsv(folder.subject_table(subject.name, "classes"), _TABLE, rows)


def _table_rows(part: Mapping[str, Any]) -> list[dict[str, Any]]:
    counts = dict.fromkeys(part["names"], 0)
    for row in part["confusion"]:
        counts[row["true"]] += row["count"]
    scores = np.array(part["fold_scores"], dtype=float)
    scores = scores[~np.isnan(scores)]
    test = part.get("permutation", {})
    together = {
        "class": ALL_CLASSES,
        "volumes": sum(counts.values()),
        "recall_percent": 100 * float(np.nanmean(list(part["recall"].values()))),
        "scoring": part["scoring"],
        "score": float(scores.mean()) if scores.size else None,
        "score_se": float(scores.std(ddof=1) / np.sqrt(scores.size)) if scores.size > 1 else None,
        "chance": part["chance"],
        "permutations": test.get("n"),
        "p_value": test.get("pvalue"),
    }
    each = [
        {
            "class": name,
            "volumes": counts[name],
            "recall_percent": 100 * part["recall"][name],
            "precision_percent": 100 * part["precision"][name],
        }
        for name in part["names"]
    ]
    return [{"method": part["method"], **row} for row in (together, *each)]


def _shares(counts: NDArray) -> list[float]:
    """Share of each row that is on the diagonal, NaN for an empty one."""
    totals = counts.sum(axis=1)
    return np.where(totals > 0, np.diagonal(counts) / np.maximum(totals, 1), np.nan).tolist()


def _write_class_maps(
    folder: ResultsFolder, subject: Subject, method: Method, found: AllClasses
) -> dict[str, list[str]]:
    """One map per class and kind; returns their names."""
    desc = f"{entity(method.name)}Class"
    for stat, values in found.maps.items():
        for name, contrast, column in zip(found.names, found.contrasts, values.T, strict=True):
            facts = {
                "Contrast": f"{name} (positive) versus each of the other classes",
                "Threshold": NO_THRESHOLD,
                "Method": method.name,
                "MethodDescription": method.description,
            }
            path, words = folder.statmap(subject.name, contrast, desc, stat), f"{stat} {method.name} {name}"
            known = {"pairs": len(found.names) - 1, "name": name}
            Ledger(folder, subject).map(path, column, "class", stat, f"{words} vs others", facts, **known)
    return {"contrasts": found.contrasts, "stats": list(found.maps)} if found.maps else {}
