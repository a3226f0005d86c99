"""What is fitted on the training rows of a fold and changes X: whitening, confound regression, or both.

Every fold has an X of its own then. It depends on the fold's training rows, on block boundaries and on
covariates, never on labels: so a fold's X serves all comparisons, methods and permutations of that fold, and
a permutation test that prepares X once per fold is the same, to the bit, as one that prepares it for every
permutation.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from .folds import Folds
from .whitening import whitened_folds


class FittedPreparation(Protocol):
    """A preparation as the training rows of one fold decide it."""

    @property
    def mixes(self) -> bool:
        """Whether a prepared column is a mixture of voxels rather than one voxel."""

    def apply(self, X: Any, covariates: Any = None) -> NDArray:
        """Prepared rows (m, N) of any X (m, N), of X's type; ``covariates`` (m, C) are those of its rows."""

    def back(self, coef: Any) -> NDArray:
        """Weights (N,) or (N, B) of voxels, from weights of prepared columns."""


class PreparedFold(NamedTuple):
    """Some rows of X as one fold prepares them."""

    X: NDArray  # (m, N) what methods are fitted to
    voxels: NDArray  # (m, N) the same while each column is still one voxel: patterns are of these
    fitted: FittedPreparation


class Preparation(Protocol):
    """A preparation of X, fitted in every fold; it is given all rows of the study, of all conditions."""

    def folds(self, X: Any, train: NDArray, rows: Any = None) -> Iterator[PreparedFold]:
        """One after the other, the fit of every column of ``train`` (M, F) and ``rows`` (m,) of X by it.

        Rows that do not train have no influence on the fit. ``rows`` None: all M.
        """


@dataclass(frozen=True, eq=False)
class NoiseWhitening:
    """Noise whitening (``fit_whitening``) as a preparation; ``blocks`` (M,) names the block of every row."""

    blocks: Any

    def folds(self, X: Any, train: NDArray, rows: Any = None) -> Iterator[PreparedFold]:
        """Whitened rows, fold by fold; the Gram matrix of X is computed once."""
        measured = np.asarray(X) if rows is None else np.asarray(X)[rows]
        for whitening, white in whitened_folds(X, self.blocks, train, rows):
            yield PreparedFold(white, measured, whitening)


@dataclass(frozen=True, eq=False)
class InSequence:
    """Preparations one after the other, each fitted to what the ones before it leave of the training rows.

    >>> import numpy as np
    >>> from mvpa_gamp.decoding import FoldConfounds, InSequence, NoiseWhitening
    >>> rng, train = np.random.default_rng(0), np.arange(60)[:, None] < 50
    >>> both = InSequence(FoldConfounds(rng.standard_normal((60, 2))), NoiseWhitening(np.arange(60) // 5))
    >>> next(both.folds(rng.standard_normal((60, 8)), train)).X.shape
    (60, 8)
    """

    first: Preparation
    then: Preparation

    def folds(self, X: Any, train: NDArray, rows: Any = None) -> Iterator[PreparedFold]:
        """Rows prepared by both; two matrices of the size of X are held at a time."""
        for column, one in enumerate(self.first.folds(X, train)):
            two = next(self.then.folds(one.X, train[:, [column]], rows))
            yield two._replace(fitted=_Both(one.fitted, two.fitted))


class _Both(NamedTuple):
    first: FittedPreparation
    then: FittedPreparation

    @property
    def mixes(self) -> bool:
        return self.first.mixes or self.then.mixes

    def apply(self, X: Any, covariates: Any = None) -> NDArray:
        return self.then.apply(self.first.apply(X, covariates), covariates)

    def back(self, coef: Any) -> NDArray:
        return self.first.back(self.then.back(coef))


def in_sequence(steps: Sequence[Preparation | None]) -> Preparation | None:
    """All preparations that are not None, in their order; None where there is none."""
    asked = [step for step in steps if step is not None]
    together = asked[0] if asked else None
    for step in asked[1:]:
        together = InSequence(together, step)  # type: ignore[arg-type]  # the first one is there
    return together


def prepared_by_all(preparation: Preparation, X: Any, rows: Any = None) -> PreparedFold:
    """Rows of X (M, N) prepared by all M rows, as for the refit: nothing is held out.

    >>> import numpy as np
    >>> from mvpa_gamp.decoding import NoiseWhitening, prepared_by_all
    >>> X = np.random.default_rng(0).standard_normal((60, 4)) * [1, 2, 5, 10]
    >>> prepared = prepared_by_all(NoiseWhitening(np.arange(60) // 5), X, rows=np.arange(6))
    >>> prepared.X.shape, np.allclose(prepared.X, prepared.fitted.apply(X[:6]))
    ((6, 4), True)
    """
    return next(preparation.folds(X, np.ones((len(X), 1), dtype=bool), rows))


def folds_of_rows(folds: Folds, rows: NDArray, every_fold: bool = False) -> tuple[Folds, NDArray]:
    """The folds of a comparison on ``rows`` (m,), and which folds of the study (F,) bool hold some of it out.

    ``every_fold`` keeps those that hold out nothing of it as well.

    >>> from mvpa_gamp.decoding import leave_one_run_out
    >>> own, mine = folds_of_rows(leave_one_run_out([1, 1, 2, 2, 3]), np.array([0, 1, 2]))
    >>> own.held_out.tolist(), mine.tolist()
    ([1, 2], [True, True, False])
    """
    mine = folds.tested[rows].any(axis=0) | every_fold
    return Folds(folds.train[rows][:, mine], folds.tested[rows][:, mine], folds.held_out[mine]), mine
