"""Is the decoding better than chance? Labels shuffled within runs, the whole cross-validation repeated.

One engine for K classes, two or more. Shuffled labels, pairs of classes and folds are columns of one X, so
a chunk of permutations is one ``fit_folds`` (one per fold where folds prepare X). All label vectors are known
before any fit, so chunks may be computed in any order, anywhere, and joined. Where no more than n other label
vectors exist, each is used once and the p-value is exact; else n are drawn:

    plan = plan_permutations(y, runs, X.shape[1], n=1000)
    parts = [null_statistics(method, X, plan.labels[:, chunk], runs) for chunk in plan.chunks]
    test = plan.joined(method.name, parts)
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..methods.fold_fits import Method, check_rows
from .exchange import find_exchange
from .fit import Scheme
from .null import LabelVectors, NullStatistics, Score, joint_null

# Numbers that one array of a chunk may hold: about 120 columns at 31,398 voxels.
_NUMBERS_AT_ONCE = 4_000_000
_ARRAYS_OF_ROWS = 8  # (M, B) float64 arrays weigh this much against the (N, B) float32 ones
# Permutations of a chunk, which divide the numbers that people ask for: the last chunk is rarely filled up.
# At 577 voxels a permutation in a chunk of 50 takes 5 % more processor time than in one of 100, of 20 25 %.
_CHUNK_SIZES = (1, 2, 5, 10, 20, 50)
_INCLUSION_TIE = 1e-6  # a tie counts against the data, also where rounding hides it: means of float32


@dataclass(frozen=True)
class PermutationTest:
    """The observed score and the scores of n permutations of the labels, or of all where no more exist.

    Label vectors with equal scores are ordered by ``auc``: the mean over folds and pairs of classes of the
    area under the ROC curve of held-out decisions. Without it (NaN, None) a tie counts against the data.
    ``n_distinct`` is the number of label vectors that permutations can reach, the observed one included;
    ``floor`` is the p-value that no number of permutations gets below; ``caution`` is empty or says what
    limits the p-value.
    """

    method: str
    score: float  # mean held-out accuracy over folds, or the score asked for
    null: NDArray  # (n,) the same of every permutation
    n_distinct: int
    seed: int
    exchange: str  # what was exchanged: "block" or "sample"
    caution: str = ""
    n_failed: int = 0  # fits, of observed or permuted labels, that did not meet their stopping rule
    max_inclusion: NDArray | None = None  # (n,)
    floor: float = 0.0
    auc: float = math.nan
    null_auc: NDArray | None = None  # (n,)
    null_consistency: NDArray | None = None  # (n,) mean Jaccard index of folds, of methods that select

    @property
    def pvalue(self) -> float:
        """(1 + #{null at least as good}) / (1 + n), valid for any n (Phipson & Smyth 2010).

        At least as good is a larger score, or an equal one with an area that is not smaller. Never below
        ``floor``: draws may meet label vectors as good as the observed one less often than their share.
        """
        areas = np.full(self.null.size, np.nan) if self.null_auc is None else self.null_auc
        place = places(np.append(self.score, self.null), np.append(self.auc, areas))
        return max(float(share_as_good(place)), self.floor)

    @property
    def is_exact(self) -> bool:
        """Whether the null has every other label vector once: no draw is in the p-value."""
        return self.null.size == self.n_distinct - 1

    @property
    def smallest(self) -> float:
        """The smallest p-value that this test could have given."""
        return max(1 / (1 + self.null.size), self.floor)

    def family_wise(self, inclusion: Any) -> NDArray:
        """P-value of every voxel, corrected for all voxels, of an observed inclusion map (N,).

        p_v = (1 + #{max_inclusion >= inclusion_v}) / (1 + n), at least ``floor``. The map is the mean over
        folds, as in the null: ``cross_validate(...).folds.inclusion.mean(axis=1)``.
        """
        if self.max_inclusion is None:
            raise ValueError(
                "Family-wise p-values need the null of the largest inclusion probability, which was not "
                "kept. Call permutation_test with max_inclusion=True."
            )
        below = np.searchsorted(np.sort(self.max_inclusion), np.asarray(inclusion) - _INCLUSION_TIE)
        return np.maximum((1 + self.null.size - below) / (1 + self.null.size), self.floor)


@dataclass(frozen=True)
class PermutationPlan:
    """Every label vector to be fitted, once each, and the chunks in which to do it.

    The observed vector comes first, then the permuted ones in the order in which they first occur. A chunk
    brings a fixed number of permutations, which depends on sizes alone; the same label vectors in other
    chunks agree to rounding only. So a plan of draws whose last chunk is whole (``ahead``) is, to the bit,
    the beginning of any longer one, and whoever stores chunks never fits a label vector twice. A plan of all
    label vectors (``is_exact``) is the same for any seed and any larger n; draws are not its beginning.
    """

    labels: NDArray  # (M, U) int8, the distinct ones among the observed and the permuted label vectors
    place: NDArray  # (1 + n,) column of labels that holds the observed vector, then each permutation's
    chunks: tuple[slice, ...]  # of the columns of labels
    chunk_size: int  # permutations of a chunk
    n_distinct: int
    seed: int
    exchange: str
    caution: str
    floor: float = 0.0

    @property
    def n(self) -> int:
        """Permutations: as many as asked for, or all other label vectors where these are no more."""
        return self.place.size - 1

    @property
    def is_exact(self) -> bool:
        """Whether every other label vector is used once."""
        return self.n == self.n_distinct - 1

    def done(self, chunk: slice) -> int:
        """Permutations whose label vectors are known once this chunk and those before it are there."""
        return int(np.count_nonzero(self.place[1:] < chunk.stop))

    def joined(self, method: str, parts: Sequence[NullStatistics]) -> PermutationTest:
        """The test, from the statistics of all chunks in their order; label vectors ahead do not count."""
        score, auc = (np.concatenate(each)[self.place] for each in zip(*(p[:2] for p in parts), strict=True))
        failed = np.concatenate([part.n_failed for part in parts])[np.unique(self.place)]
        inclusions = [part.max_inclusion for part in parts if part.max_inclusion is not None]
        overlaps = [part.consistency for part in parts if part.consistency is not None]
        overlap = np.concatenate(overlaps)[self.place[1:]] if len(overlaps) == len(parts) else None
        return PermutationTest(
            method=method,
            score=float(score[0]),
            null=score[1:],
            n_distinct=self.n_distinct,
            seed=self.seed,
            exchange=self.exchange,
            caution=self.caution,
            n_failed=int(failed.sum()),
            max_inclusion=np.concatenate(inclusions)[self.place[1:]] if inclusions else None,
            floor=self.floor,
            auc=float(auc[0]),
            null_auc=auc[1:],
            null_consistency=overlap,
        )


def permutation_test(
    method: Method,
    X: Any,
    y: Any,
    runs: Any,
    n: int = 1000,
    scheme: Scheme | None = None,
    *,
    score: Score | None = None,
    max_inclusion: bool = False,
    columns_at_once: int | None = None,
    n_jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> PermutationTest:
    """Compare cross-validated accuracy with that of n permutations of the labels within runs.

    Where no more than n other arrangements of the labels exist, all are used, and the p-value is exact.

    Parameters
    ----------
    method
        One of ``METHODS``.
    X, y, runs
        Samples (M, N), labels (M,) in -1/+1 or class numbers 0..K-1, and the run (M,) of each. With ``rows``
        in the ``scheme`` X and runs are those of the whole study, y of these rows.
    n
        Permutations.
    scheme
        Folds, what they do to X, and what is exchanged. Samples of one block are correlated, so blocks are
        exchanged as wholes by default. ``exchange="sample"`` exchanges single rows and is right only for
        independent ones, such as block averages or trial-wise maps; p-values are too small otherwise.
    score
        Replaces the accuracy.
    max_inclusion
        Keeps the null of the largest inclusion probability, for ``PermutationTest.family_wise``.
    columns_at_once
        Bounds memory; None: chosen by N.
    n_jobs
        Processes.
    progress
        Called with the number of permutations done and their total.

    Returns
    -------
    PermutationTest
        The observed score, those of the permutations, and the p-value.
    """
    X, runs = check_rows(X, runs)
    scheme = scheme or Scheme()
    folds, rows = scheme.folds_of(runs), scheme.rows_of(runs)
    plan = plan_permutations(
        y, runs[rows], np.shape(X)[-1], n, seed=scheme.seed, **scheme.exchanged,
        n_folds=len(folds.held_out) if scheme.preparation.shared else 1, columns_at_once=columns_at_once,
    )  # fmt: skip
    parts: list[NullStatistics] = []
    for chunk in plan.chunks:
        asked = LabelVectors(method, rows, plan.labels[:, chunk], max_inclusion, score)
        parts += joint_null([asked], X, runs, scheme, n_jobs=n_jobs)
        if progress is not None:
            progress(plan.done(chunk), plan.n)
    return plan.joined(method.name, parts)


def plan_permutations(
    y: Any,
    runs: Any,
    n_features: int,
    n: int = 1000,
    *,
    seed: int = 0,
    exchange: str = "block",
    blocks: Any = None,
    n_folds: int | None = None,
    columns_at_once: int | None = None,
    ahead: bool = False,
) -> PermutationPlan:
    """Find the permutations of ``permutation_test`` and lay them out in chunks.

    These are all other label vectors, in a fixed order, where no more than n exist, else n random ones.
    ``ahead`` fills the last chunk with the draws that come next, for answers that are stored and may be added
    to.

    Parameters
    ----------
    y
        Labels (M,) in -1/+1, or class numbers.
    runs
        The run (M,) of every sample.
    n_features
        N, which bounds how many columns are solved at once.
    n
        Permutations.
    seed
        Of the random numbers: equal seeds give equal results.
    exchange
        "block" exchanges blocks of samples as wholes, "sample" single ones, for independent samples.
    blocks
        The block (M,) of every sample; None: stretches of equal labels.
    n_folds
        Of the runs; None: one per run.
    columns_at_once
        Bounds memory; None: chosen by N.
    ahead
        Whether the last chunk is filled.

    Returns
    -------
    PermutationPlan
        The label vectors (M, n), their chunks, and how many there are.

    Examples
    --------
    >>> import numpy as np
    >>> from mvpa_gamp.decoding import plan_permutations
    >>> plan = plan_permutations([1, 1, -1, -1] * 6, np.repeat(np.arange(6), 4), n_features=100, n=1000)
    >>> plan.labels.shape, plan.n_distinct  # 2 ** 6 ways to swap the blocks of six runs
    ((24, 64), 64)
    """
    found = find_exchange(y, runs, exchange, blocks)
    found.check()
    n_fits = (n_folds or np.unique(runs).size) * math.comb(np.unique(found.labels).size, 2)
    columns = _NUMBERS_AT_ONCE // (n_features + _ARRAYS_OF_ROWS * found.of_row.size)
    step = _chunk_size(columns // n_fits) if columns_at_once is None else max(1, columns_at_once // n_fits)
    others = found.others(n)
    if others is None:
        others = found.draw(-(-n // step) * step if ahead else n, seed)
    n = min(n, others.shape[1])
    labels, place = _first_occurrences(np.column_stack([found.labels[found.of_row], others]))
    chunks = tuple(_chunks(place, n, step))
    return PermutationPlan(
        labels=labels[:, : chunks[-1].stop],
        place=place[: n + 1],
        chunks=chunks,
        chunk_size=step,
        n_distinct=found.n_distinct,
        seed=seed,
        exchange=found.kind,
        caution=found.caution,
        floor=found.smallest_pvalue,
    )


def _chunk_size(most: int) -> int:
    """The largest usual number of permutations that is not above ``most``, but at least 1."""
    return max((size for size in _CHUNK_SIZES if size <= most), default=1)


def _chunks(place: NDArray, n: int, step: int) -> Iterator[slice]:
    """The label vectors that every ``step`` permutations are the first to bring, if the first n need them."""
    known = np.maximum.accumulate(place) + 1  # label vectors after each permutation
    needed = known[n]
    start = 0
    for last in range(step, place.size - 1 + step, step):
        stop = int(known[min(last, place.size - 1)])
        if start < min(stop, needed):
            yield slice(start, stop)
            start = stop


def _first_occurrences(drawn: NDArray) -> tuple[NDArray, NDArray]:
    """The distinct columns of ``drawn`` (M, D) in the order in which they first occur, and whose each is."""
    _, first, which = np.unique(drawn, axis=1, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return drawn[:, first[order]], np.argsort(order)[which.reshape(-1)]


def holm(pvalues: Any) -> NDArray:
    """P-values (K,) of K tests, corrected for multiple testing by Holm's method.

    Holm (1979): the i-th smallest of K is multiplied by K - i + 1, and never falls below a smaller one's.

    Parameters
    ----------
    pvalues
        Of the K tests.

    Returns
    -------
    ndarray
        Corrected p-values (K,).

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(pvalues, dtype=float)
    order = np.argsort(p, kind="stable")
    corrected = np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1))
    out = np.empty_like(p)
    out[order] = np.minimum(corrected, 1.0)
    return out


# Scores closer than this are equal: means of the same shares in another order.
_TIE = 1e-9


def places(score: Any, finer: Any) -> NDArray:
    """Places (..., 1 + n), the larger the better, of scores (..., 1 + n) with the observed ones first.

    Equal scores have the order of ``finer``, of the same shape. Where it is not known (NaN) the observed one
    is the last of its equals, and any other the first.

    >>> places([0.5, 0.5, 0.5, 0.6], [0.7, 0.6, 0.7, 0.1]).tolist()
    [1, 0, 1, 2]
    """
    score, finer = (np.array(values, dtype=float) for values in np.broadcast_arrays(score, finer))
    finer[np.isnan(finer)] = np.inf
    finer[..., 0][np.isinf(finer[..., 0])] = -np.inf
    steps = _steps(score.ravel(), np.zeros(score.size))
    return _steps(steps, finer.ravel()).reshape(score.shape)


def share_as_good(place: NDArray) -> Any:
    """The share (...) of places (..., 1 + n) that are at least the first one, which is among them."""
    return np.mean(place >= place[..., :1], axis=-1)


def _steps(first: NDArray, second: NDArray) -> NDArray:
    """Numbers (n,) in the order of ``first``, and of ``second`` where that is equal; equals share one."""
    order = np.lexsort((second, first))
    a, b = first[order], second[order]
    rises = (a[1:] > a[:-1] + _TIE) | (b[1:] > b[:-1] + _TIE)
    out = np.empty(order.size, dtype=int)
    out[order] = np.concatenate([[0], np.cumsum(rises)])
    return out
