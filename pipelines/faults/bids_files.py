"""A small BIDS dataset as fMRIPrep leaves it, and what may be wrong with each of its files."""

import json
from collections.abc import Callable
from pathlib import Path

import nibabel
import numpy as np
from nilearn.surface import InMemoryMesh, PolyMesh
from numpy.typing import NDArray

from mvpa_gamp.imaging.bids.confounds import SETS
from mvpa_gamp.imaging.cortex import Cortex
from mvpa_gamp.imaging.surface_files import write_mesh

from .command_files import ANY, IMAGE, SHAPE, TABLE, Damage, lines, save

TASK, SPACE, T_R = "objects", "MNI152NLin2009cAsym", 2.0
PARTICIPANTS, N_RUNS, BLOCK = ("01", "02"), 3, 5
_ORDER = ("face", "house", "cat")


def write_tree(root: Path, surfaces: bool) -> dict[str, list[Path]]:
    """Two participants; returns the files of the first one by what they are."""
    derived = root / "derivatives" / "fmriprep"
    files: dict[str, list[Path]] = {}
    for place, kind in ((root, "raw"), (derived, "derivative")):
        place.mkdir(parents=True)
        about = {"Name": "small", "BIDSVersion": "1.9.0", "DatasetType": kind}
        (place / "dataset_description.json").write_text(json.dumps(about))
    sidecar = root / f"task-{TASK}_bold.json"
    sidecar.write_text(json.dumps({"RepetitionTime": T_R, "TaskName": TASK}))
    for label in PARTICIPANTS:
        rng = np.random.default_rng(int(label))
        for run in range(1, N_RUNS + 1):
            found = _write_run(root, derived, label, run, rng, surfaces)
            for name, paths in (found if label == PARTICIPANTS[0] else {}).items():
                files.setdefault(name, []).extend(paths)
    files |= {"sidecar": [sidecar], "description": [derived / "dataset_description.json"]}
    save(root / "brain.nii.gz", np.ones(SHAPE, np.uint8))
    files["brain"] = [root / "brain.nii.gz"]
    if surfaces:
        files["mesh"] = list(write_mesh(root / "tpl-small.nii.gz", Cortex(small_mesh())))
    return files


def _write_run(
    root: Path, derived: Path, label: str, run: int, rng: np.random.Generator, surfaces: bool
) -> dict[str, list[Path]]:
    raw, done = (place / f"sub-{label}" / "func" for place in (root, derived))
    for folder in (raw, done):
        folder.mkdir(parents=True, exist_ok=True)
    stem = f"sub-{label}_task-{TASK}_run-{run}"
    order = [str(each) for each in rng.permutation(_ORDER)]
    labels = np.repeat(["rest", *(each for name in order for each in (name, "rest"))], BLOCK)
    paths = {"events": [raw / f"{stem}_events.tsv"], "raw": [raw / f"{stem}_bold.nii.gz"]}
    paths["confounds"] = [done / f"{stem}_desc-confounds_timeseries.tsv"]
    paths["events"][0].write_text(_events(order))
    paths["confounds"][0].write_text(_confounds(len(labels), rng))
    volumes = _volumes(labels, rng)
    save(paths["raw"][0], volumes)
    if surfaces:
        paths["surface"] = [
            _write_surface(done / f"{stem}_hemi-{hemi}_space-fsnative_bold.func.gii", labels, size, rng)
            for hemi, size in (("L", 14), ("R", 12))
        ]
        return paths
    paths["bold"] = [done / f"{stem}_space-{SPACE}_desc-preproc_bold.nii.gz"]
    paths["mask"] = [done / f"{stem}_space-{SPACE}_desc-brain_mask.nii.gz"]
    save(paths["bold"][0], volumes)
    save(paths["mask"][0], np.pad(np.ones((2, 3, 2), np.uint8), 1)[: SHAPE[0], : SHAPE[1], : SHAPE[2]])
    return paths


def _volumes(labels: NDArray, rng: np.random.Generator) -> NDArray:
    volumes = 100 + rng.normal(0, 1, (*SHAPE, len(labels)))
    for k, name in enumerate(_ORDER):
        volumes[1, 1 + k, 1:3, 1:] += 2 * (labels == name)[:-1]  # a lag of a volume or two is no matter
    return volumes.astype(np.float32)


def _write_surface(path: Path, labels: NDArray, size: int, rng: np.random.Generator) -> Path:
    values = 100 + rng.normal(0, 1, (len(labels), size))
    values[:, :3] += 3 * (labels == "face")[:, None]
    arrays = [
        nibabel.gifti.GiftiDataArray(row.astype(np.float32), "NIFTI_INTENT_TIME_SERIES") for row in values
    ]
    nibabel.save(nibabel.gifti.GiftiImage(darrays=arrays), path)
    return path


def small_mesh() -> PolyMesh:
    """Two strips of triangles."""
    parts = {}
    for part, (size, shift) in {"left": (14, -40), "right": (12, 40)}.items():
        at = np.arange(size)
        points = np.column_stack([shift + 9 * (at // 2), 9 * (at % 2), 3 * (at % 3)]).astype(np.float32)
        corners = np.column_stack([at[:-2], at[1:-1], at[2:]]).astype(np.int32)
        parts[part] = InMemoryMesh(points, corners)
    return PolyMesh(**parts)


def _events(order: list[str]) -> str:
    rows = [f"{T_R * BLOCK * (2 * k + 1):.1f}\t{T_R * BLOCK:.1f}\t{name}" for k, name in enumerate(order)]
    return "\n".join(["onset\tduration\ttrial_type", *rows]) + "\n"


def _confounds(n_volumes: int, rng: np.random.Generator) -> str:
    names = [*SETS["motion6"], "framewise_displacement", "motion_outlier00"]
    values = rng.normal(0, 0.1, (n_volumes, len(names))).round(4).astype(str)
    values[:, -1] = (np.arange(n_volumes) == 7).astype(int).astype(str)
    values[0, -2] = "n/a"
    return "\n".join("\t".join(row) for row in [names, *values.tolist()]) + "\n"


def _column(place: int, text: str) -> Callable[[list[str], np.random.Generator], list[str]]:
    """Another text in a column of every line."""

    def change(given: list[str], rng: np.random.Generator) -> list[str]:
        rows = [row.split("\t") for row in given[1:]]
        return [given[0], *("\t".join([*row[:place], text, *row[place + 1 :]]) for row in rows)]

    return change


_EVENTS: dict[str, Damage] = {
    "no trial_type": lines(lambda x, rng: ["\t".join(row.split("\t")[:2]) for row in x]),
    "n/a throughout": lines(_column(2, "n/a")),
    "n/a onsets": lines(_column(0, "n/a")),
    "negative onsets": lines(_column(0, "-20")),
    "late onsets": lines(_column(0, "1e6")),
    "no duration": lines(_column(1, "0")),
    "long durations": lines(_column(1, "1e5")),
    "negative durations": lines(_column(1, "-3")),
    "durations n/a": lines(_column(1, "n/a")),
    "one condition": lines(_column(2, "face")),
    "every event twice": lines(lambda x, rng: [*x, *x[1:]]),
    "milliseconds": lines(lambda x, rng: [x[0], *("000\t".join(r.split("\t", 1)) for r in x[1:])]),
    "odd names": lines(_column(2, "<b>../a b</b>")),
    "upper case": lines(lambda x, rng: [row.upper() for row in x]),
}


def _json(content: str) -> Damage:
    return lambda path, rng: path.write_text(content) and None


_SIDECAR: dict[str, Damage] = {
    name: _json(content)
    for name, content in {
        "no RepetitionTime": "{}", "a word": '{"RepetitionTime": "two"}', "zero": '{"RepetitionTime": 0}',
        "milliseconds": '{"RepetitionTime": 2000}', "negative": '{"RepetitionTime": -2}',
        "a list": '[{"RepetitionTime": 2}]', "NaN": '{"RepetitionTime": NaN}', "null": "null",
        "two values": '{"RepetitionTime": [2, 2]}', "not JSON": '{"RepetitionTime": 2',
        "tiny": '{"RepetitionTime": 1e-9}',
    }.items()
}  # fmt: skip

DAMAGES: dict[str, dict[str, Damage]] = {
    "events": ANY | TABLE | _EVENTS,
    "confounds": ANY | TABLE,
    "sidecar": ANY | _SIDECAR,
    "description": ANY | _SIDECAR,
    "bold": ANY | IMAGE,
    "mask": ANY | IMAGE,
    "raw": ANY | IMAGE,
    "surface": ANY,
    "mesh": ANY,
}
