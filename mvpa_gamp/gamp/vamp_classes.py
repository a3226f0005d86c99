"""Classes by VAMP: their targets, the noise of groups of rows, and what scores say about pairs of classes."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import helmert

from ..coupling import class_pairs
from .moments import Array
from .vamp import VampResult, VampSettings

# Share of the scores' variance that is added to each direction, for classes of few rows.
_LEAST_SPREAD = 1e-4
_ONE_ROW_PER_CLASS = (0.0, 0.3)  # rho and white; white from 0.03 to 0.3 decodes contrast maps alike
_LEAST_SLOPE = 1e-3  # of log-odds in scores: left-out scores at or below chance tell nothing


def class_targets(codes: NDArray, train: NDArray, n_classes: int) -> NDArray:
    """Targets (M, B, J) of class numbers (M, B): J = K - 1 Helmert contrasts, +1 and -1 for two classes."""
    contrasts = helmert(n_classes).T if n_classes > 2 else np.array([[1.0], [-1.0]])
    return np.where(train[:, :, None], contrasts[np.where(train, codes, 0)], 0.0)


def noise_levels(settings: VampSettings, groups: NDArray, Y: NDArray, train: NDArray) -> NDArray:
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


def rank_matched(inclusion: NDArray) -> NDArray:
    """The K features of largest inclusion probability in every column (N, B), K their rounded sum, not 0.

    >>> import numpy as np
    >>> from mvpa_gamp.gamp.vamp_classes import rank_matched
    >>> rank_matched(np.array([[0.4], [0.45], [0.3], [0.35]]))[:, 0].tolist()
    [True, True, False, False]
    """
    support = np.zeros(inclusion.shape, dtype=bool)
    for column, pi in enumerate(inclusion.T):
        size = max(1, round(float(pi.sum(dtype=float))))
        least = np.partition(pi, -size)[-size]
        chosen = pi > least
        chosen[np.flatnonzero(pi == least)[: size - np.count_nonzero(chosen)]] = True  # ties: the first ones
        support[:, column] = chosen
    return support


def runs_or_rows(runs: NDArray, train: NDArray) -> NDArray:
    """The runs as numbers, or the rows where some column trains on one run only."""
    codes = np.unique(runs, return_inverse=True)[1]
    several = all(np.ptp(codes[column]) > 0 for column in train.T)
    return codes if several else np.arange(len(codes))


class PairTurns(NamedTuple):
    """The log-odds of every pair's first class as linear functions of a fit's scores."""

    slopes: NDArray  # (B, J, P)
    offsets: NDArray  # (B, P)

    def decision(self, scores: NDArray) -> NDArray:
        """Log-odds (M, B, P) from scores (M, B, J)."""
        return np.einsum("mbj,bjp->mbp", scores, self.slopes) + self.offsets

    def weights(self, found: VampResult) -> tuple[Array, Array, NDArray]:
        """Weights and their standard deviations (N, B, P), and intercepts (B, P): X weights + intercepts."""
        slopes = self.slopes.astype(found.coef.dtype)
        coef = np.einsum("nbj,bjp->nbp", found.coef, slopes)
        variance = np.einsum("nbj,bjp->nbp", found.coef_var, np.square(slopes))
        intercept = np.einsum("bj,bjp->bp", found.intercept, self.slopes) + self.offsets
        return coef, np.sqrt(variance), intercept


def pair_turns(left_out: NDArray, codes: NDArray, counts: NDArray, n_classes: int) -> PairTurns:
    """Learn from the left-out scores (M, B, J) of training rows what scores say about classes.

    ``codes`` (M, B) are class numbers where ``counts`` (M, B), how often a row counts, is above zero.
    """
    if n_classes == 2:
        shift, slope = calibrated(left_out[:, :, 0], np.where(codes == 0, 1.0, -1.0) * (counts > 0), counts)
        return PairTurns(slope[:, None, None], (-slope * shift)[:, None])
    first, second = np.array(class_pairs(n_classes)).T
    every = [
        _discriminant(left_out[rows, b], codes[rows, b], counts[rows, b])
        for b, rows in enumerate(counts.T > 0)
    ]
    slopes = [each.slopes[:, first] - each.slopes[:, second] for each in every]
    return PairTurns(
        np.stack(slopes), np.stack([each.offsets[first] - each.offsets[second] for each in every])
    )


def calibrated(left_out: NDArray, Y: NDArray, counts: NDArray) -> tuple[NDArray, NDArray]:
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
