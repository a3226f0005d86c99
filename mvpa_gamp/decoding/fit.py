"""Fits of cross-validation: pairs of classes, folds and refits are columns of every X that folds prepare.

What is fitted inside folds before a method is (``Preparation``) decides which columns share an X: all of them
where X stays as it is, those of one fold where every fold whitens X or regresses covariates out by itself.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..coupling import Pairs, class_pairs
from ..methods.fold_fits import FoldFits, Method
from .folds import Folds, leave_one_run_out
from .preparation import FittedPreparation, Preparation, Prepared, Unchanged, folds_of_rows
from .tasks import Task, check_signs

Key = tuple[str, str]  # names of method and comparison

_CHUNK_BYTES = 1 << 30
_ARRAYS = 16  # of the size of the weights, and of the scores, that a solve holds at a time
_SMALLEST_POWER = 1e-60  # of a decision: the pattern of a smaller one is beyond float32


@dataclass(frozen=True, eq=False)
class Scheme:
    """How a comparison is cross-validated, and what permutations of it exchange.

    Parameters
    ----------
    folds
        Of all M rows of X; None leaves one run out.
    rows
        (m,) rows of X that belong to the comparison, None for all. Labels and ``blocks`` are of these; the
        other rows, of other conditions, help to fit the preparation.
    preparation
        What is fitted to the training rows of a fold and changes X: ``NoiseWhitening``, ``FoldConfounds``;
        None for nothing.
    connectivity
        (N, N) adjacency: which features are neighbours, for methods that ask for it.
    exchange, blocks
        Permutations exchange the rows of a ``block`` as a whole, or each ``"sample"``. ``blocks`` (m,) names
        the block of each row; without it a block is a stretch of rows of one label and run.
    seed
        Of everything drawn.
    """

    folds: Folds | None = None
    rows: Any = None
    preparation: Preparation = field(default_factory=Unchanged)
    connectivity: Any = None
    exchange: str = "block"
    blocks: Any = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.preparation is None:
            object.__setattr__(self, "preparation", Unchanged())

    @property
    def exchanged(self) -> dict[str, Any]:
        """The arguments of ``find_exchange`` and of what draws from it."""
        return {"exchange": self.exchange, "blocks": self.blocks}

    def folds_of(self, runs: NDArray) -> Folds:
        """The folds of all M rows."""
        return leave_one_run_out(runs) if self.folds is None else self.folds

    def rows_of(self, runs: NDArray) -> NDArray:
        """Numbers (m,) of the rows of the comparison."""
        return np.arange(len(runs)) if self.rows is None else np.asarray(self.rows)

    def prepared(self, X: Any, runs: NDArray) -> tuple[Any, NDArray]:
        """Rows of the comparison as all rows prepare them, and their runs: where nothing is held out."""
        rows, everything = self.rows_of(runs), np.ones((len(runs), 1), dtype=bool)
        return next(self.preparation.groups(X, everything, rows)).X, runs[rows]


def joins_classes(method: Method, n_pairs: int) -> bool:
    """Whether a method fits the classes of several pairs together."""
    return n_pairs > 1 and bool(getattr(method, "joins_classes", False))


class Columns(NamedTuple):
    """B columns that one method is to be fitted to, on some rows of a study."""

    method: Method
    rows: NDArray  # (m,) of the study
    signs: NDArray  # (m, B) label in -1/+1 of the rows that train a column, 0 elsewhere
    fold: NDArray  # (B,) whose training rows, a column of those of the study, prepare X
    n_pairs: int = 1  # of classes that may be fitted together: B counts folds within pairs within vectors

    def solved(self, columns: NDArray, X: Any, runs: NDArray, n_jobs: int, connectivity: Any) -> FoldFits:
        """The fits of some columns, those of some folds, to X (m, N)."""
        signs = self.signs if columns.size == self.fold.size else self.signs[:, columns]
        if joins_classes(self.method, self.n_pairs):
            n_folds = np.unique(self.fold[columns]).size
            return solve_classes(self.method, X, signs, runs, self.n_pairs, n_folds, n_jobs, connectivity)
        return solve_columns(self.method, X, signs, runs, n_jobs, connectivity)


class Solved(NamedTuple):
    """Those of the columns asked for that share an X, fitted."""

    place: int  # among what was asked for
    columns: NDArray  # (b,) numbers of its columns
    fits: FoldFits  # of columns of the prepared X
    prepared: Prepared  # the rows asked for
    seconds: float  # of the fit, and its share of the time for preparing X

    def of_voxels(self, signs: NDArray) -> FoldFits:
        """The fits with weights and patterns of voxels, judged once more, and the time of the clock."""
        fits, fitted = self.fits.judged(signs[:, self.columns]), self.prepared.fitted
        coef = fitted.back(fits.coef)
        return replace(
            fits,
            coef=coef,
            coef_std=None if fitted.mixes else fits.coef_std,
            pattern=haufe_pattern(self.prepared.voxels, coef, signs[:, self.columns] != 0),
            seconds=self.seconds,
        )


def solve(
    asked: Sequence[Columns], X: Any, runs: NDArray, train: NDArray, scheme: Scheme, rows: Any = None,
    n_jobs: int = 1,
) -> Iterator[Solved]:  # fmt: skip
    """Fit all columns, one prepared X after the other; each serves everything that is asked for.

    ``train`` (M, F) are the rows that may prepare X for each fold. ``rows`` are those to be prepared, at
    least those asked for: with the same ones every call has the same digits.
    """
    X = X if sparse.issparse(X) else np.asarray(X)
    needed = np.unique(np.concatenate([each.rows for each in asked])) if rows is None else np.asarray(rows)
    began = time.perf_counter()
    for group in scheme.preparation.groups(X, train, needed):
        mine = [np.flatnonzero(np.isin(each.fold, group.folds)) for each in asked]
        share = (time.perf_counter() - began) / max(1, sum(columns.size > 0 for columns in mine))
        for place, (each, columns) in enumerate(zip(asked, mine, strict=True)):
            if columns.size:
                own = group.at(np.searchsorted(needed, each.rows))
                began = time.perf_counter()
                fits = each.solved(columns, own.X, runs[each.rows], n_jobs, scheme.connectivity)
                yield Solved(place, columns, fits, own, share + time.perf_counter() - began)
        began = time.perf_counter()


def fit_columns(
    asked: Sequence[Columns], X: Any, runs: NDArray, train: NDArray, scheme: Scheme, n_jobs: int = 1
) -> list[FoldFits]:
    """The fits of everything that is asked for, with weights and patterns of voxels."""
    parts: list[list[tuple[NDArray, FoldFits]]] = [[] for _ in asked]
    for each in solve(asked, X, runs, train, scheme, n_jobs=n_jobs):
        parts[each.place].append((each.columns, each.of_voxels(asked[each.place].signs)))
    return [_in_order(part) for part in parts]


def _in_order(parts: Sequence[tuple[NDArray, FoldFits]]) -> FoldFits:
    """The columns of all parts, in the order in which they were asked for."""
    columns, joined = np.concatenate([columns for columns, _ in parts]), FoldFits.join([f for _, f in parts])
    return joined if (np.diff(columns) > 0).all() else joined.take(np.argsort(columns))


def with_refit(train: NDArray) -> NDArray:
    """Training rows (M, F + 1) of the folds and of the refit on all rows."""
    return np.hstack([train, np.ones((len(train), 1), dtype=bool)])


class Refits(NamedTuple):
    """The refits of all pairs of classes as they were fitted, for answers about new rows."""

    fitted: FittedPreparation
    fits: FoldFits  # one column per pair, of columns of the prepared X
    center: NDArray  # (N,) mean of the prepared training rows


class PairFits(NamedTuple):
    """The fits of all pairs of classes, each with its folds and refit, and the refits once more."""

    fits: tuple[FoldFits, ...]
    refits: Refits


def fit_pairs(
    method: Method,
    X: Any,
    codes: NDArray,
    runs: NDArray,
    scheme: Scheme | None = None,
    *,
    n_classes: int = 0,
    n_jobs: int = 1,
) -> PairFits:
    """Fit every pair of the classes 0..K-1 in ``codes`` (M,) on every fold and on all rows, a record each.

    A method with ``joins_classes`` fits three or more classes together: pairs then share their inclusions.
    The P (F + 1) columns go to the method in as few calls as memory (about 1 GiB of work space) and
    ``n_jobs`` processes ask for; columns do not influence one another. Rows with a code of -1 train no pair.
    Decisions and probabilities are of all M rows, those of other classes included; positive decisions speak
    for the first class of the pair.
    """
    scheme, runs = scheme or Scheme(), np.asarray(runs)
    folds = scheme.folds_of(runs)
    pairs, train = class_pairs(n_classes or int(codes.max()) + 1), with_refit(folds.train)
    last, every = train.shape[1] - 1, np.arange(len(codes))
    fold = np.tile(np.arange(last + 1), len(pairs))
    asked = Columns(method, every, pair_columns(codes, pairs, train), fold, len(pairs))
    parts = []
    for each in solve([asked], X, runs, train, scheme, n_jobs=n_jobs):
        parts.append((each.columns, each.of_voxels(asked.signs)))
        if (refit := fold[each.columns] == last).any():
            own = each.prepared.X
            center = np.asarray(own.mean(axis=0, dtype=float)).astype(own.dtype)
            refits = Refits(each.prepared.fitted, each.fits.take(np.flatnonzero(refit)), center)
    joined = _in_order(parts)
    known: dict[str, Any] = {
        "held_out": folds.held_out,
        "tested": folds.tested,
        "seconds": joined.seconds / len(pairs),
    }
    own_columns = (slice(at, at + last + 1) for at in range(0, fold.size, last + 1))
    return PairFits(tuple(replace(joined.take(columns), **known) for columns in own_columns), refits)


def pair_columns(codes: NDArray, pairs: Pairs, train: NDArray) -> NDArray:
    """Labels (M, P F) of the rows that train a pair on a fold, fold by fold within a pair.

    ``train`` (M, F) are the training rows of the folds. Labels are +1 for the first class of a pair, -1 for
    the second and 0 on rows of others or held out.
    """
    labels = np.stack([(codes == i).astype(np.int8) - (codes == j) for i, j in pairs], axis=1)
    return (labels[:, :, None] * train[:, None, :]).reshape(len(codes), -1)


def fit_tasks(
    methods: Sequence[Method],
    X: Any,
    tasks: Sequence[Task],
    runs: Any,
    scheme: Scheme | None = None,
    *,
    every_fold: bool = False,
    n_jobs: int = 1,
) -> dict[Key, FoldFits]:
    """Fit every method to every comparison, on X as each fold's own training rows prepare it.

    X (M, N) and ``runs`` (M,) are those of the whole study, as are the folds of the ``scheme``; a comparison
    goes without the folds that hold out none of its rows, unless ``every_fold`` is asked for. The last column
    of each record is the refit, prepared by all rows. Records are found by the names of method and task.

    ``coef`` is mapped back to voxels and ``pattern`` is that of voxels. Where columns are mixtures of voxels
    (whitening), ``support`` and ``inclusion`` are those of the mixtures, and ``coef_std`` is None: standard
    deviations do not map back without a matrix of voxels by voxels.

    Parameters
    ----------
    methods
        Some of ``METHODS``.
    X
        Samples (M, N).
    tasks
        The comparisons.
    runs
        The run (M,) of every sample.
    scheme
        Folds, rows, what folds do to X, and what is exchanged; None: leave one run out.
    every_fold
        Whether folds that hold out no row of a comparison are kept.
    n_jobs
        Processes.

    Returns
    -------
    dict
        ``FoldFits`` by the names of method and task.

    Examples
    --------
    >>> import numpy as np
    >>> from mvpa_gamp.decoding import FoldConfounds, Scheme, fit_tasks, fold_errors, make_tasks
    >>> from mvpa_gamp.methods import METHODS
    >>> shown, runs = np.tile(np.repeat(["cat", "face"], 5), 4), np.repeat(np.arange(4), 10)
    >>> slow = 1.0 * (shown == "face")[:, None] + 0.1 * np.random.default_rng(1).standard_normal((40, 1))
    >>> X = np.random.default_rng(0).standard_normal((40, 20)) + 5 * slow
    >>> tasks = make_tasks(shown, [("face", "cat")])
    >>> found = fit_tasks([METHODS["gamp-bg-lr"]], X, tasks, runs, Scheme(preparation=FoldConfounds(slow)))
    >>> bool(fold_errors(found["gamp-bg-lr", "faceMinusCat"], tasks[0].y).mean() > 0.3)
    True
    """
    scheme, runs = scheme or Scheme(), np.asarray(runs)
    folds = scheme.folds_of(runs)
    train = with_refit(folds.train)
    asked, records = [], {}
    for task in tasks:
        own, mine = folds_of_rows(folds, task.rows, every_fold)
        fold = np.append(np.flatnonzero(mine), train.shape[1] - 1)
        signs = task.y.astype(np.int8)[:, None] * train[np.ix_(task.rows, fold)]
        for method in methods:
            asked.append(Columns(method, task.rows, signs, fold))
            records[method.name, task.name] = own
    found = fit_columns(asked, X, runs, train, scheme, n_jobs)
    return {
        key: replace(fits, held_out=own.held_out, tested=own.tested)
        for (key, own), fits in zip(records.items(), found, strict=True)
    }


def cross_validate(method: Method, X: Any, y: Any, runs: Any, scheme: Scheme | None = None) -> FoldFits:
    """Fit ``method`` once per fold and once on all rows; folds leave one run out unless given.

    X is (M, N), runs (M,), y (M,) in -1/+1, or (m,) of the ``rows`` of the scheme. The F folds and the refit
    are F + 1 columns of one call of ``fit_folds`` (one each where every fold prepares X); columns do not
    influence one another, so labels of a run never reach the fold that holds it out.

    Parameters
    ----------
    method
        One of ``METHODS``.
    X
        Samples (M, N).
    y
        Labels (M,) in -1/+1.
    runs
        The run (M,) of every sample.
    scheme
        Folds, rows, what folds do to X, and what is exchanged; None: leave one run out.

    Returns
    -------
    FoldFits
        A column per fold and a last one for the refit; decisions (M, F + 1).

    Examples
    --------
    >>> import numpy as np
    >>> from mvpa_gamp.decoding import cross_validate
    >>> from mvpa_gamp.methods import METHODS
    >>> runs, y = np.repeat(np.arange(3), 4), np.tile([1.0, 1.0, -1.0, -1.0], 3)
    >>> fits = cross_validate(METHODS["gamp-bg-lr"], y[:, None] * [[1.0, 0.1]], y, runs)
    >>> fits.coef.shape, fits.held_out.tolist()
    ((2, 4), [0, 1, 2])
    """
    scheme, runs, labels = scheme or Scheme(), np.asarray(runs), np.asarray(y)
    rows = np.arange(len(scheme.folds_of(runs).train)) if scheme.rows is None else scheme.rows_of(runs)
    if labels.shape != rows.shape:
        raise ValueError(
            f"y must have one label per row ({len(rows)} rows), got shape {labels.shape}. "
            "Cross-validation takes one comparison at a time."
        )
    check_signs(labels)
    task = Task("first", "second", rows, labels.astype(np.float64))
    return fit_tasks([method], X, [task], runs, scheme, every_fold=scheme.rows is None)[
        method.name, task.name
    ]


def columns_at_once(X: Any) -> int:
    """How many columns a solve may take for about 1 GiB of work space."""
    n_rows, n_features = X.shape
    return max(16, _CHUNK_BYTES // (_ARRAYS * (X.dtype.itemsize * n_features + 8 * n_rows)))


def solve_columns(
    method: Method, X: Any, signs: NDArray, runs: NDArray, n_jobs: int = 1, connectivity: Any = None
) -> FoldFits:
    """The fits of all columns of ``signs`` (M, B), labels -1/+1 or 0 on rows that do not train.

    Chunk by chunk, or in ``n_jobs`` processes.
    """
    labels = signs.astype(np.float64), signs != 0
    graph = graph_for(method, connectivity)
    return _in_chunks(method.fit_folds, X, labels, runs, graph, columns_at_once(X), n_jobs)


def solve_classes(
    method: Any, X: Any, signs: NDArray, runs: NDArray, n_pairs: int, n_folds: int, n_jobs: int = 1,
    connectivity: Any = None,
) -> FoldFits:  # fmt: skip
    """``solve_columns`` where all pairs of a fold are one fit.

    Columns are ``n_folds`` folds within ``n_pairs`` pairs, in the order of ``class_pairs``, within label
    vectors.
    """
    n_others = (math.isqrt(8 * n_pairs + 1) - 1) // 2  # the first class is in so many pairs, which come first
    by_pair = signs.reshape(len(signs), -1, n_pairs, n_folds)[:, :, :n_others]
    codes = np.where((by_pair < 0).any(axis=2), by_pair.argmin(axis=2) + 1, 0).reshape(len(signs), -1)
    labels = codes, (by_pair != 0).any(axis=2).reshape(codes.shape)
    most, graph = max(1, columns_at_once(X) // n_pairs), graph_for(method, connectivity)
    fits = _in_chunks(method.fit_classes, X, labels, runs, graph, most, n_jobs)
    order = np.arange(signs.shape[1]).reshape(-1, n_folds, n_pairs)  # pairs within folds, as they were fitted
    return fits.take(order.transpose(0, 2, 1).ravel())


def _in_chunks(
    fit: Callable[..., FoldFits], X: Any, labels: tuple[NDArray, NDArray], runs: NDArray,
    graph: dict[str, Any], most: int, n_jobs: int,
) -> FoldFits:  # fmt: skip
    """``fit`` of all columns of labels and training rows (M, B), at most so many at a time."""
    n_columns = labels[0].shape[1]
    if not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise ValueError(f"n_jobs must be 1 or more processes, or -1 for one per core, got {n_jobs!r}.")
    if n_jobs == 1:
        chunks = [slice(at, at + most) for at in range(0, n_columns, most)]
        return FoldFits.join([fit(X, *(each[:, c] for each in labels), runs, **graph) for c in chunks])
    from joblib import Parallel, delayed, effective_n_jobs

    workers = min(effective_n_jobs(n_jobs), n_columns)
    parts = np.array_split(np.arange(n_columns), max(workers, -(-n_columns // most)))
    jobs = (delayed(fit)(X, *(each[:, part] for each in labels), runs, **graph) for part in parts)
    return FoldFits.join(list(Parallel(n_jobs=workers)(jobs)))


def graph_for(method: Method, connectivity: Any) -> dict[str, Any]:
    """The argument of ``fit_folds`` that tells a method which features are neighbours, if it asks for it."""
    return {"connectivity": connectivity} if getattr(method, "uses_connectivity", False) else {}


def haufe_pattern(X: Any, coef: NDArray, train: NDArray | None = None) -> NDArray:
    """Covariance of each voxel with the decision d = Xw, divided by its variance: cov(X) w / var(Xw).

    X is (M, N), coef (N,) or (N, B); the result has coef's shape. ``train`` (M, B) bool are the rows over
    which each column's covariance is taken, None all of them. No N x N matrix is formed: with the centred
    decision c, cov(X) w = X'c / (M - 1). A decision that never changes, or
    by less than 1e-30, has no pattern: zeros.

    Parameters
    ----------
    X
        Samples (M, N).
    coef
        Weights (N,) or (N, B).
    train
        Rows (M, B) bool of each column; None: all.

    Returns
    -------
    ndarray
        The pattern, of the shape of ``coef``.

    Examples
    --------
    >>> import numpy as np
    >>> from mvpa_gamp.decoding import haufe_pattern
    >>> X = np.array([[1.0, 2.0], [-1.0, -2.0], [1.0, 2.0], [-1.0, -2.0]])
    >>> haufe_pattern(X, np.array([1.0, 0.0]))  # the second voxel follows the first one, twice as large
    array([1., 2.])
    """
    single = coef.ndim == 1
    decision = np.asarray(X @ (coef[:, None] if single else coef), dtype=np.float64)
    rows = np.ones(decision.shape, dtype=bool) if train is None else train
    decision = np.where(rows, decision, 0.0)
    centred = np.where(rows, decision - decision.sum(axis=0) / rows.sum(axis=0), 0.0)
    power = np.einsum("mb,mb->b", centred, centred)
    flat = power <= np.finfo(np.float32).eps ** 2 * np.einsum("mb,mb->b", decision, decision)
    flat |= power < _SMALLEST_POWER
    scaled = np.where(flat, 0.0, centred / np.where(flat, 1.0, power))
    pattern = np.asarray(scaled.T.astype(np.result_type(X.dtype, np.float32)) @ X).T
    return pattern[:, 0] if single else pattern
