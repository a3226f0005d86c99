"""The two steps of a VAMP iteration, for B columns of J responses at a time.

An iteration passes once over X: while a block of features is in cache, the linear step's weights are formed,
the prior is applied to them, and the result is multiplied by X again. What else the linear step needs of X
follows in row space from the Gram matrix.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from ..threads import block_threads
from .moments import Array
from .neighbours import Neighbours
from .parameters import take
from .priors.bernoulli import BernoulliPosterior, probability
from .result import some_features
from .row_space import RowSpace, SetColumns

_SURE = 1 - 1e-7  # a rate of one, whose log-odds are finite
_SHARE_OF_PRECISION = (1e-6, 0.95)  # what the prior leaves of g1, bounded: g2 stays positive and finite
_SHARE_SEEN = (1e-12, 1 - 1e-9)


@dataclass
class State:
    """Where B columns are; (B, J, N) and (B, N) are in the precision of X, the rest in float64.

    ``denoise`` and ``to_next`` write to it.
    """

    w: Array  # (B, J, N) what the prior makes of r1
    r1: Array  # (B, J, N)
    r2: Array  # (B, J, N) of the last pass; that of the next is a w + b r1 + c r2
    pi: Array  # (B, N)
    next_r2: Array  # (3, B) a, b, c
    x_w: Array  # (B, J, M) X w
    x_r1: Array  # (B, J, M)
    x_r2: Array  # (B, J, M) of the next pass
    g1: Array  # (B,)
    g2: Array  # (B,)
    mean_variance: Array  # (B,) of the weights, over features and responses
    slab: Any  # parameters (B,)
    last_slab: Any  # the one that w was computed with
    log_odds: Array | None  # (B, N) of every weight's rate where neighbours decide it, None before
    rate: Array  # (B,)
    noise: Array  # (B,)

    def take(self, columns: NDArray) -> "State":
        """Some of the columns, copied."""
        changes: dict[str, Any] = {}
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name in ("slab", "last_slab"):
                changes[each.name] = take(value, columns)
            elif value is not None:
                changes[each.name] = value[:, columns] if each.name == "next_r2" else value[columns]
        return replace(self, **changes)


@dataclass(frozen=True)
class Linear:
    """What the linear step says."""

    dual: Array  # (B, J, M) its weights are r2 + X' dual
    alpha: Array  # (B,) share of the weights' precision that comes from the rows
    x_w2: Array  # (B, J, M) X times its weights


def linear_step(space: RowSpace, sets: Sequence[SetColumns], targets: NDArray, state: State) -> Linear:
    """The posterior mean of weights N(r2, 1 / g2) given targets (B, J, M) with the sets' noise."""
    dual, alpha = np.zeros(targets.shape), np.empty(len(targets))
    n_responses = targets.shape[1]
    for of, columns in sets:
        precision = of.s + (state.g2[columns] * state.noise[columns])[:, None]  # (k, n)
        alpha[columns] = (of.s / precision).sum(axis=1) / space.shape[1]
        residual = (targets[columns] - state.x_r2[columns])[:, :, of.rows].reshape(-1, of.rows.size)
        found = of.dual(residual, np.repeat(precision, n_responses, axis=0))
        dual[np.ix_(columns, np.arange(n_responses), of.rows)] = found.reshape(len(columns), n_responses, -1)
    return Linear(dual, np.clip(alpha, *_SHARE_SEEN), state.x_r2 + dual @ space.gram)


def denoise(
    space: RowSpace, linear: Linear, state: State, damping: float, neighbours: Neighbours | None
) -> None:
    """Give the linear step's weights to the prior: writes r1, g1, r2, w, pi, the slab and their scores.

    ``damping`` is the size of the step of r1 and g1.
    """
    n_columns, n_responses, n_features = state.w.shape
    state.g1 = (state.g2 * linear.alpha / (1 - linear.alpha)) ** damping * state.g1 ** (1 - damping)
    seen = linear.alpha[:, None, None]
    state.x_r1 *= 1 - damping
    state.x_r1 += damping * (state.x_r2 + (linear.x_w2 - state.x_r2) / seen)
    _follow_neighbours(state, neighbours)
    dual = linear.dual.reshape(n_columns * n_responses, -1).astype(space.dtype)
    step = _block_step(state, damping, damping / seen)

    @np.errstate(all="ignore")  # what is not finite is seen afterwards
    def visit(at: slice) -> tuple[NDArray, Array, dict[str, Array]]:
        rows, scale = space.rows(at), space.inverse_scale[at]
        adjoint = np.asarray(dual @ rows).reshape(n_columns, n_responses, -1)
        adjoint *= scale
        variance, sums = step(at, adjoint)
        scaled = np.multiply(state.w[:, :, at], scale, out=adjoint).reshape(len(dual), -1)
        return np.asarray(rows @ scaled.T), variance, sums

    x_w, variance = np.zeros((state.x_w.shape[2], len(dual))), np.zeros(n_columns)
    sums: dict[str, Array] = {}
    blocks = [slice(None)] if space.is_sparse else space.blocks()
    with block_threads(len(blocks)) as over_blocks:
        for part, of_block, more in over_blocks(visit, blocks):
            x_w += part
            variance += of_block
            sums = {name: sums.get(name, 0.0) + value for name, value in more.items()}
    state.x_w = x_w.T.reshape(state.x_w.shape)
    state.mean_variance = variance / (n_features * n_responses)
    state.last_slab, state.slab = state.slab, state.slab.maximize(sums, state.slab.default_learn)


def to_next(state: State, damping: float) -> None:
    """Take the prior's message to the linear step: r2 (when X is next passed over) and g2."""
    left = np.clip(state.g1 * state.mean_variance, *_SHARE_OF_PRECISION)
    gain = damping / (1 - left)
    state.next_r2 = np.stack([gain, -gain * left, np.full_like(gain, 1 - damping)])
    state.g2 = (state.g1 * (1 - left) / left) ** damping * state.g2 ** (1 - damping)
    a, b, c = state.next_r2[:, :, None, None]
    state.x_r2 = a * state.x_w + b * state.x_r1 + c * state.x_r2


def weight_variances(state: State) -> Array:
    """The posterior variances (B, J, N) of the weights, in the precision of X."""
    out = np.empty_like(state.w)
    for at in some_features(state.w.shape[2]):
        for j, (given, pi) in enumerate(_conditions(state, state.last_slab, at)):
            out[:, j, at] = BernoulliPosterior(given, pi).moments().var.T
    return out


def _follow_neighbours(state: State, neighbours: Neighbours | None) -> None:
    """Rates of the weights from the inclusions of their neighbours, a redistribution of a fixed budget."""
    if neighbours is None or not state.pi.any():
        return
    factor = state.rate / np.maximum(state.pi.mean(axis=1, dtype=float), np.finfo(float).tiny)
    out = np.empty_like(state.pi) if state.log_odds is None else state.log_odds
    with block_threads(len(out), per_thread=1) as over_columns:
        neighbours.log_odds(state.pi.T, state.rate, out.T, over_columns, factor)
    state.log_odds = out


def _block_step(state: State, damping: float, gain: Array) -> Any:
    """What a pass does with the weights X' dual of a block: writes r1, r2, w and pi there, and sums up."""
    dtype = state.w.dtype
    a, b, c = state.next_r2.astype(dtype)[:, :, None, None]
    gain, keep = gain.astype(dtype), dtype.type(1 - damping)

    def step(at: slice, adjoint: Array) -> tuple[Array, dict[str, Array]]:
        w, r1, r2 = state.w[:, :, at], state.r1[:, :, at], state.r2[:, :, at]
        r2 *= c
        r2 += a * w
        r2 += b * r1
        r1 *= keep
        r1 += gain * adjoint
        r1 += dtype.type(damping) * r2
        variance = np.zeros(len(w))
        sums: dict[str, Array] = {}
        for j, (given, pi) in enumerate(_conditions(state, state.slab, at)):
            mean, var = BernoulliPosterior(given, pi).moments()
            w[:, j] = mean.T
            variance += var.sum(axis=0, dtype=float)
            sums = {name: sums.get(name, 0.0) + value for name, value in given.statistics(pi).items()}
        state.pi[:, at] = pi.T
        return variance, sums

    return step


def _conditions(state: State, slab: Any, at: slice) -> list[tuple[Any, Array]]:
    """Of each response, the slab's posterior of the weights (n, B) of some features, and their inclusion."""
    given = [slab.condition(r.T, 1 / state.g1) for r in np.moveaxis(state.r1[:, :, at], 1, 0)]
    odds = logit(np.minimum(state.rate, _SURE)) if state.log_odds is None else state.log_odds[:, at].T
    pi = probability(np.sum([each.log_bayes_factor() for each in given], axis=0), odds)
    return [(each, pi) for each in given]
