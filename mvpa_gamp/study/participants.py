"""The participant level: a study per participant, in its own folder; who cannot be analysed is skipped."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from mvpa_gamp.imaging.bids.check import check_participants
from mvpa_gamp.imaging.bids.layout import Layout, participants
from mvpa_gamp.imaging.bids.source import BidsSource
from mvpa_gamp.parallel import Workers
from mvpa_gamp.results.bids_description import write_description
from mvpa_gamp.results.files import write_json, write_text
from mvpa_gamp.results.names import ResultsFolder
from mvpa_gamp.study.checks import atlas_of, check_cross_session, check_settings, usage_errors
from mvpa_gamp.study.console import Console
from mvpa_gamp.study.errors import StudyError
from mvpa_gamp.study.finish import rebuild_report
from mvpa_gamp.study.output import (
    PARTICIPANTS,
    Output,
    check_inputs,
    check_output,
    check_plain,
    check_resume,
    keep_record,
)
from mvpa_gamp.study.preparation import check_preparation, check_strictly
from mvpa_gamp.study.settings import StudySettings, settings_text
from mvpa_gamp.study.side_by_side import INCOMPLETE, analyse, own_output, sees_files, side_by_side


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
