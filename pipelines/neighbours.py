"""What neighbours, the step and whitening do: the slice's 28 pairs, and the phantom's six or 28, by variant.

Every variant is one method with one thing changed: the step, the graph (shuffled, half of the voxels cut off,
none), noise whitening, or whitening fitted to the residuals of all runs, held-out run included, which is
wrong and shows how wrong. A row is the mean over comparisons, with standard errors over them; differences
are paired, from gamp-bg-lr as it is. The phantom also tells how well planted voxels are ranked.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mvpa_gamp.decoding.fit import Scheme, fit_tasks
from mvpa_gamp.decoding.preparation import NoiseWhitening, Prepared
from mvpa_gamp.decoding.tasks import make_tasks
from mvpa_gamp.imaging.phantom.head import HAXBY_SHAPE
from mvpa_gamp.imaging.phantom.source import PhantomSource
from mvpa_gamp.methods import METHODS
from mvpa_gamp.results.cells import measures_of
from mvpa_gamp.study.comparisons import blocks_of

from .command import Options, parse
from .data_sets import PHANTOM_LABEL, DataSet, half_slice, phantom
from .output import write_record, write_table
from .trial_store import TrialStore

NAME = "neighbours"
REFERENCE = "gamp-bg-lr"
SMALL = (12, 14, 10)  # of a quick phantom
NUMBERS = ("error_percent", "voxels", "consistency_percent", "average_precision")


@dataclass(frozen=True)
class Variant:
    """A method with one thing changed; the name is that of its row."""

    name: str
    method: str
    step: float | None = None
    graph: str = "faces"
    whitened: str = ""  # "training runs", or "all runs"


AS_THEY_ARE = (Variant("gamp-bg-lr", "gamp-bg-lr"), Variant("gamp-sbg-lr", "gamp-sbg-lr"))
STEPS = (
    Variant("gamp-bg-lr, step 0.2", "gamp-bg-lr", 0.2),
    Variant("gamp-sbg-lr, step 0.1", "gamp-sbg-lr", 0.1),
    Variant("gamp-sbg-lr, step 0.3", "gamp-sbg-lr", 0.3),
)
GRAPHS = (
    Variant("gamp-sbg-lr, voxels shuffled", "gamp-sbg-lr", graph="shuffled"),
    Variant("gamp-sbg-lr, half cut off", "gamp-sbg-lr", graph="half"),
    Variant("gamp-sbg-lr, empty graph", "gamp-sbg-lr", graph="empty"),
)
WHITENED = tuple(
    replace(each, name=f"{each.name}, whitened", whitened="training runs") for each in AS_THEY_ARE
)
TRAP = (Variant("gamp-sbg-lr, whitened by all runs", "gamp-sbg-lr", whitened="all runs"),)


@dataclass(frozen=True)
class AllRuns:
    """The trap: a preparation fitted once to the residuals of every run, also for the fold that tests it."""

    inner: NoiseWhitening

    @property
    def shared(self) -> bool:
        """All folds have the same X."""
        return True

    @property
    def mixes(self) -> bool:
        """Columns are mixtures of voxels."""
        return True

    def groups(self, X: Any, train: NDArray, rows: Any = None) -> Iterator[Prepared]:
        """One X for all folds."""
        everything = np.ones((train.shape[0], 1), dtype=bool)
        yield next(self.inner.groups(X, everything, rows))._replace(folds=np.arange(train.shape[1]))


def changed_graph(graph: Any, how: str, seed: int) -> Any:
    """The adjacency with its voxels shuffled, half of them cut off from all others, or without edges."""
    rng, n = np.random.default_rng([seed, 7]), graph.shape[0]
    graph = sparse.csr_array(graph)
    if how == "shuffled":
        order = rng.permutation(n)
        return graph[order][:, order]
    if how == "half":
        kept = sparse.diags_array((rng.permutation(n) % 2).astype(float))
        return sparse.csr_array(kept @ graph @ kept)
    return sparse.csr_array(graph.shape, dtype=graph.dtype) if how == "empty" else graph


def cells_of(data: DataSet, variant: Variant, seed: int) -> list[dict[str, Any]]:
    """A variant on all comparisons."""
    method: Any = METHODS[variant.method]
    if variant.step:
        method = replace(method, settings=replace(method.settings, damping=variant.step))
    samples = data.samples
    scheme = Scheme(connectivity=changed_graph(samples.connectivity, variant.graph, seed))
    if variant.whitened:
        whitening = NoiseWhitening(blocks_of(samples))
        preparation: Any = whitening if variant.whitened == "training runs" else AllRuns(whitening)
        scheme = replace(scheme, preparation=preparation)
    rows = []
    for tasks in [data.tasks] if variant.whitened else [[task] for task in data.tasks]:
        found = fit_tasks([method], samples.X, tasks, samples.runs, scheme)
        rows += [_cell(data, task, found[method.name, task.name]) for task in tasks]
    about = {"set": data.word, "variant": variant.name}
    return [{**about, **row} for row in rows]


def _cell(data: DataSet, task: Any, fits: Any) -> dict[str, Any]:
    planted = data.samples.truth
    truth = None if planted is None else planted.for_pair(task.positive, task.negative)
    measured = measures_of(fits, task.y, truth)
    return {"comparison": task.label, **{name: measured.get(name) for name in NUMBERS}}


def summary(cells: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row per set and variant."""
    out = []
    for word, variant in dict.fromkeys((each["set"], each["variant"]) for each in cells):
        mine, plain = (
            {each["comparison"]: each for each in cells if (each["set"], each["variant"]) == (word, name)}
            for name in (variant, REFERENCE)
        )
        errors = np.array([each["error_percent"] for each in mine.values()])
        difference = errors - [plain[name]["error_percent"] for name in mine] if plain else errors * np.nan
        row = {"set": word, "variant": variant, "comparisons": len(mine)}
        row |= {name: _mean([each[name] for each in mine.values()]) for name in NUMBERS}
        row |= {"error_se_percent": _spread(errors), "difference_percent": float(difference.mean()),
                "difference_se_percent": _spread(difference)}  # fmt: skip
        out.append(row)
    return out


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _spread(values: NDArray) -> float | None:
    return float(values.std(ddof=1) / np.sqrt(values.size)) if values.size > 1 else None


def pairs_of(data: DataSet) -> DataSet:
    """The same samples, all pairs of categories instead of the paper's six."""
    names = sorted(set(data.samples.conditions))
    pairs = [(a, b) for k, a in enumerate(names) for b in names[k + 1 :]]
    return replace(data, word=f"{data.word}, all pairs", tasks=make_tasks(data.samples.conditions, pairs))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--slice-only", action="store_true", help="leave out the phantoms")


def plan(options: Options, slice_only: bool = False) -> list[tuple[Any, tuple[Variant, ...]]]:
    """Functions that load a data set, and the variants tried there."""
    if not options.full:
        return [(lambda: phantom(SMALL), (*AS_THEY_ARE, *STEPS[:1], *GRAPHS[:1], *WHITENED, *TRAP))]
    of_slice = (half_slice, (*AS_THEY_ARE, *STEPS, *GRAPHS, *WHITENED, *TRAP))
    if slice_only:
        return [of_slice]
    return [
        of_slice,
        (phantom, (*AS_THEY_ARE, *WHITENED)),
        (lambda: pairs_of(phantom()), AS_THEY_ARE),
        (another_phantom, (*AS_THEY_ARE, *STEPS)),
    ]


def another_phantom() -> DataSet:
    """Noise, patches and labels of another seed, all pairs."""
    samples = PhantomSource(phantom_shape=HAXBY_SHAPE, seed=2).load()
    return pairs_of(DataSet("phantom, another seed", PHANTOM_LABEL, samples, ()))


def run(options: Options, slice_only: bool = False) -> dict[str, Any]:
    """Fit, write table, cells and record, and return the record."""
    cells, stores = [], []
    for number, (load, variants) in enumerate(plan(options, slice_only)):
        data = load()
        if data is None:
            print("the slice was not found in the folder of MVPA_GAMP_DATA, left out")
            continue
        store = TrialStore(options.out, f"{NAME}_{number}", {"seed": options.seed, "full": options.full})
        named = {variant.name: variant for variant in variants}

        def compute(name: str, data: DataSet = data, named: Any = named) -> list[dict[str, Any]]:
            return cells_of(data, named[name], options.seed)

        cells += store.rows([(name,) for name in named], compute)
        stores.append(store)
    rows = summary(cells)
    write_table(options.out / f"{NAME}.csv", rows)
    write_table(options.out / f"{NAME}_pairs.csv", cells)
    said = (f"[{r['set']}] {r['variant']} {r['error_percent']:.1f} %" for r in rows)
    record = {"headline": "; ".join(said), "rows": rows}
    seconds = sum(store.seconds for store in stores)
    done = write_record(options.out / f"{NAME}.json", record, pipeline=NAME, options=options, seconds=seconds)
    for store in stores:
        store.finish()
    return done


def main(argv: Sequence[str] | None = None) -> int:
    options, own = parse(__doc__ or "", argv, add_arguments, name=NAME)
    print(run(options, own.slice_only)["headline"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
