"""What the package promises about its speed, next to what this run measured.

Iterations are compared by their fastest, long runs by the median over rounds of ratios within a round.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from . import contenders, studies, thread_use, whole_brain

Rows = Sequence[Mapping[str, Any]]


class Target(NamedTuple):
    """A promise: the section that measures it, its value in those rows, its bound, and the value in CPU time.

    On a busy machine believe the CPU time: it counts work, and a loaded machine stretches short waits most.
    """

    section: str
    promise: str
    value: Callable[[Rows], float]
    most: float | None = None
    least: float | None = None
    cpu: Callable[[Rows], float] | None = None

    def is_met(self, value: float) -> bool:
        """Whether a value keeps the bounds."""
        return (self.most is None or value <= self.most) and (self.least is None or value >= self.least)

    def bound(self) -> str:
        """The bound in words."""
        if self.most is None and self.least is None:
            return "to be stated"
        return f"at most {self.most:g}" if self.most is not None else f"at least {self.least:g}"


def target_rows(sections: Mapping[str, Rows]) -> list[dict[str, Any]]:
    """One row per promise whose section was measured; what lacks a peer is left out."""
    rows = []
    for target in TARGETS:
        measured = sections.get(target.section, ())
        try:
            value = target.value(measured)
        except LookupError:
            continue
        rows.append(
            {
                "promise": target.promise,
                "asked": target.bound(),
                "measured": value,
                "met": target.is_met(value),
                "cpu_measured": None if target.cpu is None else target.cpu(measured),
            }
        )
    return rows


def _only(rows: Rows, **wanted: Any) -> Mapping[str, Any]:
    """The row with these values."""
    for row in rows:
        if all(row[name] == value for name, value in wanted.items()):
            return row
    raise LookupError(f"no row with {wanted}")


def _ratio(name: str, column: str = "ratio") -> Callable[[Rows], float]:
    return lambda rows: _only(rows, name=name)[column]


def _one_fits(column: str, name: str = contenders.OURS) -> Callable[[Rows], float]:
    return lambda rows: _only(rows, name=name)[column] / _only(rows, name=contenders.ONE_FIT)[column]


def _study(what: str, column: str = "seconds") -> Callable[[Rows], float]:
    return lambda rows: _only(rows, what=what)[column]


def _wide_precision(column: str) -> Callable[[Rows], float]:
    return lambda rows: _only(rows, precision="float64", neighbours=False)[column]


def _loading(column: str) -> Callable[[Rows], float]:
    return lambda rows: _only(rows, what=studies.LOAD)[column] / _only(rows, what=studies.READ)[column]


def _fitted(rows: Rows) -> float:
    """Permutations that were fitted for each that was added."""
    row = _only(rows, what=studies.ADDED)
    return row["permutations_fitted"] / row["asked"]


def _cores(where: str, column: str) -> Callable[[Rows], float]:
    """Cores in use, or threads, of the baseline for each of GAMP's."""

    def ratio(rows: Rows) -> float:
        ours, theirs = (
            _only(rows, name=name, where=where)[column] for name in (contenders.SPATIAL, contenders.BASELINE)
        )
        return theirs / ours

    return ratio


def _peer(promise: str, name: str, least: float) -> Target:
    return Target("peers", promise, _ratio(name), least=least, cpu=_ratio(name, "cpu_ratio"))


def _wide_column(rows: Rows) -> float:
    first = _only(rows, along="columns", columns=1)
    return _only(rows, along="columns", columns=96)["fastest_column_ms"] / first["fastest_column_ms"]


def _whole_brain(rows: Rows) -> float:
    usual = _only(rows, along="voxels", voxels=31_250)
    return _only(rows, along="voxels", voxels=250_000)["fastest_ms"] / usual["fastest_ms"]


def _memory(rows: Rows) -> float:
    row = _only(rows, name=contenders.OURS)
    return row["peak_mb"] / row["allowed_mb"]


def _seconds(what: str) -> Callable[[Rows], float]:
    return lambda rows: _only(rows, what=what)["seconds"]


def _brain(what: str, rows: int, name: str, column: str = "seconds") -> Callable[[Rows], float]:
    """Of maps of participants, ``rows`` of each."""

    def value(measured: Rows) -> float:
        kind = [row for row in measured if row["what"] == what and row["rows"] == rows * row["folds"]]
        return _only(kind, name=name)[column]

    return value


def _recommended(column: str) -> Callable[[Rows], float]:
    """The recommended method over GAMP with neighbours."""

    def ratio(rows: Rows) -> float:
        names = (contenders.RECOMMENDED, contenders.SPATIAL)
        ours, other = (_only(rows, name=name)[column] for name in names)
        return ours / other

    return ratio


def _brain_target(
    promise: str, what: str, rows: int, name: str, most: float, is_ratio: bool = False
) -> Target:
    column, cpu = ("ratio", "cpu_ratio") if is_ratio else ("seconds", "cpu_seconds")
    value, in_cpu = _brain(what, rows, name, column), _brain(what, rows, name, cpu)
    return Target("whole_brain", promise, value, most=most, cpu=in_cpu)


def _products(column: str) -> Callable[[Rows], float]:
    return lambda rows: _only(rows, precision="float32", what="fit_em")[column]


TARGETS = (
    Target(
        "peers",
        "all tuned folds / one liblinear fit",
        _one_fits("ratio"),
        most=1.5,
        cpu=_one_fits("cpu_ratio"),
    ),
    Target(
        "peers",
        "all tuned folds with neighbours / one liblinear fit",
        _one_fits("ratio", contenders.SPATIAL),
        most=1,
        cpu=_one_fits("cpu_ratio", contenders.SPATIAL),
    ),
    Target(
        "peers",
        "the same in processor time",
        _one_fits("cpu_ratio", contenders.SPATIAL),
        most=1.3,
        cpu=_one_fits("cpu_ratio", contenders.SPATIAL),
    ),
    _peer("skglm nested / all tuned folds", contenders.SKGLM, least=40),
    _peer("liblinear nested / all tuned folds", contenders.LIBLINEAR, least=300),
    Target(
        "limits",
        "one tuned iteration / its products, float32",
        _products("fastest_times_products"),
        most=1.3,
        cpu=_products("cpu_times_products"),
    ),
    *(
        Target("studies", f"{what}, seconds", _study(what), most=most, cpu=_study(what, "cpu_seconds"))
        for what, most in ((studies.PERMUTATIONS, 100), (studies.PAIRS, 25), (studies.COMPARISON, 10))
    ),
    Target(
        "studies",
        f"{studies.FEW_VOXELS}, processor seconds",
        _study(studies.FEW_VOXELS, "cpu_seconds"),
        most=30,
        cpu=_study(studies.FEW_VOXELS, "cpu_seconds"),
    ),
    Target(
        "studies",
        f"{studies.PERMUTATIONS}, peak memory in MB",
        _study(studies.PERMUTATIONS, "peak_mb"),
        most=2048,
    ),
    Target("studies", f"{studies.ADDED}, fitted for each that is new", _fitted, most=1),
    Target(
        "studies",
        "its bar counts permutations (1: yes)",
        _study(studies.ADDED, "bar_counts_permutations"),
        least=1,
    ),
    Target(
        "studies",
        f"{studies.LOAD} / {studies.READ}",
        _loading("seconds"),
        most=6,  # read once, and cleaned
        cpu=_loading("cpu_seconds"),
    ),
    Target(
        "studies", f"{studies.LOAD}, seconds", _study(studies.LOAD), cpu=_study(studies.LOAD, "cpu_seconds")
    ),
    *(
        Target("studies", f"{what}, peak memory in MB", _study(what, "peak_mb"))
        for what in (studies.LOAD, studies.COMPARISON)
    ),
    Target("studies", f"{studies.CLUSTER}, at once", _study(studies.CLUSTER, "at_once"), least=2),
    Target("studies", f"{studies.CLUSTER}, starts of workers", _study(studies.CLUSTER, "clusters"), most=1),
    *(
        Target(
            "threads",
            f"{said}, l1-lr-cv / gamp-sbg-lr, {where}",
            _cores(where, column),
            least=least,
        )
        for where in (thread_use.COMMAND, thread_use.DIRECT)
        # In use at least as many, but for the parts of either that are not spread over cores.
        for said, column, least in (("threads given", "threads", 1), ("cores in use", "cores", 0.8))
    ),
    Target(
        "precision",
        "GAMPClassifier, float64 / float32",
        _wide_precision("ratio"),
        most=1.6,
        cpu=_wide_precision("cpu_ratio"),
    ),
    _brain_target(
        "16 maps of 59 people: vamp-sbg / svm", whole_brain.FIT, 16, "vamp-sbg", 1.2, is_ratio=True
    ),
    _brain_target("2 maps of 59 people: vamp-sbg, seconds", whole_brain.FIT, 2, "vamp-sbg", 3),
    _brain_target("the same, 1,000 permutations, seconds", whole_brain.PERMUTE, 2, "vamp-sbg", 300),
    _brain_target("16 maps of 59 people: lda, seconds", whole_brain.FIT, 16, "lda", 30),
    Target(
        "peers",
        "all folds, vamp-sbg / gamp-sbg-lr",
        _recommended("ratio"),
        most=1,
        cpu=_recommended("cpu_ratio"),
    ),
    Target("growth", "cost per column, 96 columns / 1 column", _wide_column, most=0.2),
    Target("growth", "250,000 voxels / 31,250 voxels", _whole_brain, most=9),
    Target("memory", "peak beside X / 8 arrays of N x B", _memory, most=1),
    Target(
        "baseline",
        "l1-lr-cv / skglm nested, one core",
        _ratio(contenders.BASELINE),
        most=2,
        cpu=_ratio(contenders.BASELINE, "cpu_ratio"),
    ),
    Target("startup", "import mvpa_gamp, seconds", _seconds("import mvpa_gamp"), most=1),
    Target("startup", "haxby --help, seconds", _seconds("haxby --help"), most=2),
    Target("startup", "wait at the very first fit, seconds", _seconds("first fit, nothing compiled"), most=5),
    Target("startup", "start to page, processor seconds", _seconds("start to page"), most=5),
    Target("startup", "of these imports", _seconds("imports of start to page"), most=1.5),
)
