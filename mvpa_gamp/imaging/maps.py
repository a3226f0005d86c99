"""Maps of many participants: a table names files, conditions and people, and becomes Samples.

A line of the table is a map: a 3-D file, or the next volume of a 4-D file. Columns are ``file``,
``condition`` (or ``label``, ``trial_type``, ``target``), ``participant`` (or ``participant_id``,
``subject``), and, where there are, ``run``, ``group`` and any that ``--folds`` names; lines are in any order.
"""

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from glob import glob
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.decoding.designs import ALL
from mvpa_gamp.decoding.folds import deal_folds, usual_folds
from mvpa_gamp.imaging.bids.events import wanted_categories
from mvpa_gamp.imaging.errors import DataError, reason
from mvpa_gamp.imaging.matrix import ALL as EVERY_VOXEL
from mvpa_gamp.imaging.matrix import Volumes, volumes_to_matrix
from mvpa_gamp.imaging.names import parse_name
from mvpa_gamp.imaging.samples import Samples, origin_of_files
from mvpa_gamp.imaging.source import Source
from mvpa_gamp.imaging.volumes import like, mean_volume, n_volumes, open_image

COLUMNS = {
    "file": ("file", "filename", "path", "map"),
    "condition": ("condition", "label", "labels", "trial_type", "target"),
    "participant": ("participant", "participant_id", "subject", "sub"),
    "run": ("run",),
    "group": ("group",),
}
MISSING = ("", "n/a", "na", "nan", "none")
STIMULI = ("stimulus", "stim_file")  # columns whose values may be learnt in place of the condition
SCALINGS = ("none", "centre", "zscore")
ZERO_VOXELS = ("drop", "keep")
PARTICIPANT = "participant"
_TABLES = (".tsv", ".csv", ".txt")
_MOST_NUMBERS = 10  # different ones that may be names of conditions
_FEW = 3  # maps of a participant that z-scores need


@dataclass(frozen=True)
class MapTable:
    """The lines of a table, one per map: all columns as texts, by the names used here."""

    path: Path
    columns: dict[str, NDArray]  # each (L,) str, "" where missing
    unknown: tuple[str, ...]  # columns that nothing here asks for

    def __len__(self) -> int:
        return len(self.columns["condition"])

    def of(self, lines: NDArray) -> "MapTable":
        """Some of its lines."""
        return replace(self, columns={name: values[lines] for name, values in self.columns.items()})


def read_map_table(path: str | Path, needs_file: bool = True, needs_condition: bool = True) -> MapTable:
    """Read a TSV or CSV of maps; DataError in one sentence where a column or a cell is missing."""
    path = Path(path).expanduser()
    if not path.is_file():
        raise DataError(f"table {path}: expected a TSV, found no file there. Check the path.")
    try:
        lines = [line for line in path.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
        separator = "\t" if lines and "\t" in lines[0] else ","
        rows = [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=separator)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(
            f"table {path} cannot be read as text ({reason(error)}). Save it as a TSV."
        ) from error
    header = [name.lower() for name in rows[0]] if rows else []
    if len(rows) < 2:
        raise DataError(
            f"table {path}: expected a header and a line per map, got {len(rows)} lines. Add them."
        )
    for number, row in enumerate(rows, start=1):
        if len(row) != len(header):
            raise DataError(
                f"table {path}: expected {len(header)} columns as in its header, got {len(row)} in line "
                f"{number}. Correct that line."
            )
    if twice := [name for name in header if header.count(name) > 1]:
        raise DataError(f"table {path}: expected one column {twice[0]!r}, got several. Remove all but one.")
    places = {name: _place(header, names) for name, names in COLUMNS.items()}
    asked = {"file": needs_file, "condition": needs_condition, "participant": True}
    for name in (name for name, needed in asked.items() if needed):
        if places[name] is None:
            raise DataError(
                f"table {path}: expected a column {' or '.join(COLUMNS[name][:3])}, got "
                f"{', '.join(rows[0])}. Add it, or rename the one that is meant."
            )
    cells = np.array(rows[1:], dtype=object).astype(str)
    cells[np.isin(np.char.lower(cells), MISSING)] = ""
    known = {name: cells[:, at] for name, at in places.items() if at is not None}
    others = {name: cells[:, at] for at, name in enumerate(header) if at not in places.values()}
    return MapTable(path, {**others, **known}, tuple(others))


def _place(header: Sequence[str], names: Sequence[str]) -> int | None:
    return next((header.index(name) for name in names if name in header), None)


@dataclass(frozen=True, kw_only=True)
class MapsSource(Source):
    """Maps of many participants, by a table of files, or files and a table.

    ``maps`` is a table (TSV), or 3-D files, or 4-D ones, with ``labels`` for their table: matched by its
    column ``file``, else line by line. Maps are never detrended, filtered or lagged. ``scaling``: "none",
    "centre" (the mean of a participant's compared maps is taken away from each) or "zscore"; default:
    "centre" where every participant has maps of several conditions, else "none". ``folds``: "participant"
    (one is held out at a time), a number of folds of whole participants, or a column of the table.
    ``zero_voxels``: "drop" those that are 0 or missing in some map, or "keep" them. ``covariates`` are
    columns that are regressed out inside folds.
    """

    maps: tuple[str, ...] = ()
    labels: str = ""
    mask: str = ""
    scaling: str = ""
    folds: str = ""
    zero_voxels: str = ""
    covariates: tuple[str, ...] = ()
    pairs: tuple[str, ...] = ALL
    classes: tuple[str, ...] = ()
    cross: tuple[str, ...] = ()
    seed: int = 0
    detrend: bool = False
    standardize: bool = False
    lag_trs: int = 0

    name = "maps of participants"
    paths: ClassVar[tuple[str, ...]] = ("maps", "labels", "mask")

    def resolve(self) -> "MapsSource":
        """The same with absolute paths; what maps cannot have is refused."""
        for name in ("detrend", "high_pass", "t_r", "lag_trs"):
            if getattr(self, name):
                option = "--" + name.replace("_", "-")
                raise DataError(f"{option} is for time series, and maps are none. Leave it out.")
        if self.standardize:
            raise DataError("--standardize is for runs; maps are scaled by --scaling. Give --scaling zscore.")
        for option, value, known in (
            ("--scaling", self.scaling, SCALINGS),
            ("--zero-voxels", self.zero_voxels, ZERO_VOXELS),
        ):
            if value and value not in known:
                raise DataError(f"{option}: expected {', '.join(known)}, got {value!r}. Choose one of them.")
        if self.folds.lstrip("-").isdigit() and int(self.folds) < 2:
            raise DataError(f"--folds: expected 2 or more, got {self.folds}. Change it.")
        first = Path(self.maps[0])
        is_table = len(self.maps) == 1 and (first.suffix.lower() in _TABLES or first.expanduser().is_dir())
        if not is_table and not self.labels:
            raise DataError(
                "--maps: expected a table (TSV) of files, conditions and participants, a folder of BIDS "
                "statistical maps, or image files with --labels TABLE. Give one of them."
            )
        if is_table and self.labels:
            raise DataError("--labels: the table given with --maps has the labels. Leave out one of them.")
        self.processing()
        return replace(self.absolute(), zero_voxels=self.zero_voxels or ZERO_VOXELS[0])

    def load(self) -> Samples:
        """Samples of all participants."""
        ready = self.resolve()
        table, files = ready._table()
        table, files, volume, notes = _known_lines(table, files)
        _check_conditions(table)
        wanted = wanted_categories(ready.pairs, set(table.columns["condition"]), ready.classes, ready.cross)
        kept = np.isin(table.columns["condition"], sorted(wanted))
        order = [k for k in _by_participant(table.columns["participant"]) if kept[k]]
        return _samples(ready, table.of(np.array(order)), files, volume[order], notes)

    def listed(self) -> list[tuple[str, Path]]:
        """The maps."""
        return [("--maps", path) for path in self._table()[1]]

    def _table(self) -> tuple[MapTable, list[Path]]:
        """The table, and the file of each of its lines."""
        if not self.labels and Path(self.maps[0]).is_dir():
            return _of_folder(Path(self.maps[0]))
        if not self.labels:
            table = read_map_table(self.maps[0])
            folder = table.path.parent
            return table, [folder / name for name in table.columns["file"]]
        table, given = read_map_table(self.labels, needs_file=False), list(map(Path, _expanded(self.maps)))
        if "file" not in table.columns:
            lines = [file for file in given for _ in range(n_volumes(open_map(file, unpack=False)))]
            if len(lines) != len(table):
                raise DataError(
                    f"--labels {self.labels}: expected a line for each of {len(lines)} maps, got "
                    f"{len(table)}. Give a line per map, or a column file."
                )
            return table, lines
        return table, [_named(name, given, self.labels) for name in table.columns["file"]]


def _named(name: str, given: Sequence[Path], table: str) -> Path:
    """The one of some files that a table names, by as many folders as it writes."""
    parts = Path(name).parts[1:] if Path(name).is_absolute() else Path(name).parts
    fitting = [file for file in given if parts and file.parts[-len(parts) :] == parts]
    if len(fitting) != 1:
        many = f"fits {len(fitting)}" if fitting else "is not one"
        raise DataError(
            f"--labels {table}: {name or 'a line without a file'} {many} of the {len(given)} files of "
            "--maps. Write file names with as many folders as tell them apart, of files that are given."
        )
    return fitting[0]


def _of_folder(folder: Path) -> tuple[MapTable, list[Path]]:
    """The statistical maps of a BIDS derivative, by participant and contrast in their names."""
    found = [parse_name(path) for path in sorted(folder.rglob("sub-*_statmap.nii*"))]
    maps = [file for file in found if file and {"sub", "contrast"} <= set(file.entities)]
    effects = [file for file in maps if file.entities.get("stat") == "effect"]
    maps = effects or maps
    if not maps:
        raise DataError(
            f"--maps {folder}: expected maps sub-<label>_..._contrast-<condition>_..._statmap.nii.gz in it, "
            "found none. Give a table of the maps instead."
        )
    if len(kinds := sorted({file.entities.get("stat", "none") for file in maps})) > 1:
        raise DataError(
            f"--maps {folder}: expected maps of one statistic, got stat- {', '.join(kinds)}. Give a table."
        )
    names = ("ses", "run", "task", "space")
    columns = {name: np.array([file.entities.get(name, "") for file in maps]) for name in names}
    known = {"condition": "contrast", "participant": "sub"}
    columns |= {name: np.array([file.entities[key] for file in maps]) for name, key in known.items()}
    return MapTable(folder, columns, ()), [file.path for file in maps]


def _expanded(patterns: Sequence[str]) -> list[str]:
    """Names of files in natural order; patterns that the shell left alone are looked up."""
    found: list[str] = []
    for pattern in patterns:
        matched = sorted(glob(pattern, recursive=True), key=_natural) if "*" in pattern else [pattern]
        if not matched:
            raise DataError(f"--maps {pattern}: expected image files, found none. Check the pattern.")
        found += matched
    return found


def _natural(text: str) -> list[Any]:
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", text)]


def open_map(file: Path, unpack: bool = True) -> Any:
    """A file of one map or, with four axes, of several; see ``open_image``."""
    opened = open_image(file, "map", unpack)
    if len(opened.shape) > 4:
        raise DataError(
            f"map {file}: expected a 3-D image, or a 4-D one of several maps, got shape {opened.shape}. "
            "Write its maps as files of their own."
        )
    return opened


def _by_participant(names: NDArray) -> list[int]:
    """Lines in the natural order of participants, each one's as they are."""
    return sorted(range(len(names)), key=lambda k: _natural(str(names[k])))


def _known_lines(table: MapTable, files: list[Path]) -> tuple[MapTable, list[Path], NDArray, tuple[str, ...]]:
    """Lines with a condition and a participant, the files in order, and the volume of each line among all.

    A file that stands in several lines has a volume for each.
    """
    distinct = list(dict.fromkeys(files))
    for line, file in enumerate(files):
        if not str(table.columns.get("file", files)[line]):
            raise DataError(f"table {table.path}: line {line + 2} names no file. Fill in the column.")
        if not file.is_file():
            raise DataError(f"table {table.path}: {file} in line {line + 2} is not there. Check the name.")
    counts = {file: n_volumes(open_map(file, unpack=False)) for file in distinct}
    lines_of = {file: [k for k, each in enumerate(files) if each == file] for file in distinct}
    start, volume = 0, np.zeros(len(files), dtype=int)
    for file in distinct:
        if len(lines_of[file]) != counts[file]:
            raise DataError(
                f"table {table.path}: {file.name} has {counts[file]} map{'s' * (counts[file] > 1)}, but is "
                f"in {len(lines_of[file])} lines. Give a line for each of its maps, in their order."
            )
        volume[lines_of[file]] = start + np.arange(counts[file])
        start += counts[file]
    notes: list[str] = []
    conditions, people = table.columns["condition"], table.columns["participant"]
    known = (conditions != "") & (people != "")
    if not known.any():
        raise DataError(f"table {table.path}: no line has a condition and a participant. Fill them in.")
    if missing := int((~known).sum()):
        notes.append(f"{missing} of {len(known)} maps have no condition or participant and are left out.")
    return table.of(np.flatnonzero(known)), distinct, volume[known], tuple(notes)


def _check_conditions(table: MapTable) -> None:
    """Refuse many different numbers as conditions."""
    names = sorted(set(table.columns["condition"].tolist()))
    try:
        values = [float(name) for name in names]
    except ValueError:
        return
    if len(values) > _MOST_NUMBERS:
        raise DataError(
            f"table {table.path}: expected conditions, got {len(values)} different numbers, from "
            f"{min(values):g} to {max(values):g}. To predict a number give its column: --target COLUMN."
        )


def _samples(
    source: MapsSource, table: MapTable, files: list[Path], volume: NDArray, notes: tuple[str, ...]
) -> Samples:
    """Samples of lines sorted by participant."""
    names = list(dict.fromkeys(table.columns["participant"].tolist()))
    people = np.array([names.index(name) + 1 for name in table.columns["participant"]])
    conditions = table.columns["condition"]
    held_out, runs, how = _folds(source, table, people)
    used = {source.folds, *source.covariates, *STIMULI, *COLUMNS}
    if ignored := [name for name in table.unknown if name not in used]:
        notes += (f"Columns of {table.path.name} that are not used: {', '.join(ignored)}.",)
    notes += _repeated_stimuli(source, table, runs)
    volumes = Volumes([open_image(file, "map") for file in files], "map")
    steps = source.processing()
    inside = source.mask or _everywhere(volumes)
    matrix = volumes_to_matrix(volumes, inside, steps, voxels=EVERY_VOXEL)
    X, mask_img, more = _without_zeros(source, matrix.X[volume], matrix.mask_img)
    scaling = _scaling(source, people, conditions, runs)
    X = scale(X, people, scaling)
    counted = [f"{(conditions == name).sum()} {name}" for name in sorted(set(conditions.tolist()))]
    told = f"{len(X)} maps of {len(names)} participants ({', '.join(counted)})."
    samples = Samples(
        X=X,
        conditions=conditions.astype(str),
        runs=runs,
        mask_img=mask_img,
        background_img=mean_volume(volumes.images, magnitude=True, what="map"),
        subject="all",
        kind="beta",
        notes=(
            *notes,
            *matrix.notes,
            *more,
            *_scaling_notes(people, conditions, scaling, bool(source.scaling)),
        ),
        fingerprints=None if matrix.fingerprints is None else matrix.fingerprints[volume],
        origin=origin_of_files(files),
        held_out=held_out,
        people=people,
        covariates={name: _numbers(table, name) for name in source.covariates},
    )
    return samples.from_source(
        "maps",
        told,
        unit=samples.plural,
        participants=", ".join(f"{k} = {name}" for k, name in enumerate(names, start=1)),
        table=str(table.path),
        mask=source.mask or "all voxels that are finite and not 0",
        map_scaling=scaling,
        folds=how,
    )


def _folds(source: MapsSource, table: MapTable, people: NDArray) -> tuple[str, NDArray, str]:
    """What is held out, its number for every map, and a sentence about it."""
    conditions, n = table.columns["condition"], len(np.unique(people))
    groups = table.columns.get("group", np.full(len(people), ""))
    kinds = np.array([f"{group} {name}" for group, name in zip(groups, conditions, strict=True)])
    between = not any(len(set(conditions[people == one])) > 1 for one in np.unique(people))
    asked = source.folds
    if not asked:
        owners = [len(set(people[conditions == name])) for name in set(conditions)]
        asked = str(usual_folds(owners)) if between and min(owners) > 1 else PARTICIPANT
    if asked == PARTICIPANT:
        return PARTICIPANT, people, "Cross-validation leaves one participant out at a time."
    if asked.isdigit():
        if int(asked) > n:
            raise DataError(
                f"--folds: expected at most {n}, the number of participants, got {asked}. Lower it."
            )
        return (
            "fold",
            deal_folds(people, kinds, int(asked), source.seed),
            (
                f"Cross-validation uses {asked} folds of whole participants, with the same share of every "
                "group in each."
            ),
        )
    if asked not in table.columns:
        raise DataError(
            f"--folds {asked}: expected participant, a number of folds, or a column of {table.path.name} "
            f"({', '.join(table.columns)}). Change it."
        )
    values = table.columns[asked]
    if (values == "").any():
        raise DataError(f"--folds {asked}: {(values == '').sum()} maps have no {asked}. Fill in the column.")
    found = sorted(set(values.tolist()), key=_natural)
    if len(found) < 2:
        raise DataError(f"--folds {asked}: expected at least two values, got {len(found)}. Change it.")
    runs = np.array([found.index(value) + 1 for value in values])
    return asked, runs, f"Cross-validation leaves the maps of one {asked} out at a time."


def _numbers(table: MapTable, name: str) -> NDArray:
    """A column of numbers that differ."""
    if name not in table.columns:
        raise DataError(
            f"--covariates {name}: expected a column of {table.path.name} ({', '.join(table.columns)}). "
            "Change it."
        )
    try:
        values = table.columns[name].astype(float)
    except ValueError as error:
        raise DataError(
            f"--covariates {name}: expected a number in every line of {table.path.name} ({error}). Fill in "
            "the column."
        ) from error
    if not np.isfinite(values).all() or np.ptp(values) == 0:
        raise DataError(f"--covariates {name}: expected finite numbers that differ. Leave it out.")
    return values


def _repeated_stimuli(source: MapsSource, table: MapTable, runs: NDArray) -> tuple[str, ...]:
    """A sentence where maps of one stimulus are on both sides of a fold."""
    name = next((each for each in STIMULI if each in table.columns and each != source.folds), None)
    if name is None:
        return ()
    values = table.columns[name]
    known = [value for value in np.unique(values) if value]
    repeated = [value for value in known if len(np.unique(runs[values == value])) > 1]
    if not repeated:
        return ()
    return (
        f"{len(repeated)} of {len(known)} stimuli ({', '.join(repeated[:3])}{', ...' * (len(repeated) > 3)}) "
        f"have maps in several folds, so that what is decoded may be the stimuli. --folds {name} holds out "
        "one stimulus at a time.",
    )


def _splits(people: NDArray, runs: NDArray) -> bool:
    """Whether maps of a participant are on both sides of some fold."""
    return any(len(np.unique(runs[people == one])) > 1 for one in np.unique(people))


def _scaling(source: MapsSource, people: NDArray, conditions: NDArray, runs: NDArray) -> str:
    """The scaling asked for, or the usual one; refused where it would mix training and test maps."""
    numbers = np.unique(people, return_counts=True)[1]
    several = all(len(set(conditions[people == one])) > 1 for one in np.unique(people))
    if not source.scaling:
        return "centre" if several and not _splits(people, runs) else "none"
    if source.scaling == "none":
        return "none"
    if _splits(people, runs):
        raise DataError(
            f"--scaling {source.scaling} uses all maps of a participant, but --folds {source.folds} trains "
            "on some of them and tests others, which would then contain each other. Give --scaling none."
        )
    needed = _FEW if source.scaling == "zscore" else 2
    if numbers.min() < needed:
        raise DataError(
            f"--scaling {source.scaling}: expected at least {needed} compared maps of every participant, got "
            f"{numbers.min()}. Give --scaling none."
        )
    if not several:
        raise DataError(
            f"--scaling {source.scaling} takes away what differs between participants, and some have maps of "
            "one compared condition alone. Give --scaling none."
        )
    return source.scaling


def scale(X: NDArray, people: NDArray, scaling: str) -> NDArray:
    """Maps (M, N), each participant's by themselves: no map of anyone else, and no label, has a part."""
    if scaling == "none":
        return X
    out = np.empty_like(X)
    for one in np.unique(people):
        rows = people == one
        centred = X[rows] - X[rows].mean(axis=0)
        if scaling == "zscore":
            spread = centred.std(axis=0, ddof=1)
            centred /= np.where(spread > 0, spread, 1)
        out[rows] = centred
    return out


def _lone(people: NDArray, conditions: NDArray) -> tuple[str, ...]:
    """A sentence where a few participants keep all maps from being centred."""
    lone = [one for one in np.unique(people) if len(set(conditions[people == one])) == 1]
    n = len(np.unique(people))
    if not lone or 2 * len(lone) >= n:
        return ()
    return (
        f"{len(lone)} of {n} participants have maps of one compared condition only, so no maps are centred, "
        "which usually decodes worse. Leave these participants out (n/a as their condition) if you can.",
    )


def _scaling_notes(people: NDArray, conditions: NDArray, scaling: str, asked: bool) -> tuple[str, ...]:
    """What a reader must know of maps that were scaled with others."""
    if scaling == "none":
        return () if asked else _lone(people, conditions)
    numbers, notes = np.unique(people, return_counts=True)[1], []
    if len(set(conditions.tolist())) > 2:
        notes.append(
            f"Each participant's maps are scaled over all {len(set(conditions))} compared conditions. "
            "Two conditions alone (--pairs a:b) are scaled over these two, which usually decodes better."
        )
    if numbers.min() < numbers.max():
        notes.append(f"Participants have {numbers.min()} to {numbers.max()} compared maps.")
    return tuple(notes)


def _everywhere(volumes: Volumes) -> Any:
    """A mask of all voxels of the grid."""
    return like(volumes.images[0], np.ones(volumes.shape[:3], dtype=np.uint8))


def _without_zeros(source: MapsSource, X: NDArray, mask_img: Any) -> tuple[NDArray, Any, tuple[str, ...]]:
    """Maps without voxels that are 0 in some map (kept: in all); values that are missing have become 0."""
    empty = (X == 0).all(axis=0) if source.zero_voxels == "keep" else (X == 0).any(axis=0)
    n = int(empty.sum())
    if n == len(empty):
        worst = int((X == 0).sum(axis=1).argmax())
        raise DataError(
            f"--maps: no voxel has a value other than 0 in every map; line {worst + 1} of those used, by "
            f"participant, has {int((X[worst] == 0).sum())} of {n} without one. Leave that map out, or give "
            "--zero-voxels keep."
        )
    if not n:
        return X, mask_img, ()
    inside = np.asarray(mask_img.dataobj) != 0
    inside[inside] = ~empty
    where = "all maps" if source.zero_voxels == "keep" else "some map"
    told = f"{n} of {len(empty)} voxels of the mask are 0 or missing in {where} and were dropped."
    kept = np.ascontiguousarray(X[:, ~empty])
    return kept, like(mask_img, inside.astype(np.uint8)), (told,) if source.mask else ()
