"""Where a fit begins: parameters when nothing is known, and in max-sum mode the features that matter.

Every start gives the scores the same prior variance, so multiplying X by a number divides the weights
by it and changes nothing else.

A sparse penalty leaves most weights at exactly zero, and a zero weight with zero variance contributes
nothing to any product. So the fixed point on a working set of features is the fixed point on all of
them as soon as no other feature wants to leave zero: one pass over X tells.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..parallel import block_threads, each_block
from .blocks import Block
from .design import Design
from .iteration import curvature_floor
from .moments import Array, floored
from .parameters import Models, with_parameters
from .priors import PRIORS, Laplace
from .result import GampResult
from .scalar_steps import counted
from .settings import SolverSettings
from .solve import Progress, checked_labels, run

# Prior variance of a score. Measured on fMRI and on synthetic data with N >> M: 5 to 50 decode equally
# well; below, the first iterations are too timid to leave zero; above, selection is too eager.
SCORE_VARIANCE = 15.0
# Below what features of a usual scale have in common: X of zeros, which gets a start like any other.
_NO_ENERGY = 1e-26
_NO_SLOPE = 1e-14
# At most one feature in ten, and at most one per two training rows: labels carry one bit each.
LARGEST_RATE = 0.1
FEATURES_PER_ROW = 0.5
# Laplace rate of a max-sum start, as a share of the smallest rate at which all weights are zero: sparse fits
# are the cheap ones, so tuning comes from above.
SHARE_OF_LARGEST_RATE = 0.5


def start(name: str, design: Design, y: Any, likelihood: Any, mode: str) -> Any:
    """A named prior with its start, one value per column; labels tell how large an l1 penalty may be."""
    for model in (likelihood, named_prior(name)):
        model.require_mode(mode)
    prior = start_prior(name, design)
    if mode == "max-sum" and prior.l1_name:
        return with_parameters(prior, {prior.l1_name: start_laplace(design, y, likelihood).rate})
    return prior


def start_prior(name: str, design: Design) -> Any:
    """The start for sum-product GAMP, and of what is not an l1 penalty."""
    prior = named_prior(name)
    n_features, n_train = design.shape[1], design.row_counts.sum(axis=0)
    energy = design.mean_row_energy()
    share: Array | float = 1.0
    if prior.has_atom:
        share = np.minimum(LARGEST_RATE, FEATURES_PER_ROW * n_train / n_features)
        prior = with_parameters(prior, {"rate": share})
    spread = share * energy
    return prior.scaled(np.sqrt(SCORE_VARIANCE / np.where(spread > _NO_ENERGY, spread, 1.0)))


def slopes_at_zero(design: Design, labels: Array, likelihood: Any) -> Array:
    """s of the training rows where all weights are zero, 0 elsewhere, (M, B)."""
    zeros = np.zeros_like(labels)
    return np.where(design.train, likelihood.prox_score(labels, zeros, floored(zeros)).s, 0.0)


def start_laplace(design: Design, y: Any, likelihood: Any) -> Laplace:
    """A Laplace prior for max-sum GAMP: a share of the rate that would keep all weights at zero."""
    labels = checked_labels(y, design)
    slopes = slopes_at_zero(design, labels, likelihood)
    row_counts = design.row_counts
    slopes = counted(slopes, row_counts)
    slopes = slopes - row_counts * (slopes.sum(axis=0) / row_counts.sum(axis=0))  # a free intercept
    largest = np.zeros(labels.shape[1])
    with block_threads(design.n_blocks) as over_blocks:
        for part in over_blocks(
            lambda block: np.abs(block.adjoint(slopes.astype(design.dtype))).max(axis=0), design.blocks()
        ):
            largest = np.maximum(largest, part.astype(float))
    return Laplace(SHARE_OF_LARGEST_RATE * np.maximum(largest, _NO_SLOPE))


def named_prior(name: str) -> Any:
    """The registered prior of this name."""
    if name not in PRIORS:
        raise ValueError(f"Unknown prior {name!r}. Known priors: {', '.join(PRIORS)}.")
    return PRIORS[name]()


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
