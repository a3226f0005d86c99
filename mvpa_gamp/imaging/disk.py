"""Files that are there whole or not at all, and the record of a folder: every file that was written into it.

A file in its logs grows by a line before each file is written, so that a run that is killed leaves no file
without one. The record says what kind of folder it is and what may be removed: a file that it names, as it
was written. What is not named, or was edited since, belongs to somebody else. A record that came with a
folder is data: its paths stay inside the folder, and links are never followed.
"""

import errno
import hashlib
import json
import os
import stat
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

_FULL = (errno.ENOSPC, errno.EDQUOT)
NAME = "logs/written.jsonl"
TEMPORARY = ".writing-"  # begins the name of a file that is being written
# To open a file as it is, neither what a link leads to nor a pipe that nobody writes into.
PLAIN = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))
_LARGEST = 50_000_000  # bytes of a record that is read
_FOUND_BY_NAME = PurePosixPath("logs/run.log")  # grows line by line and has no digest


class WriteError(OSError):
    """A file that could not be written; its text is the whole sentence."""


def write_atomic(path: Path, *chunks: bytes | memoryview) -> Path:
    """Write ``chunks`` to ``path`` through a temporary file in the same folder and one rename.

    A reader, or a run that was killed, sees all of the file or nothing of it. Folders are made as needed; an
    empty folder in the place of the file makes way for it. What cannot be written raises a ``WriteError``.
    In a folder with a record the file is noted there first.
    """
    waiting = path.with_name(f"{TEMPORARY}{uuid.uuid4().hex}")
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    try:
        note(path, digest.hexdigest(), waiting.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        with waiting.open("xb") as stream:
            for chunk in chunks:
                stream.write(chunk)
        make_way(path)
        os.replace(waiting, path)
    except OSError as error:
        _forget(waiting)
        raise write_error(path, error) from error
    except BaseException:
        _forget(waiting)
        raise
    return path


def make_way(path: Path) -> None:
    """Remove an empty folder where a file is to be; one that holds something is refused."""
    if path.is_dir() and not path.is_symlink():
        path.rmdir()


def write_error(path: Path, error: OSError) -> WriteError:
    """The sentence on a file that could not be written, and what to do."""
    if isinstance(error, WriteError):
        return error
    if error.errno in _FULL:
        reason, advice = "the disk is full", "Free some space"
    elif path.is_dir():
        reason, advice = "a folder with files is in its place", "Move that folder away"
    elif blocking := next((each for each in path.parents if each.exists() and not each.is_dir()), None):
        reason, advice = f"{blocking} is a file, a folder is needed", "Move that file away"
    else:
        reason, advice = error.strerror or str(error), "Make sure that you may write there"
    return WriteError(
        f"{path} cannot be written: {reason}. {advice}, then try again (commands continue with --resume)."
    )


def _forget(waiting: Path) -> None:
    """Remove a temporary file, if there is one."""
    with suppress(OSError):
        waiting.unlink()


@dataclass
class Record:
    """What a record says: digests by path in the folder, of the last run and of those before it."""

    kind: str
    token: str
    written: dict[str, str] = field(default_factory=dict)
    before: dict[str, str] = field(default_factory=dict)
    temporary: set[str] = field(default_factory=set)  # names under which files were first written


def begin(root: Path, kind: str, token: str) -> None:
    """Make the folder one of this kind, or begin another run in it."""
    (root / NAME).parent.mkdir(parents=True, exist_ok=True)
    _append(root / NAME, {"written_by": "mvpa_gamp", "kind": kind, "token": token}, os.O_CREAT)


def note(path: Path, digest: str = "", waiting: str = TEMPORARY) -> None:
    """Say that a file is about to be written, first as ``waiting`` beside it; without a record, nothing.

    A file that grows has no digest.
    """
    home = home_of(path)
    if home is None:
        return
    place = path.absolute().relative_to(home)
    for parent in [home / above for above in place.parents][:-1]:
        if parent.is_symlink():
            raise OSError(f"{parent} is a link, a folder is needed")
    _append(home / NAME, [digest, place.as_posix(), waiting])


def home_of(path: Path) -> Path | None:
    """The nearest folder above a file that has a record."""
    return next((each for each in path.absolute().parents if _is_file(each / NAME)), None)


def read_record(root: Path) -> Record | None:
    """The record of a folder, None where it has none; lines that cannot be read name nothing."""
    try:
        content = read_plain(root / NAME, _LARGEST)
    except OSError:
        return None
    found: Record | None = None
    for line in content.decode("utf-8", "replace").splitlines():
        said = _parsed(line)
        if isinstance(said, dict) and said.get("written_by") == "mvpa_gamp":
            before = {} if found is None else found.before | found.written
            temporary = set() if found is None else found.temporary
            found = Record(str(said.get("kind")), str(said.get("token")), {}, before, temporary)
        elif found is not None and isinstance(said, list) and _is_entry(said):
            found.written[said[1]] = said[0]
            found.temporary.add(str(PurePosixPath(said[1]).with_name(said[2])))
    return found


def remove_recorded(root: Path, record: Record, below: str = "") -> None:
    """Remove the files that a record names and that are as they were written, and folders left empty.

    ``below`` is the beginning of the paths to remove, by default all.
    """
    known = record.before | record.written
    homes = set()
    for name, digest in known.items():
        path = root / name
        if name.startswith(below) and _is_ours(root, name, digest):
            path.unlink()
            homes |= set(path.relative_to(root).parents)
    for place in sorted(homes, key=lambda each: -len(each.parts)):
        if place.parts:
            with suppress(OSError):  # what holds something else stays
                (root / place).rmdir()


def remove_temporary(root: Path, record: Record) -> None:
    """Remove what a killed run was writing."""
    for name in record.temporary:
        if _is_plain(root, name):
            (root / name).unlink()


def edited(root: Path, name: str) -> bool:
    """Whether a file of a folder with a record is not as it was written there."""
    record = read_record(root)
    if record is None or not _is_plain(root, name):
        return False
    return _digest(root / name) != (record.before | record.written).get(name)


def read_plain(path: Path, most: int = -1) -> bytes:
    """The content of a file, of which at most so many bytes; links, pipes and devices raise an OSError."""
    number = os.open(path, os.O_RDONLY | PLAIN)
    with os.fdopen(number, "rb") as stream:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise OSError(f"{path} is not a file")
        return stream.read(most)


def stays_inside(name: str) -> bool:
    """Whether a path is one below a folder."""
    place = PurePosixPath(name)
    return bool(place.parts) and not place.is_absolute() and ".." not in place.parts and "\0" not in name


def irregular(root: Path, ours: Callable[[str], bool]) -> Iterator[tuple[Path, str]]:
    """Links, pipes and devices at the places ``ours(name)`` of a folder, each with what it is."""
    for entry in _entries(root):
        if not ours(entry.name):
            continue
        waiting = [entry]
        while waiting:
            each = waiting.pop()
            if each.is_dir(follow_symlinks=False):
                waiting += _entries(Path(each.path))
            elif not each.is_file(follow_symlinks=False):
                yield Path(each.path), "a link" if each.is_symlink() else "a pipe, socket or device"


def _entries(folder: Path) -> list["os.DirEntry[str]"]:
    with suppress(OSError), os.scandir(folder) as found:
        return sorted(found, key=lambda entry: entry.name)
    return []


def _is_ours(root: Path, name: str, digest: str) -> bool:
    """Whether a named file is inside, no link leads to it, and it is as it was written."""
    if not _is_plain(root, name):
        return False
    return PurePosixPath(name) == _FOUND_BY_NAME or _digest(root / name) == digest


def _is_plain(root: Path, name: str) -> bool:
    """Whether a path stays in the folder, passes no link, and is a file."""
    place = PurePosixPath(name)
    if not stays_inside(name):
        return False
    return not any((root / above).is_symlink() for above in place.parents) and _is_file(root / place)


def _is_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except (OSError, ValueError):
        return False


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""


def _is_entry(said: list[Any]) -> bool:
    """A digest, a path and a temporary name, which begins as those of this package do."""
    words = len(said) == 3 and all(isinstance(each, str) for each in said)
    return words and said[1] != "" and said[2].startswith(TEMPORARY) and "/" not in said[2]


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _append(path: Path, said: Any, how: int = 0) -> None:
    """One line more; it begins with a line break, so that one cut short by a killed run harms no other."""
    number = os.open(path, os.O_WRONLY | os.O_APPEND | PLAIN | how, 0o666)
    try:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise OSError(f"{path} is not a file")
        os.write(number, ("\n" + json.dumps(said)).encode())
    finally:
        os.close(number)
