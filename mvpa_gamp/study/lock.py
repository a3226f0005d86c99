"""One run at a time in a results folder: a small file, locked while a process writes there, says which."""

import errno
import json
import os
import socket
import stat
import time
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from mvpa_gamp.imaging.disk import PLAIN, read_plain, write_error
from mvpa_gamp.results.names import ResultsFolder
from mvpa_gamp.study.ending import StudyError

_LARGEST = 10_000  # bytes of a lock
_WAITS = (0.01, 0.02, 0.05, 0.0)  # seconds between trials
_WINDOWS = os.name == "nt"
_HELD = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES)


class Holder(NamedTuple):
    """The run that holds a folder."""

    pid: int
    host: str
    boot: str  # of the system that runs since then, containers of one machine share it; "" if unknown
    space: str  # in which the process has its number: containers number theirs on their own
    born: str  # when the process began, in the clock ticks of its system; a number that is used again differs
    since: str
    owner: str  # one for all processes of a command: a worker that died leaves its folder to the next one

    @classmethod
    def me(cls, owner: str) -> "Holder":
        """This process."""
        pid, now = os.getpid(), datetime.now(timezone.utc).isoformat(timespec="seconds")
        return cls(pid, socket.gethostname(), _boot(), _space(), _born(pid) or "", now, owner)

    @property
    def is_here(self) -> bool:
        """Whether it is a process of this machine, perhaps of another container."""
        if self.boot and _boot():
            return self.boot == _boot()
        return self.host == socket.gethostname()

    def holds(self, owner: str, locked: bool | None) -> bool:
        """Whether it keeps this process, one of the command ``owner``, out of the folder.

        ``locked`` says whether a process of this machine has locked the file; None where the file system
        has no locks, and only a process that has its number here can be asked for. Of another machine's
        processes nothing is known.
        """
        if self.owner == owner and (not locked or (self.pid, self.space) == (os.getpid(), _space())):
            return False
        if self.is_here and locked is None and self.space == _space():
            return _born(self.pid) == self.born
        return not self.is_here or locked is not False


class FolderLock:
    """Holds a results folder from :meth:`take` to the end of the ``with`` block."""

    def __init__(self, folder: ResultsFolder, owner: str) -> None:
        self.folder, self.owner = folder, owner
        self._file: int | None = None

    def take(self) -> None:
        """Make the folder and its lock, or say who holds it."""
        path = self.folder.lock
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            while self._file is None:
                self._file = self._try(path)
            content = json.dumps(Holder.me(self.owner)._asdict()).encode()
            os.ftruncate(self._file, 0)
            os.lseek(self._file, 0, os.SEEK_SET)
            os.write(self._file, content)
        except OSError as error:
            self.release()
            raise write_error(path, error) from error

    def _try(self, path: Path) -> int | None:
        """The open and locked file, None where it was removed meanwhile."""
        number = _open(path, os.O_RDWR | os.O_CREAT)
        try:
            _refuse_if_held(self.folder, self.owner, _is_locked(number, alone=True))
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(number), path.stat()):
                    return number
        except BaseException:
            os.close(number)
            raise
        os.close(number)
        return None

    def release(self) -> None:
        """Let others in."""
        if self._file is not None:
            if _WINDOWS:  # where an open file cannot be removed
                os.close(self._file)
            with suppress(OSError):
                self.folder.lock.unlink()
            if not _WINDOWS:
                os.close(self._file)
            self._file = None

    def __enter__(self) -> "FolderLock":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def check_lock(folder: ResultsFolder, owner: str) -> None:
    """Refuse a folder that another run is writing; one whose process has ended holds nothing."""
    try:
        number = _open(folder.lock, os.O_RDONLY)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise _damaged(folder, error.strerror or str(error)) from error
    try:
        _refuse_if_held(folder, owner, _is_locked(number, alone=False))
    finally:
        os.close(number)


def _refuse_if_held(folder: ResultsFolder, owner: str, locked: bool | None) -> None:
    holder = _read(folder)
    if not locked if holder is None else not holder.holds(owner, locked):
        return
    who = "" if holder is None else f" (process {holder.pid} on {holder.host}, since {holder.since})"
    raise StudyError(
        f"{folder.root}: another run is writing there{who}. Wait until it has ended, or give another folder; "
        f"if it is no longer running, delete {folder.lock}."
    )


def _read(folder: ResultsFolder) -> Holder | None:
    """Who a lock says holds a folder; None of an empty one, which a run that was killed may leave."""
    try:
        content = read_plain(folder.lock, _LARGEST + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _damaged(folder, error.strerror or str(error)) from error
    if len(content) > _LARGEST:
        raise _damaged(folder, "it is too large")
    if not content.strip():
        return None
    try:
        known: Any = json.loads(content)
        holder = Holder(**known)
    except (ValueError, TypeError, RecursionError):
        raise _damaged(folder, "it cannot be read") from None
    texts = all(isinstance(value, str) for value in holder[1:])
    if type(holder.pid) is not int or not 0 < holder.pid < 2**31 or not texts:
        raise _damaged(folder, "it names no process")
    return holder


def _damaged(folder: ResultsFolder, reason: str) -> StudyError:
    return StudyError(
        f"{folder.lock}: expected a lock, which says who is writing in {folder.root}, but {reason}. If no "
        "run is writing there, delete it."
    )


def _open(path: Path, flags: int) -> int:
    """Open a file, and neither what a link leads to nor a pipe."""
    number = os.open(path, flags | PLAIN, 0o666)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(f"{path} is not a file")
    return number


def _is_locked(number: int, alone: bool) -> bool | None:
    """Whether another process has locked an open file; None where the file system has no locks.

    If not, it is locked here until it is closed, with or without others who only look.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        return None
    how = fcntl.LOCK_EX if alone else fcntl.LOCK_SH
    for wait in _WAITS:  # for somebody who only looks
        try:
            fcntl.flock(number, how | fcntl.LOCK_NB)
            return False
        except OSError as error:
            if error.errno not in _HELD:
                return None
        time.sleep(wait)
    return True


def _boot() -> str:
    """What tells one start of the system from another."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""


def _space() -> str:
    """The space of process numbers."""
    with suppress(OSError):
        return os.readlink("/proc/self/ns/pid")
    return ""


def _born(pid: int) -> str | None:
    """When a process began, "" where the system does not say; None when there is no such process."""
    if _WINDOWS:
        return _born_on_windows(pid)
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


_MAY_ASK, _ALIVE, _DENIED = 0x1000, 259, 5  # PROCESS_QUERY_LIMITED_INFORMATION, STILL_ACTIVE, access denied


def _born_on_windows(pid: int) -> str | None:
    """The same on Windows, where signal 0 is Ctrl-C."""
    import ctypes

    kernel: Any = getattr(ctypes, "windll").kernel32  # noqa: B009
    kernel.OpenProcess.restype = ctypes.c_void_p
    handle = kernel.OpenProcess(_MAY_ASK, False, pid)
    if not handle:
        return "" if kernel.GetLastError() == _DENIED else None
    try:
        code, times = ctypes.c_ulong(), [ctypes.c_ulonglong() for _ in range(4)]
        asked = kernel.GetExitCodeProcess(ctypes.c_void_p(handle), ctypes.byref(code))
        if asked and code.value != _ALIVE:
            return None
        known = kernel.GetProcessTimes(ctypes.c_void_p(handle), *map(ctypes.byref, times))
        return str(times[0].value) if known else ""
    finally:
        kernel.CloseHandle(ctypes.c_void_p(handle))
