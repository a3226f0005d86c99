"""The work of a study that has no answer yet: sent to workers, stored and written as the answers come."""

import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from mvpa_gamp.parallel import Workers, run_tasks
from mvpa_gamp.report.terminal import pair_lines
from mvpa_gamp.results.cell import Cell, CellRecord
from mvpa_gamp.results.cell_files import failed_cell, write_cell
from mvpa_gamp.results.inference_files import CellInference
from mvpa_gamp.results.leading import leading_measure
from mvpa_gamp.results.region_files import CellRegions
from mvpa_gamp.results.stored_fits import load_fits
from mvpa_gamp.study.cells import PlannedCell, stored
from mvpa_gamp.study.console import Console
from mvpa_gamp.study.inference import collect, open_jobs
from mvpa_gamp.study.preparing import StudyPreparation
from mvpa_gamp.study.regions import collect_regions, open_region_jobs
from mvpa_gamp.study.study_plan import StudyPlan
from mvpa_gamp.study.work import FitWork, Work, answered


class Found(NamedTuple):
    """What the workers found: a record of every cell, and what goes beyond the table."""

    records: list[CellRecord]
    inference: list[CellInference]  # of the plans of inference, in their order
    by_region: dict[tuple[str, str], CellRegions]
    troubles: dict[Path, str]  # of all classes together and of crosses


def fit_study(plan: StudyPlan, workers: Workers, console: Console) -> Found:
    """Do what is open; cells come first, so that their table grows while the rest is computed."""
    designs, steps, resume = plan.designs, plan.prepared.steps, plan.output.resume
    joint = designs.replaced
    finished = [done and _key(cell) not in joint for cell, done in zip(plan.cells, plan.stored, strict=True)]
    pending = [cell for cell, done in zip(plan.cells, finished, strict=True) if not done]
    jobs = open_jobs(plan.inference, resume, steps)
    region_jobs = open_region_jobs(plan.by_region, resume)
    work = [*(each.joint.work for each in designs.joint)]
    work += _fit_work(plan.prepared, [cell for cell in pending if _key(cell) not in joint])
    work += [*(job.work for job in jobs), *(job.work for job in region_jobs)]
    work += [job.work for job in designs.jobs]
    with closing(run_tasks(answered, work, _shared(plan), workers)) as answers:
        known = designs.store_joint(answers)
        outcomes = _outcomes(pending, answers, known, together=not steps.shared)
        return Found(
            records=_write_cells(plan, finished, outcomes, console),
            inference=collect(plan.inference, jobs, answers, console),
            by_region=collect_regions(plan.by_region, region_jobs, answers, console),
            troubles=designs.store_jobs(answers, console),
        )


def _shared(plan: StudyPlan) -> tuple[Any, Any, Any]:
    """What all workers need: X, runs, and which voxels are neighbours where a method asks for it."""
    asked = any(method.uses_connectivity for method in plan.methods)
    return plan.samples.X, plan.samples.runs, plan.samples.connectivity if asked else None


def _fit_work(prepared: StudyPreparation, pending: Sequence[PlannedCell]) -> list[Work]:
    """The fits to be made: cell by cell, or all together where every fold has an X of its own."""
    if prepared.steps.shared or not pending:
        return [FitWork((cell.method,), (cell.task,), prepared.steps) for cell in pending]
    methods = {cell.method.name: cell.method for cell in pending}
    tasks = {cell.task.name: cell.task for cell in pending}
    return [FitWork(tuple(methods.values()), tuple(tasks.values()), prepared.steps)]


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
        else:
            answer = next(answers) if everything is None else everything
            yield stored(cell, answer[_key(cell)] if isinstance(answer, dict) else answer)


def _write_cells(
    plan: StudyPlan, finished: Sequence[bool], outcomes: Iterator[str | None], console: Console
) -> list[CellRecord]:
    """Write each cell's files as its fits arrive, and print a comparison's rows when it is complete.

    Files are always written from the stored fits, so a resumed run and an unbroken one write the same.
    """
    records: list[CellRecord] = []
    row: list[CellRecord] = []
    labels = {cell.method.name: cell.method.label for cell in plan.cells}
    names = [cell.task.label for cell in plan.cells]
    sides = ((int((cell.task.y > 0).sum()), int((cell.task.y < 0).sum())) for cell in plan.cells)
    lead = leading_measure(sides)
    console.start(len(plan.cells))
    for cell, done in zip(plan.cells, finished, strict=True):
        record = _record(cell, None if done else next(outcomes), plan.files(cell), console)
        row.append(record)
        console.advance(f"{cell.task.label}, {cell.method.label}{_ended(record, done)}", minor=True)
        if len(row) == len(labels):
            rows = [{**record.summary, "seconds": record.timing["seconds"]} for record in row]
            said = plan.subject.space.said
            console.result(pair_lines(rows, labels, not records, names, lead, said))
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


def _ended(record: CellRecord, done: bool) -> str:
    """What a progress line adds to the name of a cell that was not fitted just now."""
    if record.timing["seconds"] is None:
        return f": {record.summary['status']}"
    return " (stored)" if done else ""
