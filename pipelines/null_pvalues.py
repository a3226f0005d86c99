"""Are permutation p-values of the VAMP methods uniform where labels mean nothing, and small where they do?

Simulated sets of smooth features on a grid, whose rows share noise within blocks and runs: two classes, eight
classes fitted together, and groups of two rows (a map per class and participant). Counter-tests must fail: a
binomial test, which takes rows for independent, and permutations of single rows where blocks are correlated.
With an effect p-values must be small. ``uniform_p`` is a chi-square test of ten classes of p-values.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.ndimage import gaussian_filter
from sklearn.feature_extraction.image import grid_to_graph

from mvpa_gamp.decoding import Scheme, permutation_test
from mvpa_gamp.methods import METHODS

from .command import Options, parse_trials
from .output import write_record, write_table
from .trial_store import TrialStore

NAME = "null_pvalues"
GRID = (8, 8)
GRAPH = grid_to_graph(*GRID)
LEVELS = (0.05, 0.1, 0.5)


@dataclass(frozen=True)
class Size:
    """Sets of a case without an effect, and permutations of each: p-values are multiples of 1 / (n + 1)."""

    n_trials: int
    n_permutations: int = 19


QUICK, FULL = Size(20), Size(300)


class Data(NamedTuple):
    """One set."""

    X: NDArray
    y: NDArray  # -1/+1 or class numbers
    runs: NDArray
    blocks: NDArray


def simulated(kind: str, rng: np.random.Generator, effect: float = 0.0) -> Data:
    """One set; classes differ by ``effect`` standard deviations in a corner of the grid."""
    if kind == "two classes":  # 6 runs of four blocks of three rows
        order = np.concatenate([rng.permutation([1, 1, -1, -1]) for _ in range(6)])
        per_block, per_run = 3, 4
    elif kind == "eight classes":  # 5 runs, each with a block of two rows of every class
        order = np.concatenate([rng.permutation(8) for _ in range(5)])
        per_block, per_run = 2, 8
    else:  # 14 participants with a map of both classes
        order = np.concatenate([rng.permutation([1, -1]) for _ in range(14)])
        per_block, per_run = 1, 2
    y, blocks = np.repeat(order, per_block), np.repeat(np.arange(order.size), per_block)
    runs = blocks // per_run
    X = _smooth(rng, y.size) + _smooth(rng, order.size)[blocks] + _smooth(rng, runs[-1] + 1)[runs]
    signal = np.zeros(GRID)
    signal[:3, :3] = effect
    centres = rng.choice([-1.0, 1.0], (8, signal.size)) if y.max() > 1 else None
    X += signal.ravel() * (centres[y] if centres is not None else y[:, None])
    return Data(X.astype(np.float32), y, runs, blocks)


def _smooth(rng: np.random.Generator, n: int) -> NDArray:
    fields = gaussian_filter(rng.standard_normal((n, *GRID)), (0, 1, 1))
    return np.reshape(fields / fields.std(), (n, -1))


def pvalues(method: str, data: Data, n: int, seed: int, single_rows: bool = False) -> dict[str, float]:
    """The p-value of the permutation test, and of a binomial test of the same accuracy."""
    graph = GRAPH if METHODS[method].uses_connectivity else None
    exchange: Any = {"exchange": "sample"} if single_rows else {"blocks": data.blocks}
    scheme = Scheme(seed=seed, connectivity=graph, **exchange)
    test = permutation_test(METHODS[method], data.X, data.y, data.runs, n, scheme=scheme)
    chance = 1 / np.unique(data.y).size
    right = round(test.score * data.y.size)
    return {
        "permutations": test.pvalue,
        "binomial": float(stats.binomtest(right, data.y.size, chance, alternative="greater").pvalue),
    }


CASES: dict[str, tuple[str, str, float]] = {  # kind, method, effect
    "two classes, vamp-sbg": ("two classes", "vamp-sbg", 0.0),
    "two classes, vamp-bg": ("two classes", "vamp-bg", 0.0),
    "eight classes together, vamp-sbg": ("eight classes", "vamp-sbg", 0.0),
    "groups of two rows, vamp-sbg": ("groups of two rows", "vamp-sbg", 0.0),
    "groups of two rows, vamp-bg": ("groups of two rows", "vamp-bg", 0.0),
    "two classes that differ, vamp-sbg": ("two classes", "vamp-sbg", 1.0),
    "eight classes that differ, vamp-sbg": ("eight classes", "vamp-sbg", 1.0),
    "groups of two rows that differ, vamp-sbg": ("groups of two rows", "vamp-sbg", 1.0),
}
_FEW = 10  # times fewer sets with an effect


def case_rows(name: str, size: Size, seed: int) -> list[dict[str, Any]]:
    """P-values of all sets of a case, by test."""
    kind, method, effect = CASES[name]
    rows = []
    for number in range(max(2, size.n_trials // (_FEW if effect else 1))):
        rng = np.random.default_rng([seed, list(CASES).index(name), number])
        data = simulated(kind, rng, effect)
        found = pvalues(method, data, size.n_permutations, number)
        if name == "two classes, vamp-sbg":
            single = pvalues(method, data, size.n_permutations, number, single_rows=True)
            found["permutations of single rows"] = single["permutations"]
        rows += [{"case": name, "test": test, "p": p} for test, p in found.items()]
    return rows


def summary(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row per case and test: how often p is at most each level, and whether it is uniform."""
    out = []
    for case, test in dict.fromkeys((row["case"], row["test"]) for row in rows):
        p = np.array([row["p"] for row in rows if (row["case"], row["test"]) == (case, test)])
        row: dict[str, Any] = {"case": case, "test": test, "sets": p.size}
        for level in LEVELS:
            share = float(np.mean(p <= level + 1e-9))
            row[f"p_{100 * level:g}_percent"] = 100 * share
            row[f"p_{100 * level:g}_se_percent"] = 100 * float(np.sqrt(share * (1 - share) / p.size))
        counts = np.bincount(np.clip(np.ceil(10 * p - 1e-9).astype(int), 1, 10) - 1, minlength=10)
        out.append(row | {"uniform_p": float(stats.chisquare(counts).pvalue)})
    return out


def run(
    options: Options, size: Size, compute: Callable[..., list[dict[str, Any]]] = case_rows
) -> dict[str, Any]:
    """All cases; write the table and the record, and return the record."""
    store = TrialStore(options.out, NAME, {**asdict(size), "seed": options.seed})
    keys = [(name,) for name in CASES]
    rows = summary(store.rows(keys, lambda name: compute(name, size, options.seed)))
    write_table(options.out / f"{NAME}.csv", rows)
    said = (f"{r['case']}, {r['test']}: p <= .05 in {r['p_5_percent']:.1f} %" for r in rows)
    record = {"headline": "; ".join(said), "rows": rows}
    path = options.out / f"{NAME}.json"
    done = write_record(path, record, pipeline=NAME, options=options, seconds=store.seconds)
    store.finish()
    return done


def main(argv: Sequence[str] | None = None) -> int:
    print(run(*parse_trials(__doc__ or "", argv, NAME, QUICK, FULL, "sets per case"))["headline"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
