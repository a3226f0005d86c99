"""Given maps as samples: images named by run and condition, or several in a file with a table."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.imaging.bids.beta_files import Maps, find_betas, open_maps, order, runs_of, table_beside
from mvpa_gamp.imaging.bids.layout import MIN_RUNS
from mvpa_gamp.imaging.bids.masks import common_mask
from mvpa_gamp.imaging.bids.participant import by_session
from mvpa_gamp.imaging.bids.selection import NATIVE
from mvpa_gamp.imaging.bids.source import BidsSource
from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.labels import UNLABELLED, Labels
from mvpa_gamp.imaging.map_names import shared_entities
from mvpa_gamp.imaging.matrix import Volumes
from mvpa_gamp.imaging.origin import Origin, generated_by
from mvpa_gamp.imaging.processing import MIN_VOLUMES, Processing
from mvpa_gamp.imaging.samples import Samples, samples_of
from mvpa_gamp.imaging.series import Images
from mvpa_gamp.imaging.surface_names import files_of
from mvpa_gamp.imaging.volumes import mean_volume

DEFAULT_GLOB = "*_stat-effect_statmap.*"


@dataclass(frozen=True, kw_only=True)
class BetasSource(BidsSource):
    """Existing maps of a participant in the folder ``betas``, labelled by ``contrast-`` and ``run-``.

    Maps are z-scored within each run unless ``standardize`` is False; nothing else is done to them.
    """

    samples: str = "betas"
    betas: str = ""
    betas_glob: str = DEFAULT_GLOB

    name = "--samples betas: maps have no time"
    paths: ClassVar[tuple[str, ...]] = ("bids_dir", "derivatives", "mask", "betas", "surface_mesh")
    kinds: ClassVar[tuple[str, ...]] = ("betas",)

    def dataset(self) -> "BetasSource":
        """The settings that all participants share; given maps have no time series to clean."""
        if self.samples != "betas" or not self.betas:
            raise DataError("--samples betas and --betas FOLDER belong together. Give both, or neither.")
        for name in ("lag_trs", "smoothing_fwhm", "high_pass", "t_r", "confounds", "confounds_strategy"):
            if getattr(self, name) not in (None, 0, "", (), ("none",)):
                option = "--" + name.replace("_", "-")
                raise DataError(f"{option} does not apply to {self.name}. Leave it out.")
        return BidsSource.dataset(replace(self, lag_trs=0, detrend=False, confounds=("none",)))

    def load(self) -> Samples:
        """Samples of the participant's maps."""
        return _load(self.resolve())


def _load(source: BetasSource) -> Samples:
    """Samples of a participant whose settings are resolved."""
    participant, maps = source.participant_label, find_betas(source)
    wanted = source.wanted([name for each in maps for name in each.conditions])
    maps = [each for each in maps if wanted & set(each.conditions)]
    names = [name if name in wanted else UNLABELLED for each in maps for name in each.conditions]
    of_rows = [key for each in maps for key in each.runs]
    keys = runs_of(maps)
    _check_runs(keys, participant)
    labels = Labels(np.array(names), _run_numbers(of_rows))
    steps = source.processing(drop=())
    _check_enough(labels, steps)
    volumes = open_maps(source, maps)
    samples = samples_of(volumes, _mask(source, volumes), labels, steps, participant)
    space = maps[0].file.entities.get("space", NATIVE)
    entities = shared_entities(each.file.without("hemi") for each in maps)
    samples = replace(
        samples,
        kind="beta",
        volumes=None,
        space=space,
        entities=entities,
        origin=_origin(source, maps),
        background_img=_magnitude(volumes),
    )
    if source.cv == "session":
        samples = by_session(samples, [key[0] for key in sorted(set(of_rows), key=order)])
    told = f"{len(samples.X)} given maps of participant {participant} in {len(keys)} runs."
    return samples.from_source("bids", told, unit=samples.plural, space=space, bold=list(volumes.names))


def _origin(source: BetasSource, maps: Sequence[Maps]) -> Origin:
    """Where the maps come from, and who made them, if their folder says so."""
    paths = [each.file.path for each in maps]
    files = [file for path in paths for file in files_of(path)]
    tables = [table for path in paths if (table := table_beside(path)).is_file()]
    origin = source.layout.origin([*files, *tables])
    return replace(origin, made_by=(*generated_by(Path(source.betas)), *origin.made_by))


def _run_numbers(of_rows: Sequence[tuple[str, str]]) -> NDArray:
    """Runs 1, 2, ... across sessions, of rows whose session and run are known."""
    keys = sorted(set(of_rows), key=order)
    return np.array([keys.index(key) + 1 for key in of_rows])


def _check_runs(keys: Sequence[tuple[str, str]], participant: str) -> None:
    """Refuse fewer runs than cross-validation needs."""
    if len(keys) < MIN_RUNS:
        raise DataError(
            f"sub-{participant}: expected maps of at least {MIN_RUNS} runs, because cross-validation leaves "
            f"one run out, got {len(keys)}. Leave the participant out, or add runs."
        )


def _mask(source: BetasSource, volumes: Images) -> Any:
    """The mask given, or the brain's; on surfaces None for all vertices that vary."""
    if isinstance(volumes, Volumes):
        return source.mask or _brain_mask(source)
    from mvpa_gamp.imaging.surfaces import surface_mask

    return surface_mask(source.mask, volumes.cortex)  # type: ignore[attr-defined]


def _magnitude(volumes: Any) -> Any:
    """The mean magnitude of all maps, to draw on."""
    if isinstance(volumes, Volumes):
        return mean_volume(volumes.images, magnitude=True, what=volumes.what)
    return volumes.mean_magnitude()


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
