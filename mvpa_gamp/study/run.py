"""From settings to a finished results folder: the order of things, and what happens when one fails."""

import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from mvpa_gamp.decoding.information import carries_information
from mvpa_gamp.decoding.tasks import Task
from mvpa_gamp.imaging.atlas import Regions
from mvpa_gamp.imaging.atomic_files import WriteError
from mvpa_gamp.imaging.samples import Samples
from mvpa_gamp.imaging.spaces import space_of
from mvpa_gamp.imaging.surface_names import in_vertices
from mvpa_gamp.methods.fold_fits import Method
from mvpa_gamp.parallel import Workers, check_cluster, check_workers, run_tasks
from mvpa_gamp.report.cautions import cautions, leaks
from mvpa_gamp.report.class_methods import class_lines
from mvpa_gamp.report.closing import closing_lines
from mvpa_gamp.report.cross import cross_lines
from mvpa_gamp.report.inference_lines import inference_lines
from mvpa_gamp.report.page import build_report
from mvpa_gamp.report.printed import pair_lines, paper_table
from mvpa_gamp.report.regions import region_lines
from mvpa_gamp.results.cell import Cell, CellRecord, Subject
from mvpa_gamp.results.cell_files import failed_cell, write_cell
from mvpa_gamp.results.files import write_text
from mvpa_gamp.results.inference_files import CellInference, write_inference
from mvpa_gamp.results.information_files import write_information
from mvpa_gamp.results.leading import leading_measure
from mvpa_gamp.results.manifest import missing_files, write_manifest
from mvpa_gamp.results.reader import Results, ResultsError, read_results
from mvpa_gamp.results.stored_fits import load_fits
from mvpa_gamp.results.study_files import write_start, write_tables
from mvpa_gamp.results.tables import AVERAGE
from mvpa_gamp.results.verify import verify
from mvpa_gamp.study.cells import PlannedCell, is_done, plan_cells, stored
from mvpa_gamp.study.console import Console
from mvpa_gamp.study.describe import about_study, resolution, sidecar_facts
from mvpa_gamp.study.designs import plan_designs
from mvpa_gamp.study.errors import StudyError
from mvpa_gamp.study.inference import (
    InferencePlan,
    check_inference,
    collect,
    open_jobs,
    plan_inference,
)
from mvpa_gamp.study.leakage import check_before_fits
from mvpa_gamp.study.lock import FolderLock, check_lock
from mvpa_gamp.study.output import Output, check_output, check_resume, prepare
from mvpa_gamp.study.plan import check_tuning, choose_methods, choose_tasks, planted_voxels, weighted_methods
from mvpa_gamp.study.preparing import (
    StudyPreparation,
    blocks_of,
    check_preparation,
    prepare_folds,
    write_checks,
)
from mvpa_gamp.study.regions import (
    check_regions,
    collect_regions,
    find_regions,
    open_region_jobs,
    plan_region_jobs,
    region_notes,
    write_region_files,
)
from mvpa_gamp.study.settings import INFERENCE, StudySettings, settings_text
from mvpa_gamp.study.work import FitWork, PreparedWork, Work, answered


def run_study(settings: StudySettings, output: Output, workers: Workers, console: Console) -> int:
    """Run a study; returns 0 when every promised file is there, 1 when something failed on the way.

    Input that cannot be run raises :class:`StudyError` before the results folder is touched.
    """
    with FolderLock(output.folder, output.owner) as lock:
        return _run_study(settings, output, workers, console, lock)


def _run_study(
    settings: StudySettings, output: Output, workers: Workers, console: Console, lock: FolderLock
) -> int:
    """The same, in a folder that is locked as soon as it is written."""
    with usage_errors():
        check_output(output)
        methods = check_settings(settings, workers)
        settings = settings.resolve(console.note)
        check_resume(output, settings)
        console.note("Preparing the data ...")
        samples = settings.source.load()
        output = replace(output, entities=samples.entities)
        tasks = choose_tasks(settings.pairs, samples, settings.classes, settings.cross)
        check_tuning(methods, tasks, samples.runs)
        regions = find_regions(settings, samples)
        prepared = prepare_folds(settings, samples)
        subject = Subject(
            samples.subject, samples.mask_img, samples.banner, samples.runs, samples.volumes,
            planted_voxels(samples, tasks), settings.fold_maps, settings.whiten, samples.events,
            regions=regions, about=sidecar_facts(settings, samples, prepared), links=samples.origin.links,
        )  # fmt: skip
        checked, checks = check_before_fits(settings, samples, tasks, prepared)
        cells = plan_cells(output.folder, samples, tasks, methods, prepared.key)
        done = [output.resume and is_done(cell, console.note) for cell in cells]
        designs = plan_designs(
            settings, samples, prepared, tasks, methods, cells, done, output.folder, output.resume
        )
        plans = plan_inference(settings, samples, cells, prepared.steps)
        region_plans = plan_region_jobs(settings, samples, prepared, regions, cells)
        lock.take()
        check_output(output)  # once more: another run may have ended there meanwhile
        prepare(output)
        write_text(output.folder.config, settings_text(settings))
        write_start(output.folder, subject, samples.background_img)
    console.log_to(output.folder.log)
    _say_what(console, settings, samples, tasks, methods, sum(done), regions)
    for sentence in (*checked.sentences, *(check.caution for check in checks if check.decodes)):
        console.note(f"Caution: {sentence}")
    joint = designs.replaced
    done = [finished and _key(cell) not in joint for cell, finished in zip(cells, done, strict=True)]
    pending = [cell for cell, finished in zip(cells, done, strict=True) if not finished]
    alone = [cell for cell in pending if _key(cell) not in joint]
    jobs = open_jobs(plans, output.resume, prepared.steps)
    region_jobs = open_region_jobs(region_plans, output.resume)
    work = [*(plan.joint.work for plan in designs.joint), *_fit_work(prepared, alone)]
    work += [*(job.work for job in jobs), *(job.work for job in region_jobs)]
    work += [job.work for job in designs.jobs]
    shared = (samples.X, samples.runs, samples.connectivity if _any_asks(methods) else None)
    with closing(run_tasks(answered, work, shared, workers)) as answers:
        known = designs.store_joint(answers)
        outcomes = _outcomes(pending, answers, known, together=prepared.steps is not None)
        records = _work_through(cells, done, outcomes, output, subject, console)
        inference = collect(plans, jobs, answers, console)
        by_region = collect_regions(region_plans, region_jobs, answers, console)
        troubles = designs.store_jobs(answers, console)
    extra = _write_inference(settings, output, subject, plans, inference, records)
    extra |= _write_information(settings, samples, prepared, output, subject, tasks)
    extra |= write_region_files(settings, output.folder, subject, cells, by_region, records)
    extra |= designs.write(output.folder, subject, samples, troubles)
    extra |= {"leakage": checked.as_json()}
    extra |= write_checks(output.folder, subject.name, checks)
    about = about_study(settings, samples, prepared, tasks)
    write_tables(output.folder, subject, tasks, methods, records, about, extra)
    return finish(output, console)


def _fit_work(prepared: StudyPreparation, pending: Sequence[PlannedCell]) -> list[Work]:
    """The fits to be made: cell by cell, or all together where every fold has an X of its own."""
    if prepared.steps is None or not pending:
        return [FitWork(cell.method, cell.task.rows, cell.task.y) for cell in pending]
    methods = {cell.method.name: cell.method for cell in pending}
    tasks = {cell.task.name: cell.task for cell in pending}
    return [PreparedWork(tuple(methods.values()), tuple(tasks.values()), prepared.steps)]


def _key(cell: PlannedCell) -> tuple[str, str]:
    return cell.method.name, cell.task.name


def _outcomes(
    pending: Sequence[PlannedCell], answers: Iterator[Any], known: Mapping[Any, str | None], together: bool
) -> Iterator[str | None]:
    """Store the fits as they arrive; None, or why there are none. ``known`` are those of joint solves."""
    alone = any(_key(cell) not in known for cell in pending)
    everything = next(answers) if together and alone else None
    for cell in pending:
        if _key(cell) in known:
            yield known[_key(cell)]
        elif isinstance(everything, dict):
            yield stored(cell, everything[cell.method.name, cell.task.name])
        else:
            yield stored(cell, next(answers) if everything is None else everything)


def _write_information(
    settings: StudySettings, samples: Samples, prepared: StudyPreparation, output: Output, subject: Subject,
    tasks: Sequence[Task],
) -> dict[str, Any]:  # fmt: skip
    """Which voxels carry information about the labels, from as many permutations; needs no fit."""
    if not settings.permutations:
        return {}
    blocks, X, found = blocks_of(samples), prepared.voxels(samples.X), []
    for task in tasks:
        given = X[task.rows], task.y, samples.runs[task.rows]
        n, seed = settings.permutations, settings.seed
        found.append((task, carries_information(*given, n=n, seed=seed, blocks=blocks[task.rows])))
    return {"information": write_information(output.folder, subject, found)}


def _any_asks(methods: Sequence[Method]) -> bool:
    """Whether any method wants to know which voxels are neighbours."""
    return any(method.uses_connectivity for method in methods)


def _write_inference(
    settings: StudySettings, output: Output, subject: Subject, plans: Sequence[InferencePlan],
    found: Sequence[CellInference], records: Sequence[CellRecord],
) -> dict[str, Any]:  # fmt: skip
    """Write what goes beyond the table, of the cells that have fits; returns its part of summary.json."""
    if not settings.has_inference:
        return {}
    fitted = {(r.summary["contrast"], r.summary["method"]) for r in records if r.summary["status"] == "ok"}
    known = [
        (Cell(output.folder, subject, plan.cell.task, plan.cell.method), load_fits(plan.cell.path)[0], each)
        for plan, each in zip(plans, found, strict=True)
        if (plan.cell.task.name, plan.cell.method.name) in fitted
    ]
    asked = {name: getattr(settings, name) for name in INFERENCE}
    return {"inference": write_inference(output.folder, asked, known)}


def check_settings(settings: StudySettings, workers: Workers) -> list[Method]:
    """Refuse what needs no data to be known wrong; returns the methods."""
    try:
        check_workers(workers)
        check_cluster(workers)
    except (ValueError, OSError) as error:
        raise StudyError(str(error)) from error
    if settings.seed < 0:
        raise StudyError(f"--seed: expected 0 or more, got {settings.seed}. Change it.")
    methods = weighted_methods(choose_methods(settings.methods), settings.class_weight)
    check_inference(settings, methods)
    check_preparation(settings)
    check_regions(settings, methods)
    return methods


@contextmanager
def usage_errors() -> Iterator[None]:
    """Whatever is wrong before the first fit is wrong with what was given: one sentence, exit code 2."""
    from nibabel.filebasedimages import ImageFileError

    try:
        yield
    except (StudyError, WriteError):
        raise
    except MemoryError as error:
        raise StudyError(f"The data do not fit into memory: {error}. Use a smaller mask.") from error
    except (ValueError, OSError, EOFError, ImageFileError) as error:
        raise StudyError(" ".join(str(error).split())) from error


def _say_what(
    console: Console, settings: StudySettings, samples: Samples, tasks: Sequence[Task],
    methods: Sequence[Method], done: int, regions: Regions | None,
) -> None:  # fmt: skip
    """The first lines of a run."""
    if samples.banner:
        console.note(f"{samples.banner}.", level=0)
    console.note(
        f"sub-{samples.subject}: {samples.X.shape[0]:,} {samples.plural} x {samples.X.shape[1]:,} "
        f"{space_of(samples.mask_img).elements}{_place(samples)}, "
        f"{_count(len(tasks), 'comparison')} x {_count(len(methods), 'method')}"
        + (f", {done} of {len(tasks) * len(methods)} fits already stored" if done else "")
    )
    for note in (*samples.notes, *region_notes(settings, regions)):
        console.note(note)


def _place(samples: Samples) -> str:
    """The space of the samples, where it has a name."""
    return f" ({samples.space}, {resolution(samples)})" if samples.space else ""


def _count(number: int, thing: str) -> str:
    """A number of things, in the right number."""
    return f"{number} {thing}{'s' * (number != 1)}"


def _work_through(
    cells: Sequence[PlannedCell], done: Sequence[bool], outcomes: Iterator[str | None],
    output: Output, subject: Subject, console: Console,
) -> list[CellRecord]:  # fmt: skip
    """Write each cell's files as its fits arrive, and print a comparison's rows when it is complete.

    Files are always written from the stored fits, so a resumed run and an unbroken one write the same.
    """
    records: list[CellRecord] = []
    row: list[CellRecord] = []
    labels = {cell.method.name: cell.method.label for cell in cells}
    names = [cell.task.label for cell in cells]
    lead = leading_measure((int((cell.task.y > 0).sum()), int((cell.task.y < 0).sum())) for cell in cells)
    console.start(len(cells))
    for cell, finished in zip(cells, done, strict=True):
        trouble = None if finished else next(outcomes)
        record = _record(cell, trouble, Cell(output.folder, subject, cell.task, cell.method), console)
        row.append(record)
        seconds = record.timing["seconds"]
        said = f": {record.summary['status']}" if seconds is None else " (stored)" if finished else ""
        console.advance(f"{cell.task.label}, {cell.method.label}{said}", minor=True)
        if len(row) == len(labels):
            rows = [{**record.summary, "seconds": record.timing["seconds"]} for record in row]
            lines = pair_lines(rows, labels, header=not records, names=names, lead=lead)
            console.result(subject.space.said(lines))
            records += row
            row = []
    return records


def _record(planned: PlannedCell, trouble: str | None, cell: Cell, console: Console) -> CellRecord:
    """Write the files of a cell, or take down why it has none; the other cells go on either way."""
    if trouble is None:
        try:
            return write_cell(cell, load_fits(planned.path)[0])
        except ValueError:  # such as weights that are not finite
            trouble = traceback.format_exc()
    console.note(trouble, level=2)
    return failed_cell(cell, trouble.strip().splitlines()[-1])


def finish(output: Output, console: Console) -> int:
    """Page, manifest, the full table, and a last look whether everything promised is there."""
    results = read_results(output.root)
    write_manifest(results)
    page = build_report(output.root)
    _print_what_is_new(results, console)
    said = in_vertices if results.on_surface else str
    if results.inference:
        console.result(said(inference_lines(results)) + "\n", always=True)
    for lines in (region_lines(results), class_lines(results), cross_lines(results)):
        if lines:
            console.result(said(lines) + "\n", always=True)
    for caution in cautions(results)[len(leaks(results)) :]:  # leaks were told before the first fit
        console.note(f"Caution: {caution}")
    code = _verdict(output.root, console)
    for line in closing_lines(results, page):
        console.note(line)
    return code


def _print_what_is_new(results: Results, console: Console) -> None:
    """The averages, since rows were printed as they came; a quiet run printed none and has the table."""
    if not console.level:
        lead = results.leading_measure
        console.result(paper_table(results.rows, results.labels, console.width, lead) + "\n", always=True)
    elif len(results.tasks) > 1:
        averages = [row for row in results.rows if row["contrast"] == AVERAGE]
        names = [task["label"] for task in results.tasks]
        lead = results.leading_measure
        console.result(pair_lines(averages, results.labels, header=False, names=names, lead=lead) + "\n")


def rebuild_report(root: Path, console: Console) -> int:
    """--reports-only: figures and page from the folder alone."""
    output = Output(root, resume=True)
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
    troubles = results.study.get("regions", {}).get("troubles", {})
    for name, trouble in troubles.items():
        console.note(f"{name}, regions: {trouble}", level=0)
    return 1 if missing or failed or troubles else 0
