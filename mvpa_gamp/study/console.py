"""What a run says: table rows on stdout, progress on stderr (a bar on a terminal, plain lines elsewhere)."""

import os
import shutil
import sys
import time
from datetime import datetime, timezone
from pathlib import Path
from types import TracebackType
from typing import Any

_A_WHILE = 10.0  # seconds


class Console:
    """Speaks for a run, and keeps a log once it has a folder. ``level``: 0 quiet, 1 normal, 2 verbose."""

    def __init__(self, level: int = 1) -> None:
        self.level = level
        self._log: Path | None = None
        self._bar: Any = None
        self._total = self._done = 0
        self._last_minor = -_A_WHILE
        self._started = self._counted_from = time.monotonic()

    @property
    def width(self) -> int:
        """Columns of the terminal; a file is taken for a wide one."""
        return shutil.get_terminal_size().columns if sys.stdout.isatty() else 120

    def log_to(self, path: Path) -> None:
        """Append everything said from now on to ``path``, with the time."""
        path.parent.mkdir(parents=True, exist_ok=True)
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

    def start(self, total: int) -> None:
        """Begin to count ``total`` pieces of work; one study may follow another."""
        self._close_bar()
        self._total, self._done = total, 0
        self._counted_from = time.monotonic()
        if self.level and sys.stderr.isatty():
            from tqdm import tqdm

            self._bar = tqdm(
                total=total, unit="fit", file=sys.stderr, leave=False, dynamic_ncols=True, mininterval=0
            )

    def advance(self, text: str, minor: bool = False) -> None:
        """One more piece is done; of minor ones a plain stream gets a line now and then."""
        self._done += 1
        line = f"[{self._done}/{self._total}, {time.monotonic() - self._started:.0f} s] {text}"
        if minor:
            line += self._left()
        self._record(line)
        if self._bar is not None:
            self._bar.set_postfix_str(text, refresh=False)
            self._bar.update()
        elif self.level and (not minor or self._is_time()):
            self._write(line, sys.stderr)

    def _left(self) -> str:
        """How long the rest will take if it goes on like this."""
        minutes = (time.monotonic() - self._counted_from) / self._done * (self._total - self._done) / 60
        return f", about {minutes:.0f} min left" if minutes >= 1 else ""

    def _is_time(self) -> bool:
        """Whether the last one is done, or a while has passed since the last line of its kind."""
        now = time.monotonic()
        if self._done < self._total and now - self._last_minor < _A_WHILE:
            return False
        self._last_minor = now
        return True

    def _write(self, text: str, stream: Any) -> None:
        """Print without tearing the bar apart."""
        try:
            if self._bar is not None:
                self._bar.write(text, file=stream)
            else:
                print(text, file=stream)
            stream.flush()
        except BrokenPipeError:
            _silence(stream)

    def _record(self, text: str) -> None:
        """Add to the log, if there is one."""
        if self._log is not None:
            now = datetime.now(timezone.utc).isoformat(timespec="seconds")
            with self._log.open("a", encoding="utf-8") as stream:
                stream.write("".join(f"{now} {line}\n" for line in text.splitlines()))

    def __enter__(self) -> "Console":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close_bar()

    def _close_bar(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def _silence(stream: Any) -> None:
    """Lead a stream whose reader went away (``| head``) to nowhere: the work goes on, unheard."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
