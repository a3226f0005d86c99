"""Reading a results folder back: all that figures and page may know."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.imaging.surface_names import is_surface_map
from mvpa_gamp.methods import METHODS, Method
from mvpa_gamp.results.damaged import ResultsError, reading
from mvpa_gamp.results.files import number, read_json, read_tsv
from mvpa_gamp.results.leading import LeadingMeasure, leading_of_tasks
from mvpa_gamp.results.names import ResultsFolder
from mvpa_gamp.results.tables import join_timings, with_accuracy

_FACTS = ("name", "label", "description", "reference", "short_reference", "intercept", "is_batched")
_TEXT = ("subject", "contrast", "comparison", "method", "status")


@dataclass(frozen=True)
class Results:
    """A results folder's tables: ``study`` is summary.json, ``rows`` the summary joined with run times.

    ``texts`` are the rows of summary.tsv with every cell as written. ``drawn`` are the contrasts that have
    figures (None: all); ``linked`` says whether the page stands in this folder, so that it can link to files.
    """

    folder: ResultsFolder
    study: Mapping[str, Any]
    rows: list[dict[str, Any]]
    texts: list[dict[str, str]]
    drawn: tuple[str, ...] | None = None
    linked: bool = True

    @property
    def phantom(self) -> bool:
        """Whether any subject is simulated."""
        return bool(self.study["phantom"])

    @property
    def has_truth(self) -> bool:
        """Whether the planted voxels of a phantom are known."""
        return self.phantom and "average_precision" in self.texts[0]

    @property
    def has_folds(self) -> bool:
        """Whether there are folds to compare with each other."""
        return any(row["folds"] > 1 for row in self.rows)

    @property
    def banner(self) -> str | None:
        """The line that marks everything made from a phantom as simulated."""
        return self.study["banner"]

    @property
    def methods(self) -> list[Mapping[str, Any]]:
        """Name, label, description, facts and settings of each method, in the order asked for."""
        known = {name: method_facts(method) for name, method in METHODS.items()}  # for folders without facts
        return [{**known.get(method["name"], {}), **method} for method in self.study["methods"]]

    @property
    def labels(self) -> dict[str, str]:
        """Method name to the label of tables."""
        return {method["name"]: method["label"] for method in self.methods}

    @property
    def tasks(self) -> list[Mapping[str, Any]]:
        """Contrast, label and the two categories of each comparison."""
        return list(self.study["tasks"])

    @property
    def leading_measure(self) -> LeadingMeasure:
        """What tables lead with: the error rate, or balanced accuracy where categories are unequal."""
        return leading_of_tasks(self.study["tasks"])

    def only(self, places: Sequence[int]) -> "Results":
        """The same results of some comparisons, by their places in ``tasks``."""
        return replace(self, study={**self.study, "tasks": [self.tasks[place] for place in places]})

    @property
    def shown(self) -> "Results":
        """The same results of the comparisons that have figures."""
        return (
            self
            if self.drawn is None
            else self.only([i for i, task in enumerate(self.tasks) if task["contrast"] in self.drawn])
        )

    @property
    def subjects(self) -> list[str]:
        """Subject identifiers, without ``sub-``."""
        return list(self.study["subjects"])

    def row(self, subject: str, contrast: str, method: str) -> dict[str, Any]:
        """The summary row of a cell."""
        for row in self.rows:
            if (row["subject"], row["contrast"], row["method"]) == (subject, contrast, method):
                return row
        raise KeyError(f"summary.tsv has no row for sub-{subject}, {contrast}, {method}")

    def finished(self, subject: str, contrast: str) -> list[str]:
        """Methods that did not fail on a comparison."""
        return [m for m in self.labels if self.row(subject, contrast, m)["status"] == "ok"]

    def cells(self) -> Iterator[tuple[str, str, str]]:
        """Subject, contrast and method of every cell, a method on a comparison, that did not fail."""
        for subject in self.subjects:
            for task in self.tasks:
                for method in self.finished(subject, task["contrast"]):
                    yield subject, task["contrast"], method

    def folds(self, subject: str, contrast: str, method: str) -> list[dict[str, str]]:
        """Rows of a cell's folds.tsv, the refit left out."""
        rows = read_tsv(self.folder.cell_table(subject, contrast, method, "folds"))
        return [row for row in rows if row["fold"] != "refit"]

    def refit(self, subject: str, contrast: str, method: str) -> dict[str, str]:
        """The row of the fit to all runs in a cell's folds.tsv."""
        rows = read_tsv(self.folder.cell_table(subject, contrast, method, "folds"))
        return next(row for row in rows if row["fold"] == "refit")

    def jaccard(self, subject: str, contrast: str, method: str) -> NDArray:
        """The (B, B) matrix of overlaps between the folds of a cell."""
        rows = read_tsv(self.folder.cell_table(subject, contrast, method, "jaccard"))
        return np.array([[number(row[name]) for name in row if name != "held_out_run"] for row in rows])

    def table(self, subject: str, name: str) -> list[dict[str, str]]:
        """Rows of one of the subject's tables."""
        return read_tsv(self.folder.subject_table(subject, name))

    @property
    def on_surface(self) -> bool:
        """Whether maps are on surfaces."""
        return any(is_surface_map(self.folder.mask(subject)) for subject in self.subjects)

    @property
    def fold_word(self) -> str:
        """What a fold holds out: a run, a group, or just a fold."""
        return str(self.study.get("held_out", "run"))

    @property
    def classes(self) -> Mapping[str, Any]:
        """Scores and names of all classes together, where more than pairs was decoded."""
        return self.study.get("classes", {})

    @property
    def class_parts(self) -> list[Mapping[str, Any]]:
        """The same for each method, the leading one first."""
        return [self.classes, *self.classes.get("others", ())] if self.classes else []

    @property
    def cross(self) -> Mapping[str, Any]:
        """What was trained on one comparison and tested on another."""
        return self.study.get("cross", {})

    def cross_rows(self) -> list[dict[str, str]]:
        """The rows of cross.tsv of all subjects, every cell as its text."""
        return [row for sub in self.subjects for row in self.table(sub, "cross")] if self.cross else []

    @property
    def exchanged(self) -> str:
        """How permutations moved the labels, in words."""
        kinds = {row["exchanged"] for row in self.inference_rows() if row["status"] == "ok"}
        return "sample by sample" if kinds == {"sample"} else "in whole blocks"

    @property
    def inference(self) -> Mapping[str, Any]:
        """What was asked for beyond the table: ``permutations``, ``max_inclusion``, ``fdr``, ..."""
        return self.study.get("inference", {})

    def inferred(self, subject: str, contrast: str, method: str) -> list[str]:
        """What a cell has of it: permutations, logpfwe, selection, planted, learningcurve."""
        return list(self.inference.get("units", {}).get(f"sub-{subject}/{contrast}/{method}", ()))

    def inference_rows(self) -> list[dict[str, str]]:
        """The rows of inference.tsv of all subjects, every cell as its text."""
        if not self.inference:
            return []
        return [
            {"subject": subject, **row}
            for subject in self.subjects
            for row in read_tsv(self.folder.inference(subject))
        ]

    def stats(self, subject: str, contrast: str, method: str) -> list[str]:
        """The kinds of map a cell has."""
        return list(self.study["maps"][f"sub-{subject}/{contrast}/{method}"])


def method_facts(method: Method) -> dict[str, Any]:
    """What summary.json says about a method, besides its settings."""
    return {name: getattr(method, name) for name in _FACTS}


def read_results(root: Path) -> Results:
    """Read the tables of a finished results folder; an error says what is missing."""
    folder = ResultsFolder(root)
    for path in (folder.study, folder.summary, folder.timings):
        if not path.exists():
            raise ResultsError(
                f"{root} is not a finished results folder: {path.name} is missing. "
                "Give the folder of a run that ended, or finish it with --resume."
            )
    study, texts = read_json(folder.study), read_tsv(folder.summary)
    with reading(folder.study, "the summary of a study"):  # folders of earlier versions name no entities
        folder = ResultsFolder(root, study.get("data", {}).get("entities", {}))
    with reading(folder.summary, "a table of results"):
        summary = _numbers(texts)
    with reading(folder.timings, "a table of run times"):
        rows = [with_accuracy(row) for row in join_timings(summary, _numbers(read_tsv(folder.timings)))]
    return Results(folder, study, rows, texts)


def _numbers(rows: Sequence[Mapping[str, str]]) -> list[dict[str, Any]]:
    """Rows with numbers where a column is no text."""
    return [{k: v if k in _TEXT else number(v) for k, v in row.items()} for row in rows]
