"""What a study writes about itself: description, settings, versions, and the tables of all units."""

import platform
from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import Any

import numpy as np

from mvpa_gamp._version import __version__
from mvpa_gamp.decoding.tasks import Task
from mvpa_gamp.imaging.brainmaps import space_name, write_image, write_map
from mvpa_gamp.imaging.samples import Samples
from mvpa_gamp.methods.fold_fits import Method
from mvpa_gamp.report.clusters import CLUSTER_COLUMNS
from mvpa_gamp.report.consistency import CONSISTENCY_COLUMNS
from mvpa_gamp.report.files import write_json, write_text, write_tsv
from mvpa_gamp.report.folder import ResultsFolder
from mvpa_gamp.report.methods_text import CITATION
from mvpa_gamp.report.tables import SUMMARY_COLUMNS, TIMING_COLUMNS, average_rows, timing_averages
from mvpa_gamp.study.settings import StudySettings, settings_text
from mvpa_gamp.study.unit_files import CONFUSION_COLUMNS, Subject, UnitRecord

_PACKAGES = (
    "numpy",
    "scipy",
    "scikit-learn",
    "nibabel",
    "nilearn",
    "matplotlib",
    "numba",
    "joblib",
    "threadpoolctl",
)


def write_start(folder: ResultsFolder, settings: StudySettings, samples: Samples, subject: Subject) -> None:
    """What is known before the first fit: settings, description, versions, the volumes maps are drawn on."""
    write_text(folder.config, settings_text(settings))
    write_json(folder.description, description(subject.banner))
    write_json(folder.environment, _environment())
    about = {"GeneratedBy": f"mvpa_gamp {__version__}"}
    if subject.banner is not None:
        about = {"Phantom": subject.banner, **about}
    mask = {**about, "Description": "Voxels that entered the analysis.", "Type": "ROI"}
    write_map(
        folder.mask(subject.name), np.ones(int(subject.mask.sum()), dtype=np.uint8), subject.mask_img, mask
    )
    mean = {**about, "Description": "Mean volume, the background of the figures."}
    write_image(folder.background(subject.name), samples.background_img, mean)
    for contrast, truth in subject.truth.items():
        planted = {
            **about,
            "Description": "Planted voxels: those whose signal differs between the two categories.",
        }
        write_map(folder.truth(subject.name, contrast), truth.astype(np.uint8), subject.mask_img, planted)


def description(banner: str | None) -> dict[str, Any]:
    """BIDS's dataset_description.json of a derivative; ``banner`` is the phantom's."""
    name = "mvpa_gamp decoding results"
    out: dict[str, Any] = {
        "Name": f"PHANTOM (simulated): {name}" if banner else name,
        "BIDSVersion": "1.9.0",
        "DatasetType": "derivative",
        "GeneratedBy": [{"Name": "mvpa_gamp", "Version": __version__}],
        "HowToAcknowledge": CITATION,
    }
    return {"Phantom": banner, **out} if banner else out


def _environment() -> dict[str, str]:
    """Versions of Python and packages, and the kind of machine."""
    out = {"mvpa_gamp": __version__, "python": platform.python_version()}
    for package in _PACKAGES:
        try:
            out[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return {**out, "system": platform.system(), "machine": platform.machine()}


def write_tables(
    folder: ResultsFolder, settings: StudySettings, samples: Samples, subject: Subject,
    tasks: Sequence[Task], methods: Sequence[Method], records: Sequence[UnitRecord],
    inference: Mapping[str, Any],
) -> None:  # fmt: skip
    """Tables of the subject and of the study; summary.json last, because it says that all is there."""
    write_tsv(folder.subject_table(subject.name, "consistency"), CONSISTENCY_COLUMNS,
              [record.consistency for record in records if record.consistency is not None])  # fmt: skip
    confusion = [row for record in records for row in record.confusion]
    write_tsv(folder.subject_table(subject.name, "confusion"), CONFUSION_COLUMNS, confusion)
    clusters = [row for record in records for row in record.clusters]
    write_tsv(folder.subject_table(subject.name, "clusters"), CLUSTER_COLUMNS, clusters)
    rows = [record.summary for record in records]
    rows += average_rows(rows)
    columns = [c for c in SUMMARY_COLUMNS if subject.truth or "average_precision" not in c]
    write_tsv(folder.summary, columns, rows)
    timings = [record.timing for record in records]
    write_tsv(folder.timings, TIMING_COLUMNS, timings + timing_averages(timings))
    study = _study(settings, samples, subject, tasks, methods)
    study["maps"] = {_unit_name(record): list(record.stats) for record in records if record.stats}
    if inference:
        study["inference"] = inference
    study["summary"] = [{c: row.get(c) for c in columns} for row in rows]
    write_json(folder.study, study)


def _unit_name(record: UnitRecord) -> str:
    """The key of a unit in summary.json."""
    row = record.summary
    return f"sub-{row['subject']}/{row['contrast']}/{row['method']}"


def _study(
    settings: StudySettings,
    samples: Samples,
    subject: Subject,
    tasks: Sequence[Task],
    methods: Sequence[Method],
) -> dict[str, Any]:
    """All that the page needs to know besides the tables."""
    return {
        "package": "mvpa_gamp",
        "version": __version__,
        "phantom": samples.is_phantom,
        "banner": subject.banner,
        "subjects": [subject.name],
        "seed": settings.seed,
        "fold_maps": settings.fold_maps,
        "data": _data(samples),
        "processing": _processing(settings, samples),
        "tasks": [_task(task) for task in tasks],
        "methods": [
            {"name": m.name, "label": m.label, "description": m.description, "settings": repr(m)}
            for m in methods
        ],
    }


def _processing(settings: StudySettings, samples: Samples) -> dict[str, Any]:
    """What was done to the time series; of a BIDS dataset the confound columns, not the names of sets."""
    names = ("lag_trs", "smoothing_fwhm", "high_pass", "confounds", "detrend", "standardize")
    given = settings.values()
    steps = {name: given.get(name) for name in names}
    if samples.source == "bids":
        columns = list(samples.confound_columns) or None
        steps |= {"confounds": columns, "confound_columns": columns}
    return steps


def _task(task: Task) -> Mapping[str, Any]:
    return {"contrast": task.name, "label": task.label, "positive": task.positive, "negative": task.negative,
            "volumes": len(task.y), "positive_volumes": int((task.y > 0).sum()),
            "negative_volumes": int((task.y < 0).sum())}  # fmt: skip


def _data(samples: Samples) -> dict[str, Any]:
    """Sizes and origin of the samples."""
    return {
        "source": samples.source,
        "description": samples.description,
        "n_samples": samples.X.shape[0],
        "n_voxels": samples.X.shape[1],
        "n_runs": len(np.unique(samples.runs)),
        "kind": samples.kind,
        "unit": samples.plural,
        "bids_space": samples.space,
        "space": space_name(samples.mask_img),
        "categories": sorted(set(map(str, samples.conditions))),
        "notes": list(samples.notes),
        "provenance": dict(samples.provenance),
    }
