"""decode --lag-trs 0..8: the same study with labels shifted by every lag, as a curve of accuracy over time.

Choosing the best of several lags makes an accuracy too good. Permutation i exchanges the same blocks at every
lag, and the p-value of a lag compares its accuracy with the largest one of all lags in each permutation, so
that the family-wise error over lags is controlled, whatever their correlation.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.decoding.exchange import find_exchange
from mvpa_gamp.decoding.fit import Scheme, cross_validate
from mvpa_gamp.decoding.permutation import PermutationTest, permutation_test
from mvpa_gamp.decoding.scores import fold_errors
from mvpa_gamp.decoding.tasks import Task
from mvpa_gamp.imaging.samples import Samples
from mvpa_gamp.methods.fold_fits import Method
from mvpa_gamp.report.lags import Lag, LagCurve, lag_page
from mvpa_gamp.report.words import span
from mvpa_gamp.results.files import write_json, write_text, write_tsv
from mvpa_gamp.results.summary import versions
from mvpa_gamp.study.comparisons import blocks_of, choose_tasks
from mvpa_gamp.study.ending import StudyError
from mvpa_gamp.study.plan import check_settings, usage_errors
from mvpa_gamp.study.settings import StudySettings

_RANGE = re.compile(r"(\d+)\.\.(\d+)")
_MOST = 40
# Options that a curve has a use for, beside those of the data and their processing.
_REFUSED = (
    "classes", "cross", "cross_session", "whiten", "fold_confounds", "max_inclusion", "fdr", "learning_curve",
    "atlas", "atlas_labels", "by_region", "without_region", "fold_maps", "resume", "reports_only", "config",
    "dask", "n_jobs", "work_dir", "keep_fits", "strict", "overwrite",
)  # fmt: skip


def lags_of(text: str) -> tuple[int, ...]:
    """The lags of a text such as 0..8."""
    found = _RANGE.fullmatch(text)
    lags = tuple(range(int(found[1]), int(found[2]) + 1)) if found else ()
    if not 2 <= len(lags) <= _MOST:
        raise StudyError(
            f"--lag-trs: expected a number of volumes, or a range such as 0..8 of 2 to {_MOST} lags, got "
            f"{text!r}. Change it."
        )
    return lags


@dataclass(frozen=True)
class _AtLag:
    """What one lag makes of a comparison and method."""

    by_run: NDArray  # (F,) accuracies
    test: PermutationTest | None
    units: tuple[int, ...]  # blocks of every run


def run_lags(given: dict[str, Any], say: Callable[[str], None] = print) -> int:
    """Decode at every lag; write lags.tsv, lags.json and a page, or nothing where input cannot be used."""
    if refused := [name for name in _REFUSED if given.get(name)]:
        option = refused[0].replace("_", "-")
        raise StudyError(f"--{option} does not go with a range of --lag-trs. Decode one lag for it.")
    out = Path(given.get("out", "lag-results")).expanduser()
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise StudyError(
            f"--out {out}: expected a new or empty folder, found files there. Give another name."
        )
    own = {name: value for name, value in given.items() if name not in ("out", "quiet", "verbose", "lag_trs")}
    own = {name: tuple(value) if isinstance(value, list) else value for name, value in own.items()}
    found: dict[tuple[str, Method], list[Lag]] = {}
    lags, parts = lags_of(given["lag_trs"]), {}
    with usage_errors():
        for lag in lags:
            settings = StudySettings.of({**own, "lag_trs": lag}).resolve(say)
            methods = check_settings(settings, 1)
            samples = settings.source.load()
            if samples.kind != "volume":
                raise StudyError("--lag-trs is for time series, and maps are none. Leave it out.")
            for task in choose_tasks(settings.pairs, samples):
                for method in methods:
                    parts[task.label, method, lag] = _decoded(settings, samples, task, method)
            say(f"lag {lag}: {_mean(parts, lag)}")
    for label, method in dict.fromkeys((label, method) for label, method, _ in parts):
        found[label, method] = _with_p([(lag, parts[label, method, lag]) for lag in lags], samples)
    curves = [LagCurve(label, method, mine) for (label, method), mine in found.items()]
    _write(out, curves, samples, settings.permutations)
    say(f"Page: {out / 'index.html'}")
    return 0


def _mean(parts: dict[Any, _AtLag], lag: int) -> str:
    of = [100 * float(part.by_run.mean()) for (_, _, each), part in parts.items() if each == lag]
    return f"{span(f'{each:.1f}' for each in sorted(of))} % correct"


def _decoded(settings: StudySettings, samples: Samples, task: Task, method: Method) -> _AtLag:
    """One comparison by one method, with labels as they are shifted in these samples."""
    graph = samples.connectivity if method.uses_connectivity else None
    X, runs, blocks = samples.X[task.rows], samples.runs[task.rows], blocks_of(samples)[task.rows]
    scheme = Scheme(connectivity=graph, blocks=blocks, seed=settings.seed)
    fits = cross_validate(method, X, task.y, runs, scheme)
    test = None
    if settings.permutations and method.is_batched:
        test = permutation_test(method, X, task.y, runs, settings.permutations, scheme)
    exchange = find_exchange(task.y, runs, "block", blocks)
    return _AtLag(1 - fold_errors(fits, task.y), test, tuple(len(each) for each in exchange.of_run))


def _with_p(parts: Sequence[tuple[int, _AtLag]], samples: Samples) -> list[Lag]:
    """All lags of a comparison with p-values, alone and corrected for all lags."""
    accuracies = [float(part.by_run.mean()) for _, part in parts]
    tests = [part.test for _, part in parts if part.test is not None]
    of_all: list[float] | None = None
    if tests:
        same = len({part.units for _, part in parts}) == 1
        of_all = corrected(accuracies, [test.null for test in tests], same)
        of_all = [max(p, test.floor, float(test.pvalue)) for p, test in zip(of_all, tests, strict=True)]
    seconds = samples.provenance.get("t_r")
    return [
        Lag(
            lag,
            None if seconds is None else lag * float(seconds),
            accuracies[place],
            float(part.by_run.std(ddof=1) / np.sqrt(part.by_run.size)),
            None if part.test is None else float(part.test.pvalue),
            None if of_all is None else of_all[place],
        )
        for place, (lag, part) in enumerate(parts)
    ]


def corrected(scores: Sequence[float], nulls: Sequence[NDArray], same_blocks: bool) -> list[float]:
    """P-values of the scores of several lags, corrected for all: by the largest of every permutation.

    Where lags lost different blocks, or allow different numbers of permutations, their permutations do not
    belong together, and the p-value of each lag is multiplied by the number of lags.
    """
    together = same_blocks and len({null.size for null in nulls}) == 1
    largest = [np.max(nulls, axis=0)] * len(scores) if together else nulls
    factor = 1 if together else len(scores)
    return [
        min(1.0, factor * (1 + int((null >= score - 1e-9).sum())) / (1 + null.size))
        for score, null in zip(scores, largest, strict=True)
    ]


def _write(out: Path, curves: Sequence[LagCurve], samples: Samples, permutations: int) -> None:
    """The table, the record and the page."""
    rows = [
        {"comparison": curve.comparison, "method": curve.method.name, **lag._asdict()}
        for curve in curves for lag in curve.lags
    ]  # fmt: skip
    out.mkdir(parents=True, exist_ok=True)
    write_tsv(out / "lags.tsv", list(rows[0]), rows)
    about = {
        "description": samples.description,
        "voxels": f"{samples.X.shape[1]:,}",
        "runs": len(np.unique(samples.runs)),
        "permutations": permutations,
    }
    write_json(out / "lags.json", {**about, "lags": rows, "software": versions()})
    write_text(out / "index.html", lag_page(curves, about, samples.banner or ""))
