"""One run at a time in a results folder: a small file says which process is writing there."""

import json
import os
import socket
import time
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from mvpa_gamp.imaging.atomic_files import write_error
from mvpa_gamp.results.names import ResultsFolder
from mvpa_gamp.study.errors import StudyError

_PATIENCE = 1.0  # seconds in which a lock that was just made gets its content


class Holder(NamedTuple):
    """The run that holds a folder."""

    pid: int
    host: str
    born: str  # when the process began, in the clock ticks of its system; a number that is used again differs
    since: str
    owner: str  # one for all processes of a command: a worker that died leaves its folder to the next one

    @property
    def is_gone(self) -> bool:
        """Whether its process has ended; of another machine's processes nothing is known."""
        return self.host == socket.gethostname() and _born(self.pid) != self.born


class FolderLock:
    """Holds a results folder from :meth:`take` to the end of the ``with`` block."""

    def __init__(self, folder: ResultsFolder, owner: str) -> None:
        self.folder, self.owner = folder, owner
        self._taken = False

    def take(self) -> None:
        """Make the folder and its lock, or say who holds it."""
        path = self.folder.lock
        mine = Holder(os.getpid(), socket.gethostname(), _born(os.getpid()) or "", _now(), self.owner)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise write_error(path, error) from error
        while True:
            try:
                with path.open("x", encoding="utf-8") as stream:
                    self._taken = True
                    stream.write(json.dumps(mine._asdict()))
                return
            except FileExistsError:
                check_lock(self.folder, self.owner)
                _set_aside(path, self.owner)
            except OSError as error:
                self.release()
                raise write_error(path, error) from error

    def release(self) -> None:
        """Let others in."""
        if self._taken:
            with suppress(OSError):
                self.folder.lock.unlink()
            self._taken = False

    def __enter__(self) -> "FolderLock":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def check_lock(folder: ResultsFolder, owner: str) -> None:
    """Refuse a folder that another run is writing; one whose process has ended holds nothing."""
    holder = _read(folder.lock)
    if holder is None or holder.is_gone or holder.owner == owner:
        return
    raise StudyError(
        f"{folder.root}: another run is writing there (process {holder.pid} on {holder.host}, since "
        f"{holder.since}). Wait until it has ended, or give another folder; if it is no longer running, "
        f"delete {folder.lock}."
    )


def _set_aside(path: Path, owner: str) -> None:
    """Remove a lock that holds nothing; one that somebody made meanwhile is put back."""
    aside = path.with_name(f".writing-lock-{os.getpid()}")
    with suppress(OSError):
        os.rename(path, aside)
        holder = _read(aside)
        if holder is not None and not holder.is_gone and holder.owner != owner:
            os.rename(aside, path)
            return
        aside.unlink()


def _read(path: Path) -> Holder | None:
    """Who holds a folder; None when nobody does, or a lock has no content although it is not new."""
    while True:
        try:
            return Holder(**json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError):
            with suppress(OSError):
                if time.time() - path.stat().st_mtime < _PATIENCE:
                    time.sleep(_PATIENCE / 10)
                    continue
            return None


def _born(pid: int) -> str | None:
    """When a process began, "" where the system does not say; None when there is no such process."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except OSError:  # somebody else's process
        pass
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return ""
    return None if state == "Z" else fields[18]  # the 22nd field of proc(5), starttime; Z has ended


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
