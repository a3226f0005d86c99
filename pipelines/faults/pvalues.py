"""P-values of permutation tests in a results folder, computed again as docs/inference.md says."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mvpa_gamp.results.files import MISSING, number, read_tsv
from mvpa_gamp.results.names import ALL_CLASSES
from mvpa_gamp.results.reader import Results

_ROUNDING = 1e-5  # of shares in tables with six digits


class Permuted(NamedTuple):
    """What a test is about, its observed score and area, its smallest p-value, its p-value, and its null."""

    name: str
    score: float
    auc: float
    smallest: float
    p: float
    null: Path


def wrong_pvalues(results: Results) -> Iterator[str]:
    """Every test of comparisons, classes and crosses whose p-value does not follow from its permutations."""
    for subject in results.subjects:
        for tests in (_of_pairs, _of_classes, _of_crosses):
            for test in tests(results, subject):
                if abs(test.p - (again := pvalue(test))) > _ROUNDING:
                    yield f"the p-value {test.p:g} of {test.name} is not that of its permutations, {again:g}"


def pvalue(test: Permuted) -> float:
    """(1 + permutations at least as good) / (1 + permutations); equal accuracies are ordered by their area.

    An area that is not known makes a tie count against the data.
    """
    rows = read_tsv(test.null)
    above = np.array([number(row["accuracy"]) for row in rows]) - test.score
    area = np.array([number(row.get("auc", MISSING)) for row in rows]) - test.auc
    as_good = (above > _ROUNDING) | ((abs(above) <= _ROUNDING) & ~(area < -_ROUNDING))
    return max((1 + int(as_good.sum())) / (1 + len(rows)), test.smallest)


def _of_pairs(results: Results, subject: str) -> Iterator[Permuted]:
    path = results.folder.subject_table(subject, "inference")
    for row in read_tsv(path) if path.is_file() else ():
        if row["p_value"] != MISSING:
            yield Permuted(
                f"{row['contrast']} by {row['method']}",
                number(row["accuracy_percent"]) / 100,
                number(row["auc"]),
                number(row["smallest_p_value"]),
                number(row["p_value"]),
                results.folder.cell_table(subject, row["contrast"], row["method"], "permutations"),
            )


def _of_classes(results: Results, subject: str) -> Iterator[Permuted]:
    path = results.folder.subject_table(subject, "classes")
    parts = {part["method"]: part["permutation"] for part in results.class_parts if "permutation" in part}
    for row in read_tsv(path) if path.is_file() else ():
        if row["p_value"] != MISSING:
            test = parts[row["method"]]
            null = results.folder.cell_table(subject, ALL_CLASSES, row["method"], "permutations")
            auc = np.nan if test["auc"] is None else test["auc"]
            score, p = number(row["score"]), number(row["p_value"])
            yield Permuted(f"all classes by {row['method']}", score, auc, test["smallest"], p, null)


def _of_crosses(results: Results, subject: str) -> Iterator[Permuted]:
    for row in results.table(subject, "cross") if results.cross else ():
        if row["p_value"] != MISSING:
            yield Permuted(
                f"{row['cross']} by {row['method']}",
                number(row["accuracy_percent"]) / 100,
                number(row["auc"]),
                1 / number(row["labellings"]),
                number(row["p_value"]),
                results.folder.cell_table(subject, row["contrast"], row["method"], "crosspermutations"),
            )
