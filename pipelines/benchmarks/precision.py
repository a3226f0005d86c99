"""GAMPClassifier on float64 X beside float32: one fit of the same rows, in turns."""

from typing import Any

import numpy as np

from mvpa_gamp import GAMPClassifier

from .problems import Problem
from .timing import Extrapolated, in_turns


def precision_rows(problem: Problem, rounds: int) -> list[dict[str, Any]]:
    """Seconds of one tuned fit on all rows in both precisions, without and with neighbours."""
    wide = problem._replace(X=problem.X.astype(np.float64))
    graph = problem.connectivity()
    rows = []
    for spatial in (False, True):
        model = GAMPClassifier(connectivity=graph if spatial else None)
        jobs = {
            each.X.dtype.name: lambda _, X=each.X, model=model: model.fit(X, problem.y)
            for each in (problem, wide)
        }
        in_turns(jobs, 1)
        times = {name: Extrapolated(timed, 1) for name, timed in in_turns(jobs, rounds).items()}
        rows += [
            {
                "precision": name,
                "neighbours": spatial,
                "rows": problem.X.shape[0],
                "voxels": problem.X.shape[1],
                "seconds": time.seconds,
                "ratio": time.ratio_to(times["float32"]),
                "cpu_seconds": float(np.median(time.timed.cpu_seconds)),
                "cpu_ratio": time.cpu_ratio_to(times["float32"]),
            }
            for name, time in times.items()
        ]
    return rows
