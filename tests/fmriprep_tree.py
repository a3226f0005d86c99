"""Writes a BIDS dataset as fMRIPrep leaves it: two sessions, two tasks, two spaces, outliers of every run."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import nibabel
import numpy as np

from mvpa_gamp.imaging.phantom import Phantom, phantom_images
from mvpa_gamp.imaging.phantom.series import BLOCK_SECONDS, ONSET_LEAD, block_order

SESSIONS, TASKS, RUNS = ("pre", "post"), ("faces", "objects"), ("01", "02")
SPACE, VERSION = "MNI152NLin2009cAsym", "24.1.1"
SHAPE, VOXEL, T_R = (9, 11, 9), 2.0, 2.5
CATEGORIES = ("face", "house", "cat")
UNSTEADY = 2  # volumes at the start of every run
AFFINE = np.array([[-VOXEL, 0, 0, 8], [0, VOXEL, 0, -10], [0, 0, VOXEL, -8], [0, 0, 0, 1.0]])


class Series(NamedTuple):
    """One run of a participant."""

    label: str
    session: str
    task: str
    run: str

    @property
    def stem(self) -> str:
        return f"sub-{self.label}_ses-{self.session}_task-{self.task}_run-{self.run}"

    @property
    def number(self) -> int:
        """Its place among the participant's runs, from 0, by session (natural order), task and run."""
        sessions = sorted(SESSIONS)
        places = sessions.index(self.session), TASKS.index(self.task), RUNS.index(self.run)
        return (places[0] * len(TASKS) + places[1]) * len(RUNS) + places[2]

    @property
    def outliers(self) -> int:
        """Volumes with too much motion: another number in every run, none in the first."""
        return self.number % 4


@dataclass(frozen=True)
class FmriprepTree:
    """Where the dataset is, and who is in it."""

    root: Path
    participants: tuple[str, ...]

    @property
    def derivatives(self) -> Path:
        return self.root / "derivatives" / "fmriprep"

    def func(self, series: Series, derived: bool = True) -> Path:
        home = self.derivatives if derived else self.root
        return home / f"sub-{series.label}" / f"ses-{series.session}" / "func"

    def series(self, label: str) -> list[Series]:
        found = [Series(label, s, t, r) for s in SESSIONS for t in TASKS for r in RUNS]
        return sorted(found, key=lambda each: each.number)

    def bold(self, series: Series, space: str = f"space-{SPACE}_res-2") -> Path:
        return self.func(series) / f"{series.stem}_{space}_desc-preproc_bold.nii.gz"


def write_fmriprep_tree(root: Path, participants: tuple[str, ...] = ("01", "02")) -> FmriprepTree:
    """Participants are phantoms on a grid of 2 mm; each has eight runs of 45 volumes."""
    tree = FmriprepTree(root, participants)
    _describe(tree)
    for seed, label in enumerate(participants):
        _write_participant(tree, label, seed)
    return tree


def _describe(tree: FmriprepTree) -> None:
    tree.derivatives.mkdir(parents=True)
    about = {"Name": "small", "BIDSVersion": "1.9.0", "DatasetType": "raw"}
    (tree.root / "dataset_description.json").write_text(json.dumps(about))
    made = [{"Name": "fMRIPrep", "Version": VERSION, "CodeURL": "https://github.com/nipreps/fmriprep"}]
    about |= {"DatasetType": "derivative", "GeneratedBy": made}
    (tree.derivatives / "dataset_description.json").write_text(json.dumps(about))
    for task in TASKS:
        name = f"task-{task}_bold.json"
        (tree.root / name).write_text(json.dumps({"RepetitionTime": T_R, "TaskName": task}))


def _write_participant(tree: FmriprepTree, label: str, seed: int) -> None:
    phantom = Phantom(SHAPE, None, 8, CATEGORIES, block_volumes=6, seed=seed)
    bold, mask, _, _ = phantom_images(phantom)
    values, inside = np.asarray(bold.dataobj), np.asarray(mask.dataobj)
    length = phantom.volumes_per_run
    for series in tree.series(label):
        volumes = values[..., series.number * length : (series.number + 1) * length]
        raw, derived = tree.func(series, derived=False), tree.func(series)
        for folder in (raw, derived):
            folder.mkdir(parents=True, exist_ok=True)
        (raw / f"{series.stem}_events.tsv").write_text(_events(phantom, series.number))
        nibabel.save(_image(volumes), raw / f"{series.stem}_bold.nii.gz")
        for space in (f"space-{SPACE}_res-2", "space-T1w"):
            path = tree.bold(series, space)
            nibabel.save(_image(volumes), path)
            sidecar = {"RepetitionTime": T_R, "StartTime": 0.0, "SkullStripped": False}
            path.with_name(path.name.replace(".nii.gz", ".json")).write_text(json.dumps(sidecar))
            nibabel.save(_image(inside), path.with_name(path.name.replace("preproc_bold", "brain_mask")))
        _write_confounds(derived / f"{series.stem}_desc-confounds_timeseries.tsv", series, length, seed)


def _image(values: np.ndarray) -> Any:
    image = nibabel.Nifti1Image(values, AFFINE)
    image.set_sform(AFFINE, code="mni")
    image.header.set_xyzt_units("mm", "sec")
    return image


def _events(phantom: Phantom, run: int) -> str:
    lines = ["onset\tduration\ttrial_type"]
    for start, category in zip(phantom.block_starts, block_order(phantom, run), strict=True):
        onset = start * phantom.t_r - ONSET_LEAD
        lines.append(f"{onset:.3f}\t{BLOCK_SECONDS * phantom.block_volumes:.3f}\t{category}")
    return "\n".join(lines) + "\n"


def outlier_volumes(series: Series, length: int) -> list[int]:
    """The volumes of a run that its table calls motion outliers, in the middle of the run."""
    return [length // 2 + 3 * k for k in range(series.outliers)]


def _columns(series: Series, length: int, rng: np.random.Generator) -> Iterator[tuple[str, np.ndarray]]:
    ending = ("", "_derivative1", "_power2", "_derivative1_power2")
    smooth = [f"{k}_{a}{e}" for k in ("trans", "rot") for a in "xyz" for e in ending]
    smooth += [f"{k}{e}" for k in ("csf", "white_matter", "global_signal") for e in ending]
    for name in (*smooth, "cosine00", "a_comp_cor_00", "a_comp_cor_01"):
        yield name, rng.normal(0, 0.01, length)
    yield "framewise_displacement", np.full(length, 0.05)
    yield "std_dvars", np.ones(length)
    for number in range(UNSTEADY):
        yield f"non_steady_state_outlier{number:02d}", _only(length, number)
    for number, volume in enumerate(outlier_volumes(series, length)):
        yield f"motion_outlier{number:02d}", _only(length, volume)


def _only(length: int, volume: int) -> np.ndarray:
    return (np.arange(length) == volume).astype(float)


def _write_confounds(path: Path, series: Series, length: int, seed: int) -> None:
    rng = np.random.default_rng([seed, series.number])
    table = dict(_columns(series, length, rng))
    text = np.array(list(table.values())).T.round(6).astype(str)
    unknown = [
        k for k, n in enumerate(table) if "derivative1" in n or n in ("framewise_displacement", "std_dvars")
    ]
    text[0, unknown] = "n/a"
    path.write_text("\n".join("\t".join(row) for row in [list(table), *text]) + "\n")
    part = {"Method": "aCompCor", "Retained": True, "Mask": "combined", "CumulativeVarianceExplained": 0.4}
    path.with_suffix(".json").write_text(json.dumps({f"a_comp_cor_0{k}": part for k in (0, 1)}))
