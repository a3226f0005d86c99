"""From settings to a finished results folder: the order of things."""

from typing import Any

import numpy as np

from mvpa_gamp.decoding.information import carries_information
from mvpa_gamp.decoding.people import people_scores
from mvpa_gamp.decoding.scores import held_out_answers
from mvpa_gamp.imaging.samples import Samples
from mvpa_gamp.imaging.spaces import space_of
from mvpa_gamp.parallel import Workers
from mvpa_gamp.results.files import write_text
from mvpa_gamp.results.inference_files import write_inference
from mvpa_gamp.results.information_files import write_information
from mvpa_gamp.results.people_files import write_people
from mvpa_gamp.results.stored_fits import load_fits
from mvpa_gamp.results.study_files import write_start, write_tables
from mvpa_gamp.study.checks import usage_errors
from mvpa_gamp.study.console import Console
from mvpa_gamp.study.describe import about_study, resolution
from mvpa_gamp.study.finish import finish
from mvpa_gamp.study.fitting import Found, fit_study
from mvpa_gamp.study.inference import fewer_words, permutation_words
from mvpa_gamp.study.lock import FolderLock
from mvpa_gamp.study.output import Output, check_output, prepare
from mvpa_gamp.study.preparing import exchange_of, write_checks
from mvpa_gamp.study.regions import region_notes, write_region_files
from mvpa_gamp.study.settings import INFERENCE, StudySettings, settings_text
from mvpa_gamp.study.study_plan import StudyPlan, plan_study


def run_study(settings: StudySettings, output: Output, workers: Workers, console: Console) -> int:
    """Run a study; returns 0 when every promised file is there, 1 when something failed on the way.

    Input that cannot be run raises :class:`StudyError` before the results folder is touched.
    """
    with FolderLock(output.folder, output.owner) as lock:
        with usage_errors():
            plan = plan_study(settings, output, workers, console)
            lock.take()
            check_output(plan.output)  # once more: another run may have ended there meanwhile
            left = prepare(plan.output)
            write_text(plan.folder.config, settings_text(plan.settings))
            write_start(plan.folder, plan.subject, plan.samples.background_img)
        console.log_to(plan.folder.log)
        _announce(plan, console)
        if left:
            console.note(left)
        found = fit_study(plan, workers, console)
        about = about_study(plan.settings, plan.samples, plan.prepared, plan.tasks)
        extra = _beyond_the_table(plan, found)
        write_tables(plan.folder, plan.subject, plan.tasks, plan.methods, found.records, about, extra)
        return finish(plan.output, console)


def _announce(plan: StudyPlan, console: Console) -> None:
    """The first lines of a run."""
    samples = plan.samples
    if samples.banner:
        console.note(f"{samples.banner}.", level=0)
    console.note(
        f"{_whose(samples)}: {_decoded(plan)} x {samples.X.shape[1]:,} "
        f"{space_of(samples.mask_img).elements}{_place(samples)}, "
        f"{_count(len(plan.tasks), 'comparison')} x {_count(len(plan.methods), 'method')}"
        + (f", {sum(plan.stored)} of {len(plan.cells)} fits already stored" if any(plan.stored) else "")
    )
    tests = [each.permutation for each in plan.inference if each.permutation is not None]
    said = permutation_words(plan.settings, plan.tasks, plan.methods, tests)
    fewer = fewer_words(plan.permutations_before, plan.settings.permutations, [*tests, *plan.designs.tests])
    for note in filter(None, (said, fewer)):
        console.note(note)
    for note in (*samples.notes, *region_notes(plan.settings, plan.subject.regions)):
        console.note(note)
    for sentence in plan.cautions:
        console.note(f"Caution: {sentence}")


def _decoded(plan: StudyPlan) -> str:
    """How many samples the comparisons have, as the page says, and of how many with any label."""
    decoded = np.unique(np.concatenate([task.rows for task in plan.tasks])).size
    labelled = plan.samples.X.shape[0]
    other = f" (of {labelled:,} with labels)" if decoded < labelled else ""
    return f"{decoded:,} {plan.samples.plural}{other}"


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


def _beyond_the_table(plan: StudyPlan, found: Found) -> dict[str, Any]:
    """Write all that is asked for besides the comparisons; returns its parts of summary.json."""
    return {
        **_write_inference(plan, found),
        **_write_information(plan),
        **_write_people(plan, found),
        **write_region_files(
            plan.settings, plan.folder, plan.subject, plan.cells, found.by_region, found.records
        ),
        **plan.designs.write(plan.folder, plan.subject, plan.samples, found.troubles),
        "leakage": plan.leakage.as_json(),
        **write_checks(plan.folder, plan.subject.name, plan.covariates),
    }


def _write_inference(plan: StudyPlan, found: Found) -> dict[str, Any]:
    """Permutation tests, selections and learning curves of the cells that have fits."""
    if not plan.settings.has_inference:
        return {}
    records = [record.summary for record in found.records]
    fitted = {(row["contrast"], row["method"]) for row in records if row["status"] == "ok"}
    known = [
        (plan.files(each.cell), load_fits(each.cell.path)[0], inference)
        for each, inference in zip(plan.inference, found.inference, strict=True)
        if (each.cell.task.name, each.cell.method.name) in fitted
    ]
    asked = {name: getattr(plan.settings, name) for name in INFERENCE}
    return {"inference": write_inference(plan.folder, asked, known)}


def _write_information(plan: StudyPlan) -> dict[str, Any]:
    """Which voxels carry information about the labels, from as many permutations; needs no fit."""
    settings, samples = plan.settings, plan.samples
    if not settings.permutations:
        return {}
    X, found = plan.prepared.voxels(samples.X), []
    for task in plan.tasks:
        within, blocks = exchange_of(samples, task)
        n, seed = settings.permutations, settings.seed
        found.append((task, carries_information(X[task.rows], task.y, within, n, seed, blocks=blocks)))
    return {"information": write_information(plan.folder, plan.subject, found)}


def _write_people(plan: StudyPlan, found: Found) -> dict[str, Any]:
    """Forced choice and the like, where maps are of many participants."""
    samples = plan.samples
    if samples.people is None:
        return {}
    tests = {
        (each.cell.task.name, each.cell.method.name): answer.permutation
        for each, answer in zip(plan.inference, found.inference, strict=True)
    }
    records = [record.summary for record in found.records]
    fitted = {(row["contrast"], row["method"]) for row in records if row["status"] == "ok"}
    out = []
    for cell in plan.cells:
        key = cell.task.name, cell.method.name
        if key not in fitted:
            continue
        said = held_out_answers([load_fits(cell.path)[0]])
        people = samples.people[cell.task.rows][said.rows]
        by_person = samples.held_out == "participant"
        scores = people_scores(said.decision[:, 0], cell.task.y[said.rows], people, tests.get(key), by_person)
        out.append((plan.files(cell), scores))
    return write_people(plan.folder, plan.subject.name, out)
