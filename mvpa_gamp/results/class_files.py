"""All classes together: scores, confusion, recall, predictions, maps by class and a permutation test."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.decoding.permutation import PermutationTest
from mvpa_gamp.decoding.scores import class_maps
from mvpa_gamp.decoding.tasks import alphanumeric, contrast_name
from mvpa_gamp.imaging.names import entity
from mvpa_gamp.methods.fold_fits import FoldFits, Method
from mvpa_gamp.results.cell import Subject
from mvpa_gamp.results.files import write_tsv
from mvpa_gamp.results.inference_files import null_rows
from mvpa_gamp.results.ledger import NO_THRESHOLD, Ledger
from mvpa_gamp.results.names import ALL_CLASSES, ResultsFolder

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
        "maps": _write_maps(folder, subject, method, found),
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


def _write_maps(
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
