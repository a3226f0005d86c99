"""Given maps as samples: images named by run and condition, or several in a file with a table.

FOLDER/.../sub-01_[ses-x_]task-t_run-1_[space-s_]contrast-face_[desc-d_]stat-effect_statmap.nii.gz
FOLDER/.../sub-01_[ses-x_]task-t_[run-1_][space-s_][desc-d_]stat-effect_statmap.nii.gz with ..._statmap.tsv

A table has a line per volume and the columns trial_type and, unless the name has one, run: the form in which
single-trial estimates of GLMsingle or of nilearn models are kept. On surfaces maps are GIFTI pairs
(``_hemi-L_..._statmap.func.gii``), whose table has no ``hemi-``, or CIFTI files (``.dscalar.nii``).
"""

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.imaging.bids.layout import MIN_RUNS, common_mask, cortex_for
from mvpa_gamp.imaging.bids.participant import by_session
from mvpa_gamp.imaging.bids.selection import NATIVE, asked_values, chosen_tasks, of_kind, space_of
from mvpa_gamp.imaging.bids.source import BidsSource
from mvpa_gamp.imaging.errors import DataError, reason
from mvpa_gamp.imaging.labels import UNLABELLED, Labels
from mvpa_gamp.imaging.matrix import Images, Volumes
from mvpa_gamp.imaging.names import (
    IMAGE,
    BidsFile,
    files_of,
    is_surface_file,
    natural,
    parse_name,
    shared_entities,
)
from mvpa_gamp.imaging.processing import MIN_VOLUMES, Processing
from mvpa_gamp.imaging.samples import Origin, Samples, generated_by, samples_of
from mvpa_gamp.imaging.volumes import mean_volume, n_volumes, open_image

DEFAULT_GLOB = "*_stat-effect_statmap.*"
LABEL = "contrast"  # the entity that names the condition
_SURFACE = ("func.gii", "shape.gii", "dscalar.nii", "dtseries.nii")


class Maps(NamedTuple):
    """A file of maps: the condition of each of its volumes, and the run, by session and index."""

    file: BidsFile
    conditions: list[str]
    runs: list[tuple[str, str]]


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


def runs_of(maps: Sequence[Maps]) -> list[tuple[str, str]]:
    """Session and index of every run that has a labelled map, in natural order."""
    rows = ((key, name) for each in maps for key, name in zip(each.runs, each.conditions, strict=True))
    return sorted({key for key, name in rows if name != UNLABELLED}, key=order)


def order(key: tuple[str, str]) -> Any:
    """Sorts runs by session and index, 2 before 10."""
    return tuple(map(natural, key))


def find_betas(source: "BetasSource") -> list[Maps]:
    """A participant's maps by session, run and name."""
    folder, glob, participant = Path(source.betas), source.betas_glob, source.participant_label
    if not folder.is_dir():
        raise DataError(f"--betas {folder}: expected a folder of maps, found none there. Check the path.")
    found = [path for path in folder.rglob(f"sub-{participant}_*") if fnmatch(path.name, glob)]
    paths = [path for path in found if path.suffix not in (".tsv", ".json")]
    named = [file for path in paths if (file := parse_name(path)) and _is_map(file) and _fits(file, source)]
    files = of_kind(named, source.space)
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
    return sorted(maps, key=lambda each: (order(runs_of([each])[0]), natural(each.file.path.name)))


def _maps(file: BidsFile) -> Maps | None:
    """What a file's name or table says of its volumes; None where neither tells."""
    session, run = file.entities.get("ses", ""), file.without().get("run")
    table = table_beside(file.path)
    if table.is_file():
        return Maps(file, *_labelled(table, session, run))
    if run is None or LABEL not in file.entities:
        return None
    return Maps(file, [file.entities[LABEL]], [(session, run)])


def _is_map(file: BidsFile) -> bool:
    """Whether a file holds maps; of a GIFTI pair the left hemisphere speaks for both."""
    return file.extension in (*IMAGE, *_SURFACE) and file.entities.get("hemi") != "R"


def table_beside(path: Path) -> Path:
    """The table of the same name, which both hemispheres share."""
    stem = re.sub(r"(\.d[a-z]+)?\.nii(\.gz)?$|\.[a-z]+\.gii$", "", path.name)
    return path.with_name(re.sub(r"_hemi-L(?=_)", "", stem) + ".tsv")


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


def open_maps(source: "BetasSource", maps: Sequence[Maps]) -> Images:
    """The images of all maps, volumes or surfaces, with as many volumes as are named."""
    paths = [each.file.path for each in maps]
    if not is_surface_file(paths[0]):
        images = [open_image(path, "beta map") for path in paths]
        for each, image in zip(maps, images, strict=True):
            _check_count(each, image.shape, n_volumes(image) if len(image.shape) in (3, 4) else 0)
        return Volumes(images, "beta map")
    from mvpa_gamp.imaging.surface_files import read_surface
    from mvpa_gamp.imaging.surfaces import Surfaces

    cortex = cortex_for(source, maps[0].file.entities.get("space", ""))
    surfaces = [read_surface(path, cortex) for path in paths]
    for each, surface in zip(maps, surfaces, strict=True):
        _check_count(each, surface.shape, surface.shape[1])
    return Surfaces(surfaces, "beta map", tuple(map(str, paths)))


def _check_count(maps: Maps, shape: tuple[int, ...], count: int) -> None:
    if count != len(maps.conditions):
        path = maps.file.path
        raise DataError(
            f"beta map {path.name}: expected {len(maps.conditions)} volumes, "
            f"{'one per line of its table' if table_beside(path).is_file() else 'as it has no table'}, got "
            f"shape {shape}. Give a table {table_beside(path).name} with a line per volume."
        )


def _fits(file: BidsFile, source: "BetasSource") -> bool:
    """Whether a map is of the task and space asked for."""
    in_space = source.space in (None, file.entities.get("space"), space_of(file))
    of_task = not source.task or file.entities.get("task") in source.task
    return in_space and of_task and source.selection().passes(file)


def _of_runs(maps: Sequence[Maps], source: "BetasSource") -> list[Maps]:
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
