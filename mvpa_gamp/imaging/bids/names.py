"""BIDS file names: entities, suffix and extension, and which file speaks for which other one."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_NAME = re.compile(r"(?P<entities>(?:[A-Za-z]+-[0-9A-Za-z+]+_)*)(?P<suffix>[0-9A-Za-z]+)\.(?P<extension>.+)")
IMAGE = ("nii.gz", "nii")


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
