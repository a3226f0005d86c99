"""Files of given maps: which ones are a participant's, and what their names or tables say of them.

FOLDER/.../sub-01_[ses-x_]task-t_run-1_[space-s_]contrast-face_[desc-d_]stat-effect_statmap.nii.gz
FOLDER/.../sub-01_[ses-x_]task-t_[run-1_][space-s_][desc-d_]stat-effect_statmap.nii.gz with ..._statmap.tsv

A table has a line per volume and the columns trial_type and, unless the name has one, run: the form in which
single-trial estimates of GLMsingle or of nilearn's models are kept. On surfaces maps are GIFTI pairs
(``_hemi-L_..._statmap.func.gii``), whose table has no ``hemi-``, or CIFTI files (``.dscalar.nii``).
"""

import csv
import re
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mvpa_gamp.imaging.bids.names import IMAGE, BidsFile, natural, parse_name
from mvpa_gamp.imaging.bids.selection import asked_values, chosen_tasks, space_of
from mvpa_gamp.imaging.bids.surface_runs import cortex_for
from mvpa_gamp.imaging.bids.surface_series import of_kind
from mvpa_gamp.imaging.errors import DataError, reason
from mvpa_gamp.imaging.labels import UNLABELLED
from mvpa_gamp.imaging.matrix import Volumes
from mvpa_gamp.imaging.series import Images
from mvpa_gamp.imaging.surface_names import is_surface_file
from mvpa_gamp.imaging.volumes import n_volumes, open_image

if TYPE_CHECKING:
    from mvpa_gamp.imaging.bids.betas import BetasSource

LABEL = "contrast"  # the entity that names the condition
_SURFACE = ("func.gii", "shape.gii", "dscalar.nii", "dtseries.nii")


class Maps(NamedTuple):
    """A file of maps: the condition of each of its volumes, and the run, by session and index."""

    file: BidsFile
    conditions: list[str]
    runs: list[tuple[str, str]]


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
