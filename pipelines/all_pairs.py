"""Every method on every data set: error, what is selected, how consistently, and seconds.

Data sets are those of data_sets; those that are not found are left out. Groups (runs, participants) are held
out one at a time. On slice, vt and phantom a row of the table is the mean over pairs of categories, with the
standard error over pairs, and the mean of the pairs' differences to --reference with its own standard error;
pairs share categories and volumes, so these are approximate. On maps of participants every comparison is a
row, with standard errors over participants. "Null" consistency is that of the same fit after the two labels
were swapped in half of the groups: training rows that folds share make selections agree without any effect.
Slice and vt are also whitened. A run of some methods keeps the others' rows of an earlier run into the same
folder; every line of NAME_pairs.csv has its commit and processor.
"""

import argparse
import csv
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.decoding.fit import Scheme, cross_validate, fit_tasks
from mvpa_gamp.decoding.preparation import NoiseWhitening
from mvpa_gamp.decoding.scores import fold_errors
from mvpa_gamp.decoding.tasks import Task
from mvpa_gamp.methods import METHODS, FoldFits, Method
from mvpa_gamp.results.cells import measures_of
from mvpa_gamp.study.comparisons import blocks_of

from .benchmarks.machine import commit, cpu_model
from .command import Options, parse
from .data_sets import SETS, DataSet
from .output import write_record, write_table
from .ridge import ridge_fold_errors
from .trial_store import TrialStore

NAME = "all_pairs"
RIDGE = "ridge"  # its penalty by leaving groups out; not a method of the package
LINEAR = ("svm", "lda", RIDGE)
GAMP = ("gamp-l1-lr", "gamp-bg-lr", "gamp-sbg-lr", "vamp-bg", "vamp-sbg")
TABLE_METHODS = (*LINEAR, "tron", "onebit-cs", "l1-lr-cv", *GAMP)
QUICK_METHODS = (*LINEAR, "gamp-bg-lr", "vamp-sbg")
REFERENCE = "vamp-sbg"
SLOW = ("tron", "onebit-cs", "l1-lr-cv")  # nested cross-validation: on few voxels only
FEW_VOXELS = 5000
PLAIN, WHITENED = "as measured", "whitened"
NUMBERS = ("voxels", "consistency_percent", "null_consistency_percent", "seconds")  # of a cell
Row = dict[str, Any]


def fits_of(data: DataSet, task: Task, method: Method, y: NDArray) -> FoldFits:
    """Folds of one comparison."""
    graph = data.samples.connectivity if method.uses_connectivity else None
    runs = data.samples.runs[task.rows]
    return cross_validate(method, data.rows(task), y, runs, scheme=Scheme(connectivity=graph))


def cells_of(data: DataSet, name: str, noise: str, seed: int) -> list[Row]:
    """One method on all comparisons: errors of all folds, and of the selection what there is."""
    began, tasks, found = time.perf_counter(), data.tasks, []
    if name != RIDGE and noise == WHITENED:  # one pass over folds serves all comparisons
        samples = data.samples
        scheme = Scheme(preparation=NoiseWhitening(blocks_of(samples)), connectivity=samples.connectivity)
        fits = fit_tasks([METHODS[name]], samples.X, tasks, samples.runs, scheme)
        seconds = (time.perf_counter() - began) / len(tasks)
        found = [{**_measured(fits[name, task.name], task.y), "seconds": seconds} for task in tasks]
    else:
        found = [_plain(data, task, name, seed) for task in tasks]
    about = {"set": data.word, "method": name, "noise": noise}
    return [{**about, "comparison": task.label, **row} for task, row in zip(tasks, found, strict=True)]


def _plain(data: DataSet, task: Task, name: str, seed: int) -> Row:
    began, runs = time.perf_counter(), data.samples.runs[task.rows]
    if name == RIDGE:
        errors = ridge_fold_errors(data.rows(task), task.y, runs).tolist()
        return {"errors": errors, **dict.fromkeys(NUMBERS), "seconds": time.perf_counter() - began}
    row = _measured(fits_of(data, task, METHODS[name], task.y), task.y)
    row["seconds"] = time.perf_counter() - began
    if row["consistency_percent"] is not None:
        null = swapped(task.y, runs, seed)
        fits = fits_of(data, task, METHODS[name], null)
        row["null_consistency_percent"] = _measured(fits, null)["consistency_percent"]
    return row


def _measured(fits: FoldFits, y: NDArray) -> Row:
    row: Row = {"errors": fold_errors(fits, y).tolist(), **dict.fromkeys(NUMBERS)}
    if not fits.folds.support.all():
        row["voxels"] = float(fits.folds.support.sum(axis=0).mean())
        row["consistency_percent"] = float(measures_of(fits, y)["consistency_percent"])
    return row


def swapped(y: NDArray, runs: NDArray, seed: int) -> NDArray:
    """Labels (M,) with the two classes exchanged in random groups, in half of them."""
    names, code = np.unique(runs, return_inverse=True)
    signs = np.where(np.arange(len(names)) % 2, 1.0, -1.0)
    return y * np.random.default_rng([seed, len(names)]).permutation(signs)[code]


def methods_for(data: DataSet, names: Sequence[str]) -> list[tuple[str, str]]:
    """Names of methods, and what is done to the noise, that a data set is tried with."""
    few = data.samples.X.shape[1] <= FEW_VOXELS
    plain = [(name, PLAIN) for name in names if few or name not in SLOW]
    blocks = few and not data.by_fold and data.samples.kind == "volume"
    return plain + [(name, WHITENED) for name in names if blocks and name != RIDGE]


def summary(cells: Sequence[Row], by_fold: bool, reference: str) -> list[Row]:
    """A row per method, noise and, with ``by_fold``, comparison: means, standard errors, differences."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for each in cells:
        comparison = each["comparison"] if by_fold else "average"
        groups.setdefault((comparison, each["method"], each["noise"]), []).append(each)
    values = {
        key: 100 * np.array(rows[0]["errors"] if by_fold else [np.mean(row["errors"]) for row in rows])
        for key, rows in groups.items()
    }
    out = []
    for (comparison, method, noise), rows in groups.items():
        mine, other = values[comparison, method, noise], values.get((comparison, reference, PLAIN))
        error, error_se = _mean_and_error(mine)
        difference, difference_se = _mean_and_error(mine - other) if other is not None else (None, None)
        out.append({
            "set": rows[0]["set"], "comparison": comparison, "method": method, "noise": noise,
            "comparisons": len(rows), "error_percent": error, "error_se_percent": error_se,
            "difference_percent": difference, "difference_se_percent": difference_se,
            **{name: _mean([row[name] for row in rows])
               for name in NUMBERS},
        })  # fmt: skip
    return out


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _mean_and_error(values: NDArray) -> tuple[float, float]:
    spread = values.std(ddof=1) / np.sqrt(values.size) if values.size > 1 else np.nan
    return float(values.mean()), float(spread)


def run(
    options: Options, sets: Sequence[DataSet], methods: Sequence[str] = (), reference: str = REFERENCE,
    own: argparse.Namespace | None = None,
) -> Row:  # fmt: skip
    """Decode all comparisons of all sets, write a table, the cells and a record per set; return the last."""
    record: Row = {}
    for data in sets:
        names = methods or (TABLE_METHODS if options.full else QUICK_METHODS)
        chosen = methods_for(data, names)
        store = TrialStore(options.out, f"{NAME}_{data.word}", {"seed": options.seed, "methods": chosen})

        def compute(name: str, noise: str, data: DataSet = data) -> list[Row]:
            return cells_of(data, name, noise, options.seed)

        cells = store.rows(chosen, compute)
        record = _written(options, data, cells, reference, store.seconds, own)
        store.finish()
    return record


def _written(
    options: Options, data: DataSet, cells: Sequence[Row], reference: str, seconds: float,
    own: argparse.Namespace | None,
) -> Row:  # fmt: skip
    stem = f"{NAME}_{data.word}"
    path = options.out / f"{stem}_pairs.csv"
    cells = kept(path, cells) + [{**each, "commit": commit(), "cpu": cpu_model()} for each in cells]
    rows = summary(cells, data.by_fold, reference)
    write_table(options.out / f"{stem}.csv", rows)
    write_table(path, [{**each, "errors": " ".join(map(repr, each["errors"]))} for each in cells])
    said = (f"{r['comparison']} {r['method']} {r['noise']} {r['error_percent']:.1f} %" for r in rows)
    record = {"headline": f"[{data.label}] " + "; ".join(said), "data": data.label, "rows": rows,
              "simulated": data.samples.is_phantom, "n_voxels": data.samples.X.shape[1]}  # fmt: skip
    record_path = options.out / f"{stem}.json"
    return write_record(record_path, record, pipeline=NAME, options=options, seconds=seconds, own=own)


def kept(path: Path, cells: Sequence[Row]) -> list[Row]:
    """Cells of an earlier run whose method is not among ``cells``; each names the commit that computed it."""
    if not path.exists():
        return []
    again = {(each["method"], each["noise"]) for each in cells}
    with path.open(newline="", encoding="utf-8") as stream:
        lines = [line for line in csv.DictReader(stream) if (line["method"], line["noise"]) not in again]
    return [
        {
            **line,
            "errors": [float(each) for each in line["errors"].split()],
            **{name: float(line[name]) if line[name] else None for name in NUMBERS},
        }
        for line in lines
    ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS), help="default: all")
    names = [*METHODS, RIDGE]
    parser.add_argument("--methods", nargs="+", choices=names, default=[], metavar="NAME",
                        help=f"some of {', '.join(names)}")  # fmt: skip
    parser.add_argument("--reference", choices=names, default=REFERENCE, metavar="NAME",
                        help="what differences are taken from (default: %(default)s)")  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    options, own = parse(__doc__ or "", argv, add_arguments, name=NAME)
    for word in own.sets:
        data = SETS[word]()
        if data is None:
            print(f"{word}: not found in the folder of MVPA_GAMP_DATA, left out")
        else:
            print(run(options, [data], own.methods, own.reference, own)["headline"], flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
