"""A participant of a BIDS dataset in a standard space, of any size: noise and two active regions."""

import json
from pathlib import Path

import nibabel
import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.imaging.bids.confounds import SETS

LABEL = "01"
CONDITIONS = ("face", "house")
N_RUNS, BLOCK, REST = 12, 9, 4  # volumes per block and of rest around blocks
_T_R = 2.0
_TASK, _SPACE = "objects", "MNI152NLin2009cAsym"


def write_participant(
    root: Path, shape: tuple[int, int, int], n_voxels: int, seed: int = 0, label: str = LABEL
) -> None:
    """Runs of int16 volumes with brain masks, confounds and events, as fMRIPrep leaves them."""
    rng = np.random.default_rng(seed)
    raw, derived = root / f"sub-{label}" / "func", root / "derivatives" / "fmriprep" / f"sub-{label}" / "func"
    for folder, kind in ((raw, "raw"), (derived, "derivative")):
        folder.mkdir(parents=True)
        about = {"Name": "large", "BIDSVersion": "1.9.0", "DatasetType": kind}
        (folder.parents[1] / "dataset_description.json").write_text(json.dumps(about))
    (root / f"task-{_TASK}_bold.json").write_text(json.dumps({"RepetitionTime": _T_R, "TaskName": _TASK}))
    mask = _ball(shape, n_voxels)
    affine = np.diag([2.0, 2.0, 2.0, 1.0])
    for run in range(1, N_RUNS + 1):
        stem = f"sub-{label}_task-{_TASK}_run-{run:02d}"
        onsets = REST + np.arange(2) * (BLOCK + REST)
        order = rng.permutation(2)
        series = _series(mask, onsets, order, rng)
        image = nibabel.Nifti1Image(series, affine)
        image.header.set_zooms((2.0, 2.0, 2.0, _T_R))
        nibabel.save(image, derived / f"{stem}_space-{_SPACE}_desc-preproc_bold.nii.gz")
        nibabel.save(
            nibabel.Nifti1Image(mask.astype(np.uint8), affine),
            derived / f"{stem}_space-{_SPACE}_desc-brain_mask.nii.gz",
        )
        (raw / f"{stem}_events.tsv").write_text(_events(onsets, order))
        (derived / f"{stem}_desc-confounds_timeseries.tsv").write_text(_confounds(series.shape[3], rng))


def _ball(shape: tuple[int, int, int], n_voxels: int) -> NDArray:
    """The voxels nearest to the middle of the grid, sides counted as one."""
    at = np.stack(np.meshgrid(*(np.linspace(-1, 1, side) for side in shape), indexing="ij"))
    distance = np.square(at).sum(axis=0)
    return distance <= np.partition(distance.ravel(), n_voxels - 1)[n_voxels - 1]


def _series(mask: NDArray, onsets: NDArray, order: NDArray, rng: np.random.Generator) -> NDArray:
    n_volumes = 2 * (BLOCK + REST) + REST
    inside = 1000 + 30 * rng.standard_normal((np.count_nonzero(mask), n_volumes), dtype=np.float32)
    for onset, condition in zip(onsets, order, strict=True):
        inside[1000 * condition : 1000 * condition + 200, onset : onset + BLOCK] += 12
    volumes = np.zeros((*mask.shape, n_volumes), dtype=np.int16)
    volumes[mask] = inside
    return volumes


def _events(onsets: NDArray, order: NDArray) -> str:
    lines = ["onset\tduration\ttrial_type"]
    lines += [
        f"{onset * _T_R:.1f}\t{BLOCK * _T_R:.1f}\t{CONDITIONS[condition]}"
        for onset, condition in zip(onsets, order, strict=True)
    ]
    return "\n".join(lines) + "\n"


def _confounds(n_volumes: int, rng: np.random.Generator) -> str:
    names = SETS["motion6"]
    values = rng.normal(0, 0.1, (n_volumes, len(names))).astype(str)
    return "\n".join("\t".join(row) for row in [list(names), *values.tolist()]) + "\n"
