"""Files that are there whole or not at all."""

import errno
import hashlib
import os
import uuid
from contextlib import suppress
from pathlib import Path

from mvpa_gamp.imaging.folder_record import TEMPORARY, note

_FULL = (errno.ENOSPC, errno.EDQUOT)


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
