"""Between people, on real contrast maps: methods, scalings, and where the threshold lies.

Contrast maps of the participants of pain_rejection (see data_sets), averaged to voxels twice as wide. Every
comparison is decoded with one participant held out at a time, maps as they are and centred within
participants, and by models that are trained on one half of the participants and tested on the other, both
ways. Accuracy needs a threshold; the forced choice (which of a person's two maps is the first condition)
needs none, and "best" is the accuracy that the best threshold for the tested maps would have.
"""

import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import nibabel
import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.decoding.group import people_scores
from mvpa_gamp.decoding.tasks import Task
from mvpa_gamp.imaging.maps import scale
from mvpa_gamp.imaging.samples import Samples
from mvpa_gamp.methods import METHODS

from .command import Options, parse
from .data_sets import DataSet, contrasts
from .output import write_record, write_table

NAME = "people"
METHODS_TRIED = ("vamp-sbg", "vamp-bg", "gamp-bg-lr", "svm", "lda")
REFERENCE = METHODS_TRIED[0]
SCALINGS = ("none", "centre")
Row = dict[str, Any]


def coarser(samples: Samples) -> Samples:
    """Means of 2 x 2 x 2 voxels, of which all are in the mask."""
    inside = np.asarray(samples.mask_img.dataobj) != 0
    shape = [size // 2 for size in inside.shape]

    def means(values: NDArray) -> NDArray:
        cut = values[tuple(slice(0, 2 * size) for size in shape)]
        blocks = cut.reshape(shape[0], 2, shape[1], 2, shape[2], 2)
        return np.asarray(blocks.mean(axis=(1, 3, 5)))

    kept, rows = means(inside) == 1, []
    for row in samples.X:
        whole = np.zeros(inside.shape, np.float32)
        whole[inside] = row
        rows.append(means(whole)[kept])
    affine = samples.mask_img.affine.copy()
    affine[:3, 3] += affine[:3, :3].sum(axis=1) / 2
    affine[:3, :3] *= 2
    mask = nibabel.Nifti1Image(kept.astype(np.uint8), affine)
    return replace(samples, X=np.array(rows, np.float32), mask_img=mask)


def decisions(name: str, data: DataSet, task: Task, X: NDArray, train: NDArray) -> tuple[NDArray, float]:
    """Decision (M, F) of every fold, a column of ``train`` (M, F), about all maps; and seconds."""
    method, began = METHODS[name], time.perf_counter()
    graph = data.samples.connectivity if method.uses_connectivity else None
    fits = method.fit_folds(X, task.y, train, data.samples.runs[task.rows], connectivity=graph)
    return X @ fits.coef + fits.intercept, time.perf_counter() - began


def scored(decision: NDArray, y: NDArray, people: NDArray) -> Row:
    """Of held-out maps: accuracy with its standard error over people, forced choice, area, best threshold."""
    right = np.array([((decision > 0) == (y > 0))[people == one].mean() for one in np.unique(people)])
    found = people_scores(decision, y, people)
    best = max(float(((decision > cut) == (y > 0)).mean()) for cut in decision)
    return {
        "accuracy_percent": round(100 * float(right.mean()), 1),
        "se_percent": round(100 * float(right.std(ddof=1) / np.sqrt(right.size)), 1),
        "forced_choice_percent": round(100 * found.choice, 1),
        "auc": round(found.auc, 3),
        "best_threshold_percent": round(100 * best, 1),
    }


def rows_of(data: DataSet) -> tuple[list[Row], list[Row]]:
    """One participant held out at a time; and halves, both ways."""
    one_out, halves = [], []
    for task in data.tasks:
        people, y = data.samples.runs[task.rows], task.y
        names = np.unique(people)
        first = np.isin(people, names[: len(names) // 2])
        for scaling in SCALINGS:
            X = scale(data.samples.X[task.rows], people, scaling)
            right: dict[str, NDArray] = {}
            for name in METHODS_TRIED:
                about = {"comparison": task.label, "scaling": scaling, "method": name}
                held = people[:, None] == names
                decision, seconds = decisions(name, data, task, X, ~held)
                mine = decision[held]  # every map in the one fold that does not know its participant
                right[name] = np.array([((mine > 0) == (y > 0))[people == one].mean() for one in names])
                gap = 100 * (right[name] - right[REFERENCE])
                one_out.append({
                    **about, **scored(mine, y, people),
                    "minus_reference": round(float(gap.mean()), 1),
                    "its_se": round(float(gap.std(ddof=1) / np.sqrt(gap.size)), 1),
                    "seconds": round(seconds, 2),
                })  # fmt: skip
                decision, _ = decisions(name, data, task, X, np.column_stack([first, ~first]))
                for column, (tested, said) in enumerate(((~first, "first half"), (first, "second half"))):
                    found = scored(decision[tested, column], y[tested], people[tested])
                    halves.append({**about, "trained_on": said, **found})
    return one_out, halves


def wide(one_out: Sequence[Row]) -> list[Row]:
    """A line per method and scaling, with a column per comparison."""
    lines: dict[tuple[str, str], Row] = {}
    for row in sorted(one_out, key=lambda row: SCALINGS[::-1].index(row["scaling"])):
        line = lines.setdefault(
            (row["scaling"], row["method"]), {"scaling": row["scaling"], "method": row["method"]}
        )
        line[row["comparison"].replace(" ", "_")] = f"{row['accuracy_percent']} ± {row['se_percent']}"
    return list(lines.values())


def thresholds(halves: Sequence[Row]) -> list[Row]:
    """A line per comparison, scaling and method: means over both halves."""
    lines: dict[tuple[str, str, str], list[Row]] = {}
    for row in halves:
        lines.setdefault((row["comparison"], row["scaling"], row["method"]), []).append(row)
    names = ("accuracy_percent", "best_threshold_percent", "forced_choice_percent")
    return [
        {**dict(zip(("comparison", "scaling", "method"), key, strict=True)),
         **{name: round(float(np.mean([row[name] for row in both])), 1) for name in names}}
        for key, both in lines.items()
    ]  # fmt: skip


def run(options: Options, data: DataSet) -> dict[str, Any]:
    """Decode, write tables and record, and return the record."""
    began = time.perf_counter()
    data = replace(data, samples=coarser(data.samples))
    one_out, halves = rows_of(data)
    write_table(options.out / f"{NAME}.csv", one_out)
    write_table(options.out / f"{NAME}_halves.csv", halves)
    write_table(options.out / f"{NAME}_table.csv", wide(one_out))
    write_table(options.out / f"{NAME}_thresholds.csv", thresholds(halves))
    mine = [row for row in one_out if row["method"] == REFERENCE and row["scaling"] == "centre"]
    record = {
        "headline": "; ".join(f"{row['comparison']} {row['accuracy_percent']} %" for row in mine),
        "data": data.label, "maps": len(data.samples.X), "voxels": data.samples.X.shape[1],
        "participants": len(np.unique(data.samples.runs)), "reference": REFERENCE,
    }  # fmt: skip
    seconds = time.perf_counter() - began
    return write_record(options.out / f"{NAME}.json", record, pipeline=NAME, options=options, seconds=seconds)


def main(argv: Sequence[str] | None = None) -> int:
    options, _ = parse(__doc__ or "", argv, name=NAME)
    data = contrasts()
    if data is None:
        print("people: expected pain_rejection/contrasts_2mm.nii.gz in the folder of MVPA_GAMP_DATA.")
        return 2
    print(run(options, data)["headline"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
