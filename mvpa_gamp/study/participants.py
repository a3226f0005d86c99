"""The participant level: a study per participant, in its own folder; who cannot be analysed is skipped."""

import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, redirect_stderr, redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import NamedTuple

from mvpa_gamp.imaging.bids.check import check_participants
from mvpa_gamp.imaging.bids.layout import Layout, participants
from mvpa_gamp.imaging.bids.source import BidsSource
from mvpa_gamp.imaging.disk import WriteError
from mvpa_gamp.parallel import Workers, run_tasks
from mvpa_gamp.results.files import write_json, write_text
from mvpa_gamp.results.names import ResultsFolder
from mvpa_gamp.results.summary import write_description
from mvpa_gamp.study.comparisons import check_preparation, check_strictly
from mvpa_gamp.study.console import Console
from mvpa_gamp.study.ending import StudyError
from mvpa_gamp.study.output import (
    PARTICIPANT,
    PARTICIPANTS,
    Output,
    check_inputs,
    check_output,
    check_plain,
    check_resume,
    keep_record,
)
from mvpa_gamp.study.plan import atlas_of, check_cross_session, check_settings, usage_errors
from mvpa_gamp.study.run import rebuild_report, run_study
from mvpa_gamp.study.settings import StudySettings, settings_text


def run_participants(
    settings: StudySettings, labels: Sequence[str] | None, output: Output, workers: Workers, console: Console
) -> int:
    """Analyse participants (None: all); returns 0, or 1 when one was skipped or failed.

    With several workers each does a participant at a time; with one they come one after the other.
    What is wrong for every participant raises :class:`StudyError` before anything is written.
    """
    dataset = replace(
        output, resume=not output.overwrite, kind=PARTICIPANTS, work_dir=None
    )  # participants may come in several commands
    with usage_errors():
        check_output(dataset)
        methods = check_settings(settings, workers)
        assert isinstance(settings.source, BidsSource)
        source = settings.source.dataset()
        settings = settings.with_source(source)
        check_inputs(dataset, settings)
        if any(output.root.glob("sub-*")):  # settings that nobody could be analysed with bind nobody
            check_resume(dataset, settings)
        chosen = choose_participants(source.layout, labels)
        check_preparation(settings, chosen)
        nested = ", ".join(method.name for method in methods if not method.is_batched)
        check_participants(source, chosen, nested, atlas_of(settings))
        check_cross_session(settings.cross_session, source, chosen)
        for label in chosen:
            check_output(own_output(output, label))
        for label in chosen if settings.strict else ():
            check_strictly(settings.with_source(replace(source, participant_label=label)))
    keep_record(dataset)
    write_text(output.folder.config, settings_text(settings))
    links = {name: root.as_uri() for name, root in source.layout.datasets.items()}
    write_description(output.folder, None, links)
    troubles = {}
    for label, trouble in _each(settings, chosen, output, workers, console):
        note = output.folder.skipped(label)
        if trouble is None:
            note.unlink(missing_ok=True)
        else:
            troubles[label] = trouble
            write_json(note, {"participant": label, "reason": trouble})
    return _count(chosen, troubles, output.root, console)


def _each(
    settings: StudySettings, chosen: Sequence[str], output: Output, workers: Workers, console: Console
) -> Iterator[tuple[str, str | None]]:
    """Every participant with what is wrong, as they are done: side by side where that is possible."""
    studies = {label: _own_study(settings, label) for label in chosen}
    if len(chosen) > 1 and workers != 1 and sees_files(settings, output, workers, console):
        yield from side_by_side(studies, output, workers, console)
        return
    for label, own in studies.items():
        yield label, analyse(own, label, output, workers, console)


def _own_study(settings: StudySettings, label: str) -> StudySettings:
    assert isinstance(settings.source, BidsSource)
    return settings.with_source(replace(settings.source, participant_label=label))


def rebuild_participants(root: Path, labels: Sequence[str] | None, console: Console) -> int:
    """--reports-only: the pages of participants from their folders alone."""
    check_plain(root, "OUT")
    known = sorted(path.name.removeprefix("sub-") for path in root.glob("sub-*") if path.is_dir())
    if not known:
        raise StudyError(
            f"--reports-only: {root} has no participant's results. Run the participant level first."
        )
    return max([rebuild_report(root / f"sub-{label}", console) for label in stripped(labels) or known])


def stripped(labels: Sequence[str] | None) -> list[str]:
    """Participant labels without ``sub-``, each once."""
    return list(dict.fromkeys(label.removeprefix("sub-") for label in labels or ()))


def choose_participants(layout: Layout, labels: Sequence[str] | None) -> list[str]:
    """The participants asked for, all of them by default."""
    known = participants(layout)
    unknown = [label for label in stripped(labels) if label not in known]
    if unknown:
        raise StudyError(
            f"--participant-label: expected some of {', '.join(known)}, got {', '.join(unknown)}. "
            f"Choose among those of {layout.source}."
        )
    return stripped(labels) or known


def _count(chosen: Sequence[str], troubles: dict[str, str], root: Path, console: Console) -> int:
    """The last lines: how many participants are done, and who is not; the reason was said in its turn."""
    done = len(chosen) - len(troubles)
    console.log_to(ResultsFolder(root).log)
    said = f"{done} of {len(chosen)} participant{'s' * (len(chosen) != 1)} analysed in {root}"
    missing = [f"sub-{label}" for label, trouble in troubles.items() if trouble != INCOMPLETE]
    partial = [f"sub-{label}" for label in troubles if f"sub-{label}" not in missing]
    if missing:
        said += f", {len(missing)} not: {', '.join(missing)} (reasons above and in logs/)"
    if partial:
        said += f", {len(partial)} incomplete: {', '.join(partial)} (fits or files are missing, see the page)"
    console.note(f"{said}.", level=0 if troubles else 1)
    return 1 if troubles else 0


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
