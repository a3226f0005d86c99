"""Where tuning begins when nothing is known: the same start whatever the scale of X.

Every start gives the scores the same prior variance, so multiplying X by a number divides the weights
by it and changes nothing else.
"""

from typing import Any

import numpy as np

from ..parallel import block_threads
from .design import Design
from .moments import Array, floored
from .parameters import with_parameters
from .priors import PRIORS, Laplace
from .solve import checked_labels
from .training_elements import counted

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
