"""Text classification, the paper's two RCV1 tables: accuracy, runtime and density of eight classifiers.

Data: two LIBSVM files (--train, --test), a scipy.sparse .npz with labels (--matrix, --labels), scikit-learn's
RCV1 (--fetch), or, without any of these, what the folder in MVPA_GAMP_DATA holds (its text/), or a generated
set of documents, called so in every output. Every set is used as it is and swapped (training and test
documents exchanged), see --direction.

Density counts selected words: non-zero weights or, for spGAMP, an inclusion probability above 1/2. spGAMP
classifies with the posterior means of all words; the accuracy of its selected words alone is given beside.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from .benchmarks.table import as_text
from .command import Options, parse
from .data_folder import find_data
from .output import COLOUR_OF, MARKER_OF, save_figure, style, write_record, write_table
from .text_data import (
    RCV1_DENSITY,
    RCV1_FEATURES,
    RCV1_ROWS,
    TextSet,
    fetched_rcv1,
    generated_set,
    libsvm_set,
    npz_set,
)
from .text_methods import CLASSIFIERS, Trained, two_folds

NAME = "text_classification"
SMALL = (2_000, 1_000, 4_000, 0.01)  # training rows, test rows, features, density of a quick generated set
PAPER_TRAIN = 20_242
LIBSVM_FILES = ("rcv1_small_train.svmlight.gz", "rcv1_small_test.svmlight.gz")
NPZ_FILES = ("reuters21578_X.npz", "reuters21578_y.npz")
SHOWN = (
    "classifier",
    "tuning",
    "accuracy",
    "seconds",
    "final_seconds",
    "cpu_seconds",
    "density",
    "nonzero",
    "accuracy_of_selected",
    "chosen",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Where the documents come from and which classifiers are trained."""
    parser.add_argument("--train", type=Path, metavar="FILE", help="training documents, LIBSVM format")
    parser.add_argument("--test", type=Path, metavar="FILE", help="test documents, LIBSVM format")
    parser.add_argument("--matrix", type=Path, metavar="FILE", help="scipy.sparse .npz of all documents")
    parser.add_argument("--labels", type=Path, metavar="FILE", help=".npz with y and n_train for --matrix")
    parser.add_argument("--fetch", action="store_true", help="download RCV1 through scikit-learn")
    parser.add_argument(
        "--direction", choices=("both", "plain", "swapped"), default="both", help="(default: %(default)s)"
    )
    parser.add_argument(
        "--methods", nargs="+", choices=list(CLASSIFIERS), default=list(CLASSIFIERS), metavar="NAME",
        help=f"any of {', '.join(CLASSIFIERS)} (default: all)",
    )  # fmt: skip


def load(options: Options, own: argparse.Namespace) -> list[TextSet]:
    """The documents that the arguments ask for, or all that are at hand."""
    if bool(own.train) != bool(own.test) or bool(own.matrix) != bool(own.labels):
        raise SystemExit("Give --train and --test together, or --matrix and --labels together.")
    if own.train:
        return [libsvm_set(own.train, own.test)]
    if own.matrix:
        return [npz_set(own.matrix, own.labels)]
    if own.fetch:
        return [fetched_rcv1()]
    if found := _at_hand():
        return found
    rng = np.random.default_rng(options.seed)
    full = (PAPER_TRAIN, RCV1_ROWS, RCV1_FEATURES, RCV1_DENSITY)
    return [generated_set(*(full if options.full else SMALL), rng)]


def _at_hand() -> list[TextSet]:
    """Real documents in the folder of MVPA_GAMP_DATA."""
    pairs = ((libsvm_set, LIBSVM_FILES), (npz_set, NPZ_FILES))
    named = ((read, [find_data(None, "text", name) for name in files]) for read, files in pairs)
    return [read(*files) for read, files in named if all(files)]


def compare(data: TextSet, methods: Sequence[str], seed: int) -> list[dict[str, Any]]:
    """Train every classifier on the same two folds; one row each, printed as it comes."""
    folds = two_folds(len(data.y), np.random.default_rng(seed))
    rows = []
    for name in methods:
        trained = CLASSIFIERS[name].train(data.X, data.y, folds)
        rows.append(_row(name, data, trained))
        print(f"  {name}: accuracy {rows[-1]['accuracy']:.4f}, {trained.seconds:.2f} s", flush=True)
    return rows


def _row(name: str, data: TextSet, trained: Trained) -> dict[str, Any]:
    classifier = CLASSIFIERS[name]
    return {
        "data": data.name,
        "generated": data.generated,
        "train_rows": data.X.shape[0],
        "test_rows": data.X_test.shape[0],
        "features": data.X.shape[1],
        "method": name,
        "classifier": classifier.label,
        "tuning": classifier.tuning,
        "accuracy": trained.accuracy(data.X_test, data.y_test),
        "accuracy_of_selected": trained.accuracy(data.X_test, data.y_test, selected_only=True),
        "seconds": trained.seconds,
        "final_seconds": trained.final_seconds,
        "cpu_seconds": trained.cpu_seconds,
        "density": float(np.mean(trained.support)),
        "nonzero": float(np.mean(trained.coef != 0)),
        "chosen": trained.chosen,
        "status": trained.status,
    }


def findings(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """How far the high-accuracy methods lie apart, and how much sooner an EM-tuned spGAMP is done."""
    able = [row for row in rows if CLASSIFIERS[row["method"]].high_accuracy]
    best = max(row["accuracy"] for row in able)
    gamp = [row for row in able if row["method"].startswith("spgamp")]
    others = [row for row in able if row["tuning"] == "xval"]
    found: dict[str, Any] = {
        "data": rows[0]["data"],
        "generated": rows[0]["generated"],
        "points_below_best": {row["method"]: 100 * (best - row["accuracy"]) for row in able},
    }
    for key in ("seconds", "cpu_seconds"):
        if gamp and others:
            ours, theirs = (min(group, key=lambda row: row[key]) for group in (gamp, others))
            found[f"fastest_{key}"] = {"spgamp": ours["method"], "cross_validated": theirs["method"]}
            found[f"{key}_ratio"] = theirs[key] / ours[key]
    return found


def draw(rows: Sequence[dict[str, Any]]) -> Figure:
    """Accuracy against total time, one panel per set; below the density, whose names are the key of both."""
    names = list(dict.fromkeys(row["data"] for row in rows))
    with style():
        figure = Figure(figsize=(4.4 * len(names) + 0.8, 6.0))
        axes = figure.subplots(2, len(names), squeeze=False)
        for column, name in enumerate(names):
            part = [row for row in rows if row["data"] == name]
            _times(axes[0, column], part)
            _densities(axes[1, column], part, named=column == 0)
    return figure


def _times(ax: Any, rows: Sequence[dict[str, Any]]) -> None:
    for row in rows:
        ax.plot(row["seconds"], 100 * row["accuracy"], **_mark(row))
    _decades(ax, [row["seconds"] for row in rows])
    ax.set_xlabel("total time, tuning included (s)")
    ax.set_ylabel("test accuracy (%)")
    kind = "generated" if rows[0]["generated"] else "real documents"
    size = f"{rows[0]['train_rows']:,} training rows, {rows[0]['features']:,} features"
    ax.set_title(f"{rows[0]['data']} ({kind})\n{size}")


def _densities(ax: Any, rows: Sequence[dict[str, Any]], named: bool) -> None:
    places = np.arange(len(rows))[::-1]
    for place, row in zip(places, rows, strict=True):
        if row["density"] > 0:  # nothing selected has no place on a logarithmic axis
            ax.plot(100 * row["density"], place, **_mark(row))
        if row.get("nonzero", 0) > row["density"]:
            ax.plot(100 * row["nonzero"], place, **_mark(row), markerfacecolor="none")
    _decades(ax, [100 * row[key] for row in rows for key in ("density", "nonzero") if key in row])
    labels = [f"{row['classifier']} ({row['tuning']})" for row in rows]
    ax.set_yticks(places, labels if named else [""] * len(rows))
    ax.set_ylim(-0.6, len(rows) - 0.4)
    ax.set_xlabel("features selected (filled) and with a weight (open), %")


def _mark(row: dict[str, Any]) -> dict[str, Any]:
    look = CLASSIFIERS[row["method"]].colour_of
    return {"linestyle": "none", "marker": MARKER_OF[look], "color": COLOUR_OF[look], "markersize": 7}


def _decades(ax: Any, values: Sequence[float]) -> None:
    """A logarithmic axis from one power of ten to another, numbers written out."""
    exponents = np.log10([value for value in values if value > 0] or [1.0])
    low, high = np.floor(exponents.min()), np.ceil(exponents.max())
    ax.set_xscale("log")
    ax.set_xlim(10**low * 0.8, 10 ** max(high, low + 1) * 1.25)
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_formatter(NullFormatter())


def tell(rows: Sequence[dict[str, Any]], found: dict[str, Any]) -> None:
    """Print the table of one set and the race."""
    print(as_text(rows, SHOWN))
    if "seconds_ratio" in found:
        wall, cpu = found["seconds_ratio"], found["cpu_seconds_ratio"]
        print(
            "  fastest cross-validated high-accuracy method over fastest spGAMP: "
            f"{wall:.1f} times the time, {cpu:.1f} times the CPU time",
            flush=True,
        )


def run(data: TextSet, options: Options, own: argparse.Namespace) -> list[dict[str, Any]]:
    """Compare on one set, in both directions or one, and write what came out; returns the findings."""
    began = perf_counter()
    sets = {"both": (data, data.swapped()), "plain": (data,), "swapped": (data.swapped(),)}[own.direction]
    stem = options.out / data.name.replace(",", "").replace(" ", "_")
    rows: list[dict[str, Any]] = []
    summaries: list[dict[str, Any]] = []
    for each in sets:
        print(f"{each.name}: {each.X.shape[0]:,} training rows, {each.X.shape[1]:,} features", flush=True)
        part = compare(each, own.methods, options.seed)
        rows += part
        summaries.append(findings(part))
        tell(part, summaries[-1])
        # After every set, so that a long run that is stopped leaves what it has.
        write_table(stem.with_name(stem.name + ".csv"), rows)
        save_figure(draw(rows), stem)
        record = {"data": data.name, "generated": data.generated, "rows": rows, "findings": summaries}
        seconds = perf_counter() - began
        path = stem.with_name(stem.name + ".json")
        write_record(path, record, pipeline=NAME, options=options, seconds=seconds, own=own)
    return summaries


def headline(summaries: Sequence[dict[str, Any]]) -> str:
    """One line: the data, how far the accurate methods lie apart, and the race."""
    parts = []
    for found in summaries:
        text = f"{found['data']}: within {max(found['points_below_best'].values()):.1f} points"
        if "cpu_seconds_ratio" in found:
            text += f", spGAMP {found['cpu_seconds_ratio']:.1f} times faster (CPU) than the fastest by grid"
        parts.append(text)
    return "; ".join(parts)


def main(argv: Sequence[str] | None = None) -> int:
    options, own = parse(__doc__ or "", argv, arguments, name=NAME)
    summaries = [found for data in load(options, own) for found in run(data, options, own)]
    print(headline(summaries))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
