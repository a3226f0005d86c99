"""GAMPClassifier(solver="vamp"): the fit in row space, and what of it the classifier keeps."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit

from ..coupling import class_pairs
from ..gamp import Bernoulli, RowSpace, VampSettings, solve_vamp, training_sets
from ..gamp.neighbours import Neighbours
from ..gamp.starts import named_prior
from ..gamp.vamp_classes import class_targets, noise_levels, pair_turns, rank_matched, runs_or_rows
from ..sortable import check_sortable

# Settings of GAMPClassifier that belong to message passing over elements, with their defaults.
_OTHERS: dict[str, Any] = {
    "likelihood": "logistic", "mode": "sum-product", "em": True, "learn_prior": None,
    "learn_likelihood": None, "fit_intercept": True, "center": "auto", "stop": None,
    "tol": None, "variance": "full",
}  # fmt: skip


@dataclass(frozen=True)
class RowSpaceFit:
    """One fit; P pairs of classes, positive scores for the second class of a pair."""

    coef: NDArray  # (P, N)
    coef_std: NDArray  # (P, N)
    intercept: NDArray  # (P,)
    inclusion: NDArray  # (P, N)
    support: NDArray  # (N,) bool
    prior: Any
    noise: float
    gap: float
    left_out_score: NDArray  # (P,) mean log-likelihood of left-out samples of the two classes
    n_iter: int
    status: str
    converged: bool


def check_settings(estimator: Any, groups: Any) -> None:
    """Refuse settings that the chosen solver has no use for."""
    if estimator.solver not in ("gamp", "vamp"):
        raise ValueError(f"solver must be 'gamp' or 'vamp', got {estimator.solver!r}.")
    if estimator.solver == "gamp":
        if groups is not None:
            raise ValueError(
                "groups are samples that deviate together, which solver='vamp' knows of, not "
                "solver='gamp'. Use GAMPClassifier(solver='vamp'), or leave groups out."
            )
        return
    for name, default in _OTHERS.items():
        given = getattr(estimator, name)
        if not (given is default or (isinstance(given, type(default)) and given == default)):
            raise ValueError(
                f"{name}={given!r} is for solver='gamp': with solver='vamp' labels have a Gaussian "
                f"likelihood and nothing is learnt. Leave {name} out."
            )
    if not isinstance(estimator.prior, (str, Bernoulli)) or (
        isinstance(estimator.prior, str) and not named_prior(estimator.prior).has_atom
    ):
        raise ValueError(
            f"solver='vamp' needs a Bernoulli prior, got {estimator.prior!r}. Use 'bernoulli-gaussian', or "
            "Bernoulli(rate, slab) with a slab of variance one."
        )


def fit_row_space(
    estimator: Any, X: Any, codes: NDArray, groups: Any, weights: NDArray | None, graph: Any
) -> RowSpaceFit:
    """Fit samples of class numbers ``codes`` (n,); ``groups`` (n,) name what belongs together."""
    names = _numbers(groups, len(codes))
    if weights is not None:
        kept = weights > 0
        X, codes, names, weights = X[kept], codes[kept], names[kept], weights[kept]
    n_classes, labels = int(codes.max()) + 1, codes[:, None]
    train = np.ones(labels.shape, dtype=bool)
    counts = train.astype(float) if weights is None else weights[:, None]
    names = runs_or_rows(names, train)
    space = RowSpace(X)
    neighbours = None if graph is None else Neighbours(graph, space.shape[1], space.dtype)
    given = named_prior(estimator.prior) if isinstance(estimator.prior, str) else estimator.prior
    steps = {"damping": estimator.damping, "max_iter": estimator.max_iter}
    chosen: dict[str, Any] = {name: value for name, value in steps.items() if value is not None}
    if "max_iter" in chosen:
        chosen["least_iter"] = min(VampSettings.least_iter, chosen["max_iter"])
    rate = None if isinstance(estimator.prior, str) else float(given.rate)
    settings = VampSettings(rate=rate, **chosen)
    targets = class_targets(labels, train, n_classes)
    rho, white = noise_levels(settings, names, targets, train)
    sets = training_sets(space, train, names, rho, white, counts)
    found = solve_vamp(space, sets, targets, settings, given.slab, neighbours)
    turns = pair_turns(found.left_out, labels, counts, n_classes)
    coef, coef_std, intercept = (np.asarray(each) for each in turns.weights(found))
    n_pairs = turns.offsets.shape[1]
    scores = turns.decision(found.left_out)[:, 0]
    return RowSpaceFit(
        coef=-np.ascontiguousarray(coef[:, 0].T),
        coef_std=np.ascontiguousarray(coef_std[:, 0].T),
        intercept=-intercept[0],
        inclusion=np.repeat(found.inclusion.T, n_pairs, axis=0),
        support=rank_matched(found.inclusion)[:, 0],
        prior=Bernoulli(float(found.rate[0]), found.slab),
        noise=float(found.noise[0]),
        gap=float(found.gap[0]),
        left_out_score=_left_out_score(scores, codes, counts[:, 0], n_classes),
        n_iter=int(found.n_iter[0]),
        status=str(found.status[0]),
        converged=bool(found.converged[0]),
    )


def _numbers(groups: Any, n_samples: int) -> NDArray:
    """The groups; every sample by itself where there are none."""
    if groups is None:
        return np.arange(n_samples)
    names = np.asarray(groups)
    if names.shape != (n_samples,):
        raise ValueError(
            f"groups must name the group of each of the {n_samples} samples, got shape {names.shape}. "
            "Give one per sample, such as its run or participant."
        )
    check_sortable("groups", names)
    return names


def _left_out_score(scores: NDArray, codes: NDArray, counts: NDArray, n_classes: int) -> NDArray:
    """The mean log-likelihood (P,) of log-odds (n, P) of the first class of every pair."""
    out = []
    for (i, j), column in zip(class_pairs(n_classes), scores.T, strict=True):
        mine = ((codes == i) | (codes == j)) & (counts > 0)
        signed = np.where(codes[mine] == i, column[mine], -column[mine])
        out.append(np.average(log_expit(signed), weights=counts[mine]))
    return np.array(out)
