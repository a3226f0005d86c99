"""The Bernoulli-Gaussian step of one block in a single compiled pass.

The same formulas as ``bernoulli.py`` and ``gaussian.py``, ordered so that every element takes
two divisions, one exponential and one logarithm. In float32 the compiler turns all of them into vector
instructions, and sums are taken over short runs in float32 and over runs in float64. In float64 the
exponential and the logarithm are the library's, to the last digit.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from mvpa_gamp.gamp.compiled import compiler
from mvpa_gamp.gamp.moments import Array
from mvpa_gamp.gamp.priors.gaussian import Gaussian
from mvpa_gamp.gamp.scalar_steps import BlockStep, StepFunction, Weights

_SUMS = ("slab.count", "slab.first", "slab.second")


def bernoulli_gaussian_step(log_odds: Array, slab: Gaussian) -> StepFunction:
    """The fused step of a Bernoulli prior with a Gaussian slab, the slab's parameters one per column.

    ``log_odds`` of the rate are (1, B), or (N, B) where every weight has its own.
    """

    def step(
        last: Weights, new: Weights, at: slice, adjoint: Array, precision: Array, step_size: Array
    ) -> BlockStep:
        dtype = adjoint.dtype
        kernel = _kernel() if dtype == np.float32 else _double_kernel()
        of_slab = [np.asarray(part, dtype=dtype) for part in (slab.mean, slab.var)]
        odds = np.ascontiguousarray(log_odds.T, dtype=dtype)
        tau_w = np.empty(adjoint.shape[::-1], dtype=dtype)
        sums = np.zeros((6, step_size.size))
        weights = (part.T for part in (last.w, last.w_damped, *new))
        given = (np.ascontiguousarray(adjoint.T), np.ascontiguousarray(precision.T))
        kernel(*given, *weights, tau_w, sums, at.start, step_size, odds, *of_slab)
        counted = {"count": np.full(step_size.size, float(len(adjoint)))}
        return BlockStep(tau_w.T, counted | dict(zip(_SUMS, sums[:3], strict=True)), sums[3:])

    return step


@cache
def _kernel() -> Callable[..., None]:
    """Sums may be reordered and products contracted; NaN and infinity keep their meaning."""
    return compiler("reassoc", "contract", "nsz", "arcp")(_bernoulli_gaussian)


@cache
def _double_kernel() -> Callable[..., None]:
    return compiler("contract", "nsz")(_bernoulli_gaussian_double)


_RUN = 256  # elements summed in float32
_ONE, _HALF, _ZERO = np.float32(1), np.float32(0.5), np.float32(0)
# Log-odds below this are nothing: products with such probabilities stay clear of denormal numbers.
_LEAST_LOG_ODDS = np.float32(-50)
# exp(x) = 2^k exp(f) with f = x - k log 2 in [-log 2 / 2, log 2 / 2], Taylor to the seventh power: 5e-9.
_PER_LOG_2 = np.float32(1 / np.log(2))
_LOG_2_HIGH = np.float32(0.693359375)  # few digits, so that k times it is exact
_LOG_2_LOW = np.float32(np.log(2) - 0.693359375)
_E2, _E3, _E4, _E5, _E6, _E7 = (np.float32(1 / f) for f in (2, 6, 24, 120, 720, 5040))
_BIAS, _MANTISSA_BITS = np.int32(127), np.int32(23)
# log(d) = k log 2 + log(m) with m in [1/sqrt 2, sqrt 2), and log(m) = 2 atanh(t), t = (m - 1) / (m + 1).
_MANTISSA, _ONE_BITS = np.int32(0x7FFFFF), np.int32(0x3F800000)
_SQRT_2 = np.float32(np.sqrt(2))
_LOG_2, _TWO = np.float32(np.log(2)), np.float32(2)
_L3, _L5, _L7, _L9 = (np.float32(1 / f) for f in (3, 5, 7, 9))


def _bernoulli_gaussian(
    adjoint: Any,
    precision: Any,
    last_w: Any,
    last_w_damped: Any,
    new_w: Any,
    new_w_damped: Any,
    new_r: Any,
    new_tau_r: Any,
    new_pi: Any,
    tau_w: Any,
    sums: Any,
    start: int,
    step_size: Any,
    log_odds: Any,
    mean: Any,
    var: Any,
) -> None:
    """Rows are columns of the problem: adjoint, precision, tau_w (B, n); weights (B, N) from ``start`` on.

    ``log_odds`` are (B, 1) or (B, N); inclusions go to ``new_pi`` (B, N) unless it is (B, 0).
    """
    n_columns, n = adjoint.shape
    is_local, keeps_pi = log_odds.shape[1] > 1, new_pi.shape[1] > 0
    # Weights may be damped in place; arrays of its own let the compiler see that nothing else overlaps.
    damped_run, odds_run = np.empty(_RUN, np.float32), np.empty(_RUN, np.float32)
    pi_run = np.empty(_RUN, np.float32)
    for b in range(n_columns):
        share, rest = step_size[b], _ONE - step_size[b]
        mu, v = mean[b], var[b]
        odds_run[:] = log_odds[b, 0]
        old, old_damped = last_w[b, start : start + n], last_w_damped[b, start : start + n]
        out_w, out_damped = new_w[b, start : start + n], new_w_damped[b, start : start + n]
        out_r, out_tau = new_r[b, start : start + n], new_tau_r[b, start : start + n]
        slopes, precisions, out_var = adjoint[b], precision[b], tau_w[b]
        for first in range(0, n, _RUN):
            count, first_sum, second_sum = _ZERO, _ZERO, _ZERO
            change, size, information = _ZERO, _ZERO, _ZERO
            last = min(first + _RUN, n)
            for j in range(first, last):
                damped_run[j - first] = share * old[j] + rest * old_damped[j]
            if is_local:  # by elements: the message about shapes that differ takes long to compile
                own_odds = log_odds[b, start + first : start + last]
                for j in range(own_odds.size):
                    odds_run[j] = own_odds[j]
            for j in range(first, last):
                c = precisions[j]
                tau = _ONE / c
                damped = damped_run[j - first]
                r = damped + tau * slopes[j]
                # Slab: gain var / (var + tau_r), with d = (var + tau_r) / tau_r.
                d = v * c + _ONE
                q = _ONE / d
                slab_var = v * q
                slab_mean = slab_var * (c * r) + mu * q
                # Log Bayes factor against w = 0, half of r^2/tau_r - (r - mu)^2/(var + tau_r) - log d.
                bits = np.float32(d).view(np.int32)
                k = (bits >> _MANTISSA_BITS) - _BIAS
                m = np.int32((bits & _MANTISSA) | _ONE_BITS).view(np.float32)
                large = m > _SQRT_2
                m = _HALF * m if large else m
                exponent = np.float32(k) + (_ONE if large else _ZERO)
                t = (m - _ONE) / (m + _ONE)
                tt = t * t
                series = _ONE + tt * (_L3 + tt * (_L5 + tt * (_L7 + tt * _L9)))
                log_d = exponent * _LOG_2 + _TWO * t * series
                evidence = c * q * (v * c * r * r + mu * (_TWO * r - mu)) - log_d
                x = max(odds_run[j - first] + _HALF * evidence, _LEAST_LOG_ODDS)
                # Inclusion 1 / (1 + exp(-x)); exp of a large x would overflow, and is 1 long before.
                x = -min(x, -_LEAST_LOG_ODDS)
                whole = np.floor(x * _PER_LOG_2 + _HALF)
                f = (x - whole * _LOG_2_HIGH) - whole * _LOG_2_LOW
                e = _E4 + f * (_E5 + f * (_E6 + f * _E7))
                e = _ONE + f * (_ONE + f * (_E2 + f * (_E3 + f * e)))
                scale = np.int32((np.int32(whole) + _BIAS) << _MANTISSA_BITS).view(np.float32)
                inclusion = _ONE / (_ONE + e * scale)
                pi_run[j - first] = inclusion
                w = inclusion * slab_mean
                out_w[j], out_damped[j], out_r[j], out_tau[j] = w, damped, r, tau
                out_var[j] = inclusion * (slab_var + (slab_mean - w) * slab_mean)
                gap = slab_mean - mu
                count += inclusion
                first_sum += inclusion * gap
                second_sum += inclusion * (slab_var + gap * gap)
                change += (w - damped) * (w - damped)
                size += w * w
                information += c
            if keeps_pi:
                out_pi = new_pi[b, start + first : start + last]
                for j in range(out_pi.size):
                    out_pi[j] = pi_run[j]
            sums[0, b] += count
            sums[1, b] += first_sum
            sums[2, b] += second_sum
            sums[3, b] += change
            sums[4, b] += size
            sums[5, b] += information


# Products with probabilities below this stay clear of numbers too small to be normal.
_LEAST_DOUBLE = float(np.log(np.finfo(np.float64).tiny) + 8)


def _bernoulli_gaussian_double(
    adjoint: Any,
    precision: Any,
    last_w: Any,
    last_w_damped: Any,
    new_w: Any,
    new_w_damped: Any,
    new_r: Any,
    new_tau_r: Any,
    new_pi: Any,
    tau_w: Any,
    sums: Any,
    start: int,
    step_size: Any,
    log_odds: Any,
    mean: Any,
    var: Any,
) -> None:
    """``_bernoulli_gaussian`` in float64."""
    n_columns, n = adjoint.shape
    is_local, keeps_pi = log_odds.shape[1] > 1, new_pi.shape[1] > 0
    for b in range(n_columns):
        mu, v = mean[b], var[b]
        for j in range(n):
            at = start + j
            c = precision[b, j]
            tau = 1.0 / c
            damped = step_size[b] * last_w[b, at] + (1.0 - step_size[b]) * last_w_damped[b, at]
            r = damped + tau * adjoint[b, j]
            d = v * c + 1.0
            slab_var = v / d
            slab_mean = slab_var * (c * r) + mu / d
            evidence = c / d * (v * c * r * r + mu * (2.0 * r - mu)) - np.log(d)
            x = log_odds[b, at if is_local else 0] + 0.5 * evidence
            inclusion = 1.0 / (1.0 + np.exp(-max(x, _LEAST_DOUBLE)))
            w = inclusion * slab_mean
            gap = slab_mean - mu
            new_w[b, at], new_w_damped[b, at], new_r[b, at], new_tau_r[b, at] = w, damped, r, tau
            tau_w[b, j] = inclusion * (slab_var + (slab_mean - w) * slab_mean)
            if keeps_pi:
                new_pi[b, at] = inclusion
            sums[0, b] += inclusion
            sums[1, b] += inclusion * gap
            sums[2, b] += inclusion * (slab_var + gap * gap)
            sums[3, b] += (w - damped) * (w - damped)
            sums[4, b] += w * w
            sums[5, b] += c
