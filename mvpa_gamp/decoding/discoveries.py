"""Discoveries: voxels selected at an expected false-discovery rate, and a check with planted effects.

Inclusion probabilities are calibrated when the model holds. In fMRI neighbouring voxels and successive
samples are correlated, so the rate they promise is checked in the user's own X, with effects of known place.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..methods.fold_fits import Method
from .exchange import permuted_labels

# Planted sizes relative to the effects measured in the data: none, weaker, alike, stronger.
_RELATIVE_SIZES = (0.0, 0.5, 1.0, 2.0)
_CANDIDATES = 64  # permutations drawn to find one that is nearly orthogonal to the real labels
_ERRORS = 2.0  # standard errors by which an observed rate must exceed the nominal one to count as broken


def select_at_fdr(inclusion: Any, fdr: float = 0.05) -> NDArray:
    """Select the largest set of voxels whose expected share of false discoveries is at most ``fdr``.

    Voxels enter in the order of their inclusion probability pi (N,); the expected rate of a set S is the mean
    over S of 1 - pi (the Bayesian false-discovery rate of Newton et al. 2004). Returns (N,) bool. The promise
    is as good as the probabilities: see ``planted_check``.
    """
    probability = np.asarray(inclusion, dtype=float)
    if probability.ndim != 1 or not ((probability >= 0) & (probability <= 1)).all():
        raise ValueError(
            "inclusion must be a vector of probabilities in [0, 1], one per voxel, got shape "
            f"{probability.shape} or values outside. Pass one column of FoldFits.inclusion, or its mean."
        )
    _check_rate(fdr)
    order = np.argsort(-probability, kind="stable")
    expected = np.cumsum(1 - probability[order]) / np.arange(1, probability.size + 1)  # never decreases
    selected = np.zeros(probability.size, dtype=bool)
    selected[order[expected <= fdr]] = True
    return selected


class PlantedEffect(NamedTuple):
    """What came of effects of one size, as means over repeats with their standard errors."""

    size: float  # shift of a planted voxel by -size or +size standard deviations
    false_rate: float  # share of selected voxels that resemble no planted one; 0 where none is selected
    false_rate_se: float
    strict_rate: float  # share of selected voxels that are not planted
    strict_rate_se: float
    power: float  # share of planted voxels that are selected
    power_se: float
    n_selected: float


@dataclass(frozen=True)
class PlantedCheck:
    """Observed false-discovery rates beside the nominal one, per size of the planted effects."""

    method: str
    fdr: float
    n_planted: int
    n_repeats: int
    resemblance: float  # correlation with a planted voxel from which a voxel is no false discovery
    seed: int
    effects: tuple[PlantedEffect, ...]

    @property
    def worst(self) -> PlantedEffect:
        """The size, other than 0, with the highest observed rate."""
        return max((each for each in self.effects if each.size), key=lambda each: each.false_rate)

    @property
    def false_alarms(self) -> float:
        """Share of repeats in which something was selected though nothing was planted; NaN if not tried."""
        return next((each.false_rate for each in self.effects if not each.size), float("nan"))

    @property
    def holds(self) -> bool:
        """Whether no observed rate of planted effects lies clearly above the nominal one."""
        return self.worst.false_rate - _ERRORS * self.worst.false_rate_se <= self.fdr

    @property
    def verdict(self) -> str:
        """A sentence for the page, and a second one where voxels are selected without any effect."""
        if self.false_alarms > self.fdr:
            return (
                f"{self._about_effects} Without any effect, {self.false_alarms:.0%} of checks still selected "
                "a voxel: trust a selection only where the accuracy passes its permutation test."
            )
        return self._about_effects

    @property
    def _about_effects(self) -> str:
        worst = self.worst
        if not any(each.n_selected for each in self.effects if each.size):
            return (
                f"The false-discovery rate could not be checked: no voxel was selected at {self.fdr:.1%}, "
                f"not even with effects of {max(each.size for each in self.effects):.2g} standard deviations."
            )
        rates = (
            f"of voxels selected in {self.n_repeats} checks with effects of {worst.size:.2g} standard "
            f"deviations, {worst.false_rate:.1%} were false (standard error {worst.false_rate_se:.1%}, "
            f"nominal {self.fdr:.1%})"
        )
        if not self.holds:
            return f"Do not rely on the false-discovery rate here: {rates}. Take selected voxels as hints."
        if worst.false_rate > self.fdr:
            return f"The false-discovery rate is not contradicted here, but not confirmed either: {rates}."
        return f"The false-discovery rate holds here: at worst, {rates}."


def planted_check(
    method: Method,
    X: Any,
    y: Any,
    runs: Any,
    *,
    n_planted: int = 10,
    effects: Sequence[float] | None = None,
    n_repeats: int = 10,
    fdr: float = 0.05,
    resemblance: float = 0.5,
    blocks: Any = None,
    seed: int = 0,
) -> PlantedCheck:
    """Plant effects in X itself, select at ``fdr``, and count what is false.

    Each repeat takes block labels permuted within runs, nearly orthogonal to the real labels so that the real
    effect is gone while X keeps its correlations; adds size * sd * label to ``n_planted`` random voxels; and
    fits all rows. A selected voxel is false when its correlation with every planted voxel, in X as it was, is
    below ``resemblance`` in magnitude: whether a close neighbour is false is a matter of definition, and the
    strict rate counts it. ``effects`` are sizes in standard deviations; None takes 0 (where whatever is
    selected is false) and half, once and twice the median size that the ``n_planted`` strongest voxels show
    for the real labels. X is dense (M, N). Every repeat has its own X, so time is that of ``n_repeats`` fits
    per size.
    """
    data = _checked(X, y, n_planted, effects, n_repeats, fdr)
    labels = _unrelated_labels(y, runs, n_repeats, seed, blocks)
    sizes = _measured_sizes(data, np.asarray(y), n_planted) if effects is None else tuple(effects)
    found: list[list[tuple[float, float, float, float]]] = [[] for _ in sizes]
    for repeat, child in enumerate(np.random.SeedSequence([seed, n_planted]).spawn(n_repeats)):
        planted = np.random.default_rng(child).choice(data.X.shape[1], n_planted, replace=False)
        alike = np.abs(data.standard[:, planted].T @ data.standard).max(axis=0) >= resemblance
        for size, records in zip(sizes, found, strict=True):
            inclusion = _fit_planted(method, data, labels[:, repeat], planted, size, runs)
            selected = select_at_fdr(inclusion, fdr)
            records.append(_counted(selected, planted, alike) if size else _all_false(selected))
    return PlantedCheck(
        method.name,
        fdr,
        n_planted,
        n_repeats,
        resemblance,
        seed,
        tuple(_summary(size, np.array(records)) for size, records in zip(sizes, found, strict=True)),
    )


class _Data(NamedTuple):
    X: NDArray  # (M, N) a copy that may be written to
    sd: NDArray  # (N,)
    standard: NDArray  # (M, N) columns of mean 0 and norm 1, 0 where a voxel is constant


def _fit_planted(
    method: Method, data: _Data, labels: NDArray, planted: NDArray, size: float, runs: Any
) -> NDArray:
    """Inclusion (N,) of a fit to all rows of X with effects planted; X is as before afterwards."""
    before = data.X[:, planted]
    data.X[:, planted] = before + labels[:, None] * (size * data.sd[planted])
    fits = method.fit_folds(data.X, labels, np.ones((labels.size, 1), dtype=bool), np.asarray(runs))
    data.X[:, planted] = before
    if fits.inclusion is None:
        raise ValueError(
            f"A planted check needs inclusion probabilities, which {method.name!r} does not have. "
            "Choose a Bernoulli method such as 'gamp-bg-lr'."
        )
    return fits.inclusion[:, 0]


def _counted(selected: NDArray, planted: NDArray, alike: NDArray) -> tuple[float, float, float, float]:
    """False rate, strict false rate, power and number of one selection."""
    n_selected = float(np.count_nonzero(selected))
    hits = float(np.count_nonzero(selected[planted]))
    false = float(np.count_nonzero(selected & ~alike))
    whole = max(1.0, n_selected)
    return false / whole, (n_selected - hits) / whole, hits / planted.size, n_selected


def _all_false(selected: NDArray) -> tuple[float, float, float, float]:
    """The same where nothing was planted: one false voxel makes a rate of 1."""
    false = float(selected.any())
    return false, false, 0.0, float(np.count_nonzero(selected))


def _summary(size: float, records: NDArray) -> PlantedEffect:
    """Means and standard errors over the repeats, from (n_repeats, 4)."""
    false, strict, power, n_selected = (float(value) for value in records.mean(axis=0))
    errors = records.std(axis=0, ddof=1) / np.sqrt(len(records))
    false_se, strict_se, power_se, _ = (float(value) for value in errors)
    return PlantedEffect(float(size), false, false_se, strict, strict_se, power, power_se, n_selected)


def _unrelated_labels(y: Any, runs: Any, n: int, seed: int, blocks: Any) -> NDArray:
    """Permuted labels (M, n): of every few candidates the one least correlated with the real labels."""
    drawn = permuted_labels(y, runs, n * _CANDIDATES, seed, blocks=blocks)
    related = np.abs(np.asarray(y, dtype=float) @ drawn).reshape(n, _CANDIDATES)
    return drawn[:, np.arange(n) * _CANDIDATES + related.argmin(axis=1)].astype(float)


def _measured_sizes(data: _Data, y: NDArray, n_planted: int) -> tuple[float, ...]:
    """Sizes like those of the strongest voxels: a correlation r is a shift of r / sqrt(1 - r^2) sd."""
    signs = (y - y.mean()) / np.linalg.norm(y - y.mean())
    r = np.minimum(np.sort(np.abs(signs @ data.standard))[-n_planted:], 0.99)
    return tuple(float(share * np.median(r / np.sqrt(1 - r**2))) for share in _RELATIVE_SIZES)


def _checked(
    X: Any, y: Any, n_planted: int, effects: Sequence[float] | None, n_repeats: int, fdr: float
) -> _Data:
    _check_rate(fdr)
    X = np.array(X)
    if X.ndim != 2 or X.dtype.kind != "f" or X.shape[0] != np.size(y):
        raise ValueError(
            f"X must be a dense matrix of floats with one row per label ({np.size(y)}), got shape {X.shape} "
            f"of type {X.dtype}. Pass samples x voxels."
        )
    if effects is not None and not (any(effects) and np.isfinite(effects).all() and min(effects) >= 0):
        raise ValueError(
            f"effects must be sizes of 0 or more standard deviations, one of them above 0, got {effects}. "
            "Give (0, 0.25, 0.5), for example, or None."
        )
    if not 1 <= n_planted <= X.shape[1] or n_repeats < 2:
        raise ValueError(
            f"A planted check needs 1 to {X.shape[1]} planted voxels and at least 2 repeats, got {n_planted} "
            f"and {n_repeats}. Change those."
        )
    centred = X - X.mean(axis=0)
    norm = np.linalg.norm(centred, axis=0)
    return _Data(X, norm / np.sqrt(len(X)), centred / np.where(norm > 0, norm, 1))


def _check_rate(fdr: float) -> None:
    if not 0 < fdr < 1:
        raise ValueError(f"fdr must be a rate between 0 and 1, got {fdr}. 0.05 is usual.")
