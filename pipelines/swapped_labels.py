"""Is what is fitted on all rows of a group safe? Labels that mean nothing, for every step and group size.

Groups (runs, participants) have rows of two compared conditions, which do not differ, and of two others,
which do, in the same order in every group, as files are sorted: places have labels that mean nothing. Each
step is then done as the package does it, and the compared rows are decoded by the difference of class means,
whole groups held out where the path does so. Accuracy must be 50 % and p-values of the permutation test
uniform.
"""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.imaging.maps import scale
from mvpa_gamp.imaging.processing import Processing, clean_run

from .command import Options, parse_trials
from .output import write_record, write_table

NAME = "swapped_labels"
N_FEATURES, N_GROUPS = 40, 16
PERMUTATIONS = 99
LEVEL = 0.05


@dataclass(frozen=True)
class Size:
    """Rows of a group that are tried, longer ones for detrending alone, and data sets of each."""

    rows: tuple[int, ...]
    longer: tuple[int, ...]
    n_trials: int


QUICK = Size((1, 2, 4, 12), (40,), 20)
FULL = Size(tuple(range(1, 21)), (40, 120), 200)


@dataclass(frozen=True)
class Data:
    """Rows in order, group by group; ``y`` is +1, -1 or 0 for a condition that is not compared."""

    X: NDArray  # (M, N)
    y: NDArray  # (M,)
    groups: NDArray  # (M,)


def simulate(n_rows: int, rng: np.random.Generator, fixed_order: bool = True) -> Data:
    """Groups of ``n_rows`` rows each, conditions in blocks, in one order or a random one."""
    each, parts = max(1, n_rows // 4), []
    others = rng.standard_normal((2, N_FEATURES))
    for group in range(N_GROUPS):
        left = max(0, n_rows - 2 * each)
        kinds = [2] * (left // 2) + [0] * each + [3] * (left - left // 2) + [1] * each
        if n_rows == 1:
            kinds = [group % 2]
        kind = np.array(kinds) if fixed_order else rng.permutation(kinds)
        X = rng.standard_normal((len(kind), N_FEATURES)) + 2 * rng.standard_normal(N_FEATURES)
        X[kind > 1] += others[kind[kind > 1] - 2]
        parts.append(Data(X, np.array([1.0, -1.0, 0.0, 0.0])[kind], np.full(len(kind), group)))
    return Data(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("X", "y", "groups")))


def by_group(data: Data, steps: Processing) -> NDArray:
    """Each group cleaned by itself, over all its rows, as volumes are: side by side, for groups are equal."""
    side_by_side = np.concatenate(np.split(data.X, N_GROUPS), axis=1)
    cleaned = clean_run(side_by_side, steps, None, None, 1)
    return np.concatenate(np.split(cleaned, N_GROUPS, axis=1))


def compared_alone(how: str) -> Callable[[Data], NDArray]:
    """Scaling of maps: over the compared rows of a group."""

    def scaled(data: Data) -> NDArray:
        X = data.X.copy()
        rows = data.y != 0
        X[rows] = scale(X[rows], data.groups[rows], how)
        return X

    return scaled


Z_SCORES = Processing(detrend=False)
LINE = Processing(standardize=None)
# What is done, whether conditions have the same order in all groups, what is held out, and the fewest rows.
PATHS: dict[str, tuple[Callable[[Data], NDArray], bool, str, int]] = {
    "nothing": (lambda data: data.X, True, "group", 1),
    "centre compared rows": (compared_alone("centre"), True, "group", 2),
    "z-score compared rows": (compared_alone("zscore"), True, "group", 8),
    "z-score all rows": (lambda data: by_group(data, Z_SCORES), True, "group", 3),
    "z-score all groups as one": (
        lambda data: clean_run(data.X, Z_SCORES, None, None, 1),
        True,
        "group",
        1,
    ),
    "detrend, same order": (lambda data: by_group(data, LINE), True, "group", 3),
    "detrend, random order": (lambda data: by_group(data, LINE), False, "group", 3),
    "centre, groups split over folds": (compared_alone("centre"), True, "rows", 2),
    "z-score all rows, groups split over folds": (lambda data: by_group(data, Z_SCORES), True, "rows", 3),
}
ALLOWED = {
    "detrend, same order": "refused",
    "detrend, random order": "refused below 10 rows",
    "centre, groups split over folds": "refused",
    "z-score all rows, groups split over folds": "refused below 20 rows",
}


def folds_of(data: Data, held_out: str, rng: np.random.Generator) -> NDArray:
    """The fold of every row: its group, or one of eight that have as many rows of each label."""
    if held_out == "group" and np.unique(data.groups).size < len(data.groups):
        return data.groups
    fold = np.zeros(len(data.y), dtype=int)
    for label in (1.0, -1.0):
        rows = rng.permutation(np.flatnonzero(data.y == label))
        fold[rows] = np.arange(len(rows)) % 8
    return fold


def accuracies(X: NDArray, labels: NDArray, fold: NDArray) -> NDArray:
    """Held-out accuracy (P,) of the difference of class means, for every column of ``labels`` (M, P)."""
    first, folds = (labels > 0).astype(float), np.unique(fold)
    own = {k: X[fold == k].T @ first[fold == k] for k in folds}  # sums of the first class in each fold
    sums, total = sum(own.values()), X.sum(axis=0)[:, None]
    counts, right = first.sum(axis=0), np.zeros(labels.shape[1])
    for k in folds:
        test = fold == k
        one, n_one = sums - own[k], counts - first[test].sum(axis=0)
        other, n_other = total - X[test].sum(axis=0)[:, None] - one, (~test).sum() - n_one
        weights, middle = one / n_one - other / n_other, (one / n_one + other / n_other) / 2
        decision = X[test] @ weights - (weights * middle).sum(axis=0)
        right += (np.sign(decision) == labels[test]).sum(axis=0)
    return right / len(fold)


def permuted(y: NDArray, groups: NDArray, rng: np.random.Generator) -> NDArray:
    """Labels (M, 1 + P): as they are, then exchanged within groups."""
    labels = np.repeat(y[:, None], PERMUTATIONS + 1, axis=1)
    for each in np.unique(groups):
        mine = np.flatnonzero(groups == each)
        order = rng.random((mine.size, PERMUTATIONS)).argsort(axis=0)
        labels[mine, 1:] = y[mine][order]
    return labels


def trial(path: str, n_rows: int, rng: np.random.Generator) -> tuple[float, float]:
    """Accuracy and p-value of one data set."""
    step, fixed, held_out, _ = PATHS[path]
    data = simulate(n_rows, rng, fixed)
    rows = data.y != 0
    X, y, groups = step(data)[rows], data.y[rows], data.groups[rows]
    fold = folds_of(Data(X, y, groups), held_out, rng)
    alone = np.unique(groups).size == len(groups)
    labels = permuted(y, fold if alone else groups, rng)
    found = accuracies(X, labels, fold)
    better, ties = (found[1:] > found[0]).sum(), (found[1:] == found[0]).sum()
    return float(found[0]), float((better + rng.integers(0, ties + 1) + 1) / (PERMUTATIONS + 1))


def row(path: str, n_rows: int, n_trials: int, seed: int) -> dict[str, Any]:
    """All data sets of one path and number of rows."""
    children = np.random.SeedSequence([seed, list(PATHS).index(path), n_rows]).spawn(n_trials)
    found = np.array([trial(path, n_rows, np.random.default_rng(child)) for child in children])
    accuracy, spread = 100 * found[:, 0].mean(), 100 * found[:, 0].std(ddof=1) / np.sqrt(n_trials)
    return {
        "path": path,
        "rows_per_group": n_rows,
        "accuracy_percent": round(float(accuracy), 2),
        "se_percent": round(float(spread), 2),
        "p_below_5_percent": round(100 * float((found[:, 1] <= LEVEL).mean()), 1),
        "sound": bool(abs(accuracy - 50) <= 3 and np.mean(found[:, 1] <= LEVEL) <= 3 * LEVEL),
    }


def widest(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One line per path: what group sizes are sound, and the largest accuracy on nothing."""
    out = []
    for path in PATHS:
        mine = [each for each in rows if each["path"] == path]
        worst = max(mine, key=lambda each: abs(each["accuracy_percent"] - 50))
        out.append({
            "path": path,
            "group_sizes": f"{mine[0]['rows_per_group']} to {mine[-1]['rows_per_group']}",
            "sound": sum(each["sound"] for each in mine),
            "tried": len(mine),
            "worst_accuracy_percent": worst["accuracy_percent"],
            "at_rows": worst["rows_per_group"],
            "largest_share_of_p_below_5_percent": max(each["p_below_5_percent"] for each in mine),
            "in_the_package": ALLOWED.get(path, "allowed"),
        })  # fmt: skip
    return out


def run(options: Options, size: Size) -> dict[str, Any]:
    """Simulate, write tables and record, and return the record."""
    began, rows = time.perf_counter(), []
    for path, (_, _, _, fewest) in PATHS.items():
        longer = size.longer if "detrend" in path else ()
        for n_rows in (n for n in (*size.rows, *longer) if n >= fewest):
            rows.append(row(path, n_rows, size.n_trials, options.seed))
    write_table(options.out / f"{NAME}.csv", rows)
    write_table(options.out / f"{NAME}_paths.csv", widest(rows))
    said = (f"{r['path']}: {r['worst_accuracy_percent']} % ({r['in_the_package']})" for r in widest(rows))
    record = {"headline": "; ".join(said), "size": asdict(size)}
    seconds = time.perf_counter() - began
    return write_record(options.out / f"{NAME}.json", record, pipeline=NAME, options=options, seconds=seconds)


def main(argv: Sequence[str] | None = None) -> int:
    options, size = parse_trials(__doc__ or "", argv, NAME, QUICK, FULL, "data sets per path and group size")
    print(run(options, size)["headline"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
