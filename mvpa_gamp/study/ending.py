"""How a command ends: sentences and exit codes, also where a signal or a closed terminal ends it."""

import io
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from mvpa_gamp.imaging.disk import WriteError


class StudyError(ValueError):
    """Usage or data that cannot be run; the message says what was expected, what came, what to do."""


_BACKEND = "MPLBACKEND"
# What comes up where a table or a summary is whole, but says something odd.
UNREADABLE = (OSError, LookupError, ValueError, TypeError, AttributeError, ArithmeticError)


class Ended(KeyboardInterrupt):
    """A signal by which schedulers and closed terminals end a process."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.code = 128 + number


def ended(command: str, given: dict[str, Any], run: Callable[[dict[str, Any]], int]) -> int:
    """Run a command; returns its exit code: whatever breaks becomes one sentence on stderr."""
    _open_streams()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without UTF-8 shows "?" and ends no run
    with _signals() as came, _without_window():
        try:
            return run(given)
        except KeyboardInterrupt as error:
            return _interrupted(command, error)
        except Exception as error:  # a run must end with a sentence, whatever broke
            if came:  # while processes that share the signal die, other errors come up
                return _interrupted(command, came[0])
            if isinstance(error, StudyError):
                return _failed(command, {}, str(error), 2)  # what was given is wrong: the sentence is enough
            if isinstance(error, WriteError):
                return _failed(command, given, str(error), 1)
            return _failed(command, given, f"{type(error).__name__}: {error} (--verbose shows where)", 1)


def _interrupted(command: str, error: KeyboardInterrupt) -> int:
    """Say that the run can go on, and return the exit code of its signal."""
    code, by = (error.code, f" by {error}") if isinstance(error, Ended) else (130, "")
    return _failed(command, {}, f"interrupted{by}. Continue with the same command and --resume.", code)


def _failed(command: str, given: dict[str, Any], message: str, code: int) -> int:
    """Say what went wrong, on stderr, if anybody listens there."""
    with suppress(OSError, ValueError):
        if given.get("verbose"):
            traceback.print_exc()
        print(f"{command}: error: {message}", file=sys.stderr, flush=True)
    return code


@contextmanager
def _signals() -> Iterator[list[Ended]]:
    """SIGTERM and SIGHUP end a command as Ctrl-C does, so that nothing half done and no lock is left."""
    came: list[Ended] = []

    def end(number: int, frame: Any) -> None:
        if not came:  # further ones do not disturb what is being put in order
            came.append(Ended(number))
            raise came[0]

    before = {}
    if threading.current_thread() is threading.main_thread():
        wanted = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
        before = {number: signal.getsignal(number) for number in wanted}
        for number, handler in before.items():
            if handler is not signal.SIG_IGN:  # as nohup asks for
                signal.signal(number, end)
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _without_window() -> Iterator[None]:
    """Figures are files: a notebook's or a desktop's way to show them is not needed, and may not be there."""
    before = os.environ.get(_BACKEND)
    os.environ[_BACKEND] = "agg"
    try:
        yield
    finally:
        os.environ.pop(_BACKEND)
        if before is not None:
            os.environ[_BACKEND] = before


def _open_streams() -> None:
    """Open what the caller closed: a file of results must not become the place where libraries complain."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def one_line(error: Exception) -> str:
    """What an error says, without its line breaks."""
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__
