"""What a study compares, by which methods, and what folds fit before; checked before the first fit."""

import difflib
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.decoding.designs import (
    Classes,
    Cross,
    check_crosses,
    design_pairs,
    make_classes,
    make_crosses,
    parse_classes,
    session_crosses,
)
from mvpa_gamp.decoding.exchange import blocks_of_volumes
from mvpa_gamp.decoding.folds import leave_one_run_out
from mvpa_gamp.decoding.leakage import Checked, Evidence, find_leakage
from mvpa_gamp.decoding.preparation import (
    FoldConfounds,
    NoiseWhitening,
    Preparation,
    Unchanged,
    in_sequence,
    prepared_by_all,
)
from mvpa_gamp.decoding.tasks import Task, dominant, make_tasks, member_rows
from mvpa_gamp.decoding.ties import CovariateCheck, check_covariates
from mvpa_gamp.imaging.covariates import read_covariates
from mvpa_gamp.imaging.samples import KINDS, Samples
from mvpa_gamp.methods import METHODS
from mvpa_gamp.methods.fold_fits import Method, with_class_weight
from mvpa_gamp.methods.nested import nested_plan
from mvpa_gamp.results.files import write_tsv
from mvpa_gamp.results.names import ResultsFolder
from mvpa_gamp.study.ending import StudyError
from mvpa_gamp.study.settings import StudySettings


def choose_methods(names: Sequence[str]) -> list[Method]:
    """The methods of the given names, in their order."""
    unknown = [name for name in names if name not in METHODS]
    if unknown or not names:
        came = ", ".join(map(repr, unknown)) or "none"
        near = [name for each in unknown for name in difflib.get_close_matches(each.lower(), METHODS, n=1)]
        todo = f"Did you mean {' '.join(near)}?" if near else "Correct the names."
        raise StudyError(f"--methods: expected some of {', '.join(METHODS)}, got {came}. {todo}")
    return [METHODS[name] for name in dict.fromkeys(names)]


def weighted_methods(methods: Sequence[Method], class_weight: str | None) -> list[Method]:
    """The methods with --class-weight; one that cannot weigh the categories is refused by name."""
    if class_weight not in (None, "balanced"):
        raise StudyError(
            f"--class-weight: expected balanced, got {class_weight!r}. Correct it, or leave it out."
        )
    try:
        return [with_class_weight(method, class_weight) for method in methods]
    except ValueError as error:
        raise StudyError(f"--class-weight: {error}") from error


def choose_tasks(
    pairs: Sequence[str] | None,
    samples: Samples,
    classes: Sequence[str] = (),
    cross: Sequence[str] = (),
) -> list[Task]:
    """The comparisons asked for, those among classes and of crosses included, each with enough runs."""
    try:
        chosen = design_pairs(pairs, classes, cross, np.unique(samples.conditions).tolist(), samples.dropped)
        tasks = make_tasks(samples.conditions, chosen)
    except ValueError as error:
        option = "" if str(error).startswith("--") else "--pairs: "
        raise StudyError(f"{option}{error}") from error
    for task in tasks:
        _check_folds(task, np.asarray(samples.runs)[task.rows], samples.held_out)
    return tasks


def choose_classes(classes: Sequence[str], samples: Samples) -> Classes | None:
    """The classes to be told apart together, each left in training whatever run is held out."""
    if not classes:
        return None
    known = np.unique(samples.conditions).tolist()
    found = make_classes(samples.conditions, parse_classes(classes, known, samples.dropped))
    runs, word = samples.runs[found.rows], samples.held_out
    for run in np.unique(runs):
        missing = set(range(len(found.names))) - set(found.codes[runs != run].tolist())
        if missing:
            raise StudyError(
                f"--classes: without {word} {run} there are no samples of {found.names[min(missing)]} to "
                f"train on. Each class must occur in two {word}s or more; leave it out, or give more {word}s."
            )
    return found


def choose_crosses(
    cross: Sequence[str], cross_session: Sequence[str], samples: Samples, tasks: Sequence[Task]
) -> list[Cross]:
    """What is trained on one comparison, or on some runs, and tested on another."""
    runs, out, counted = samples.runs, [], "run" if samples.people is None else "participant"
    for option, make in (
        ("--cross", lambda: make_crosses(samples.conditions, cross, samples.dropped)),
        ("--cross-session", lambda: session_crosses(tasks, cross_session, runs, samples.sessions, counted)),
    ):
        try:
            found = make()
            check_crosses(found, runs)
        except ValueError as error:
            raise StudyError(f"{option}: {error}") from error
        out += found
    return out


def check_tuning(methods: Sequence[Method], parts: Sequence[Task] | Sequence[Cross], runs: NDArray) -> None:
    """Refuse methods that tune by nested cross-validation where a comparison has too few runs for it."""
    searching = ", ".join(method.name for method in methods if not method.is_batched)
    for part in parts if searching else ():
        train, test = (part.train, part.test) if isinstance(part, Cross) else (part, part)
        own, held_out = runs[train.rows], np.unique(runs[test.rows])
        try:
            nested_plan(train.y[:, None] * (own[:, None] != held_out), own)
        except ValueError as error:
            raise StudyError(f"{part.label}, --methods {searching}: {error}") from error


def members_part(samples: Samples, tasks: Sequence[Task]) -> dict[str, Any]:
    """The part of summary.json on sides that are groups: rows of each member, by run, and who dominates."""
    rows = []
    for task in (task for task in tasks if task.members):
        for side in task.sides:
            counted = member_rows([side], samples.conditions, samples.runs)
            first = dominant([each.rows for each in counted])
            rows += [
                {
                    "contrast": task.name,
                    "comparison": task.label,
                    **each._asdict(),
                    "dominates": place == first,
                }
                for place, each in enumerate(counted)
            ]
    return {"members": rows} if rows else {}


def planted_voxels(samples: Samples, tasks: Sequence[Task]) -> dict[str, NDArray]:
    """For a phantom, the voxels (N,) bool whose mean signal differs between the two sides of each task."""
    if samples.truth is None:
        return {}
    means = {}
    for task in tasks:
        means[task.name] = [
            np.mean([samples.truth.response(member) for member in side.members], axis=0)
            for side in task.sides
        ]
    return {name: first != second for name, (first, second) in means.items()}


def _check_folds(task: Task, runs: np.ndarray, word: str) -> None:
    """Refuse a comparison that leave-one-run-out cannot judge."""
    try:
        folds = leave_one_run_out(runs)
    except ValueError as error:
        raise StudyError(f"{task.label}: {error}") from error
    for train, run in zip(folds.train.T, folds.held_out, strict=True):
        if len(np.unique(task.y[train])) < 2:
            raise StudyError(
                f"{task.label}: without {word} {run} only one of the two categories is left to train on. "
                f"Each category must occur in at least two {word}s; give more {word}s, or other pairs."
            )


PARTICIPANT = "{participant}"  # in the name of the file: where a participant's label stands
_KINDS = {"block": "block", "trial": "trial", "betas": "beta"}  # of --samples, without volumes


@dataclass(frozen=True)
class StudyPreparation:
    """What is asked for."""

    steps: Preparation = field(default_factory=Unchanged)
    confounds: FoldConfounds | None = None
    whiten: bool = False

    @property
    def key(self) -> str:
        """A digest for the fingerprints of fits, empty where nothing is prepared."""
        confounds = self.confounds
        values = "" if confounds is None else hashlib.sha256(confounds.values.tobytes()).hexdigest()
        return " whitened" * self.whiten + f" without {values}" * bool(values)

    def voxels(self, X: NDArray) -> NDArray:
        """X without what covariates explain in all rows, for tests of single voxels, which have no folds."""
        return X if self.confounds is None else prepared_by_all(self.confounds, X).X


def check_preparation(settings: StudySettings, labels: Sequence[str] = ()) -> None:
    """Refuse what needs no data to be known wrong; ``labels`` are the participants of a dataset."""
    kind = _KINDS.get(getattr(settings.source, "samples", ""))
    if settings.whiten and kind:
        raise _no_noise(KINDS[kind])
    if settings.fold_confounds and len(labels) > 1 and PARTICIPANT not in settings.fold_confounds:
        raise StudyError(
            f"--fold-confounds: expected a file for each of {len(labels)} participants, got one name, "
            f"{settings.fold_confounds}. Write {PARTICIPANT} in it where the label belongs, such as "
            f"covariates/sub-{PARTICIPANT}.tsv."
        )
    files = [Path(settings.fold_confounds.replace(PARTICIPANT, label)) for label in labels]
    if settings.fold_confounds and files and not any(file.expanduser().is_file() for file in files):
        raise StudyError(
            f"--fold-confounds {files[0]}: expected a TSV, found no file there, nor for any other "
            "participant. Check the path."
        )


def _no_noise(plural: str) -> StudyError:
    return StudyError(
        f"--whiten estimates noise from several volumes of every block, got {plural}. Leave it out."
    )


def prepare_folds(settings: StudySettings, samples: Samples) -> StudyPreparation:
    """The preparation of a study's samples; DataError or StudyError where it does not fit them."""
    if settings.whiten and samples.kind != "volume":
        raise _no_noise(samples.plural)
    confounds = None
    if samples.covariates:
        confounds = FoldConfounds(
            np.column_stack(list(samples.covariates.values())), tuple(samples.covariates)
        )
    if settings.fold_confounds and samples.people is not None:
        raise StudyError(
            "--fold-confounds is a table without file names, whose lines cannot be told apart from those of "
            "--maps. Give columns of the maps' table: --covariates NAME."
        )
    if settings.fold_confounds:
        found = read_covariates(settings.fold_confounds.replace(PARTICIPANT, samples.subject)).of(samples)
        confounds = FoldConfounds(found.values, found.names)
    whitening = NoiseWhitening(blocks_of(samples)) if settings.whiten else None
    return StudyPreparation(in_sequence([confounds, whitening]), confounds, settings.whiten)


def blocks_of(samples: Samples) -> NDArray:
    """The block of each sample: what is exchanged as a whole. Means of events and given maps stand alone."""
    each = np.arange(len(samples.runs))
    if samples.kind != "volume":
        return each
    volumes = each if samples.volumes is None else samples.volumes
    return blocks_of_volumes(samples.conditions, samples.runs, volumes)


def exchange_of(samples: Samples, task: Task | Classes) -> tuple[NDArray, NDArray]:
    """Within what the labels of a comparison are exchanged (m,), and the blocks (m,) that move as a whole.

    Of many participants: within each where they have maps of both sides, else whole participants, within the
    folds that were made to have as many of both.
    """
    rows = task.rows
    if samples.people is None:
        return samples.runs[rows], blocks_of(samples)[rows]
    people, conditions = samples.people[rows], task.codes if isinstance(task, Classes) else task.y
    if any(np.ptp(conditions[people == one]) > 0 for one in np.unique(people)):
        return people, np.arange(len(rows))
    folds = samples.runs[rows]
    alone = samples.held_out == "participant" or any(
        np.ptp(folds[people == one]) for one in np.unique(people)
    )
    return (np.zeros_like(folds) if alone else folds), people


def covariate_checks(
    prepared: StudyPreparation, samples: Samples, tasks: Sequence[Task], seed: int
) -> list[CovariateCheck]:
    """Which covariates decode which comparisons by themselves."""
    confounds = prepared.confounds
    if confounds is None:
        return []
    return check_covariates(
        confounds.values, confounds.names, tasks, samples.runs, blocks_of(samples), seed=seed
    )


def write_checks(folder: ResultsFolder, subject: str, checks: Sequence[CovariateCheck]) -> dict[str, Any]:
    """The table of the checks; returns the part of summary.json about them."""
    if not checks:
        return {}
    rows = [each._asdict() for each in checks]
    write_tsv(folder.subject_table(subject, "foldconfounds"), CovariateCheck._fields, rows)
    cautions = [each.caution for each in checks if each.caution]
    return {"fold_confounds": {"checks": rows, "cautions": cautions}}


def check_before_fits(
    settings: StudySettings, samples: Samples, tasks: Sequence[Task], prepared: StudyPreparation
) -> tuple[Checked, list[CovariateCheck]]:
    """What could make the scores too good, and which covariates decode by themselves; strictly an error."""
    found = check_leakage(settings, samples, tasks)
    checks = covariate_checks(prepared, samples, tasks, settings.seed)
    sentences = [*found.sentences, *(check.caution for check in checks if check.caution)]
    if settings.strict and sentences:
        more = len(sentences) - 1
        others = (
            f" ({more} more finding{'s' * (more > 1)}; without --strict they are cautions.)" if more else ""
        )
        raise StudyError(f"--strict: sub-{samples.subject}: {sentences[0]}{others}")
    return found, checks


def check_leakage(settings: StudySettings, samples: Samples, tasks: Sequence[Task]) -> Checked:
    """What could make the scores of a study too good."""
    given = settings.values()
    return find_leakage(
        Evidence(
            X=samples.X,
            conditions=samples.conditions,
            runs=samples.runs,
            pairs=_pairs(tasks),
            places=np.arange(len(samples.runs)) if samples.kind == "trial" else samples.volumes,
            kind=samples.kind,
            sessions=samples.sessions,
            t_r=samples.provenance.get("t_r"),
            lag=given.get("lag_trs"),
            around=samples.around,
            fingerprints=samples.fingerprints,
            word=samples.held_out,
        )
    )


def _pairs(tasks: Sequence[Task]) -> list[tuple[str, str]]:
    """The conditions that are compared; of groups each member with each of the other side's."""
    sides = [[side.members for side in task.sides] for task in tasks]
    return list(dict.fromkeys((a, b) for first, second in sides for a in first for b in second))


def check_strictly(settings: StudySettings) -> None:
    """--strict of one participant of a dataset, before anything of any participant is written.

    A participant who cannot be read is left for its turn, to be skipped.
    """
    try:
        ready = settings.resolve(lambda sentence: None)
        samples = ready.source.load()
        tasks = choose_tasks(ready.pairs, samples, ready.classes, ready.cross)
        prepared = prepare_folds(ready, samples)
    except (ValueError, OSError, EOFError):
        return
    check_before_fits(ready, samples, tasks, prepared)
