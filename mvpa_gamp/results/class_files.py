"""All classes together: scores, confusion, predictions and a permutation test of a decoder of K classes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.decoding.permutation import PermutationTest
from mvpa_gamp.methods.fold_fits import Method
from mvpa_gamp.results.cell_files import Subject
from mvpa_gamp.results.files import write_tsv
from mvpa_gamp.results.inference_files import null_rows
from mvpa_gamp.results.names import ALL_CLASSES, ResultsFolder

_CHANCE_OF_CLASSES = ("accuracy", "balanced_accuracy")
_CHANCE_OF_RANKING = ("roc_auc", "roc_auc_ovr", "roc_auc_ovo")


@dataclass(frozen=True)
class AllClasses:
    """What is known of K classes together; scores are lists with one entry per fold."""

    names: tuple[str, ...]
    scoring: str
    held_out: NDArray  # (F,)
    fold_scores: NDArray  # (F,)
    contrast_scores: Mapping[str, Sequence[float]]
    class_scores: Mapping[Any, Sequence[float]]  # each class against all others; none of two classes
    confusion: NDArray  # (K, K) counts, rows are true classes
    predictions: Sequence[Mapping[str, Any]]
    permutation: PermutationTest | None = None

    @property
    def chance(self) -> float | None:
        """The score of guessing for equally frequent classes, where it is known."""
        if self.scoring in _CHANCE_OF_CLASSES:
            return 1 / len(self.names)
        return 0.5 if self.scoring in _CHANCE_OF_RANKING else None


def write_classes(
    folder: ResultsFolder, subject: Subject, method: Method, found: AllClasses
) -> dict[str, Any]:
    """Write tables of all classes under ``contrast-all``; returns the ``classes`` part of summary.json."""
    files = [(method.name, "predictions")]
    path = folder.cell_table(subject.name, ALL_CLASSES, *files[0])
    write_tsv(path, list(found.predictions[0]), found.predictions)
    out = {
        "names": list(found.names),
        "method": method.name,
        "scoring": found.scoring,
        "chance": found.chance,
        "held_out": [str(name) for name in found.held_out],
        "fold_scores": np.asarray(found.fold_scores).tolist(),
        "contrast_scores": {str(name): list(scores) for name, scores in found.contrast_scores.items()},
        "class_scores": {str(name): list(scores) for name, scores in found.class_scores.items()},
        "confusion": [
            {"contrast": ALL_CLASSES, "method": method.name, "true": true, "predicted": said,
             "count": int(found.confusion[i, j])}
            for i, true in enumerate(found.names)
            for j, said in enumerate(found.names)
        ],
    }  # fmt: skip
    if found.permutation is not None:
        test = found.permutation
        files.append((method.name, "permutations"))
        write_tsv(folder.cell_table(subject.name, ALL_CLASSES, *files[1]), *null_rows(test))
        out["permutation"] = {
            "n": test.null.size,
            "score": test.score,
            "pvalue": test.pvalue,
            "exchange": test.exchange,
            "caution": test.caution,
        }
    return {**out, "files": files}
