"""The participant level: a study per participant, in its own folder; who cannot be analysed is skipped."""

import traceback
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mvpa_gamp.imaging.bids.check import check_participants
from mvpa_gamp.imaging.bids.layout import Layout, participants
from mvpa_gamp.imaging.bids.source import BidsSource
from mvpa_gamp.parallel import Workers
from mvpa_gamp.results.files import write_json, write_text
from mvpa_gamp.results.names import ResultsFolder
from mvpa_gamp.results.study_files import description
from mvpa_gamp.study.console import Console
from mvpa_gamp.study.errors import StudyError
from mvpa_gamp.study.leakage import check_strictly
from mvpa_gamp.study.output import Output, check_output, check_resume
from mvpa_gamp.study.run import check_settings, rebuild_report, run_study, usage_errors
from mvpa_gamp.study.settings import StudySettings, settings_text


def run_participants(
    settings: StudySettings, labels: Sequence[str] | None, output: Output, workers: Workers, console: Console
) -> int:
    """Analyse participants one after the other (None: all); returns 0, or 1 when one was skipped or failed.

    What is wrong for every participant raises :class:`StudyError` before anything is written.
    """
    dataset = replace(output, resume=not output.overwrite)  # participants may come in several commands
    with usage_errors():
        check_output(dataset)
        check_settings(settings, workers)
        assert isinstance(settings.source, BidsSource)
        source = settings.source.dataset()
        settings = settings.with_source(source)
        if any(output.root.glob("sub-*")):  # settings that nobody could be analysed with bind nobody
            check_resume(dataset, settings)
        chosen = choose_participants(source.layout, labels)
        check_participants(source, chosen)
        for label in chosen:
            check_output(own_output(output, label))
        for label in chosen if settings.strict else ():
            check_strictly(settings.with_source(replace(source, participant_label=label)))
    write_text(output.folder.config, settings_text(settings))
    write_json(output.folder.description, description(None))
    troubles = {}
    for label in chosen:
        own = settings.with_source(replace(source, participant_label=label))
        trouble = _analyse(own, label, output, workers, console)
        note = output.folder.skipped(label)
        if trouble is None:
            note.unlink(missing_ok=True)
        else:
            troubles[label] = trouble
            write_json(note, {"participant": label, "reason": trouble})
    return _count(chosen, troubles, output.root, console)


def own_output(output: Output, label: str) -> Output:
    """The folder of one participant."""
    return replace(output, root=output.root / f"sub-{label}")


def rebuild_participants(root: Path, labels: Sequence[str] | None, console: Console) -> int:
    """--reports-only: the pages of participants from their folders alone."""
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


def _analyse(
    settings: StudySettings, label: str, output: Output, workers: Workers, console: Console
) -> str | None:
    """One participant: None when all is well, else the sentence that says what is wrong."""
    console.log_to(output.folder.log)
    console.result(f"\nsub-{label}", always=True)
    try:
        code = run_study(settings, own_output(output, label), workers, console)
    except StudyError as error:
        trouble = str(error).removeprefix(f"sub-{label}: ")
    except Exception as error:  # the others must not suffer
        console.note(traceback.format_exc(), level=2)
        trouble = f"{type(error).__name__}: {error}"
    else:
        return None if code == 0 else "some of its fits or files are missing, see its page."
    console.note(f"sub-{label}: skipped. {trouble}", level=0)
    return trouble


def _count(chosen: Sequence[str], troubles: dict[str, str], root: Path, console: Console) -> int:
    """The last lines: how many participants are done, and who is missing why."""
    done = len(chosen) - len(troubles)
    console.log_to(ResultsFolder(root).log)
    said = f"{done} of {len(chosen)} participant{'s' * (len(chosen) != 1)} analysed in {root}"
    console.note(said + (f", {len(troubles)} not:" if troubles else "."), level=0 if troubles else 1)
    for label, trouble in troubles.items():
        console.note(f"  sub-{label}: {trouble}", level=0)
    return 1 if troubles else 0
