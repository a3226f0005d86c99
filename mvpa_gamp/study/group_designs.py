"""The group level of all classes together and of cross-decoding: scores of participants, and their tables."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.results.files import MISSING, number, read_tsv, write_tsv
from mvpa_gamp.results.group_tables import (
    ACCURACY_COLUMNS,
    SUMMARY_COLUMNS,
    OwnTest,
    Score,
    accuracy_row,
    group_rows,
)
from mvpa_gamp.results.names import ALL_CLASSES, ResultsFolder
from mvpa_gamp.results.reader import Results

_KIND = ("design",)  # "classes" or "cross", before the columns of the comparisons' tables


def write_group_designs(folder: ResultsFolder, people: Sequence[Results], alpha: float) -> bool:
    """group_designs.tsv and group_designaccuracy.tsv; whether there is anything to tell.

    Holm's correction is over the crosses of a method; all classes together are one test per method.
    """
    kinds = {"classes": _class_scores, "cross": _cross_scores}
    found = {kind: [score for person in people for score in make(person)] for kind, make in kinds.items()}
    rows = [{"design": kind, **row} for kind, mine in found.items() for row in group_rows(mine, alpha)]
    each = [{"design": kind, **accuracy_row(s, alpha)} for kind, mine in found.items() for s in mine]
    tables: dict[str, tuple[Sequence[str], list[dict[str, Any]]]] = {
        "designs": (SUMMARY_COLUMNS, rows),
        "designaccuracy": (ACCURACY_COLUMNS, each),
    }
    for name, (columns, lines) in tables.items():
        if lines:
            write_tsv(folder.group_table(name), (*_KIND, *columns), lines)
    return bool(rows)


def design_facts(people: Sequence[Results]) -> dict[str, Any]:
    """What the page says of classes and crosses besides their scores, where all participants have them."""
    parts = [person.classes for person in people]
    out: dict[str, Any] = {}
    names = [part.get("names", []) for part in parts]
    if names[0] and all(each == names[0] for each in names):
        maps = parts[0].get("maps") or {}
        out["classes"] = {
            "names": names[0],
            "contrasts": maps.get("contrasts", []),
            "confusion": _confusion(people, len(names[0])),
        }
    crosses = {each["name"]: each for person in people for each in person.cross.get("crosses", ())}
    if crosses:
        kept = ("name", "label", "trained_on", "tested_on", "contrast", "own_maps")
        out["crosses"] = [{name: each[name] for name in kept} for each in crosses.values()]
    return out


def _confusion(people: Sequence[Results], n_classes: int) -> dict[str, list[list[int]]]:
    """Counts (true, predicted) over all participants, by method."""
    out: dict[str, NDArray] = {}
    for person in people:
        for part in person.class_parts:
            counts = np.array([row["count"] for row in part["confusion"]]).reshape(n_classes, n_classes)
            out[part["method"]] = out.get(part["method"], 0) + counts
    return {method: counts.tolist() for method, counts in out.items()}


def _class_scores(person: Results) -> list[Score]:
    """All classes together, by every method."""
    out = []
    for subject in person.subjects:
        for part in person.class_parts:
            names, files = part["names"], person.folder
            given = subject, ALL_CLASSES, part["method"]
            out.append(
                Score(
                    subject=subject,
                    contrast=ALL_CLASSES,
                    comparison=f"{len(names)} classes: {', '.join(names)}",
                    method=part["method"],
                    accuracy=float(np.nanmean(np.array(part["fold_scores"], dtype=float))),
                    chance=part["chance"],
                    by_run=balanced_by_run(read_tsv(files.cell_table(*given, "predictions")), len(names)),
                    auc=math.nan if part["auc"] is None else part["auc"],
                    own=_test_of_classes(files.cell_table(*given, "permutations"), part),
                    level=1 / len(names),
                    runs_count=False,
                )
            )
    return out


def _cross_scores(person: Results) -> list[Score]:
    """Every cross that did not fail; one whose comparisons share a condition has accuracies, but no test."""
    shared = {each["name"] for each in person.cross.get("crosses", ()) if each["caution"]}
    out = []
    for subject in person.subjects:
        for row in person.table(subject, "cross") if person.cross else ():
            if row["status"] != "ok":
                continue
            given = subject, row["contrast"], row["method"]
            said = read_tsv(person.folder.cell_table(*given, "crosspredictions"))
            out.append(
                Score(
                    subject=subject,
                    contrast=row["contrast"],
                    comparison=row["cross"],
                    method=row["method"],
                    accuracy=number(row["accuracy_percent"]) / 100,
                    chance=number(row["chance_percent"]) / 100,
                    by_run=() if row["contrast"] in shared else balanced_by_run(said),
                    auc=number(row["auc"]),
                    own=_test_of_cross(person.folder.cell_table(*given, "crosspermutations"), row),
                    runs_count=False,
                )
            )
    return out


def balanced_by_run(predictions: Sequence[dict[str, str]], n_classes: int = 2) -> tuple[float, ...]:
    """Mean over the categories of the share recognised, in each run that has all of them."""
    out = []
    for run in dict.fromkeys(row["run"] for row in predictions):
        mine = [row for row in predictions if row["run"] == run]
        shares = [
            np.mean([row["predicted"] == name for row in mine if row["true"] == name])
            for name in sorted({row["true"] for row in mine})
        ]
        if len(shares) == n_classes:
            out.append(float(np.mean(shares)))
    return tuple(out)


def own_test(path: Path, score: float, p_value: float, smallest: float) -> OwnTest:
    """A participant's test: its result, with the table of permutations; ``smallest`` is by labellings."""
    null = np.array([number(row["accuracy"]) for row in read_tsv(path)])
    return OwnTest(score, null, p_value, max(1 / (1 + null.size), smallest))


def _test_of_classes(path: Path, part: Mapping[str, Any]) -> OwnTest | None:
    test = part.get("permutation")
    return own_test(path, test["score"], test["pvalue"], test["smallest"]) if test else None


def _test_of_cross(path: Path, row: Mapping[str, str]) -> OwnTest | None:
    if row["p_value"] == MISSING:
        return None
    score, p = number(row["accuracy_percent"]) / 100, number(row["p_value"])
    return own_test(path, score, p, 1 / number(row["labellings"]))
