"""Classes: names that have an order, pairs of them, and pairs coupled to one probability per class."""

from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Pairs = tuple[tuple[int, int], ...]
# A pair that is this sure is as sure as it gets: with 0 or 1 the best class probabilities may not exist.
_CERTAIN = 1e-12
_NEWTON_STEPS = 100
_HALVINGS = 30
_TOLERANCE = 1e-10  # of wins, which are of order one
_LONGEST = 10.0  # change of log p in a step
_FLAT = 1e-13  # curvature that is zero up to rounding


def class_pairs(n_classes: int) -> Pairs:
    """All pairs (i, j), i < j, of class numbers, in the order (0, 1), (0, 2), ..., (1, 2), ..."""
    if n_classes < 2:
        raise ValueError(f"Pairs need at least two classes, got {n_classes}. Check the labels.")
    return tuple(combinations(range(n_classes), 2))


class Answers(NamedTuple):
    """What is said about m rows of K classes."""

    decision: NDArray  # (m,) for two classes, positive for the second; more: (m, K)
    proba: NDArray  # (m, K)
    predicted: NDArray  # (m,) class numbers


def classify(decision: NDArray, proba: NDArray, n_classes: int) -> Answers:
    """The classes of m rows from what P pairs say about them: decisions and probabilities (m, P).

    Two classes: the decision (m,) is the linear score, positive for the second class. More: it is the
    logarithm of the coupled probability of each class, (m, K), and the largest one is predicted. Pairs
    without a probability (NaN) vote: then the decision is that of :func:`vote`.
    """
    if n_classes == 2:
        first = np.clip(proba[:, 0], _CERTAIN, 1 - _CERTAIN)
        return Answers(-decision[:, 0], np.stack([first, 1 - first], 1), np.where(decision[:, 0] > 0, 0, 1))
    if np.isnan(proba).any():
        votes = vote(decision, n_classes)
        return Answers(votes, np.full_like(votes, np.nan), votes.argmax(axis=1))
    coupled = couple(proba, n_classes)
    return Answers(np.log(np.maximum(coupled, np.finfo(float).tiny)), coupled, coupled.argmax(axis=1))


def vote(decision: NDArray, n_classes: int) -> NDArray:
    """Votes (m, K) of P pairs with decisions (m, P), positive for the first class of a pair.

    A tie goes to the class with the larger sum of decisions, s / (3 (|s| + 1)) of a vote, as in
    scikit-learn's one-against-one classifiers.
    """
    votes, sums = (np.zeros((len(decision), n_classes)) for _ in range(2))
    for p, (i, j) in enumerate(class_pairs(n_classes)):
        first = decision[:, p] > 0
        votes[:, i] += first
        votes[:, j] += ~first
        sums[:, i] += decision[:, p]
        sums[:, j] -= decision[:, p]
    return votes + sums / (3 * (np.abs(sums) + 1))


def couple(first: ArrayLike, n_classes: int) -> NDArray:
    """Class probabilities (M, K) from P(first class of the pair | either of the two), (M, K (K - 1) / 2).

    Pairs stand in the order of :func:`class_pairs`. With r_ij the given probabilities and
    mu_ij = p_i / (p_i + p_j), p minimises sum_{i<j} KL(r_ij || mu_ij) (Hastie & Tibshirani, Annals of
    Statistics 26, 1998, with equal weights), which makes sum_j mu_ij = sum_j r_ij for every class. It is
    convex in log p; Newton's method starts from :func:`couple_quadratic`. Probabilities within 1e-12 of 0
    or 1 are taken as 1e-12 away. Two classes need no coupling.
    """
    r = _wins(first, n_classes)
    if n_classes == 2:
        return r[:, [0, 1], [1, 0]]
    theta = np.log(np.maximum(couple_quadratic(first, n_classes), _CERTAIN))
    wins = r.sum(axis=2)
    active = np.arange(len(r))
    for _ in range(_NEWTON_STEPS):
        slope, step = _newton_step(theta[active], wins[active])
        active, step = _still_moving(active, slope, step)
        if not active.size:
            break
        theta[active] = _descend(theta[active], step, r[active])
    p = np.exp(theta - theta.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def couple_quadratic(first: ArrayLike, n_classes: int) -> NDArray:
    """The second method of Wu, Lin & Weng (JMLR 5, 2004), in closed form; arguments as for :func:`couple`.

    p minimises sum_i sum_{j != i} (r_ji p_i - r_ij p_j)^2 subject to sum p = 1: with Q_ii = sum_j r_ji^2 and
    Q_ij = -r_ji r_ij, it solves [[Q, 1], [1', 0]] [p, b] = [0, 1]. All p are positive.
    """
    r = _wins(first, n_classes)
    corner = np.arange(n_classes)
    system = np.zeros((len(r), n_classes + 1, n_classes + 1))
    system[:, :n_classes, :n_classes] = -r * np.swapaxes(r, 1, 2)
    system[:, corner, corner] = np.square(r).sum(axis=1)
    system[:, n_classes, :n_classes] = system[:, :n_classes, n_classes] = 1.0
    right = np.zeros((len(r), n_classes + 1, 1))
    right[:, n_classes] = 1.0
    p = np.maximum(np.linalg.solve(system, right)[:, :n_classes, 0], 0.0)  # rounding may leave -1e-17
    return p / p.sum(axis=1, keepdims=True)


def _wins(first: ArrayLike, n_classes: int) -> NDArray:
    """r (M, K, K): r_ij = P(i | i or j), zero on the diagonal."""
    given = np.asarray(first, dtype=np.float64)
    pairs = np.array(class_pairs(n_classes))
    if given.ndim != 2 or given.shape[1] != len(pairs):
        raise ValueError(
            f"{n_classes} classes have {len(pairs)} pairs: expected one column for each, got shape "
            f"{given.shape}. Give the probability of each pair's first class."
        )
    if not ((given >= 0) & (given <= 1)).all():
        raise ValueError(
            "Pairwise probabilities must lie between 0 and 1, got values outside this range or NaN. Use a "
            "method with a probability model."
        )
    clipped = np.clip(given, _CERTAIN, 1 - _CERTAIN)
    r = np.zeros((len(given), n_classes, n_classes))
    r[:, pairs[:, 0], pairs[:, 1]] = clipped
    r[:, pairs[:, 1], pairs[:, 0]] = 1 - clipped
    return r


def _newton_step(theta: NDArray, wins: NDArray) -> tuple[NDArray, NDArray]:
    """Gradient (m, K) of the cost in theta = log p, and Newton's step, no longer than ``_LONGEST``.

    Classes far apart have curvatures many orders apart, so the Hessian, a Laplacian, is scaled to a unit
    diagonal first. It does not feel a shift of all theta, nor, in floating point, what groups of classes
    that never meet have in common: eigenvalues have a floor.
    """
    diagonal = np.arange(theta.shape[1])
    mu = 1 / (1 + np.exp(np.clip(theta[:, None, :] - theta[:, :, None], -700, 700)))
    mu[:, diagonal, diagonal] = 0.0
    slope = mu.sum(axis=2) - wins
    curvature = -mu * np.swapaxes(mu, 1, 2)
    curvature[:, diagonal, diagonal] = -curvature.sum(axis=2)
    scale = np.sqrt(np.maximum(curvature[:, diagonal, diagonal], _FLAT))
    values, vectors = np.linalg.eigh(curvature / (scale[:, :, None] * scale[:, None, :]))
    along = np.einsum("mik,mi->mk", vectors, slope / scale) / np.maximum(values, _FLAT)
    step = np.einsum("mik,mk->mi", vectors, along) / scale
    step -= step.mean(axis=1, keepdims=True)
    longest = np.abs(step).max(axis=1, keepdims=True)
    return slope, step * np.minimum(1.0, _LONGEST / np.maximum(longest, _LONGEST))


def _still_moving(active: NDArray, slope: NDArray, step: NDArray) -> tuple[NDArray, NDArray]:
    moving = np.abs(slope).max(axis=1) > _TOLERANCE
    return active[moving], step[moving]


def _descend(theta: NDArray, step: NDArray, r: NDArray) -> NDArray:
    """theta - t step with t halved, row by row, until the cost does not rise."""
    before = _cost(theta, r)
    t = np.ones((len(theta), 1))
    for _ in range(_HALVINGS):
        worse = _cost(theta - t * step, r) > before + 1e-14 * np.abs(before)
        if not worse.any():
            break
        t[worse] /= 2
    return theta - t * step


def _cost(theta: NDArray, r: NDArray) -> NDArray:
    """-sum_{i != j} r_ij log mu_ij, (m,)."""
    return (r * np.logaddexp(0.0, theta[:, None, :] - theta[:, :, None])).sum(axis=(1, 2))


def check_sortable(what: str, names: Any) -> None:
    """Refuse missing names, and names of different kinds, such as words and numbers, which have no order.

    >>> import numpy as np
    >>> from mvpa_gamp.coupling import check_sortable
    >>> check_sortable("y", np.array(["face", "house"], dtype=object))
    """
    if np.asarray(names).dtype.kind != "O":
        return
    check_none_missing(what, names)
    kinds = sorted({type(name).__name__ for name in np.ravel(names)})
    try:
        np.unique(names)
    except TypeError as error:
        raise ValueError(
            f"{what} must hold numbers or words, got a mixture of {', '.join(kinds)}, which has no order. "
            "Name every sample in the same way."
        ) from error


def check_none_missing(what: str, names: Any) -> None:
    """Refuse None, and what pandas puts in place of missing words."""
    names = np.ravel(np.asarray(names, dtype=object))
    missing = [str(name) for name in names if name is None or _is_nan(name)]
    if missing:
        raise ValueError(
            f"{what} has missing labels ({missing[0]}) in {len(missing)} of {len(names)} samples. Drop these "
            "samples, or name them."
        )


def _is_nan(name: Any) -> bool:
    return type(name).__name__ in ("NAType", "NaTType") or (isinstance(name, float) and name != name)
