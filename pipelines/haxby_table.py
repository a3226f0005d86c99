"""The Haxby table: error, sparsity, consistency and run time per comparison and method, beside the paper's.

The data are Haxby's volumes in nilearn's layout, or a folder with bold.nii.gz, labels.txt and mask.nii.gz
(a part of them), named by --data or found in the folder of MVPA_GAMP_DATA. Without either a simulated
phantom of Haxby's shape is decoded, and everything written says so. Numbers on other voxels than the
paper's 31,398 show the same methods at work, not the same experiment.
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

from mvpa_gamp.decoding.fit import Scheme, cross_validate
from mvpa_gamp.decoding.tasks import Task
from mvpa_gamp.imaging import source as imaging
from mvpa_gamp.imaging.phantom.head import HAXBY_SHAPE
from mvpa_gamp.imaging.phantom.source import PhantomSource
from mvpa_gamp.imaging.samples import Samples
from mvpa_gamp.imaging.source import HaxbySource, OwnFiles, find_haxby
from mvpa_gamp.methods import METHODS, FoldFits, Method
from mvpa_gamp.report.style import WARNING
from mvpa_gamp.results.cells import measures_of
from mvpa_gamp.results.tables import average_rows
from mvpa_gamp.study.comparisons import choose_methods, choose_tasks
from mvpa_gamp.study.options import DEFAULT_METHODS

from .command import Options, parse
from .data_folder import find_data
from .output import COLOUR_OF, MARKER_OF, save_figure, style, write_record, write_table
from .paper_haxby_table import COLUMNS, VOXELS, printed

NAME = "haxby_table"
# The easiest and the hardest comparison of the paper.
QUICK_PAIRS = ("cat:house", "bottle:shoe")
FULL_METHODS = ("svm", "lda", *DEFAULT_METHODS, "gamp-sbg-lr", "gamp-bl-lr")
PHANTOM_LABEL = "SIMULATED PHANTOM, not a brain"
_FEW_VOXELS = 5000  # with fewer, all comparisons are quick
_MEASURES = ("error_percent", "sparsity_percent", "consistency_percent", "seconds")


@dataclass(frozen=True)
class Source:
    """Where the volumes come from: a word for file names, a sentence for readers, and how to load them."""

    word: str
    label: str
    volumes: imaging.Source


def choose_source(data: Path | None, phantom: bool, seed: int, phantom_shape: Any = None) -> Source:
    """Real volumes where they are named or found, the phantom otherwise."""
    folder = None if phantom else _folder(data)
    if folder is None:
        shape = phantom_shape or HAXBY_SHAPE
        return Source("phantom", PHANTOM_LABEL, PhantomSource(phantom_shape=shape, seed=seed))
    if find_haxby(1, folder) is not None:
        return Source("haxby", "Haxby et al. (2001), participant 1", HaxbySource(data_dir=str(folder)))
    files = {name: folder / name for name in ("bold.nii.gz", "labels.txt", "mask.nii.gz")}
    missing = [name for name, path in files.items() if not path.is_file()]
    if missing:
        raise FileNotFoundError(
            f"--data {folder}: expected haxby2001/subj1/bold.nii.gz (nilearn's layout), or bold.nii.gz, "
            f"labels.txt and mask.nii.gz; missing: {', '.join(missing)}. Give another folder, or --phantom."
        )
    bold, labels, mask = map(str, files.values())
    own = OwnFiles(bold=(bold,), labels=labels, mask=mask)
    return Source("part", "real volumes, a part of the brain", own)


def _folder(data: Path | None) -> Path | None:
    """The folder named, else the whole brain or the slice in the data folder."""
    return find_data(data, "haxby2001") or find_data(data, "haxby_slice")


def measured(samples: Samples, task: Task, method: Method, fits: FoldFits) -> dict[str, Any]:
    """One row of the summary table, in the form of the package's own results."""
    names = (samples.subject, task.name, task.label, method.name)
    keys = dict(zip(("subject", "contrast", "comparison", "method"), names, strict=True))
    return {**keys, **measures_of(fits, task.y), "seconds": fits.seconds, "status": "ok"}


def study_rows(samples: Samples, tasks: Sequence[Task], methods: Sequence[Method]) -> list[dict[str, Any]]:
    """Rows of all comparisons and methods, then the averages over comparisons."""
    rows = []
    for method in methods:
        scheme = Scheme(connectivity=samples.connectivity if method.uses_connectivity else None)
        for task in tasks:
            began = time.process_time()
            fits = cross_validate(
                method, samples.X[task.rows], task.y, samples.runs[task.rows], scheme=scheme
            )
            processor = time.process_time() - began
            rows.append({**measured(samples, task, method, fits), "processor_seconds": processor})
    averages = average_rows(rows)
    for average in averages:
        mine = [row for row in rows if row["method"] == average["method"]]
        average |= {name: np.mean([row[name] for row in mine]) for name in ("seconds", "processor_seconds")}
    return rows + averages


def beside_the_paper(rows: Sequence[dict[str, Any]], source: Source) -> list[dict[str, Any]]:
    """Our numbers and the paper's, with the kind of data in every row.

    The paper's average is over its six comparisons, so it is left out beside fewer.
    """
    whole = len({row["comparison"] for row in rows}) == 7  # six and the average
    table = []
    for row in rows:
        numbers = {name: float(row[name]) for name in ("error_percent", "error_se_percent", "voxels",
                   "sparsity_percent", "consistency_percent", "seconds", "processor_seconds")}  # fmt: skip
        known = whole or row["comparison"] != "average"
        paper = {
            f"paper_{m}": printed(row["comparison"], row["method"], m) if known else None for m in _MEASURES
        }
        table.append({"data": source.label, "comparison": row["comparison"], "method": row["method"],
                      "paper_column": COLUMNS.get(row["method"]), **numbers, **paper})  # fmt: skip
    return table


def draw(table: Sequence[dict[str, Any]], source: Source, n_voxels: int) -> Figure:
    """A row per comparison, a panel per measure: filled marks are ours, open ones the paper's."""
    comparisons = list(dict.fromkeys(row["comparison"] for row in table))
    methods = list(dict.fromkeys(row["method"] for row in table))
    figure = Figure(figsize=(9.6, 1.9 + 0.62 * len(comparisons)))
    panels = figure.subplots(1, 3, sharey=True)
    parts = (("error_percent", "error (%)"), ("consistency_percent", "consistency (%)"),
             ("seconds", "run time (s)"))  # fmt: skip
    for axes, (measure, title) in zip(panels, parts, strict=True):
        for row in table:
            place = comparisons.index(row["comparison"])
            place += 0.7 * ((methods.index(row["method"]) + 0.5) / len(methods) - 0.5)
            _draw_pair(axes, row, measure, place)
        axes.set_xlabel(title)
    panels[2].set_xscale("log")
    panels[0].set_yticks(range(len(comparisons)), comparisons)
    panels[0].set_ylim(len(comparisons) - 0.5, -0.5)
    panels[0].set_xlim(-1, None)
    panels[1].set_xlim(0, 100)
    simulated = source.word == "phantom"
    figure.suptitle(
        f"{source.label}: {n_voxels:,} voxels. The paper: Haxby participant, {VOXELS:,} voxels",
        color=WARNING if simulated else None,
        fontsize=9.5,
        fontweight="bold" if simulated else None,
    )
    figure.legend(handles=_legend(methods, panels[0]), loc="outside lower center", ncols=3)
    return figure


def _draw_pair(axes: Any, row: dict[str, Any], measure: str, place: float) -> None:
    look = {"color": COLOUR_OF[row["method"]], "marker": MARKER_OF[row["method"]], "linestyle": ""}
    ours, theirs = row[measure], row[f"paper_{measure}"]
    if theirs is not None:
        axes.plot([ours, theirs], [place] * 2, color=look["color"], linewidth=0.7, alpha=0.6)
        axes.plot(theirs, place, markerfacecolor="white", **look)
    spread = row["error_se_percent"] if measure == "error_percent" else None
    axes.errorbar(ours, place, xerr=spread, capsize=2, elinewidth=1.4, **look)


def _legend(methods: Sequence[str], axes: Any) -> list[Any]:
    handles = [
        axes.plot([], [], color=COLOUR_OF[name], marker=MARKER_OF[name], linestyle="",
                  label=METHODS[name].label)[0]
        for name in methods
    ]  # fmt: skip
    ours = axes.plot([], [], "o", color="black", label="filled: these data")[0]
    paper = axes.plot([], [], "o", color="black", markerfacecolor="white", label="open: the paper")[0]
    return [*handles, ours, paper]


def headline(table: Sequence[dict[str, Any]], source: Source) -> str:
    """Averages over comparisons per method."""
    words = [
        f"{row['method']} {row['error_percent']:.1f} % error, {row['voxels']:.0f} voxels, "
        f"{row['consistency_percent']:.0f} % consistent, {row['seconds']:.1f} s"
        for row in table
        if row["comparison"] == "average"
    ]
    return f"[{source.label}] " + "; ".join(words)


def run(
    options: Options, source: Source, own: argparse.Namespace | None = None, methods: Sequence[str] = ()
) -> dict[str, Any]:
    """Decode, write table, record and figure, and return the record."""
    began = time.perf_counter()
    samples = source.volumes.load()
    if samples.is_phantom != (source.word == "phantom"):
        raise ValueError("The data and their name disagree on whether they are simulated.")
    quick = not options.full and samples.X.shape[1] > _FEW_VOXELS
    tasks = choose_tasks(QUICK_PAIRS if quick else None, samples)
    chosen = choose_methods(methods or (FULL_METHODS if options.full else DEFAULT_METHODS))
    rows = study_rows(samples, tasks, chosen)
    table = beside_the_paper(rows, source)
    stem = f"{NAME}_{source.word}"
    write_table(options.out / f"{stem}.csv", table)
    with style():
        save_figure(draw(table, source, samples.X.shape[1]), options.out / stem)
    record = {
        "headline": headline(table, source),
        "data": source.label,
        "simulated": samples.is_phantom,
        "n_voxels": samples.X.shape[1],
        "n_runs": len(np.unique(samples.runs)),
        "rows": table,
    }
    seconds = time.perf_counter() - began
    return write_record(
        options.out / f"{stem}.json", record, pipeline=NAME, options=options, seconds=seconds, own=own
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="folder with Haxby's volumes (default: see above)"
    )
    parser.add_argument("--phantom", action="store_true", help="the phantom even where real data are found")


def main(argv: Sequence[str] | None = None) -> int:
    options, own = parse(__doc__ or "", argv, add_arguments, name=NAME)
    print(run(options, choose_source(own.data, own.phantom, options.seed), own)["headline"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
