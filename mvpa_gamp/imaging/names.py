"""Names of files: BIDS entities, which file speaks for which, and the names of files on surfaces.

Maps are named once, as volumes (``..._statmap.nii.gz``); on surfaces the same name leads to a CIFTI file
(``..._statmap.dscalar.nii``) or to a GIFTI pair (``..._hemi-L_..._statmap.func.gii``).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mvpa_gamp.imaging.errors import DataError

# Entities of the input that names of results repeat, in BIDS's order.
REPEATED = ("ses", "task", "acq", "ce", "rec", "dir", "hemi", "space", "res", "den")
_NAME = re.compile(r"(?P<entities>(?:[A-Za-z]+-[0-9A-Za-z+]+_)*)(?P<suffix>[0-9A-Za-z]+)\.(?P<extension>.+)")
IMAGE = ("nii.gz", "nii")
GIFTI, CIFTI = ".gii", (".dtseries.nii", ".dscalar.nii", ".dlabel.nii")
ALL_VERTICES = "all vertices that vary in every run"  # where no mask is given
HEMISPHERES = {"left": "L", "right": "R"}  # nilearn's names and BIDS's letters, in the order of columns
STRUCTURES = {"left": "CIFTI_STRUCTURE_CORTEX_LEFT", "right": "CIFTI_STRUCTURE_CORTEX_RIGHT"}
# How names tell the hemisphere, the surest first: BIDS's entity, FreeSurfer's lh and rh, a letter, a word.
_SIDES = tuple(
    re.compile(rf"(?<![0-9A-Za-z]){form}(?![0-9A-Za-z])")
    for form in ("hemi-([LR])", "([lr])h", "([LR])", "(left|right)")
)
_OTHER = {"L": "R", "R": "L", "l": "r", "r": "l", "left": "right", "right": "left"}
# Entities that stand behind hemi- in a BIDS name.
_LATER = (
    "space", "split", "recording", "chunk", "seg", "res", "den", "label", "from", "contrast", "desc", "stat",
)  # fmt: skip
_VOXELS = re.compile(r"(?<![\w./-])[Vv]oxels?(?![\w-]|\.tsv)")


def entity(text: str) -> str:
    """A BIDS entity value, ASCII letters and digits only: ``gamp-bg-lr`` becomes ``gampBgLr``."""
    parts = [part for part in re.split(r"[^0-9A-Za-z]+", text) if part]
    if not parts:
        raise DataError(f"name {text!r}: expected at least one letter or digit for a file name. Rename it.")
    return parts[0] + "".join(part[0].upper() + part[1:] for part in parts[1:])


def entities_text(entities: Mapping[str, str]) -> str:
    """``ses-01_task-x_space-y_`` in BIDS's order, empty without entities."""
    return "".join(f"{name}-{entities[name]}_" for name in REPEATED if name in entities)


def shared_entities(each: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """The entities of ``REPEATED`` that some files have in common, with the same value."""
    first, *others = each
    known = {name: first[name] for name in REPEATED if name in first}
    return {name: value for name, value in known.items() if all(o.get(name) == value for o in others)}


@dataclass(frozen=True)
class BidsFile:
    """A file named by BIDS: ``sub-01_task-x_bold.nii.gz`` has the entities sub and task, the suffix bold."""

    path: Path
    entities: dict[str, str]
    suffix: str
    extension: str

    def without(self, *names: str) -> dict[str, str]:
        """Its entities but some, numbers of runs and the like without leading zeros."""
        return {key: _plain(key, value) for key, value in self.entities.items() if key not in names}

    def speaks_for(self, other: "BidsFile", *ignored: str) -> bool:
        """BIDS's inheritance: every entity of this name is in the other one with the same value."""
        own, others = self.without(*ignored), other.without()
        return all(others.get(key) == value for key, value in own.items())


def parse_name(path: Path) -> BidsFile | None:
    """The parts of a BIDS name, None for a file that is not named that way."""
    match = _NAME.fullmatch(path.name)
    if match is None:
        return None
    pairs = [part.split("-", 1) for part in match["entities"].split("_") if part]
    return BidsFile(path, dict(pairs), match["suffix"], match["extension"])


def files_in(folder: Path, suffixes: tuple[str, ...], extensions: tuple[str, ...]) -> list[BidsFile]:
    """The files of a folder (not below it) with these suffixes and extensions, by name."""
    if not folder.is_dir():
        return []
    found = (parse_name(path) for path in sorted(folder.iterdir()))
    return [file for file in found if file and file.suffix in suffixes and file.extension in extensions]


def inherited(root: Path, file: BidsFile, suffix: str, extension: str) -> Iterator[BidsFile]:
    """Files from the dataset's root down to the file's own level that speak for it, general ones first."""
    for folder in _levels(root, file):
        found = files_in(folder, (suffix,), (extension,))
        yield from sorted(
            (other for other in found if other.speaks_for(file)), key=lambda other: len(other.entities)
        )


def _levels(root: Path, file: BidsFile) -> list[Path]:
    """Root, subject, session if there is one, and its functional data."""
    levels = [root, root / f"sub-{file.entities['sub']}"]
    if "ses" in file.entities:
        levels.append(levels[-1] / f"ses-{file.entities['ses']}")
    return [*levels, levels[-1] / "func"]


def natural(text: str) -> tuple[tuple[int, int | str], ...]:
    """A sorting key that puts run 2 before run 10."""
    parts = re.findall(r"[0-9]+|[^0-9]+", text)
    return tuple((0, int(part)) if part[0] in "0123456789" else (1, part) for part in parts)


def _plain(key: str, value: str) -> str:
    """An index without its leading zeros; labels stay as they are."""
    return str(int(value)) if key in ("run", "echo", "split") and value.isdecimal() else value


PEOPLE = ("participant", "group")  # what the numbers of runs count where maps are of many people
_RUNS = re.compile(r"\b([Rr])un(s?)\b(?!\.\w| time)")
_VOLUMES = re.compile(r"\b([Vv])olume(s?)\b")


def in_vertices(text: str) -> str:
    """What a text says of voxels, said of vertices; names of files and of columns stay as they are."""
    return _VOXELS.sub(_vertices, text)


def _vertices(found: "re.Match[str]") -> str:
    new = "vertices" if found[0].endswith("s") else "vertex"
    return new.capitalize() if found[0][0].isupper() else new


def in_maps(text: str, counted: str) -> str:
    """What a text says of runs and volumes, said of what runs are here (participants) and of maps."""
    text = text.replace("the BOLD series", "the maps")
    text = _VOLUMES.sub(lambda found: ("Map" if found[1] == "V" else "map") + found[2], text)
    return _RUNS.sub(lambda found: (counted.capitalize() if found[1] == "R" else counted) + found[2], text)


def is_surface_file(name: Any) -> bool:
    """Whether something is the name of a GIFTI or CIFTI file."""
    return isinstance(name, str | Path) and str(name).endswith((GIFTI, *CIFTI))


def is_cifti(path: Any) -> bool:
    """Whether a name is that of a CIFTI file."""
    return str(path).endswith(CIFTI)


def other_hemisphere(path: Path) -> Path:
    """The file of the other hemisphere: ``hemi-L`` and ``hemi-R``, or ``lh`` and ``rh``, exchanged."""
    found = _side(path)
    return path.with_name(path.name[: found.start(1)] + _OTHER[found[1]] + path.name[found.end(1) :])


def _side(path: Path) -> "re.Match[str]":
    """Where a name tells its hemisphere."""
    found = next((found for form in _SIDES if (found := form.search(path.name))), None)
    if found is None:
        raise DataError(
            f"surface file {path}: expected hemi-L or hemi-R (or lh and rh, L and R) in its name, to find "
            "the file of the other hemisphere. Rename the pair."
        )
    return found


def pair_of(path: Path) -> tuple[Path, Path]:
    """The left and the right file of a pair, of which one is named; both must be there."""
    other = other_hemisphere(path)
    pair = (path, other) if _side(path)[1].lower().startswith("l") else (other, path)
    for each in pair:
        if not each.is_file():
            raise DataError(
                f"surface file {each}: expected a pair, left and right hemisphere, but this file is missing. "
                "Put both into one folder, with names that differ only in the hemisphere."
            )
    return pair


def files_of(path: Path) -> tuple[Path, ...]:
    """The files of a series that is named by one: both of a GIFTI pair, else itself."""
    return pair_of(path) if path.name.endswith(GIFTI) else (path,)


def one_of_each_pair(names: Iterable[str]) -> tuple[str, ...]:
    """Names in order, of GIFTI pairs the one that comes first: a pair is given by either or by both files."""
    kept: dict[str, None] = {}
    for name in names:
        path = Path(name)
        both = is_surface_file(name) and not is_cifti(name) and str(other_hemisphere(path)) in kept
        kept |= {} if both else {name: None}
    return tuple(kept)


def hemisphere_path(path: Path, part: str, ending: str = "") -> Path:
    """The file of one hemisphere of a map named as a volume: ``hemi-`` before ``space-`` or what follows.

    ``sub-01_space-x_stat-t_statmap.nii.gz`` gives ``sub-01_hemi-L_space-x_stat-t_statmap.func.gii``; masks
    end in ``.label.gii``.
    """
    *entities, suffix = _stem(path).split("_")
    place = next((i for i, each in enumerate(entities) if each.split("-")[0] in _LATER), len(entities))
    entities.insert(place, f"hemi-{HEMISPHERES[part]}")
    usual = ".label.gii" if suffix in ("mask", "dseg") else ".func.gii"
    return path.with_name("_".join([*entities, suffix]) + (ending or usual))


def surface_path(mask_path: Path, name: str) -> Path:
    """Where the meshes of a folder are, next to its mask: ``..._desc-<name>_surface``."""
    stem = _stem(mask_path).removesuffix("_mask")
    return mask_path.with_name(re.sub(r"desc-[0-9A-Za-z]+$", f"desc-{name}", stem) + "_surface.nii.gz")


def ground_files(mask_path: Path) -> list[Path]:
    """Meshes and sulcal depth that lie beside the mask of a folder."""
    return sorted(mask_path.parent.glob("*_surface.*.gii"))


def cifti_path(path: Path) -> Path:
    """The CIFTI file of a map named as a volume; atlases end in ``.dlabel.nii``."""
    stem = _stem(path)
    return path.with_name(stem + (".dlabel.nii" if stem.endswith("_dseg") else ".dscalar.nii"))


def _stem(path: Path) -> str:
    return path.name.removesuffix(".gz").removesuffix(".nii")


def map_files(path: Path) -> list[Path]:
    """The files of a map named as a volume: itself, or those of a folder whose maps are on surfaces."""
    if not path.name.endswith(".nii.gz") or path.is_file():
        return [path]
    pair = {part: hemisphere_path(path, part) for part in HEMISPHERES}
    if all(each.is_file() for each in pair.values()):
        return list(pair.values())
    if cifti_path(path).is_file() or next(path.parent.glob("*mask.dscalar.nii"), None):
        return [cifti_path(path)]
    return [pair[part] for part in _hemispheres(path.parent)] or [path]


def _hemispheres(folder: Path) -> list[str]:
    """The hemispheres of which a folder has meshes; a study may be of one."""
    found = {part: f"*hemi-{letter}_*desc-analysed_surface.surf.gii" for part, letter in HEMISPHERES.items()}
    return [part for part, name in found.items() if next(folder.glob(name), None)]


def expanded(paths: Iterable[Path]) -> Iterator[Path]:
    """The files of maps, and whatever else, by their own names."""
    for path in paths:
        files = map_files(path)
        yield from files
        if files != [path] and _stem(path).endswith("desc-analysed_mask"):
            yield from ground_files(path)


def is_there(path: Path) -> bool:
    """Whether a map named as a volume is there, as a volume or on surfaces."""
    return all(each.is_file() for each in map_files(path))


def is_surface_map(path: Path) -> bool:
    """Whether a map named as a volume is kept as one on a surface."""
    return map_files(path) != [path]
