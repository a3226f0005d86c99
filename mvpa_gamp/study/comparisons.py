"""Which comparisons and which methods a study runs; what cannot run is refused before the first fit."""

import difflib
from collections.abc import Sequence
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
from mvpa_gamp.decoding.folds import leave_one_run_out
from mvpa_gamp.decoding.tasks import Task, dominant, make_tasks, member_rows
from mvpa_gamp.imaging.samples import Samples
from mvpa_gamp.methods import METHODS
from mvpa_gamp.methods.class_weights import with_class_weight
from mvpa_gamp.methods.fold_fits import Method
from mvpa_gamp.methods.nested import nested_plan
from mvpa_gamp.study.errors import StudyError


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
        _check_folds(task, np.asarray(samples.runs)[task.rows])
    return tasks


def choose_classes(classes: Sequence[str], samples: Samples) -> Classes | None:
    """The classes to be told apart together, each left in training whatever run is held out."""
    if not classes:
        return None
    known = np.unique(samples.conditions).tolist()
    found = make_classes(samples.conditions, parse_classes(classes, known, samples.dropped))
    runs = samples.runs[found.rows]
    for run in np.unique(runs):
        missing = set(range(len(found.names))) - set(found.codes[runs != run].tolist())
        if missing:
            raise StudyError(
                f"--classes: without run {run} there are no samples of {found.names[min(missing)]} to "
                "train on. Each class must occur in at least two runs; leave it out, or give more runs."
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


def _check_folds(task: Task, runs: np.ndarray) -> None:
    """Refuse a comparison that leave-one-run-out cannot judge."""
    try:
        folds = leave_one_run_out(runs)
    except ValueError as error:
        raise StudyError(f"{task.label}: {error}") from error
    for train, run in zip(folds.train.T, folds.held_out, strict=True):
        if len(np.unique(task.y[train])) < 2:
            raise StudyError(
                f"{task.label}: without run {run} only one of the two categories is left to train on. "
                "Each category must occur in at least two runs; give more runs, or other pairs."
            )
