"""From settings to a finished results folder: the order of things, and a last look at every file."""

from collections.abc import Sequence
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path

import numpy as np

from mvpa_gamp.imaging.disk import WriteError, home_of, read_record
from mvpa_gamp.imaging.samples import Samples
from mvpa_gamp.imaging.spaces import space_of
from mvpa_gamp.parallel import Workers, run_tasks
from mvpa_gamp.report.page import build_report, cautions, leaks
from mvpa_gamp.report.terminal import averages, beyond_the_table, closing_lines, whole_table
from mvpa_gamp.results.files import write_text
from mvpa_gamp.results.names import FITS
from mvpa_gamp.results.reader import (
    Results,
    ResultsError,
    missing_files,
    read_results,
    verify,
    write_manifest,
)
from mvpa_gamp.results.summary import write_start, write_tables
from mvpa_gamp.study.analyses import plan_analyses
from mvpa_gamp.study.analyses.inference import fewer_words, permutation_words
from mvpa_gamp.study.analyses.regions import region_notes
from mvpa_gamp.study.comparisons import write_checks
from mvpa_gamp.study.console import Console
from mvpa_gamp.study.describe import about_study, resolution
from mvpa_gamp.study.ending import UNREADABLE, StudyError, one_line
from mvpa_gamp.study.jobs import Analysis, Answers, answered
from mvpa_gamp.study.lock import FolderLock, check_lock
from mvpa_gamp.study.output import Output, check_output, check_plain, prepare
from mvpa_gamp.study.plan import Study, plan_study, usage_errors
from mvpa_gamp.study.settings import StudySettings, settings_text


def run_study(settings: StudySettings, output: Output, workers: Workers, console: Console) -> int:
    """Run a study; returns 0 when every promised file is there, 1 when something failed on the way.

    Input that cannot be run raises :class:`StudyError` before the results folder is touched.
    """
    with FolderLock(output.folder, output.owner) as lock:
        with usage_errors():
            study = plan_study(settings, output, workers, console)
            pairs, analyses = plan_analyses(study)
            lock.take()
            check_output(study.output)  # once more: another run may have ended there meanwhile
            left = prepare(study.output)
            write_text(study.folder.config, settings_text(study.settings))
            write_start(study.folder, study.subject, study.samples.background_img)
        console.log_to(study.folder.log)
        _announce(study, analyses, console)
        if left:
            console.note(left)
        answers = _answers(study, analyses, workers, console)
        parts = {name: part for each in analyses for name, part in each.write(answers).items()}
        parts["leakage"] = study.leakage.as_json()
        parts |= write_checks(study.folder, study.subject.name, study.covariates)
        about = about_study(study.settings, study.samples, study.prepared, study.tasks)
        write_tables(study.folder, study.subject, study.tasks, study.methods, pairs.records, about, parts)
        return finish(study.output, console)


def _answers(study: Study, analyses: Sequence[Analysis], workers: Workers, console: Console) -> Answers:
    """Send what is open to workers, and store each answer under the jobs of its round as it comes."""
    answers = Answers(console)
    phases = [phase for analysis in analyses for phase in analysis.phases]
    rounds = [each for phase in phases for each in phase.rounds]
    with closing(run_tasks(answered, [each.work for each in rounds], study.shared, workers)) as found:
        answered_rounds = zip(rounds, found, strict=True)
        for phase in phases:
            phase.begin(answers)
            for round_, answer in islice(answered_rounds, len(phase.rounds)):
                answers.keep(round_, answer)
                phase.advance(round_, answers)
    return answers


def _announce(study: Study, analyses: Sequence[Analysis], console: Console) -> None:
    """The first lines of a run."""
    samples, stored = study.samples, len(study.stored)
    if samples.banner:
        console.note(f"{samples.banner}.", level=0)
    console.note(
        f"{_whose(samples)}: {_decoded(study)} x {samples.X.shape[1]:,} "
        f"{space_of(samples.mask_img).elements}{_place(samples)}, "
        f"{_count(len(study.tasks), 'comparison')} x {_count(len(study.methods), 'method')}"
        + (f", {stored} of {len(study.cells)} fits already stored" if stored else "")
    )
    of_pairs, *others = [each.tests for each in analyses if each.tests] or [()]
    said = permutation_words(study.settings, study.tasks, study.methods, of_pairs)
    every = [*of_pairs, *(test for tests in others for test in tests)]
    fewer = fewer_words(study.permutations_before, study.settings.permutations, every)
    for note in filter(None, (said, fewer)):
        console.note(note)
    for note in (*samples.notes, *region_notes(study.settings, study.subject.regions)):
        console.note(note)
    for sentence in study.cautions:
        console.note(f"Caution: {sentence}")


def _decoded(study: Study) -> str:
    """How many samples the comparisons have, as the page says, and of how many with any label."""
    decoded = np.unique(np.concatenate([task.rows for task in study.tasks])).size
    labelled = study.samples.X.shape[0]
    other = f" (of {labelled:,} with labels)" if decoded < labelled else ""
    return f"{decoded:,} {study.samples.plural}{other}"


def _whose(samples: Samples) -> str:
    """A participant's label, or how many participants maps are of."""
    if samples.people is None:
        return f"sub-{samples.subject}"
    return _count(len(np.unique(samples.people)), "participant")


def _place(samples: Samples) -> str:
    """The space of the samples, where it has a name."""
    return f" ({samples.space}, {resolution(samples)})" if samples.space else ""


def _count(number: int, thing: str) -> str:
    """A number of things, in the right number."""
    return f"{number} {thing}{'s' * (number != 1)}"


_MOST_STORED = 50_000_000  # bytes of fits that a finished run keeps: a few seconds of work for a large brain


def finish(output: Output, console: Console) -> int:
    """Page, manifest, the full table, and a last look whether everything promised is there."""
    results = read_results(output.root)
    write_manifest(results)
    page = build_report(output.root)
    _print_what_is_new(results, console)
    for text in beyond_the_table(results):
        console.result(text + "\n", always=True)
    for caution in cautions(results)[len(leaks(results)) :]:  # leaks were told before the first fit
        console.note(f"Caution: {caution}")
    code = _verdict(output.root, console)
    if code == 0 and not output.keep_fits:
        _drop_large_fits(output.stored, console)
    for line in closing_lines(results, page):
        console.note(line)
    return code


def _drop_large_fits(stored: Path, console: Console) -> None:
    """Remove the fits of a finished run where they are large: --resume makes them again."""
    home = home_of(stored / "fits")
    record = read_record(home) if home else None
    ours = (
        set() if home is None or record is None else {home / name for name in record.before | record.written}
    )
    fits = [path for path in stored.absolute().glob(f"*{FITS}") if path in ours]
    size = sum(path.stat().st_size for path in fits)
    if size > _MOST_STORED:
        for path in fits:
            path.unlink()
        with suppress(OSError):  # a folder of --work-dir has a record besides
            stored.rmdir()
        console.note(
            f"Stored fits ({size / 1e6:,.0f} MB) were removed, because the run is finished. --resume makes "
            "them again if tests are added; --keep-fits keeps them."
        )


def _print_what_is_new(results: Results, console: Console) -> None:
    """The averages, since rows were printed as they came; a quiet run printed none and has the table."""
    if not console.level:
        console.result(whole_table(results, console.width) + "\n", always=True)
    elif len(results.tasks) > 1:
        console.result(averages(results) + "\n")


def rebuild_report(root: Path, console: Console) -> int:
    """--reports-only: figures and page from the folder alone."""
    output = Output(root, resume=True)
    check_plain(root, "--reports-only")
    try:
        check_lock(output.folder, output.owner)
        verify(root, console.note)
        with FolderLock(output.folder, output.owner) as lock:
            lock.take()
            console.note(f"Page: {build_report(root)}")
    except (StudyError, WriteError):
        raise
    except ResultsError as error:
        raise StudyError(f"--reports-only: {error}") from error
    except UNREADABLE as error:
        raise StudyError(
            f"--reports-only: a file of {root} is missing or damaged ({one_line(error)}). Write the files "
            "again from the stored fits: the same command with --resume."
        ) from error
    return _verdict(root, console)


def _verdict(root: Path, console: Console) -> int:
    """0 only when no cell failed and no promised file is missing."""
    results = read_results(root)
    missing = missing_files(results)
    failed = [row for row in results.rows if row["status"] != "ok" and row["contrast"] != "average"]
    for path in missing:
        console.note(f"missing: {path}", level=0)
    if missing:
        console.note("Write what is missing: the same command with --resume.", level=0)
    failed += [row for row in results.inference_rows() if row["status"] != "ok"]
    failed += [{**row, "comparison": row["cross"]} for row in results.cross_rows() if row["status"] != "ok"]
    for row in failed:
        console.note(f"{row['comparison']}, {row['method']}: {row['status']}", level=0)
    troubles = results.summary.regions.get("troubles", {})
    for name, trouble in troubles.items():
        console.note(f"{name}, regions: {trouble}", level=0)
    return 1 if missing or failed or troubles else 0
