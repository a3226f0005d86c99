"""From settings to a finished results folder: the order of things, and what happens when one fails."""

import traceback
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from mvpa_gamp._version import __version__
from mvpa_gamp.decoding.tasks import Task
from mvpa_gamp.imaging.samples import Samples
from mvpa_gamp.methods.fold_fits import Method
from mvpa_gamp.parallel import Workers, check_workers, run_tasks
from mvpa_gamp.report.cautions import cautions
from mvpa_gamp.report.inference import inference_lines
from mvpa_gamp.report.manifest import missing_files, write_manifest
from mvpa_gamp.report.page import build_report
from mvpa_gamp.report.results import ResultsError, read_results
from mvpa_gamp.report.tables import pair_lines, paper_table
from mvpa_gamp.study.console import Console
from mvpa_gamp.study.errors import StudyError
from mvpa_gamp.study.fits import load_fits
from mvpa_gamp.study.inference import UnitInference, check_inference, collect, open_jobs, plan_inference
from mvpa_gamp.study.inference_files import write_inference
from mvpa_gamp.study.output import Output, check_output, check_resume, prepare
from mvpa_gamp.study.plan import choose_methods, choose_tasks, planted_voxels
from mvpa_gamp.study.record import write_start, write_tables
from mvpa_gamp.study.settings import StudySettings
from mvpa_gamp.study.unit_files import Subject, UnitRecord, failed_unit, write_unit
from mvpa_gamp.study.units import Unit, is_done, plan_units, stored
from mvpa_gamp.study.work import FitWork, do


def run_study(settings: StudySettings, output: Output, workers: Workers, console: Console) -> int:
    """Run a study; returns 0 when every promised file is there, 1 when something failed on the way.

    Input that cannot be run raises :class:`StudyError` before the results folder is touched.
    """
    with usage_errors():
        check_output(output)
        methods = check_settings(settings, workers)
        settings = settings.resolve(console.note)
        check_resume(output, settings)
        console.note("Preparing the data ...")
        samples = settings.source.load()
        tasks = choose_tasks(settings.pairs, samples)
        subject = Subject(
            samples.subject, samples.mask_img, samples.banner, planted_voxels(samples, tasks), __version__,
            samples.volumes,
        )  # fmt: skip
        units = plan_units(output.folder, samples, tasks, methods)
        done = [output.resume and is_done(unit) for unit in units]
        plans = plan_inference(settings, samples, units)
        prepare(output)
        write_start(output.folder, settings, samples, subject)
    console.log_to(output.folder.log)
    _say_what(console, samples, tasks, methods, sum(done))
    pending = [unit for unit, finished in zip(units, done, strict=True) if not finished]
    jobs = open_jobs(plans, output.resume)
    work = [*(FitWork(unit.method, unit.task.rows, unit.task.y) for unit in pending), *(j.work for j in jobs)]
    with closing(run_tasks(do, work, (samples.X, samples.runs), workers)) as answers:
        outcomes = (stored(unit, next(answers)) for unit in pending)
        records = _work_through(units, done, outcomes, output, subject, settings.fold_maps, console)
        inference = _of_fitted(collect(plans, jobs, answers, console), records)
    about = write_inference(output.folder, subject, settings, inference)
    write_tables(output.folder, settings, samples, subject, tasks, methods, records, about)
    return finish(output, console)


def check_settings(settings: StudySettings, workers: Workers) -> list[Method]:
    """Refuse what needs no data to be known wrong; returns the methods."""
    try:
        check_workers(workers)
    except ValueError as error:
        raise StudyError(str(error)) from error
    if settings.seed < 0:
        raise StudyError(f"--seed: expected 0 or more, got {settings.seed}. Change it.")
    methods = choose_methods(settings.methods)
    check_inference(settings, methods)
    return methods


@contextmanager
def usage_errors() -> Iterator[None]:
    """Whatever is wrong before the first fit is wrong with what was given: one sentence, exit code 2."""
    from nibabel.filebasedimages import ImageFileError

    try:
        yield
    except StudyError:
        raise
    except MemoryError as error:
        raise StudyError(f"The data do not fit into memory: {error}. Use a smaller mask.") from error
    except (ValueError, OSError, EOFError, ImageFileError) as error:
        raise StudyError(" ".join(str(error).split())) from error


def _say_what(
    console: Console, samples: Samples, tasks: Sequence[Task], methods: Sequence[Method], done: int
) -> None:
    """The first lines of a run."""
    if samples.banner:
        console.note(f"{samples.banner}.", level=0)
    console.note(
        f"sub-{samples.subject}: {samples.X.shape[0]:,} {samples.plural} x {samples.X.shape[1]:,} voxels, "
        f"{_count(len(tasks), 'comparison')} x {_count(len(methods), 'method')}"
        + (f", {done} of {len(tasks) * len(methods)} fits are there already" if done else "")
    )
    for note in samples.notes:
        console.note(note)


def _count(number: int, thing: str) -> str:
    """A number of things, in the right number."""
    return f"{number} {thing}{'s' * (number != 1)}"


def _work_through(
    units: Sequence[Unit], done: Sequence[bool], outcomes: Iterator[str | None],
    output: Output, subject: Subject, fold_maps: bool, console: Console,
) -> list[UnitRecord]:  # fmt: skip
    """Write each unit's files as its fits arrive, and print a comparison's rows when it is complete.

    Files are always written from the stored fits, so a resumed run and an unbroken one write the same.
    """
    records: list[UnitRecord] = []
    row: list[UnitRecord] = []
    labels = {unit.method.name: unit.method.label for unit in units}
    names = [unit.task.label for unit in units]
    console.start(len(units))
    for unit, finished in zip(units, done, strict=True):
        trouble = None if finished else next(outcomes)
        record = _unit_record(unit, trouble, output, subject, fold_maps, console)
        row.append(record)
        seconds = record.timing["seconds"]
        said = record.summary["status"] if seconds is None else "stored" if finished else f"{seconds:.1f} s"
        console.advance(f"{unit.task.label}, {unit.method.label}: {said}")
        if len(row) == len(labels):
            rows = [{**record.summary, "seconds": record.timing["seconds"]} for record in row]
            console.result(pair_lines(rows, labels, header=not records, names=names))
            records += row
            row = []
    return records


def _of_fitted(found: Sequence[UnitInference], records: Sequence[UnitRecord]) -> list[UnitInference]:
    """Inference about the units that have fits."""
    fitted = {(r.summary["contrast"], r.summary["method"]) for r in records if r.summary["status"] == "ok"}
    return [each for each in found if (each.unit.task.name, each.unit.method.name) in fitted]


def _unit_record(
    unit: Unit, trouble: str | None, output: Output, subject: Subject, fold_maps: bool, console: Console
) -> UnitRecord:
    """Write the files of a unit, or take down why it has none; the other units go on either way."""
    if trouble is None:
        try:
            fits, _ = load_fits(unit.path)
            return write_unit(output.folder, subject, unit.task, unit.method, fits, fold_maps)
        except ValueError:  # such as weights that are not finite
            trouble = traceback.format_exc()
    console.note(trouble, level=2)
    return failed_unit(subject, unit.task, unit.method, trouble.strip().splitlines()[-1])


def finish(output: Output, console: Console) -> int:
    """Page, manifest, the full table, and a last look whether everything promised is there."""
    results = read_results(output.root)
    write_manifest(results)
    page = build_report(output.root)
    console.result("\n" + paper_table(results.rows, results.labels, console.width) + "\n", always=True)
    if results.inference:
        console.result(inference_lines(results) + "\n", always=True)
    for caution in cautions(results):
        console.note(f"Caution: {caution}")
    console.note(f"Page: {page}")
    return _verdict(output.root, console)


def rebuild_report(root: Path, console: Console) -> int:
    """--reports-only: figures and page from the folder alone."""
    try:
        console.note(f"Page: {build_report(root)}")
    except ResultsError as error:
        raise StudyError(f"--reports-only: {error}") from error
    except (OSError, KeyError, ValueError, TypeError) as error:
        raise StudyError(
            f"--reports-only: a file of {root} is missing or damaged ({_one_line(error)}). Write the files "
            "again from the stored fits: the same command with --resume."
        ) from error
    return _verdict(root, console)


def _one_line(error: Exception) -> str:
    """What an error says, without its line breaks."""
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__


def _verdict(root: Path, console: Console) -> int:
    """0 only when no unit failed and no promised file is missing."""
    results = read_results(root)
    missing = missing_files(results)
    failed = [row for row in results.rows if row["status"] != "ok" and row["contrast"] != "average"]
    for path in missing:
        console.note(f"missing: {path}", level=0)
    if missing:
        console.note("Write what is missing: the same command with --resume.", level=0)
    failed += [row for row in results.inference_rows() if row["status"] != "ok"]
    for row in failed:
        console.note(f"{row['comparison']}, {row['method']}: {row['status']}", level=0)
    return 1 if missing or failed else 0
