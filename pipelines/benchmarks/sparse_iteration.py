"""One GAMP iteration on a sparse matrix against its four bare products, and the peak memory of the process.

The set is generated: word frequencies by a power law, rows of norm one, float32; with ``--full`` it has the
size of RCV1 (677,399 x 47,236, 0.16 % non-zero). The products are scipy's X w, X' s and the two of the
squared values, timed between any two iterations, so that both see the same load.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter, process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.gamp import Bernoulli, Design, Gaussian, Logistic, Probit, SolverSettings, fit_em
from mvpa_gamp.gamp.scalar_steps import TrainingElements
from mvpa_gamp.gamp.sparse import SparseBlock

from ..command import Options, parse
from ..output import write_record
from ..text_data import RCV1_DENSITY, RCV1_FEATURES, RCV1_ROWS, generated_documents, generated_labels
from .machine import machine
from .memory_worker import peak
from .table import as_text

NAME = "benchmarks.sparse_iteration"
LIMITS = {"times_products": 1.6, "peak_gb": 6.0}
LIKELIHOODS = {"BG-PR": Probit(2.9), "BG-LR": Logistic()}
_QUICK_ROWS = 100_000
_RATE, _SCORE_VARIANCE = 0.3, 15.0  # the start of the text pipeline
_PARTS = {
    "adjoint": (SparseBlock, "adjoint_pair"),
    "forward": (SparseBlock, "forward_pair"),
    "likelihood": (TrainingElements, "step"),
}


class _Clock:
    """Wall and CPU seconds of iterations and, in turns with them, of the products."""

    def __init__(self, products: Callable[[], Any]) -> None:
        self._products = products
        self.iterations: list[tuple[float, float]] = []
        self.products: list[tuple[float, float]] = []
        self._began = _now()

    def __call__(self, progress: Any) -> None:
        self.iterations.append(_since(self._began))
        began = _now()
        self._products()
        self.products.append(_since(began))
        self._began = _now()


def _now() -> tuple[float, float]:
    return perf_counter(), process_time()


def _since(began: tuple[float, float]) -> tuple[float, float]:
    wall, cpu = _now()
    return wall - began[0], cpu - began[1]


def scipy_products(X: Any, rng: np.random.Generator) -> Callable[[], Any]:
    """The four products, one vector each, in the precision of X; the squares share X's index arrays."""
    squares = type(X)((np.square(X.data), X.indices, X.indptr), shape=X.shape)
    w, s = (rng.random(size).astype(X.dtype) for size in X.shape[::-1])
    return lambda: (X @ w, squares @ w, X.T @ s, squares.T @ s)


@contextmanager
def timed_parts(seconds: dict[str, float]) -> Iterator[None]:
    """Add the wall time of the products and of the likelihood to ``seconds`` while inside."""
    originals = {name: getattr(owner, method) for name, (owner, method) in _PARTS.items()}

    def timed(name: str) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            began = perf_counter()
            result = originals[name](*given)
            seconds[name] = seconds.get(name, 0.0) + perf_counter() - began
            return result

        return call

    for name, (owner, method) in _PARTS.items():
        setattr(owner, method, timed(name))
    try:
        yield
    finally:
        for name, (owner, method) in _PARTS.items():
            setattr(owner, method, originals[name])


def measure(
    X: Any, y: NDArray, likelihood: Any, iterations: int, products: Callable[[], Any]
) -> dict[str, Any]:
    """Median seconds of an iteration with tuning, of the products, their ratio, and where the rest goes."""
    design = Design(X)
    prior = Bernoulli(_RATE, Gaussian(0.0, _SCORE_VARIANCE / _RATE))
    clock, parts = _Clock(products), {}
    settings = SolverSettings(intercept=True, max_iter=iterations + 1, patience=iterations + 1)
    with timed_parts(parts):
        fit_em(design, y, likelihood, prior, settings, callback=clock)
    # The first iteration holds the start, and the last what follows the loop is not in it.
    ran, bare = np.array(clock.iterations[1:]), np.array(clock.products[1:])
    seconds = float(np.median(ran[:, 0]))
    shares = {f"{name}_share": value / (len(ran) + 2) / ran[:, 0].mean() for name, value in parts.items()}
    return {
        "iteration_ms": 1e3 * seconds,
        "products_ms": 1e3 * float(np.median(bare[:, 0])),
        "times_products": float(np.median(ran[:, 0] / bare[:, 0])),
        "slowest_times_products": float(np.max(ran[:, 0]) / np.median(bare[:, 0])),
        "cpu_times_products": float(np.median(ran[:, 1] / bare[:, 1])),
        **shares,
        "other_share": 1.0 - sum(shares.values()),
        "iterations": len(ran),
    }


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rows", type=int, help=f"documents (default: {_QUICK_ROWS:,}; full {RCV1_ROWS:,})")
    parser.add_argument("--features", type=int, default=RCV1_FEATURES, help="words (default: %(default)s)")
    parser.add_argument("--density", type=float, default=RCV1_DENSITY, help="share of non-zero values")
    parser.add_argument("--iterations", type=int, default=30, help="that are timed (default: %(default)s)")


def run(options: Options, own: argparse.Namespace) -> dict[str, Any]:
    """Generate the set, measure every likelihood, return the record."""
    rng = np.random.default_rng(options.seed)
    n_rows = own.rows or (RCV1_ROWS if options.full else _QUICK_ROWS)
    X = generated_documents(n_rows, own.features, own.density, rng)
    y = generated_labels(X, rng)
    products = scipy_products(X, rng)
    rows = []
    for name, likelihood in LIKELIHOODS.items():
        measure(X, y, likelihood, 1, products)  # loads and compiles
        rows.append({"model": name, **measure(X, y, likelihood, own.iterations, products)})
    size = {"rows": n_rows, "features": own.features, "nonzeros": int(X.nnz), "precision": str(X.dtype)}
    return {"data": "generated", **size, "peak_gb": peak() / 1e9, "limits": LIMITS, "models": rows}


def main(argv: Sequence[str] | None = None) -> None:
    began = perf_counter()
    options, own = parse(__doc__ or "", argv, _arguments, name=NAME)
    record = run(options, own) | {"machine": machine()}
    print(f"generated set: {record['rows']:,} x {record['features']:,}, {record['nonzeros']:,} non-zeros")
    print(as_text(record["models"]))
    print(f"peak memory {record['peak_gb']:.2f} GB (limit {LIMITS['peak_gb']:g} GB)")
    seconds = perf_counter() - began
    write_record(
        options.out / "sparse_iteration.json",
        record,
        pipeline=NAME,
        options=options,
        seconds=seconds,
        own=own,
    )


if __name__ == "__main__":
    main(sys.argv[1:])
