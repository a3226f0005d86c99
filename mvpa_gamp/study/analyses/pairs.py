"""The comparisons of a study: the fits of every method, and their files as soon as they are there."""

import traceback
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from numpy.typing import NDArray

from mvpa_gamp.decoding.fit import Key, Scheme, fit_tasks
from mvpa_gamp.decoding.permutation import PermutationPlan
from mvpa_gamp.decoding.preparation import Preparation
from mvpa_gamp.decoding.tasks import Task
from mvpa_gamp.methods.fold_fits import FoldFits, Method
from mvpa_gamp.report.terminal import pair_lines
from mvpa_gamp.results.cells import failed_cell, write_cell
from mvpa_gamp.results.files import load_fits
from mvpa_gamp.results.ledger import CellRecord
from mvpa_gamp.results.tables import leading_measure
from mvpa_gamp.study.comparisons import members_part
from mvpa_gamp.study.jobs import Answers, Phase, Round
from mvpa_gamp.study.plan import PlannedCell, Study


class FitWork(NamedTuple):
    """Every fold and the refit of some methods on some comparisons."""

    methods: tuple[Method, ...]
    tasks: tuple[Task, ...]
    keys: tuple[Key, ...]  # of the fits that are wanted
    preparation: Preparation

    def answer(self, X: NDArray, runs: NDArray, connectivity: Any) -> list[FoldFits]:
        """The fits."""
        scheme = Scheme(preparation=self.preparation, connectivity=connectivity)
        found = fit_tasks(self.methods, X, self.tasks, runs, scheme)
        return [found[key] for key in self.keys]


class Pairs(Phase):
    """All cells, comparison by comparison; a comparison's rows are printed when it is complete.

    Files are always written from the stored fits, so a resumed run and an unbroken one write the same.
    ``joint`` are rounds whose answers hold fits of cells, too.
    """

    tests: Sequence[PermutationPlan] = ()

    def __init__(self, study: Study, joint: Sequence[Round] = ()) -> None:
        self.study, self.records = study, list[CellRecord]()
        known = {job.path for each in joint for job in each.jobs}
        pending = [cell for cell in study.cells if cell.path not in study.stored | known]
        super().__init__([*joint, *_rounds(study, pending)])
        self.waiting = {job.path for each in self.rounds for job in each.jobs}
        self.stored = study.stored - known
        sides = ((int((cell.task.y > 0).sum()), int((cell.task.y < 0).sum())) for cell in study.cells)
        self.lead = leading_measure(sides)

    @property
    def phases(self) -> Sequence[Phase]:
        """One."""
        return (self,)

    def begin(self, answers: Answers) -> None:
        """Write what is stored already."""
        answers.console.start(len(self.study.cells))
        self._write_ready(answers)

    def advance(self, round_: Round, answers: Answers) -> None:
        """Write what is there now."""
        self.waiting -= {job.path for job in round_.jobs}
        self._write_ready(answers)

    def write(self, answers: Answers) -> dict[str, Any]:
        """Their tables are written last; sides that are groups have a part of their own."""
        return members_part(self.study.samples, self.study.tasks)

    def _write_ready(self, answers: Answers) -> None:
        """Write the files of the next cells, in their order, as far as their fits are there."""
        n_methods = len(self.study.methods)
        for cell in self.study.cells[len(self.records) :]:
            if cell.path in self.waiting:
                return
            record = self._record(cell, answers)
            self.records.append(record)
            told = "" if cell.path not in self.stored else " (stored)"
            if record.timing["seconds"] is None:
                told = f": {record.summary['status']}"
            answers.console.advance(f"{cell.label}{told}", minor=True)
            if len(self.records) % n_methods == 0:
                answers.console.result(self._lines(self.records[-n_methods:]))

    def _record(self, cell: PlannedCell, answers: Answers) -> CellRecord:
        """Write the files of a cell, or take down why it has none; the other cells go on either way."""
        files, trouble = self.study.files(cell), answers.trouble([cell.job])
        if not trouble:
            try:
                record = write_cell(files, load_fits(cell.path)[0])
                answers.written.add(cell.path)
                return record
            except ValueError as error:  # such as weights that are not finite
                answers.console.note(traceback.format_exc(), level=2)
                trouble = f"{type(error).__name__}: {error}".strip().splitlines()[-1]
        return failed_cell(files, trouble)

    def _lines(self, records: Sequence[CellRecord]) -> str:
        """The rows of a comparison for the terminal."""
        rows = [{**record.summary, "seconds": record.timing["seconds"]} for record in records]
        labels = {method.name: method.label for method in self.study.methods}
        names, said = [cell.task.label for cell in self.study.cells], self.study.subject.space.said
        return pair_lines(rows, labels, len(self.records) == len(records), names, self.lead, said)


def _rounds(study: Study, pending: Sequence[PlannedCell]) -> Iterator[Round]:
    """The fits to be made: cell by cell, or all together where every fold has an X of its own."""
    together = [[cell] for cell in pending] if study.steps.shared else [pending]
    for cells in filter(None, together):
        methods = {cell.method.name: cell.method for cell in cells}
        tasks = {cell.task.name: cell.task for cell in cells}
        keys = tuple(cell.key for cell in cells)
        work = FitWork(tuple(methods.values()), tuple(tasks.values()), keys, study.steps)
        yield Round(work, tuple(cell.job for cell in cells))
