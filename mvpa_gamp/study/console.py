"""What a run says: table rows on stdout, progress on stderr (a bar on a terminal, plain lines elsewhere)."""

import os
import shutil
import sys
import time
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from types import TracebackType
from typing import Any

from mvpa_gamp.imaging.disk import WriteError, make_way, note, write_error

_A_WHILE = 10.0  # seconds
_SOON, _MINUTES = 2.0, 90.0  # seconds: less is not worth a word; more is told in minutes


class Console:
    """Speaks for a run, and keeps a log once it has a folder. ``level``: 0 quiet, 1 normal, 2 verbose."""

    def __init__(self, level: int = 1) -> None:
        self.level = level
        self._log: Path | None = None
        self._lost = [name for name in ("stdout", "stderr") if getattr(sys, name) is None]
        self._bar: Any = None
        self._total = self._done = self._before = 0
        self._things = ""
        self._last_minor = -_A_WHILE
        self._started = self._counted_from = time.monotonic()

    @property
    def width(self) -> int:
        """Columns of the terminal; a file is taken for a wide one."""
        return shutil.get_terminal_size().columns if _is_terminal(sys.stdout) else 120

    def log_to(self, path: Path) -> None:
        """Append everything said from now on to ``path``, with the time."""
        try:
            note(path)
            path.parent.mkdir(parents=True, exist_ok=True)
            make_way(path)
        except OSError as error:
            raise write_error(path, error) from error
        self._log = path

    def result(self, text: str, always: bool = False) -> None:
        """Lines of the table: stdout."""
        if self.level or always:
            self._write(text, sys.stdout)
        self._record(text)

    def note(self, text: str, level: int = 1) -> None:
        """A sentence about what goes on: stderr."""
        if self.level >= level:
            self._write(text, sys.stderr)
        self._record(text)

    def start(self, total: int, done: int = 0, things: str = "") -> None:
        """Begin to count ``total`` pieces of work, ``done`` of them known from before.

        ``things`` is what is counted where it is not fits or jobs. One study may follow another.
        """
        self._close_bar()
        self._total, self._done, self._before, self._things = total, done, done, things
        self._counted_from = time.monotonic()
        if self.level and _is_terminal(sys.stderr):
            from tqdm import tqdm

            shape = {"bar_format": "{desc} |{bar}|{postfix}"} if things else {"unit": "fit"}
            self._bar = tqdm(
                total=total, initial=done, file=sys.stderr, leave=False, dynamic_ncols=True, mininterval=0,
                desc=self._counted() if things else None, **shape,
            )  # fmt: skip

    def advance(self, text: str, minor: bool = False, by: int = 1) -> None:
        """So many more pieces are done; of minor ones a plain stream gets a line now and then."""
        self._done += by
        seconds = f"{time.monotonic() - self._started:.0f} s"
        left = "" if self._things else self._left()
        line = f"[{self._counted()}, {seconds}{left}] {text}"
        self._record(line)
        if self._bar is not None:
            if self._things:
                self._bar.set_description_str(self._counted(), refresh=False)
            self._bar.set_postfix_str(text, refresh=False)
            self._bar.update(by)
        elif self.level and (not minor or self._is_time()):
            self._write(line, sys.stderr)

    def _counted(self) -> str:
        """How far it is: "3/6", or "340 of 1,000 permutations, about 2 min left"."""
        if not self._things:
            return f"{self._done}/{self._total}"
        return f"{self._done:,} of {self._total:,} {self._things}{self._left()}"

    def _left(self) -> str:
        """How long the rest will take if it goes on like this."""
        since = self._done - self._before
        if not since:
            return ""
        rest = (time.monotonic() - self._counted_from) / since * (self._total - self._done)
        if rest < _SOON:
            return ""
        return f", about {rest / 60:.0f} min left" if rest >= _MINUTES else f", about {rest:.0f} s left"

    def _is_time(self) -> bool:
        """Whether the last one is done, or a while has passed since the last line of its kind."""
        now = time.monotonic()
        if self._done < self._total and now - self._last_minor < _A_WHILE:
            return False
        self._last_minor = now
        return True

    def _write(self, text: str, stream: Any) -> None:
        """Print without tearing the bar apart."""
        if stream is None:
            return
        try:
            if self._bar is not None:
                self._bar.write(text, file=stream)
            else:
                print(text, file=stream)
            stream.flush()
        except BrokenPipeError:
            _silence(stream)
        except (OSError, ValueError):  # full, or closed meanwhile: files are finished all the same
            self._lost.append("stdout" if stream is sys.stdout else "stderr")
            _silence(stream)

    def _record(self, text: str) -> None:
        """Add to the log, if there is one."""
        if self._log is not None:
            now = datetime.now(timezone.utc).isoformat(timespec="seconds")
            try:
                with self._log.open("a", encoding="utf-8") as stream:
                    stream.write("".join(f"{now} {line}\n" for line in text.splitlines()))
            except OSError as error:
                raise write_error(self._log, error) from error

    def __enter__(self) -> "Console":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close_bar()
        if self._lost and error is None:
            lost = " and ".join(dict.fromkeys(self._lost))
            raise WriteError(
                f"{lost} was closed or full, so not everything was printed. Files are written as always; "
                f"{self._log or 'the log of a run'} has every line."
            )

    def _close_bar(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def _is_terminal(stream: Any) -> bool:
    """Whether somebody watches; nobody does where a stream was closed."""
    return stream is not None and stream.isatty()


def _silence(stream: Any) -> None:
    """Lead a stream whose reader went away (``| head``) to nowhere: the work goes on, unheard."""
    with suppress(OSError, ValueError):
        number = stream.fileno()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, number)
        os.close(nowhere)
