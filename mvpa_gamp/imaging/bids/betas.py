"""Given maps as samples: one 3-D image per run and condition (or trial), named by BIDS.

FOLDER/.../sub-01_[ses-x_]task-t_run-1_[space-s_]contrast-face_[desc-d_]stat-effect_statmap.nii.gz
"""

from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.imaging.bids.layout import MIN_RUNS, NATIVE, Layout, choose, find_runs
from mvpa_gamp.imaging.bids.names import IMAGE, BidsFile, natural, parse_name
from mvpa_gamp.imaging.bids.source import BidsChoice, common_mask, wanted_categories
from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.processing import MIN_VOLUMES, Processing, clean_run
from mvpa_gamp.imaging.samples import Samples
from mvpa_gamp.imaging.volumes import check_same_grid, like, open_image, open_mask

DEFAULT_GLOB = "*_stat-effect_statmap.nii.gz"
LABEL = "contrast"  # the entity that names the condition


def load_betas(
    layout: Layout, participant: str, choice: BidsChoice, processing: Processing, folder: Path, glob: str
) -> Samples:
    """Samples of a participant's maps below ``folder``; ``contrast-`` names the condition, ``run-`` the run.

    Maps are z-scored within each run where the processing says so; nothing else of it applies to maps.
    """
    files = find_betas(folder, participant, glob, choice)
    wanted = wanted_categories(choice.pairs, [file.entities[LABEL] for file in files])
    files = [file for file in files if file.entities[LABEL] in wanted]
    runs = _run_numbers(files, participant)
    images = [_open_map(file.path) for file in files]
    for image in images[1:]:
        check_same_grid(image, images[0], "beta map")
    mask_img, inside = open_mask(choice.mask or _brain_mask(layout, participant, choice))
    check_same_grid(mask_img, images[0], "mask")
    volumes = np.stack(
        [np.asarray(image.dataobj, dtype=np.float32).reshape(inside.shape) for image in images]
    )
    values = volumes[:, inside]
    kept = np.isfinite(values).all(axis=0) & (values != values[0]).any(axis=0)
    if not kept.any():
        _blame_empty_maps(values, files)
        raise DataError(
            f"mask: none of its {len(kept)} voxels is finite and varies over the maps. Check both."
        )
    mask = inside.copy()
    mask[inside] = kept
    X = _standardised(values[:, kept], runs, processing)
    return Samples(
        X=np.ascontiguousarray(X, dtype=np.float32),
        conditions=np.array([file.entities[LABEL] for file in files]),
        runs=runs,
        mask_img=like(mask_img, mask.astype(np.uint8)),
        background_img=like(images[0], np.nan_to_num(np.abs(volumes)).mean(axis=0)),
        subject=participant,
        notes=_notes(kept),
        provenance={
            "source": "bids",
            "unit": "maps",
            "space": files[0].entities.get("space", NATIVE),
            "description": f"{len(files)} given maps of participant {participant} in {len(set(runs))} runs.",
            "bold": [str(file.path) for file in files],
            "processing": {"standardize": processing.standardize, "drop": []},
        },
    )


def find_betas(folder: Path, participant: str, glob: str, choice: BidsChoice) -> list[BidsFile]:
    """A participant's maps by session, run and name."""
    if not folder.is_dir():
        raise DataError(f"--betas {folder}: expected a folder of maps, found none there. Check the path.")
    paths = [path for path in folder.rglob(f"sub-{participant}_*") if fnmatch(path.name, glob)]
    named = [parse_name(path) for path in paths]
    files = [file for file in named if file and file.extension in IMAGE and _fits(file, choice)]
    files = [file for file in files if {LABEL, "run"} <= set(file.entities)]
    if not files:
        raise DataError(
            f"--betas {folder}: expected maps sub-{participant}_..._run-<index>_..._{LABEL}-<condition>_... "
            f"that fit --betas-glob {glob!r}, --task and --space, found none of {len(paths)} that fit. "
            "Rename them or change the pattern."
        )
    choose(
        "--task", choice.task, sorted({file.entities.get("task", "unnamed") for file in files}), "the maps"
    )
    return sorted(files, key=lambda file: (*_run_key(file), natural(file.path.name)))


def _fits(file: BidsFile, choice: BidsChoice) -> bool:
    """Whether a map is of the task and space asked for."""
    asked = {"task": choice.task, "space": choice.space}
    return all(value is None or file.entities.get(key) == value for key, value in asked.items())


def _run_key(file: BidsFile) -> tuple[Any, Any]:
    return natural(file.entities.get("ses", "")), natural(file.without()["run"])


def _run_numbers(files: Sequence[BidsFile], participant: str) -> NDArray:
    """Runs 1, 2, ... across sessions."""
    keys = list(dict.fromkeys(_run_key(file) for file in files))
    if len(keys) < MIN_RUNS:
        raise DataError(
            f"sub-{participant}: expected maps of at least {MIN_RUNS} runs, because cross-validation leaves "
            f"one run out, got {len(keys)}. Leave the participant out, or add runs."
        )
    return np.array([keys.index(_run_key(file)) + 1 for file in files])


def _open_map(path: Path) -> Any:
    image = open_image(path, "beta map")
    if len(image.shape) != 3:
        raise DataError(f"beta map {path.name}: expected a 3-D image, got shape {image.shape}. Split it.")
    return image


def _brain_mask(layout: Layout, participant: str, choice: BidsChoice) -> Any:
    """The common brain mask of the derivatives' runs in the maps' space."""
    masks = [run.mask for run in find_runs(layout, participant, choice.task, choice.space)]
    files = [path for path in masks if path is not None]
    if not files:
        raise DataError("mask: the dataset has no brain masks for the maps. Give one with --mask.")
    return common_mask(files)


def _standardised(values: NDArray, runs: NDArray, processing: Processing) -> NDArray:
    """Each voxel z-scored over the maps of each run, if the processing says so."""
    if not processing.standardize:
        return values
    smallest = min(int((runs == run).sum()) for run in np.unique(runs))
    if smallest < MIN_VOLUMES:
        raise DataError(
            f"--standardize: expected at least {MIN_VOLUMES} maps in every run, got {smallest}. Give "
            "--no-standardize, or more maps."
        )
    steps = Processing(detrend=False)
    out = np.empty_like(values)
    for run in np.unique(runs):
        out[runs == run] = clean_run(values[runs == run], steps, None, None, int(run))
    return out


def _blame_empty_maps(values: NDArray, files: Sequence[BidsFile]) -> None:
    """Refuse maps without any value in the mask by name, unless most are so: then the mask does not fit."""
    empty = np.flatnonzero(~np.isfinite(values).any(axis=1))
    if 0 < empty.size <= len(files) / 2:
        names = ", ".join(files[place].path.name for place in empty[:5])
        names += f" and {empty.size - 5} more" if empty.size > 5 else ""
        raise DataError(
            f"beta map: expected numbers, but every voxel of the mask is NaN or infinite in {names}. "
            "Repair or remove such maps."
        )


def _notes(kept: NDArray) -> tuple[str, ...]:
    left = int((~kept).sum())
    return (f"{left} of {len(kept)} voxels of the mask are not finite or constant and were dropped.",) * bool(
        left
    )
