"""How often tests and checks report something where there is nothing: simulated data, p <= 0.05 or a finding.

One table for the pages that say what a test promises: tests of groups, cross-decoding, regions, covariates
and the order of conditions. Rows "wrong" are ways that must fail, which shows that the sets can tell. Where a
case names an effect there is something to find, elsewhere or, as "the same code", for the test itself.
Classifiers are the difference of the class means, or gamp-bg-lr where a case says so.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from mvpa_gamp.decoding import (
    Scheme,
    check_covariates,
    cross_permutation_test,
    decode_regions,
    flip_map,
    make_crosses,
    make_tasks,
    mean_test,
    null_statistics,
    permuted_labels,
)
from mvpa_gamp.decoding.ties import order_findings
from mvpa_gamp.methods import METHODS
from mvpa_gamp.methods.fold_fits import FoldFits

from .command import Options, parse_trials
from .output import write_record, write_table
from .trial_store import TrialStore

NAME = "calibration"
LEVEL = 0.05


@dataclass(frozen=True)
class Size:
    """Sets of a case that costs next to nothing; the others have a share of them."""

    n_trials: int
    n_permutations: int


QUICK, FULL = Size(10, 19), Size(1000, 99)


@dataclass(frozen=True)
class Case:
    """What is tried, and a function of a set's number that says what was found, by name of the row."""

    page: str
    name: str
    found: Callable[[int, Size], dict[str, float]]  # p-values, or 0 (reported) and 1
    share: float = 1.0  # of the sets


@dataclass(frozen=True)
class ClassMeans:
    """The difference of the class means as weights: the fastest method there is."""

    name = "class-means"
    uses_connectivity = False

    def fit_folds(self, X: NDArray, y: NDArray, train: NDArray, runs: NDArray) -> FoldFits:
        """Every column of ``train`` at once."""
        coef = X.T @ np.where(train, y, 0.0)
        blank = np.zeros(coef.shape[1])
        fine, text = blank == 0, ("",) * blank.size
        decision = X @ coef
        return FoldFits(coef, blank, coef != 0, text, fine, blank, 0.0, {}, decision, decision * np.nan)


MEANS: Any = ClassMeans()
GAMP = METHODS["gamp-bg-lr"]


def noise(rng: Any, blocks: NDArray, n_features: int) -> NDArray:
    """Rows of one block share half of their variance, as volumes do."""
    shape = (blocks[-1] + 1, n_features)
    return rng.standard_normal((blocks.size, n_features)) + rng.standard_normal(shape)[blocks]


# --- groups of participants ---------------------------------------------------------------------------


def people(method: Any, number: int, n: int, n_runs: int = 6) -> tuple[NDArray, NDArray]:
    """Accuracy and area of n participants without information, eight rows of two classes in a run."""
    found = []
    for k in range(n):
        rng = np.random.default_rng([11, number, k])
        runs, blocks = np.repeat(np.arange(n_runs), 8), np.repeat(np.arange(4 * n_runs), 2)
        y = np.repeat(np.concatenate([rng.permutation([1, 1, -1, -1]) for _ in range(n_runs)]), 2)
        one = null_statistics(method, noise(rng, blocks, 10), y[:, None], runs)
        found.append((one.score[0], one.auc[0]))
    score, area = np.array(found).T
    return score, area


def group(method: Any, n: int) -> Callable[[int, Size], dict[str, float]]:
    """Tests of a group's mean; a chance level that is wrong by five points must be noticed."""

    def found(number: int, size: Size) -> dict[str, float]:
        score, area = people(method, number, n)
        flips = mean_test(score - 0.5, finer=area - 0.5)
        return {
            "sign flips": flips.flip_p,
            "sign flips, ties count against the data": mean_test(score - 0.5).flip_p,
            "t-test": flips.t_p,
            "wrong: chance five points too low, sign flips": mean_test(score - 0.45).flip_p,
        }

    return found


def group_of_numbers(number: int, size: Size) -> dict[str, float]:
    """Values without ties, two-sided too, and maps of 60 voxels of 8 participants."""
    rng = np.random.default_rng([12, number])
    values, maps = rng.standard_normal(10), rng.standard_normal((8, 60)) @ smoothing(60)
    uncorrected = stats.ttest_1samp(maps, 0).pvalue
    return {
        "values without ties, 10 participants": mean_test(values).flip_p,
        "the same, two-sided": mean_test(values, two_sided=True).flip_p,
        "family-wise map, 60 voxels, 8 participants: any voxel": float(flip_map(maps).p.min()),
        "wrong: the map without correction": float(uncorrected.min()),
    }


def smoothing(n: int) -> NDArray:
    """Neighbours share noise."""
    return np.eye(n) + 0.7 * np.eye(n, k=1) + 0.7 * np.eye(n, k=-1)


# --- cross-decoding -----------------------------------------------------------------------------------


def crossed(method: Any, effect: str) -> Callable[[int, Size], dict[str, float]]:
    """Four conditions in 6 runs: a against b is trained, c against d tested; which of them can be decoded."""

    def found(number: int, size: Size) -> dict[str, float]:
        rng = np.random.default_rng([13, number])
        order = np.concatenate([rng.permutation(np.repeat(list("abcd"), 2)) for _ in range(6)])
        shown, blocks = np.repeat(order, 2), np.repeat(np.arange(order.size), 2)
        runs = np.repeat(np.arange(6), 16)
        X = noise(rng, blocks, 30)
        first, second = (1.0 * (shown == "a") - (shown == "b")), (1.0 * (shown == "c") - (shown == "d"))
        code = (
            first + second if effect == "the same code" else first * (effect in ("the trained one", "both"))
        )
        X[:, :4] += 1.2 * code[:, None]
        X[:, 10:14] += 1.2 * (second * (effect in ("the tested one", "both")))[:, None]
        (cross,) = make_crosses(shown, ["a:b>>c:d"])
        test = cross_permutation_test(
            method, X, cross, runs, size.n_permutations, scheme=Scheme(seed=number, blocks=blocks)
        )
        return {
            "training labels": test.pvalue,
            "test labels": by_test_labels(X, cross, runs, blocks, number, size),
        }

    return found


def by_test_labels(X: NDArray, cross: Any, runs: NDArray, blocks: NDArray, number: int, size: Size) -> float:
    """The p-value of class means when test labels are exchanged instead, ties broken at random."""
    train, test = cross.train, cross.test
    said = np.empty(test.rows.size, dtype=bool)
    for run in np.unique(runs):
        kept, tested = runs[train.rows] != run, runs[test.rows] == run
        said[tested] = X[test.rows[tested]] @ (X[train.rows[kept]].T @ train.y[kept]) > 0
    n, mine = size.n_permutations, test.rows
    labels = permuted_labels(test.y, runs[mine], n, seed=number, blocks=blocks[mine])
    null, score = (said[:, None] == (labels > 0)).mean(axis=0), (said == (test.y > 0)).mean()
    equal = np.abs(null - score) < 1e-9
    coin = np.random.default_rng([14, number]).random()
    return float((np.count_nonzero((null > score) & ~equal) + coin * (1 + np.count_nonzero(equal))) / (1 + n))


# --- regions, covariates, order -----------------------------------------------------------------------


def regions(method: Any, effect: float) -> Callable[[int, Size], dict[str, float]]:
    """Six regions that share noise; the first may have an effect, and then the other five are looked at."""

    def found(number: int, size: Size) -> dict[str, float]:
        rng = np.random.default_rng([15, number])
        runs, blocks = np.repeat(np.arange(12), 6), np.repeat(np.arange(24), 3)
        y = np.concatenate([np.repeat(rng.permutation([1, -1]), 3) for _ in range(12)])
        X = noise(rng, blocks, 30) + 0.5 * rng.standard_normal((72, 2)) @ rng.standard_normal((2, 30))
        X[:, :5] += effect * y[:, None]
        parts = np.split(np.arange(30), 6)
        test = decode_regions(method, X, y, runs, parts, n=size.n_permutations, scheme=Scheme(seed=number))
        empty = slice(1 if effect else 0, None)
        return {
            "corrected: any region": float(test.family_wise[empty].min()),
            "wrong: uncorrected": float(test.pvalue[empty].min()),
        }

    return found


def covariates(
    n_runs: int, n: int, constant: bool, repeated: int = 1
) -> Callable[[int, Size], dict[str, float]]:
    """Numbers that have nothing to do with three conditions; a comparison of one pair."""

    def found(number: int, size: Size) -> dict[str, float]:
        rng = np.random.default_rng([16, number])
        names = np.repeat(["a", "b", "c"], repeated)
        shown = np.concatenate([np.repeat(rng.permutation(names), 4) for _ in range(n_runs)])
        runs, blocks = np.repeat(np.arange(n_runs), 12 * repeated), np.arange(shown.size) // 4
        values = rng.standard_normal((shown.size, n))
        values = values[4 * blocks] if constant else values
        tasks = make_tasks(shown, [("a", "b")])
        checks = check_covariates(values, [f"v{k}" for k in range(n)], tasks, runs, blocks)
        return {"reported": 0.0 if any(each.decodes for each in checks) else 1.0}

    return found


def order(n_conditions: int, n_runs: int, n_blocks: int) -> Callable[[int, Size], dict[str, float]]:
    """Blocks of conditions in random order, every pair compared."""

    def found(number: int, size: Size) -> dict[str, float]:
        rng = np.random.default_rng([17, number])
        names = np.array([f"c{k}" for k in range(n_conditions)])
        shown = np.concatenate([rng.permutation(np.repeat(names, n_blocks)) for _ in range(n_runs)])
        pairs = [(a, b) for k, a in enumerate(names) for b in names[k + 1 :]]
        told = order_findings(shown, np.repeat(np.arange(n_runs), n_conditions * n_blocks), pairs)
        return {"reported": 0.0 if told else 1.0}

    return found


def cases() -> Iterator[Case]:
    """All of them, in the order of the table."""
    yield Case("group", "10 participants, 6 runs", group(MEANS, 10))
    yield Case("group", "8 participants, 6 runs, gamp-bg-lr", group(GAMP, 8), 0.06)
    yield Case("group", "random numbers", group_of_numbers)
    for effect in ("nothing", "the trained one", "the tested one", "both", "the same code"):
        yield Case("cross", f"effect: {effect}", crossed(MEANS, effect), 0.6)
    yield Case("cross", "effect: the tested one, gamp-bg-lr", crossed(GAMP, "the tested one"), 0.06)
    yield Case("regions", "no effect", regions(MEANS, 0.0), 0.4)
    yield Case("regions", "effect in another region", regions(MEANS, 1.5), 0.4)
    designs = ((8, 2, True), (8, 2, False), (12, 5, True), (4, 2, True), (3, 1, True), (3, 2, True))
    for runs, n, constant in designs:
        kind = "constant within blocks" if constant else "changing within blocks"
        told = f"{runs} runs, {n} covariate{'s' * (n > 1)}, {kind}"
        yield Case("covariates", told, covariates(runs, n, constant), 0.2)
    yield Case("covariates", "6 runs with two blocks of each, 2 covariates", covariates(6, 2, True, 2), 0.2)
    for design in ((2, 4, 1), (2, 6, 1), (2, 12, 1), (2, 8, 10), (4, 6, 2), (8, 6, 1), (8, 12, 1)):
        told = "{} conditions, {} runs, blocks of each in a run: {}".format(*design)
        yield Case("order", told, order(*design))


def summary(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row per case and test, with the share of sets in which something was reported."""
    out = []
    for page, case, test in dict.fromkeys((r["page"], r["case"], r["test"]) for r in rows):
        p = np.array([r["p"] for r in rows if (r["page"], r["case"], r["test"]) == (page, case, test)])
        share = float(np.mean(p <= LEVEL))
        out.append({
            "page": page, "case": case, "test": test, "sets": len(p), "reported_percent": 100 * share,
            "se_percent": 100 * float(np.sqrt(share * (1 - share) / len(p))),
        })  # fmt: skip
    return out


def run(options: Options, size: Size) -> dict[str, Any]:
    """Try all cases, write the table and the record, and return the record."""
    tried = {f"{case.page}: {case.name}": case for case in cases()}
    store = TrialStore(options.out, NAME, {**asdict(size), "seed": options.seed})

    def compute(name: str) -> list[dict[str, Any]]:
        case, rows = tried[name], []
        for number in range(max(2, round(size.n_trials * case.share))):
            found = case.found(number + 10**6 * options.seed, size)
            rows += [
                {"page": case.page, "case": case.name, "test": k, "p": float(p)} for k, p in found.items()
            ]
        return rows

    rows = summary(store.rows([(name,) for name in tried], compute))
    write_table(options.out / f"{NAME}.csv", rows)
    said = (f"{r['case']}, {r['test']}: {r['reported_percent']:.1f} %" for r in rows)
    record = {"headline": "; ".join(said), "level": LEVEL, "rows": rows}
    path = options.out / f"{NAME}.json"
    done = write_record(path, record, pipeline=NAME, options=options, seconds=store.seconds)
    store.finish()
    return done


def main(argv: Sequence[str] | None = None) -> int:
    print(run(*parse_trials(__doc__ or "", argv, NAME, QUICK, FULL, "sets per case"))["headline"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
