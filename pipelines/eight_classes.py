"""Eight categories at once: the half slice and ventral temporal cortex, a run held out, chance 12.5 %.

``GAMPDecoder`` as its users call it, on images. "joint LDA" is scikit-learn's, of all eight classes together
(Ledoit-Wolf shrinkage); the package's own methods say themselves whether they compare pairs. The files of
ventral temporal cortex have no rest, so a line that is taken from a run (detrended) is estimated from the
categories themselves.
"""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from nilearn.masking import apply_mask
from nilearn.signal import clean
from numpy.typing import NDArray
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import LeaveOneGroupOut, cross_val_score

from mvpa_gamp import GAMPDecoder

from .command import Options, parse
from .data_folder import find_data
from .output import write_record, write_table
from .trial_store import TrialStore

NAME = "eight_classes"
JOINT = "joint LDA"
METHODS = ("svm", "lda", JOINT, "gamp-bg-lr", "gamp-sbg-lr", "vamp-sbg")
WHITENED_TOO = ("lda", "gamp-bg-lr", "gamp-sbg-lr", "vamp-sbg")
SETS = {"slice": "haxby_slice", "vt": "haxby_vt"}
REST = "rest"
PLAIN, WHITENED = "as measured", "whitened"


def row_of(folder: Path, word: str, method: str, detrended: bool, noise: str) -> dict[str, Any]:
    """Mean accuracy over runs of one method, with its standard error, and processor seconds."""
    labels = pd.read_csv(folder / "labels.txt", sep=r"\s+")
    y, runs = labels["labels"].to_numpy(), labels["chunks"].to_numpy()
    began = time.process_time()
    if method == JOINT:
        accuracy = joint_lda(folder, y, runs, detrended)
    else:
        decoder = GAMPDecoder(
            method, mask=str(folder / "mask.nii.gz"), ignore=REST if REST in y else None,
            detrend=detrended, whiten=noise == WHITENED,
        )  # fmt: skip
        accuracy = decoder.fit(str(folder / "bold.nii.gz"), y, groups=runs).fold_scores_
    scores = 100 * np.asarray(accuracy)
    return {
        "set": word,
        "method": method,
        "detrended": detrended,
        "noise": noise,
        "accuracy_percent": float(scores.mean()),
        "accuracy_se_percent": float(scores.std(ddof=1) / np.sqrt(len(scores))),
        "processor_seconds": time.process_time() - began,
    }


def joint_lda(folder: Path, y: NDArray, runs: NDArray, detrended: bool) -> NDArray:
    """Accuracy of every held-out run; volumes are cleaned run by run, as everywhere."""
    X = apply_mask(str(folder / "bold.nii.gz"), str(folder / "mask.nii.gz"))
    X = clean(X, runs=runs, detrend=detrended, standardize="zscore_sample")
    kept = y != REST
    X, y, runs = X[kept], y[kept], runs[kept]
    model = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
    return cross_val_score(model, X, y, groups=runs, cv=LeaveOneGroupOut())


def plan(options: Options, names: Sequence[str]) -> list[tuple[str, str, bool, str]]:
    """What is tried: every method as measured, some whitened too; ``quick`` a part of it."""
    out = []
    for word in names:
        for method in METHODS if options.full else METHODS[1:4]:
            out.append((word, method, True, PLAIN))
            if options.full and word == "vt":
                out.append((word, method, False, PLAIN))
            if options.full and method in WHITENED_TOO:
                out.append((word, method, True, WHITENED))
    return out


def run(options: Options, folders: dict[str, Path]) -> dict[str, Any]:
    """Decode, write table and record, and return the record."""
    store = TrialStore(options.out, NAME, {"full": options.full, "seed": options.seed})

    def compute(word: str, *rest: Any) -> list[dict[str, Any]]:
        return [row_of(folders[word], word, *rest)]

    rows = store.rows(plan(options, list(folders)), compute)
    write_table(options.out / f"{NAME}.csv", rows)
    said = (f"{r['set']} {r['method']} {r['noise']} {r['accuracy_percent']:.1f} %" for r in rows)
    record = {"headline": "; ".join(said), "chance_percent": 12.5, "rows": rows}
    path = options.out / f"{NAME}.json"
    done = write_record(path, record, pipeline=NAME, options=options, seconds=store.seconds)
    store.finish()
    return done


def main(argv: Sequence[str] | None = None) -> int:
    options, _ = parse(__doc__ or "", argv, name=NAME)
    found = {word: find_data(None, name) for word, name in SETS.items()}
    folders = {word: folder for word, folder in found.items() if folder is not None}
    if not folders:
        print("haxby_slice and haxby_vt were not found in the folder of MVPA_GAMP_DATA, nothing done")
        return 0
    print(run(options, folders)["headline"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
