"""The one contract of all methods: rows and folds in, fitted columns out."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..gamp.result import FOUND_NOTHING

_BY_ROW = ("decision", "proba", "tested")  # (M, ...): what is known of every row


@dataclass(frozen=True)
class FoldFits:
    """What a method learnt in each of B columns of one X with M rows and N features.

    A column is a fold; after cross-validation the last one is the refit on all rows, and ``held_out`` and
    ``tested`` say what each of the F folds before it holds out. ``support`` is the paper's notion of a
    selected feature: a non-zero weight, or, for sum-product GAMP, a posterior inclusion probability above
    one half. ``status`` is a sentence per column. ``proba`` is P(y = +1) for all M rows, NaN for methods
    without a probability model; ``coef_std`` and ``inclusion`` are None for methods without a posterior.
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
    pattern: NDArray | None = None  # (N, B) Haufe's pattern of each column's training rows
    held_out: NDArray | None = None  # (F,) the run that a fold holds out, or the fold's number
    tested: NDArray | None = None  # (M, F) bool: rows that a fold holds out
    models: NDArray | None = None  # (B,) objects that answer about new rows where coef and intercept do not

    @property
    def n_folds(self) -> int:
        """F, without the refit."""
        return self.coef.shape[1] if self.held_out is None else len(self.held_out)

    @property
    def folds(self) -> "FoldFits":
        """The columns of the folds, without the refit; arrays are views."""
        return self.take(slice(0, self.n_folds))

    @property
    def refit(self) -> "FoldFits":
        """The column of the refit on all rows."""
        return self.take(slice(self.n_folds, None))

    @property
    def failed(self) -> NDArray:
        """Columns (B,) that missed their end; one that found nothing, as permuted labels let it, did not."""
        return ~np.asarray(self.converged) & (np.asarray(self.status) != FOUND_NOTHING)

    @property
    def frequency(self) -> NDArray:
        """Share of folds that selected each feature, (N,)."""
        return self.support[:, : self.n_folds].mean(axis=1)

    def take(self, columns: Any) -> "FoldFits":
        """Some columns, by slice or numbers; what is held out and ``seconds`` stay those of the whole."""
        changes: dict[str, Any] = {
            item.name: getattr(self, item.name)[..., columns]
            for item in fields(self)
            if item.name not in ("held_out", "tested") and isinstance(getattr(self, item.name), np.ndarray)
        }
        chosen = np.arange(self.coef.shape[1])[columns]
        changes["status"] = tuple(self.status[column] for column in chosen)
        changes["parameters"] = {name: value[..., columns] for name, value in self.parameters.items()}
        return replace(self, **changes)

    def replaced(self, columns: NDArray, other: "FoldFits") -> "FoldFits":
        """A copy whose ``columns`` are those of ``other``; what it has no word for is NaN."""

        def put(values: NDArray, new: Any) -> NDArray:
            out = values.copy()
            out[..., columns] = new
            return out

        names = [item.name for item in fields(self) if item.name not in ("held_out", "tested")]
        arrays = {name: value for name in names if isinstance(value := getattr(self, name), np.ndarray)}
        changes: dict[str, Any] = {name: put(old, getattr(other, name)) for name, old in arrays.items()}
        changes["status"] = tuple(put(np.array(self.status, dtype=object), other.status))
        given = other.parameters
        changes["parameters"] = {
            name: put(old.astype(float), given.get(name, np.nan)) for name, old in self.parameters.items()
        }
        return replace(self, seconds=self.seconds + other.seconds, **changes)

    def at(self, rows: NDArray) -> "FoldFits":
        """The same fits, their answers to some rows of X only."""
        known = {name: getattr(self, name) for name in _BY_ROW}
        return replace(self, **{name: value[rows] for name, value in known.items() if value is not None})

    @classmethod
    def join(cls, parts: Sequence["FoldFits"]) -> "FoldFits":
        """Columns of the same X side by side; their times add up."""
        if len(parts) == 1:
            return parts[0]
        changes: dict[str, Any] = {
            item.name: np.concatenate([getattr(part, item.name) for part in parts], axis=-1)
            for item in fields(cls)
            if item.name not in ("held_out", "tested")
            and isinstance(getattr(parts[0], item.name), np.ndarray)
        }
        changes["status"] = tuple(sentence for part in parts for sentence in part.status)
        changes["seconds"] = sum(part.seconds for part in parts)
        changes["parameters"] = {
            name: np.concatenate([part.parameters[name] for part in parts], axis=-1)
            for name in parts[0].parameters
        }
        return replace(parts[0], **changes)


class Method(Protocol):
    """A ready object: a name, a label for tables, a sentence for the methods text, facts, ``fit_folds``."""

    @property
    def name(self) -> str:
        """Name in METHODS and on the command line."""

    @property
    def label(self) -> str:
        """Short name for tables."""

    @property
    def description(self) -> str:
        """A sentence for the methods text."""

    @property
    def reference(self) -> str:
        """The work that describes it, as a paper would list it."""

    @property
    def short_reference(self) -> str:
        """The same as a text would cite it: authors, year."""

    @property
    def intercept(self) -> str:
        """What holds of the intercept: "free", "penalised" or "none"."""

    @property
    def has_posterior(self) -> bool:
        """Whether weights have standard deviations and inclusion probabilities."""

    @property
    def is_batched(self) -> bool:
        """Whether further label vectors are columns of the same solve, without a nested search each."""

    @property
    def uses_connectivity(self) -> bool:
        """Whether it wants to know which features are neighbours."""

    def fit_folds(
        self, X: Any, y: NDArray, train: NDArray, runs: NDArray, connectivity: Any = None
    ) -> FoldFits:
        """Fit one classifier per column of ``train`` (M, B); y is (M,) or (M, B) in -1/+1, runs (M,).

        Labels on rows with train = False are never read and may be NaN. ``runs`` serves nested tuning.
        ``connectivity`` is a sparse (N, N) adjacency of the features, as scikit-learn's ``grid_to_graph``
        makes it; methods without ``uses_connectivity`` ignore it.
        """
