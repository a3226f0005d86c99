"""VAMP in row space as a method of the tables: folds share one Gram matrix and every pass over X."""

import time
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import helmert
from scipy.special import expit

from ..coupling import class_pairs
from ..gamp import RowSpace, VampResult, VampSettings, solve_vamp, training_sets
from ..gamp.neighbours import Neighbours
from ..gamp.parameters import parameters
from ..gamp.starts import named_prior
from .class_weights import ClassWeight, check_class_weight, row_weights
from .fold_fits import FoldFits
from .fold_input import FoldInput, check_fold_input
from .references import RANGAN_2019

# Share of the scores' variance that is added to each direction, for classes of few rows.
_LEAST_SPREAD = 1e-4
_ONE_ROW_PER_CLASS = (0.0, 0.3)  # rho and white; white from 0.03 to 0.3 decodes contrast maps alike
_LEAST_SLOPE = 1e-3  # of log-odds in scores: left-out scores at or below chance tell nothing


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
        _, found = self._solved(data, data.Y, counts, connectivity)
        shift, slope = _calibrated(found.left_out[:, :, 0], data.Y, counts)
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
        pairs = np.array(class_pairs(n_classes))
        signs = np.where(train, np.where(codes == 0, 1.0, -1.0), 0.0)
        data = check_fold_input(X, signs, train, runs)
        counts = _class_counts(codes, train, n_classes, self.class_weight == "balanced")
        contrasts = helmert(n_classes).T  # (K, J)
        Y = np.where(train[:, :, None], contrasts[np.where(train, codes, 0)], 0.0)
        space, found = self._solved(data, Y, counts, connectivity)
        discriminants = [
            _discriminant(found.left_out[rows, b], codes[rows, b], counts[rows, b])
            for b, rows in enumerate(train.T)
        ]
        first, second = pairs.T
        turn = np.stack([(d.slopes[:, first] - d.slopes[:, second]) for d in discriminants])  # (B, J, P)
        offset = np.stack([d.offsets[first] - d.offsets[second] for d in discriminants])  # (B, P)
        each = turn.astype(space.dtype)
        decision = np.einsum("mbj,bjp->mbp", found.z, turn) + offset
        intercept = np.einsum("bj,bjp->bp", found.intercept, turn) + offset
        flat = (-1, intercept.size)
        return FoldFits(
            coef=np.einsum("nbj,bjp->nbp", found.coef, each).reshape(flat),
            intercept=intercept.ravel(),
            support=np.repeat(rank_matched(found.inclusion), len(pairs), axis=1),
            status=tuple(str(sentence) for sentence in np.repeat(found.status, len(pairs))),
            converged=np.repeat(found.converged, len(pairs)),
            n_iter=np.repeat(found.n_iter, len(pairs)),
            seconds=time.perf_counter() - began,
            parameters={name: np.repeat(value, len(pairs)) for name, value in _parameters(found).items()},
            decision=decision.reshape(flat),
            proba=expit(decision).reshape(flat),
            coef_std=np.sqrt(np.einsum("nbj,bjp->nbp", found.coef_var, np.square(each))).reshape(flat),
            inclusion=np.repeat(found.inclusion, len(pairs), axis=1),
        )

    def _solved(
        self, data: FoldInput, Y: NDArray, counts: NDArray, connectivity: Any
    ) -> tuple[RowSpace, VampResult]:
        """The fits to targets Y (M, B) or (M, B, J)."""
        space, settings = RowSpace(data.X), self.settings
        neighbours = self._neighbours(connectivity, space)
        groups = runs_or_rows(data.runs, data.train)
        rho, white = _noise(settings, groups, Y, data.train)
        sets = training_sets(space, data.train, groups, rho, white, counts)
        return space, solve_vamp(space, sets, Y, settings, named_prior(self.prior).slab, neighbours)

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


def rank_matched(inclusion: NDArray) -> NDArray:
    """The K features of largest inclusion probability in every column (N, B), K their rounded sum, not 0.

    >>> import numpy as np
    >>> from mvpa_gamp.methods.vamp import rank_matched
    >>> rank_matched(np.array([[0.4], [0.45], [0.3], [0.35]]))[:, 0].tolist()
    [True, True, False, False]
    """
    support = np.zeros(inclusion.shape, dtype=bool)
    for column, pi in enumerate(inclusion.T):
        size = max(1, round(float(pi.sum(dtype=float))))
        support[np.argsort(-pi, kind="stable")[:size], column] = True
    return support


def runs_or_rows(runs: NDArray, train: NDArray) -> NDArray:
    """The runs as numbers, or the rows where some column trains on one run only."""
    codes = np.unique(runs, return_inverse=True)[1]
    several = all(np.ptp(codes[column]) > 0 for column in train.T)
    return codes if several else np.arange(len(codes))


def _noise(settings: VampSettings, groups: NDArray, Y: NDArray, train: NDArray) -> NDArray:
    """The settings' ``rho`` and ``white``, (2, B), where some group of training rows repeats a class.

    With one row per class the deviating weights of a group cannot be told from noise: there is none of them,
    and less white noise.
    """
    out = np.empty((2, train.shape[1]))
    for b, rows in enumerate(train.T):
        of_class = np.unique(Y[rows, b], axis=0, return_inverse=True)[1].ravel()
        repeats = np.unique(groups[rows] * (of_class.max() + 1) + of_class).size < of_class.size
        out[:, b] = (settings.rho, settings.white) if repeats else _ONE_ROW_PER_CLASS
    return out


def _calibrated(left_out: NDArray, Y: NDArray, counts: NDArray) -> tuple[NDArray, NDArray]:
    """What to subtract from scores, and the slope that turns them into log-odds, each (B,).

    Scores of the two classes are taken for Gaussians of one variance, as left-out scores (M, B) of training
    rows show them. Classes of equal weight have their border at a score of 0: least squares shrinks the
    distance of their means to a share c and leaves their mean at that of the labels, so the border is
    (1 - c) times the mean label, less what the classes' frequencies say.
    """
    shift, slope = np.empty(Y.shape[1]), np.empty(Y.shape[1])
    for b, (scores, y, count) in enumerate(zip(left_out.T, Y.T, counts.T, strict=True)):
        sides = [np.flatnonzero((y * sign > 0) & (count > 0)) for sign in (1, -1)]
        sizes = [count[side].sum() for side in sides]
        means = [np.average(scores[side], weights=count[side]) for side in sides]
        squares = sum(
            float(count[side] @ np.square(scores[side] - mean))
            for side, mean in zip(sides, means, strict=True)
        )
        variance = max(squares / sum(sizes), np.finfo(float).tiny)
        slope[b] = max((means[0] - means[1]) / variance, _LEAST_SLOPE)
        middle = (1 - (means[0] - means[1]) / 2) * (sizes[0] - sizes[1]) / sum(sizes)
        shift[b] = np.clip(middle - np.log(sizes[0] / sizes[1]) / slope[b], -1, 1)
    return shift, slope


class _Discriminant(NamedTuple):
    """Log-probabilities of K classes, up to a common term: scores (J,) @ slopes + offsets."""

    slopes: NDArray  # (J, K)
    offsets: NDArray  # (K,)


def _discriminant(scores: NDArray, codes: NDArray, counts: NDArray) -> _Discriminant:
    """Fisher's discriminant of scores (m, J) of rows of classes ``codes``, counted by ``counts``."""
    classes = range(int(codes.max()) + 1)
    sizes = np.bincount(codes, weights=counts)
    means = np.stack([np.average(scores[codes == k], axis=0, weights=counts[codes == k]) for k in classes])
    spread = scores - means[codes]
    scatter = (spread.T * counts) @ spread / counts.sum()
    scatter += _LEAST_SPREAD * max(np.trace(scatter), np.finfo(float).tiny) * np.eye(len(scatter))
    slopes = np.linalg.solve(scatter, means.T)
    return _Discriminant(slopes, np.log(sizes / sizes.sum()) - np.einsum("kj,jk->k", means, slopes) / 2)


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
