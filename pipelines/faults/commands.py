"""Run a command line and judge how it ended."""

import io
import warnings
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

from .calls import TooLong, limited
from .outcomes import ELSE, LONGEST, NAMED, RAW, RIGHT
from .results import not_right

Main = Callable[[Sequence[str]], int]
_SECONDS = 120
_STOPPED = (129, 130, 143)  # exit codes of a command that a signal ended: it was meant for the campaign


class Given(NamedTuple):
    """A command line, and in words what is odd about it."""

    options: list[str]
    kind: str
    story: str


def line(options: dict[str, list[str]]) -> list[str]:
    """The words of a command line."""
    return [word for name, values in options.items() for word in (name, *values)]


def check_stopped(code: int) -> None:
    """End the campaign where a signal, which was meant for it, ended a command."""
    if code in _STOPPED:
        raise KeyboardInterrupt("the campaign was stopped while a command ran")


def run(main: Main, options: Sequence[str]) -> tuple[int, str]:
    """The exit code, and what the terminal showed of errors and warnings."""
    told = io.StringIO()
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()), redirect_stderr(told):
        warnings.simplefilter("always")
        try:
            code = main(options)
        except SystemExit as error:  # argparse, which writes how the command is used and a sentence
            code = int(error.code or 0)
    check_stopped(code)
    return code, told.getvalue()


def judged(main: Main, given: Given, out: Path) -> tuple[str, str]:
    """Run a command line and say how it ended.

    Exit code 1 of several participants means that some were left out, each with a sentence, and that the
    results of the others are right.
    """
    before = _content(out)
    try:
        with limited(_SECONDS):
            code, said = run(main, given.options)
    except (Exception, TooLong) as error:
        return ELSE, f"{type(error).__name__}: {error}"
    if raw := [word for word in (*RAW, "Warning:") if word in said]:
        return ELSE, f"the words {raw} came through: {said[-400:]}"
    if code == 0 or (code == 1 and "participants analysed in" in said):
        return _finished(out, code, said)
    if code != 2:
        return ELSE, f"exit code {code}: {said[-400:]}"
    errors = [each for each in said.splitlines() if ": error: " in each]
    if len(errors) != 1:
        return ELSE, f"{len(errors)} sentences: {said[-400:]}"
    if len(errors[0]) > LONGEST:
        return ELSE, f"a sentence of {len(errors[0])} characters: {errors[0][:300]}"
    return (ELSE, "something was written") if _content(out) != before else (NAMED, errors[0])


def _content(out: Path) -> dict[Path, bytes]:
    """Every folder and file, with what it holds."""
    found = [out, *sorted(out.rglob("*"))] if out.exists() else []
    return {path: path.read_bytes() if path.is_file() else b"" for path in found}


def _finished(out: Path, code: int, said: str) -> tuple[str, str]:
    """What is wrong with the results of a study, or of every participant of a dataset."""
    of_dataset = [path for path in sorted(out.glob("sub-*")) if (path / "logs").is_dir()]
    for folder in of_dataset if of_dataset or code else [out]:
        try:
            wrong = not_right(folder)
        except Exception as error:  # a table that cannot be read is what is looked for
            wrong = f"{type(error).__name__}: {error}"
        if wrong:
            return ELSE, f"{folder.name}: {wrong}"
    return (NAMED, said.strip().splitlines()[-1]) if code else (RIGHT, "")
