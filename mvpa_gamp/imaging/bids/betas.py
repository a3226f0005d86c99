"""Given maps as samples: 3-D images named by run and condition, or 4-D images with a table.

FOLDER/.../sub-01_[ses-x_]task-t_run-1_[space-s_]contrast-face_[desc-d_]stat-effect_statmap.nii.gz
FOLDER/.../sub-01_[ses-x_]task-t_[run-1_][space-s_][desc-d_]stat-effect_statmap.nii.gz with ..._statmap.tsv

A table has a line per volume and the columns trial_type and, unless the name has one, run: the form in which
single-trial estimates of GLMsingle or of nilearn's models are kept.
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.imaging.bids.layout import MIN_RUNS
from mvpa_gamp.imaging.bids.masks import common_mask
from mvpa_gamp.imaging.bids.names import IMAGE, BidsFile, natural, parse_name
from mvpa_gamp.imaging.bids.participant import by_session
from mvpa_gamp.imaging.bids.selection import NATIVE, asked_values, chosen_tasks, space_of
from mvpa_gamp.imaging.bids.source import BidsSource
from mvpa_gamp.imaging.errors import DataError, reason
from mvpa_gamp.imaging.labels import UNLABELLED, Labels
from mvpa_gamp.imaging.map_names import shared_entities
from mvpa_gamp.imaging.matrix import Volumes
from mvpa_gamp.imaging.origin import Origin, generated_by
from mvpa_gamp.imaging.processing import MIN_VOLUMES, Processing
from mvpa_gamp.imaging.samples import Samples, samples_of
from mvpa_gamp.imaging.volumes import mean_volume, n_volumes, open_image

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


class _Maps(NamedTuple):
    """A file of maps: the condition of each of its volumes, and the run, by session and index."""

    file: BidsFile
    conditions: list[str]
    runs: list[tuple[str, str]]


def runs_of(maps: Sequence[_Maps]) -> list[tuple[str, str]]:
    """Session and index of every run that has a labelled map, in natural order."""
    rows = ((key, name) for each in maps for key, name in zip(each.runs, each.conditions, strict=True))
    return sorted({key for key, name in rows if name != UNLABELLED}, key=_order)


def _order(key: tuple[str, str]) -> Any:
    return tuple(map(natural, key))


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
    volumes = Volumes([_opened(each) for each in maps], "beta map")
    samples = samples_of(volumes, source.mask or _brain_mask(source), labels, steps, participant)
    space = maps[0].file.entities.get("space", NATIVE)
    background = mean_volume(volumes.images, magnitude=True, what=volumes.what)
    entities = shared_entities(each.file.entities for each in maps)
    samples = replace(
        samples,
        kind="beta",
        volumes=None,
        space=space,
        entities=entities,
        origin=_origin(source, maps),
        background_img=background,
    )
    if source.cv == "session":
        samples = by_session(samples, [key[0] for key in sorted(set(of_rows), key=_order)])
    told = f"{len(samples.X)} given maps of participant {participant} in {len(keys)} runs."
    return samples.from_source("bids", told, unit=samples.plural, space=space, bold=list(volumes.names))


def _origin(source: BetasSource, maps: Sequence[_Maps]) -> Origin:
    """Where the maps come from, and who made them, if their folder says so."""
    files = [each.file.path for each in maps]
    tables = [table for path in files if (table := _table_beside(path)).is_file()]
    origin = source.layout.origin([*files, *tables])
    return replace(origin, made_by=(*generated_by(Path(source.betas)), *origin.made_by))


def find_betas(source: BetasSource) -> list[_Maps]:
    """A participant's maps by session, run and name."""
    folder, glob, participant = Path(source.betas), source.betas_glob, source.participant_label
    if not folder.is_dir():
        raise DataError(f"--betas {folder}: expected a folder of maps, found none there. Check the path.")
    paths = [path for path in folder.rglob(f"sub-{participant}_*") if fnmatch(path.name, glob)]
    named = [parse_name(path) for path in paths]
    files = [file for file in named if file and file.extension in IMAGE and _fits(file, source)]
    maps = [each for file in files if (each := _maps(file)) is not None]
    maps = _of_runs(maps, source)
    if not maps:
        raise DataError(
            f"--betas {folder}: expected maps sub-{participant}_..._run-<index>_..._{LABEL}-<condition>_... "
            f"(or 4-D maps with a table of the same name) that fit --betas-glob {glob!r}, --task and "
            f"--space, found none of {len(paths)} that fit. Rename them or change the pattern."
        )
    tasks = sorted({each.file.entities.get("task", "unnamed") for each in maps})
    chosen_tasks(source.task, tasks, "the maps")
    return sorted(maps, key=lambda each: (_order(runs_of([each])[0]), natural(each.file.path.name)))


def _maps(file: BidsFile) -> _Maps | None:
    """What a file's name or table says of its volumes; None where neither tells."""
    session, run = file.entities.get("ses", ""), file.without().get("run")
    table = _table_beside(file.path)
    if table.is_file():
        return _Maps(file, *_labelled(table, session, run))
    if run is None or LABEL not in file.entities:
        return None
    return _Maps(file, [file.entities[LABEL]], [(session, run)])


def _table_beside(path: Path) -> Path:
    """The table of the same name."""
    return path.with_name(path.name.removesuffix(".gz").removesuffix(".nii") + ".tsv")


def _labelled(table: Path, session: str, run: str | None) -> tuple[list[str], list[tuple[str, str]]]:
    """Conditions and runs of the lines of a table."""
    try:
        with table.open(encoding="utf-8-sig", newline="") as stream:
            rows = list(csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"table {table} cannot be read ({reason(error)}). Check the file.") from error
    needed = ["trial_type", *(["run"] if run is None else [])]
    if missing := [name for name in needed if not rows or name not in rows[0]]:
        raise DataError(
            f"table {table}: expected a line per map and the columns {' and '.join(needed)}, but "
            f"{' and '.join(missing)} is missing. Add it."
        )
    conditions = [(row["trial_type"] or "").strip() or UNLABELLED for row in rows]
    sessions = [row["session"].strip() if row.get("session") else session for row in rows]
    indices = [(row["run"] or "").strip() if run is None else run for row in rows]
    return conditions, list(zip(sessions, indices, strict=True))


def _opened(maps: _Maps) -> Any:
    """The image, with as many volumes as are named."""
    path, image = maps.file.path, open_image(maps.file.path, "beta map")
    if len(image.shape) not in (3, 4) or n_volumes(image) != len(maps.conditions):
        raise DataError(
            f"beta map {path.name}: expected {len(maps.conditions)} volumes, as many as its "
            f"{'table has lines' if _table_beside(path).is_file() else 'name tells (one)'}, got shape "
            f"{image.shape}. Give a table {_table_beside(path).name} with a line per volume."
        )
    return image


def _fits(file: BidsFile, source: BetasSource) -> bool:
    """Whether a map is of the task and space asked for."""
    in_space = source.space in (None, file.entities.get("space"), space_of(file))
    of_task = not source.task or file.entities.get("task") in source.task
    return in_space and of_task and source.selection().passes(file)


def _of_runs(maps: Sequence[_Maps], source: BetasSource) -> list[_Maps]:
    """The files with maps of the sessions and runs asked for; their other maps lose their condition."""
    known = list(zip(*runs_of(maps), strict=True)) or [(), ()]
    who = f"sub-{source.participant_label}"
    sessions = asked_values("--session-label", "ses", source.session_label, known[0], who)
    runs = asked_values("--run-label", "run", source.run_label, known[1], who)
    out = []
    for each in maps:
        kept = [(not sessions or s in sessions) and (not runs or r in runs) for s, r in each.runs]
        names = [name if keep else UNLABELLED for name, keep in zip(each.conditions, kept, strict=True)]
        out.append(each._replace(conditions=names))
    return [each for each in out if set(each.conditions) != {UNLABELLED}]


def _run_numbers(of_rows: Sequence[tuple[str, str]]) -> NDArray:
    """Runs 1, 2, ... across sessions, of rows whose session and run are known."""
    keys = sorted(set(of_rows), key=_order)
    return np.array([keys.index(key) + 1 for key in of_rows])


def _check_runs(keys: Sequence[tuple[str, str]], participant: str) -> None:
    """Refuse fewer runs than cross-validation needs."""
    if len(keys) < MIN_RUNS:
        raise DataError(
            f"sub-{participant}: expected maps of at least {MIN_RUNS} runs, because cross-validation leaves "
            f"one run out, got {len(keys)}. Leave the participant out, or add runs."
        )


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
