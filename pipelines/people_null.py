"""Do the commands themselves decode nothing out of nothing? Swapped labels through every path, start to end.

Data sets of ``swapped_labels``: 16 groups (participants or runs) of 1 to 20 rows, two compared conditions
that do not differ, exchanged at random within groups, and others that do, files sorted by label. Each is
written to disk and given to a command, or to GAMPDecoder, with default settings; accuracy and p-value are
what they report (pages are not drawn). Accuracy must be 50 +- 3 % and p-values uniform.
"""

import contextlib
import io
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import nibabel
import numpy as np
from numpy.typing import NDArray
from scipy import stats

from mvpa_gamp import GAMPDecoder
from mvpa_gamp.__main__ import main as command
from mvpa_gamp.results.reader import read_results

from .command import Options, parse_trials
from .output import write_record, write_table
from .swapped_labels import Data, simulate

NAME = "people_null"
GRID = (5, 4, 2)  # the 40 features of a data set
AFFINE = np.diag([3.0, 3.0, 3.0, 1.0])
MASK = nibabel.Nifti1Image(np.ones(GRID, np.uint8), AFFINE)
PERMUTATIONS = 39
METHOD = "lda"
ASKED = ["--methods", METHOD, "--permutations", str(PERMUTATIONS), "--quiet"]
OTHERS = ("c", "d")


@dataclass(frozen=True)
class Size:
    """Rows of a group that are tried in turn, and data sets of each path."""

    rows: tuple[int, ...]
    n_trials: int


QUICK = Size((1, 2, 4, 12), 8)
FULL = Size(tuple(range(1, 21)), 200)


def nothing(n_rows: int, rng: np.random.Generator) -> Data:
    """A data set in which maps of the compared conditions changed places within each group at random."""
    data = simulate(n_rows, rng)
    X = data.X.copy()
    for group in np.unique(data.groups):
        mine = np.flatnonzero((data.groups == group) & (data.y != 0))
        X[mine] = X[rng.permutation(mine)]
    return Data(X, data.y, data.groups)


def names_of(data: Data) -> NDArray:
    """Conditions (M,): a and b are compared, c and d are the others, before a and between a and b."""
    names = np.where(data.y > 0, "a", "b")
    for group in np.unique(data.groups):
        mine = data.groups == group
        others = mine & (data.y == 0)
        names[others] = np.where(np.cumsum(data.y[mine] != 0)[data.y[mine] == 0] == 0, *OTHERS)
    return names


def image(rows: NDArray) -> Any:
    """Rows (M, N) as a 4-D image, one row as a 3-D one."""
    return nibabel.Nifti1Image(np.moveaxis(rows.reshape(-1, *GRID), 0, -1).squeeze().astype("f4"), AFFINE)


def _answer(out: Path) -> tuple[float, float]:
    results = read_results(out)
    (row,) = (row for row in results.rows if row["contrast"] != "average")
    (test,) = results.inference_rows()
    return 100 - row["error_percent"], float(test["p_value"])


def maps_table(data: Data, folder: Path) -> tuple[float, float]:
    """decode --maps TABLE, a 4-D file with a line for each of its maps."""
    nibabel.save(image(data.X), folder / "maps.nii")
    lines = [f"maps.nii\t{name}\tsub-{g:02d}" for name, g in zip(names_of(data), data.groups, strict=True)]
    (folder / "maps.tsv").write_text("\n".join(["file\tcondition\tparticipant", *lines]) + "\n")
    _run(["decode", "--maps", folder / "maps.tsv", "--pairs", "a:b", *ASKED, "--out", folder / "out"])
    return _answer(folder / "out")


def derivative(data: Data, folder: Path) -> tuple[float, float]:
    """DERIVATIVES OUT between, a 3-D file per map of a first-level model."""
    for k, (kind, g) in enumerate(zip(names_of(data), data.groups, strict=True)):
        name = f"sub-{g:02d}_run-{k}_contrast-{kind}_stat-effect_statmap.nii"
        nibabel.save(image(data.X[k]), folder / name)
    _run([folder, folder / "out", "--level", "between", "--contrasts", "a:b", *ASKED])
    return _answer(folder / "out")


def betas(data: Data, folder: Path) -> tuple[float, float]:
    """BIDS_DIR OUT participant --samples betas, groups as runs of a participant."""
    (folder / "ds" / "sub-1" / "func").mkdir(parents=True)
    nibabel.save(MASK, folder / "mask.nii")
    for group in np.unique(data.groups):
        stem = folder / "betas" / f"sub-1_task-t_run-{group + 1}_stat-effect_statmap"
        stem.parent.mkdir(exist_ok=True)
        mine = data.groups == group
        nibabel.save(image(data.X[mine]), stem.with_suffix(".nii"))
        names = names_of(data)[mine]
        stem.with_suffix(".tsv").write_text("\n".join(["trial_type", *names]) + "\n")
    given = ["--samples", "betas", "--betas", folder / "betas", "--mask", folder / "mask.nii"]
    _run([folder / "ds", folder / "out", "participant", *given, "--contrasts", "a:b", *ASKED])
    return _answer(folder / "out" / "sub-1")


def decoder(of: Callable[[Data], Any]) -> Callable[[Data, Path], tuple[float, float]]:
    """GAMPDecoder with participants as groups, given images in one form or another."""

    def decoded(data: Data, folder: Path) -> tuple[float, float]:
        model = GAMPDecoder(METHOD, mask=MASK, ignore=OTHERS if (data.y == 0).any() else None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(of(data), names_of(data), data.groups)
            test = model.permutation_test(PERMUTATIONS)
        return 100 * float(model.fold_scores_.mean()), float(test.pvalue)

    return decoded


def _empty_page(root: Path) -> Path:
    page = root / "index.html"
    page.write_text("not drawn")
    return page


def _run(words: Sequence[Any]) -> None:
    said = io.StringIO()
    page = mock.patch("mvpa_gamp.study.run.build_report", _empty_page)  # numbers are written before it
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), page:
        code = command([str(word) for word in words])
    if code:
        raise RuntimeError(said.getvalue())


# How a data set is given, and the fewest rows of a group that can be decoded so.
PATHS: dict[str, tuple[Callable[[Data, Path], tuple[float, float]], int]] = {
    "decode --maps TABLE": (maps_table, 1),
    "DERIVATIVES OUT between": (derivative, 1),
    "BIDS_DIR OUT participant --samples betas": (betas, 3),
    "GAMPDecoder, 3-D images": (decoder(lambda data: [image(row) for row in data.X]), 1),
    "GAMPDecoder, a 4-D image": (decoder(lambda data: image(data.X)), 1),
}


def trial(path: str, n_rows: int, rng: np.random.Generator) -> tuple[float, float]:
    """Accuracy (%) and p-value that a path reports about one data set."""
    with tempfile.TemporaryDirectory() as folder:
        return PATHS[path][0](nothing(n_rows, rng), Path(folder))


def row(path: str, rows: Sequence[int], found: NDArray) -> dict[str, Any]:
    """All data sets of one path (T, 2)."""
    accuracy, p = found.T
    spread = accuracy.std(ddof=1) / np.sqrt(len(accuracy))
    by_rows = [accuracy[np.array(rows) == n].mean() for n in sorted(set(rows))]
    below = {level: 100 * float((p <= level / 100 + 1e-9).mean()) for level in (5, 25, 50)}
    return {
        "path": path,
        "rows_per_group": f"{min(rows)} to {max(rows)}",
        "data_sets": len(rows),
        "accuracy_percent": round(float(accuracy.mean()), 2),
        "se_percent": round(float(spread), 2),
        "lowest_of_a_number_of_rows": round(float(min(by_rows)), 1),
        "highest_of_a_number_of_rows": round(float(max(by_rows)), 1),
        **{f"p_below_{level}_percent": round(share, 1) for level, share in below.items()},
        "uniform_p": round(float(stats.kstest(p, "uniform", alternative="greater").pvalue), 3),
        "sound": bool(abs(accuracy.mean() - 50) <= 3 and below[5] <= 10),
    }


def run(options: Options, size: Size) -> dict[str, Any]:
    """Decode nothing by every path, write the table and the record, and return it."""
    began, rows, every = time.perf_counter(), [], []
    for place, (path, (_, fewest)) in enumerate(PATHS.items()):
        allowed = [n for n in size.rows if n >= fewest]
        tried = [allowed[k % len(allowed)] for k in range(size.n_trials)]
        children = np.random.SeedSequence([options.seed, place]).spawn(size.n_trials)
        found = [trial(path, n, np.random.default_rng(c)) for n, c in zip(tried, children, strict=True)]
        rows.append(row(path, tried, np.array(found)))
        every += [
            {"path": path, "rows_per_group": n, "accuracy_percent": round(a, 2), "p": round(p, 4)}
            for n, (a, p) in zip(tried, found, strict=True)
        ]
    write_table(options.out / f"{NAME}.csv", rows)
    write_table(options.out / f"{NAME}_data_sets.csv", every)
    said = (f"{r['path']}: {r['accuracy_percent']} %, p <= 0.05 in {r['p_below_5_percent']} %" for r in rows)
    record = {"headline": "; ".join(said), "size": asdict(size), "method": METHOD}
    seconds = time.perf_counter() - began
    return write_record(options.out / f"{NAME}.json", record, pipeline=NAME, options=options, seconds=seconds)


def main(argv: Sequence[str] | None = None) -> int:
    options, size = parse_trials(__doc__ or "", argv, NAME, QUICK, FULL, "data sets per path")
    print(run(options, size)["headline"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
