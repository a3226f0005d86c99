"""Forced choice, sensitivity, specificity and area under the curve, where maps are of many participants."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mvpa_gamp.decoding.people import people_scores
from mvpa_gamp.decoding.permutation import PermutationPlan
from mvpa_gamp.decoding.scores import held_out_answers
from mvpa_gamp.results.files import load_fits
from mvpa_gamp.results.tables import write_people
from mvpa_gamp.study.analyses.inference import Inference
from mvpa_gamp.study.jobs import Answers, Phase
from mvpa_gamp.study.plan import Study


@dataclass
class People:
    """Needs no jobs: it reads the fits of the comparisons, and their permutation tests."""

    study: Study
    inference: Inference
    phases: Sequence[Phase] = ()
    tests: Sequence[PermutationPlan] = ()

    def write(self, answers: Answers) -> dict[str, Any]:
        """The table of all cells that have fits."""
        samples = self.study.samples
        if samples.people is None:
            return {}
        tests = {each.cell.path: each.together(answers).permutation for each in self.inference.jobs}
        by_person, found = samples.held_out == "participant", []
        for cell in (cell for cell in self.study.cells if cell.path in answers.written):
            said = held_out_answers([load_fits(cell.path)[0]])
            people, y = samples.people[cell.task.rows][said.rows], cell.task.y[said.rows]
            scores = people_scores(said.decision[:, 0], y, people, tests.get(cell.path), by_person)
            found.append((self.study.files(cell), scores))
        return write_people(self.study.folder, self.study.subject.name, found)
