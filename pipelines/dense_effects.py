"""Where a support vector machine wins: the same total effect in few features, in a patch, or in all of them.

Features stand on a square grid; a patch of them differs between the classes by the same small amount, with
independent noise, so that the best possible classifier has the same error whatever the size of the patch.
Methods are fitted to one training set of ten runs and judged on a large test set, trial by trial.
"""

import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from mvpa_gamp.imaging.spaces import voxel_connectivity
from mvpa_gamp.methods import METHODS

from .command import Options, parse_trials
from .output import save_figure, style, write_record, write_table

NAME = "dense_effects"
METHOD_NAMES = ("svm", "lda", "l1-lr-cv", "gamp-bg-lr", "gamp-sbg-lr")


@dataclass(frozen=True)
class Size:
    """How much is simulated."""

    side: int
    patches: tuple[int, ...]  # side of the patch that differs
    n_train: int
    n_test: int
    n_trials: int
    separation: float = 4.0  # distance of the class means in standard deviations: Bayes error 2.3 %


QUICK = Size(16, (2, 16), 120, 500, 2)
FULL = Size(40, (3, 10, 20, 40), 200, 2000, 10)


def graph(side: int) -> Any:
    """Neighbours on the grid."""
    import nibabel

    return voxel_connectivity(nibabel.Nifti1Image(np.ones((side, side, 1), dtype=np.uint8), np.eye(4)))


def trial(size: Size, patch: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Errors of all methods on one simulated data set."""
    effect = np.zeros((size.side, size.side))
    at = rng.integers(0, size.side - patch + 1, 2)
    effect[at[0] : at[0] + patch, at[1] : at[1] + patch] = size.separation / (2 * patch)
    n = size.n_train + size.n_test
    y = np.tile([1.0, -1.0], n // 2)
    X = (rng.standard_normal((n, effect.size)) + y[:, None] * effect.ravel()).astype(np.float32)
    train = np.arange(n) < size.n_train
    runs = np.minimum(np.arange(n) * 10 // size.n_train, 10)
    return [_judged(name, X, y, train, runs, size, patch) for name in METHOD_NAMES]


def _judged(
    name: str, X: NDArray, y: NDArray, train: NDArray, runs: NDArray, size: Size, patch: int
) -> dict[str, Any]:
    labels = np.where(train, y, np.nan)
    fits = METHODS[name].fit_folds(X, labels, train[:, None], runs, connectivity=graph(size.side))
    wrong = (fits.decision[~train, 0] > 0) != (y[~train] > 0)
    return {"informative_percent": 100 * patch**2 / size.side**2, "method": name,
            "error_percent": 100 * float(wrong.mean()), "voxels": int(fits.support.sum())}  # fmt: skip


def means(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Means over trials, with standard errors."""
    out = []
    for share, method in dict.fromkeys((row["informative_percent"], row["method"]) for row in rows):
        some = [r for r in rows if (r["informative_percent"], r["method"]) == (share, method)]
        errors = np.array([row["error_percent"] for row in some])
        out.append({
            "informative_percent": share,
            "method": method,
            "error_percent": float(errors.mean()),
            "error_se_percent": float(errors.std(ddof=1) / np.sqrt(errors.size)),
            "voxels": float(np.mean([row["voxels"] for row in some])),
        })  # fmt: skip
    return out


def draw(table: Sequence[dict[str, Any]], size: Size) -> Any:
    """Error against the share of features that differ."""
    from matplotlib.figure import Figure

    from .output import COLOUR_OF, MARKER_OF

    figure = Figure(figsize=(5.6, 3.8))
    axes = figure.subplots()
    for name in METHOD_NAMES:
        mine = [row for row in table if row["method"] == name]
        shares, errors, spread = (
            [row[column] for row in mine]
            for column in ("informative_percent", "error_percent", "error_se_percent")
        )
        axes.errorbar(shares, errors, spread, label=METHODS[name].label, color=COLOUR_OF[name],
                      marker=MARKER_OF[name], capsize=2)  # fmt: skip
    axes.axhline(100 * ndtr(-size.separation / 2), color="black", linewidth=0.8, linestyle="--",
                 label="Bayes error")  # fmt: skip
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("features that differ between the classes (%)")
    axes.set_ylabel("error (%)")
    axes.legend(fontsize=8)
    return figure


def run(options: Options, size: Size) -> dict[str, Any]:
    """Simulate, write table, figure and record, and return the record."""
    began = time.perf_counter()
    rows = []
    for patch in size.patches:
        children = np.random.SeedSequence([options.seed, patch]).spawn(size.n_trials)
        for child in children:
            rows += trial(size, patch, np.random.default_rng(child))
    table = means(rows)
    write_table(options.out / f"{NAME}.csv", table)
    with style():
        save_figure(draw(table, size), options.out / NAME)
    said = (f"{r['informative_percent']:.2g} %: {r['method']} {r['error_percent']:.1f} %" for r in table)
    record = {"headline": "; ".join(said), "size": asdict(size), "rows": table}
    seconds = time.perf_counter() - began
    return write_record(options.out / f"{NAME}.json", record, pipeline=NAME, options=options, seconds=seconds)


def main(argv: Sequence[str] | None = None) -> int:
    options, size = parse_trials(__doc__ or "", argv, NAME, QUICK, FULL, "data sets per size of the patch")
    print(run(options, size)["headline"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
