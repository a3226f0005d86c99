"""The one contract of all methods: rows and folds in, fitted columns out."""

from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray


@dataclass(frozen=True)
class FoldFits:
    """What a method learnt in each of B folds of one X with M rows and N features.

    ``support`` is the paper's notion of a selected feature: a non-zero weight, or, for
    sum-product GAMP, a posterior inclusion probability above one half. ``status`` is a sentence
    per fold. ``proba`` is P(y = +1) for all M rows, NaN for methods without a probability model;
    ``coef_std`` and ``inclusion`` are None for methods without a posterior.
    """

    coef: NDArray  # (N, B)
    intercept: NDArray  # (B,)
    support: NDArray  # (N, B) bool
    status: tuple[str, ...]  # B sentences
    converged: NDArray  # (B,) bool
    n_iter: NDArray  # (B,)
    seconds: float
    parameters: dict[str, NDArray]  # learnt or chosen, each (B,)
    decision: NDArray  # (M, B) X @ coef + intercept, held-out rows included
    proba: NDArray  # (M, B)
    coef_std: NDArray | None = None  # (N, B)
    inclusion: NDArray | None = None  # (N, B)


class Method(Protocol):
    """A ready object: a name, a label for tables, a sentence for the methods text, and ``fit_folds``."""

    @property
    def name(self) -> str:
        """Name in METHODS and on the command line."""
        ...

    @property
    def label(self) -> str:
        """Short name for tables."""
        ...

    @property
    def description(self) -> str:
        """A sentence for the methods text."""
        ...

    def fit_folds(self, X: Any, y: NDArray, train: NDArray, runs: NDArray) -> FoldFits:
        """Fit one classifier per column of ``train`` (M, B); y is (M,) or (M, B) in -1/+1, runs (M,).

        Labels on rows with train = False are never read and may be NaN. ``runs`` serves nested tuning.
        """
        ...
