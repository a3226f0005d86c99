"""Participants side by side: a worker does all of one participant, from its volumes to its page.

Each worker reads and writes the participant's own files, so it needs to see them; no two touch the same
ones. What a participant's run says is printed when it is done.
"""

import threading
import traceback
from collections.abc import Iterator, Mapping
from contextlib import closing, redirect_stderr, redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import NamedTuple

from mvpa_gamp.imaging.atomic_files import WriteError
from mvpa_gamp.imaging.bids.source import BidsSource
from mvpa_gamp.parallel import Workers, run_tasks
from mvpa_gamp.study.console import Console
from mvpa_gamp.study.errors import StudyError
from mvpa_gamp.study.output import PARTICIPANT, Output
from mvpa_gamp.study.run import run_study
from mvpa_gamp.study.settings import StudySettings

_TRIES = 2  # of participants whose worker died: the second time, what is stored is used
_ONE_AT_A_TIME = threading.Lock()  # a worker of several threads still does one participant at a time


class _Told(NamedTuple):
    """What became of a participant, and what its run said."""

    trouble: str | None
    out: str
    err: str


def own_output(output: Output, label: str) -> Output:
    """The folder of one participant."""
    return replace(output, root=output.root / f"sub-{label}", kind=PARTICIPANT)


def analyse(
    settings: StudySettings, label: str, output: Output, workers: Workers, console: Console
) -> str | None:
    """One participant here: None when all is well, else the sentence that says what is wrong."""
    console.log_to(output.folder.log)
    console.result(f"\nsub-{label}", always=True)
    trouble = _run(settings, label, own_output(output, label), workers, console)
    return _said(label, trouble, console)


def side_by_side(
    studies: Mapping[str, StudySettings], output: Output, workers: Workers, console: Console
) -> Iterator[tuple[str, str | None]]:
    """Every participant with what is wrong with it, in their order, each done by one worker.

    Participants whose worker dies, and those that died with it, are tried again once.
    """
    console.note(
        f"{len(studies)} participants are analysed in parallel; messages appear when one is finished."
    )
    elsewhere = replace(output, root=output.root.absolute())  # workers may stand in another folder
    waiting, reason = list(studies), ""
    for _ in range(_TRIES):
        tasks = [(studies[label], label, own_output(elsewhere, label)) for label in waiting]
        with closing(run_tasks(_in_worker, tasks, (console.level,), workers)) as answers:
            try:
                for label, told in zip(list(waiting), answers, strict=True):
                    waiting.remove(label)
                    yield label, _repeat(label, told, output, console)
            except Exception as error:  # the pool or the cluster gave up, a participant's error is an answer
                reason = type(error).__name__
        if not waiting:
            return
    for label in waiting:
        trouble = f"its worker ended ({reason}), possibly for lack of memory. Use fewer workers and --resume."
        yield label, _said(label, trouble, console)


def sees_files(settings: StudySettings, output: Output, workers: Workers, console: Console) -> bool:
    """Whether all workers see the dataset and the results folder; those of this machine do."""
    if not isinstance(workers, str) or workers.startswith("local:"):
        return True
    assert isinstance(settings.source, BidsSource)
    needed = [settings.source.bids_dir, str(output.folder.config.absolute())]
    if output.work_dir is not None:
        output.work_dir.mkdir(parents=True, exist_ok=True)
        needed.append(str(output.work_dir))
    found = _answers_of_all(workers, needed)
    if found and all(found):
        return True
    console.note(
        f"Not every worker has access to {' and '.join(needed)}: participants are analysed one after "
        "the other, and their fits are distributed over the workers."
    )
    return False


def _answers_of_all(scheduler: str, needed: list[str]) -> list[bool]:
    """Whether each worker of a scheduler sees some files."""
    from distributed import Client

    with Client(scheduler) as client:
        return list(client.run(_all_there, needed).values())


def _all_there(paths: list[str]) -> bool:
    return all(Path(path).exists() for path in paths)


def _in_worker(study: tuple[StudySettings, str, Output], level: int) -> _Told:
    """All of one participant, on a worker; a second try goes on with what the first one stored."""
    settings, label, output = study
    if not output.overwrite and output.folder.config.is_file():
        output = replace(output, resume=True)
    out, err = StringIO(), StringIO()
    with _ONE_AT_A_TIME, redirect_stdout(out), redirect_stderr(err), Console(level) as console:
        trouble = _run(settings, label, output, 1, console)
    return _Told(trouble, out.getvalue(), err.getvalue())


def _run(
    settings: StudySettings, label: str, output: Output, workers: Workers, console: Console
) -> str | None:
    """The study of a participant: None when all is well, else what is wrong."""
    try:
        code = run_study(settings, output, workers, console)
    except StudyError as error:
        return str(error).removeprefix(f"sub-{label}: ")
    except WriteError as error:
        return str(error)
    except Exception as error:  # the others must not suffer
        console.note(traceback.format_exc(), level=2)
        return f"{type(error).__name__}: {error}"
    return None if code == 0 else INCOMPLETE


INCOMPLETE = "some of its fits or files are missing, see its page."


def _said(label: str, trouble: str | None, console: Console) -> str | None:
    """The sentence about a participant without results."""
    if trouble is not None and trouble != INCOMPLETE:
        console.note(f"sub-{label}: skipped. {trouble}", level=0)
    return trouble


def _repeat(label: str, told: _Told, output: Output, console: Console) -> str | None:
    """Print what a worker's run said, as if it had run here."""
    console.log_to(output.folder.log)
    console.result(f"\nsub-{label}", always=True)
    if told.err.strip():
        console.note(told.err.rstrip("\n"), level=0)  # the worker's console has left out what is not wanted
    if told.out.strip():
        console.result(told.out.rstrip("\n"), always=True)
    return _said(label, told.trouble, console)
