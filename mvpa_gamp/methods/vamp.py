"""VAMP in row space as a method of the tables: folds share one Gram matrix and every pass over X."""

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ..gamp import RowSpace, VampResult, VampSettings, solve_vamp, training_sets
from ..gamp.neighbours import Neighbours
from ..gamp.parameters import parameters
from ..gamp.starts import named_prior
from ..gamp.vamp_classes import (
    calibrated,
    class_targets,
    noise_levels,
    pair_turns,
    rank_matched,
    runs_or_rows,
)
from .fold_fits import (
    RANGAN_2019,
    ClassWeight,
    FoldFits,
    FoldInput,
    check_class_weight,
    check_fold_input,
    row_weights,
)

# What counts as selected, for sidecars and pages; methods without these words select by a threshold.
BUDGET = "a budget: the largest posterior inclusion probabilities, as many as these sum to"


@dataclass(frozen=True)
class VampMethod:
    """Bernoulli prior and Gaussian likelihood of the labels -1 and +1, with a map of its own for every run.

    Every run (``runs``) may deviate from the common weights; with a single run per fit, every row stands for
    itself. Voxels are divided by their standard deviation over all rows. The K voxels of largest inclusion
    probability count as selected, K being the rounded sum of these probabilities: as the rate of the prior is
    fixed, that is a budget. Probabilities are calibrated on the scores of training rows by the other runs.
    ``class_weight`` multiplies the weight of a row: None, "balanced", or {-1: , 1: }.

    >>> import numpy as np
    >>> from mvpa_gamp.methods import METHODS
    >>> runs, y = np.repeat(np.arange(6), 8), np.tile(np.repeat([1, -1], 4), 6)
    >>> X = np.random.default_rng(0).standard_normal((48, 20)) + y[:, None] * (np.arange(20) == 5)
    >>> fits = METHODS["vamp-bg"].fit_folds(X, y, runs[:, None] != np.unique(runs), runs)
    >>> fits.support.shape, bool(fits.support[5].all()), fits.status[0]
    ((20, 6), True, 'Converged: the two estimates of the weights agree.')
    >>> from mvpa_gamp.methods import VampMethod
    >>> VampMethod(name="mine", label="Mine", description="Weights of rare voxels.").has_posterior
    True
    """

    name: str
    label: str
    description: str
    prior: str = "bernoulli-gaussian"
    settings: VampSettings = field(default_factory=VampSettings)
    uses_connectivity: bool = False
    reference: str = RANGAN_2019
    short_reference: str = "Rangan et al., 2019"
    class_weight: ClassWeight = None

    intercept = "free"
    selected_if = BUDGET
    has_posterior = True
    is_batched = True

    def __post_init__(self) -> None:
        check_class_weight(self.class_weight)
        if not named_prior(self.prior).has_atom:
            raise ValueError(
                f"A VAMP method needs a prior that is zero with some probability, got {self.prior!r}. Use "
                "'bernoulli-gaussian' or another Bernoulli prior."
            )

    def fit_folds(
        self,
        X: Any,
        y: NDArray,
        train: NDArray,
        runs: NDArray,
        connectivity: Any = None,
        weights: Any = None,
    ) -> FoldFits:
        """Fit one classifier per column of ``train``; see ``FoldFits`` for the contract.

        ``weights`` (M,) or (M, B) are how often each training row counts; None: once. Class weights
        multiply them.
        """
        began = time.perf_counter()
        data = check_fold_input(X, y, train, runs)
        counts = self._counts(data.Y, weights)
        found = self._solved(data, data.Y, counts, connectivity)
        shift, slope = calibrated(found.left_out[:, :, 0], data.Y, counts)
        decision = found.z[:, :, 0] - shift
        return FoldFits(
            coef=found.coef[:, :, 0],
            intercept=found.intercept[:, 0] - shift,
            support=rank_matched(found.inclusion),
            status=tuple(str(sentence) for sentence in found.status),
            converged=found.converged,
            n_iter=found.n_iter,
            seconds=time.perf_counter() - began,
            parameters=_parameters(found) | {"slope": slope},
            decision=decision,
            proba=expit(slope * decision),
            coef_std=np.sqrt(found.coef_var[:, :, 0]),
            inclusion=found.inclusion,
        )

    @property
    def joins_classes(self) -> bool:
        """Whether ``fit_classes`` can be asked: weights of the two classes of a pair say nothing of more."""
        return self.class_weight in (None, "balanced")

    def fit_classes(
        self, X: Any, codes: NDArray, train: NDArray, runs: NDArray, connectivity: Any = None
    ) -> FoldFits:
        """Fit the K > 2 classes of every column in one go: all voxels' weights share their inclusions.

        ``codes`` (M, B) are class numbers 0..K-1, ``train`` (M, B) the training rows, of all classes. A
        column is a fit of K - 1 responses, Helmert contrasts of the classes. A linear discriminant, trained
        on the scores of training rows by the other runs, turns them into log-probabilities of the classes.
        The record has a column per pair of classes, P for each of the B fits in turn: what is said about a
        pair follows from the classes' log-probabilities, so that coupling the pairs gives back the
        probabilities of the classes.
        """
        began = time.perf_counter()
        n_classes = int(codes[train].max()) + 1
        signs = np.where(train, np.where(codes == 0, 1.0, -1.0), 0.0)
        data = check_fold_input(X, signs, train, runs)
        counts = _class_counts(codes, train, n_classes, self.class_weight == "balanced")
        found = self._solved(data, class_targets(codes, train, n_classes), counts, connectivity)
        turns = pair_turns(found.left_out, codes, counts, n_classes)
        decision = turns.decision(found.z)
        coef, coef_std, intercept = turns.weights(found)
        n_pairs, flat = turns.offsets.shape[1], (-1, turns.offsets.size)
        return FoldFits(
            coef=coef.reshape(flat),
            intercept=intercept.ravel(),
            support=np.repeat(rank_matched(found.inclusion), n_pairs, axis=1),
            status=tuple(str(sentence) for sentence in np.repeat(found.status, n_pairs)),
            converged=np.repeat(found.converged, n_pairs),
            n_iter=np.repeat(found.n_iter, n_pairs),
            seconds=time.perf_counter() - began,
            parameters={name: np.repeat(value, n_pairs) for name, value in _parameters(found).items()},
            decision=decision.reshape(flat),
            proba=expit(decision).reshape(flat),
            coef_std=coef_std.reshape(flat),
            inclusion=np.repeat(found.inclusion, n_pairs, axis=1),
        )

    def _solved(self, data: FoldInput, Y: NDArray, counts: NDArray, connectivity: Any) -> VampResult:
        """The fits to targets Y (M, B) or (M, B, J)."""
        space, settings = RowSpace(data.X), self.settings
        neighbours = self._neighbours(connectivity, space)
        groups = runs_or_rows(data.runs, data.train)
        rho, white = noise_levels(settings, groups, Y, data.train)
        sets = training_sets(space, data.train, groups, rho, white, counts)
        return solve_vamp(space, sets, Y, settings, named_prior(self.prior).slab, neighbours)

    def _counts(self, Y: NDArray, weights: Any) -> NDArray:
        """How often each row counts in each column, 0 off training."""
        of_class = row_weights(Y, self.class_weight)
        return of_class if weights is None else of_class * np.asarray(weights, float).reshape(len(Y), -1)

    def _neighbours(self, connectivity: Any, space: RowSpace) -> Neighbours | None:
        if not self.uses_connectivity:
            return None
        if connectivity is None:
            raise ValueError(
                f"{self.name} needs to know which features are neighbours, got connectivity=None. Give a "
                "sparse (N, N) adjacency: Samples.connectivity, or that of a mask by "
                "sklearn.feature_extraction.image.grid_to_graph. Without a graph use vamp-bg."
            )
        return Neighbours(connectivity, space.shape[1], space.dtype)


def _class_counts(codes: NDArray, train: NDArray, n_classes: int, balanced: bool) -> NDArray:
    """How often each row counts, (M, B): once, or so that classes of a column have equal weights."""
    out = train.astype(float)
    for b, rows in enumerate(train.T):
        sizes = np.bincount(codes[rows, b], minlength=n_classes)
        if not sizes.all():
            raise ValueError(
                f"Every fold needs training rows of all {n_classes} classes, but fold {b} has none of class "
                f"number {int(np.argmin(sizes))}. Leave that fold out, join runs, or leave that class out."
            )
        if balanced:
            out[rows, b] = (rows.sum() / (n_classes * sizes))[codes[rows, b]]
    return out


def _parameters(found: VampResult) -> dict[str, NDArray]:
    slab = {f"prior.slab.{name}": np.asarray(value) for name, value in parameters(found.slab).items()}
    named = {"prior.rate": found.rate, **slab, "noise": found.noise, "gap": found.gap}
    return {name: value for name, value in named.items() if value.ndim == 1}


_HOW = (
    "Vector approximate message passing with a {prior} prior and a Gaussian likelihood of the labels, in "
    "which every run has weights that deviate from the common ones; the inclusion rate, the variance of the "
    "weights and the noise were fixed, without tuning or cross-validation. The voxels with the largest "
    "inclusion probabilities, as many as their sum, count as selected."
)

VAMP_METHODS = (
    VampMethod("vamp-bg", "VAMP BG", _HOW.format(prior="Bernoulli-Gaussian")),
    VampMethod(
        "vamp-sbg",
        "VAMP sBG",
        _HOW.format(
            prior="spatial Bernoulli-Gaussian (whose inclusion rate follows the neighbours of each voxel)"
        ),
        uses_connectivity=True,
    ),
)
