"""Scalar steps: of a likelihood on the (row, column) pairs that count, of a prior on one block of features.

A row of weight k is k copies of the row: its output step is that of one copy, and its weight multiplies
whatever is summed over rows.

``Weights`` are (N, B) arrays in Fortran order, so that a column lies together in memory; a step reads the
weights of the last iteration and writes those of the next, both at the features of one block (pseudo-data,
damping, posterior: lines 13 to 20 of Algorithm 1). A prior may offer a step of its own (``fused_step``); the
one here works for all.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..parallel import block_threads
from .moments import Array, Moments
from .parameters import take

_ELEMENTS_AT_ONCE = 1 << 13  # the scalar steps make about twenty arrays of this size: they fit a cache
_KINKED_CURVATURE = 0.1  # of a loss without curvature, such as hinge: about that of a logistic nearby


class TrainingElements:
    """Elements of (M, B) arrays where ``train`` is True: all of them without a copy, or some as a flat list.

    Steps are elementwise and go through the elements in pieces that fit a cache, on all cores when there
    are many pieces.
    """

    def __init__(self, train: NDArray, likelihood: Any) -> None:
        self._train, self._likelihood = train, likelihood
        self._all = bool(train.all())
        self._columns = None if self._all else np.nonzero(train)[1]

    def pick(self, values: Array) -> Array:
        """The elements of ``values``, which is (M, B) or (1, B): (M, B) itself, or (E,)."""
        values = np.broadcast_to(values, self._train.shape)
        return values if self._all else values[self._train]

    def put(self, values: Array) -> Array:
        """An (M, B) array with these elements, 0 elsewhere."""
        if self._all:
            return values
        whole = np.zeros(self._train.shape)
        whole[self._train] = values
        return whole

    def column_sums(self, values: Array) -> Array:
        """Sum of the elements of each column, (B,)."""
        if self._columns is None:
            return values.sum(axis=0)
        return np.bincount(self._columns, values, self._train.shape[1]).astype(float, copy=False)

    def step(self, scalar_step: Callable[..., tuple[Array, ...]], *given: Array) -> tuple[Array, ...]:
        """``scalar_step(likelihood, *pieces of given)`` piece by piece; its results joined."""
        pieces = list(self._pieces(given[0].shape))
        if len(pieces) == 1:
            return scalar_step(self._part(pieces[0]), *given)
        results: list[Array] = []

        def work(piece: slice) -> tuple[Array, ...]:
            return scalar_step(self._part(piece), *(values[piece] for values in given))

        with block_threads(len(pieces)) as over_pieces:
            for piece, parts in zip(pieces, over_pieces(work, pieces), strict=True):
                if not results:
                    results = [np.empty(given[0].shape) for _ in parts]
                for whole, part in zip(results, parts, strict=True):
                    whole[piece] = part
        return tuple(results)

    def _part(self, piece: slice) -> Any:
        """The likelihood of some elements: its columns as they are, or one value per element."""
        return self._likelihood if self._columns is None else take(self._likelihood, self._columns[piece])

    @staticmethod
    def _pieces(shape: tuple[int, ...]) -> Iterator[slice]:
        length = max(1, _ELEMENTS_AT_ONCE * shape[0] // max(1, int(np.prod(shape))))
        for start in range(0, max(1, shape[0]), length):
            yield slice(start, min(start + length, shape[0]))


def sum_product_step(likelihood: Any, y: Array, p: Array, tau_p: Array) -> tuple[Array, Array, Array]:
    """Slope s, its precision tau_s and the log-partition."""
    (s, tau_s), log_partition = likelihood.evaluate(y, p, tau_p)
    return s, tau_s, log_partition


def max_sum_step(likelihood: Any, y: Array, p: Array, tau_p: Array) -> tuple[Array, Array]:
    """Slope s and its precision tau_s at the proximal point.

    A piecewise linear loss has none. It only sets the length of max-sum steps and moves no fixed point, so
    such a loss is given some.
    """
    s, tau_s = likelihood.prox_score(y, p, tau_p)
    return s, np.maximum(tau_s, kinked_curvature(tau_p)) if likelihood.kinks else tau_s


def kinked_curvature(tau_p: Any) -> Any:
    """The least tau_s of a loss with kinks."""
    return _KINKED_CURVATURE / (1 + _KINKED_CURVATURE * tau_p)


def loss_slope(likelihood: Any, y: Array, z: Array) -> tuple[Array]:
    """Minus the derivative of the loss."""
    return (likelihood.loss_slopes(y, z).s,)


_LARGEST = 1e15  # as of X: its square fits into float32


def checked_counts(weights: Any, train: NDArray) -> NDArray:
    """How often each row counts in each column, (M, B): the weights, 0 off the training rows.

    ``weights`` are (M,) or (M, B), finite and not negative on training rows, and never read elsewhere; None
    means one each, which is ``train`` itself.
    """
    if weights is None:
        return train
    if np.iscomplexobj(weights):
        raise ValueError("weights must hold real numbers, got complex ones. Give one weight per row.")
    try:
        given = np.asarray(weights, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"weights must hold numbers ({error}). Give one weight per row.") from error
    n_rows, n_columns = train.shape
    if given.shape not in ((n_rows,), (n_rows, n_columns)):
        raise ValueError(
            f"weights must have shape ({n_rows},) or ({n_rows}, {n_columns}), got {given.shape}. "
            "Give one weight per row of X, or one per row and column of train."
        )
    counts = np.where(train, given.reshape(n_rows, -1), 0.0)
    wrong = counts[~(np.isfinite(counts) & (counts >= 0))]
    if wrong.size:
        raise ValueError(
            f"weights must be finite and not negative, got {wrong[0]:g} on a training row. "
            "A row of weight 2 counts twice, one of weight 0 not at all."
        )
    largest = counts.max()
    if largest > _LARGEST or 0 < largest < 1 / _LARGEST:
        raise ValueError(
            f"weights must be at most {_LARGEST:g} and not all below {1 / _LARGEST:g}, got {largest:g} as "
            "the largest. A row of weight 2 counts as two rows: rescale the weights."
        )
    return counts


def counted(values: Array, counts: NDArray) -> Array:
    """Values (M, B) of the rows, zero off the training rows, as they enter a sum over rows."""
    return values if counts.dtype == bool else counts * values


class Weights(NamedTuple):
    """What an iteration knows of the weights, each (N, B)."""

    w: Array
    w_damped: Array
    r: Array
    tau_r: Array
    pi: Array  # P(w != 0), kept where neighbours read it; (0, B) elsewhere


class BlockStep(NamedTuple):
    """What one block contributes to the rest of the iteration."""

    tau_w: Array  # (n, B) variances of the new weights
    sums: dict[str, Array]  # EM statistics of the prior
    moved: Array  # (3, B) sums of (w - w_damped)^2, w^2 and 1 / tau_r


# (last weights, next weights, features, X' s, 1 / tau_r, step) -> contribution
StepFunction = Callable[[Weights, Weights, slice, Array, Array, Array], BlockStep]


def step_function(prior: Any, mode: str, fused: bool = False, log_odds: Array | None = None) -> StepFunction:
    """The step for this prior, which writes to the next weights; ``fused`` asks for a compiled one first.

    ``log_odds`` (N, B), in Fortran order, are those of every weight's own rate, instead of the prior's.
    """
    offered = prior.fused_step(log_odds) if fused and mode == "sum-product" else None
    return offered or _plain_step(prior, mode, log_odds)


def _plain_step(prior: Any, mode: str, log_odds: Array | None) -> StepFunction:
    @np.errstate(over="ignore", invalid="ignore")  # columns that are not finite are taken back
    def step(
        last: Weights, new: Weights, at: slice, adjoint: Array, precision: Array, step_size: Array
    ) -> BlockStep:
        tau_r = np.reciprocal(precision)
        w_damped = step_size * last.w[at]
        w_damped += (1 - step_size) * last.w_damped[at]
        r = tau_r * adjoint
        r += w_damped  # line 14
        if log_odds is None:
            (w, tau_w), sums = _weights(prior, r, tau_r, mode)
        else:
            (w, tau_w), sums, new.pi[at] = prior.expect_local(r, tau_r, log_odds[at])
        new.w[at], new.w_damped[at], new.r[at], new.tau_r[at] = w, w_damped, r, tau_r
        w_damped -= w
        return BlockStep(tau_w, sums, np.array([_squared(w_damped), _squared(w), _total(precision)]))

    return step


def _weights(prior: Any, r: Array, tau_r: Array, mode: str) -> tuple[Moments, dict[str, Array]]:
    if mode == "sum-product":
        return prior.expect(r, tau_r)
    return prior.prox(r, tau_r), {}


def _squared(values: Array) -> Array:
    return np.einsum("nb,nb->b", values, values, dtype=float)


def _total(values: Array) -> Array:
    return values.sum(axis=0, dtype=float)
