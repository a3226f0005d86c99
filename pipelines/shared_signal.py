"""Does any method fail in silence where all voxels share a strong signal, such as the global one or motion?

Smooth volumes in runs, neighbouring volumes correlated, z-scored run by run, with an effect in a cube of
4 x 4 x 4 voxels and one spatial mode that comes and goes with every volume, of a size from 0 to 5 (of the
noise's standard deviation). Each study is decoded with whole runs left out. A fit fails in silence if it says
that it ended well although it classifies fewer than 60 % of its own training volumes correctly.
"""

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter
from sklearn.feature_extraction.image import grid_to_graph

from mvpa_gamp.methods import METHODS, FoldFits

from .command import Options, parse_trials
from .output import write_record, write_table
from .trial_store import TrialStore

NAME = "shared_signal"
COMPARED = ("vamp-sbg", "vamp-bg", "gamp-sbg-lr", "gamp-bg-lr", "lda")
MODES = (0.0, 1.0, 2.0, 3.0, 5.0)
AT_CHANCE = 0.6
_AUTOCORRELATION = 0.3


@dataclass(frozen=True)
class Size:
    """Voxels of a volume, runs and volumes per run, effects in standard deviations, and studies of each."""

    shape: tuple[int, int, int]
    n_runs: int
    n_volumes: int
    effects: tuple[float, ...]
    n_trials: int


QUICK = Size((12, 11, 10), 5, 40, (1.0,), 2)
FULL = Size((20, 18, 16), 8, 40, (0.7, 1.0), 20)


@dataclass(frozen=True)
class Study:
    """Volumes in order."""

    X: NDArray  # (M, N) float32
    y: NDArray  # (M,)
    runs: NDArray  # (M,)


def simulate(size: Size, mode: float, effect: float, rng: np.random.Generator) -> Study:
    """One study; labels change every four volumes."""
    n_rows = size.n_runs * size.n_volumes
    y = np.where(np.arange(n_rows) // 4 % 2, 1.0, -1.0)
    runs = np.repeat(np.arange(size.n_runs), size.n_volumes)
    X = np.stack([_smooth(size.shape, rng) for _ in range(n_rows)])
    course = rng.standard_normal(n_rows)
    for row in range(1, n_rows):
        X[row] += _AUTOCORRELATION * X[row - 1]
        course[row] += _AUTOCORRELATION * course[row - 1]
    X += mode * course[:, None] * (1 + 0.5 * _smooth(size.shape, rng))
    cube = np.zeros(size.shape, dtype=bool)
    cube[tuple(slice(n // 2 - 2, n // 2 + 2) for n in size.shape)] = True
    X[:, cube.ravel()] += effect / 2 * y[:, None]
    for run in range(size.n_runs):
        rows = runs == run
        X[rows] = (X[rows] - X[rows].mean(axis=0)) / X[rows].std(axis=0)
    return Study(X.astype(np.float32), y, runs)


def _smooth(shape: tuple[int, int, int], rng: np.random.Generator) -> NDArray:
    field = gaussian_filter(rng.standard_normal(shape), 1.0).ravel()
    return np.asarray(field / field.std())


def fit(method: str, study: Study, shape: tuple[int, int, int]) -> tuple[FoldFits, NDArray]:
    """The fits of all folds, and the rows (M, F) that train them."""
    train = study.runs[:, None] != np.unique(study.runs)
    chosen = METHODS[method]
    graph = {"connectivity": grid_to_graph(*shape)} if getattr(chosen, "uses_connectivity", False) else {}
    return chosen.fit_folds(study.X, study.y, train, study.runs, **graph), train


def judged(method: str, study: Study, shape: tuple[int, int, int]) -> dict[str, Any]:
    """Accuracy of one method, and how many of its fits failed, said so, or did not."""
    fits, train = fit(method, study, shape)
    right = (fits.decision > 0) == (study.y > 0)[:, None]
    of_training = (right & train).sum(axis=0) / train.sum(axis=0)
    return {
        "method": method,
        "accuracy_percent": 100 * float(right[~train].mean()),
        "fits": train.shape[1],
        "not_converged": int((~np.asarray(fits.converged)).sum()),
        "at_chance": int((of_training < AT_CHANCE).sum()),
        "silent": int((fits.converged & (of_training < AT_CHANCE)).sum()),
    }


def trial_rows(size: Size, trial: int, seed: int) -> list[dict[str, Any]]:
    """All methods on one study of every size of the mode and the effect."""
    rows = []
    for at, mode in enumerate(MODES):
        for effect in size.effects:
            rng = np.random.default_rng([seed, trial, at, int(100 * effect)])
            study = simulate(size, mode, effect, rng)
            about = {"mode": mode, "effect": effect, "trial": trial}
            rows += [{**about, **judged(method, study, size.shape)} for method in COMPARED]
    return rows


def summary(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Per size of the mode and method: accuracy, its paired difference from LDA, and counts of fits."""
    means = []
    for mode in MODES:
        here = [row for row in rows if row["mode"] == mode]
        lda = np.array([row["accuracy_percent"] for row in here if row["method"] == "lda"])
        for method in COMPARED:
            mine = [row for row in here if row["method"] == method]
            accuracy = np.array([row["accuracy_percent"] for row in mine])
            below = accuracy - lda
            counts = ("fits", "not_converged", "at_chance", "silent")
            means.append({
                "mode": mode,
                "method": method,
                "studies": len(mine),
                "accuracy_percent": round(float(accuracy.mean()), 2),
                "minus_lda": round(float(below.mean()), 2),
                "minus_lda_se": round(float(below.std(ddof=1) / np.sqrt(len(below))), 2),
                **{name: sum(row[name] for row in mine) for name in counts},
            })  # fmt: skip
    return means


def headline(means: Sequence[dict[str, Any]]) -> str:
    """Silent failures, and the largest shortfall of the recommended method."""
    fits, silent = (sum(row[name] for row in means) for name in ("fits", "silent"))
    worst = min(row["minus_lda"] for row in means if row["method"] == COMPARED[0])
    return f"{silent} of {fits} fits failed in silence; {COMPARED[0]} minus LDA at worst {worst:+.1f} points"


def run(options: Options, size: Size) -> dict[str, Any]:
    """Simulate, write tables and record, and return the record."""
    store = TrialStore(options.out, NAME, {**asdict(size), "seed": options.seed, "n_trials": None})
    keys = [(trial,) for trial in range(size.n_trials)]
    rows = store.rows(keys, lambda trial: trial_rows(size, trial, options.seed))
    means = summary(rows)
    write_table(options.out / f"{NAME}.csv", means)
    write_table(options.out / f"{NAME}_studies.csv", rows)
    record, path = {"headline": headline(means), "size": asdict(size)}, options.out / f"{NAME}.json"
    written = write_record(path, record, pipeline=NAME, options=options, seconds=store.seconds)
    store.finish()
    return written


def main(argv: Sequence[str] | None = None) -> int:
    print(run(*parse_trials(__doc__ or "", argv, NAME, QUICK, FULL, "studies per setting"))["headline"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
