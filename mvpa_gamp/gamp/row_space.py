"""What rows of X are to one another: inner products of scaled features, a decomposition per training set.

Methods that see N features only through linear combinations of M rows need the Gram matrix of X, products
with X, and, for every set of training rows, the eigenvectors of what those rows share. None of it depends on
labels: permutations, comparisons with equal rows, classes and continuous targets use the same decomposition.
"""

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..parallel import block_threads
from .design import checked_matrix
from .moments import Array
from .neighbours import Neighbours
from .scalar_steps import checked_counts

# Features of X whose rows are scaled, or multiplied from both sides, while they are in a second-level cache.
_BLOCK_BYTES = 1 << 21
_LEAST_WIDTH = 256
# A mean so many times larger than the spread around it would eat the last digits of products with plain X.
_LARGE_MEAN = 100.0
# A feature that varies by less than this share of its size is constant but for rounding.
_CONSTANT = 1e-6
_EDGES = 5_000
_LARGEST_CORRELATION = 0.999
# Power iterations for a component that holds more than half; and the number of others that there must be.
_POWER_STEPS, _LEAST_COMPONENTS = 12, 10
_LARGEST_SHRINKAGE = 0.999  # something is left of what rows share


class RowSpace:
    """X (M, N), dense or sparse, with every feature divided by its standard deviation over all M rows.

    The scale reads no label and is the same for every training set, so that all of them share one Gram matrix
    (float64, of features around their mean). X is neither changed nor copied. Constant features are dropped:
    their ``inverse_scale`` is 0.
    """

    def __init__(self, X: Any) -> None:
        X = checked_matrix(X)
        self.X = sparse.csc_array(X) if sparse.issparse(X) else X
        mean, deviation, size = _moments(self.X)
        varies = deviation > _CONSTANT * size
        self.inverse_scale = np.where(varies, 1 / np.where(varies, deviation, 1.0), 0.0).astype(X.dtype)
        self.n_varying = int(varies.sum())
        if not varies.any():
            raise ValueError(
                "No feature of X varies, so nothing can be learnt from it. Check how X was built or masked."
            )
        self._mean = mean.astype(X.dtype)
        large = np.abs(mean) * self.inverse_scale > _LARGE_MEAN
        self._subtracts = bool(large.any()) and not self.is_sparse
        self.gram = self._gram()

    @property
    def is_sparse(self) -> bool:
        """Whether X is a scipy.sparse matrix."""
        return sparse.issparse(self.X)

    @property
    def shape(self) -> tuple[int, int]:
        """M rows, N features."""
        return self.X.shape

    @property
    def dtype(self) -> np.dtype:
        """Precision of X and of everything that has N entries."""
        return self.X.dtype

    def blocks(self) -> list[slice]:
        """All features, some at a time."""
        n_rows, n_features = self.X.shape
        width = max(_LEAST_WIDTH, _BLOCK_BYTES // (n_rows * self.dtype.itemsize))
        return [slice(at, min(at + width, n_features)) for at in range(0, n_features, width)]

    def rows(self, features: slice) -> Any:
        """X (M, n) of some features, around the mean where that would eat digits; not scaled."""
        part = self.X[:, features]
        return part - self._mean[features] if self._subtracts else part

    def mean_scores(self, coef: Array) -> NDArray:
        """What weights (..., N) make of the means that ``rows`` takes away, (...)."""
        if not self._subtracts:
            return np.zeros(coef.shape[:-1])
        return np.asarray(coef.astype(float) @ self._mean.astype(float))

    def smoothness(self, neighbours: Neighbours | None) -> float:
        """How many features one resolution element of smooth volumes holds, at least 1.

        From the mean correlation r of neighbours (some thousand pairs): the width at half maximum of
        noise that is smooth like this is sqrt(-2 log 2 / log r) voxels, of which one is the voxel's own.
        """
        if neighbours is None or self.is_sparse:
            return 1.0
        one, two = neighbours.some_edges(_EDGES)
        total = 0.0
        for at in _some(one.size):
            left, right = (
                (self.X[:, ends[at]] - self._mean[ends[at]]) * self.inverse_scale[ends[at]]
                for ends in (one, two)
            )
            total += float(np.einsum("mn,mn->", left, right, dtype=float))
        r = min(total / max(1, one.size) / self.X.shape[0], _LARGEST_CORRELATION)
        if r <= 0:
            return 1.0
        return float(max(1.0, -2 * math.log(2) / math.log(r) - 1) ** 1.5)

    def _gram(self) -> NDArray:
        def visit(features: slice) -> NDArray:
            part = self.X[:, features]
            if self.is_sparse:
                part = part * self.inverse_scale[features]
                return (part @ part.T).toarray()
            part = (part - self._mean[features]) * self.inverse_scale[features]
            return part @ part.T

        n_rows = self.X.shape[0]
        gram = np.zeros((n_rows, n_rows))
        blocks = self.blocks()
        with block_threads(len(blocks)) as over_blocks:
            for part in over_blocks(visit, blocks):
                gram += part
        if self.is_sparse:  # around the mean row, as for dense X
            gram -= gram.mean(axis=0)
            gram -= gram.mean(axis=1)[:, None]
        return gram


@dataclass(frozen=True)
class TrainingSet:
    """The rows of one training set, whitened: C K C' with R^-1/2 on both sides is U diag(s) U'.

    K is the Gram matrix of the rows, C takes their weighted mean away, and R is the covariance of their noise
    up to a factor: every group of rows has its own deviating weights (``rho``) besides white noise
    (``white``), R = (rho blockdiag_g(C K C') / d + white diag(1 / weights)) / (rho + white), d being the mean
    of the diagonal of C K C', without a component that holds more than half of it. ``basis`` is R^-1/2 U. A
    row of weight 2 is two copies of it.
    """

    rows: NDArray  # (n,) numbers of the training rows
    share: NDArray  # (n,) weights of the rows, of sum 1
    total: float  # sum of the weights
    groups: tuple[NDArray, ...]  # positions among the n rows of those that belong together
    d: float
    s: NDArray  # (n,)
    basis: NDArray  # (n, n)
    rho: float
    white: float
    shrinkage: float  # gamma: what is taken off inner products of different rows

    @property
    def signal_share(self) -> float:
        """The part of the targets' variance that common weights explain: fixed, never learnt."""
        return 1 / (1 + self.rho + self.white)

    @property
    def noise_share(self) -> float:
        """The rest, and what shrinkage takes off the part that rows explain of one another."""
        return 1 - (1 - self.shrinkage) * self.signal_share

    def centred(self, values: NDArray) -> NDArray:
        """Values (..., n) of the rows around their weighted mean."""
        return values - (values @ self.share)[..., None]

    def dual(self, residual: NDArray, precision: NDArray) -> NDArray:
        """Q C residual, (k, n) from (k, n): Q = R^-1/2 U diag(1 / precision) U' R^-1/2, precisions (k, n)."""
        return ((self.centred(residual) @ self.basis) / precision) @ self.basis.T

    def zero_sum(self, dual: NDArray) -> NDArray:
        """C' dual (k, n): what X' makes of it does not depend on the means of features."""
        return dual - dual.sum(axis=1)[:, None] * self.share

    def leave_group_out(self, targets: NDArray, dual: NDArray, precision: NDArray) -> NDArray:
        """Predictions (Y_g - Q_gg^-1 a_g) / (1 - gamma) of every group by the others, (n, J), of one fit.

        Targets Y and ``dual`` a = Q C (Y - ...) are (n, J), ``precision`` (n,) is that of Q.
        """
        scaled = self.basis / np.sqrt(precision)
        out = np.empty_like(targets)
        for group in self.groups:
            part = scaled[group]
            out[group] = targets[group] - np.linalg.solve(part @ part.T, dual[group])
        return out / (1 - self.shrinkage)


class SetColumns(NamedTuple):
    """A training set and the numbers of the columns that train on it."""

    of: TrainingSet
    columns: NDArray


def training_set(
    gram: NDArray,
    weights: NDArray,
    groups: NDArray,
    rho: float = 1.0,
    white: float = 1.0,
    shrinkage: float | None = None,
    n_features: float = math.inf,
) -> TrainingSet:
    """Decompose the rows whose ``weights`` (M,) are above zero; ``groups`` (M,) name their groups.

    ``shrinkage`` None: as much as the rows and the number of features ask for.
    """
    rows = np.flatnonzero(weights > 0)
    counts, names = weights[rows].astype(float), groups[rows]
    total = float(counts.sum())
    share = counts / total
    K = gram[np.ix_(rows, rows)]
    K = K - share @ K
    K -= (K @ share)[:, None]
    d = max(_mean_diagonal(K, share), np.finfo(float).tiny)
    gamma = _shrinkage(K, counts, n_features) if shrinkage is None else shrinkage
    of_group = tuple(np.flatnonzero(names == name) for name in np.unique(names))
    left = K.copy()
    half: list[NDArray] = []
    for group in of_group:
        R = (rho * K[np.ix_(group, group)] / d + white * np.diag(1 / counts[group])) / (rho + white)
        e, U = np.linalg.eigh((R + R.T) / 2)
        half.append((U / np.sqrt(np.maximum(e, np.finfo(float).eps))) @ U.T)
        left[group] = half[-1] @ left[group]
    for group, inverse_root in zip(of_group, half, strict=True):
        left[:, group] = left[:, group] @ inverse_root
    s, basis = np.linalg.eigh((left + left.T) / 2)
    for group, inverse_root in zip(of_group, half, strict=True):
        basis[group] = inverse_root @ basis[group]
    return TrainingSet(rows, share, total, of_group, d, np.maximum(s, 0.0), basis, rho, white, gamma)


def _mean_diagonal(K: NDArray, share: NDArray) -> float:
    """Mean of the diagonal, without a component that all features share if it holds more than half of it.

    Such a component, a strong global signal, tells the size of no effect. On fMRI the largest one seen held
    39 % of the raw variance, and 19 % after cleaning: nothing is left out there; nor is it where few other
    components are left, as for a handful of features.
    """
    v = K[np.argmax(np.diag(K))]
    for _ in range(_POWER_STEPS):
        v = K @ (v / max(float(np.linalg.norm(v)), np.finfo(float).tiny))
    size = float(np.linalg.norm(v))
    if size > np.trace(K) / 2 > 0:
        rest = K - np.outer(v, v) / size
        if np.trace(rest) ** 2 > _LEAST_COMPONENTS * np.square(rest).sum():
            return float(share @ np.diag(rest))
    return float(share @ np.diag(K))


def _shrinkage(K: NDArray, counts: NDArray, n_features: float) -> float:
    """The square of Ledoit and Wolf's intensity for a Gram matrix K of centred rows: little for fMRI.

    It nears one where features are independent: what rows then seem to share is chance.
    """
    total, squares = counts.sum(), np.square(K)
    spread = float(counts @ squares @ counts) / total**2
    noise = float(counts @ np.diag(squares)) / total**2 - spread / total
    distance = spread - float(counts @ np.diag(K) / total) ** 2 / n_features
    intensity = min(max(noise / distance, 0.0), 1.0) if distance > 0 else 1.0
    too_few = max(0.0, 1 - total / n_features)  # as many rows as features tell chance from what is shared
    return min(intensity**2 * too_few, _LARGEST_SHRINKAGE)


def training_sets(
    space: RowSpace,
    train: NDArray,
    groups: NDArray,
    rho: Array | float = 1.0,
    white: Array | float = 1.0,
    weights: Any = None,
    shrinkage: float | None = None,
) -> list[SetColumns]:
    """The different columns of ``train`` (M, B), its rows counted by ``weights``, as training sets.

    ``rho`` and ``white`` are numbers, or one for every column.

    Parameters
    ----------
    space
        X and its Gram matrix.
    train
        Training rows (M, B) bool.
    groups
        The group (M,) of every row, such as its run.
    rho, white
        Strength of weights that deviate by group, and of white noise; one number, or (B,).
    weights
        Weights (M,) or (M, B) of the rows; None: 1.
    shrinkage
        Of the covariance of rows; None: none.

    Returns
    -------
    list of SetColumns
        The different sets, each with the numbers of its columns.

    Examples
    --------
    >>> import numpy as np
    >>> from mvpa_gamp.gamp import RowSpace, training_sets
    >>> space = RowSpace(np.random.default_rng(0).standard_normal((6, 9)))
    >>> train = np.array([[1, 1, 0], [1, 1, 0], [1, 1, 1], [1, 1, 1], [0, 0, 1], [0, 0, 1]], dtype=bool)
    >>> [each.columns.tolist() for each in training_sets(space, train, groups=np.repeat([0, 1, 2], 2))]
    [[0, 1], [2]]
    """
    counts = checked_counts(weights, train).astype(float)
    noise = np.stack([np.broadcast_to(each, len(counts.T)).astype(float) for each in (rho, white)], axis=1)
    found: dict[Hashable, list[int]] = {}
    for column, of_rows in enumerate(counts.T):
        found.setdefault((of_rows.tobytes(), *noise[column]), []).append(column)

    def make(columns: list[int]) -> TrainingSet:
        of_rows, (own, white) = counts[:, columns[0]], noise[columns[0]]
        return training_set(space.gram, of_rows, groups, own, white, shrinkage, space.n_varying)

    with block_threads(len(found), per_thread=1) as over_sets:
        made = over_sets(make, found.values())
        return [SetColumns(of, np.array(columns)) for of, columns in zip(made, found.values(), strict=True)]


def _moments(X: Any) -> tuple[Array, Array, Array]:
    """Mean, standard deviation and root mean square (N,) of every feature over all rows, in float64."""
    if sparse.issparse(X):
        mean = np.asarray(X.mean(axis=0), dtype=float).ravel()
        square = np.asarray(X.multiply(X).mean(axis=0), dtype=float).ravel()
        return mean, np.sqrt(np.maximum(square - mean**2, 0.0)), np.sqrt(square)
    mean = X.mean(axis=0, dtype=float)
    variance = np.empty_like(mean)
    for at in _some(X.shape[1]):
        variance[at] = np.square(X[:, at] - mean[at]).mean(axis=0)
    return mean, np.sqrt(variance), np.sqrt(variance + mean**2)


def _some(n_features: int, width: int = 4096) -> Iterator[slice]:
    for at in range(0, n_features, width):
        yield slice(at, min(at + width, n_features))
