"""L1 logistic regression along a path of penalties, blocks of fits side by side on the cores."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..threads import block_threads
from .l1_working_set import Fits, Settings, null_fits, solve_block

_FITS_PER_BLOCK = 40  # fixed, so that results do not depend on the number of cores

Result = TypeVar("Result")


def solve_path(X: Any, labels: NDArray, lambdas: NDArray, settings: Settings) -> list[Fits]:
    """Solve every fit for a descending sequence of its own penalties, each from the one before.

    labels (U, M) are -1/+1 on training rows and 0 elsewhere; lambdas is (G, U). Returns G records.
    """

    def path(block: slice) -> list[Fits]:
        fits = [null_fits(labels[block], X.shape[1], settings.fit_intercept)]
        for lam in lambdas[:, block]:
            fits.append(solve_block(X, labels[block], lam, fits[-1], settings))
        return fits[1:]

    return [join(parts) for parts in zip(*_over_blocks(path, len(labels)), strict=True)]


def solve(X: Any, labels: NDArray, lam: NDArray, start: Fits, settings: Settings) -> Fits:
    """Solve every fit for its penalty lam (U,) from ``start``."""

    def one(block: slice) -> Fits:
        return solve_block(X, labels[block], lam[block], start.take(block), settings)

    return join(_over_blocks(one, len(labels)))


def join(parts: Sequence[Fits]) -> Fits:
    """Put fits of the same X one after the other."""
    coef = sparse.vstack([part.coef for part in parts], format="csr")
    return Fits(coef, *(np.concatenate(arrays) for arrays in zip(*(part[1:] for part in parts), strict=True)))


def _over_blocks(work: Callable[[slice], Result], n_fits: int) -> list[Result]:
    """Call ``work`` on slices of the fits, side by side."""
    blocks = [slice(start, start + _FITS_PER_BLOCK) for start in range(0, n_fits, _FITS_PER_BLOCK)]
    with block_threads(len(blocks), per_thread=1) as over_blocks:
        return list(over_blocks(work, blocks))
