"""Gene expression, a case with far more features than examples: leukaemia (ALL against AML, 72 x 7,129).

Five-fold cross-validated error, number of genes, consistency between folds and time of the GAMP methods and
of cross-validated baselines, and the genes that most folds select. The data are golub.npz (X raw
intensities, y in -1/+1), named by --data or found as expression/golub.npz in the folder of MVPA_GAMP_DATA.
Without it a generated set of the same shape is used, and everything written says so.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from mvpa_gamp.methods import METHODS, FoldFits, L1LogisticCV, Method
from mvpa_gamp.report.style import WARNING
from mvpa_gamp.stability import jaccard, jaccard_chance

from .command import Options, parse
from .data_folder import find_data
from .output import COLOUR_OF, MARKER_OF, save_figure, style, write_record, write_table

NAME = "expression"
GENERATED = "GENERATED expression-like data"
N_FOLDS = 5
METHOD_NAMES = (
    "gamp-bg-lr", "gamp-bl-lr", "gamp-bg-pr", "gamp-bg-hl", "gamp-l1-lr",
    "l1-lr-cv", "onebit-cs", "cdn", "tron",
)  # fmt: skip
QUICK_REPEATS, FULL_REPEATS = 2, 20
LOWEST, HIGHEST = 20.0, 16_000.0  # the range in which the scanner's intensities mean something
_TELLING = 300  # of the generated genes, with effects from two standard deviations down to none


@dataclass(frozen=True)
class Expression:
    """Intensities and classes; ``word`` goes into file names, ``label`` to readers."""

    word: str
    label: str
    X: NDArray  # (M, N) raw intensities
    y: NDArray  # (M,) -1/+1
    genes: NDArray  # (N,) names, or places from 0 where the file has none


def load(path: Path | None, seed: int) -> Expression:
    """The file where there is one, else a generated set."""
    if path is None:
        return generated(np.random.default_rng([seed, 1]))
    with np.load(path) as stored:
        if not {"X", "y"} <= set(stored.files):
            raise ValueError(
                f"--data {path}: expected arrays X and y, got {stored.files}. Give another file."
            )
        X, y = stored["X"].astype(float), stored["y"].astype(float)
        genes = stored["genes"] if "genes" in stored.files else np.arange(X.shape[1])
    return Expression(path.stem, f"{path.stem}, real data", X, y, genes)


def generated(rng: np.random.Generator, n_genes: int = 7129, n_telling: int = _TELLING) -> Expression:
    """Log-normal intensities of 47 and 25 samples; the first genes tell the classes, less and less."""
    y = np.repeat([-1.0, 1.0], [47, 25])
    log_intensity = rng.normal(9, 2, n_genes) + rng.standard_normal((72, n_genes))
    log_intensity[:, :n_telling] += np.linspace(1, 0, n_telling) * y[:, None]
    return Expression("generated", GENERATED, np.exp2(log_intensity), y, np.arange(n_genes))


def prepared(data: Expression) -> tuple[NDArray, NDArray]:
    """Logarithms of clipped intensities, standardised per gene over all samples (labels are not used).

    Returns X (M, n) and the names (n,) of the genes that vary; the others can tell nothing.
    """
    X = np.log2(np.clip(data.X, LOWEST, HIGHEST))
    varies = np.ptp(X, axis=0) > 0  # a standard deviation would be a rounding error, not zero
    X = X[:, varies]
    return ((X - X.mean(axis=0)) / X.std(axis=0)).astype(np.float32), data.genes[varies]


def fold_places(y: NDArray, rng: np.random.Generator, n_folds: int = N_FOLDS) -> NDArray:
    """The fold that holds each row out, (M,): random, with each class spread evenly."""
    place = np.empty(len(y), dtype=int)
    for label in (-1, 1):
        rows = rng.permutation(np.flatnonzero(y == label))
        place[rows] = np.arange(len(rows)) % n_folds
    return place


def method_of(name: str) -> Method:
    """The method of this name; L1-LR with the intercept that classes of 47 and 25 samples need.

    The Haxby table has none, as in the paper, because its classes are balanced.
    """
    return L1LogisticCV(fit_intercept=True) if name == "l1-lr-cv" else METHODS[name]


def repeat_rows(
    data: Expression, X: NDArray, repeat: int, seed: int, names: Sequence[str]
) -> tuple[list[dict[str, Any]], dict[str, NDArray]]:
    """One split of the samples: a row per method, and the supports (N, folds) by method."""
    place = fold_places(data.y, np.random.default_rng([seed, 2, repeat]))
    train = place[:, None] != np.arange(N_FOLDS)
    rows, supports = [], {}
    for name in names:
        fits = method_of(name).fit_folds(X, data.y, train, place)
        rows.append({"data": data.label, "method": name, "repeat": repeat, **_measured(data, fits, train)})
        supports[name] = fits.support
    return rows, supports


def _measured(data: Expression, fits: FoldFits, train: NDArray) -> dict[str, Any]:
    wrong = (fits.decision > 0) != (data.y > 0)[:, None]
    selects = fits.support.any() and not fits.support.all()
    return {
        "error_percent": 100 * float(np.mean(wrong[~train])),
        "genes": float(fits.support.sum(axis=0).mean()),
        "consistency_percent": 100 * jaccard(fits.support) if selects else None,
        "chance_consistency_percent": 100 * jaccard_chance(fits.support) if selects else None,
        "folds_converged": int(fits.converged.sum()),
        "seconds": round(fits.seconds, 3),
    }


def summary(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Means over repeats; their standard deviation tells how much the split matters, not the sample."""
    means = []
    for name in dict.fromkeys(row["method"] for row in rows):
        group = [row for row in rows if row["method"] == name]
        row: dict[str, Any] = {"data": group[0]["data"], "method": name, "repeats": len(group)}
        for measure in ("error_percent", "genes", "consistency_percent", "seconds"):
            values = [each[measure] for each in group if each[measure] is not None]
            row[measure] = float(np.mean(values)) if values else None
            row[f"{measure}_sd"] = float(np.std(values, ddof=1)) if len(values) > 1 else None
        means.append(row)
    return means


def often_selected(supports: dict[str, NDArray], genes: NDArray, share: float = 0.5) -> list[dict[str, Any]]:
    """Genes that more than ``share`` of a method's folds select, most often selected first."""
    rows = []
    for name, support in supports.items():
        frequency = support.mean(axis=1)
        if frequency.min() == 1:  # a method that selects nothing: all genes have weights
            continue
        chosen = np.flatnonzero(frequency > share)
        for gene in chosen[np.argsort(-frequency[chosen], kind="stable")]:
            rows.append({"method": name, "gene": genes[gene], "selected_in": float(frequency[gene])})
    return rows


def draw(means: Sequence[dict[str, Any]], data: Expression) -> Figure:
    """Error against the number of genes, and consistency."""
    figure = Figure(figsize=(8.6, 3.9))
    left, right = figure.subplots(1, 2, sharex=True)
    for row in means:
        name = row["method"]
        look = {"color": COLOUR_OF[name], "marker": MARKER_OF[name], "linestyle": "", "capsize": 2}
        left.errorbar(row["genes"], row["error_percent"], yerr=row["error_percent_sd"],
                      label=METHODS[name].label, **look)  # fmt: skip
        if row["consistency_percent"] is not None:
            right.errorbar(
                row["genes"], row["consistency_percent"], yerr=row["consistency_percent_sd"], **look
            )
    for axes in (left, right):
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.set_xlabel("selected genes")
    lowest = -0.03 * max(row["error_percent"] for row in means)  # room for the marks of errors near 0
    left.set(ylabel="five-fold error (%)", ylim=(lowest, None))
    right.set(ylabel="consistency (%, Jaccard)", ylim=(0, 100))
    is_generated = data.word == "generated"
    figure.suptitle(
        f"{data.label}: {data.X.shape[0]} samples, {data.X.shape[1]:,} genes, {means[0]['repeats']} splits "
        "(bars: standard deviation over splits)",
        color=WARNING if is_generated else None,
        fontsize=9.5,
    )
    figure.legend(*left.get_legend_handles_labels(), loc="outside right center")
    return figure


def headline(means: Sequence[dict[str, Any]], data: Expression) -> str:
    """Error and number of genes per method."""
    words = [f"{row['method']} {row['error_percent']:.1f} % / {row['genes']:.0f}" for row in means]
    return f"[{data.label}] five-fold error / genes: " + ", ".join(words)


def run(
    options: Options,
    data: Expression,
    n_repeats: int,
    names: Sequence[str] = METHOD_NAMES,
    own: argparse.Namespace | None = None,
) -> dict[str, Any]:
    """Fit, write tables, record and figure, and return the record."""
    began = time.perf_counter()
    X, names_of_genes = prepared(data)
    rows: list[dict[str, Any]] = []
    supports: dict[str, list[NDArray]] = {name: [] for name in names}
    for repeat in range(n_repeats):
        new, selected = repeat_rows(data, X, repeat, options.seed, names)
        rows += new
        for name, support in selected.items():
            supports[name].append(support)
    means = summary(rows)
    genes = often_selected({name: np.hstack(each) for name, each in supports.items()}, names_of_genes)
    stem = f"{NAME}_{data.word}"
    write_table(options.out / f"{stem}_splits.csv", rows)
    write_table(options.out / f"{stem}.csv", means)
    if genes:
        write_table(options.out / f"{stem}_genes.csv", [{"data": data.label, **row} for row in genes])
    with style():
        save_figure(draw(means, data), options.out / stem)
    record = {
        "headline": headline(means, data),
        "data": data.label,
        "generated": data.word == "generated",
        "n_samples": data.X.shape[0],
        "n_genes": data.X.shape[1],
        "n_varying_genes": X.shape[1],
        "n_repeats": n_repeats,
        "means": means,
        "often_selected": {name: [row["gene"] for row in genes if row["method"] == name] for name in names},
    }
    seconds = time.perf_counter() - began
    return write_record(
        options.out / f"{stem}.json", record, pipeline=NAME, options=options, seconds=seconds, own=own
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, metavar="FILE", help="golub.npz (default: see above)")
    parser.add_argument("--generated", action="store_true", help="generated data even where a file is found")


def main(argv: Sequence[str] | None = None) -> int:
    options, own = parse(__doc__ or "", argv, add_arguments, name=NAME)
    path = None if own.generated else find_data(own.data, "expression", "golub.npz")
    repeats = FULL_REPEATS if options.full else QUICK_REPEATS
    print(run(options, load(path, options.seed), repeats, own=own)["headline"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
