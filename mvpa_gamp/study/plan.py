"""Which comparisons and which methods a study runs; what cannot run is refused before the first fit."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.decoding.folds import leave_one_run_out
from mvpa_gamp.decoding.tasks import Task, make_tasks, parse_pairs
from mvpa_gamp.imaging.samples import Samples
from mvpa_gamp.methods import METHODS
from mvpa_gamp.methods.class_weights import with_class_weight
from mvpa_gamp.methods.fold_fits import Method
from mvpa_gamp.study.errors import StudyError


def choose_methods(names: Sequence[str]) -> list[Method]:
    """The methods of the given names, in their order."""
    unknown = [name for name in names if name not in METHODS]
    if unknown or not names:
        came = ", ".join(map(repr, unknown)) or "none"
        raise StudyError(f"--methods: expected some of {', '.join(METHODS)}, got {came}. Correct the names.")
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


def choose_tasks(pairs: Sequence[str] | None, samples: Samples) -> list[Task]:
    """The comparisons asked for, each with enough runs to leave one out."""
    try:
        chosen = parse_pairs(pairs, np.unique(samples.conditions), samples.dropped)
        tasks = make_tasks(samples.conditions, chosen)
    except ValueError as error:
        raise StudyError(f"--pairs: {error}") from error
    for task in tasks:
        _check_folds(task, np.asarray(samples.runs)[task.rows])
    return tasks


def planted_voxels(samples: Samples, tasks: Sequence[Task]) -> dict[str, NDArray]:
    """For a phantom, the voxels (N,) bool whose signal differs between the categories of each task."""
    if samples.truth is None:
        return {}
    return {task.name: samples.truth.for_pair(task.positive, task.negative) for task in tasks}


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
