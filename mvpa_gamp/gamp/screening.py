"""Max-sum GAMP on the features that matter: solve a small problem, check all the others, add what was missed.

A sparse penalty leaves most weights at exactly zero, and a zero weight with zero variance contributes
nothing to any product. So the fixed point on a working set of features is the fixed point on all of
them as soon as no other feature wants to leave zero: one pass over X tells.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..parallel import each_block
from .blocks import Block
from .design import Design
from .iteration import curvature_floor
from .moments import Array, floored
from .parameters import Models
from .result import GampResult
from .settings import SolverSettings
from .solve import Progress, checked_labels, run
from .starts import slopes_at_zero
from .training_elements import counted

_SMALLEST_SET = 400  # below this many features a smaller problem is not faster
_MAX_ROUNDS = 20
_LARGEST = 1e30  # that float32 holds: float64 pseudo-variances of almost separated data go beyond


def solve_screened(
    design: Design,
    y: Any,
    likelihood: Any,
    prior: Any,
    settings: SolverSettings,
    *,
    warm: GampResult | None = None,
    callback: Callable[[Progress], None] | None = None,
) -> GampResult:
    """The result of ``solve`` in max-sum mode, at the cost of the features that any column uses."""
    labels = checked_labels(y, design)
    n_iter = np.zeros(design.shape[2], dtype=int)
    features = _first_guess(design, labels, likelihood, warm)
    for _ in range(_MAX_ROUNDS):
        small = design.restrict(features, np.float64)  # small enough for full precision
        begin = None if warm is None else _restricted(warm, features)
        part, models = run(small, labels, likelihood, prior, settings, warm=begin, callback=callback)
        n_iter = n_iter + part.n_iter
        warm = _completed(design, part, labels, models, features)
        missed = _most_missed(warm, features)
        if not missed.size:
            break
        features = np.union1d(features, missed)
    assert warm is not None
    return replace(warm, n_iter=n_iter)


def _first_guess(design: Design, y: Array, likelihood: Any, warm: GampResult | None) -> NDArray:
    """Features with a weight in the warm start, filled up with those whose slope at zero is largest."""
    slopes = design.counted_and_centered(slopes_at_zero(design, y, likelihood)).astype(design.dtype)
    size = np.empty(design.shape[1])

    def visit(block: Block) -> None:
        size[block.features] = np.abs(block.adjoint(slopes)).max(axis=1)

    each_block(design, visit)
    if warm is not None:
        size[(warm.coef != 0).any(axis=1)] = np.inf
    wanted = max(_SMALLEST_SET, int(2 * np.isinf(size).sum()))
    return np.sort(np.argsort(-size, kind="stable")[:wanted])


def _completed(design: Design, part: GampResult, y: Array, models: Models, features: NDArray) -> GampResult:
    """The restricted result with r, tau_r and the proximal step of all the other features filled in."""
    s, tau_s = models.likelihood.prox_score(y, part.p, floored(part.tau_p))
    s, tau_s = (np.where(design.train, value, 0.0) for value in (s, tau_s))
    tau_s = counted(np.maximum(tau_s, 0.0), design.row_counts)
    floor = curvature_floor(design, tau_s, counted(np.square(s), design.row_counts))
    s, tau_s = design.counted_and_centered(s).astype(design.dtype), tau_s.astype(design.dtype)
    shape = (design.shape[1], design.shape[2])
    coef, coef_var, r, tau_r = (np.zeros(shape, dtype=design.dtype, order="F") for _ in range(4))

    def visit(block: Block) -> None:
        at = block.features
        adjoint, curvature = block.adjoint_pair(s, tau_s)
        tau_r[at] = 1 / np.maximum(curvature, floor)
        r[at] = tau_r[at] * adjoint
        coef[at], coef_var[at] = models.prior.prox(r[at], tau_r[at])

    each_block(design, visit)
    inside = (part.coef, part.coef_var, part.r, part.tau_r)
    for whole, values in zip((coef, coef_var, r, tau_r), inside, strict=True):
        whole[features] = np.clip(values, -_LARGEST, _LARGEST)
    return replace(part, coef=coef, coef_var=coef_var, r=r, tau_r=tau_r)


def _most_missed(result: GampResult, features: NDArray) -> NDArray:
    """Features outside the set that want to leave zero; the strongest, at most as many as are in it.

    A run that has not settled yet misses many that a settled one would not.
    """
    wish = np.abs(result.coef).max(axis=1)
    wish[features] = 0
    missed = np.flatnonzero(wish)
    return missed[np.argsort(-wish[missed], kind="stable")[: features.size]]


def _restricted(result: GampResult, features: NDArray) -> GampResult:
    names = ("coef", "coef_var", "r", "tau_r")
    return replace(result, **{name: np.asfortranarray(getattr(result, name)[features]) for name in names})
