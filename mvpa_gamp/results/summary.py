"""What a study writes about itself: summary.json as one record, BIDS description, tables of all cells."""

import hashlib
import platform
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from mvpa_gamp._version import __version__
from mvpa_gamp.decoding.tasks import Task
from mvpa_gamp.imaging.brainmaps import write_image, write_meshes
from mvpa_gamp.imaging.disk import edited, note
from mvpa_gamp.methods.fold_fits import ZINIEL_2015, Method
from mvpa_gamp.results.cells import CONFUSION_COLUMNS, CONSISTENCY_COLUMNS
from mvpa_gamp.results.files import (
    ResultsError,
    json_text,
    read_json,
    reading,
    write_json,
    write_text,
    write_tsv,
)
from mvpa_gamp.results.ledger import CellRecord, Ledger, Subject
from mvpa_gamp.results.names import ResultsFolder
from mvpa_gamp.results.regions import CLUSTER_COLUMNS, PATTERN_CLUSTER_COLUMNS, placed
from mvpa_gamp.results.tables import SUMMARY_COLUMNS, TIMING_COLUMNS, average_rows, timing_averages

Part = Mapping[str, Any]
_FACTS = ("name", "label", "description", "reference", "short_reference", "intercept", "is_batched")
# Parts that the file has only where they were asked for.
_BEYOND = (
    "pattern_clusters", "inference", "information", "regions", "classes", "cross", "members",
    "fold_confounds", "people",
)  # fmt: skip


@dataclass(frozen=True)
class About:
    """What a study says about itself in summary.json, besides its cells.

    ``data`` has source, description, n_samples, n_voxels, n_runs, unit, space, categories, notes and
    provenance; ``processing`` the steps from volumes to samples.
    """

    data: Part
    processing: Part
    seed: int | None
    fold_maps: bool = False
    cross_validation: str = "Cross-validation leaves one run out at a time."
    held_out: str = "run"  # what a fold holds out: a run, a group, or just a fold
    settings: Mapping[str, str] = field(default_factory=dict)  # where there is no config.toml


@dataclass(frozen=True, kw_only=True)
class Summary(About):
    """All of summary.json; what was not asked for is empty.

    ``tasks`` are the comparisons, ``methods`` the facts of each method, ``maps`` the kinds of map by cell
    (``sub-<id>/<contrast>/<method>``), ``rows`` the headline table once more.
    """

    phantom: bool
    banner: str | None
    subjects: Sequence[str]
    tasks: Sequence[Part]
    methods: Sequence[Part]
    maps: Mapping[str, Sequence[str]]
    rows: Sequence[Part]
    pattern_clusters: int = 0
    inference: Part = field(default_factory=dict)
    information: Part = field(default_factory=dict)
    regions: Part = field(default_factory=dict)
    classes: Part = field(default_factory=dict)
    cross: Part = field(default_factory=dict)
    members: Sequence[Part] = ()
    fold_confounds: Part = field(default_factory=dict)
    people: Sequence[Part] = ()
    leakage: Part = field(default_factory=dict)
    version: str = __version__

    @cached_property
    def labels(self) -> dict[str, str]:
        """Method name to the label of tables."""
        return {method["name"]: method["label"] for method in self.methods}

    def as_json(self) -> dict[str, Any]:
        """The content of the file."""
        own = {each.name: getattr(self, each.name) for each in fields(self)}
        kept = {name: value for name, value in own.items() if value or name not in _BEYOND}
        return {"package": "mvpa_gamp", "selected_maps": True, **kept, "summary": kept.pop("rows")}


def method_facts(method: Method) -> dict[str, Any]:
    """What summary.json says about a method."""
    return {**{name: getattr(method, name) for name in _FACTS}, "settings": repr(method)}


def read_summary(path: Path) -> Summary:
    """The record of a finished folder; one of another version is refused."""
    content = read_json(path)
    with reading(path, "the summary of a study"):
        version = content["version"]
    if version != __version__:
        raise ResultsError(
            f"{path.parent} was written by mvpa_gamp {version}, this is {__version__}. Read it with that "
            "version, or write it again: the command of its run with --overwrite."
        )
    with reading(path, "the summary of a study"):
        known = {**content, "rows": content["summary"]}
        needed = [each.name for each in fields(Summary) if each.default is each.default_factory is MISSING]
        lost = [name for name in needed if name not in known]
        if lost:
            raise KeyError(lost[0])
        return Summary(**{each.name: known[each.name] for each in fields(Summary) if each.name in known})


_PACKAGES = (
    "numpy", "scipy", "scikit-learn", "nibabel", "nilearn", "matplotlib", "numba", "joblib", "threadpoolctl",
)  # fmt: skip


def write_start(folder: ResultsFolder, subject: Subject, background_img: Any) -> None:
    """What is known before the first fit: description, versions, the volumes maps are drawn on."""
    write_description(folder, subject.banner, subject.links)
    write_json(folder.environment, environment())
    ledger, inside = Ledger(folder, subject), np.ones(subject.space.size, dtype=np.uint8)
    words = subject.space.said("analysed voxels")
    ledger.map(folder.mask(subject.name), inside, "mask", "mask", words, {"Type": "ROI"})
    write_meshes(folder.mask(subject.name), subject.mask_img)
    mean = subject.sidecar({"Description": "Mean volume, the background of the figures."})
    write_image(folder.background(subject.name), background_img, mean)
    for contrast, truth in subject.truth.items():
        path, words = folder.truth(subject.name, contrast), f"planted {contrast}"
        ledger.map(path, truth.astype(np.uint8), "truth", "mask", words, {})


def environment() -> dict[str, str]:
    """Versions of Python and packages, and the kind of machine."""
    return {**versions(), "system": platform.system(), "machine": platform.machine()}


def versions() -> dict[str, str]:
    """Versions of this package, of Python and of the packages it leans on."""
    out = {"mvpa_gamp": __version__, "python": platform.python_version()}
    for package in _PACKAGES:
        try:
            out[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return out


def write_tables(
    folder: ResultsFolder, subject: Subject, tasks: Sequence[Task], methods: Sequence[Method],
    records: Sequence[CellRecord], about: About, extra: Mapping[str, Any],
) -> None:  # fmt: skip
    """Tables of the subject and of the study; summary.json last, because it says that all is there.

    ``extra`` are further parts of summary.json, such as ``inference`` and ``classes``; the confusion of all
    classes, if any, joins that of the comparisons.
    """
    ledger = Ledger(folder, subject)
    consistent = [record.consistency for record in records if record.consistency is not None]
    ledger.table("consistency", CONSISTENCY_COLUMNS, consistent)
    confusion = [row for record in records for row in record.confusion]
    classes = extra.get("classes", {})
    confusion += [row for part in (classes, *classes.get("others", ())) for row in part.get("confusion", [])]
    ledger.table("confusion", CONFUSION_COLUMNS, confusion)
    clusters = [row for record in records for row in record.clusters]
    named = placed(CLUSTER_COLUMNS, subject.space)
    named = named if subject.regions is None else (*named, "region")  # of the peak
    ledger.table("clusters", named, clusters)
    places = [row for record in records for row in record.pattern_clusters]
    if places:
        names = placed(PATTERN_CLUSTER_COLUMNS, subject.space)
        ledger.table("patternclusters", names, places)
    rows = [record.summary for record in records]
    rows += average_rows(rows)
    columns = [c for c in SUMMARY_COLUMNS if subject.truth or "average_precision" not in c]
    write_tsv(folder.summary, columns, rows)
    timings = [record.timing for record in records]
    write_tsv(folder.timings, TIMING_COLUMNS, timings + timing_averages(timings))
    summary = Summary(
        **vars(about),
        phantom=subject.banner is not None,
        banner=subject.banner,
        subjects=[subject.name],
        tasks=[_task(task) for task in tasks],
        methods=[method_facts(method) for method in methods],
        maps={_name(record): list(record.stats) for record in records if record.stats},
        pattern_clusters=len(places),
        rows=[{c: row.get(c) for c in columns} for row in rows],
        **extra,
    )
    write_json(folder.study, summary.as_json())


def _name(record: CellRecord) -> str:
    """The key of a cell in summary.json."""
    row = record.summary
    return f"sub-{row['subject']}/{row['contrast']}/{row['method']}"


def _task(task: Task) -> dict[str, Any]:
    members = {side.text: list(side.members) for side in task.sides}
    return {**({"members": members} if task.members else {}),
            "contrast": task.name, "label": task.label, "positive": task.positive, "negative": task.negative,
            "volumes": len(task.y), "positive_volumes": int((task.y > 0).sum()),
            "negative_volumes": int((task.y < 0).sum())}  # fmt: skip


_NAME = "mvpa_gamp decoding results"
# BIDS has masks, segmentations and mean images, but none of a contrast, of a classifier, or of a group. The
# folders of participants are derivatives of their own.
_UNNAMED = """\
# Files that BIDS has no names for yet: maps of classifiers, their tables, figures and pages.
*.html
*.toml
figures
logs
work
group*
cobidas_multivariate.tsv
summary.*
timings.tsv
sub-*
"""
_README = """\
# {name}

Written by mvpa_gamp {version}. Start with index.html. Maps and tables of a participant begin with sub-; JSON
files beside maps say how they were made. config.toml has the settings, logs/ the versions of all software.
"""


def write_description(
    folder: ResultsFolder, banner: str | None, links: Mapping[str, str] | None = None
) -> None:
    """Write dataset_description.json unless it was edited, .bidsignore, and a README where there is none."""
    if not edited(folder.root, folder.description.name):
        write_json(folder.description, description(banner, links))
    else:  # the manifest has what a run writes, so that the difference can be told
        text = json_text(description(banner, links))
        note(folder.description, hashlib.sha256(text.encode()).hexdigest())
    write_text(folder.ignored, f"# {banner}\n{_UNNAMED}" if banner else _UNNAMED)
    if not folder.readme.exists():
        name = description(banner)["Name"]
        write_text(folder.readme, _README.format(name=name, version=__version__))


def description(banner: str | None, links: Mapping[str, str] | None = None) -> dict[str, Any]:
    """BIDS's dataset_description.json of a derivative; ``banner`` is the phantom's.

    ``links`` say which datasets the BIDS URIs of sidecars name.
    """
    out: dict[str, Any] = {
        "Name": f"PHANTOM (simulated): {_NAME}" if banner else _NAME,
        "BIDSVersion": "1.9.0",
        "DatasetType": "derivative",
        "GeneratedBy": [{"Name": "mvpa_gamp", "Version": __version__}],
        "HowToAcknowledge": ZINIEL_2015,
    }
    if links:
        out |= {"DatasetLinks": dict(links), "SourceDatasets": [{"URL": url} for url in links.values()]}
    return {"Phantom": banner, **out} if banner else out
