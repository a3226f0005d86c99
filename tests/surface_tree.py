"""Writes a small BIDS dataset as fMRIPrep leaves it: sessions, tasks, volumes, GIFTI pairs, CIFTI series."""

import json
from dataclasses import dataclass
from pathlib import Path

import nibabel
import numpy as np
from nibabel.cifti2 import BrainModelAxis, SeriesAxis
from surface_data import Planted, planted, small_mesh

from mvpa_gamp.imaging.bids.confounds import SETS
from mvpa_gamp.imaging.cortex import Cortex, packaged_cortex
from mvpa_gamp.imaging.surface_files import write_mesh

T_R = 2.0
VOLUMES = "MNI152NLin2009cAsym"
_NAMES = {"left": "CIFTI_STRUCTURE_CORTEX_LEFT", "right": "CIFTI_STRUCTURE_CORTEX_RIGHT"}


@dataclass(frozen=True)
class SurfaceTree:
    """Where the dataset is, and what was planted in each participant, by space."""

    root: Path
    data: dict[tuple[str, str], Planted]
    meshes: tuple[Path, Path]  # of fsLR

    @property
    def derivatives(self) -> Path:
        return self.root / "derivatives" / "fmriprep"


def write_surface_tree(
    root: Path, participants: tuple[str, ...] = ("01", "02"), fsaverage5: bool = False
) -> SurfaceTree:
    """Two sessions and two tasks, a run each; volumes, fsLR and fsnative on small meshes.

    The real fsaverage5 comes if asked for.
    """
    mesh = small_mesh()
    for place, kind in ((root, "raw"), (root / "derivatives" / "fmriprep", "derivative")):
        place.mkdir(parents=True, exist_ok=True)
        about = {"Name": "small", "BIDSVersion": "1.9.0", "DatasetType": kind}
        (place / "dataset_description.json").write_text(json.dumps(about))
    meshes = write_mesh(root / "tpl-fsLR_midthickness.nii.gz", Cortex(mesh))
    data = {}
    for k, label in enumerate(participants):
        data[label, "fsLR"] = planted(mesh, seed=k)
        if fsaverage5:
            data[label, "fsaverage5"] = planted(packaged_cortex().mesh, seed=k, signal=1.5)
        for number, (session, task) in enumerate((s, t) for s in ("a", "b") for t in ("faces", "houses")):
            stem = f"sub-{label}_ses-{session}_task-{task}"
            home = Path(f"sub-{label}") / f"ses-{session}" / "func"
            folders = [root / home, root / "derivatives" / "fmriprep" / home]
            for folder in folders:
                folder.mkdir(parents=True, exist_ok=True)
            own = {space: each for (who, space), each in data.items() if who == label}
            _write_run(folders, stem, own, number + 1, np.random.default_rng([k, number]))
    return SurfaceTree(root, data, (meshes[0], meshes[1]))


def _write_run(folders: list[Path], stem: str, own: dict[str, Planted], number: int, rng) -> None:
    raw, derived = folders
    y = own["fsLR"].y[own["fsLR"].runs == number]
    (raw / f"{stem}_bold.json").write_text(json.dumps({"RepetitionTime": T_R}))
    (raw / f"{stem}_events.tsv").write_text(_events(y))
    volumes = _volumes(y, rng)
    nibabel.save(volumes, raw / f"{stem}_bold.nii.gz")
    nibabel.save(volumes, derived / f"{stem}_space-{VOLUMES}_desc-preproc_bold.nii.gz")
    mask = nibabel.Nifti1Image(np.ones(volumes.shape[:3], np.uint8), volumes.affine)
    nibabel.save(mask, derived / f"{stem}_space-{VOLUMES}_desc-brain_mask.nii.gz")
    (derived / f"{stem}_desc-confounds_timeseries.tsv").write_text(_confounds(rng, len(y), number))
    write_dense(derived / f"{stem}_space-fsLR_den-91k_bold.dtseries.nii", own["fsLR"], number)
    write_pair(derived / f"{stem}_hemi-L_space-fsnative_bold.func.gii", own["fsLR"], number)
    if "fsaverage5" in own:
        write_pair(derived / f"{stem}_hemi-L_space-fsaverage5_bold.func.gii", own["fsaverage5"], number)


def write_pair(left: Path, data: Planted, number: int) -> None:
    """A GIFTI pair, an array per time point as fMRIPrep writes it."""
    for part, letter in (("left", "L"), ("right", "R")):
        values = data.run(number).data.parts[part]
        arrays = [
            nibabel.gifti.GiftiDataArray(column, "NIFTI_INTENT_TIME_SERIES", encoding="B64BIN")
            for column in np.ascontiguousarray(values.T)
        ]
        path = left.with_name(left.name.replace("hemi-L", f"hemi-{letter}"))
        nibabel.save(nibabel.gifti.GiftiImage(darrays=arrays), path)


def write_dense(path: Path, data: Planted, number: int) -> None:
    """A CIFTI dense series without the medial wall, with some voxels below the cortex."""
    run, axes, columns = data.run(number), [], []
    for part, name in _NAMES.items():
        kept = np.ones(run.mesh.parts[part].n_vertices, bool)
        kept[data.wall[part]] = False
        axes.append(BrainModelAxis.from_mask(kept, name=name))
        columns.append(run.data.parts[part][kept].T)
    deep = np.ones((2, 2, 2), bool)
    axes.append(BrainModelAxis.from_mask(deep, name="CIFTI_STRUCTURE_THALAMUS_LEFT", affine=np.eye(4)))
    columns.append(np.zeros((len(columns[0]), 8)))
    values = np.concatenate(columns, axis=1).astype(np.float32)
    header = (SeriesAxis(0, T_R, len(values)), axes[0] + axes[1] + axes[2])
    nibabel.save(nibabel.Cifti2Image(values, header), path)


def _volumes(y, rng):
    """A few voxels, the first of which follows face."""
    values = 1000 + 10 * rng.normal(size=(3, 3, 3, len(y)))
    values[0, 0, 0] += 25 * (y == "face")
    image = nibabel.Nifti1Image(values.astype(np.float32), np.diag([3.0, 3.0, 3.0, 1.0]))
    image.header.set_zooms((3.0, 3.0, 3.0, T_R))
    return image


def _events(y) -> str:
    """An event per block, at the volumes that it labels (no lag)."""
    starts = [k for k in range(len(y)) if y[k] != "rest" and (k == 0 or y[k - 1] != y[k])]
    rows = [f"{T_R * k:.1f}\t{T_R * 5:.1f}\t{y[k]}" for k in starts]
    return "\n".join(["onset\tduration\ttrial_type", *rows]) + "\n"


def _confounds(rng, length: int, number: int) -> str:
    """As many outlier columns as the number of the run says."""
    names = [*SETS["motion24"], "framewise_displacement", *(f"motion_outlier{k:02d}" for k in range(number))]
    values = rng.normal(0, 0.1, (length, len(names)))
    for k in range(number):
        values[:, len(names) - number + k] = np.arange(length) == 3 * k
    return "\n".join("\t".join(row) for row in [names, *values.astype(str)]) + "\n"
