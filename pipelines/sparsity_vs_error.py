"""Test error and estimated sparsity against the true sparsity K, where features far outnumber examples.

The paper's first experiment: N = 30,000 features, M = 300 examples, x | y ~ N(y w, v I) with K weights of
+-1 and v such that the Bayes error is 0.05. EM-tuned GAMP (Bernoulli-Gaussian prior; hinge, probit and
logistic likelihoods) stopped on its cavity score and run to its fixed point, and OneBitCS with K chosen by
2-fold cross-validation within 10 of the truth.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from mvpa_gamp.methods import METHODS, FoldFits, GampMethod, Method, OneBitCS

from .command import Options, parse_trials
from .output import COLOUR_OF, MARKER_OF, style, write_trials
from .trial_store import TrialStore

NAME = "sparsity_vs_error"
BAYES_ERROR = 0.05
GAMP = ("gamp-bg-lr", "gamp-bg-pr", "gamp-bg-hl")
CLOSE_UP = (0.045, 0.08)  # where the order of the likelihoods shows
ONEBIT_RADIUS = 10  # candidates around the true K, as in the paper's footnote
_ENOUGH_RATES = 2000  # log-spaced rates, rounded: every whole number of features is a candidate
# Fixed-point runs still creep after 200 damped steps, but neither error nor support moves any more.
FIXED_POINT_ITERATIONS = 200


@dataclass(frozen=True)
class Size:
    """How large the experiment is; ``fixed_point`` names the methods that are also run to their end.

    Such a run takes as long as ten that stop on the cavity score, so only ``n_ended`` trials have them.
    """

    n_features: int
    n_rows: int
    sparsities: tuple[int, ...]
    n_trials: int
    fixed_point: tuple[str, ...]
    n_ended: int


QUICK = Size(30_000, 300, (5, 15, 30), 2, ("gamp-bg-lr",), 2)
FULL = Size(30_000, 300, (5, 10, 15, 20, 25, 30), 50, GAMP, 10)


@dataclass(frozen=True)
class Problem:
    """One training set and the error that any weights have on new examples."""

    X: NDArray  # (M, N) float32
    y: NDArray  # (M,)
    error: Callable[[NDArray], float]


def sparse_means(n_features: int, n_rows: int, sparsity: int, rng: np.random.Generator) -> Problem:
    """Balanced labels and x | y ~ N(y w, v I): the error of c is Phi(-w'c / sqrt(v |c|^2))."""
    v = sparsity / ndtri(1 - BAYES_ERROR) ** 2
    y = np.where(np.arange(n_rows) % 2, 1.0, -1.0)
    w = np.zeros(n_features)
    w[rng.choice(n_features, sparsity, replace=False)] = rng.choice([-1.0, 1.0], sparsity)
    X = rng.standard_normal((n_rows, n_features), dtype=np.float32)
    X *= np.float32(np.sqrt(v))
    X[:, w != 0] += np.outer(y, w[w != 0]).astype(np.float32)

    def error(coef: NDArray) -> float:
        size = float(np.linalg.norm(coef))
        return float(ndtr(-(w @ coef) / (np.sqrt(v) * size))) if size > 0 else 0.5

    return Problem(X, y, error)


def classifiers(size: Size, sparsity: int, trial: int) -> list[tuple[str, str, Method]]:
    """Name, stopping rule and method of every line of the figure."""
    found: list[tuple[str, str, Method]] = [(name, "cavity", METHODS[name]) for name in GAMP]
    if trial < size.n_ended:
        found += [(name, "fixed-point", to_fixed_point(METHODS[name])) for name in size.fixed_point]
    around = np.clip([sparsity - ONEBIT_RADIUS, sparsity + ONEBIT_RADIUS], 1, size.n_features)
    lowest, highest = around / size.n_features
    return [*found, ("onebit-cs", "", OneBitCS(_ENOUGH_RATES, float(lowest), float(highest)))]


def to_fixed_point(method: Any) -> GampMethod:
    """The same method run to its fixed point instead of stopped on its cavity score."""
    settings = replace(method.settings, stop="fixed-point", max_iter=FIXED_POINT_ITERATIONS)
    return replace(method, settings=settings)


def trial_rows(size: Size, sparsity: int, trial: int, seed: int) -> list[dict[str, Any]]:
    """Fit every classifier to one training set."""
    rng = np.random.default_rng([seed, sparsity, trial])
    problem = sparse_means(size.n_features, size.n_rows, sparsity, rng)
    everything = np.ones((size.n_rows, 1), dtype=bool)
    halves = np.arange(size.n_rows) // 2 % 2  # the two folds of OneBitCS, both balanced
    rows = []
    for name, stop, method in classifiers(size, sparsity, trial):
        fits = method.fit_folds(problem.X, problem.y, everything, halves)
        rows.append({"sparsity": sparsity, "trial": trial, "method": name, "stop": stop,
                     **_measured(problem, fits)})  # fmt: skip
    return rows


def _measured(problem: Problem, fits: FoldFits) -> dict[str, Any]:
    return {
        "error": problem.error(fits.coef[:, 0].astype(float)),
        "selected": int(fits.support.sum()),
        "iterations": int(fits.n_iter[0]),
        "seconds": round(fits.seconds, 3),
    }


def summary(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mean and standard error over trials of every line at every K."""
    groups: dict[tuple[str, str, int], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["method"], row["stop"], row["sparsity"]), []).append(row)
    return [_mean_row(key, group) for key, group in groups.items()]


def _mean_row(key: tuple[str, str, int], rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    row: dict[str, Any] = {"method": key[0], "stop": key[1], "sparsity": key[2], "trials": len(rows)}
    for name in ("error", "selected", "seconds"):
        values = np.array([each[name] for each in rows], dtype=float)
        row[name] = float(values.mean())
        row[f"{name}_se"] = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None
    return row


def draw(means: Sequence[dict[str, Any]], size: Size) -> Figure:
    """Error, the part of it close to the Bayes error, and estimated sparsity, against K."""
    figure = Figure(figsize=(11.6, 3.9))
    left, close, right = figure.subplots(1, 3)
    ends = [min(size.sparsities), max(size.sparsities)]
    left.axhline(BAYES_ERROR, color="black", linestyle=":", label="Bayes error (left),\ntrue $K$ (right)")
    close.axhline(BAYES_ERROR, color="black", linestyle=":")
    right.plot(ends, ends, color="black", linestyle=":")
    lines = dict.fromkeys((row["method"], row["stop"]) for row in means)
    for number, line in enumerate(lines):
        beside = 0.2 * (number - len(lines) / 2)  # so that error bars do not hide each other
        rows = [row for row in means if (row["method"], row["stop"]) == line]
        _draw_line(left, rows, "error", beside)
        _draw_line(close, rows, "error", beside)
        _draw_line(right, rows, "selected", beside)
    left.set(xlabel="true sparsity $K$", ylabel="test error rate", ylim=(0.0, None))
    close.set(xlabel="true sparsity $K$", ylabel="test error rate, close up", ylim=CLOSE_UP)
    right.set(xlabel="true sparsity $K$", ylabel=r"estimated sparsity $\hat{K}$", ylim=(0.0, None))
    for axes in (left, close, right):
        axes.set_xticks(size.sparsities)
    ended = min(size.n_ended, size.n_trials)
    left.set_title(
        f"N = {size.n_features:,}, M = {size.n_rows}, {size.n_trials} trials (fixed point: {ended})",
        fontsize=9,
    )
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center")
    return figure


def _draw_line(axes: Any, line: Sequence[dict[str, Any]], measure: str, beside: float) -> None:
    name, stop = line[0]["method"], line[0]["stop"]
    ended = stop == "fixed-point"
    axes.errorbar(
        [row["sparsity"] + beside for row in line],
        [row[measure] for row in line],
        yerr=None if line[0][f"{measure}_se"] is None else [row[f"{measure}_se"] for row in line],
        color=COLOUR_OF[name],
        marker=MARKER_OF[name],
        markerfacecolor="white" if ended else COLOUR_OF[name],
        linestyle="--" if ended else "-",
        capsize=2,
        label=METHODS[name].label + (f",\n{stop}" if stop else ""),
    )


def headline(means: Sequence[dict[str, Any]]) -> str:
    """BG-LR at the smallest and the largest K, both stops."""
    ours = [row for row in means if row["method"] == "gamp-bg-lr"]
    ends = (min(row["sparsity"] for row in ours), max(row["sparsity"] for row in ours))
    words = [
        f"{row['stop']} K={row['sparsity']}: {row['error']:.3f}, {row['selected']:.1f} features"
        for row in sorted(ours, key=lambda row: row["stop"])
        if row["sparsity"] in ends
    ]
    return f"BG-LR test error (Bayes {BAYES_ERROR}): " + "; ".join(words)


def run(options: Options, size: Size) -> dict[str, Any]:
    """Fit, write table, record and figure, and return the record."""
    # More trials than an unfinished run asked for go on from it, so their number is no setting.
    settings = {**asdict(size), "seed": options.seed, "n_trials": None}
    store = TrialStore(options.out, NAME, settings)
    keys = [(sparsity, trial) for trial in range(size.n_trials) for sparsity in size.sparsities]
    rows = store.rows(keys, lambda sparsity, trial: trial_rows(size, sparsity, trial, options.seed))
    rows.sort(key=lambda row: row["sparsity"])
    means = summary(rows)
    record = {"headline": headline(means), "bayes_error": BAYES_ERROR, **asdict(size)}
    with style():
        written = write_trials(NAME, options, rows, means, draw(means, size), record, store.seconds)
    store.finish()
    return written


def main(argv: Sequence[str] | None = None) -> int:
    print(run(*parse_trials(__doc__ or "", argv, NAME, QUICK, FULL, "trials per K"))["headline"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
