"""What is not right of a finished results folder: its tables are computed again from one another."""

import hashlib
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

import nibabel
import numpy as np

from mvpa_gamp.results.files import number, read_json, read_tsv
from mvpa_gamp.results.names import ResultsFolder
from mvpa_gamp.results.reader import manifest_digests, read_results

from .pvalues import wrong_pvalues

Row = dict[str, str]
_ROUNDING = 1e-4  # of tables with six digits


def not_right(out: Path) -> str:
    """The first thing that is wrong, or nothing."""
    folder = ResultsFolder(out)
    if (out / "regression.json").is_file():
        return next(_numbers(out), "")
    if not folder.manifest.is_file():
        return "" if not out.exists() else "no manifest"
    results = read_results(out)
    found = (wrong for check in _CHECKS for wrong in check(results.folder))
    return next(chain(found, wrong_pvalues(results)), "")


def _numbers(out: Path) -> Iterator[str]:
    """Predictions of a number, and maps, that are finite, and a page."""
    for path in out.glob("*_predictions.tsv"):
        if not all(math.isfinite(number(row["predicted"])) for row in read_tsv(path)):
            yield f"predictions of {path.name}"
    yield from _maps(ResultsFolder(out), "*_statmap.nii.gz")
    if not (out / "index.html").is_file():
        yield "no page"


def _files(folder: ResultsFolder) -> Iterator[str]:
    """Every file of the manifest, with its digest."""
    for name, digest in manifest_digests(folder).items():
        path = folder.root / name
        if not path.is_file():
            yield f"missing: {name}"
        elif hashlib.sha256(path.read_bytes()).hexdigest() != digest:
            yield f"other content than in the manifest: {name}"
    if not folder.page.is_file():
        yield "no page"


def _cells(folder: ResultsFolder) -> Iterator[str]:
    """Error rates of the summary, from those of the folds, from predictions, from decision values."""
    sides = {task["contrast"]: task["positive"] for task in read_json(folder.study)["tasks"]}
    for row in read_tsv(folder.summary):
        if row["status"] != "ok" or row["contrast"] == "average":
            continue
        name = (row["subject"], row["contrast"], row["method"])
        predictions = read_tsv(folder.cell_table(*name, "predictions"))
        folds = [each for each in read_tsv(folder.cell_table(*name, "folds")) if each["fold"] != "refit"]
        yield from _predictions(predictions, sides[row["contrast"]], name)
        errors = [100 * (1 - share) for share in _by(predictions, "fold")]
        if not _same([number(fold["error_percent"]) for fold in folds], errors):
            yield f"error rates of the folds of {name} are not those of the predictions"
        if not _same([number(row["error_percent"])], [np.mean(errors)]):
            yield f"the error rate of {name} is not the mean of its folds"
        if not _same([number(row["error_percent"])], [100 - number(row["accuracy_percent"])]):
            yield f"error rate and accuracy of {name} do not add up"


def _predictions(rows: Sequence[Row], positive: str, name: tuple[str, ...]) -> Iterator[str]:
    """Whether decision, probability, predicted category and its correctness agree in every row."""
    for row in rows:
        decision, p = number(row["decision"]), number(row["probability_positive"])
        said = row["predicted"] == positive
        if not math.isfinite(decision) or (decision != 0 and said != (decision > 0)):
            yield f"a prediction of {name} is not the side of its decision value {decision}"
        if not math.isnan(p) and (not 0 <= p <= 1 or (abs(p - 0.5) > _ROUNDING and said != (p > 0.5))):
            yield f"a prediction of {name} is not that of its probability {p}"
        if (row["correct"] == "true") != (row["true"] == row["predicted"]):
            yield f"a prediction of {name} is marked wrongly"


def _classes(folder: ResultsFolder) -> Iterator[str]:
    """The accuracy over classes, and the recall of each."""
    for subject in read_json(folder.study)["subjects"]:
        path = folder.subject_table(subject, "classes")
        for row in read_tsv(path) if path.is_file() else ():
            predictions = read_tsv(folder.cell_table(subject, "all", row["method"], "predictions"))
            recall = dict(
                zip(sorted({each["true"] for each in predictions}), _by(predictions, "true"), strict=True)
            )
            expected = np.mean(list(recall.values())) if row["class"] == "all" else recall[row["class"]]
            if not _same([number(row["recall_percent"])], [100 * expected]):
                yield f"the recall of {row['class']} by {row['method']} is not that of the predictions"
            if row["scoring"] == "accuracy" and not _same(
                [number(row["score"])], [np.mean(_by(predictions, "fold"))]
            ):
                yield f"the accuracy of {row['method']} over classes is not that of the predictions"


def _crosses(folder: ResultsFolder) -> Iterator[str]:
    """The accuracy of each cross, mean over the runs tested."""
    for subject in read_json(folder.study)["subjects"]:
        path = folder.subject_table(subject, "cross")
        for row in read_tsv(path) if path.is_file() else ():
            if row["status"] != "ok":
                continue
            table = folder.cell_table(subject, row["contrast"], row["method"], "crosspredictions")
            shares = [100 * share for share in _by(read_tsv(table), "run")]
            if not _same([number(row["accuracy_percent"])], [np.mean(shares)]):
                yield f"the accuracy of {row['cross']} by {row['method']} is not that of its predictions"


def _maps(folder: ResultsFolder, names: str = "sub-*/*_statmap.nii.gz") -> Iterator[str]:
    """Finite maps, and probabilities between 0 and 1."""
    for path in sorted(folder.root.glob(names)):
        values = np.asanyarray(nibabel.load(path).dataobj)  # type: ignore[attr-defined]
        shares = "_stat-pip_" in path.name or "_stat-selfreq_" in path.name
        if not np.isfinite(values).all() or (shares and not ((values >= 0) & (values <= 1)).all()):
            yield f"values of {path.name}"


_CHECKS: tuple[Callable[[ResultsFolder], Iterator[str]], ...] = (
    _files, _cells, _classes, _crosses, _maps,
)  # fmt: skip


def _by(rows: Iterable[Row], key: str) -> list[float]:
    """Shares of rows with the right prediction, by fold, run or class in their order."""
    parts = defaultdict(list)
    for row in rows:
        parts[row[key]].append(row["true"] == row["predicted"])
    order = sorted(parts) if key == "true" else sorted(parts, key=lambda name: (len(name), name))
    return [float(np.mean(parts[name])) for name in order]


def _same(values: Sequence[float], others: Sequence[float]) -> bool:
    return len(values) == len(others) and bool(np.allclose(values, others, rtol=_ROUNDING, atol=_ROUNDING))
