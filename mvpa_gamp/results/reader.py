"""Reading a results folder back: all that figures and page may know, and whether files hold their digests."""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.imaging.disk import NAME, read_record, stays_inside
from mvpa_gamp.imaging.names import is_surface_map
from mvpa_gamp.results.files import DamagedFile, ResultsError, number, read_json, read_tsv, reading, write_tsv
from mvpa_gamp.results.names import ResultsFolder
from mvpa_gamp.results.summary import Summary, read_summary
from mvpa_gamp.results.tables import LeadingMeasure, join_timings, leading_of_tasks, with_accuracy

_TEXT = ("subject", "contrast", "comparison", "method", "status")


@dataclass(frozen=True)
class Results:
    """A results folder's tables: ``summary`` is summary.json, ``rows`` summary.tsv joined with run times.

    ``texts`` are the rows of summary.tsv with every cell as written. ``drawn`` are the contrasts that have
    figures (None: all); ``linked`` says whether the page stands in this folder, so that it can link to files.
    Files are read once, when they are first asked for.
    """

    folder: ResultsFolder
    summary: Summary
    rows: list[dict[str, Any]]
    texts: list[dict[str, str]]
    drawn: tuple[str, ...] | None = None
    linked: bool = True
    _read: dict[Path, list[dict[str, str]]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def phantom(self) -> bool:
        """Whether any subject is simulated."""
        return self.summary.phantom

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
        return self.summary.banner

    @property
    def methods(self) -> Sequence[Mapping[str, Any]]:
        """Name, label, description, facts and settings of each method, in the order asked for."""
        return self.summary.methods

    @property
    def labels(self) -> dict[str, str]:
        """Method name to the label of tables."""
        return self.summary.labels

    @property
    def tasks(self) -> Sequence[Mapping[str, Any]]:
        """Contrast, label and the two categories of each comparison."""
        return self.summary.tasks

    @cached_property
    def leading_measure(self) -> LeadingMeasure:
        """What tables lead with: the error rate, or balanced accuracy where categories are unequal."""
        return leading_of_tasks(self.tasks)

    def only(self, places: Sequence[int]) -> "Results":
        """The same results of some comparisons, by their places in ``tasks``."""
        return replace(self, summary=replace(self.summary, tasks=[self.tasks[place] for place in places]))

    @cached_property
    def shown(self) -> "Results":
        """The same results of the comparisons that have figures."""
        if self.drawn is None:
            return self
        return self.only([i for i, task in enumerate(self.tasks) if task["contrast"] in self.drawn])

    @property
    def subjects(self) -> Sequence[str]:
        """Subject identifiers, without ``sub-``."""
        return self.summary.subjects

    @cached_property
    def _by_cell(self) -> dict[tuple[str, str, str], dict[str, Any]]:
        return {(row["subject"], row["contrast"], row["method"]): row for row in self.rows}

    def row(self, subject: str, contrast: str, method: str) -> dict[str, Any]:
        """The summary row of a cell."""
        try:
            return self._by_cell[subject, contrast, method]
        except KeyError:
            raise KeyError(f"summary.tsv has no row for sub-{subject}, {contrast}, {method}") from None

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
        rows = self.read(self.folder.cell_table(subject, contrast, method, "folds"))
        return [row for row in rows if row["fold"] != "refit"]

    def refit(self, subject: str, contrast: str, method: str) -> dict[str, str]:
        """The row of the fit to all runs in a cell's folds.tsv."""
        rows = self.read(self.folder.cell_table(subject, contrast, method, "folds"))
        return next(row for row in rows if row["fold"] == "refit")

    def jaccard(self, subject: str, contrast: str, method: str) -> NDArray:
        """The (B, B) matrix of overlaps between the folds of a cell."""
        rows = self.read(self.folder.cell_table(subject, contrast, method, "jaccard"))
        return np.array([[number(row[name]) for name in row if name != "held_out_run"] for row in rows])

    def table(self, subject: str, name: str) -> list[dict[str, str]]:
        """Rows of one of the subject's tables."""
        return self.read(self.folder.subject_table(subject, name))

    def read(self, path: Path) -> list[dict[str, str]]:
        """The rows of a table of the folder, every cell as its text."""
        if path not in self._read:
            self._read[path] = read_tsv(path)
        return self._read[path]

    @cached_property
    def on_surface(self) -> bool:
        """Whether maps are on surfaces."""
        return any(is_surface_map(self.folder.mask(subject)) for subject in self.subjects)

    @property
    def fold_word(self) -> str:
        """What a fold holds out: a run, a group, or just a fold."""
        return self.summary.held_out

    @property
    def classes(self) -> Mapping[str, Any]:
        """Scores and names of all classes together, where more than pairs was decoded."""
        return self.summary.classes

    @property
    def class_parts(self) -> list[Mapping[str, Any]]:
        """The same for each method, the leading one first."""
        return [self.classes, *self.classes.get("others", ())] if self.classes else []

    @property
    def cross(self) -> Mapping[str, Any]:
        """What was trained on one comparison and tested on another."""
        return self.summary.cross

    def cross_rows(self) -> list[dict[str, str]]:
        """The rows of cross.tsv of all subjects, every cell as its text."""
        return [row for sub in self.subjects for row in self.table(sub, "cross")] if self.cross else []

    @cached_property
    def exchanged(self) -> str:
        """How permutations moved the labels, in words."""
        if said := self.summary.data.get("exchanged"):
            return str(said)
        kinds = {row["exchanged"] for row in self.inference_rows() if row["status"] == "ok"}
        how = "sample by sample" if kinds == {"sample"} else "in whole blocks"
        return f"{how} within {'session' if self.summary.held_out == 'session' else 'run'}s"

    @property
    def inference(self) -> Mapping[str, Any]:
        """What was asked for beyond the table: ``permutations``, ``max_inclusion``, ``fdr``, ..."""
        return self.summary.inference

    def inferred(self, subject: str, contrast: str, method: str) -> list[str]:
        """What a cell has of it: permutations, logpfwe, selection, planted, learningcurve."""
        return list(self.inference.get("units", {}).get(f"sub-{subject}/{contrast}/{method}", ()))

    def inference_rows(self) -> list[dict[str, str]]:
        """The rows of inference.tsv of all subjects, every cell as its text."""
        return self._inference_rows

    @cached_property
    def _inference_rows(self) -> list[dict[str, str]]:
        if not self.inference:
            return []
        return [
            {"subject": subject, **row}
            for subject in self.subjects
            for row in self.read(self.folder.inference(subject))
        ]

    def stats(self, subject: str, contrast: str, method: str) -> list[str]:
        """The kinds of map a cell has."""
        return list(self.summary.maps[f"sub-{subject}/{contrast}/{method}"])


def read_results(root: Path) -> Results:
    """Read the tables of a finished results folder; an error says what is missing.

    Parameters
    ----------
    root
        The results folder.

    Returns
    -------
    Results
        Its summary and its tables, each read once.
    """
    folder = ResultsFolder(root)
    for path in (folder.study, folder.summary, folder.timings):
        if not path.exists():
            raise ResultsError(
                f"{root} is not a finished results folder: {path.name} is missing. "
                "Give the folder of a run that ended, or finish it with --resume."
            )
    summary, texts = read_summary(folder.study), read_tsv(folder.summary)
    with reading(folder.study, "the summary of a study"):
        folder = ResultsFolder(root, summary.data.get("entities", {}))
    with reading(folder.summary, "a table of results"):
        numbers = _numbers(texts)
    with reading(folder.timings, "a table of run times"):
        rows = [with_accuracy(row) for row in join_timings(numbers, _numbers(read_tsv(folder.timings)))]
    return Results(folder, summary, rows, texts)


def _numbers(rows: Sequence[Mapping[str, str]]) -> list[dict[str, Any]]:
    """Rows with numbers where a column is no text."""
    return [{k: v if k in _TEXT else number(v) for k, v in row.items()} for row in rows]


_COLUMNS = ("path", "sha256")
_DIGEST = re.compile("[0-9a-f]{64}")
# Two equal runs write all else byte for byte alike.
_OTHERS = ("index.html", "timings.tsv", "README.md", ".bidsignore", "cobidas_multivariate.tsv")
_OTHER_FOLDERS = ("figures/", "logs/", "work/", "group")


def recorded_results(folder: ResultsFolder) -> dict[str, str]:
    """Digests of tables and maps by path, as the last run recorded them, or as its manifest says."""
    record = read_record(folder.root)
    if record is None:
        return manifest_digests(folder) if folder.manifest.is_file() else {}
    names = [name for name in record.written if name not in _OTHERS and not name.startswith(_OTHER_FOLDERS)]
    return {name: record.written[name] for name in sorted(names) if stays_inside(name)}


def result_files(results: Results) -> list[Path]:
    """Tables and maps that the run of a folder wrote, whether they are there or not."""
    return [results.folder.root / name for name in recorded_results(results.folder)]


def write_manifest(results: Results) -> None:
    """Write the digests; two folders hold equal results exactly when their manifests are equal."""
    rows = recorded_results(results.folder).items()
    write_tsv(results.folder.manifest, _COLUMNS, [dict(zip(_COLUMNS, row, strict=True)) for row in rows])


def manifest_digests(folder: ResultsFolder) -> dict[str, str]:
    """The digest of every file of the manifest, by its path in the folder."""
    rows = read_tsv(folder.manifest)
    with reading(folder.manifest, "a table of digests"):
        known = {row[_COLUMNS[0]]: row[_COLUMNS[1]] for row in rows}
    if len(known) < len(rows) or not all(_DIGEST.fullmatch(digest) for digest in known.values()):
        raise DamagedFile(folder.manifest, "it cannot be read as a table of digests")
    if outside := [name for name in known if not stays_inside(name)]:
        raise DamagedFile(folder.manifest, f"it lists {outside[0]!r}, which is no place in the folder")
    return known


def missing_files(results: Results) -> list[Path]:
    """Files of a finished run that are not there or are empty."""
    folder = results.folder
    others = [folder.page, folder.timings, folder.environment, folder.manifest]
    return [
        path for path in (*result_files(results), *others) if not path.is_file() or path.stat().st_size == 0
    ]


def verify(root: Path, say: Callable[[str], None]) -> Results:
    """The results of a folder, or a ``DamagedFile``; a missing file is another matter, and no error here.

    Files are compared with their digests in logs/manifest.tsv; in a folder without one they must be
    readable. dataset_description.json may be edited, to add authors or a licence: ``say`` so and go on.
    """
    folder = ResultsFolder(root)
    known = manifest_digests(folder) if folder.manifest.exists() else {}
    for name, digest in known.items():
        path = root / name
        if not path.exists() or _digest(path) == digest:
            continue
        if path == folder.description:
            read_json(path)
            say(f"{path} is not as its run wrote it: it was edited or damaged. It is kept as it is.")
            continue
        raise DamagedFile(path, f"its content is not what {folder.manifest} recorded")
    results = read_results(root)
    recorded = recorded_results(folder)
    if unknown := [name for name in known if name not in recorded]:
        raise DamagedFile(folder.manifest, f"it lists {unknown[0]!r}, which {NAME} does not")
    for path in (root / name for name in recorded if name not in known):
        if known:
            raise DamagedFile(folder.manifest, f"it does not list {path.name!r}, which its run wrote")
        if path.exists():
            _read(path)
    for path in (folder.environment, folder.timings):  # without a digest: they differ from run to run
        if path.exists():
            _read(path)
    return results


def is_as_recorded(path: Path, folder: ResultsFolder) -> bool:
    """Whether a file has its digest of the manifest; what no readable manifest lists is not doubted."""
    try:
        recorded = manifest_digests(folder).get(path.relative_to(folder.root).as_posix())
    except (OSError, DamagedFile):
        return True
    return recorded is None or _digest(path) == recorded


def _digest(path: Path) -> str:
    with reading(path, "a file"):
        return hashlib.sha256(path.read_bytes()).hexdigest()


def _read(path: Path) -> None:
    """Read a file as what its name says, or find it damaged."""
    if path.suffix == ".json":
        read_json(path)
    elif path.suffix == ".tsv":
        read_tsv(path)
    elif path.name.endswith(".gii"):
        import nibabel

        with reading(path, "a surface"):
            nibabel.load(path)
    elif path.name.endswith((".nii.gz", ".nii")):
        import nibabel

        with reading(path, "an image"):
            image: Any = nibabel.load(path)
            np.asanyarray(image.dataobj)
