"""From settings to a finished results folder: the order of things."""

from collections.abc import Sequence
from contextlib import closing
from itertools import islice

import numpy as np

from mvpa_gamp.imaging.samples import Samples
from mvpa_gamp.imaging.spaces import space_of
from mvpa_gamp.parallel import Workers, run_tasks
from mvpa_gamp.results.files import write_text
from mvpa_gamp.results.study_files import write_start, write_tables
from mvpa_gamp.study.analyses import plan_analyses
from mvpa_gamp.study.analyses.inference import fewer_words, permutation_words
from mvpa_gamp.study.analyses.regions import region_notes
from mvpa_gamp.study.checks import usage_errors
from mvpa_gamp.study.console import Console
from mvpa_gamp.study.describe import about_study, resolution
from mvpa_gamp.study.finish import finish
from mvpa_gamp.study.jobs import Analysis, Answers, answered
from mvpa_gamp.study.lock import FolderLock
from mvpa_gamp.study.output import Output, check_output, prepare
from mvpa_gamp.study.plan import Study, plan_study
from mvpa_gamp.study.preparation import write_checks
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
