"""Is the decoding better than chance? Labels shuffled within runs, the whole cross-validation repeated.

Shuffled labels and folds are columns of one X, so a chunk of permutations is one ``fit_folds``. All label
vectors are drawn before any fit, so chunks may be computed in any order, anywhere, and joined:

    plan = plan_permutations(y, runs, X.shape[1], n=1000)
    parts = [null_statistics(method, X, plan.labels[:, chunk], runs) for chunk in plan.chunks]
    test = plan.joined(method.name, parts)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..methods.fold_fits import Method
from .exchange import exchange_units, permuted_labels
from .folds import leave_one_run_out

# Numbers that one array of a chunk may hold: about 100 columns at 31,398 voxels.
_NUMBERS_AT_ONCE = 3_200_000
_ARRAYS_OF_ROWS = 8  # (M, B) float64 arrays weigh this much against the (N, B) float32 ones
# A tie counts against the data, also where rounding hides it: means of the same shares in another order, and
# means of float32 probabilities.
_TIE = 1e-9
_INCLUSION_TIE = 1e-6


class NullStatistics(NamedTuple):
    """What cross-validation of k label vectors gives."""

    score: NDArray  # (k,) mean over folds of the share of held-out rows predicted rightly
    max_inclusion: NDArray | None  # (k,) largest mean-over-folds inclusion probability of any voxel
    n_failed: int  # fits that did not meet their stopping rule


@dataclass(frozen=True)
class PermutationTest:
    """Observed accuracy beside the accuracies of n label permutations.

    ``n_distinct`` is the number of label vectors that permutations can reach, the observed one included;
    ``caution`` is empty or says what limits the p-value.
    """

    method: str
    score: float  # mean held-out accuracy over folds
    null: NDArray  # (n,) the same of every permutation
    n_distinct: int
    seed: int
    unit: str  # what was exchanged: "block" or "sample"
    caution: str = ""
    n_failed: int = 0  # fits, of observed or permuted labels, that did not meet their stopping rule
    max_inclusion: NDArray | None = None  # (n,)

    @property
    def pvalue(self) -> float:
        """(1 + #{null >= score}) / (1 + n), valid for any n (Phipson & Smyth 2010)."""
        return float(1 + np.count_nonzero(self.null >= self.score - _TIE)) / (1 + self.null.size)

    def family_wise(self, inclusion: Any) -> NDArray:
        """P-value of every voxel, corrected for all voxels, of an observed inclusion map (N,).

        p_v = (1 + #{max_inclusion >= inclusion_v}) / (1 + n). The map is the mean over folds, as in the
        null: ``cross_validate(...).fits.inclusion.mean(axis=1)``.
        """
        if self.max_inclusion is None:
            raise ValueError(
                "Family-wise p-values need the null of the largest inclusion probability, which was not "
                "kept. Call permutation_test with max_inclusion=True."
            )
        below = np.searchsorted(np.sort(self.max_inclusion), np.asarray(inclusion) - _INCLUSION_TIE)
        return (1 + self.null.size - below) / (1 + self.null.size)


@dataclass(frozen=True)
class PermutationPlan:
    """Every label vector to be fitted, once each, and the chunks in which to do it.

    Chunks depend on sizes alone, so that runs elsewhere do the same arithmetic: the same columns in other
    chunks agree to rounding only.
    """

    labels: NDArray  # (M, U) int8, the distinct ones among the observed and the permuted label vectors
    place: NDArray  # (1 + n,) column of labels that holds the observed vector, then each permutation's
    chunks: tuple[slice, ...]  # of the columns of labels
    n_distinct: int
    seed: int
    unit: str
    caution: str

    def joined(self, method: str, parts: Sequence[NullStatistics]) -> PermutationTest:
        """The test, from the statistics of all chunks in their order."""
        score = np.concatenate([part.score for part in parts])[self.place]
        inclusions = [part.max_inclusion for part in parts if part.max_inclusion is not None]
        return PermutationTest(
            method=method,
            score=float(score[0]),
            null=score[1:],
            n_distinct=self.n_distinct,
            seed=self.seed,
            unit=self.unit,
            caution=self.caution,
            n_failed=sum(part.n_failed for part in parts),
            max_inclusion=np.concatenate(inclusions)[self.place[1:]] if inclusions else None,
        )


def permutation_test(
    method: Method,
    X: Any,
    y: Any,
    runs: Any,
    n: int = 1000,
    *,
    seed: int = 0,
    unit: str = "block",
    blocks: Any = None,
    max_inclusion: bool = False,
    columns_at_once: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> PermutationTest:
    """Compare leave-one-run-out accuracy with that of n permutations of the labels within runs.

    X is (M, N), y (M,) in -1/+1, runs (M,). Samples of one block are correlated, so blocks are exchanged as
    wholes by default: the rows of ``blocks`` (M,), or stretches of rows of one label and run.
    ``unit="sample"`` exchanges single rows and is right only for independent ones, such as block averages or
    trial-wise maps; p-values are too small otherwise. ``max_inclusion`` keeps the null of the largest
    inclusion probability, for ``PermutationTest.family_wise``. ``columns_at_once`` bounds memory (None:
    chosen by N). ``progress`` is called with the number of label vectors done and their total.
    """
    plan = plan_permutations(
        y, runs, np.shape(X)[-1], n, seed=seed, unit=unit, blocks=blocks, columns_at_once=columns_at_once
    )
    parts = []
    for chunk in plan.chunks:
        parts.append(null_statistics(method, X, plan.labels[:, chunk], runs, max_inclusion=max_inclusion))
        if progress is not None:
            progress(min(chunk.stop, plan.labels.shape[1]), plan.labels.shape[1])
    return plan.joined(method.name, parts)


def plan_permutations(
    y: Any,
    runs: Any,
    n_features: int,
    n: int = 1000,
    *,
    seed: int = 0,
    unit: str = "block",
    blocks: Any = None,
    columns_at_once: int | None = None,
) -> PermutationPlan:
    """Draw the permutations of ``permutation_test`` and lay them out in chunks.

    >>> import numpy as np
    >>> from mvpa_gamp.decoding import plan_permutations
    >>> plan = plan_permutations([1, 1, -1, -1] * 6, np.repeat(np.arange(6), 4), n_features=100, n=1000)
    >>> plan.labels.shape, plan.n_distinct  # 2 ** 6 ways to swap the blocks of six runs
    ((24, 64), 64)
    """
    units = exchange_units(y, runs, unit, blocks)
    n_distinct = units.n_distinct
    if n_distinct == 1:
        raise ValueError(
            f"Exchanging each {unit} within its run can give no other labels: every run holds one class. "
            "Number the runs so that each holds both classes."
        )
    drawn = np.column_stack([units.labels[units.of_row], permuted_labels(y, runs, n, seed, unit, blocks)])
    labels, place = np.unique(drawn, axis=1, return_inverse=True)
    n_folds = np.unique(runs).size
    columns = columns_at_once or _NUMBERS_AT_ONCE // (n_features + _ARRAYS_OF_ROWS * len(drawn))
    step = max(1, columns // n_folds)
    chunks = tuple(slice(at, min(at + step, labels.shape[1])) for at in range(0, labels.shape[1], step))
    caution = units.caution(unit)
    return PermutationPlan(labels, place.reshape(-1), chunks, n_distinct, seed, unit, caution)


def null_statistics(
    method: Method, X: Any, labels: NDArray, runs: Any, *, max_inclusion: bool = False
) -> NullStatistics:
    """Cross-validate each of the label vectors (M, k): k times B columns of one ``fit_folds``.

    >>> import numpy as np
    >>> from mvpa_gamp.decoding import null_statistics, permuted_labels
    >>> from mvpa_gamp.methods import METHODS
    >>> runs, y = np.repeat(np.arange(6), 8), np.tile(np.repeat([1, -1], 4), 6)
    >>> X = np.random.default_rng(0).standard_normal((48, 20)) + y[:, None] * (np.arange(20) == 5)
    >>> null_statistics(METHODS["onebit-cs"], X, permuted_labels(y, runs, n=3), runs).score.shape
    (3,)
    """
    folds = leave_one_run_out(runs)
    n_rows, n_vectors = labels.shape
    n_folds = folds.held_out.size
    train = np.tile(folds.train, (1, n_vectors))
    fits = method.fit_folds(X, np.repeat(labels, n_folds, axis=1), train, np.asarray(runs))
    predicted = (fits.decision > 0).reshape(n_rows, n_vectors, n_folds)
    right = (predicted == (labels > 0)[:, :, None]) & ~folds.train[:, None, :]
    score = (right.sum(axis=0) / np.count_nonzero(~folds.train, axis=0)).mean(axis=1)
    largest = None
    if max_inclusion:
        if fits.inclusion is None:
            raise ValueError(
                f"max_inclusion needs inclusion probabilities, which {method.name!r} does not have. "
                "Choose a Bernoulli method such as 'gamp-bg-lr', or max_inclusion=False."
            )
        largest = _largest_mean(fits.inclusion, n_folds)
    return NullStatistics(score, largest, int(np.count_nonzero(~np.asarray(fits.converged))))


def holm(pvalues: Any) -> NDArray:
    """P-values (K,) of K tests, corrected so that one false claim among them is as rare as promised.

    Holm (1979): the i-th smallest of K is multiplied by K - i + 1, and never falls below a smaller one's.

    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(pvalues, dtype=float)
    order = np.argsort(p, kind="stable")
    corrected = np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1))
    out = np.empty_like(p)
    out[order] = np.minimum(corrected, 1.0)
    return out


def _largest_mean(inclusion: NDArray, n_folds: int) -> NDArray:
    """Largest over voxels of the mean over folds, (k,); summed vector by vector to save memory."""
    starts = range(0, inclusion.shape[1], n_folds)
    return np.array([inclusion[:, at : at + n_folds].mean(axis=1, dtype=float).max() for at in starts])
