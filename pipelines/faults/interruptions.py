"""Runs that a signal ends at any moment, and are resumed: the folder is that of a run nobody disturbed.

Killed (SIGKILL), a run says nothing; SIGTERM, SIGHUP and SIGINT end it with one sentence, their exit code and
no lock. Whatever the moment, ``--resume`` (or the same command, where nothing was written yet) finishes it.
"""

import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from mvpa_gamp.results.names import ResultsFolder

from .command_files import write_files
from .outcomes import ELSE, RAW, RIGHT, Outcome

_SIGNALS = ("SIGKILL", "SIGTERM", "SIGHUP", "SIGINT")
_OPTIONS = ("--pairs", "face:house", "face:cat", "--methods", "svm", "lda", "--permutations", "9",
            "--participant-label", "own", "--fold-maps", "--quiet")  # fmt: skip


def _start(words: list[str]) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "mvpa_gamp.haxby", *words]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def _wait(running: "subprocess.Popen[str]", out: Path, files: int, more: float) -> None:
    """Until the folder has so many files, and a moment more."""
    while running.poll() is None and sum(1 for _ in out.rglob("*")) < files:
        time.sleep(0.002)
    time.sleep(more)


def _wrong(code: int, said: str, number: int, out: Path, before: set[Path]) -> str:
    """What is not as it should be after a run that was interrupted."""
    if raw := [word for word in RAW if word in said]:
        return f"the words {raw} came through: {said[-300:]}"
    if number == signal.SIGKILL or code == 0:
        return "" if code in (0, -number) else f"exit code {code}"
    if code == -number:  # before the command began, while Python was loading it
        return "" if set(out.rglob("*")) == before else f"files, but no sentence: {said[-300:]}"
    if code != 128 + number or len([line for line in said.splitlines() if "error: interrupted" in line]) != 1:
        return f"exit code {code}: {said[-300:]}"
    return "a lock is left" if ResultsFolder(out).lock.exists() else ""


def campaign(n: int, seed: int) -> Iterator[Outcome]:
    """n interruptions of runs of one study, some of them of runs that are resumed."""
    rng = np.random.default_rng([seed, 49])
    with tempfile.TemporaryDirectory(prefix="faults-") as text:
        place = Path(text)
        files = write_files(place / "data")
        data = [word for name in ("bold", "labels", "mask") for word in (f"--{name}", str(files[name]))]
        began = time.monotonic()
        whole = place / "whole"
        assert _start([*data, *_OPTIONS, "--out", str(whole)]).wait() == 0
        count, last = sum(1 for _ in whole.rglob("*")), (time.monotonic() - began) / 50
        done = number = 0
        while done < n:
            number += 1
            yield from (found := _one(whole, data, place / f"out{number}", count, last, n - done, rng))
            done += len(found)


def _one(
    whole: Path, data: list[str], out: Path, count: int, moment: float, most: int, rng: np.random.Generator
) -> list[Outcome]:
    """A run that is interrupted up to three times, and then finished."""
    names, troubles = [], []
    for _ in range(min(most, int(rng.integers(1, 4)))):
        name = str(rng.choice(_SIGNALS))
        resume = ["--resume"] if ResultsFolder(out).config.is_file() else []
        before = set(out.rglob("*"))
        running = _start([*data, *_OPTIONS, "--out", str(out), *resume])
        _wait(running, out, int(rng.integers(0, count)), float(rng.uniform(0, moment)))
        running.send_signal(getattr(signal, name))
        said = running.communicate()[1]
        names.append(name)
        if trouble := _wrong(running.returncode, said, int(getattr(signal, name)), out, before):
            troubles.append(trouble)
    known = ResultsFolder(out).root.exists() and any(out.iterdir())
    running = _start([*data, *_OPTIONS, "--out", str(out), *(["--resume"] if known else [])])
    said = running.communicate()[1]
    if running.returncode != 0:
        troubles.append(f"resumed with exit code {running.returncode}: {said[-300:]}")
    elif ResultsFolder(out).manifest.read_bytes() != ResultsFolder(whole).manifest.read_bytes():
        troubles.append("another manifest")
    elif left := [path.name for path in out.rglob("*") if path.name.startswith((".writing-", ".running"))]:
        troubles.append(f"left behind: {left}")
    verdict = ELSE if troubles else RIGHT
    return [Outcome("a run", (name,), verdict, f"{names}: {'; '.join(troubles)}") for name in names]
