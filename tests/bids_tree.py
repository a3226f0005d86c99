"""Writes a small BIDS dataset: participants are phantoms, raw and as fMRIPrep would leave them."""

import json
from dataclasses import dataclass
from pathlib import Path

import nibabel
import numpy as np

from mvpa_gamp.imaging.bids.confounds import SETS
from mvpa_gamp.imaging.phantom import Phantom, phantom_images
from mvpa_gamp.imaging.phantom.series import BLOCK_SECONDS, ONSET_LEAD, block_order

TASK, SPACE = "objectviewing", "MNI152NLin2009cAsym"


@dataclass(frozen=True)
class Tree:
    """Where the dataset is, and the phantoms behind its participants."""

    root: Path
    phantoms: dict[str, Phantom]

    @property
    def derivatives(self) -> Path:
        return self.root / "derivatives" / "fmriprep"

    def func(self, label: str, derived: bool = False, session: str | None = None) -> Path:
        home = (self.derivatives if derived else self.root) / f"sub-{label}"
        return (home / f"ses-{session}" if session else home) / "func"

    def stem(self, label: str, run: int) -> str:
        return f"sub-{label}_task-{TASK}_run-{run:02d}"


def write_tree(
    root: Path,
    participants: tuple[str, ...] = ("01", "02", "03"),
    sessions: tuple[str, ...] = ("02",),
    n_runs: int = 6,
    shape: tuple[int, int, int] = (9, 11, 9),
    space: str = SPACE,
    categories: tuple[str, ...] = ("face", "house", "cat"),
) -> Tree:
    """Participants in ``sessions`` were scanned twice; run numbers start again in their second session."""
    phantoms = {
        label: Phantom(shape, None, n_runs, categories, block_volumes=6, seed=k)
        for k, label in enumerate(participants)
    }
    tree = Tree(root, phantoms)
    for place, kind in ((tree.root, "raw"), (tree.derivatives, "derivative")):
        place.mkdir(parents=True, exist_ok=True)
        about = {"Name": "small", "BIDSVersion": "1.9.0", "DatasetType": kind}
        (place / "dataset_description.json").write_text(json.dumps(about))
    (root / f"task-{TASK}_bold.json").write_text(json.dumps({"RepetitionTime": 2.5, "TaskName": TASK}))
    for label, phantom in phantoms.items():
        _write_participant(tree, label, phantom, label in sessions, space)
    return tree


def _write_participant(tree: Tree, label: str, phantom: Phantom, twice: bool, space: str) -> None:
    bold, mask, _, _ = phantom_images(phantom)
    volumes = np.asarray(bold.dataobj)
    length, half = phantom.volumes_per_run, -(-phantom.n_runs // 2)
    rng = np.random.default_rng(phantom.seed)
    for index in range(phantom.n_runs):
        session = f"{1 + index // half:02d}" if twice else None
        run = 1 + (index % half if twice else index)
        stem = f"sub-{label}" + (f"_ses-{session}" if session else "") + f"_task-{TASK}_run-{run:02d}"
        raw, derived = (tree.func(label, made, session) for made in (False, True))
        for folder in (raw, derived):
            folder.mkdir(parents=True, exist_ok=True)
        series = nibabel.Nifti1Image(volumes[..., index * length : (index + 1) * length], bold.affine)
        nibabel.save(series, raw / f"{stem}_bold.nii.gz")
        nibabel.save(series, derived / f"{stem}_space-{space}_desc-preproc_bold.nii.gz")
        nibabel.save(_worn(mask, rng), derived / f"{stem}_space-{space}_desc-brain_mask.nii.gz")
        (raw / f"{stem}_events.tsv").write_text(_events(phantom, index))
        (derived / f"{stem}_desc-confounds_timeseries.tsv").write_text(_confounds(rng, length))


def _worn(mask, rng):
    """The brain mask less one voxel, another one in each run."""
    values = np.asarray(mask.dataobj).copy()
    values[tuple(rng.choice(np.argwhere(values)))] = 0
    return nibabel.Nifti1Image(values, mask.affine)


def _events(phantom: Phantom, run: int) -> str:
    lines = ["onset\tduration\ttrial_type\tresponse_time"]
    for start, category in zip(phantom.block_starts, block_order(phantom, run), strict=True):
        onset = start * phantom.t_r - ONSET_LEAD
        lines.append(f"{onset:.3f}\t{BLOCK_SECONDS * phantom.block_volumes:.3f}\t{category}\tn/a")
        lines.append(f"{onset + 1:.3f}\t0\tbutton\t0.61")
    return "\n".join(lines) + "\n"


def _confounds(rng, length: int) -> str:
    names = ["global_signal", "framewise_displacement", *SETS["motion24"]]
    values = rng.normal(0, 0.1, (length, len(names))).astype(str)
    values[0, [i for i, name in enumerate(names) if "derivative1" in name or "displacement" in name]] = "n/a"
    return "\n".join("\t".join(row) for row in [names, *values]) + "\n"
