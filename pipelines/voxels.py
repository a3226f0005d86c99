"""Which voxels can be reported: this package beside hidimstat and nilearn, on effects of known size.

Data are the half slice and ventral temporal cortex, where labels are exchanged between blocks of a run, so
that the real effect is gone, and an effect is added to ten voxels (every other data set: in one patch, else
anywhere); a small phantom with the effects that it has; and the same volumes with their real labels, where
nobody knows the truth. Size 0 adds nothing: whatever is selected then is false.

A selected voxel is false if no voxel with an effect correlates with it by one half or more; "strict" counts
every one without an effect. All methods are asked for a false-discovery rate of 5 %, but for SpaceNet and
FREM, which promise none: there a voxel is selected if its weight is not zero. Clusters, knockoffs and t-tests
are given volumes, as their examples do; volumes of a block are correlated, so t-tests are also made of block
means.
The rate of this package is calibrated once per comparison, with the null distribution of its labels. Methods
of hidimstat need ``pip install ".[bench]"`` and are left out without it.
"""

import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from mvpa_gamp.decoding import Calibration, Scheme, blocks_of_volumes, calibrate, carries_information
from mvpa_gamp.decoding.calibration import voxel_strengths
from mvpa_gamp.decoding.exchange import permuted_labels
from mvpa_gamp.decoding.tasks import Task
from mvpa_gamp.methods import METHODS

from .command import Options, parse_trials
from .data_sets import DataSet, half_slice, phantom, ventral_temporal
from .output import write_record, write_table
from .trial_store import TrialStore

NAME = "voxels"
RATE = 0.05
N_EFFECT = 10
ALIKE = 0.5
REAL, PHANTOM = "real labels", "phantom"
N_CLUSTERS, N_CLUSTERINGS = 100, 10
OURS = ("gamp-sbg-lr", "gamp-bg-lr", "vamp-sbg")


@dataclass(frozen=True)
class Size:
    """How many data sets; each takes another comparison of its volumes."""

    sets: tuple[str, ...]
    effects: tuple[float, ...]  # in standard deviations of a voxel
    n_trials: int
    n_null_factor: int  # data sets without an effect for each with one
    n_quick_factor: int  # of those for methods that take less than a second
    shape: tuple[int, ...]
    n_permutations: int


QUICK = Size(("slice",), (0.0, 1.2), 2, 1, 1, (8, 9, 8), 19)
FULL = Size(("slice", "vt"), (0.0, 0.6, 1.2), 6, 2, 12, (12, 14, 10), 199)


class Problem(NamedTuple):
    """Volumes of two categories, and which voxels have an effect (None: nobody knows)."""

    X: NDArray  # (M, N) float32
    y: NDArray  # (M,) -1/+1
    runs: NDArray
    blocks: NDArray
    samples: Any
    planted: NDArray | None  # (N,) bool


Selector = Callable[[Problem], NDArray]


# --- methods ------------------------------------------------------------------------------------------


def by_calibration(name: str) -> Callable[[Problem, Calibration], NDArray]:
    """A method of this package with ``--fdr``, judged by the null distribution of its comparison."""

    def select(problem: Problem, calibration: Calibration) -> NDArray:
        graph = problem.samples.connectivity if METHODS[name].uses_connectivity else None
        y = problem.y[:, None]
        strength = voxel_strengths(METHODS[name], problem.X, y, problem.runs, graph)[:, 0]
        return calibration.judge(strength, RATE).selected

    return select


def information(problem: Problem) -> NDArray:
    """The information map: family-wise, so stricter than a false-discovery rate."""
    found = carries_information(problem.X, problem.y, problem.runs, n=999, blocks=problem.blocks)
    return found.selected(RATE)


def t_tests(problem: Problem) -> NDArray:
    """A t-test per voxel and Benjamini-Hochberg, as if volumes were independent."""
    return _tested(problem.X, problem.y)


def t_tests_of_blocks(problem: Problem) -> NDArray:
    """The same of the means of blocks."""
    names, code = np.unique(problem.blocks, return_inverse=True)
    first = [int(np.flatnonzero(code == k)[0]) for k in range(len(names))]
    means = np.array([problem.X[code == k].mean(axis=0) for k in range(len(names))])
    return _tested(means, problem.y[first])


def _tested(X: NDArray, y: NDArray) -> NDArray:
    pvalues = stats.ttest_ind(X[y > 0], X[y < 0]).pvalue
    return stats.false_discovery_control(np.nan_to_num(pvalues, nan=1.0)) <= RATE


def clusters(problem: Problem) -> NDArray:
    """hidimstat's ensemble of clustered inference with the desparsified lasso (EnCluDL)."""
    from hidimstat import DesparsifiedLasso, EnCluDL
    from sklearn.cluster import FeatureAgglomeration

    agglomeration = FeatureAgglomeration(
        min(N_CLUSTERS, problem.X.shape[1] // 2), connectivity=problem.samples.connectivity, linkage="ward"
    )
    model = EnCluDL(DesparsifiedLasso(), agglomeration, n_bootstraps=N_CLUSTERINGS, random_state=0)
    model.fit_importance(problem.X.astype(float), problem.y)
    return np.asarray(model.fdr_selection(RATE)) != 0


def knockoffs(problem: Problem) -> NDArray:
    """hidimstat's model-X knockoffs: Gaussian, Lasso coefficient differences, one draw."""
    from hidimstat import ModelXKnockoff

    model = ModelXKnockoff(random_state=0)
    model.fit_importance(problem.X.astype(float), problem.y)
    return np.asarray(model.fdr_selection(RATE)) != 0


def space_net(problem: Problem) -> NDArray:
    """nilearn's SpaceNet with a graph-net penalty: voxels with a weight."""
    from nilearn.decoding import SpaceNetClassifier

    mask = problem.samples.mask_img
    model = SpaceNetClassifier(
        "graph-net", mask=mask, cv=5, n_alphas=5, screening_percentile=100.0, verbose=0
    )
    return np.asarray(_on_images(model, problem).coef_)[0] != 0


def frem(problem: Problem) -> NDArray:
    """nilearn's FREM: voxels with a weight in any of ten clusterings."""
    from nilearn.decoding import FREMClassifier

    model = FREMClassifier(mask=problem.samples.mask_img, cv=10, standardize=None, clustering_percentile=20)
    return np.asarray(next(iter(_on_images(model, problem).coef_))) != 0


def _on_images(model: Any, problem: Problem) -> Any:
    from nilearn.masking import unmask

    return model.fit(unmask(problem.X.astype(np.float32), problem.samples.mask_img), problem.y)


OTHERS: Mapping[str, Selector] = {
    "information map": information,
    "t-tests of volumes": t_tests,
    "t-tests of blocks": t_tests_of_blocks,
    "EnCluDL": clusters,
    "knockoffs": knockoffs,
    "SpaceNet": space_net,
    "FREM": frem,
}
NEED_HIDIMSTAT = ("EnCluDL", "knockoffs")
SLOW = (*NEED_HIDIMSTAT, "SpaceNet", "FREM")  # seconds per data set


def method_names() -> list[str]:
    """Everything that can run here."""
    there = find_spec("hidimstat") is not None
    return [*OURS, *(name for name in OTHERS if there or name not in NEED_HIDIMSTAT)]


# --- data ---------------------------------------------------------------------------------------------


def exchanged(problem: Problem, effect: float, patch: bool, seed: Sequence[int]) -> Problem:
    """Labels exchanged between the blocks of each run, as little like the real ones as 50 draws give."""
    drawn = permuted_labels(problem.y, problem.runs, 50, seed[0] + 1000 * seed[1], "block", problem.blocks)
    y = drawn[:, np.abs(drawn.T @ problem.y).argmin()].astype(float)
    rng = np.random.default_rng([*seed, 3])
    planted = np.zeros(problem.X.shape[1], dtype=bool)
    if effect:
        planted[_patch(problem, rng) if patch else rng.choice(planted.size, N_EFFECT, replace=False)] = True
    added = effect * problem.X.std(axis=0) * planted
    return problem._replace(X=(problem.X + y[:, None] * added).astype(np.float32), y=y, planted=planted)


def _patch(problem: Problem, rng: np.random.Generator) -> NDArray:
    """The voxels next to a random one."""
    places = np.argwhere(np.asarray(problem.samples.mask_img.dataobj) != 0)
    distance = np.linalg.norm(places - places[rng.integers(len(places))], axis=1)
    return np.argsort(distance, kind="stable")[:N_EFFECT]


def problem_of(data: DataSet, task: Task) -> Problem:
    """One comparison with its real labels."""
    samples = data.samples
    blocks = blocks_of_volumes(samples.conditions, samples.runs, samples.volumes)
    planted = None if samples.truth is None else samples.truth.for_pair(task.positive, task.negative)
    rows = task.rows
    return Problem(data.rows(task), task.y, samples.runs[rows], blocks[rows], samples, planted)


# --- counting -----------------------------------------------------------------------------------------


def counted(problem: Problem, selected: NDArray) -> dict[str, Any]:
    """Numbers of selected, false, strictly false and found voxels; None where the truth is unknown."""
    n = int(selected.sum())
    if problem.planted is None:
        return {"voxels": n, "false": None, "strict": None, "power": None}
    true = problem.planted
    if not true.any():
        return {"voxels": n, "false": float(n > 0), "strict": float(n > 0), "power": None}
    X = problem.X - problem.X.mean(axis=0)
    X /= np.maximum(np.linalg.norm(X, axis=0), 1e-12)
    alike = np.abs(X[:, true].T @ X).max(axis=0) >= ALIKE
    return {
        "voxels": n,
        "false": float((selected & ~alike).sum() / max(n, 1)),
        "strict": float((selected & ~true).sum() / max(n, 1)),
        "power": float(selected[true].mean()),
    }


def summary(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row per data, effect and method: means over data sets, in percent, with standard errors."""
    out = []
    for data, effect, method in dict.fromkeys((r["data"], r["effect"], r["method"]) for r in rows):
        some = [r for r in rows if (r["data"], r["effect"], r["method"]) == (data, effect, method)]
        row: dict[str, Any] = {"data": data, "effect": effect, "method": method, "sets": len(some)}
        for name in ("false", "strict", "power"):
            row[f"{name}_percent"], row[f"{name}_se_percent"] = _mean([each[name] for each in some])
        row["any_percent"] = 100 * float(np.mean([each["voxels"] > 0 for each in some]))
        row["voxels"] = float(np.mean([each["voxels"] for each in some]))
        row["processor_seconds"] = float(np.mean([each["seconds"] for each in some]))
        out.append(row)
    return out


def _mean(values: Sequence[float | None]) -> tuple[float | None, float | None]:
    known = 100 * np.array([value for value in values if value is not None])
    if not known.size:
        return None, None
    return float(known.mean()), float(known.std(ddof=1) / np.sqrt(known.size)) if known.size > 1 else None


class Bench:
    """Data sets by their name, and the null distribution of every comparison, made when first asked for."""

    def __init__(self, size: Size, seed: int) -> None:
        self.size, self.seed = size, seed
        self.data = self._loaded()
        self.calibration = cache(self._calibration)

    def _loaded(self) -> dict[str, DataSet]:
        ways: dict[str, Any] = {"slice": half_slice, "vt": ventral_temporal}
        found = {word: ways[word]() for word in self.size.sets}
        return {
            PHANTOM: phantom(self.size.shape),
            **{k: each for k, each in found.items() if each is not None},
        }

    def keys(self) -> list[tuple[str, float | str, int, str]]:
        """Data, effect, number of the data set and method; a part of the whole is a part of every row."""
        size, out = self.size, []
        for number in range(size.n_trials * size.n_null_factor * size.n_quick_factor):
            for word, data in self.data.items():
                effects: list[float | str] = [] if word == PHANTOM else list(size.effects)
                for effect in [*effects, REAL]:
                    last = size.n_trials * (size.n_null_factor if effect == 0 else 1)
                    for name in method_names():
                        n = last * (1 if name in SLOW else size.n_quick_factor)
                        if number < (min(n, len(data.tasks)) if effect == REAL else n):
                            out.append((word, effect, number, name))
        return out

    def row(self, word: str, effect: float | str, number: int, method: str) -> list[dict[str, Any]]:
        """One method on one data set."""
        data = self.data[word]
        place = number * 5 % len(data.tasks)  # 5 and 28 have no common divisor: every comparison has its turn
        problem = problem_of(data, data.tasks[place])
        if effect != REAL:
            seed = (self.seed, number, round(10 * float(effect)))
            problem = exchanged(problem, float(effect), number % 2 == 0, seed)
        calibration = self.calibration(word, place, method) if method in OURS else None
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of other packages: convergence, renamed arguments
            selected = (
                OTHERS[method](problem)
                if calibration is None
                else by_calibration(method)(problem, calibration[0])
            )
        seconds = time.process_time() - began + (0.0 if calibration is None else calibration[1])
        about = {"data": word, "effect": effect, "set": number, "method": method}
        return [{**about, **counted(problem, selected), "seconds": seconds}]

    def _calibration(self, word: str, place: int, method: str) -> tuple[Calibration, float]:
        data = self.data[word]
        problem = problem_of(data, data.tasks[place])
        graph = problem.samples.connectivity if METHODS[method].uses_connectivity else None
        scheme = Scheme(blocks=problem.blocks, connectivity=graph, seed=self.seed)
        began = time.process_time()
        n = self.size.n_permutations
        found = calibrate(METHODS[method], problem.X, problem.y, problem.runs, scheme, n=n)
        return found, time.process_time() - began


def run(options: Options, size: Size) -> dict[str, Any]:
    """Select, count, write tables and record, and return the record."""
    bench = Bench(size, options.seed)
    store = TrialStore(options.out, NAME, {**asdict(size), "seed": options.seed, "n_trials": None})
    rows = store.rows(bench.keys(), bench.row)
    rows.sort(key=lambda row: (row["data"], str(row["effect"]), [*OURS, *OTHERS].index(row["method"])))
    table = summary(rows)
    write_table(options.out / f"{NAME}.csv", table)
    write_table(options.out / f"{NAME}_sets.csv", rows)
    said = (f"{r['data']} {r['effect']} {r['method']}: any {r['any_percent']:.0f} %" for r in table)
    record = {"headline": "; ".join(said), "size": asdict(size), "rows": table}
    path = options.out / f"{NAME}.json"
    done = write_record(path, record, pipeline=NAME, options=options, seconds=store.seconds)
    store.finish()
    return done


def main(argv: Sequence[str] | None = None) -> int:
    print(run(*parse_trials(__doc__ or "", argv, NAME, QUICK, FULL, "data sets per effect"))["headline"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
