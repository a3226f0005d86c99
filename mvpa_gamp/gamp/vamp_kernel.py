"""The prior's part of a VAMP iteration for Gaussian slabs around zero, in one compiled pass over float32.

The same formulas as ``vamp_steps.py`` and ``priors/bernoulli.py``. Precision and slab are one number per
column, so an element takes one division and one exponential, which the compiler turns into vector
instructions.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from .compiled import compiler
from .moments import Array

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
