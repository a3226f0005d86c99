"""The two steps of a VAMP iteration, for B columns of J responses at a time.

An iteration passes once over X: while a block of features is in cache, the linear step's weights are formed,
the prior is applied to them, and the result is multiplied by X again. What else the linear step needs of X
follows in row space from the Gram matrix. For Gaussian slabs around zero the prior's part is compiled for
float32: precision and slab are one number per column, so an element takes one division and one exponential.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from ..parallel import block_threads
from .compiled import compiler, is_worth_it
from .moments import Array
from .neighbours import Neighbours
from .parameters import take
from .priors.bernoulli import BernoulliPosterior, probability
from .priors.gaussian import Gaussian
from .result import some_features
from .row_space import RowSpace, SetColumns

# Features, X' dual and what to divide X by -> sums of variances (B,)
Step = Callable[[slice, Array, Array], Array]

_SURE = 1 - 1e-7  # a rate of one, whose log-odds are finite
_SHARE_OF_PRECISION = (1e-6, 0.95)  # what the prior leaves of g1, bounded: g2 stays positive and finite
_LEAST_NEW = 1e-12  # of the precision that weights had, which rows add at least


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
    log_odds: Array | None  # (B, N) of every weight's rate where neighbours decide it, None before
    rate: Array  # (B,)
    noise: Array  # (B,)

    def take(self, columns: NDArray) -> "State":
        """Some of the columns, copied."""
        changes: dict[str, Any] = {}
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name == "slab":
                changes[each.name] = take(value, columns)
            elif value is not None:
                changes[each.name] = value[:, columns] if each.name == "next_r2" else value[columns]
        return replace(self, **changes)


@dataclass(frozen=True)
class Linear:
    """What the linear step says: weights w2 = kept r2 + X' dual, and r1 = of_r2 r2 + of_rows X' dual."""

    dual: Array  # (B, J, M), of sum zero over rows
    total: Array  # (B, J) what was subtracted for that, a share for every row
    kept: Array  # (B,)
    g1: Array  # (B,) precision that the rows add to that of the weights
    of_r2: Array  # (B,)
    of_rows: Array  # (B,)
    x_w2: Array  # (B, J, M) X w2


def linear_step(space: RowSpace, sets: Sequence[SetColumns], targets: NDArray, state: State) -> Linear:
    """The posterior mean of weights N(r2, 1 / g2) given targets (B, J, M) with the sets' noise.

    Where a set shrinks what its rows share by gamma, its part gamma of K is taken for gamma mean(s) R: it
    adds to the precision of every weight and predicts no other row.
    """
    n_responses, n_features = targets.shape[1], space.shape[1]
    dual, precision = np.zeros(targets.shape), np.empty(len(targets))
    kept, sums = np.empty(len(targets)), np.empty(targets.shape[:2])
    for of, columns in sets:
        g2, noise, gamma = state.g2[columns], state.noise[columns], of.shrinkage
        total = g2 + gamma * of.s.sum() / n_features / noise
        kept[columns] = g2 / total
        D = (1 - gamma) * of.s + (total * noise)[:, None]  # (k, n)
        variance = ((noise[:, None] / D).sum(axis=1) + (n_features - of.s.size) / total) / n_features
        precision[columns] = 1 / variance
        known = (1 - gamma) * kept[columns][:, None, None] * state.x_r2[columns]
        residual = (targets[columns] - known)[:, :, of.rows].reshape(-1, of.rows.size)
        found = of.dual(residual, np.repeat(D, n_responses, axis=0))
        found = found.reshape(len(columns), n_responses, -1)
        sums[columns] = found.sum(axis=2)
        dual[np.ix_(columns, np.arange(n_responses), of.rows)] = found - sums[columns][:, :, None] * of.share
    g1 = np.maximum(precision - state.g2, _LEAST_NEW * state.g2)
    of_r2, of_rows = (kept * precision - state.g2) / g1, precision / g1
    x_w2 = kept[:, None, None] * state.x_r2 + dual @ space.gram
    return Linear(dual, sums, kept, g1, of_r2, of_rows, x_w2)


def denoise(
    space: RowSpace, linear: Linear, state: State, damping: float, neighbours: Neighbours | None
) -> None:
    """Give the linear step's weights to the prior: writes r1, g1, r2, w, pi and their scores.

    ``damping`` is the size of the step of r1 and g1.
    """
    n_columns, n_responses, n_features = state.w.shape
    state.g1 = linear.g1**damping * state.g1 ** (1 - damping)
    of_r2, of_rows = (damping * each[:, None, None] for each in (linear.of_r2, linear.of_rows))
    state.x_r1 *= 1 - damping
    state.x_r1 += of_r2 * state.x_r2 + of_rows * (linear.x_w2 - linear.kept[:, None, None] * state.x_r2)
    _follow_neighbours(state, neighbours)
    dual = linear.dual.reshape(n_columns * n_responses, -1).astype(space.dtype)
    fused = space.dtype == np.float32 and is_worth_it(math.prod(state.w.shape) * len(space.gram))
    make = _fused_step if fused and _is_central(state.slab) else _plain_step
    step = make(state, 1 - damping, damping * linear.of_r2, damping * linear.of_rows)

    @np.errstate(all="ignore")  # what is not finite is seen afterwards
    def visit(at: slice) -> tuple[NDArray, Array]:
        rows, scale = space.rows(at), space.inverse_scale[at]
        adjoint = np.asarray(dual @ rows).reshape(n_columns, n_responses, -1)
        variance = step(at, adjoint, scale)
        return np.asarray(rows @ adjoint.reshape(len(dual), -1).T), variance

    x_w, variance = np.zeros((state.x_w.shape[2], len(dual))), np.zeros(n_columns)
    blocks = [slice(0, n_features)] if space.is_sparse else space.blocks()
    with block_threads(len(blocks)) as over_blocks:
        for part, of_block in over_blocks(visit, blocks):
            x_w += part
            variance += of_block
    state.x_w = x_w.T.reshape(state.x_w.shape)
    state.mean_variance = variance / (n_features * n_responses)


def to_next(state: State, damping: float) -> None:
    """Take the prior's message to the linear step: r2 (when X is next passed over) and g2."""
    left = np.clip(state.g1 * state.mean_variance, *_SHARE_OF_PRECISION)
    gain = damping / (1 - left)
    state.next_r2 = np.stack([gain, -gain * left, np.full_like(gain, 1 - damping)])
    state.g2 = (state.g1 * (1 - left) / left) ** damping * state.g2 ** (1 - damping)
    a, b, c = state.next_r2[:, :, None, None]
    state.x_r2 = a * state.x_w + b * state.x_r1 + c * state.x_r2


@np.errstate(all="ignore")  # columns that are not finite are left out
def weight_variances(state: State) -> Array:
    """The posterior variances (B, J, N) of the weights, in the precision of X."""
    out = np.empty_like(state.w)
    for at in some_features(state.w.shape[2]):
        for j, (given, pi) in enumerate(_conditions(state, at)):
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


def _is_central(slab: Any) -> bool:
    return isinstance(slab, Gaussian) and not np.any(slab.mean)


def _fused_step(state: State, keep: float, of_r2: Array, of_rows: Array) -> Step:
    """``_plain_step`` in one compiled pass."""
    n_responses, t, v = state.w.shape[1], 1 / state.g1, state.slab.var
    gain = v / (v + t)
    constant = -n_responses / 2 * np.log1p(v / t)
    kept = np.full_like(gain, keep)
    of_w, of_r1, of_old_r2 = state.next_r2
    slab_var, evidence = n_responses * gain * t, gain / (2 * t)
    given = Factors(of_w, of_r1, of_old_r2, kept, of_rows, of_r2, gain, slab_var, evidence, constant)
    factors = np.stack(given).astype(np.float32)
    odds = logit(np.minimum(state.rate, _SURE))[:, None] if state.log_odds is None else state.log_odds
    odds, kernel = odds.astype(np.float32, copy=False), denoising_kernel()

    def step(at: slice, adjoint: Array, scale: Array) -> Array:
        sums = np.zeros(len(gain))
        kernel(at.start, adjoint, scale, state.w, state.r1, state.r2, state.pi, odds, factors, sums)
        return sums

    return step


def _plain_step(state: State, keep: float, of_r2: Array, of_rows: Array) -> Step:
    """What a pass does with X' dual (B, J, n) of a block, before features of X are scaled.

    It writes r1, r2, w and pi there and the scaled weights to where X' dual was, and sums the variances.
    """
    dtype = state.w.dtype
    a, b, c = state.next_r2.astype(dtype)[:, :, None, None]
    of_r2, of_rows = (each.astype(dtype)[:, None, None] for each in (of_r2, of_rows))

    def step(at: slice, adjoint: Array, scale: Array) -> Array:
        adjoint *= scale
        w, r1, r2 = state.w[:, :, at], state.r1[:, :, at], state.r2[:, :, at]
        r2 *= c
        r2 += a * w
        r2 += b * r1
        r1 *= dtype.type(keep)
        r1 += of_rows * adjoint
        r1 += of_r2 * r2
        variance = np.zeros(len(w))
        for j, (given, pi) in enumerate(_conditions(state, at)):
            mean, var = BernoulliPosterior(given, pi).moments()
            w[:, j] = mean.T
            variance += var.sum(axis=0, dtype=float)
        state.pi[:, at] = pi.T
        np.multiply(w, scale, out=adjoint)
        return variance

    return step


def _conditions(state: State, at: slice) -> list[tuple[Any, Array]]:
    """Of each response, the slab's posterior of the weights (n, B) of some features, and their inclusion."""
    given = [state.slab.condition(r.T, 1 / state.g1) for r in np.moveaxis(state.r1[:, :, at], 1, 0)]
    odds = logit(np.minimum(state.rate, _SURE)) if state.log_odds is None else state.log_odds[:, at].T
    pi = probability(np.sum([each.log_bayes_factor() for each in given], axis=0), odds)
    return [(each, pi) for each in given]


_RUN = 256  # elements that stay in registers and the first cache between loops
_ONE, _HALF, _ZERO = np.float32(1), np.float32(0.5), np.float32(0)
_MOST = np.float32(50)  # log-odds beyond are certain; products stay clear of denormal numbers
# exp(x) = 2^k exp(f) with f = x - k log 2 in [-log 2 / 2, log 2 / 2], Taylor to the sixth power: 1e-7.
_PER_LOG_2 = np.float32(1 / np.log(2))
_LOG_2_HIGH = np.float32(0.693359375)  # few digits, so that k times it is exact
_LOG_2_LOW = np.float32(np.log(2) - 0.693359375)
_E2, _E3, _E4, _E5, _E6 = (np.float32(1 / f) for f in (2, 6, 24, 120, 720))
_BIAS, _MANTISSA_BITS = np.int32(127), np.int32(23)


class Factors(NamedTuple):
    """Numbers of every column, each (B,) float32."""

    of_w: Array  # r2 = of_w w + of_r1 r1 + of_old_r2 r2
    of_r1: Array
    of_old_r2: Array
    kept_r1: Array  # r1 = kept_r1 r1 + of_rows X' dual + of_r2 r2
    of_rows: Array
    of_r2: Array
    gain: Array  # mean of the slab's posterior over r1
    slab_var: Array  # its variance
    evidence: Array  # log-odds per square of r1
    constant: Array  # log-odds besides


@cache
def denoising_kernel() -> Callable[..., None]:
    """Return the compiled loop; sums may be reordered and products contracted."""
    return compiler("reassoc", "contract", "nsz", "arcp")(_denoise)


def _denoise(
    start: int,
    adjoint: Any,
    scale: Any,
    w: Any,
    r1: Any,
    r2: Any,
    pi: Any,
    log_odds: Any,
    factors: Any,
    sums: Any,
) -> None:
    """``adjoint`` (B, J, n) holds X' dual and gets w times ``scale`` (n,); w, r1, r2 (B, J, N), pi (B, N).

    ``log_odds`` are (B, 1) or (B, N), ``factors`` (10, B); variances are added to ``sums`` (B,) float64.
    """
    n_columns, n_responses, n = adjoint.shape
    is_local = log_odds.shape[1] > 1
    squares, inclusion, change = (
        np.empty(_RUN, np.float32),
        np.empty(_RUN, np.float32),
        np.empty(_RUN, np.float32),
    )
    for b in range(n_columns):
        of_w, of_r1, of_old, kept = factors[0, b], factors[1, b], factors[2, b], factors[3, b]
        of_rows, of_r2, gain, slab_var = factors[4, b], factors[5, b], factors[6, b], factors[7, b]
        evidence, constant = factors[8, b], factors[9, b]
        for first in range(0, n, _RUN):
            size = min(_RUN, n - first)
            at = start + first
            squares[:size] = _ZERO
            for j in range(n_responses):
                given, stretch = adjoint[b, j, first : first + size], scale[first : first + size]
                old_w, old_1, old_2 = (
                    w[b, j, at : at + size],
                    r1[b, j, at : at + size],
                    r2[b, j, at : at + size],
                )
                for i in range(size):
                    two = of_w * old_w[i] + of_r1 * old_1[i] + of_old * old_2[i]
                    change[i] = kept * old_1[i] + of_rows * (given[i] * stretch[i]) + of_r2 * two
                    old_2[i] = two
                for i in range(size):
                    old_1[i] = change[i]
                    squares[i] += change[i] * change[i]
            if is_local:
                own = log_odds[b, at : at + size]
                for i in range(size):
                    change[i] = own[i]
            else:
                change[:size] = log_odds[b, 0]
            total = _ZERO
            for i in range(size):
                x = change[i] + constant + evidence * squares[i]
                x = -max(min(x, _MOST), -_MOST)
                whole = np.floor(x * _PER_LOG_2 + _HALF)
                f = (x - whole * _LOG_2_HIGH) - whole * _LOG_2_LOW
                e = _ONE + f * (_ONE + f * (_E2 + f * (_E3 + f * (_E4 + f * (_E5 + f * _E6)))))
                power = np.int32((np.int32(whole) + _BIAS) << _MANTISSA_BITS).view(np.float32)
                p = _ONE / (_ONE + e * power)
                inclusion[i] = p
                total += p * (slab_var + (_ONE - p) * gain * gain * squares[i])
            sums[b] += total
            kept_pi = pi[b, at : at + size]
            for i in range(size):
                kept_pi[i] = inclusion[i]
            for j in range(n_responses):
                out, stretch = adjoint[b, j, first : first + size], scale[first : first + size]
                new_w, new_1 = w[b, j, at : at + size], r1[b, j, at : at + size]
                for i in range(size):
                    change[i] = inclusion[i] * gain * new_1[i]
                for i in range(size):
                    new_w[i] = change[i]
                    out[i] = change[i] * stretch[i]
