"""How often every row counts: a row of weight k is k copies of the row.

The output step of a row is that of one copy; its weight multiplies whatever is summed over rows.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .moments import Array

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
