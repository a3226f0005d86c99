"""Discoveries: what the model itself promises, and a check of calibrated selections with planted effects.

The rate that inclusion probabilities promise (``select_at_fdr``) holds where the model does. In fMRI
neighbouring voxels and successive samples are correlated; there ``calibrate`` selects, and ``planted_check``
tries it out in the user's own X, with effects of known place.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from ..methods import find_method
from ..methods.fold_fits import Method, check_rows
from .calibration import Calibration, calibrate, check_rate, voxel_strengths
from .exchange import permuted_labels
from .fit import Scheme
from .preparation import Unchanged

_ERRORS = 2.0  # standard errors by which a rate must exceed the nominal one, or a power fall, to be noted
_LEVEL = 0.05  # of the one-sided binomial test of the checks without an effect
_POWER = 0.8  # that this test must have against twice the nominal rate before it may confirm the rate


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
    n_repeats: int  # of size 0: distinct label vectors


@dataclass(frozen=True)
class PlantedCheck:
    """Observed false-discovery rates for each size of the planted effects, and the nominal rate."""

    method: str
    fdr: float
    n_planted: int
    n_repeats: int  # per size of the planted effects
    resemblance: float  # correlation with a planted voxel from which a voxel is no false discovery
    seed: int
    effects: tuple[PlantedEffect, ...]
    of: str = "feature"  # the word for a column of X

    @property
    def planted(self) -> tuple[PlantedEffect, ...]:
        """The sizes other than 0, in ascending order."""
        return tuple(sorted(each for each in self.effects if each.size))

    @property
    def nothing(self) -> PlantedEffect | None:
        """The checks without an effect, where whatever is selected is false; None if not made."""
        return next((each for each in self.effects if not each.size), None)

    @property
    def worst(self) -> PlantedEffect:
        """The size, other than 0, with the highest observed rate."""
        return max(self.planted, key=lambda each: each.false_rate)

    @property
    def false_alarms(self) -> float:
        """Share of checks in which something was selected though nothing was planted; NaN if not tried."""
        return float("nan") if self.nothing is None else self.nothing.false_rate

    @property
    def selects(self) -> bool:
        """Whether any voxel was selected where effects were planted."""
        return any(each.n_selected for each in self.planted)

    @property
    def tells(self) -> bool:
        """Whether checks without an effect are enough to distinguish twice the nominal rate from it."""
        n = 0 if self.nothing is None else self.nothing.n_repeats
        return bool(binom.sf(binom.isf(_LEVEL, n, self.fdr), n, 2 * self.fdr) >= _POWER)

    @property
    def holds(self) -> bool:
        """Whether voxels were selected, no rate, with or without effects, is above nominal, and it shows."""
        below = self.false_alarms <= self.fdr and self.worst.false_rate <= self.fdr
        return self.selects and below and self.tells

    @property
    def contradicted(self) -> bool:
        """Whether an observed rate is above the nominal one by more than chance explains."""
        worst, nothing = self.worst, self.nothing
        if worst.false_rate - _ERRORS * worst.false_rate_se > self.fdr:
            return True
        if nothing is None:
            return False
        alarms = round(nothing.false_rate * nothing.n_repeats)
        return bool(binom.sf(alarms - 1, nothing.n_repeats, self.fdr) < _LEVEL)

    @property
    def verdict(self) -> str:
        """Sentences for the page: whether the rate may be relied on, by which numbers, and the power."""
        numbers = f"{self._without_effect}; {self._with_effects}. {self._power}"
        if self.contradicted:
            return (
                f"Do not rely on the false-discovery rate here: {numbers} Take selected {self.of}s as hints, "
                f"or {self._instead}."
            )
        if not self.selects:
            return f"The false-discovery rate could not be checked: {numbers}"
        if self.holds:
            return f"The false-discovery rate was confirmed by simulation: {numbers}"
        return f"The false-discovery rate is not contradicted here, but not confirmed either: {numbers}"

    @property
    def _instead(self) -> str:
        if self.of == "voxel":  # a question that the page answers
            return "ask which voxels carry information"
        return f"test {self.of}s one by one, with Benjamini-Hochberg"

    @property
    def _without_effect(self) -> str:
        nothing = self.nothing
        if nothing is None:
            return "checks without an effect were not made"
        few = "" if self.tells else f", too few to distinguish it from {200 * self.fdr:.1f} %"
        return (
            f"without any effect, {100 * nothing.false_rate:.1f} % of {nothing.n_repeats} simulated data "
            f"sets selected a {self.of} (standard error {100 * nothing.false_rate_se:.1f} %, nominal "
            f"{100 * self.fdr:.1f} %{few})"
        )

    @property
    def _with_effects(self) -> str:
        worst = self.worst
        if not self.selects:
            largest = self.planted[-1].size
            return f"no {self.of} was selected, not even with effects of {largest:.2g} standard deviations"
        return (
            f"at worst, with effects of {worst.size:.2g} standard deviations, "
            f"{100 * worst.false_rate:.1f} % of the {self.of}s selected in {worst.n_repeats} simulated data "
            f"sets were false (standard error {100 * worst.false_rate_se:.1f} %, nominal "
            f"{100 * self.fdr:.1f} %)"
        )

    @property
    def _power(self) -> str:
        shares = ", ".join(f"{100 * e.power:.0f} % at {e.size:.2g}" for e in self.planted)
        powers = [each.power for each in self.planted]
        falls = powers[-1] < max(powers) - _ERRORS * self.planted[-1].power_se
        missed = f" Power falls for strong effects: {self.of}s not selected may carry information too."
        return f"Planted {self.of}s found: {shares} standard deviations.{missed if falls else ''}"


# Planted sizes relative to the effects measured in the data: none, weaker, alike, stronger.
_RELATIVE_SIZES = (0.0, 0.5, 1.0, 2.0)
_CANDIDATES = 64  # permutations drawn to find one that is nearly orthogonal to the real labels
# Checks without an effect: 191 tell a rate of 10 % from one of 5 % with power 0.8 at a one-sided level of 5 %
# (10 checks: power 0.07). They are columns of one X, so many of them cost little.
NO_EFFECT_REPEATS = 191


def select_at_fdr(inclusion: Any, fdr: float = 0.05) -> NDArray:
    """Select the largest set of voxels whose expected share of false discoveries is at most ``fdr``.

    Voxels enter in the order of their inclusion probability pi (N,); the expected rate of a set S is the mean
    over S of 1 - pi (the Bayesian false-discovery rate of Newton et al. 2004). Returns (N,) bool. The promise
    is as good as the probabilities, which fMRI breaks: without any effect, 15 to 26 % of label permutations
    of the Haxby slice select a voxel at 5 % with "gamp-bg-lr", and 62 % with "gamp-sbg-lr". Commands and
    ``GAMPDecoder.select`` use ``calibrate`` instead.

    Parameters
    ----------
    inclusion
        Posterior inclusion probabilities (N,).
    fdr
        The expected share of false ones among those selected.

    Returns
    -------
    ndarray
        The selection (N,) bool.

    Examples
    --------
    >>> from mvpa_gamp.decoding import select_at_fdr
    >>> select_at_fdr([0.2, 0.99, 0.9, 1.0, 0.6], fdr=0.04).tolist()
    [False, True, True, True, False]
    """
    probability = np.asarray(inclusion, dtype=float)
    if probability.ndim != 1 or not ((probability >= 0) & (probability <= 1)).all():
        raise ValueError(
            "inclusion must be a vector of probabilities in [0, 1], one per voxel, got shape "
            f"{probability.shape} or values outside. Pass one column of FoldFits.inclusion, or its mean."
        )
    check_rate(fdr)
    order = np.argsort(-probability, kind="stable")
    expected = np.cumsum(1 - probability[order]) / np.arange(1, probability.size + 1)  # never decreases
    selected = np.zeros(probability.size, dtype=bool)
    selected[order[expected <= fdr]] = True
    return selected


@dataclass(frozen=True)
class Planting:
    """How effects are planted.

    Parameters
    ----------
    n_planted
        Random voxels that get an effect; ``planted_count`` for those of commands.
    effects
        Sizes in standard deviations. None takes 0 (where whatever is selected is false) and half, once and
        twice the median size that the ``n_planted`` strongest voxels show for the real labels.
    n_repeats
        Data sets for each size.
    n_without
        Label vectors without an effect, or as many as there are.
    resemblance
        A selected voxel is false when its correlation with every planted voxel, in X as it was, is below this
        in magnitude: whether a close neighbour is false is a matter of definition, and the strict rate
        counts it.
    """

    n_planted: int = 10
    effects: Sequence[float] | None = None
    n_repeats: int = 10
    n_without: int = NO_EFFECT_REPEATS
    resemblance: float = 0.5


def planted_check(
    method: Method | str,
    X: Any,
    y: Any,
    runs: Any,
    scheme: Scheme | None = None,
    planting: Planting | None = None,
    *,
    fdr: float = 0.05,
    calibration: Calibration | None = None,
    of: str = "feature",
) -> PlantedCheck:
    """Plant effects in X itself, select at ``fdr``, and count what is false.

    Selections are those of ``calibrate(method, X, y, runs, scheme)``, or of the ``calibration`` given: the
    very null that a selection for the real labels is judged by. Its exchange of labels counts then. ``of`` is
    the word for a feature in the verdict, such as "voxel" or "gene". X is dense (M, N), and as all rows
    prepare it.

    Each repeat takes labels permuted within runs, nearly orthogonal to the real labels so that the real
    effect is gone while X keeps its correlations; adds size * sd * label to some random voxels; and fits all
    rows. Planted effects change X, so time is that of ``n_repeats`` fits per size. Checks without an effect
    share it: ``n_without`` different label vectors, or as many as there are, are solved together.

    Parameters
    ----------
    method
        One of ``METHODS``, or its name.
    X
        Samples (M, N).
    y
        Labels (M,) in -1/+1.
    runs
        The run (M,) of every sample.
    scheme
        Folds, rows, what folds do to X, and what is exchanged; None: leave one run out.
    planting
        How effects are planted; None: as commands do.
    fdr
        The rate of the selections.
    calibration
        The null they are judged by; None: made of permuted labels.
    of
        What a feature is called.

    Returns
    -------
    PlantedCheck
        Shares of false and of found features by size of effect, and a verdict.
    """
    method, scheme, planting = find_method(method), scheme or Scheme(), planting or Planting()
    X, runs = scheme.prepared(*check_rows(X, runs, dense=True))
    data = _checked(X, y, planting, fdr)
    if calibration is None:
        calibration = calibrate(method, data.X, y, runs, replace(scheme, rows=None, preparation=Unchanged()))
    n_repeats, n_planted = planting.n_repeats, planting.n_planted
    blocks = scheme.blocks if calibration.exchange == "block" else None
    n_drawn = max(n_repeats, planting.n_without) * _CANDIDATES
    drawn = permuted_labels(y, runs, n_drawn, scheme.seed, calibration.exchange, blocks)
    labels = _unrelated_labels(drawn, y, n_repeats)
    unlike = _distinct_labels(drawn, y, planting.n_without, labels)
    sizes = _measured_sizes(data, np.asarray(y), n_planted) if planting.effects is None else planting.effects
    planted = _Planted(method, data, runs, scheme.connectivity, calibration, fdr, planting.resemblance)
    positions = _positions(data.X.shape[1], n_planted, n_repeats, scheme.seed)
    found = tuple(
        planted.with_effects(labels, positions, size) if size else planted.without(unlike) for size in sizes
    )
    return PlantedCheck(method.name, fdr, n_planted, n_repeats, planting.resemblance, scheme.seed, found, of)


def planted_count(n_voxels: int) -> int:
    """How many voxels commands and decoders plant: ten, fewer in a small mask."""
    return max(1, min(10, n_voxels // 10))


def _positions(n_voxels: int, n_planted: int, n_repeats: int, seed: int) -> list[NDArray]:
    """The planted voxels of every repeat."""
    children = np.random.SeedSequence([seed, n_planted]).spawn(n_repeats)
    return [np.random.default_rng(child).choice(n_voxels, n_planted, replace=False) for child in children]


class _Data(NamedTuple):
    X: NDArray  # (M, N) a copy that may be written to
    sd: NDArray  # (N,)
    standard: NDArray  # (M, N) columns of mean 0 and norm 1, 0 where a voxel is constant


class _Planted(NamedTuple):
    """What all checks of one X have in common."""

    method: Method
    data: _Data
    runs: NDArray
    connectivity: Any
    calibration: Calibration
    fdr: float
    resemblance: float

    def without(self, labels: NDArray) -> PlantedEffect:
        """All label vectors (M, n) without an effect at once: one false voxel makes a rate of 1."""
        strengths = self._strengths(labels)
        counts = [np.count_nonzero(self._selected(column)) for column in strengths.T]
        n, rate = len(counts), float(np.mean(np.array(counts) > 0))
        likely = (n * rate + 1) / (n + 2)  # Laplace's estimate: no alarm in a few checks is not certainty
        error = float(np.sqrt(likely * (1 - likely) / n))
        return PlantedEffect(0.0, rate, error, rate, error, 0.0, 0.0, float(np.mean(counts)), n)

    def with_effects(self, labels: NDArray, positions: list[NDArray], size: float) -> PlantedEffect:
        """Effects of one size at some voxels per repeat, each with labels of its own."""
        records = [self._planted(labels[:, k], at, size) for k, at in enumerate(positions)]
        return _summary(size, np.array(records))

    def _planted(self, labels: NDArray, planted: NDArray, size: float) -> tuple[float, ...]:
        """What one selection is made of; X is as before afterwards."""
        X, sd, standard = self.data
        before = X[:, planted]
        X[:, planted] = before + labels[:, None] * (size * sd[planted])
        strength = self._strengths(labels[:, None])[:, 0]
        X[:, planted] = before
        alike = np.abs(standard[:, planted].T @ standard).max(axis=0) >= self.resemblance
        return _counted(self._selected(strength), planted, alike)

    def _strengths(self, labels: NDArray) -> NDArray:
        """Strengths (N, n) of voxels for labels (M, n)."""
        return voxel_strengths(self.method, self.data.X, labels, self.runs, self.connectivity)

    def _selected(self, strength: NDArray) -> NDArray:
        return self.calibration.judge(strength, self.fdr).selected


def _counted(selected: NDArray, planted: NDArray, alike: NDArray) -> tuple[float, ...]:
    """False rate, strict false rate, power and number of one selection."""
    n_selected = float(np.count_nonzero(selected))
    hits = float(np.count_nonzero(selected[planted]))
    false = float(np.count_nonzero(selected & ~alike))
    whole = max(1.0, n_selected)
    return false / whole, (n_selected - hits) / whole, hits / planted.size, n_selected


def _summary(size: float, records: NDArray) -> PlantedEffect:
    """Means and standard errors over the repeats, from (n_repeats, 4)."""
    false, strict, power, n_selected = (float(value) for value in records.mean(axis=0))
    errors = records.std(axis=0, ddof=1) / np.sqrt(len(records))
    false_se, strict_se, power_se, _ = (float(value) for value in errors)
    return PlantedEffect(
        float(size), false, false_se, strict, strict_se, power, power_se, n_selected, len(records)
    )


def _unrelated_labels(drawn: NDArray, y: Any, n: int) -> NDArray:
    """n of some permuted labels (M, P): of every few the one least correlated with the real labels."""
    related = np.abs(np.asarray(y, dtype=float) @ drawn[:, : n * _CANDIDATES]).reshape(n, _CANDIDATES)
    return drawn[:, np.arange(n) * _CANDIDATES + related.argmin(axis=1)].astype(float)


def _distinct_labels(drawn: NDArray, y: Any, n: int, unrelated: NDArray) -> NDArray:
    """Up to n different ones, no more correlated with y than the unrelated are; opposites are the same."""
    first = np.sort(np.unique(drawn * drawn[:1], axis=1, return_index=True)[1])
    labels = drawn[:, first].astype(float)
    most = np.abs(np.asarray(y, dtype=float) @ unrelated).max()
    return labels[:, np.abs(np.asarray(y, dtype=float) @ labels) <= most][:, :n]


def _measured_sizes(data: _Data, y: NDArray, n_planted: int) -> tuple[float, ...]:
    """Sizes like those of the strongest voxels: a correlation r is a shift of r / sqrt(1 - r^2) sd."""
    signs = (y - y.mean()) / np.linalg.norm(y - y.mean())
    r = np.minimum(np.sort(np.abs(signs @ data.standard))[-n_planted:], 0.99)
    return tuple(float(share * np.median(r / np.sqrt(1 - r**2))) for share in _RELATIVE_SIZES)


def _checked(X: Any, y: Any, planting: Planting, fdr: float) -> _Data:
    check_rate(fdr)
    effects, n_planted = planting.effects, planting.n_planted
    n_repeats = min(planting.n_repeats, planting.n_without)
    X = np.array(X)
    if X.ndim != 2 or X.dtype.kind != "f" or X.shape[0] != np.size(y):
        raise ValueError(
            f"X must be a dense matrix of floats with one row per label ({np.size(y)}), got shape {X.shape} "
            f"of type {X.dtype}. Pass samples x features."
        )
    if effects is not None and not (any(effects) and np.isfinite(effects).all() and min(effects) >= 0):
        raise ValueError(
            f"effects must be sizes of 0 or more standard deviations, one of them above 0, got {effects}. "
            "Give (0, 0.25, 0.5), for example, or None."
        )
    if not 1 <= n_planted <= X.shape[1] or n_repeats < 2:
        raise ValueError(
            f"A planted check needs 1 to {X.shape[1]} planted features and at least 2 repeats, got "
            f"{n_planted} and {n_repeats}. Change n_planted or n_repeats."
        )
    centred = X - X.mean(axis=0)
    norm = np.linalg.norm(centred, axis=0)
    return _Data(X, norm / np.sqrt(len(X)), centred / np.where(norm > 0, norm, 1))
