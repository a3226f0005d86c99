"""Every method on all pairs of categories, with and without whitened noise: error and difference to one.

The data are those of haxby_table. The error of a pair is the mean over held-out runs; a row of the table is
the mean over pairs with the standard error over pairs, and the mean of the pairs' differences to
gamp-sbg-lr without whitening, with its own standard error. Pairs share categories and volumes, so standard
errors over pairs are approximate.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.decoding.fit import Scheme, cross_validate, fit_tasks
from mvpa_gamp.decoding.preparation import NoiseWhitening
from mvpa_gamp.decoding.scores import fold_errors
from mvpa_gamp.decoding.tasks import Task
from mvpa_gamp.imaging.samples import Samples
from mvpa_gamp.methods import METHODS, Method
from mvpa_gamp.study.plan import choose_tasks
from mvpa_gamp.study.preparing import blocks_of

from .command import Options, parse
from .haxby_table import Source, add_arguments, choose_source
from .output import write_record, write_table

NAME = "all_pairs"
TABLE_METHODS = ("svm", "lda", "tron", "onebit-cs", "l1-lr-cv", "gamp-l1-lr", "gamp-bg-lr", "gamp-sbg-lr")
QUICK_METHODS = ("svm", "lda", "gamp-bg-lr", "gamp-sbg-lr")
REFERENCE = ("gamp-sbg-lr", "as measured")

Errors = dict[tuple[str, str], NDArray]  # (P,) in percent, by method and what was done to the noise


def pair_errors(samples: Samples, tasks: Sequence[Task], methods: Sequence[Method]) -> Errors:
    """The error of every pair, of every method, with and without whitening."""
    errors: Errors = {}
    for method in methods:
        graph = samples.connectivity if method.uses_connectivity else None
        found = [
            cross_validate(
                method, samples.X[t.rows], t.y, samples.runs[t.rows], scheme=Scheme(connectivity=graph)
            )
            for t in tasks
        ]
        rates = [fold_errors(fits, task.y).mean() for fits, task in zip(found, tasks, strict=True)]
        errors[method.name, "as measured"] = 100 * np.array(rates)
    whitened = fit_tasks(
        methods,
        samples.X,
        tasks,
        samples.runs,
        Scheme(preparation=NoiseWhitening(blocks_of(samples)), connectivity=samples.connectivity),
    )
    for method in methods:
        rates = [fold_errors(whitened[method.name, task.name], task.y).mean() for task in tasks]
        errors[method.name, "whitened"] = 100 * np.array(rates)
    return errors


def summary(errors: Errors, label: str) -> list[dict[str, Any]]:
    """A row per method and noise: mean and standard error over pairs, and the same of the difference."""
    reference = errors[REFERENCE]
    rows = []
    for (method, noise), values in errors.items():
        difference, error = _mean_and_error(values - reference)
        own = {"error_percent": values.mean(), "error_se_percent": _mean_and_error(values)[1]}
        than = {"difference_percent": difference, "difference_se_percent": error}
        about = {"data": label, "method": method, "label": METHODS[method].label, "noise": noise}
        rows.append({**about, "pairs": values.size, **own, **than})
    return rows


def side_by_side(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same with a row per method: as measured, then whitened."""
    numbers = ("error_percent", "error_se_percent", "difference_percent", "difference_se_percent")
    out = []
    for row in (row for row in rows if row["noise"] == "as measured"):
        whitened = next(r for r in rows if (r["method"], r["noise"]) == (row["method"], "whitened"))
        out.append({
            "method": row["method"],
            **{name: row[name] for name in numbers},
            **{f"whitened_{name}": whitened[name] for name in numbers},
        })  # fmt: skip
    return out


def _mean_and_error(values: NDArray) -> tuple[float, float]:
    spread = values.std(ddof=1) / np.sqrt(values.size) if values.size > 1 else np.nan
    return float(values.mean()), float(spread)


def run(
    options: Options, source: Source, own: argparse.Namespace | None = None, methods: Sequence[str] = (),
    pairs: Sequence[str] = ("all",),
) -> dict[str, Any]:  # fmt: skip
    """Decode all pairs, or those named, write table, pairs and record, and return the record."""
    began = time.perf_counter()
    samples = source.volumes.load()
    tasks = choose_tasks(pairs, samples)
    names = methods or (TABLE_METHODS if options.full else QUICK_METHODS)
    errors = pair_errors(samples, tasks, [METHODS[name] for name in names])
    rows, stem = summary(errors, source.label), f"{NAME}_{source.word}"
    write_table(options.out / f"{stem}.csv", rows)
    write_table(options.out / f"{stem}_table.csv", side_by_side(rows))
    by_pair = [
        {"comparison": task.label, "method": method, "noise": noise, "error_percent": values[k]}
        for (method, noise), values in errors.items()
        for k, task in enumerate(tasks)
    ]
    write_table(options.out / f"{stem}_pairs.csv", by_pair)
    said = (f"{row['method']} {row['noise']} {row['error_percent']:.1f} %" for row in rows)
    record = {"headline": f"[{source.label}] " + "; ".join(said), "data": source.label, "rows": rows,
              "simulated": samples.is_phantom, "n_voxels": samples.X.shape[1]}  # fmt: skip
    seconds = time.perf_counter() - began
    path = options.out / f"{stem}.json"
    return write_record(path, record, pipeline=NAME, options=options, seconds=seconds, own=own)


def main(argv: Sequence[str] | None = None) -> int:
    options, own = parse(__doc__ or "", argv, add_arguments, name=NAME)
    print(run(options, choose_source(own.data, own.phantom, options.seed), own)["headline"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
