"""How alike the voxels are that different folds select: Jaccard, Kuncheva, Nogueira.

Every function takes ``support``, a boolean (N, B) matrix: rows are features, columns are folds, True
where the fold selected the feature. Overlap alone rewards large supports, so ``jaccard_chance`` says
what random supports of the same sizes would score, and ``kuncheva`` and ``nogueira`` are corrected
for chance (0 for random supports, 1 for equal ones).
"""

from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

_NORMAL_QUANTILE_95 = 1.959963984540054  # two-sided 95 % of a standard normal


class Stability(NamedTuple):
    """Nogueira's estimate with its variance and 95 % confidence limits."""

    estimate: float
    variance: float
    low: float
    high: float


def jaccard(support: ArrayLike) -> float:
    """Return the paper's consistency: the Jaccard index averaged over ordered pairs of folds.

    1/B sum_i 1/(B-1) sum_{j != i} |S_i and S_j| / |S_i or S_j|, for a boolean (N, B) matrix, B >= 2.
    Two empty supports are equal and count as 1.

    Parameters
    ----------
    support
        Boolean (N, B), one column per fold, B >= 2.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> from mvpa_gamp.stability import jaccard
    >>> jaccard([[1, 1], [1, 0], [0, 0], [0, 0]])  # {0, 1} and {0}
    0.5
    """
    return _mean_over_pairs(jaccard_matrix(support))


def jaccard_matrix(support: ArrayLike) -> NDArray[np.floating]:
    """Return the Jaccard indices between all folds.

    Parameters
    ----------
    support
        Boolean (N, B), one column per fold, B >= 2.

    Returns
    -------
    ndarray
        Indices (B, B); the diagonal is 1.
    """
    overlap, size = _overlaps(check_support(support))
    union = size[:, None] + size[None, :] - overlap
    return np.where(union > 0, overlap / np.maximum(union, 1), 1.0)


def jaccard_chance(support: ArrayLike) -> float:
    """Return the expected ``jaccard`` of random supports that have the same sizes as the given ones.

    The overlap k of two independent random sets of sizes a and b among N features is hypergeometric, so
    a pair is expected to score sum_k P(k; N, a, b) k / (a + b - k): exact, no sampling. Two empty
    sets score 1.

    Parameters
    ----------
    support
        Boolean (N, B), one column per fold, B >= 2.

    Returns
    -------
    float
        Between 0 and 1.
    """
    checked = check_support(support)
    sizes = checked.sum(axis=0)
    pairs = [(int(min(a, b)), int(max(a, b))) for a, b in combinations(sizes, 2)]
    expected = {(a, b): _expected_jaccard(checked.shape[0], a, b) for a, b in set(pairs)}
    return float(np.mean([expected[pair] for pair in pairs]))


def kuncheva(support: ArrayLike) -> float:
    """Return Kuncheva's chance-corrected consistency index, averaged over pairs of folds.

    For two supports of the same size k with r features in common it is (r - k^2/N) / (k - k^2/N). Supports
    of unequal sizes a, b use (r - a b/N) / ((a + b)/2 - a b/N), which is Cohen's kappa between the two
    selections and the same number when a = b. Pairs without a defined value (both supports empty, or both
    complete) are left out; NaN when no pair is left.

    Parameters
    ----------
    support
        Boolean (N, B), one column per fold, B >= 2.

    Returns
    -------
    float
        1 for equal supports, 0 by chance; NaN when no pair is left.
    """
    checked = check_support(support)
    n_features = checked.shape[0]
    overlap, size = _overlaps(checked)
    by_chance = np.outer(size, size) / n_features
    room = (size[:, None] + size[None, :]) / 2 - by_chance
    defined = room > 1e-9 * n_features  # zero, up to rounding, for two empty or two complete supports
    np.fill_diagonal(defined, False)
    if not defined.any():
        return float("nan")
    return float(np.mean((overlap - by_chance)[defined] / room[defined]))


def nogueira(support: ArrayLike) -> Stability:
    """Return the stability measure of Nogueira, Sechidis & Brown (JMLR 18(174), 2018) with a 95 % interval.

    estimate = 1 - mean_f s_f^2 / (q (1 - q)), where s_f^2 = B/(B-1) p_f (1 - p_f) is the unbiased variance
    of feature f's selection over folds, p_f its selection frequency and q the mean selected fraction.
    The variance is 4/B^2 sum_i (u_i - mean u)^2 with u_i the influence of fold i (their Theorem 7); the
    interval is the normal one and is not clipped to [-1/(B-1), 1]. It treats folds as independent, which
    overlapping training sets are not: read it as a lower bound of the uncertainty. All NaN when every
    support is empty or every one is complete, where the measure is undefined.

    Parameters
    ----------
    support
        Boolean (N, B), one column per fold, B >= 2.

    Returns
    -------
    Stability
        ``estimate``, ``variance``, and the interval from ``low`` to ``high``.
    """
    checked = check_support(support)
    n_features, n_folds = checked.shape
    frequency = checked.mean(axis=1)
    fraction = checked.mean(axis=0)  # of features, per fold
    q = float(fraction.mean())
    spread = q * (1 - q)
    if spread == 0:
        return Stability(*4 * (float("nan"),))
    unexplained = float(np.mean(frequency * (1 - frequency))) * n_folds / (n_folds - 1)
    estimate = 1 - unexplained / spread
    agreement = (frequency @ checked) / n_features
    influence = (agreement - q * fraction + estimate / 2 * (2 * q * fraction - fraction)) / spread
    variance = 4 / n_folds**2 * float(np.sum((influence - influence.mean()) ** 2))
    half_width = _NORMAL_QUANTILE_95 * variance**0.5
    return Stability(estimate, variance, estimate - half_width, estimate + half_width)


def check_support(support: ArrayLike) -> NDArray[np.bool_]:
    """Return ``support`` as a boolean (N, B) matrix with N >= 1 and B >= 2, or say what is wrong with it.

    Parameters
    ----------
    support
        Boolean (N, B), one column per fold, B >= 2.

    Returns
    -------
    ndarray
        Boolean (N, B).

    Examples
    --------
    >>> from mvpa_gamp.stability import check_support
    >>> check_support([[1, 0], [1, 1], [0, 0]]).sum(axis=0)
    array([2, 1])
    """
    array = np.asarray(support)
    if array.ndim != 2 or array.shape[0] == 0:
        raise ValueError(
            "support must be a matrix with one row per feature and one column per fold, "
            f"got shape {array.shape}. Stack one boolean vector per fold as columns."
        )
    if array.shape[1] < 2:
        raise ValueError(
            f"Consistency compares folds, so support needs at least two columns, got {array.shape[1]}. "
            "Fit more than one fold."
        )
    if array.dtype != bool:
        if not np.isin(array, (0, 1)).all():
            raise ValueError(
                "support must be boolean (or 0/1): True where the fold selected the feature, "
                f"got values of type {array.dtype} other than 0 and 1. Pass coef != 0, for example."
            )
        array = array.astype(bool)
    return array


def _overlaps(support: NDArray[np.bool_]) -> tuple[NDArray, NDArray]:
    """Sizes of all intersections (B, B) and of the supports (B,), as exact float64 counts."""
    counts = support.astype(np.float64)
    overlap = counts.T @ counts
    return overlap, np.diag(overlap).copy()


def _mean_over_pairs(matrix: NDArray) -> float:
    n_folds = matrix.shape[0]
    return float((matrix.sum() - np.trace(matrix)) / (n_folds * (n_folds - 1)))


def _expected_jaccard(n_features: int, a: int, b: int) -> float:
    if a + b == 0:
        return 1.0
    from scipy.stats import hypergeom  # here, because scipy.stats is slow to load

    common = np.arange(max(0, a + b - n_features), min(a, b) + 1)
    probability = hypergeom.pmf(common, n_features, a, b)
    return float(np.sum(probability * common / (a + b - common)))
