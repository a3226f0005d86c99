"""Given maps as samples: one 3-D image per run and condition (or trial), named by BIDS.

FOLDER/.../sub-01_[ses-x_]task-t_run-1_[space-s_]contrast-face_[desc-d_]stat-effect_statmap.nii.gz
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.imaging.bids.layout import MIN_RUNS, NATIVE, choose
from mvpa_gamp.imaging.bids.names import IMAGE, BidsFile, natural, parse_name
from mvpa_gamp.imaging.bids.source import BidsSource, common_mask, sessions_of
from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.labels import Labels
from mvpa_gamp.imaging.matrix import Volumes
from mvpa_gamp.imaging.processing import MIN_VOLUMES, Processing
from mvpa_gamp.imaging.samples import Samples, samples_of
from mvpa_gamp.imaging.volumes import mean_volume, open_image

DEFAULT_GLOB = "*_stat-effect_statmap.nii.gz"
LABEL = "contrast"  # the entity that names the condition


@dataclass(frozen=True, kw_only=True)
class BetasSource(BidsSource):
    """Given maps of a participant below the folder ``betas``; ``contrast-`` and ``run-`` label them.

    Maps are z-scored within each run unless ``standardize`` is False; nothing else is done to them.
    """

    samples: str = "betas"
    betas: str = ""
    betas_glob: str = DEFAULT_GLOB

    name = "--samples betas: maps have no time"
    paths: ClassVar[tuple[str, ...]] = ("bids_dir", "derivatives", "mask", "betas")
    kinds: ClassVar[tuple[str, ...]] = ("betas",)

    def dataset(self) -> "BetasSource":
        """The settings that all participants share; given maps have no time series to clean."""
        if self.samples != "betas" or not self.betas:
            raise DataError("--samples betas and --betas FOLDER belong together. Give both, or neither.")
        for name in ("lag_trs", "smoothing_fwhm", "high_pass", "t_r", "confounds"):
            if getattr(self, name) not in (None, 0, (), ("none",)):
                option = "--" + name.replace("_", "-")
                raise DataError(f"{option} has no meaning for {self.name}. Leave it out.")
        return BidsSource.dataset(replace(self, lag_trs=0, detrend=False, confounds=("none",)))

    def load(self) -> Samples:
        """Samples of the participant's maps."""
        return _load(self.resolve())


def _load(source: BetasSource) -> Samples:
    """Samples of a participant whose settings are resolved."""
    participant, files = source.participant_label, find_betas(source)
    wanted = source.wanted([file.entities[LABEL] for file in files])
    files = [file for file in files if file.entities[LABEL] in wanted]
    labels = Labels(np.array([file.entities[LABEL] for file in files]), _run_numbers(files, participant))
    steps = source.processing(drop=())
    _check_enough(labels, steps)
    volumes = Volumes([_open_map(file.path) for file in files], "beta map")
    samples = samples_of(volumes, source.mask or _brain_mask(source), labels, steps, participant)
    space = files[0].entities.get("space", NATIVE)
    background = mean_volume(volumes.images, magnitude=True)
    names = {_run_key(file): file.entities.get("ses", "") for file in files}  # in the order of the runs
    sessions = sessions_of(samples.runs, list(names.values()))
    samples = replace(
        samples, kind="beta", volumes=None, space=space, background_img=background, sessions=sessions
    )
    told = f"{len(files)} given maps of participant {participant} in {len(set(samples.runs))} runs."
    return samples.from_source("bids", told, unit=samples.plural, space=space, bold=list(volumes.names))


def find_betas(source: BetasSource) -> list[BidsFile]:
    """A participant's maps by session, run and name."""
    folder, glob, participant = Path(source.betas), source.betas_glob, source.participant_label
    if not folder.is_dir():
        raise DataError(f"--betas {folder}: expected a folder of maps, found none there. Check the path.")
    paths = [path for path in folder.rglob(f"sub-{participant}_*") if fnmatch(path.name, glob)]
    named = [parse_name(path) for path in paths]
    files = [file for file in named if file and file.extension in IMAGE and _fits(file, source)]
    files = [file for file in files if {LABEL, "run"} <= set(file.entities)]
    if not files:
        raise DataError(
            f"--betas {folder}: expected maps sub-{participant}_..._run-<index>_..._{LABEL}-<condition>_... "
            f"that fit --betas-glob {glob!r}, --task and --space, found none of {len(paths)} that fit. "
            "Rename them or change the pattern."
        )
    tasks = sorted({file.entities.get("task", "unnamed") for file in files})
    choose("--task", source.task, tasks, "the maps")
    return sorted(files, key=lambda file: (*_run_key(file), natural(file.path.name)))


def _fits(file: BidsFile, source: BetasSource) -> bool:
    """Whether a map is of the task and space asked for."""
    asked = {"task": source.task, "space": source.space}
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


def _brain_mask(source: BetasSource) -> Any:
    """The common brain mask of the derivatives' runs in the maps' space."""
    files = [run.mask for run in source.runs() if run.mask is not None]
    if not files:
        raise DataError("mask: the dataset has no brain masks for the maps. Give one with --mask.")
    return common_mask(files)


def _check_enough(labels: Labels, steps: Processing) -> None:
    """Refuse to z-score runs of a map or two."""
    assert labels.runs is not None
    smallest = int(np.unique(labels.runs, return_counts=True)[1].min())
    if steps.standardize and smallest < MIN_VOLUMES:
        raise DataError(
            f"--standardize: expected at least {MIN_VOLUMES} maps in every run, got {smallest}. Give "
            "--no-standardize, or more maps."
        )
